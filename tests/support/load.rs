//! Generates load on every CPU, from threads of the test itself.

use std::{
    io,
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

/// Maps `pages` fresh pages, writes to each, and unmaps them: one page fault per page.
///
/// # Errors
///
/// Returns an error if there is not enough memory.
pub fn fault(pages: usize) -> Result<()> {
    let length = pages * 4096;
    // SAFETY: a new private mapping of the test's own, unmapped below; no other code has its
    // address.
    unsafe {
        let start = libc::mmap(
            std::ptr::null_mut(),
            length,
            libc::PROT_READ | libc::PROT_WRITE,
            libc::MAP_PRIVATE | libc::MAP_ANONYMOUS,
            -1,
            0,
        );
        ensure!(start != libc::MAP_FAILED, "mmap: {}", io::Error::last_os_error());
        libc::madvise(start, length, libc::MADV_NOHUGEPAGE);
        for page in 0..pages {
            start.cast::<u8>().add(page * 4096).write_volatile(1);
        }
        libc::munmap(start, length);
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
