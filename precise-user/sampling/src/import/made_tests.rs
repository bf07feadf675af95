//! Imports synthetic recordings, one for each thing that real machines write and the recordings of
//! this repository lack.

use std::{io::Cursor, path::Path};

use precise_capture::CaptureFile as _;
use precise_common::ibs::OutcomeBits as Bits;
use precise_common::ledger::Counter;
use precise_model::{Capture, Chain, Dimension, Name, Node, Outcome, Reason};
use precise_records::perf_data::RecordingReader;
use precise_records::record::sample_bits as bit;

use super::{ImportOptions, import, run::import_from};

mod chains;
mod epochs;

/// `PERF_SAMPLE_BRANCH_USER` and `_CALL_STACK`.
const LBR: u64 = 1 | 1 << 11;
/// `PERF_FORMAT_ID` and `_GROUP`.
const GROUP: u64 = 4 | 8;
const KERNEL: u16 = 1;
const USER: u16 = 2;

/// The attributes of an event that the tests vary; the event is raw.
#[derive(Clone, Copy, Default)]
struct Attr {
    sample_type: u64,
    read_format: u64,
    branches: u64,
    registers: u64,
    period: u64,
}

/// A `perf.data` file in the making.
#[derive(Default)]
struct Made {
    events: Vec<(Attr, u64)>,
    data: Vec<u8>,
    features: Vec<(u32, Vec<u8>)>,
    /// Whether records end with their task and time.
    identified: bool,
}

fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A text as perf's header has it: the length, then the text padded with NULs.
fn text(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(text.len() / 64 * 64 + 64, 0);
    [&(bytes.len() as u32).to_le_bytes()[..], &bytes].concat()
}

impl Made {
    /// Creates a file with these events; the ids are 1, 2, ….
    fn new(events: &[Attr]) -> Self {
        Self { events: events.iter().copied().zip(1..).collect(), ..Self::default() }
    }

    fn record(&mut self, kind: u32, misc: u16, body: &[u8]) {
        self.data.extend(kind.to_le_bytes());
        self.data.extend(misc.to_le_bytes());
        self.data.extend((8 + body.len() as u16).to_le_bytes());
        self.data.extend(body);
    }

    fn sample(&mut self, misc: u16, fields: &[u64]) {
        self.record(9, misc, &words(fields));
    }

    fn mmap(&mut self, pid: u32, start: u64, path: &str) {
        let mut path = path.as_bytes().to_vec();
        path.resize(path.len() / 8 * 8 + 8, 0);
        let task = [pid, pid].map(u32::to_le_bytes).concat();
        self.record(1, USER, &[task, words(&[start, 0x10_0000, 0]), path].concat());
    }

    /// A mapping at a time. Records then end with their task and time, if the event has
    /// `sample_id_all`.
    fn timed_mmap(&mut self, pid: u32, start: u64, path: &str, time: u64) {
        self.identified = true;
        let mut path = path.as_bytes().to_vec();
        path.resize(path.len() / 8 * 8 + 8, 0);
        let task = [pid, pid].map(u32::to_le_bytes).concat();
        let id = [&task[..], &words(&[time])].concat();
        self.record(1, USER, &[task, words(&[start, 0x10_0000, 0]), path, id].concat());
    }

    /// A process gets a name.
    fn task_named(&mut self, pid: u32, name: &str, time: u64) {
        self.identified = true;
        let task = [pid, pid].map(u32::to_le_bytes).concat();
        let mut comm = name.as_bytes().to_vec();
        comm.resize(comm.len() / 8 * 8 + 8, 0);
        let id = [&task[..], &words(&[time])].concat();
        self.record(3, USER, &[task, comm, id].concat());
    }

    /// The only thread of a process exits.
    fn exited(&mut self, pid: u32, time: u64) {
        self.task(4, pid, time);
    }

    /// A process begins.
    fn forked(&mut self, pid: u32, time: u64) {
        self.task(7, pid, time);
    }

    fn task(&mut self, kind: u32, pid: u32, time: u64) {
        self.identified = true;
        let tasks = [pid, 1, pid, 1].map(u32::to_le_bytes).concat();
        let id = [&[pid, pid].map(u32::to_le_bytes).concat()[..], &words(&[time])].concat();
        self.record(kind, USER, &[tasks, words(&[time]), id].concat());
    }

    fn deferred(&mut self, tid: u32, time: u64, cookie: u64, entries: &[u64]) {
        self.identified = true;
        let id = [&[7, tid].map(u32::to_le_bytes).concat()[..], &words(&[time])].concat();
        let body = [words(&[cookie, entries.len() as u64]), words(entries), id].concat();
        self.record(22, USER, &body);
    }

    fn bytes(mut self) -> Vec<u8> {
        const HEAD: u64 = 104;
        const ATTR: u64 = 128;
        let attrs = (ATTR + 16) * self.events.len() as u64;
        let ids = HEAD + attrs;
        let begin = ids + 8 * self.events.len() as u64;
        let mut bits = [0; 4];
        self.features.sort_by_key(|(number, _)| *number);
        for (number, _) in &self.features {
            bits[*number as usize / 64] |= 1 << (number % 64);
        }
        let mut file = b"PERFILE2".to_vec();
        file.extend(words(&[HEAD, ATTR + 16, HEAD, attrs, begin, self.data.len() as u64, 0, 0]));
        file.extend(words(&bits));
        /// `sample_id_all`.
        const IDENTIFIED: u64 = 1 << 18;
        let flags = if self.identified { IDENTIFIED } else { 0 };
        for (index, (attr, _)) in self.events.iter().enumerate() {
            let kind = [4, ATTR as u32].map(u32::to_le_bytes).concat();
            let mut one = kind;
            one.extend(words(&[index as u64, attr.period, attr.sample_type, attr.read_format, flags]));
            one.resize(72, 0);
            one.extend(words(&[attr.branches, attr.registers]));
            one.resize(ATTR as usize, 0);
            file.extend(one);
            file.extend(words(&[ids + 8 * index as u64, 8]));
        }
        self.events.iter().for_each(|(_, id)| file.extend(words(&[*id])));
        file.extend(&self.data);
        let mut place = begin + self.data.len() as u64 + 16 * self.features.len() as u64;
        for (_, section) in &self.features {
            file.extend(words(&[place, section.len() as u64]));
            place += section.len() as u64;
        }
        self.features.into_iter().for_each(|(_, section)| file.extend(section));
        file
    }

    fn import(self) -> Capture {
        self.import_by(None)
    }

    fn import_by(self, dimensions: Option<Vec<Dimension>>) -> Capture {
        self.import_with(ImportOptions { dimensions, ..ImportOptions::default() })
    }

    fn import_with(self, options: ImportOptions) -> Capture {
        let folder = tempfile::tempdir().expect("a folder");
        let output = folder.path().join("x.parquet");
        let options = ImportOptions { input: "made".into(), output: output.clone(), ..options };
        let reader = RecordingReader::file(Cursor::new(self.bytes())).expect("a recording");
        import_from(reader, &options).expect("a capture");
        Capture::read(&output).expect("a capture")
    }
}

const PLAIN: Attr = Attr { sample_type: bit::IP | bit::TID | bit::TIME, ..attr() };

const fn attr() -> Attr {
    Attr { sample_type: 0, read_format: 0, branches: 0, registers: 0, period: 100 }
}

fn task(pid: u64, tid: u64) -> u64 {
    tid << 32 | pid
}

#[test]
fn everything_that_the_samples_have_is_kept() {
    let fields = bit::ADDR | bit::CPU | bit::CALLCHAIN | bit::WEIGHT | bit::DATA_SRC;
    let mut made = Made::new(&[Attr { sample_type: PLAIN.sample_type | fields, ..PLAIN }]);
    for (tid, address, cpu, caller) in [(7, 0x1001, 3, 0x500), (8, 0x1001, 3, 0x500), (8, 0x1002, 4, 0x600)] {
        let context_user = -512_i64 as u64;
        let chain = [3, context_user, 0x400, caller];
        let before = [0x400, task(7, tid), 10, address, cpu];
        made.sample(USER, &[&before[..], &chain, &[20, 0x1_0000_0002]].concat());
    }
    let capture = made.import();
    use Dimension::{Address, Cpu, Ip, Latency, Process, Source, Stack, Thread};
    for dimension in [Ip, Process, Thread, Cpu, Address, Source, Latency, Stack] {
        assert!(capture.meta.dimensions.contains(&dimension), "{dimension:?}");
    }
    assert_eq!(capture.meta.address_granule, 1);
    let mut rows: Vec<_> = capture
        .rows
        .iter()
        .map(|row| {
            let address = row.data.map(|id| capture.data[id as usize].runtime_address);
            let Chain::Known(stack) = row.stack else { panic!("no chain in {row:?}") };
            let callers = &capture.stacks[stack as usize].callers;
            let caller = capture.code[callers[0] as usize].runtime_address;
            (row.tid, row.cpu, address, caller)
        })
        .collect();
    rows.sort_unstable();
    // The address of a caller is inside of its call instruction.
    assert_eq!(
        rows,
        [
            (7, Some(3), Some(0x1001), 0x4ff),
            (8, Some(3), Some(0x1001), 0x4ff),
            (8, Some(4), Some(0x1002), 0x5ff)
        ]
    );
}

#[test]
fn a_cpu_that_the_samples_lack_is_not_cpu_0() {
    let id = bit::IDENTIFIER;
    let with = Attr { sample_type: id | PLAIN.sample_type | bit::CPU, ..PLAIN };
    let without = Attr { sample_type: id | PLAIN.sample_type, ..PLAIN };
    let made = || {
        let mut made = Made::new(&[with, without]);
        made.sample(USER, &[1, 0x400, task(7, 7), 10, 0]);
        made.sample(USER, &[2, 0x400, task(7, 7), 11]);
        made
    };
    let cpus = |capture: Capture| capture.rows.iter().map(|row| (row.event, row.cpu)).collect::<Vec<_>>();
    assert_eq!(cpus(made().import()), [(0, Some(0)), (1, None)]);
    let mut alone = Made::new(&[PLAIN]);
    alone.sample(USER, &[0x400, task(7, 7), 10]);
    assert_eq!(cpus(alone.import_by(Some(vec![Dimension::Ip, Dimension::Cpu]))), [(0, None)]);
}

#[test]
fn the_mode_is_what_the_kernel_recorded_and_not_a_bit_of_the_address() {
    let mut made = Made::new(&[PLAIN]);
    made.sample(KERNEL, &[0xc010_0000, task(7, 7), 10]);
    made.sample(USER, &[0x0804_8000, task(7, 7), 11]);
    made.sample(0, &[1 << 63, task(7, 7), 12]);
    let capture = made.import();
    let mut modes: Vec<_> = capture
        .rows
        .iter()
        .map(|row| (capture.code[row.code.expect("code") as usize].runtime_address, row.kernel))
        .collect();
    modes.sort_unstable();
    assert_eq!(modes, [(0x0804_8000, false), (0xc010_0000, true), (1 << 63, true)]);
}

#[test]
fn a_guests_samples_have_their_process_and_no_address() {
    const GUEST_KERNEL: u16 = 4;
    const GUEST_USER: u16 = 5;
    let sample_type = PLAIN.sample_type | bit::ADDR;
    let mut made = Made::new(&[Attr { sample_type, ..PLAIN }]);
    made.mmap(7, 0x400, "/usr/bin/qemu");
    made.sample(GUEST_KERNEL, &[0xffff_ffff_8100_0000, task(7, 8), 10, 0xffff_8880_0000_1000]);
    made.sample(GUEST_USER, &[0x410, task(7, 8), 11, 0x1000]);
    made.sample(USER, &[0x410, task(7, 8), 12, 0x1000]);
    let capture = made.import();
    let mut rows: Vec<_> = capture
        .rows
        .iter()
        .map(|row| {
            let code = &capture.code[row.code.expect("code") as usize];
            let address = row.data.map(|id| capture.data[id as usize].runtime_address);
            (row.measures.count, row.pid, row.kernel, code.runtime_address, code.function, address)
        })
        .collect();
    rows.sort_unstable();
    let of_host = rows.remove(0);
    assert_eq!((of_host.0, of_host.3, of_host.5), (1, 0x410, Some(0x1000)));
    assert_eq!(rows, [(2, 7, false, 0, Name::Unknown(Reason::Guest), None)]);
    let ledger = &capture.meta.events[0].ledger;
    let counters = [Counter::Aggregated, Counter::InGuest, Counter::NoAddress].map(|of| ledger.counter(of));
    assert_eq!((counters, ledger.unaccounted()), ([3, 2, 0], 0));
}

#[test]
fn members_of_a_group_have_samples_from_the_leaders() {
    let sample_type = bit::IDENTIFIER | PLAIN.sample_type | bit::READ;
    let leader = Attr { sample_type, read_format: GROUP, ..PLAIN };
    let mut made = Made::new(&[leader, Attr { period: 0, ..leader }]);
    // The member counts 30, then nothing, then 12.
    for (time, count, member) in [(10, 100, 30), (11, 200, 30), (12, 300, 42)] {
        made.sample(USER, &[1, 0x400, task(7, 7), time, 2, count, 1, member, 2]);
    }
    let capture = made.import();
    let seen = |event: u16| {
        let rows = capture.rows.iter().filter(|row| row.event == event);
        rows.fold((0, 0), |sum, row| (sum.0 + row.measures.count, sum.1 + row.measures.period_sum))
    };
    assert_eq!((seen(0), seen(1)), ((3, 300), (2, 42)));
    let ledger = &capture.meta.events[1].ledger;
    assert_eq!((ledger.counter(Counter::Seen), ledger.unaccounted()), (2, 0));
}

#[test]
fn the_branch_records_are_samples_of_branches() {
    let sample_type = PLAIN.sample_type | bit::BRANCH_STACK;
    let mut made = Made::new(&[Attr { sample_type, ..PLAIN }]);
    // Flags: mispredicted, predicted, and the cycles from bit 4.
    let taken = [0x410, 0x400, 2 | 7 << 4];
    let missed = [0x420, 0x400, 1 | 25 << 4];
    for time in [10, 11] {
        let before = [0x400, task(7, 7), time, 2];
        made.sample(USER, &[&before[..], &taken, &missed].concat());
    }
    let capture = made.import();
    let names: Vec<_> = capture.meta.events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names[1], format!("branches of {}", names[0]));
    let mut rows: Vec<_> = capture
        .rows
        .iter()
        .filter(|row| row.event == 1)
        .map(|row| {
            let from = capture.code[row.code.expect("code") as usize].runtime_address;
            let to = capture.data[row.data.expect("a target") as usize].runtime_address;
            let Some(Outcome::Op(bits)) = row.outcome else { panic!("no outcome in {row:?}") };
            (from, to, bits & Bits::MISPREDICTED != 0, row.measures.count, row.measures.latency_sum)
        })
        .collect();
    rows.sort_unstable();
    assert_eq!(rows, [(0x410, 0x400, false, 2, 14), (0x420, 0x400, true, 2, 50)]);
    let ledger = &capture.meta.events[1].ledger;
    assert_eq!((ledger.counter(Counter::Seen), ledger.unaccounted()), (4, 0));
}

#[test]
fn nodes_come_from_the_header() {
    let mut made = Made::new(&[PLAIN]);
    made.sample(USER, &[0x400, task(7, 7), 10]);
    let node = |id: u32, cpus: &str| [id.to_le_bytes().to_vec(), words(&[1, 1]), text(cpus)].concat();
    let nodes = [2_u32.to_le_bytes().to_vec(), node(1, "2-3\n"), node(0, "0-1")].concat();
    made.features.push((14, nodes));
    let capture = made.import();
    assert_eq!(
        capture.meta.machine.nodes,
        [Node { id: 0, cpus: vec![0, 1] }, Node { id: 1, cpus: vec![2, 3] }]
    );
}

#[test]
fn a_hardware_trace_is_named_as_not_read() {
    let mut made = Made::new(&[PLAIN]);
    made.sample(USER, &[0x400, task(7, 7), 10]);
    // PERF_RECORD_AUXTRACE, and the bytes that follow it.
    made.record(71, 0, &words(&[5000, 0, 0, 0, 0]));
    made.data.extend([0xee; 5000]);
    let notes = made.import().meta.notes.join("\n");
    assert!(notes.contains("5,000 bytes of hardware traces (Intel PT, Arm SPE"), "{notes}");
}

#[test]
fn without_a_clock_the_recording_ended_when_the_file_was_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("perf.data");
    let mut made = Made::new(&[PLAIN]);
    made.sample(USER, &[0x400, task(7, 7), 1_000_000]);
    // HEADER_SAMPLE_TIME: the recording takes 2 s.
    made.features.push((21, words(&[1_000_000, 2_001_000_000])));
    std::fs::write(&path, made.bytes()).expect("written");
    let written = std::time::UNIX_EPOCH + std::time::Duration::from_secs(1_700_000_002);
    let file = std::fs::File::options().write(true).open(&path).expect("opened");
    file.set_modified(written).expect("a time");
    let options =
        ImportOptions { input: path, output: folder.path().join("x.parquet"), ..ImportOptions::default() };
    let imported = import(&options).expect("a capture");
    assert_eq!(imported.meta.start_unix_ns, 1_700_000_000_000_000_000);
    let notes = imported.meta.notes.join("\n");
    assert!(notes.contains("assumed to end when the file was last written"), "{notes}");
}

#[test]
fn a_recording_has_sixty_epochs_unless_told_otherwise() {
    let import = |last: Option<u64>| {
        let mut made = Made::new(&[PLAIN]);
        for at in 0..120 {
            made.sample(USER, &[0x400, task(7, 7), 1_000_000 + at * 10_000_000]);
        }
        made.features.extend(last.map(|last| (21, words(&[1_000_000, last]))));
        made.import().meta.epochs.len()
    };
    // 1.2 s in sixtieths of 20 ms; a pipe that does not tell its length has epochs of 1 s.
    assert_eq!((import(Some(1_201_000_000)), import(None)), (60, 2));
}

#[test]
fn a_file_that_does_not_tell_its_length_is_read_for_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (input, output) = (folder.path().join("x.data"), folder.path().join("x.parquet"));
    let mut made = Made::new(&[PLAIN]);
    for at in 0..120 {
        made.sample(USER, &[0x400, task(7, 7), 1_000_000 + at * 10_000_000]);
    }
    std::fs::write(&input, made.bytes()).expect("written");
    let options = ImportOptions { input, output: output.clone(), ..ImportOptions::default() };
    import(&options).expect("a capture");
    assert_eq!(Capture::read(&output).expect("a capture").meta.epochs.len(), 60);
}

#[test]
fn a_recording_is_not_replaced_by_its_capture() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("x.data");
    let mut made = Made::new(&[PLAIN]);
    made.sample(USER, &[0x400, task(7, 7), 10]);
    let bytes = made.bytes();
    std::fs::write(&path, &bytes).expect("written");
    let link = folder.path().join("link");
    std::fs::hard_link(&path, &link).expect("linked");
    for output in [&path, &link] {
        let same = ImportOptions { input: path.clone(), output: output.clone(), ..ImportOptions::default() };
        let error = import(&same).expect_err("refused");
        assert!(error.to_string().contains("is the recording itself"), "{error}");
    }
    assert_eq!(std::fs::read(Path::new(&path)).expect("read"), bytes);
}

#[test]
fn code_without_a_symbol_keeps_its_module_and_offset() {
    use precise_model::keys::Key;
    use precise_model::values::RawValue;
    let mut made = Made::new(&[PLAIN]);
    made.mmap(7, 0x40_0000, "/no/such/bench");
    made.sample(USER, &[0x42_d88a, task(7, 7), 10]);
    made.sample(USER, &[0x42_d88e, task(7, 7), 11]);
    // The first byte of the file.
    made.sample(USER, &[0x40_0000, task(7, 7), 12]);
    let capture = made.import();
    let mut functions: Vec<_> = capture
        .rows
        .iter()
        .map(|row| RawValue::of(&capture, row, Key::Function).value(&capture, Key::Function).text())
        .collect();
    functions.sort();
    assert_eq!(functions, ["bench+0x0", "bench+0x2d88a", "bench+0x2d88e"]);
}
