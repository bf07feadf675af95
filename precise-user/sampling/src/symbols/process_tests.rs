use super::*;
use precise_records::record::{FileId, SampleId};

const ALWAYS: Range<u64> = 0..u64::MAX;

fn at(time: u64, record: Record) -> IdentifiedRecord {
    IdentifiedRecord { record, misc: 0, id: SampleId { time, ..SampleId::default() } }
}

fn map(time: u64, pid: u32, start: u64, path: &str) -> IdentifiedRecord {
    at(
        time,
        Record::Mmap2(MmapRecord {
            pid,
            tid: pid,
            start,
            len: 0x1000,
            page_offset: 0,
            executable: true,
            writable: false,
            flags: 0,
            file: FileId::None,
            path: path.into(),
        }),
    )
}

fn comm(time: u64, pid: u32, name: &str, exec: bool) -> IdentifiedRecord {
    at(time, Record::Comm { pid, tid: pid, comm: name.into(), exec })
}

fn fork(time: u64, pid: u32, ppid: u32, tid: u32) -> IdentifiedRecord {
    at(time, Record::Fork(TaskRecord { pid, ppid, tid, ptid: ppid, time }))
}

fn exit(time: u64, pid: u32, tid: u32) -> IdentifiedRecord {
    at(time, Record::Exit(TaskRecord { pid, ppid: 1, tid, ptid: 1, time }))
}

fn fed(entries: &[IdentifiedRecord]) -> Processes {
    let mut processes = Processes::new(Limits::default());
    entries.iter().for_each(|entry| processes.apply(entry));
    processes
}

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
    let p = fed(&[
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
    let p = fed(&[map(1, 10, 0x1000, "/a"), fork(2, 11, 10, 11), map(3, 11, 0x5000, "/b")]);
    assert_eq!(path(&p, 11, 0x5000, ALWAYS), Ok(("/b".into(), false)));
    assert_eq!(path(&p, 10, 0x5000, ALWAYS), Err(Reason::Unmapped));
}

#[test]
fn two_generations_with_the_same_address_are_ambiguous() {
    let p = fed(&[
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
fn the_same_file_at_the_same_place_is_not_ambiguous() {
    let p = fed(&[map(2, 10, 0x1000, "/a"), comm(5, 10, "a", true), map(6, 10, 0x1000, "/a")]);
    assert_eq!(path(&p, 10, 0x1000, 2..9), Ok(("/a".into(), false)));
}

#[test]
fn threads_share_and_the_last_one_ends_the_process() {
    let p = fed(&[
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

#[test]
fn a_reused_pid_is_another_process() {
    let p = fed(&[
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
    let mut p = fed(&[comm(1, 10, "x", true), map(2, 10, 0x1000, "/x"), exit(5, 10, 10)]);
    assert_eq!(path(&p, 10, 0x1000, 0..9), Ok(("/x".into(), false)));
    p.forget_before(5);
    assert_eq!(p.len(), 1);
    p.forget_before(6);
    assert!(p.is_empty());
    assert_eq!(path(&p, 10, 0x1000, 0..9), Err(Reason::ProcessGone));
    assert_eq!(p.counts(), Counts::default());
}

#[test]
fn the_number_of_dead_is_bounded_and_counted() {
    let mut p = Processes::new(Limits { ended: 10 });
    for n in 1..=100u32 {
        p.apply(&fork(u64::from(n), n, 0, n));
        p.apply(&exit(u64::from(n), n, n));
    }
    p.apply(&at(200, Record::Lost { id: 1, lost: 7 }));
    assert_eq!(p.len(), 10);
    assert_eq!(p.counts(), Counts { forgotten: 90, mappings_dropped: 0, records_lost: 7 });
}

#[test]
fn nobody_and_the_idle_task() {
    let p = fed(&[]);
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
    write("maps", "1000-2000 r-xp 00003000 fe:00 7   /bin/server\n2000-3000 rw-p 00000000 00:00 0 \n");
    let mut p = Processes::new(Limits::default());
    assert_eq!(p.snapshot_all(root.path(), 100).expect("readable"), 1);
    assert_eq!(name(&p, 42, 0..10), Ok(("server".into(), false)));
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
        let mut p = Processes::new(Limits { ended: 5 });
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
            proptest::prop_assert!(p.ended.len() <= 5);
        }
    }
}
