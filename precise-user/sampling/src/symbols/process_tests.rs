use super::super::allocated::most_allocated;
use super::*;
use crate::symbols::made_tests::{at, comm, exit, fork, map, processes};

const ALWAYS: Range<u64> = 0..u64::MAX;

fn path(processes: &Processes, pid: u32, address: u64, window: Range<u64>) -> Result<(String, bool), Reason> {
    let found = processes.find_mapping(pid, address, &window)?;
    Ok((found.value.mapping.image.map(|i| i.path.clone()).unwrap_or_default(), found.ambiguous))
}

fn name(processes: &Processes, pid: u32, window: Range<u64>) -> Result<(String, bool), Reason> {
    let found = processes.process_name(pid, &window)?;
    Ok((found.value.to_string(), found.ambiguous))
}

#[test]
fn a_child_has_its_parents_mappings_until_it_execs() {
    let p = processes(&[
        comm(1, 10, "sh", true),
        map(2, 10, 0x1000, "/bin/sh"),
        fork(5, 11, 10, 11),
        comm(8, 11, "cat", true),
        map(9, 11, 0x2000, "/bin/cat"),
    ]);
    assert_eq!(path(&p, 11, 0x1000, 5..7), Ok(("/bin/sh".into(), false)));
    assert_eq!(name(&p, 11, 5..7), Ok(("sh".into(), false)));
    assert_eq!(path(&p, 11, 0x2000, 5..20), Ok(("/bin/cat".into(), false)));
    assert_eq!(name(&p, 11, 5..20), Ok(("cat".into(), true)));
    // The old image remains a candidate for a sample taken before the exec in the same window.
    assert_eq!(path(&p, 11, 0x1000, 5..20), Ok(("/bin/sh".into(), false)));
    assert_eq!(path(&p, 11, 0x1000, 10..20), Err(Reason::Unmapped));
    assert_eq!(path(&p, 10, 0x1000, 10..20), Ok(("/bin/sh".into(), false)));
}

#[test]
fn a_child_writes_to_its_own_copy() {
    let p = processes(&[map(1, 10, 0x1000, "/a"), fork(2, 11, 10, 11), map(3, 11, 0x5000, "/b")]);
    assert_eq!(path(&p, 11, 0x5000, ALWAYS), Ok(("/b".into(), false)));
    assert_eq!(path(&p, 10, 0x5000, ALWAYS), Err(Reason::Unmapped));
}

#[test]
fn two_generations_with_the_same_address_are_ambiguous() {
    let p = processes(&[
        comm(1, 10, "a", true),
        map(2, 10, 0x1000, "/a"),
        comm(5, 10, "b", true),
        map(6, 10, 0x1000, "/b"),
    ]);
    assert_eq!(path(&p, 10, 0x1000, 2..9), Ok(("/b".into(), true)));
    assert_eq!(path(&p, 10, 0x1000, 7..9), Ok(("/b".into(), false)));
    assert_eq!(path(&p, 10, 0x1000, 2..4), Ok(("/a".into(), false)));
}

#[test]
fn a_library_that_took_the_place_of_another_is_no_other_program() {
    let p = processes(&[map(2, 10, 0x1000, "/a"), map(5, 10, 0x1000, "/b"), map(6, 10, 0x5000, "/c")]);
    let found = |window| p.find_code(10, 0x1000, &window).map(|found| found.ambiguous);
    assert_eq!((found(3..9), found(6..9)), (Ok(false), Ok(false)));
    let replaced = |address, window| p.code_was_replaced(10, address, &window);
    assert!(replaced(0x1000, 3..9) && !replaced(0x1000, 6..9) && !replaced(0x5000, 3..9));
}

#[test]
fn chains_tell_by_which_program_they_were_unwound() {
    let [first, second, third] = [program::FIRST, program::FIRST + 1, program::FIRST + 2];
    let p = processes(&[
        map(2, 10, 0x1000, "/a"),
        map(3, 10, 0x5000, "/lib"),
        comm(5, 10, "b", true),
        map(6, 10, 0x1000, "/b"),
        map(7, 10, 0x5000, "/lib"),
        map(7, 10, 0x8000, "/other"),
    ]);
    let later = |number, address, window| p.code_of_later_program(10, number, address, &window);
    assert!(later(first, 0x1000, 2..9), "it may have been executed already");
    assert!(!later(first, 0x5000, 2..9), "both have the same code there");
    assert!(later(first, 0x8000, 2..9), "the first program has nothing there");
    assert!(!later(first, 0x1000, 2..5), "it came later");
    assert!(!later(second, 0x1000, 2..9) && !later(second, 0x1000, 6..9));
    assert!(later(first, 0x1000, 6..9) && later(third, 0x1000, 6..9), "no such program");
}

#[test]
fn the_same_file_at_the_same_place_is_not_ambiguous() {
    let p = processes(&[map(2, 10, 0x1000, "/a"), comm(5, 10, "a", true), map(6, 10, 0x1000, "/a")]);
    assert_eq!(path(&p, 10, 0x1000, 2..9), Ok(("/a".into(), false)));
}

#[test]
fn threads_share_and_the_last_one_ends_the_process() {
    let p = processes(&[
        comm(1, 10, "t", true),
        map(2, 10, 0x1000, "/t"),
        fork(3, 10, 10, 12),
        exit(5, 10, 10),
        comm(6, 10, "renamed", false),
        exit(9, 10, 12),
    ]);
    assert_eq!(path(&p, 10, 0x1000, 7..8), Ok(("/t".into(), false)));
    assert_eq!(name(&p, 10, 7..8), Ok(("renamed".into(), false)));
    assert_eq!(name(&p, 10, 5..8), Ok(("renamed".into(), true)));
    assert_eq!(path(&p, 10, 0x1000, 10..12), Err(Reason::ProcessGone));
}

fn thread(processes: &Processes, pid: u32, tid: u32, window: Range<u64>) -> Result<String, Reason> {
    processes.thread_name(pid, tid, &window).map(|name| name.to_string())
}

fn thread_comm(time: u64, pid: u32, tid: u32, name: &str) -> IdentifiedRecord {
    at(time, Record::Comm { pid, tid, comm: name.into(), exec: false })
}

fn fork_by(time: u64, parent: (u32, u32), child: (u32, u32)) -> IdentifiedRecord {
    let ((ppid, ptid), (pid, tid)) = (parent, child);
    at(time, Record::Fork(TaskRecord { pid, ppid, tid, ptid, time }))
}

#[test]
fn a_thread_begins_with_the_name_of_the_thread_that_started_it() {
    let mut p = processes(&[
        comm(1, 10, "server", true),
        fork_by(2, (10, 10), (10, 11)),
        thread_comm(3, 10, 11, "pool"),
        fork_by(4, (10, 11), (10, 12)),
        // The process that this thread starts has the thread's name, too.
        fork_by(5, (10, 11), (20, 20)),
        comm(6, 10, "renamed", false),
        thread_comm(8, 10, 12, "pool-1"),
    ]);
    assert_eq!(thread(&p, 10, 10, 7..8), Ok("renamed".into()), "the first thread's is the process's");
    assert_eq!(
        (thread(&p, 10, 11, 2..3), thread(&p, 10, 11, 2..9)),
        (Ok("server".into()), Ok("pool".into()))
    );
    assert_eq!(
        (thread(&p, 10, 12, 4..8), thread(&p, 10, 12, 8..9)),
        (Ok("pool".into()), Ok("pool-1".into()))
    );
    assert_eq!(name(&p, 20, 5..9), Ok(("pool".into(), false)));
    assert_eq!(name(&p, 10, 7..9), Ok(("renamed".into(), false)), "threads do not rename the process");
    assert_eq!(thread(&p, 10, 99, 7..9), Err(Reason::ThreadGone));

    p.apply(&exit(9, 10, 11));
    p.apply(&comm(10, 10, "other", true));
    assert_eq!(thread(&p, 10, 11, 8..12), Ok("pool".into()), "it may have samples of this epoch");
    p.forget_before(10);
    assert_eq!(thread(&p, 10, 11, 10..12), Err(Reason::ThreadGone), "it exited");
    assert_eq!(thread(&p, 10, 12, 10..12), Ok("pool-1".into()));
    p.forget_before(11);
    assert_eq!(thread(&p, 10, 12, 11..12), Err(Reason::ThreadGone), "an exec ends all threads");
    p.apply(&fork_by(13, (10, 10), (10, 12)));
    assert_eq!(thread(&p, 10, 12, 13..14), Ok("other".into()), "another thread with the same number");
}

#[test]
fn names_of_threads_are_bounded_and_what_is_forgotten_is_counted() {
    let mut p = Processes::new(HistoryLimits { bytes: 256 << 10 });
    p.apply(&comm(1, 10, "server", true));
    for tid in 11..10_000 {
        p.apply(&fork_by(2, (10, 10), (10, tid)));
        p.apply(&thread_comm(3, 10, tid, &format!("worker-{tid}")));
        for other in 0..20 {
            p.apply(&thread_comm(4 + other, 10, 11, &format!("name-{other}")));
        }
    }
    let counts = p.counts();
    // A thread that takes a name after its first one was forgotten loses that one as well.
    let (forks, renamed) = (10_000 - 11, 2 * (10_000 - 11));
    let known = counts.threads + p.threads.len() as u64;
    assert!((forks..=renamed).contains(&known), "{known}");
    assert!(p.threads.len() > 100 && p.bytes() <= 256 << 10, "{} of {} bytes", p.threads.len(), p.bytes());
    assert_eq!(thread(&p, 10, 11, 0..90), Ok("name-19".into()), "the first threads are kept");
    assert_eq!(thread(&p, 10, 9_000, 0..90), Err(Reason::Forgotten));
    assert_eq!((name(&p, 10, 0..90), counts.living), (Ok(("server".into(), false)), 0));
    assert!(counts.notes()[0].contains(" names of threads."), "{:?}", counts.notes());

    // Threads that have ended go first.
    p.apply(&exit(100, 10, 11));
    for tid in 10_000..10_100 {
        p.apply(&fork_by(100, (10, 10), (10, tid)));
    }
    assert_eq!(thread(&p, 10, 11, 0..90), Err(Reason::Forgotten));
    assert_eq!(thread(&p, 10, 12, 0..90), Ok("worker-12".into()));
}

#[test]
fn a_reused_pid_is_another_process() {
    let p = processes(&[
        comm(1, 10, "old", true),
        map(2, 10, 0x1000, "/old"),
        comm(3, 20, "new", true),
        map(4, 20, 0x1000, "/new"),
        // The exit of process 10 was lost.
        fork(8, 10, 20, 10),
    ]);
    assert_eq!(path(&p, 10, 0x1000, 2..7), Ok(("/old".into(), false)));
    assert_eq!(path(&p, 10, 0x1000, 9..12), Ok(("/new".into(), false)));
    assert_eq!(path(&p, 10, 0x1000, 2..12), Ok(("/new".into(), true)));
    assert_eq!(name(&p, 10, 9..12), Ok(("new".into(), false)));
}

#[test]
fn the_dead_stay_until_they_are_forgotten() {
    let mut p = processes(&[comm(1, 10, "x", true), map(2, 10, 0x1000, "/x"), exit(5, 10, 10)]);
    assert_eq!(path(&p, 10, 0x1000, 0..9), Ok(("/x".into(), false)));
    p.forget_before(5);
    assert_eq!(p.len(), 1);
    p.forget_before(6);
    assert!(p.is_empty());
    assert_eq!(path(&p, 10, 0x1000, 0..9), Err(Reason::ProcessGone));
    assert_eq!((p.counts(), p.counts().notes()), (ForgottenCounts::default(), Vec::new()));
}

#[test]
fn what_ended_first_is_forgotten_first_and_counted() {
    let mut p = Processes::new(HistoryLimits { bytes: 64 << 10 });
    for n in 1..=10_000u32 {
        p.apply(&fork(u64::from(n), n, 0, n));
        p.apply(&comm(u64::from(n), n, "x", false));
        p.apply(&exit(u64::from(n) + 1, n, n));
    }
    p.apply(&at(20_000, Record::Lost { id: 1, lost: 7 }));
    let counts = p.counts();
    assert_eq!((counts.spaces, counts.living, counts.records_lost), (0, 0, 7));
    assert_eq!(counts.ended + p.len() as u64, 10_000);
    assert!((100..1000).contains(&p.len()), "{}", p.len());
    assert_eq!(name(&p, 10_000, ALWAYS), Ok(("x".into(), false)));
    assert_eq!(name(&p, 1, 0..9), Err(Reason::Forgotten));
    assert_eq!(name(&p, 77_777, 20_001..20_002), Err(Reason::ProcessGone));
    let note = counts.notes().remove(0);
    assert!(
        note.contains(" processes that had ended. What is missing therefore shows as [memory limit]"),
        "{note}"
    );
}

#[test]
fn nobody_and_the_idle_task() {
    let p = processes(&[]);
    assert_eq!(name(&p, 0, ALWAYS), Ok(("swapper".into(), false)));
    assert_eq!(name(&p, u32::MAX, ALWAYS), Err(Reason::ProcessGone));
    assert_eq!(path(&p, 77, 0, ALWAYS), Err(Reason::ProcessGone));
}

#[test]
fn a_snapshot_from_a_tree() {
    let root = tempfile::tempdir().expect("a directory");
    let dir = root.path().join("proc/42");
    std::fs::create_dir_all(&dir).expect("a directory");
    std::fs::create_dir_all(root.path().join("proc/self")).expect("a directory");
    let write = |name: &str, text: &str| std::fs::write(dir.join(name), text).expect("written");
    write("comm", "server\n");
    write("status", "Name:\tserver\nThreads:\t2\n");
    for (tid, name) in [("42", "server\n"), ("43", "io\n"), ("gone", "")] {
        std::fs::create_dir_all(dir.join("task").join(tid)).expect("a directory");
        write(&format!("task/{tid}/comm"), name);
    }
    write("maps", "1000-2000 r-xp 00003000 fe:00 7   /bin/server\n2000-3000 rw-p 00000000 00:00 0 \n");
    let mut p = Processes::new(HistoryLimits::default());
    assert_eq!(p.snapshot_all(root.path(), 100).expect("readable"), 1);
    assert_eq!(thread(&p, 42, 43, 0..10), Err(Reason::ThreadGone), "names of threads were not asked for");
    let mut p = Processes::new(HistoryLimits::default());
    p.read_threads(true);
    assert_eq!(p.snapshot_all(root.path(), 100).expect("readable"), 1);
    assert_eq!(name(&p, 42, 0..10), Ok(("server".into(), false)));
    assert_eq!(thread(&p, 42, 42, 0..10), Ok("server".into()));
    assert_eq!(thread(&p, 42, 43, 0..10), Ok("io".into()));
    assert_eq!(path(&p, 42, 0x1000, 0..10), Ok(("/bin/server".into(), false)));
    let found = p.find_mapping(42, 0x1010, &ALWAYS).expect("mapped").value;
    assert_eq!(found.file_offset(0x1010), 0x3010);
    assert_eq!(p.find_mapping(42, 0x2000, &ALWAYS).expect("mapped").value.mapping.kind, MapKind::Bss);
    assert_eq!(p.take_new_files().len(), 1);
    assert!(p.take_new_files().is_empty());

    // If a fork happened before the snapshot was read, the snapshot shows the forked process.
    p.apply(&fork(50, 42, 1, 42));
    assert_eq!(path(&p, 42, 0x1000, 0..60), Ok(("/bin/server".into(), false)));
    p.apply(&exit(60, 42, 43));
    assert!(path(&p, 42, 0x1000, 61..70).is_ok());
    p.apply(&exit(61, 42, 42));
    assert_eq!(path(&p, 42, 0x1000, 62..70), Err(Reason::ProcessGone));
    // If a fork happened after the snapshot was read, it begins another process.
    p.apply(&fork(150, 42, 1, 42));
    assert_eq!(path(&p, 42, 0x1000, 150..160), Err(Reason::Unmapped));
}

proptest::proptest! {
    #[test]
    fn any_history_is_survived(
        steps in proptest::collection::vec((0u8..6, 0u32..5, 0u32..5, 0u64..8, proptest::bool::ANY), 0..200)
    ) {
        let mut p = Processes::new(HistoryLimits { bytes: 8 << 10 });
        for (time, (kind, a, b, page, flag)) in steps.into_iter().enumerate() {
            let time = time as u64;
            p.apply(&match kind {
                0 => map(time, a, page * 0x800, if flag { "/x" } else { "//anon" }),
                1 => comm(time, a, "n", flag),
                2 => fork(time, a, b, a),
                3 => exit(time, a, b),
                4 => fork(time, a, a, b),
                _ => at(time, Record::Other { kind: 99 }),
            });
            for pid in 0..5 {
                let _ = p.find_mapping(pid, page * 0x800, &(time.saturating_sub(3)..time + 1));
                let _ = p.process_name(pid, &(0..time));
            }
            proptest::prop_assert!(p.bytes() <= 8 << 10);
        }
    }
}

/// Replays a storm, and checks that it never allocates more than the limit and a little.
fn storm(limit: usize, records: impl Iterator<Item = IdentifiedRecord>) -> Processes {
    let (processes, most) = most_allocated(|| {
        let mut processes = Processes::new(HistoryLimits { bytes: limit });
        records.for_each(|record| processes.apply(&record));
        processes
    });
    assert!(most <= limit + limit / 16, "{most} bytes, and the limit is {limit}");
    assert!(processes.bytes() <= limit, "{} bytes are counted", processes.bytes());
    processes
}

/// Records of a program's start: `files` mappings, as ld.so makes them.
fn started(time: u64, pid: u32, files: u64) -> impl Iterator<Item = IdentifiedRecord> {
    let maps = (0..files)
        .map(move |n| map(time + 1, pid, (u64::from(pid) << 20) + (n << 13), LIBRARIES[n as usize % 8]));
    std::iter::once(comm(time, pid, "program", true)).chain(maps)
}

const LIBRARIES: [&str; 8] = [
    "/usr/bin/program",
    "/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2",
    "/usr/lib/x86_64-linux-gnu/libc.so.6",
    "/usr/lib/x86_64-linux-gnu/libm.so.6",
    "/usr/lib/x86_64-linux-gnu/libcrypto.so.3",
    "/usr/lib/x86_64-linux-gnu/libssl.so.3",
    "/usr/lib/x86_64-linux-gnu/libz.so.1",
    "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
];

/// 3,000 children of a process with 60,000 mappings, each of which maps something and executes
/// another program, which shares nothing.
#[test]
fn children_share_the_mappings_of_their_parent() {
    let parent = (0..60_000u64).map(|n| map(1, 10, n << 13, LIBRARIES[n as usize % 8]));
    let children = (1000..4000u32).flat_map(|pid| {
        let own = [fork(10, pid, 10, pid), map(11, pid, 1 << 40, "/tmp/own")];
        own.into_iter().chain(started(12, pid, 30))
    });
    let p = storm(128 << 20, parent.chain(children));
    assert_eq!(p.counts(), ForgottenCounts::default());
    for pid in 1000..4000 {
        assert_eq!(path(&p, pid, 50 << 13, 10..11), Ok((LIBRARIES[2].into(), false)), "{pid}");
        assert_eq!(path(&p, pid, u64::from(pid) << 20, 12..20), Ok((LIBRARIES[0].into(), false)), "{pid}");
    }
}

/// 100 processes that map 60,000 times each need 300 MB. They lose their mappings, and nobody else
/// does.
#[test]
fn large_address_spaces_cost_others_nothing() {
    let others = (1..500u32).flat_map(|pid| started(1, pid, 40));
    let large = (1000..1100u32).flat_map(|pid| {
        let maps = (0..60_000u64).map(move |n| map(6, pid, n << 13, "/tmp/large"));
        [fork(5, pid, 1, pid), comm(6, pid, "large", true)].into_iter().chain(maps)
    });
    let ended = (500..600u32).flat_map(|pid| {
        let born = [fork(7, pid, 1, pid)];
        born.into_iter().chain(started(8, pid, 40)).chain([exit(9, pid, pid)])
    });
    let p = storm(32 << 20, others.chain(ended).chain(large));
    let ForgottenCounts { spaces, ended, living, .. } = p.counts();
    assert!((80..=100).contains(&spaces) && (ended, living) == (0, 0), "{:?}", p.counts());
    for pid in 1..600 {
        assert_eq!(path(&p, pid, u64::from(pid) << 20, 8..10), Ok((LIBRARIES[0].into(), false)), "{pid}");
    }
    assert_eq!(path(&p, 1000, 0, 6..10), Err(Reason::Forgotten));
    assert_eq!(name(&p, 1000, 6..10), Ok(("large".into(), false)));
}

/// 20,000 programs that start and end within one epoch keep their names and mappings.
#[test]
fn short_lived_processes_keep_their_names_for_an_epoch() {
    let shell = started(0, 2, 20);
    let starts = (0..20_000u32).flat_map(|n| {
        let (pid, time) = (1000 + n, 1000 * u64::from(n) + 10);
        let program = started(time + 1, pid, 30);
        std::iter::once(fork(time, pid, 2, pid)).chain(program).chain([exit(time + 900, pid, pid)])
    });
    let mut p = storm(HistoryLimits::BYTES, shell.chain(starts));
    assert_eq!(p.counts(), ForgottenCounts::default());
    let epoch = 0..20_000_010;
    for pid in 1000..21_000 {
        assert_eq!(name(&p, pid, epoch.clone()), Ok(("program".into(), false)));
        assert_eq!(path(&p, pid, u64::from(pid) << 20, epoch.clone()), Ok((LIBRARIES[0].into(), false)));
    }
    p.forget_before(epoch.end);
    assert_eq!(p.len(), 1);
    assert!(p.bytes() < 64 << 10, "{}", p.bytes());
}

/// Storms of what a process can choose: names, paths, pids, and mappings over mappings.
#[test]
fn storms_stay_within_the_limit() {
    const LIMIT: usize = 8 << 20;
    let named = storm(LIMIT, (0..200_000).map(|pid| comm(1, pid, &format!("name {pid}"), false)));
    assert!(named.counts().living > 100_000, "{:?}", named.counts());
    assert_eq!(name(&named, 150_000, ALWAYS), Err(Reason::Forgotten));
    assert_eq!(name(&named, 7, ALWAYS), Ok(("name 7".into(), false)));

    let renamed = storm(LIMIT, (0..200_000).map(|time| comm(time, 5, &format!("name {time}"), false)));
    assert_eq!(name(&renamed, 5, 199_998..200_000), Ok(("name 199999".into(), true)));
    let executed = storm(LIMIT, (0..100_000).map(|time| comm(time, 5, &format!("name {time}"), true)));
    assert!(executed.counts().ended > 10_000, "{:?}", executed.counts());

    let long = "x".repeat(4000);
    let paths = (0..20_000u64).map(|n| map(n, 7, (n % 100) << 13, &format!("/{long}/{n}")));
    let p = storm(LIMIT, paths);
    assert!(p.counts().files > 10_000, "{:?}", p.counts().notes());
    let many = (0..20_000u32).map(|n| map(1, n % 500, u64::from(n) << 13, &format!("/{long}/{n}")));
    let p = storm(LIMIT, many);
    assert!(p.counts().spaces > 100, "{:?}", p.counts());
    // One process alone can reach the limit.
    let p = storm(LIMIT, (0..500_000u64).rev().map(|n| map(1, 7, n << 13, "/x")));
    assert!(p.counts().spaces >= 1, "{:?}", p.counts());
    assert_eq!(path(&p, 7, 499_999 << 13, ALWAYS), Err(Reason::Forgotten));
}

/// Images that someone else holds cannot be freed. Forgetting must neither go on for ever nor for
/// each record.
#[test]
fn images_that_others_hold() {
    let mut p = Processes::new(HistoryLimits { bytes: 64 << 10 });
    let mut held = Vec::new();
    for n in 0..2000u64 {
        p.apply(&map(1, 7, n << 13, &format!("/{}", n)));
        held.extend(p.find_mapping(7, n << 13, &ALWAYS).map(|found| found.value));
    }
    assert!(held.len() > 1900 && p.bytes() > 64 << 10, "{} mappings, {} bytes", held.len(), p.bytes());
    drop((held, p.take_new_files()));
    p.apply(&comm(2, 8, "next", true));
    for n in 0..2000u64 {
        p.apply(&map(1, 7, n << 13, "/same"));
    }
    assert!(p.bytes() <= 64 << 10, "{}", p.bytes());
}
