//! Reads `/proc/PID` of processes that existed before the first record.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::Path;

use precise_records::record::{MappedFileId, MmapRecord};

/// A process as `/proc` shows it.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ProcessSnapshot {
    /// The process name.
    pub comm: String,
    /// Number of threads; 0 if unknown.
    pub threads: u32,
    /// The mappings, in the form of sideband records; empty for a kernel thread, or if they may not
    /// be read.
    pub maps: Vec<MmapRecord>,
}

/// The name and the number of threads of a process.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct ProcessStatus {
    /// The process name.
    pub comm: String,
    /// Number of threads; 0 if unknown.
    pub threads: u32,
}

/// Reads the snapshot of `pid` below `root`. Returns an error if the process does not exist (any
/// more). Use it for processes that are trusted: another one can have millions of mappings.
pub fn read(root: &Path, pid: u32) -> io::Result<ProcessSnapshot> {
    let ProcessStatus { comm, threads } = status(root, pid)?;
    let mut maps = Vec::new();
    // The maps of another user's process may not be readable; its name is still useful.
    let _ = each_map(root, pid, |map| maps.push(map));
    Ok(ProcessSnapshot { comm, threads, maps })
}

/// Reads the name and the number of threads of `pid` below `root`. Returns an error if the process
/// does not exist (any more).
pub fn status(root: &Path, pid: u32) -> io::Result<ProcessStatus> {
    let dir = root.join("proc").join(pid.to_string());
    let comm = lossy(&dir.join("comm"))?;
    let status = lossy(&dir.join("status")).unwrap_or_default();
    Ok(ProcessStatus {
        comm: comm.trim_end_matches('\n').to_owned(),
        threads: field(&status, "Threads:").and_then(|n| n.parse().ok()).unwrap_or(0),
    })
}

/// Returns the id of the process that the thread `tid` belongs to, which is `tid` for the first.
pub fn process_of(root: &Path, tid: u32) -> io::Result<u32> {
    let status = lossy(&root.join("proc").join(tid.to_string()).join("status"))?;
    field(&status, "Tgid:").and_then(|pid| pid.parse().ok()).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

/// Calls `each` with the mappings of `pid` below `root`, in the form of sideband records. One line
/// is in memory at a time, because a process chooses how many mappings it has and how long their
/// paths are.
pub fn each_map(root: &Path, pid: u32, mut each: impl FnMut(MmapRecord)) -> io::Result<()> {
    /// More than the kernel writes in one line: a path has at most 4,096 bytes, of which each may
    /// be escaped with four.
    const LONGEST: u64 = 32 << 10;
    let mut file = BufReader::new(File::open(root.join("proc").join(pid.to_string()).join("maps"))?);
    let mut line = Vec::new();
    loop {
        line.clear();
        let length = file.by_ref().take(LONGEST).read_until(b'\n', &mut line)?;
        if length == 0 {
            return Ok(());
        }
        if length as u64 == LONGEST {
            return Err(io::Error::from(io::ErrorKind::InvalidData));
        }
        let line = line.strip_suffix(b"\n").unwrap_or(&line);
        if let Some(map) = parse_line(pid, &String::from_utf8_lossy(line)) {
            each(map);
        }
    }
}

/// Calls `each` with the id and the name of each thread of `pid` below `root`, without the first.
/// One name is in memory at a time, because a process chooses how many threads it has.
pub fn each_thread(root: &Path, pid: u32, mut each: impl FnMut(u32, &str)) -> io::Result<()> {
    let dir = root.join("proc").join(pid.to_string()).join("task");
    for entry in std::fs::read_dir(dir)?.flatten() {
        let Some(tid) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        // A thread that has ended meanwhile has no name.
        if tid != pid
            && let Ok(name) = lossy(&entry.path().join("comm"))
        {
            each(tid, name.trim_end_matches('\n'));
        }
    }
    Ok(())
}

/// Returns all process ids below `root`.
pub fn pids(root: &Path) -> io::Result<Vec<u32>> {
    let entries = std::fs::read_dir(root.join("proc"))?;
    Ok(entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect())
}

/// Returns the last word of a line of `/proc/PID/status`: the only word, or the one of the
/// innermost namespace.
pub fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    status.lines().find_map(|line| line.strip_prefix(name))?.split_ascii_whitespace().next_back()
}

/// Reads a file as text; invalid UTF-8 is replaced.
fn lossy(path: &Path) -> io::Result<String> {
    Ok(String::from_utf8_lossy(&std::fs::read(path)?).into_owned())
}

/// Parses one line of `/proc/PID/maps`: `start-end perms offset major:minor inode   path`.
fn parse_line(pid: u32, line: &str) -> Option<MmapRecord> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let (start, end) = (hex(start)?, hex(end)?);
    let perms = fields.next()?.as_bytes();
    let page_offset = hex(fields.next()?)?;
    let (major, minor) = fields.next()?.split_once(':')?;
    let inode = fields.next()?.parse().ok()?;
    let (major, minor) = (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?);
    let path = fields.next().unwrap_or_default().trim_start_matches(' ');
    Some(MmapRecord {
        pid,
        tid: pid,
        start,
        len: end.checked_sub(start)?,
        page_offset,
        executable: perms.get(2) == Some(&b'x'),
        writable: perms.get(1) == Some(&b'w'),
        flags: 0,
        file: if inode == 0 {
            MappedFileId::None
        } else {
            MappedFileId::Inode { major, minor, inode, generation: 0 }
        },
        // The kernel escapes only the newline.
        path: path.replace("\\012", "\n"),
    })
}

fn hex(text: &str) -> Option<u64> {
    u64::from_str_radix(text, 16).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps() {
        let line = "5621ef621000-5621ef635000 r-xp 00003000 fe:00 247749                     /usr/bin/a b";
        let map = parse_line(9, line).expect("well-formed");
        assert_eq!((map.start, map.len, map.page_offset), (0x5621_ef62_1000, 0x14000, 0x3000));
        assert_eq!(map.path, "/usr/bin/a b");
        assert_eq!(map.file, MappedFileId::Inode { major: 0xfe, minor: 0, inode: 247_749, generation: 0 });
        assert!(map.executable && !map.writable);
        let anon = parse_line(9, "7f9b9ac10000-7f9b9ac12000 rw-p 00000000 00:00 0 ").expect("well-formed");
        assert_eq!((anon.path.as_str(), anon.file, anon.writable), ("", MappedFileId::None, true));
        for broken in ["", "x", "1-2", "2-1 r--p 0 0:0 0", "1-2 r--p 0 0:0"] {
            assert_eq!(parse_line(9, broken), None, "{broken:?}");
        }
    }

    #[test]
    fn fields_of_status() {
        let status = "Name:\tx\nNStgid:\t4711\t12\t1\nThreads:\t3\n";
        assert_eq!(field(status, "NStgid:"), Some("1"));
        assert_eq!(field(status, "Threads:"), Some("3"));
        assert_eq!(field(status, "Gone:"), None);
    }

    #[test]
    fn this_process() {
        let own = read(Path::new("/"), std::process::id()).expect("alive");
        assert!(own.threads >= 1 && own.maps.iter().any(|m| m.executable && m.path.starts_with('/')));
        assert!(pids(Path::new("/")).expect("readable").contains(&std::process::id()));
        assert!(read(Path::new("/"), u32::MAX).is_err());
    }
}
