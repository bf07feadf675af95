//! Perf maps: `/tmp/perf-PID.map`, in which a JIT lists the code that it generates.
//!
//! Lines have the form `START SIZE name`, with hexadecimal numbers. The file only grows, so each
//! look reads only the new part. Later lines replace earlier ones, because a JIT reuses memory. The
//! file stays open, so that the names remain available after the process has exited.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::files::{open_in_root, open_regular};
use super::procfs;

/// Maximum number of processes whose maps are held.
const MAX_PROCESSES: usize = 256;
/// Maximum number of functions of one process.
const MAX_FUNCTIONS: usize = 1 << 20;
/// Number of bytes per read, and maximum number of bytes per look.
const CHUNK: usize = 1 << 16;
const MAX_READ: u64 = 256 << 20;

/// A function that a JIT generated.
#[derive(Clone, Debug, PartialEq, Eq)]
struct JitFunction {
    size: u64,
    name: Arc<str>,
}

/// The perf map of one process.
#[derive(Debug, Default)]
struct PerfMap {
    file: Option<File>,
    read: u64,
    /// The start of a line whose end is not written yet.
    partial: Vec<u8>,
    functions: BTreeMap<u64, JitFunction>,
    last_batch: u64,
}

/// Perf maps by process and generation.
#[derive(Debug)]
pub struct PerfMaps {
    proc: PathBuf,
    maps: FxHashMap<(u32, u64), PerfMap>,
    batch: u64,
}

impl PerfMaps {
    /// Creates an empty set of maps for the processes below `proc`.
    pub fn new(proc: PathBuf) -> Self {
        Self { proc, maps: FxHashMap::default(), batch: 0 }
    }

    /// Begins a batch of queries. Each process's map is read at most once per batch.
    pub fn begin(&mut self) {
        self.batch += 1;
    }

    /// Returns the function of process `pid` at `address`, and the offset from its start.
    pub fn find(&mut self, pid: u32, generation: u64, address: u64) -> Option<(Arc<str>, u64)> {
        let key = (pid, generation);
        if !self.maps.contains_key(&key) && self.maps.len() >= MAX_PROCESSES {
            let oldest = self.maps.iter().min_by_key(|(_, m)| m.last_batch).map(|(&k, _)| k)?;
            self.maps.remove(&oldest);
        }
        let map = self.maps.entry(key).or_default();
        if map.last_batch != self.batch {
            map.last_batch = self.batch;
            map.refresh(&self.proc, pid);
        }
        let (start, function) = map.functions.range(..=address).next_back()?;
        (address - start < function.size).then(|| (function.name.clone(), address - start))
    }
}

impl PerfMap {
    fn refresh(&mut self, proc: &Path, pid: u32) {
        if self.file.is_none() {
            self.file = open(proc, pid);
        }
        let Some(file) = &self.file else { return };
        let length = file.metadata().map_or(0, |stat| stat.len());
        if length < self.read {
            // The file was rewritten from the start.
            self.read = 0;
            self.partial.clear();
            self.functions.clear();
        }
        let end = length.min(self.read.saturating_add(MAX_READ));
        let mut fresh = std::mem::take(&mut self.partial);
        let mut chunk = vec![0; CHUNK];
        while self.read < end {
            let Some(got) = file.read_at(&mut chunk, self.read).ok().filter(|&got| got > 0) else { break };
            self.read += got as u64;
            fresh.extend_from_slice(chunk.get(..got).unwrap_or_default());
            let whole = fresh.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
            for line in fresh.get(..whole).unwrap_or_default().split(|&byte| byte == b'\n') {
                add(&mut self.functions, line);
            }
            fresh.drain(..whole);
            // Text of this length without a newline is not a valid line.
            if fresh.len() > CHUNK {
                fresh.clear();
            }
        }
        self.partial = fresh;
    }
}

/// Adds the function of one line. Malformed lines are skipped.
fn add(functions: &mut BTreeMap<u64, JitFunction>, line: &[u8]) {
    let line = String::from_utf8_lossy(line);
    let mut fields = line.trim_end_matches('\r').splitn(3, [' ', '\t']);
    let mut number = || {
        let field = fields.next()?;
        u64::from_str_radix(field.strip_prefix("0x").unwrap_or(field), 16).ok()
    };
    let (Some(start), Some(size)) = (number(), number()) else { return };
    let Some(name) = fields.next().map(str::trim).filter(|name| !name.is_empty()) else { return };
    let end = start.saturating_add(size.max(1));
    // The new function replaces the functions that it overlaps.
    while let Some((&old, _)) = functions.range(start..end).next() {
        functions.remove(&old);
    }
    if let Some((&old, function)) = functions.range_mut(..start).next_back() {
        function.size = function.size.min(start - old);
    }
    if functions.len() < MAX_FUNCTIONS {
        functions.insert(start, JitFunction { size: end - start, name: name.into() });
    }
}

/// Opens the map of a process. Its name has the pid that the process itself sees, and it is in the
/// `/tmp` that the process sees. As in perf, it is used only if the process's user or root wrote
/// it.
fn open(proc: &Path, pid: u32) -> Option<File> {
    let dir = proc.join(pid.to_string());
    let status = std::fs::read_to_string(dir.join("status")).unwrap_or_default();
    let inner = procfs::field(&status, "NStgid:").and_then(|n| n.parse().ok()).unwrap_or(pid);
    let path = |pid: u32| PathBuf::from(format!("/tmp/perf-{pid}.map"));
    let file = open_in_root(&dir.join("root"), &path(inner)).or_else(|_| open_regular(&path(pid))).ok()?;
    let owner = std::fs::metadata(&dir).map(|stat| stat.uid()).ok();
    let writer = file.metadata().ok()?.uid();
    // A process that has exited has no user to compare with.
    (writer == 0 || owner.is_none_or(|owner| owner == writer)).then_some(file)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn functions(lines: &str) -> BTreeMap<u64, JitFunction> {
        let mut all = BTreeMap::new();
        lines.lines().for_each(|line| add(&mut all, line.as_bytes()));
        all
    }

    #[test]
    fn lines() {
        let all = functions("1000 10 LazyCompile:~f x.js:1\n0x2000 0x20 g\n\nnonsense\n3000 zz h\n4000 8\n");
        assert_eq!(all.len(), 2);
        assert_eq!(&*all[&0x1000].name, "LazyCompile:~f x.js:1");
        assert_eq!(all[&0x2000].size, 0x20);
    }

    #[test]
    fn later_lines_win() {
        let all = functions("1000 100 old\n1200 10 older\n1080 200 new\n");
        assert_eq!(all.len(), 2);
        assert_eq!(all[&0x1000].size, 0x80);
        assert_eq!(&*all[&0x1080].name, "new");
    }

    #[test]
    fn a_growing_map_is_followed_and_outlives_its_file() {
        let pid = std::process::id();
        let path = format!("/tmp/perf-{pid}.map");
        let mut file = File::create(&path).expect("writable");
        let mut maps = PerfMaps::new("/proc".into());
        write!(file, "1000 10 first\n2000 10 sec").expect("written");
        maps.begin();
        assert_eq!(maps.find(pid, 1, 0x1008), Some(("first".into(), 8)));
        assert_eq!(maps.find(pid, 1, 0x2000), None);
        assert_eq!(maps.find(pid, 1, 0x1010), None);
        writeln!(file, "ond").expect("written");
        std::fs::remove_file(&path).expect("removed");
        maps.begin();
        assert_eq!(maps.find(pid, 1, 0x2000), Some(("second".into(), 0)));
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_survived(line: Vec<u8>, start: u64, size: u64) {
            let mut all = BTreeMap::new();
            add(&mut all, &line);
            add(&mut all, format!("{start:x} {size:x} f").as_bytes());
            add(&mut all, format!("{:x} {size:x} g", start / 2).as_bytes());
        }
    }
}
