//! Generates load on every CPU, from threads of the test itself.

use std::{
    io, slice,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
};

use anyhow::{Result, ensure};

/// Threads that are busy until this is dropped.
#[derive(Debug)]
pub struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    /// Starts a thread on each of these CPUs that repeats `work`.
    pub fn on(cpus: &[u32], work: impl Fn() + Clone + Send + 'static) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let threads = cpus.iter().map(|&cpu| {
            let (stop, work) = (Arc::clone(&stop), work.clone());
            std::thread::spawn(move || {
                pin(cpu);
                while !stop.load(Ordering::Relaxed) {
                    work();
                }
            })
        });
        let threads = threads.collect();
        Self { stop, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            // The thread panicked: the test harness has printed why.
            let _dead = thread.join();
        }
    }
}

/// Keeps a CPU busy for some microseconds.
pub fn spin() {
    let mut x = 1u64;
    for i in 0..10_000u64 {
        x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(i) ^ (x >> 7);
    }
    std::hint::black_box(x);
}

/// A mapping of fresh pages of 4 KiB, that nobody has touched.
pub struct Fresh {
    start: *mut u8,
    pages: usize,
}

impl Fresh {
    /// The size of a page in bytes.
    const PAGE: usize = 4096;

    /// Maps `pages` pages.
    ///
    /// # Errors
    ///
    /// Returns an error if there is not enough memory.
    pub fn map(pages: usize) -> Result<Self> {
        let rights = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        // SAFETY: a new private mapping; no other code has its address.
        let start = unsafe { libc::mmap(std::ptr::null_mut(), pages * Self::PAGE, rights, flags, -1, 0) };
        ensure!(start != libc::MAP_FAILED, "mmap: {}", io::Error::last_os_error());
        // SAFETY: the mapping from above.
        unsafe { libc::madvise(start, pages * Self::PAGE, libc::MADV_NOHUGEPAGE) };
        Ok(Self { start: start.cast(), pages })
    }

    /// Returns the pages.
    pub fn pages(&mut self) -> impl Iterator<Item = &mut [u8]> {
        // SAFETY: pages of the mapping, which are apart, and which nobody else has.
        (0..self.pages)
            .map(|page| unsafe { slice::from_raw_parts_mut(self.start.add(page * Self::PAGE), Self::PAGE) })
    }
}

impl Drop for Fresh {
    fn drop(&mut self) {
        // SAFETY: the mapping of `map`, of which nobody has a page any more.
        unsafe { libc::munmap(self.start.cast(), self.pages * Self::PAGE) };
    }
}

/// Maps `pages` fresh pages, writes to each, and unmaps them: one page fault per page.
///
/// # Errors
///
/// Returns an error if there is not enough memory.
pub fn fault(pages: usize) -> Result<()> {
    for page in Fresh::map(pages)?.pages() {
        // SAFETY: a byte of the page; volatile because nobody reads it.
        unsafe { page.as_mut_ptr().write_volatile(1) };
    }
    Ok(())
}

/// Pins this thread to a CPU. If the CPU is gone, the thread stays where it is, because it is only
/// load.
fn pin(cpu: u32) {
    // SAFETY: an all-zero CPU set is a valid, empty one; CPU_SET checks its bounds.
    unsafe {
        let mut one: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(cpu as usize, &mut one);
        libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &one);
    }
}
