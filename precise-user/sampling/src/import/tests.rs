//! Tests with damaged files: any import must end, either with an error or with a capture that
//! reports what is missing.

use std::{io::Cursor, path::Path, time::Duration};

use precise_common::ledger::Counter;

use super::{ImportOptions, Imported, run::import_from, run::import_within};
use crate::error::SamplingError;
use crate::symbols::allocated::most_allocated;
use crate::symbols::process::HistoryLimits;
use precise_records::perf_data::RecordingReader;

const SMALL: [&str; 3] = ["intel-cfl-mem-rcppthread", "pipe-zstd-na", "recon-amd-genoa-ibs-raw"];

fn recording(name: &str) -> Vec<u8> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/recordings");
    std::fs::read(root.join(name).join("perf.data")).expect("a recording")
}

/// Imports bytes, and discards the capture.
fn import(bytes: Vec<u8>) -> Result<Imported, SamplingError> {
    let options = ImportOptions {
        input: "test".into(),
        output: "/dev/null".into(),
        epoch: Some(Duration::from_millis(5)),
        ..ImportOptions::default()
    };
    let reader =
        RecordingReader::file(Cursor::new(bytes)).map_err(|error| super::bad_file(&options, error))?;
    import_from(reader, &options)
}

fn notes(imported: &Imported) -> String {
    imported.meta.notes.join("\n")
}

/// A xorshift generator: each run of the test makes the same damage.
fn random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn no_damage_makes_it_panic_or_invent_samples() {
    let mut state = 0x9e37_79b9_7f4a_7c15;
    for name in SMALL {
        let whole = recording(name);
        for _ in 0..60 {
            let mut bytes = whole.clone();
            for _ in 0..=random(&mut state) % 6 {
                let at = random(&mut state) as usize % bytes.len();
                match random(&mut state) % 4 {
                    0 => bytes[at] = random(&mut state) as u8,
                    1 => bytes[at] ^= 1 << (random(&mut state) % 8),
                    // Sizes, counts and offsets are at these positions.
                    2 => {
                        let at = at / 8 * 8;
                        let end = (at + 8).min(bytes.len());
                        let fill = [0, 0xff, 0x7f][random(&mut state) as usize % 3];
                        bytes[at..end].fill(fill);
                    }
                    _ => bytes.truncate(at.max(1)),
                }
            }
            // A sample has at least a header, which limits their number.
            let most = (bytes.len() / 8) as u64 * 100;
            if let Ok(imported) = import(bytes) {
                assert!(imported.kept.iter().sum::<u64>() <= most);
            }
        }
    }
}

#[test]
fn a_file_that_is_cut_keeps_what_is_before_the_cut() {
    let whole = recording("intel-cfl-mem-rcppthread");
    let mut last = 0;
    // The records lie between about 0x2a8 and 0x15a00; the header of a truncated file points past
    // its end.
    for end in (2_000..whole.len()).step_by(9_973) {
        let Ok(imported) = import(whole[..end].to_vec()) else { continue };
        let kept: u64 = imported.kept.iter().sum();
        assert!(kept >= last, "{kept} samples of {end} bytes, {last} of fewer");
        last = kept;
        if kept < 698 {
            assert!(notes(&imported).contains("could not be read to its end"), "{}", notes(&imported));
        }
    }
    assert_eq!(last, 698);
}

#[test]
fn a_record_of_an_impossible_size_ends_the_import_and_is_said() {
    let mut bytes = recording("recon-amd-genoa-ibs-raw");
    // The size field of the only record, which is at 0x100.
    bytes[0x106..0x108].copy_from_slice(&4u16.to_le_bytes());
    let imported = import(bytes).expect("a capture");
    assert_eq!(imported.kept, [0]);
    assert!(notes(&imported).contains("impossible size; the 120 bytes"), "{}", notes(&imported));
}

#[test]
fn a_sample_that_is_not_what_its_event_says_is_counted() {
    let mut bytes = recording("recon-amd-genoa-ibs-raw");
    // The size of the raw data.
    bytes[0x130..0x134].copy_from_slice(&400u32.to_le_bytes());
    let imported = import(bytes).expect("a capture");
    let ledger = &imported.meta.events[0].ledger;
    assert_eq!(
        (ledger.counter(Counter::Seen), ledger.counter(Counter::ReadFailed), ledger.unaccounted()),
        (1, 1, 0)
    );
    assert_eq!(imported.kept, [0]);
}

#[test]
fn a_recording_that_perf_did_not_finish_is_read_to_its_end() {
    let mut bytes = recording("recon-amd-genoa-ibs-raw");
    // The total size of the records is 0, and the file ends after them.
    bytes[48..56].fill(0);
    bytes.truncate(0x100 + 120);
    let imported = import(bytes).expect("a capture");
    assert_eq!(imported.kept, [1]);
    assert!(notes(&imported).contains("perf did not exit normally"), "{}", notes(&imported));
}

#[test]
fn what_is_no_recording_is_refused_in_words() {
    for (bytes, why) in [
        (b"PAR1 and more of it".to_vec(), "not a perf.data file"),
        (b"2ELIFREP\0\0\0\0\0\0\0\0\0".to_vec(), "big-endian machine"),
        (b"PERFFILE\0\0\0\0\0\0\0\0\0".to_vec(), "before Linux 3.4"),
        (b"PERFILE2\x68\0\0\0\0\0\0\0".to_vec(), "its header is damaged"),
        (b"PERFILE2\x10\0\0\0\0\0\0\0".to_vec(), "the file has no events"),
        (b"".to_vec(), "not a perf.data file"),
    ] {
        let failure = import(bytes).expect_err("refused");
        assert_eq!(failure.class(), crate::error::ErrorClass::BadFile);
        assert!(failure.with_causes().contains(why), "{}", failure.with_causes());
    }
}

/// The limit of processes in the tests below.
const LIMIT: usize = 16 << 20;

/// Returns a file with one event, these records, and a sample after them. With `times`, each record
/// has one, so that the import sorts them.
fn file_of(times: bool, records: impl Iterator<Item = (u32, Vec<u8>)>) -> Vec<u8> {
    const HEAD: u64 = 104;
    const ATTR: u64 = 128;
    let word = |word: u64| word.to_le_bytes().to_vec();
    let mut data = Vec::new();
    let mut add = |time: u64, kind: u32, body: &[u8]| {
        let body_and_id = body.len() + if times && kind != 9 { 16 } else { 0 };
        data.extend(kind.to_le_bytes());
        data.extend(0_u16.to_le_bytes());
        data.extend((8 + body_and_id as u16).to_le_bytes());
        data.extend(body);
        if times && kind != 9 {
            // The trailing task and time.
            data.extend([[0; 8], time.to_le_bytes()].concat());
        }
    };
    let mut time = 1;
    for (kind, body) in records {
        add(time, kind, &body);
        time += 1;
    }
    // Instruction, task, time.
    add(time, 9, &[word(0x1000), word(7 << 32 | 7), word(time)].concat());
    let mut attr = [[1_u32, ATTR as u32].map(u32::to_le_bytes).concat(), word(2), word(1), word(7)].concat();
    attr.extend([word(0), word(u64::from(times) << 18)].concat());
    attr.resize(ATTR as usize, 0);
    attr.extend([word(0), word(0)].concat());
    let mut file = b"PERFILE2".to_vec();
    for number in [HEAD, ATTR + 16, HEAD, ATTR + 16, HEAD + ATTR + 16, data.len() as u64, 0, 0] {
        file.extend(word(number));
    }
    file.extend([0; 32]);
    file.extend(attr);
    file.extend(data);
    file
}

fn padded(text: &str) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    bytes.resize(text.len() / 8 * 8 + 8, 0);
    bytes
}

fn comm(pid: u32) -> (u32, Vec<u8>) {
    (3, [&pid.to_le_bytes()[..], &pid.to_le_bytes(), &padded(&format!("name {pid}"))].concat())
}

fn mmap(pid: u32, start: u64, path: &str) -> (u32, Vec<u8>) {
    let task = [pid, pid].map(u32::to_le_bytes).concat();
    let place = [start, 0x1000, 0].map(u64::to_le_bytes).concat();
    (1, [task, place, padded(path)].concat())
}

/// Imports a file, and returns its notes with the most memory that this took beside the file.
fn within(file: Vec<u8>) -> (String, usize) {
    let options =
        ImportOptions { input: "test".into(), output: "/dev/null".into(), ..ImportOptions::default() };
    let reader = RecordingReader::file(Cursor::new(file)).expect("a recording");
    let import = || import_within(reader, &options, HistoryLimits { bytes: LIMIT }, &mut |_| ());
    let (imported, most) = most_allocated(import);
    let imported = imported.expect("a capture");
    assert_eq!(imported.kept, [1]);
    (notes(&imported), most)
}

#[test]
fn processes_and_images_stay_within_their_limit() {
    let long = "x".repeat(200);
    type Records = Box<dyn Iterator<Item = (u32, Vec<u8>)>>;
    let storms: [(Records, &str); 5] = [
        (Box::new((1..200_000).map(comm)), " processes that had not ended"),
        (Box::new((0..150_000).map(|n| mmap(n, 0x1000, "/bin/x"))), " processes that had not ended"),
        (Box::new((0..400_000).map(|n| mmap(7, n << 13, "/bin/x"))), "the mappings of 1 process. "),
        (
            Box::new((0..60_000).map(move |n| mmap(n as u32 % 50, n << 13, &format!("/{long}/{n}")))),
            "the mappings of ",
        ),
        (
            Box::new((0..100_000).map(|n| mmap(u32::MAX, n << 13, &format!("[module{n}]")))),
            " mappings of the kernel were left out to limit memory",
        ),
    ];
    for (records, expected) in storms {
        let (notes, most) = within(file_of(false, records));
        assert!(notes.contains(expected), "{expected:?} is not in {notes}");
        // The reader and the writer have buffers of their own.
        assert!(most < LIMIT + LIMIT / 16 + (8 << 20), "{most} bytes; {notes}");
    }
}

/// With times, the records wait in a queue before they are processed. A file that is twice as long
/// does not need more memory.
#[test]
fn the_memory_of_an_import_does_not_grow_with_the_file() {
    let most = |records| within(file_of(true, (1..records).map(comm))).1;
    let (short, long) = (most(350_000), most(700_000));
    assert!(long < short + short / 20, "{short} bytes, and {long} for twice the records");
    assert!(long < LIMIT + 3 * super::queue::MAX_BYTES, "{long} bytes");
}

#[test]
fn a_long_import_tells_how_far_it_is() {
    let file = file_of(true, (0..100_000).map(comm));
    let megabytes = file.len() >> 20;
    let options =
        ImportOptions { input: "test".into(), output: "/dev/null".into(), ..ImportOptions::default() };
    let reader = RecordingReader::file(Cursor::new(file)).expect("a recording");
    let size = reader.size();
    let mut told = Vec::new();
    import_within(reader, &options, HistoryLimits { bytes: LIMIT }, &mut |now| told.push(now))
        .expect("a capture");
    assert!(megabytes > 2 && told.len().abs_diff(megabytes) <= 1, "{megabytes}: {told:?}");
    assert!(told.is_sorted_by(|a, b| a.bytes < b.bytes) && told.iter().all(|now| now.size == size));
}
