//! The memory of other processes.

use anyhow::{Context as _, Result};

/// Returns the memory of a process in bytes: what it has allocated, and the copies of files that it
/// has in memory. Pages of files are not part of it, because the kernel takes them back on demand.
///
/// # Errors
///
/// Returns an error if the process has ended.
pub fn of(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kib = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let found = kib("RssAnon:").zip(kib("RssShmem:")).context("status has RssAnon and RssShmem")?;
    Ok((found.0 + found.1) << 10)
}

/// Returns the most memory that a process has taken so far, in bytes, with the pages of files.
///
/// # Errors
///
/// Returns an error if the process has ended.
pub fn peak(pid: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next());
    Ok(kib.context("no VmHWM")?.parse::<u64>()? << 10)
}

/// Returns the sum of [`of`] over the descendants of a process: those that exist now.
pub fn of_children(pid: u32) -> u64 {
    children(pid).into_iter().map(|child| of(child).unwrap_or(0) + of_children(child)).sum()
}

/// Returns the children of all threads of a process. Empty if the process has ended.
pub fn children(pid: u32) -> Vec<u32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    tasks
        .filter_map(|task| std::fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| list.split_whitespace().filter_map(|id| id.parse().ok()).collect::<Vec<u32>>())
        .collect()
}
