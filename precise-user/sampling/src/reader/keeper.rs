//! Keeps a nursery: starts it, gives it orders, and starts another one if it was killed.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::confine::Confinement;
use super::limit::{Limit, START_LIMIT};
use super::nursery::{ARGUMENT, program_can_read};
use super::protocol::{OrderReply, WorkerOrder};
use super::wire;
use crate::error::{ErrorClass, SamplingError};

/// How often a nursery that was killed is replaced. What kills more of them is no accident.
const MAX_RESTARTS: u32 = 16;
/// The shortest time between two attempts, so that a machine without memory does not use them up.
const PAUSE: Duration = Duration::from_secs(1);
/// How long the nursery may take to end by itself.
const PATIENCE: Duration = Duration::from_secs(1);
/// How long it may take to end after it was killed.
const KILLED: Duration = Duration::from_millis(100);

/// The nursery of a reader.
#[derive(Debug)]
pub(super) struct Keeper {
    process: Child,
    orders: UnixStream,
    /// Whether the nursery was found to be gone.
    lost: bool,
    restarts: u32,
    /// When it was last replaced, or when that failed.
    tried: Option<Instant>,
    /// How the first worker was confined.
    confinement: Option<Confinement>,
    notes: Vec<String>,
}

impl Keeper {
    /// Starts the nursery, with the rights that this process has now.
    pub fn start() -> Result<Self, SamplingError> {
        if !program_can_read() {
            return Err(SamplingError::new(
                ErrorClass::Failed,
                "this program cannot name addresses: its main must call reader::run_if_reader first",
            ));
        }
        let (process, orders) = execute().map_err(|error| {
            SamplingError::failed("cannot execute /proc/self/exe to read files of others", error)
        })?;
        let notes = Vec::new();
        Ok(Self { process, orders, lost: false, restarts: 0, tried: None, confinement: None, notes })
    }

    /// Returns the process id of the nursery.
    pub fn id(&self) -> u32 {
        self.process.id()
    }

    /// Returns whether the nursery is gone. [`Self::renew`] starts another one.
    pub fn is_lost(&self) -> bool {
        self.lost
    }

    /// Gives an order. A nursery that does not answer is lost.
    pub fn order(&mut self, order: WorkerOrder) -> io::Result<(OrderReply, Vec<File>)> {
        let answer = wire::send(&self.orders, &order, &[]).and_then(|()| {
            let limit = Limit::start(None, START_LIMIT);
            wire::receive(&self.orders, || limit.wait(&self.orders))
        });
        // The nursery reads no byte of others, so nothing but a signal ends it, or holds it up.
        self.lost |= answer.is_err();
        answer
    }

    /// Replaces a nursery that is lost. The new one has the rights that this process has now, which
    /// are fewer than at the start of a run.
    ///
    /// # Errors
    ///
    /// Returns why there is none.
    pub fn renew(&mut self) -> io::Result<()> {
        may_restart(self.restarts, self.tried.map(|tried| tried.elapsed())).map_err(io::Error::other)?;
        self.tried = Some(Instant::now());
        self.restarts += 1;
        self.end(Duration::ZERO);
        (self.process, self.orders) = execute()?;
        self.lost = false;
        self.note(
            "the process that starts the readers of files was killed, and was started again".to_owned(),
        );
        Ok(())
    }

    /// Compares the confinement of a new worker with that of the first one.
    pub fn compare(&mut self, now: Confinement) {
        let first = *self.confinement.get_or_insert(now);
        let lost = first.missing_in(now);
        if !lost.is_empty() {
            self.note(format!(
                "since the process that starts the readers of files was killed, they have no {}: the run had \
                 dropped the rights that this needs",
                lost.join(", no "),
            ));
        }
    }

    /// Returns what happened to the nursery since the last call, one sentence each.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Ends the nursery, which has this time to do so by itself.
    fn end(&mut self, patience: Duration) {
        // It reads no bytes of others, so it can be relied on to end when nobody can give it
        // orders; it ends the worker. Killing it is for a kernel that holds it up.
        let _closed = self.orders.shutdown(std::net::Shutdown::Both);
        if !self.ends_within(patience) {
            let _ended = self.process.kill();
            self.ends_within(KILLED);
        }
    }

    /// Waits for the end of the nursery for this time. Returns whether it has ended.
    fn ends_within(&mut self, patience: Duration) -> bool {
        let begun = Instant::now();
        loop {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return true;
            }
            if begun.elapsed() >= patience {
                return false;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Keeper {
    fn drop(&mut self) {
        self.end(PATIENCE);
    }
}

/// Returns why a nursery that was replaced `restarts` times, the last time this long ago, is not
/// replaced.
fn may_restart(restarts: u32, last: Option<Duration>) -> Result<(), String> {
    if restarts >= MAX_RESTARTS {
        return Err(format!("it was killed more than {MAX_RESTARTS} times"));
    }
    match last {
        Some(last) if last < PAUSE => Err("it was killed twice within a second".to_owned()),
        _ => Ok(()),
    }
}

/// Executes this program as a nursery. Returns it, and the socket for its orders.
fn execute() -> io::Result<(Child, UnixStream)> {
    let (orders, theirs) = UnixStream::pair()?;
    let mut command = Command::new("/proc/self/exe");
    command
        .arg0("precise-reader")
        .arg(ARGUMENT)
        .env_clear()
        .current_dir("/")
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    // SAFETY: the closure makes one system call, and touches no memory of the parent.
    unsafe {
        command.pre_exec(|| {
            // Executing the program would give it its file capabilities again.
            rustix::thread::set_no_new_privs(true).map_err(io::Error::from)
        });
    }
    Ok((command.spawn()?, orders))
}

#[cfg(test)]
mod tests {
    use super::{Duration, MAX_RESTARTS, PAUSE, may_restart};

    #[test]
    fn restarts_are_bounded() {
        assert_eq!(may_restart(0, None), Ok(()));
        assert_eq!(may_restart(MAX_RESTARTS - 1, Some(PAUSE)), Ok(()));
        assert!(may_restart(1, Some(Duration::ZERO)).unwrap_err().contains("within a second"));
        assert!(may_restart(MAX_RESTARTS, Some(PAUSE)).unwrap_err().contains("more than 16 times"));
    }
}
