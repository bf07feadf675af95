//! Tests of the sideband of the running kernel, from its rings to names. They use a software event,
//! so they need no PMU.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::fd::{AsRawFd, FromRawFd};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use perf_event_open_sys::bindings::{PERF_COUNT_SW_DUMMY, PERF_TYPE_SOFTWARE, perf_event_attr};

use super::live_tests::{check_frames, compile, spawn, variable};
use super::*;
use precise_model::Reason;
use precise_records::record::{IdentifiedRecord, MappedFileId, Record, RecordLayout, records, sample_bits};

const ALWAYS: std::ops::Range<u64> = 0..u64::MAX;
const PAGES: usize = 256;
const PAGE: usize = 4096;
const LAYOUT: RecordLayout =
    RecordLayout { sample_type: sample_bits::TID | sample_bits::TIME, sample_id_all: true };

/// The rings of a dummy event on all CPUs.
struct Rings(Vec<(File, *mut u8)>);

impl Rings {
    /// Opens the rings; `None` if this user may not open them.
    fn open(mmap_data: bool, build_id: bool) -> Option<Self> {
        let cpus = std::thread::available_parallelism().expect("known").get();
        (0..cpus).map(|cpu| Self::open_one(cpu as i32, mmap_data, build_id)).collect::<Option<_>>().map(Self)
    }

    fn open_one(cpu: i32, mmap_data: bool, build_id: bool) -> Option<(File, *mut u8)> {
        let mut attr = perf_event_attr {
            type_: PERF_TYPE_SOFTWARE,
            size: size_of::<perf_event_attr>() as u32,
            config: PERF_COUNT_SW_DUMMY.into(),
            sample_type: LAYOUT.sample_type,
            ..Default::default()
        };
        attr.set_sample_id_all(1);
        attr.set_mmap(1);
        attr.set_mmap2(1);
        attr.set_mmap_data(mmap_data.into());
        attr.set_build_id(build_id.into());
        attr.set_comm(1);
        attr.set_comm_exec(1);
        attr.set_task(1);
        // SAFETY: the attribute is filled and contains its own size.
        let fd = unsafe { perf_event_open_sys::perf_event_open(&raw mut attr, -1, cpu, -1, 8) };
        if fd < 0 {
            return None;
        }
        // SAFETY: the descriptor is new, and nothing else owns it.
        let file = unsafe { File::from_raw_fd(fd) };
        let (length, prot) = ((PAGES + 1) * PAGE, libc::PROT_READ | libc::PROT_WRITE);
        // SAFETY: creates a new mapping of an open descriptor at an address that the kernel
        // chooses.
        let ring =
            unsafe { libc::mmap(std::ptr::null_mut(), length, prot, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        (ring != libc::MAP_FAILED).then_some((file, ring.cast()))
    }

    /// Returns all records in the rings, in order of time.
    fn drain(self) -> Vec<IdentifiedRecord> {
        let mut all = Vec::new();
        for (_file, ring) in self.0 {
            const HEAD: usize = 1024;
            // SAFETY: `data_head` is at byte 1024 of the control page, which is mapped and aligned.
            let head = unsafe { &*ring.add(HEAD).cast::<AtomicU64>() }.load(Ordering::Acquire) as usize;
            assert!(head <= PAGES * PAGE, "the ring went round");
            // SAFETY: the kernel has written `head` bytes from the second page on, and writes no
            // more to these.
            let bytes = unsafe { std::slice::from_raw_parts(ring.add(PAGE), head) };
            all.extend(
                records(Bytes::copy_from_slice(bytes), LAYOUT).map(|entry| entry.expect("well-formed")),
            );
            // SAFETY: this process owns the mapping, and no reference into it is left.
            unsafe { libc::munmap(ring.cast(), (PAGES + 1) * PAGE) };
        }
        all.sort_by_key(|entry| entry.id.time);
        all
    }
}

#[test]
fn a_program_is_known_by_its_records_alone() {
    let dir = tempfile::tempdir().expect("a directory");
    let exe = compile(dir.path(), &["-g", "-O2", "-Wl,--build-id=sha1"]);
    // Memory from `brk` is recognised as the heap. The growth of the stack has no record, but is
    // recognised too.
    for (mmap_data, build_id) in [(false, false), (false, true), (true, false), (true, true)] {
        let Some(rings) = Rings::open(mmap_data, build_id) else {
            eprintln!("skipped: no perf events for this user");
            return;
        };
        let mut child =
            Command::new(&exe).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("readable");
        let parse = |word: &str| u64::from_str_radix(word.trim_start_matches("0x"), 16).expect("a pointer");
        let at: Vec<_> = line.split_whitespace().map(parse).collect();
        let pid = child.id();
        child.kill().expect("killed");
        child.wait().expect("waited");

        let entries = rings.drain();
        let mut processes = Processes::new(process::HistoryLimits::default());
        entries.iter().for_each(|entry| processes.apply(entry));
        assert_eq!(processes.process_name(pid, &ALWAYS).map(|n| n.value.to_string()), Ok("program".into()));
        let begun = entries.iter().find_map(|entry| match entry.record {
            Record::Comm { pid: who, exec: true, .. } if who == pid => Some(entry.id.time),
            _ => None,
        });
        let ended = entries.iter().find_map(|entry| match entry.record {
            Record::Exit(task) if task.pid == pid => Some(task.time),
            _ => None,
        });
        let (begun, ended) = (begun.expect("an exec"), ended.expect("an exit"));
        assert!(begun < ended);
        assert!(processes.process_name(pid, &(begun + 1..ended)).is_ok_and(|name| !name.ambiguous));
        assert_eq!(processes.process_name(pid, &(ended + 1..u64::MAX)), Err(Reason::ProcessGone));

        let (mut symbols, mut names) = spawn();
        symbols.open_early(processes.take_new_files(), Wait::No);
        let query = CodeQuery::user(&processes, pid, at[0], &ALWAYS);
        let image = query.mapping.as_ref().expect("mapped").mapping.image.as_ref().expect("a file");
        assert_eq!(matches!(image.id, MappedFileId::BuildId(_)), build_id, "{:?}", image.id);
        let location = symbols.resolve_code(&mut names, vec![query]).pop().expect("an answer");
        check_frames(&location, &names, exe.to_str().expect("text"));

        let data =
            at[1..].iter().map(|&address| DataQuery::new(&processes, pid, address, 1, &ALWAYS)).collect();
        let found = symbols.resolve_data(&mut names, data);
        let found: Vec<_> = found.iter().map(|location| variable(&names, location)).collect();
        let (regions, found): (Vec<_>, Vec<_>) =
            found.into_iter().map(|(region, name, _)| (region, name)).unzip();
        if mmap_data {
            assert_eq!(found[..4], ["table", "zeros", "exported", "text"]);
            assert_eq!(regions[4..], ["[stack]", "[heap]"]);
        } else {
            assert!(found.iter().all(|name| name == "<unmapped>" || name == "<no-symbol>"), "{found:?}");
        }
    }
}
