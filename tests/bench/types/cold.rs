//! Memory that becomes cold while a program works.
//!
//! The page faults of a program are exact samples, each with its instruction and its data address,
//! but a program touches most of its pages once. A page that was written to the swap area faults
//! again when the next instruction loads from it or stores to it, so that a program whose pages are
//! written there again and again is sampled like by PEBS or IBS, on any machine.

use std::fs;
use std::io;
use std::os::fd::{AsRawFd as _, FromRawFd as _, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

/// The size of the swap area in MiB. The programs have a few hundred.
const SWAP: u64 = 1024;
/// The time from one page-out to the next.
const PERIOD: Duration = Duration::from_millis(20);

/// A swap area in a file, which is switched off when this is dropped.
#[derive(Debug)]
pub struct SwapFile(PathBuf);

impl SwapFile {
    /// Makes a swap area in a folder, and switches it on.
    ///
    /// # Errors
    ///
    /// Returns an error without the rights, or if the file system of the folder takes none.
    pub fn new(folder: &Path) -> Result<Self> {
        let path = folder.join("swap");
        let steps =
            format!("umask 077 && fallocate -l {SWAP}M swap && mkswap -q swap && exec swapon -d swap");
        let made = Command::new("sh").args(["-ec", &steps]).current_dir(folder).output()?;
        let said = String::from_utf8_lossy(&made.stderr);
        ensure!(
            made.status.success(),
            "no swap area can be made in {} (set TMPDIR to a folder on a disk): {said}",
            folder.display()
        );
        Ok(Self(path))
    }
}

impl Drop for SwapFile {
    fn drop(&mut self) {
        // A file that is removed before would stay in use.
        let switched_off = Command::new("swapoff").arg(&self.0).status();
        if !switched_off.is_ok_and(|status| status.success()) || fs::remove_file(&self.0).is_err() {
            eprintln!("cannot switch off and remove {}", self.0.display());
        }
    }
}

/// Does something while the memory of all processes that run a binary is paged out again and again.
///
/// # Errors
///
/// Returns the error of what is done, or one if nothing was paged out.
pub fn while_cold<T>(binary: &Path, work: impl FnOnce() -> Result<T>) -> Result<T> {
    let binary = binary.canonicalize()?;
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let pager = scope.spawn(|| {
            let mut bytes = 0;
            while !ended.load(Ordering::Relaxed) {
                std::thread::sleep(PERIOD);
                // A process that has ended meanwhile has no memory.
                bytes += processes(&binary).into_iter().filter_map(|pid| page_out(pid).ok()).sum::<u64>();
            }
            bytes
        });
        let done = work();
        ended.store(true, Ordering::Relaxed);
        let bytes = pager.join().ok().context("the thread that pages out has panicked")?;
        let done = done?;
        ensure!(bytes > 0, "no memory was paged out");
        Ok(done)
    })
}

/// Returns the processes that run a binary.
fn processes(binary: &Path) -> Vec<libc::pid_t> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|entry| fs::read_link(entry.path().join("exe")).is_ok_and(|exe| exe == binary))
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect()
}

/// Pages out what a process can read. Returns the bytes that the kernel went over.
fn page_out(pid: libc::pid_t) -> io::Result<u64> {
    // SAFETY: The call takes two numbers, and returns a descriptor that is ours, or -1.
    let opened = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let opened = i32::try_from(opened).ok().filter(|fd| *fd >= 0).ok_or_else(io::Error::last_os_error)?;
    // SAFETY: See above.
    let process = unsafe { OwnedFd::from_raw_fd(opened) };
    let mut bytes = 0;
    for line in fs::read_to_string(format!("/proc/{pid}/maps"))?.lines() {
        let range = line.split_once(' ').filter(|(_, rest)| rest.starts_with('r') && !rest.contains("[v"));
        let bounds = range.and_then(|(range, _)| range.split_once('-'));
        let number = |text| usize::from_str_radix(text, 16).ok();
        let Some((start, end)) = bounds.and_then(|(from, to)| Some((number(from)?, number(to)?))) else {
            continue;
        };
        let part = libc::iovec { iov_base: start as *mut libc::c_void, iov_len: end - start };
        // SAFETY: The kernel reads one `iovec`, whose address is one of the other process: nothing
        // here is read or written. Paging out changes no contents.
        let advised = unsafe {
            libc::syscall(
                libc::SYS_process_madvise,
                process.as_raw_fd(),
                &raw const part,
                1,
                libc::MADV_PAGEOUT,
                0,
            )
        };
        // Locked and special mappings are refused.
        bytes += u64::try_from(advised).unwrap_or(0);
    }
    Ok(bytes)
}
