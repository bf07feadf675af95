//! The signals that end a run: SIGINT, SIGTERM and SIGHUP.
//!
//! The first signal ends the run, which then keeps what it has. A second one ends the process at
//! once, whatever it is doing: for that, the handler itself counts the signals.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Mutex, PoisonError};

use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::error::SamplingError;
use crate::kernel::clock::monotonic_ns;

/// Signals within this time count as one. `timeout` sends its signal to the process and then to its
/// group, systemd may send SIGHUP right after SIGTERM, and a shell that loses its terminal repeats
/// the kernel's SIGHUP.
const ONE_SIGNAL: u64 = 250_000_000;

/// When the first signal came, on the monotonic clock; 0 if none came since the run began.
static FIRST: AtomicU64 = AtomicU64::new(0);
/// Whether a run is in progress, which a first signal lets end in order.
static LISTENING: AtomicBool = AtomicBool::new(false);
/// Whether the handlers are registered. They stay for the life of the process.
static REGISTERED: Mutex<bool> = Mutex::new(false);

/// What the handler does with a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    /// The run ends in order.
    EndsRun,
    /// The signal repeats the first one.
    None,
    /// The process ends at once.
    EndsProcess,
}

/// Returns the effect of a signal at `now`. `first` is the time of the first signal, or 0.
fn effect(first: u64, now: u64, listening: bool) -> Effect {
    match first {
        0 if listening => Effect::EndsRun,
        0 => Effect::EndsProcess,
        first if now.saturating_sub(first) < ONE_SIGNAL => Effect::None,
        _ => Effect::EndsProcess,
    }
}

/// Counts a signal. Runs in the signal handler, so it may only do what signal-safety(7) allows.
fn received(signal: i32) {
    let now = monotonic_ns().max(1);
    let counted = FIRST.compare_exchange(0, now, SeqCst, SeqCst);
    if effect(counted.err().unwrap_or(0), now, LISTENING.load(SeqCst)) == Effect::EndsProcess {
        // SAFETY: async-signal-safe, and has no preconditions (_exit(2)).
        unsafe { libc::_exit(128 + signal) };
    }
}

/// Receives the signals that end a run, until it is dropped. From then on, a signal ends the
/// process at once.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    /// `None` if the process was started with SIGHUP ignored, as `nohup` does.
    hangup: Option<Signal>,
}

impl Signals {
    /// Starts to receive the signals; from now on the first one does not end the process.
    ///
    /// # Errors
    ///
    /// Returns an error if the system refuses to install the handlers.
    pub fn listen() -> Result<Self, SamplingError> {
        let failed = |error: io::Error| SamplingError::failed("cannot receive signals", error);
        let hangup = !is_ignored(libc::SIGHUP);
        let mut registered = REGISTERED.lock().unwrap_or_else(PoisonError::into_inner);
        if !*registered {
            let hangup = hangup.then_some(libc::SIGHUP);
            for signal in [libc::SIGINT, libc::SIGTERM].into_iter().chain(hangup) {
                // SAFETY: `received` only uses atomics, clock_gettime and _exit, which are
                // async-signal-safe.
                unsafe { signal_hook_registry::register(signal, move || received(signal)) }
                    .map_err(failed)?;
            }
            // A file that may not grow (RLIMIT_FSIZE) is then an error of the write, as a full disk
            // is. A handler, because the command behind `--` would inherit an ignored signal.
            // SAFETY: the handler does nothing.
            unsafe { signal_hook_registry::register(libc::SIGXFSZ, || {}) }.map_err(failed)?;
            *registered = true;
        }
        let signals = Self {
            interrupt: signal(SignalKind::interrupt()).map_err(failed)?,
            terminate: signal(SignalKind::terminate()).map_err(failed)?,
            hangup: hangup.then(|| signal(SignalKind::hangup())).transpose().map_err(failed)?,
        };
        FIRST.store(0, SeqCst);
        LISTENING.store(true, SeqCst);
        Ok(signals)
    }

    /// Returns when a signal has come.
    pub async fn any(&mut self) {
        let Self { interrupt, terminate, hangup } = self;
        let hangup = async {
            match hangup {
                Some(hangup) => hangup.recv().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
            _ = hangup => {}
        }
    }

    /// Returns whether a signal has come, for code that cannot wait.
    pub fn came(&self) -> bool {
        FIRST.load(SeqCst) != 0
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        LISTENING.store(false, SeqCst);
    }
}

/// Returns whether the process ignores a signal.
fn is_ignored(signal: i32) -> bool {
    // SAFETY: zeroes are a valid `sigaction`.
    let mut old: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: a null pointer changes nothing; the old action is written to a live value
    // (sigaction(2)).
    let done = unsafe { libc::sigaction(signal, std::ptr::null(), &raw mut old) };
    done == 0 && old.sa_sigaction == libc::SIG_IGN
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_signal_ends_the_process_and_an_echo_does_not() {
        let first = 1_000_000_000;
        assert_eq!(effect(0, first, true), Effect::EndsRun);
        for listening in [true, false] {
            assert_eq!(effect(first, first + 1, listening), Effect::None);
            assert_eq!(effect(first, first + ONE_SIGNAL, listening), Effect::EndsProcess);
        }
        assert_eq!(effect(0, first, false), Effect::EndsProcess);
    }
}
