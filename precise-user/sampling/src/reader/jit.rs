//! Perf maps: `/tmp/perf-PID.map`, in which a JIT lists the code that it generates.
//!
//! Lines have the form `START SIZE name`, with hexadecimal numbers. The file only grows, so each
//! look reads only the new part. Later lines replace earlier ones, because a JIT reuses memory.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::{FileExt, MetadataExt};

use rustc_hash::FxHashMap;

use super::demangle::bounded;
use super::protocol::{FileId, JitAnswer};

/// Maximum number of bytes that all functions take.
const MAX_BYTES: usize = 256 << 20;
/// Number of bytes that a function takes in addition to its name: its entry of the tree.
const ENTRY: usize = 64;
/// Number of bytes per read, and maximum number of bytes per look.
const CHUNK: usize = 1 << 16;
const MAX_READ: u64 = 256 << 20;

/// A function that a JIT generated.
#[derive(Clone, Debug, PartialEq, Eq)]
struct JitFunction {
    size: u64,
    name: Box<str>,
}

/// Perf maps by the number of their file.
#[derive(Debug, Default)]
pub(super) struct OpenPerfMaps {
    maps: FxHashMap<FileId, PerfMap>,
}

/// The perf map of one process.
#[derive(Debug, Default)]
struct PerfMap {
    read: u64,
    /// The start of a line whose end is not written yet.
    partial: Vec<u8>,
    functions: Functions,
}

/// Functions by address, and what they take.
#[derive(Debug, Default)]
struct Functions {
    all: BTreeMap<u64, JitFunction>,
    bytes: usize,
    /// Number of functions that there was no room for.
    refused: u64,
}

impl OpenPerfMaps {
    /// Reads what is new in a map, and looks up addresses in it.
    pub(super) fn find(&mut self, id: FileId, file: &File, addresses: &[u64]) -> JitAnswer {
        let others = self.maps.iter().filter(|(of, _)| **of != id);
        let others: usize = others.map(|(_, map)| map.functions.bytes).sum();
        let map = self.maps.entry(id).or_default();
        map.refresh(file, MAX_BYTES.saturating_sub(others));
        let functions = addresses.iter().map(|&address| map.functions.at(address)).collect();
        JitAnswer { functions, refused: map.functions.refused }
    }

    /// Forgets a map.
    pub(super) fn forget(&mut self, id: FileId) {
        self.maps.remove(&id);
    }
}

impl PerfMap {
    fn refresh(&mut self, file: &File, room: usize) {
        let length = file.metadata().map_or(0, |stat| stat.size());
        if length < self.read {
            // The file was rewritten from the start.
            *self = Self::default();
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
                self.functions.add(line, room);
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

impl Functions {
    fn at(&self, address: u64) -> Option<(String, u64)> {
        let (start, function) = self.all.range(..=address).next_back()?;
        (address - start < function.size).then(|| (function.name.to_string(), address - start))
    }

    /// Adds the function of one line, if all functions then take at most `room` bytes. Malformed
    /// lines are skipped.
    fn add(&mut self, line: &[u8], room: usize) {
        let line = String::from_utf8_lossy(line);
        let mut fields = line.trim_end_matches('\r').splitn(3, [' ', '\t']);
        let mut number = || {
            let field = fields.next()?;
            u64::from_str_radix(field.strip_prefix("0x").unwrap_or(field), 16).ok()
        };
        let (Some(start), Some(size)) = (number(), number()) else { return };
        let Some(name) = fields.next().map(str::trim).filter(|name| !name.is_empty()) else { return };
        let name = bounded(name).into_boxed_str();
        let end = start.saturating_add(size.max(1));
        // The new function replaces the functions that it overlaps.
        while let Some((&old, _)) = self.all.range(start..end).next() {
            if let Some(gone) = self.all.remove(&old) {
                self.bytes -= ENTRY + gone.name.len();
            }
        }
        if let Some((&old, function)) = self.all.range_mut(..start).next_back() {
            function.size = function.size.min(start - old);
        }
        let takes = ENTRY + name.len();
        if self.bytes + takes > room {
            self.refused += 1;
            return;
        }
        self.bytes += takes;
        self.all.insert(start, JitFunction { size: end - start, name });
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn functions(lines: &str) -> Functions {
        let mut all = Functions::default();
        lines.lines().for_each(|line| all.add(line.as_bytes(), MAX_BYTES));
        all
    }

    #[test]
    fn lines() {
        let all = functions("1000 10 LazyCompile:~f x.js:1\n0x2000 0x20 g\n\nnonsense\n3000 zz h\n4000 8\n");
        assert_eq!(all.all.len(), 2);
        assert_eq!(&*all.all[&0x1000].name, "LazyCompile:~f x.js:1");
        assert_eq!(all.all[&0x2000].size, 0x20);
    }

    #[test]
    fn later_lines_win() {
        let all = functions("1000 100 old\n1200 10 older\n1080 200 new\n");
        assert_eq!(all.all.len(), 2);
        assert_eq!(all.all[&0x1000].size, 0x80);
        assert_eq!(&*all.all[&0x1080].name, "new");
        assert_eq!(all.bytes, 2 * ENTRY + 6);
    }

    #[test]
    fn a_growing_map_is_followed() {
        let mut file = tempfile::tempfile().expect("a file");
        let mut maps = OpenPerfMaps::default();
        write!(file, "1000 10 first\n2000 10 sec").expect("written");
        let found =
            |maps: &mut OpenPerfMaps, file: &File| maps.find(1, file, &[0x1008, 0x2000, 0x1010]).functions;
        assert_eq!(found(&mut maps, &file), [Some(("first".into(), 8)), None, None]);
        writeln!(file, "ond").expect("written");
        assert_eq!(found(&mut maps, &file)[1], Some(("second".into(), 0)));
        file.set_len(0).expect("truncated");
        assert_eq!(found(&mut maps, &file), [None, None, None]);
    }

    #[test]
    fn what_has_no_room_is_counted() {
        let mut all = Functions::default();
        let room = 3 * (ENTRY + 4);
        for n in 0..10 {
            all.add(format!("{n}000 10 name").as_bytes(), room);
        }
        assert_eq!((all.all.len(), all.refused), (3, 7));
        all.add(format!("f000 10 {}", "x".repeat(1 << 20)).as_bytes(), MAX_BYTES);
        assert!(all.bytes < room + ENTRY + 4096 + 1);
    }

    proptest::proptest! {
        #[test]
        fn any_line_is_survived(line: Vec<u8>, start: u64, size: u64) {
            let mut all = Functions::default();
            all.add(&line, MAX_BYTES);
            all.add(format!("{start:x} {size:x} f").as_bytes(), MAX_BYTES);
            all.add(format!("{:x} {size:x} g", start / 2).as_bytes(), MAX_BYTES);
        }
    }
}
