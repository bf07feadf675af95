//! Readers of untrusted bytes return for any input: for inputs that fuzzing kept (tests/corpus),
//! for real ones, and for changed ones. `cargo xtask fuzz` searches longer.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use precise::capture::panics_are_answered;
use precise::import::{ImportOptions, import_from};
use precise::records::perf_data::RecordingReader;
use precise_tests::{alone::alone, say, untrusted};

/// The time for which changed bytes of each kind are tried.
const TIME: Duration = Duration::from_secs(8);
/// The time limit for one input.
const LONGEST: Duration = Duration::from_secs(10);
/// The limit on the memory of all readers together, in bytes.
const MEMORY: u64 = 1 << 30;

/// Returns the files of a folder below tests, in order; none if it does not exist.
fn files(dir: &str) -> Vec<Vec<u8>> {
    let Ok(entries) = fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(dir)) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    // A folder of tests/recordings has its bytes in perf.data.
    let read = |path: &PathBuf| fs::read(path.join("perf.data")).or_else(|_| fs::read(path)).ok();
    paths.iter().filter_map(read).filter(|bytes| bytes.len() < 1 << 20).collect()
}

/// Random changes that violate the assumptions of decoders: flipped bits, words with extreme
/// values, truncation, and parts of other files.
struct Change(u64);

impl Change {
    fn next(&mut self, below: usize) -> usize {
        // xorshift64
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % below.max(1) as u64) as usize
    }

    fn of(&mut self, bytes: &[u8], other: &[u8]) -> Vec<u8> {
        let mut bytes = bytes.to_vec();
        for _ in 0..=self.next(8) {
            let at = self.next(bytes.len());
            match self.next(6) {
                0 => {
                    bytes.truncate(at);
                }
                1 => {
                    let from = self.next(other.len());
                    let piece = &other[from..(from + self.next(64)).min(other.len())];
                    bytes.splice(at..at, piece.iter().copied());
                }
                2 => {
                    let words = [0, 1, 7, 0xffff, u64::from(u32::MAX), i64::MAX as u64, u64::MAX];
                    let word = words[self.next(words.len())].to_le_bytes();
                    bytes
                        .iter_mut()
                        .skip(at)
                        .zip(&word[..1 << self.next(4)])
                        .for_each(|(to, from)| *to = *from);
                }
                _ => {
                    let bit = 1 << self.next(8);
                    bytes.iter_mut().skip(at).take(1).for_each(|byte| *byte ^= bit);
                }
            }
        }
        bytes
    }
}

fn all_come_back(kind: &str, seeds: &[Vec<u8>], read: fn(&[u8])) -> Result<()> {
    let timed = |bytes: &[u8]| {
        let start = Instant::now();
        read(bytes);
        assert!(start.elapsed() < LONGEST, "{kind}: {} bytes took {:?}", bytes.len(), start.elapsed());
    };
    seeds.iter().for_each(|bytes| timed(bytes));
    let (mut change, mut tried, end) = (Change(0x9e37_79b9_7f4a_7c15), 0, Instant::now() + TIME);
    while Instant::now() < end {
        let (one, other) = (change.next(seeds.len()), change.next(seeds.len()));
        timed(&change.of(&seeds[one], &seeds[other]));
        tried += 1;
    }
    let peak = peak()?;
    say(&format!(
        "{kind}: {} kept and {tried} changed inputs came back; memory peaked at {} MB",
        seeds.len(),
        peak >> 20
    ));
    assert!(peak < MEMORY, "{kind}: {peak} bytes of memory");
    Ok(())
}

/// Returns the most memory that this process has used at any time, in bytes. getrusage(2) does not
/// return this: its maximum may be inherited from the process that started this one.
fn peak() -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = kib.and_then(|rest| rest.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kib.context("/proc/self/status has no VmHWM")? * 1024)
}

#[test]
fn a_foreign_recording_is_an_error_or_a_capture() -> Result<()> {
    alone("untrusted::a_foreign_recording_is_an_error_or_a_capture", recordings)
}

fn recordings() -> Result<()> {
    let mut seeds = files("recordings");
    seeds.extend(files("corpus/recording"));
    all_come_back("recordings", &seeds, untrusted::recording)
}

#[test]
fn a_foreign_capture_is_an_error_or_has_views() -> Result<()> {
    alone("untrusted::a_foreign_capture_is_an_error_or_has_views", captures)
}

fn captures() -> Result<()> {
    // parquet's panics are turned into errors; their messages would hide important output.
    let before = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        if !panics_are_answered() {
            before(info);
        }
    }));
    let dir = tempfile::tempdir()?;
    let output = dir.path().join("seed.parquet");
    let (mut seeds, mut imported) = (files("corpus/capture"), 0);
    for bytes in files("recordings") {
        let options =
            ImportOptions { input: "any".into(), output: output.clone(), ..ImportOptions::default() };
        let reader = RecordingReader::file(std::io::Cursor::new(bytes.clone()));
        let Ok(reader) = reader.or_else(|_| RecordingReader::pipe(std::io::Cursor::new(bytes))) else {
            continue;
        };
        if import_from(reader, &options).is_ok() {
            imported += 1;
            seeds.extend(fs::read(&output));
        }
    }
    assert!(imported >= 4, "{imported} recordings can be imported");
    all_come_back("captures", &seeds, untrusted::capture)
}

#[test]
fn foreign_records_registers_types_and_filters_are_an_error_or_a_value() -> Result<()> {
    alone("untrusted::foreign_records_registers_types_and_filters_are_an_error_or_a_value", decoders)
}

fn decoders() -> Result<()> {
    let mut seeds = files("corpus/decoders");
    seeds.push(b"latency > 60, mem_lvl in {l3, pmem}, user && uid == 0 && !(addr < 0x7f0000300000)".to_vec());
    seeds.push(include_bytes!("untrusted.rs").to_vec());
    all_come_back("decoders", &seeds, untrusted::decoders)
}

#[test]
fn a_foreign_binary_is_an_error_or_has_headers() -> Result<()> {
    alone("untrusted::a_foreign_binary_is_an_error_or_has_headers", binaries)
}

fn binaries() -> Result<()> {
    let mut seeds = files("corpus/binary");
    seeds.push(fs::read("/bin/true")?);
    seeds.push(b"7f0000001000 20 LazyCompile:~f x.js:1\n7f0000001020 8 g\n".to_vec());
    let names = ["_ZN5space3fooEibc", "_RNvCskwGfYPst2Cb_3foo16example_function", "_Z1fIS0_S_ET_"];
    seeds.extend(names.map(|name| name.as_bytes().to_vec()));
    all_come_back("binaries", &seeds, untrusted::binary)
}

#[test]
fn foreign_names_of_processes_and_containers_are_names_or_nothing() -> Result<()> {
    alone("untrusted::foreign_names_of_processes_and_containers_are_names_or_nothing", texts)
}

fn texts() -> Result<()> {
    let mut seeds = files("corpus/texts");
    let storage = r#"[{"id":"0123456789abcdef","names":["k8s_web_pod_default_uid_0"]}]"#;
    let docker = r#"{"Name":"/web","Config":{"Labels":{"io.kubernetes.pod.name":"pod","com.docker.x":"y"}}}"#;
    let containerd = r#"{"annotations":{"io.kubernetes.cri.sandbox-name":"pod","nerdctl/name":"web"}}"#;
    let paths =
        "/kubepods.slice/kubepods-pod1e2f3a4b_0000_1111_2222_333344445555.slice/cri-containerd-0.scope";
    let kallsyms = "ffffffff81000000 T _stext\nffffffff81000100 t f\nffffffffc0000000 d x\t[module]\n";
    seeds.extend([storage, docker, containerd, paths, kallsyms].map(|text| text.as_bytes().to_vec()));
    for own in ["/proc/self/maps", "/proc/self/status"] {
        seeds.push(fs::read(own)?);
    }
    all_come_back("texts", &seeds, untrusted::texts)
}
