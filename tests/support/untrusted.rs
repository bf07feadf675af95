//! The readers of untrusted bytes. For any bytes each must return, in bounded time and memory.
//! tests/fuzz searches with libFuzzer for bytes with which one does not, and tests/untrusted.rs
//! continues from those that it kept.

use precise::capture::CaptureFile as _;
use std::io::Cursor;

use bytes::Bytes;
use precise::btf::Btf;
use precise::capture::ReadLimits as CaptureLimits;
use precise::code::{FunctionId, Instruction};
use precise::filter::parse;
use precise::import::{ImportOptions, import_from};
use precise::machine::Root;
use precise::model::{Capture, Reason};
use precise::records::perf_data::RecordingReader;
use precise::records::record;
use precise::render::TextOptions;
use precise::symbols::container::Owners;
use precise::symbols::names_in_kallsyms;
use precise::symbols::process::{HistoryLimits, Processes};
use precise::views::code::Code;
use precise::views::html;
use precise::views::registry::VIEWS;
use precise::views::view::{AnyView, Input, OptionValues};
use precise_common::{data_src::DataSource, ibs, latency as buckets};

/// Reads a recording of perf: as a file, and the same bytes as from a pipe.
pub fn recording(bytes: &[u8]) {
    let options =
        ImportOptions { input: "any".into(), output: "/dev/null".into(), ..ImportOptions::default() };
    let bytes = bytes.to_vec();
    let reader = RecordingReader::file(Cursor::new(bytes.clone()))
        .or_else(|_| RecordingReader::pipe(Cursor::new(bytes)));
    if let Ok(reader) = reader {
        // Other tests check the result.
        let _ = import_from(reader, &options);
    }
}

/// Reads a capture, and renders every view of it in every format. Views of two captures compare it
/// with itself.
pub fn capture(bytes: &[u8]) {
    let limits = CaptureLimits { rows: 100_000, bytes: 256 << 20 };
    let Ok(capture) = Capture::read_bytes(Bytes::copy_from_slice(bytes), "any", &limits) else { return };
    for view in VIEWS {
        views(*view, &capture);
    }
    let _ = html::page(&mut Input::of(&capture, &mut NoCode));
}

/// Renders one view of a capture with its default options.
fn views(view: &dyn AnyView, capture: &Capture) {
    let about = view.description();
    let values = OptionValues::defaults(about.options);
    let mut code = NoCode;
    let mut input = match about.captures.two() {
        true => Input::pair(capture, capture, &mut code),
        false => Input::of(capture, &mut code),
    };
    if let Ok(answer) = view.answer(&mut input, &values) {
        let _ = (
            answer.text(&TextOptions::default()),
            answer.json(None, None),
            answer.csv(","),
            answer.judgement(),
        );
    }
}

/// A machine without the code that a capture names: an untrusted capture must not choose the files
/// that are read.
struct NoCode;

impl Code for NoCode {
    fn instructions(&mut self, _: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        Err(Reason::FileMissing)
    }

    fn source(&mut self, _: &str, _: u32) -> Option<String> {
        None
    }
}

/// Runs every decoder: of records in a ring buffer, of samples, of the kernel's types, and of
/// filters.
pub fn decoders(bytes: &[u8]) {
    let word = |at: usize| {
        bytes.get(8 * at..8 * at + 8).and_then(|word| word.try_into().ok()).map_or(0, u64::from_le_bytes)
    };
    let source = DataSource::decode(word(0));
    let _ = (source.op_name(), source.level.name(), DataSource::as_store(word(0)));
    for op in [
        ibs::OutcomeBits::of_op(word(0), word(1), word(2), word(3) & 1 != 0),
        ibs::OutcomeBits::of_fetch(word(0), false),
    ] {
        let _ =
            (op.width(), op.data_page(), op.source(), ibs::data_source(op, word(3) as u32, word(3) & 2 != 0));
    }
    assert!(buckets::lower(buckets::bucket(word(0) as u32)) <= u64::from(word(0) as u32));
    let _ = ibs::register(bytes, (word(0) & 15) as usize);

    let _ = parse::parse(&String::from_utf8_lossy(bytes));
    let _ = Btf::parse(bytes.to_vec()).map(|btf| {
        (btf.offset("perf_sample_data", "period"), btf.structure_id("f"), btf.function_ids(["f", "g"]))
    });
    if bytes.len() > 40 {
        let layout = record::sample::SampleLayout {
            sample_type: word(0),
            read_format: word(1),
            branch_sample_type: word(2),
            regs_user: word(3),
            regs_intr: word(4),
        };
        let body = Bytes::copy_from_slice(&bytes[40..]);
        let _ = record::sample::decode(body.clone(), &layout);
        let layout = record::RecordLayout { sample_type: word(0), sample_id_all: word(1) & 1 != 0 };
        assert!(record::records(body, layout).count() <= bytes.len());
    }
}

/// Reads a program, its debug information, a perf map or a name of a function, as the process that
/// reads the files of others does.
pub fn binary(bytes: &[u8]) {
    // An error is a refusal.
    let _ = precise::reader::read_anything(bytes);
}

/// Reads a text as everything of /proc and of container runtimes that has names which others
/// chose: the maps, the status and the command name of a process, kernel symbols, the path of a
/// cgroup, and the files with the names of containers.
pub fn texts(bytes: &[u8]) {
    // A path as a container's cgroup has it, whose id leads to the files below.
    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    let files = [
        "proc/7/maps",
        "proc/7/status",
        "proc/7/comm",
        "proc/kallsyms",
        &format!("var/lib/docker/containers/{ID}/config.v2.json"),
        &format!("run/containerd/io.containerd.runtime.v2.task/k8s.io/{ID}/config.json"),
        "var/lib/containers/storage/overlay-containers/containers.json",
    ];
    // Without a folder in memory nothing can be read.
    let Ok(folder) = tempfile::tempdir_in("/dev/shm") else { return };
    for file in files {
        let path = folder.path().join(file);
        let made = path.parent().map(std::fs::create_dir_all);
        assert!(matches!(made, Some(Ok(()))) && std::fs::write(&path, bytes).is_ok(), "{file}");
    }
    let mut processes = Processes::default();
    // What cannot be parsed is an error.
    let _ = processes.snapshot_proc(folder.path(), 7, 1);
    let _ = processes.process_name(7, &(0..2));
    let _ = processes.find_mapping(7, bytes.len() as u64, &(0..2));
    assert!(processes.bytes() <= HistoryLimits::BYTES);

    let addresses: Vec<u64> = (0..64).map(|shift| 1 << shift).collect();
    let _ = names_in_kallsyms(&folder.path().join("proc/kallsyms"), &addresses);

    let mut owners = Owners::new(Root(folder.path().to_owned()));
    let text = String::from_utf8_lossy(bytes);
    for path in [&*text, &format!("/docker/{ID}"), &format!("/kubepods.slice/cri-containerd-{ID}.scope")] {
        let _ = owners.of(path);
    }
}
