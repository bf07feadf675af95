//! Helpers for tests: sideband records, and the history of processes that they make.

use super::process::{HistoryLimits, Processes};
use precise_records::record::{IdentifiedRecord, MappedFileId, MmapRecord, Record, SampleId, TaskRecord};

/// Returns the record with this time.
pub(crate) fn at(time: u64, record: Record) -> IdentifiedRecord {
    IdentifiedRecord { record, misc: 0, id: SampleId { time, ..SampleId::default() } }
}

/// Returns the record of an executable mapping of one page.
pub(crate) fn map(time: u64, pid: u32, start: u64, path: &str) -> IdentifiedRecord {
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
            file: MappedFileId::None,
            path: path.into(),
        }),
    )
}

/// Returns the record of a new process name, by an exec or without one.
pub(crate) fn comm(time: u64, pid: u32, name: &str, exec: bool) -> IdentifiedRecord {
    at(time, Record::Comm { pid, tid: pid, comm: name.into(), exec })
}

/// Returns the record of a thread that starts: the first one of a process if `tid` is `pid`.
pub(crate) fn fork(time: u64, pid: u32, ppid: u32, tid: u32) -> IdentifiedRecord {
    at(time, Record::Fork(TaskRecord { pid, ppid, tid, ptid: ppid, time }))
}

/// Returns the record of a thread that exits.
pub(crate) fn exit(time: u64, pid: u32, tid: u32) -> IdentifiedRecord {
    at(time, Record::Exit(TaskRecord { pid, ppid: 1, tid, ptid: 1, time }))
}

/// Returns the history of processes after these records.
pub(crate) fn processes(entries: &[IdentifiedRecord]) -> Processes {
    let mut processes = Processes::new(HistoryLimits::default());
    entries.iter().for_each(|entry| processes.apply(entry));
    processes
}
