//! Call chains: of the LBR, in copies of stacks, and deferred.

use precise_common::ledger::Counter;
use precise_model::{Capture, Chain, ChainEnd, Dimension, Name};
use precise_records::record::sample_bits as bit;

use super::{Attr, KERNEL, LBR, Made, PLAIN, USER, task};

#[test]
fn callers_of_user_space_come_from_the_lbr() {
    let context_user = -512_i64 as u64;
    let sample_type = PLAIN.sample_type | bit::CALLCHAIN | bit::BRANCH_STACK;
    let mut made = Made::new(&[Attr { sample_type, branches: LBR, ..PLAIN }]);
    // The kernel followed a frame pointer that holds something else.
    let chain = [3, context_user, 0x108, 0xdead];
    let branches = [2, 0x200, 0x100, 0, 0x305, 0x1f0, 0];
    made.sample(USER, &[&[0x108, task(7, 7), 10], &chain[..], &branches].concat());
    let capture = made.import();
    let Chain::Known(stack) = capture.rows[0].stack else { panic!("no chain") };
    let callers = capture.stacks[stack as usize].callers.iter();
    let callers: Vec<_> = callers.map(|id| capture.code[*id as usize].runtime_address).collect();
    assert_eq!(callers, [0x200, 0x305]);
    let findings = capture.meta.events[0].verdict.findings.join("\n");
    assert!(findings.contains("--call-graph lbr"), "{findings}");
}

/// The callers of each row, by the addresses of their calls, and why there are no more.
fn callers(capture: &Capture) -> Vec<(Vec<u64>, Option<ChainEnd>)> {
    let of = |row: &precise_model::Row| {
        let Chain::Known(stack) = row.stack else { panic!("no chain in {row:?}") };
        let stack = &capture.stacks[stack as usize];
        let address = |id: &u32| capture.code[*id as usize].runtime_address;
        (stack.callers.iter().map(address).collect(), stack.end)
    };
    let mut all: Vec<_> = capture.rows.iter().map(of).collect();
    all.sort_unstable();
    all
}

/// A sample at `ip` with the registers bp, sp and ip, and a copy of a stack at 0x1000 of which so
/// many of 64 bytes could be read.
fn copied(abi: u64, ip: u64, bp: u64, stack: [u64; 8], read: u64) -> Vec<u64> {
    let before = [ip, task(7, 7), 10, 2, KERNEL_CONTEXT, (1 << 63) + ip];
    let registers: &[u64] = if abi == 0 { &[] } else { &[bp, 0x1000, ip] };
    [&before[..], &[abi], registers, &[64], &stack, &[read]].concat()
}

const KERNEL_CONTEXT: u64 = -128_i64 as u64;

#[test]
fn copies_of_stacks_are_unwound() {
    let fields = bit::CALLCHAIN | bit::REGS_USER | bit::STACK_USER;
    let registers = 1 << 6 | 1 << 7 | 1 << 8;
    let mut made = Made::new(&[Attr { sample_type: PLAIN.sample_type | fields, registers, ..PLAIN }]);
    // Code without a file, which is unwound by frame pointers.
    made.mmap(7, 0x40_0000, "//anon");
    made.mmap(7, 0x80_0000, "/no/such/file");
    let frames = [0x1010, 0x40_0500, 0x1020, 0x40_0600, 0, 0x40_0700, 0, 0];
    made.sample(USER, &copied(2, 0x40_0001, 0x1000, frames, 64));
    // The second frame is beyond what was copied, and beyond what could be read.
    let deep = [0x1040, 0x40_0500, 0, 0, 0, 0, 0, 0];
    made.sample(USER, &copied(2, 0x40_0002, 0x1000, deep, 64));
    made.sample(USER, &copied(2, 0x40_0003, 0x1000, frames, 24));
    made.sample(USER, &copied(2, 0x80_0004, 0x1000, frames, 64));
    made.sample(USER, &copied(1, 0x40_0005, 0x1000, frames, 64));
    made.sample(USER, &copied(0, 0x40_0006, 0x1000, frames, 0));
    // No process has anything there.
    made.sample(USER, &copied(2, 0x70_0007, 0x1000, frames, 64));
    let capture = made.import();
    let expected = [
        (vec![], Some(ChainEnd::KernelOnly)),
        (vec![], Some(ChainEnd::NoRegion)),
        (vec![], Some(ChainEnd::NoTable)),
        (vec![], Some(ChainEnd::Unsupported)),
        (vec![0x40_04ff], Some(ChainEnd::Fault)),
        (vec![0x40_04ff], Some(ChainEnd::CopyEnded)),
        (vec![0x40_04ff, 0x40_05ff, 0x40_06ff], Some(ChainEnd::Root)),
    ];
    let mut expected = expected.to_vec();
    expected.sort_unstable();
    assert_eq!(callers(&capture), expected);
    let findings = capture.meta.events[0].verdict.findings.join("\n");
    assert!(findings.contains("unwound by this import"), "{findings}");
}

#[test]
fn a_copy_is_unwound_by_what_was_mapped_at_its_time() {
    let fields = bit::CALLCHAIN | bit::REGS_USER | bit::STACK_USER;
    let registers = 1 << 6 | 1 << 7 | 1 << 8;
    let mut made = Made::new(&[Attr { sample_type: PLAIN.sample_type | fields, registers, ..PLAIN }]);
    let frames = [0, 0x40_0500, 0, 0, 0, 0, 0, 0];
    let mut late = copied(2, 0x40_0001, 0x1000, frames, 64);
    late[2] = 30;
    // Before the mapping in the file, and after it in time.
    made.sample(USER, &late);
    made.sample(USER, &copied(2, 0x40_0001, 0x1000, frames, 64));
    made.timed_mmap(7, 0x40_0000, "//anon", 20);
    let found = callers(&made.import());
    let root = (vec![0x40_04ff], Some(ChainEnd::Root));
    assert!(found.contains(&root) && found.contains(&(vec![], Some(ChainEnd::NoRegion))), "{found:?}");
}

const SECOND: u64 = 1_000_000_000;
const DEFERRED: u64 = -640_i64 as u64;

/// A recording whose samples have call chains.
fn with_chains() -> Made {
    Made::new(&[Attr { sample_type: PLAIN.sample_type | bit::CALLCHAIN, ..PLAIN }])
}

/// A sample of the only thread of a process in the kernel, which has a cookie for its callers.
fn deferring(pid: u64, time: u64, cookie: u64) -> Vec<u64> {
    vec![1 << 63, task(pid, pid), time, 2, DEFERRED, cookie]
}

#[test]
fn deferred_chains_find_their_samples() {
    let context_user = -512_i64 as u64;
    let mut made = with_chains();
    let kernel = 1 << 63;
    let sample = |ip: u64, tid: u64, time: u64, cookie: u64| {
        let chain = [4, KERNEL_CONTEXT, kernel + ip, DEFERRED, cookie];
        [&[kernel + ip, task(7, tid), time], &chain[..]].concat()
    };
    // Two of one stay in the kernel, one of another thread with the same cookie, one of the first
    // stay after its record, one of the next stay, and one whose record is lost.
    made.sample(KERNEL, &sample(1, 7, 10, 100));
    made.sample(KERNEL, &sample(2, 7, 11, 100));
    made.sample(KERNEL, &sample(3, 8, 12, 100));
    made.deferred(7, 13, 100, &[context_user, 0x500, 0x600]);
    made.sample(KERNEL, &sample(6, 7, 14, 100));
    made.sample(KERNEL, &sample(4, 7, 14, 101));
    made.deferred(8, 15, 100, &[0x700, 0x800]);
    made.deferred(7, 16, 101, &[context_user, 0x900]);
    made.deferred(7, 17, 999, &[context_user, 0xbad]);
    made.sample(KERNEL, &sample(5, 7, 18, 102));
    let capture = made.import();
    assert_eq!(
        callers(&capture),
        [
            (vec![], Some(ChainEnd::Deferred)),
            (vec![0x500, 0x5ff], None),
            (vec![0x500, 0x5ff], None),
            (vec![0x500, 0x5ff], None),
            (vec![0x700, 0x7ff], None),
            (vec![0x900], None),
        ]
    );
    let ledger = &capture.meta.events[0].ledger;
    assert_eq!((ledger.counter(Counter::Aggregated), ledger.unaccounted()), (6, 0));
}

/// The first page of a new program is written in execve, before its loader is mapped, and its
/// callers are taken when execve returns into the loader.
#[test]
fn deferred_callers_are_named_by_what_is_mapped_when_they_are_taken() {
    let mut made = with_chains();
    let sample = |time: u64| {
        let chain = [4, KERNEL_CONTEXT, 1 << 63, DEFERRED, 0x3_0000_0002];
        [&[1 << 63, task(7, 7), time], &chain[..]].concat()
    };
    made.sample(KERNEL, &sample(SECOND));
    made.timed_mmap(7, 0x40_0000, "/lib/loader", 5 * SECOND);
    // In a later epoch, with the same cookie.
    made.sample(KERNEL, &sample(8 * SECOND));
    made.deferred(7, 9 * SECOND, 0x3_0000_0002, &[0x40_0500]);
    let capture = made.import();
    assert_eq!(capture.rows.len(), 2, "{:?}", capture.rows);
    for row in &capture.rows {
        let Chain::Known(id) = row.stack else { panic!("no chain in {row:?}") };
        let callers = &capture.stacks[id as usize].callers;
        let module = capture.code[callers[0] as usize].module;
        assert!(matches!(module, Name::Known(id) if capture.names.get(id) == "/lib/loader"), "{module:?}");
    }
}

/// The kernel writes the callers of the last system call after the record of the exit.
#[test]
fn callers_that_come_after_the_exit_are_named_by_what_was_mapped() {
    let mut made = with_chains();
    made.timed_mmap(7, 0x40_0000, "/lib/first", SECOND);
    made.task_named(7, "first", SECOND);
    made.sample(KERNEL, &deferring(7, 2 * SECOND, 1));
    made.exited(7, 2 * SECOND + 1);
    made.deferred(7, 2 * SECOND + 2, 1, &[0x40_0500]);
    // The id is used again, and the callers of the second process never come.
    made.forked(7, 3 * SECOND);
    made.timed_mmap(7, 0x40_0000, "/lib/second", 3 * SECOND);
    made.task_named(7, "second", 3 * SECOND);
    made.sample(KERNEL, &deferring(7, 3 * SECOND + 1, 2));
    made.exited(7, 3 * SECOND + 2);
    made.forked(7, 3 * SECOND + 3);
    made.task_named(7, "third", 3 * SECOND + 4);
    made.sample(KERNEL, &deferring(7, 3 * SECOND + 5, 2));
    made.deferred(7, 3 * SECOND + 6, 2, &[0x40_0600]);
    let capture = made.import();
    let text = |name| match name {
        Name::Known(id) => capture.names.get(id),
        Name::Unknown(_) => "",
    };
    let mut found = Vec::new();
    for row in &capture.rows {
        let Chain::Known(id) = row.stack else { panic!("no chain in {row:?}") };
        let stack = &capture.stacks[id as usize];
        let modules = stack.callers.iter().map(|id| text(capture.code[*id as usize].module));
        found.push((text(row.process), modules.collect::<Vec<_>>(), stack.end));
    }
    found.sort_unstable();
    let of_first = ("first", vec!["/lib/first"], None);
    let of_second = ("second", vec![], Some(ChainEnd::Deferred));
    assert_eq!(found, [of_first, of_second, ("third", vec![""], None)]);
}

#[test]
fn a_thread_that_exits_waits_no_longer_for_its_callers() {
    let mut made = with_chains();
    made.task_named(7, "short", SECOND);
    made.sample(KERNEL, &deferring(7, 2 * SECOND, 1));
    made.exited(7, 3 * SECOND);
    for at in 1..10 {
        made.sample(KERNEL, &deferring(8, at * 5 * SECOND, at));
        made.deferred(8, at * 5 * SECOND + 1, at, &[0x500]);
    }
    let capture = made.import();
    let short = capture.rows.iter().find(|row| row.pid == 7).expect("a row");
    assert_eq!(short.epoch, 0);
    assert!(matches!(short.process, Name::Known(id) if capture.names.get(id) == "short"), "{short:?}");
    assert!(callers(&capture).contains(&(vec![], Some(ChainEnd::Deferred))));
}

#[test]
fn samples_that_wait_for_deferred_chains_are_bounded() {
    const SAMPLES: u64 = 100_000;
    let mut made = with_chains();
    for at in 0..SAMPLES {
        made.sample(KERNEL, &deferring(7, 10 + at, at));
    }
    let capture = made.import_by(Some(vec![Dimension::Ip, Dimension::Process, Dimension::Stack]));
    let samples: u64 = capture.rows.iter().map(|row| row.measures.count).sum();
    assert_eq!(samples, SAMPLES);
    assert!(callers(&capture).iter().all(|(_, end)| *end == Some(ChainEnd::Deferred)));
}
