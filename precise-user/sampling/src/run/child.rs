//! Starting the command to be sampled, held back until its events are open.

use std::{
    ffi::OsString,
    io::{self, Read as _, Write as _},
    os::{
        fd::AsRawFd as _,
        unix::process::{CommandExt as _, ExitStatusExt as _},
    },
    process::{Command, ExitStatus},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use crate::{
    error::{ErrorClass, Remedy, SamplingError},
    rights,
};

/// Time that a command has from SIGTERM to SIGKILL. A server that writes its data out needs seconds
/// (`docker stop` gives it 10), and a person waits for the result of the run meanwhile.
pub(super) const GRACE: Duration = Duration::from_secs(5);
/// The longest pause between two looks at whether it has ended.
const PAUSE: Duration = Duration::from_millis(20);

/// A started process that waits before its exec.
#[derive(Debug)]
pub struct Held {
    /// Its process id.
    pub pid: u32,
    name: OsString,
    release: io::PipeWriter,
    spawning: JoinHandle<io::Result<std::process::Child>>,
}

/// A released process.
#[derive(Debug)]
pub struct Running {
    child: std::process::Child,
}

/// What became of a command that was to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The command has ended, by itself or by SIGTERM.
    Ended,
    /// The command had not ended in time after SIGTERM, and SIGKILL has ended it.
    Killed,
    /// The command runs as another user now, to whom this process may send no signal. It goes on.
    Forbidden,
    /// The command has not ended in time after SIGKILL: it waits for something in the kernel.
    Stuck,
}

impl Held {
    /// Forks; the child waits.
    ///
    /// `Command::spawn` itself only returns after the exec, so it runs on a thread of its own, and
    /// the child tells its id through a pipe.
    ///
    /// # Errors
    ///
    /// When no process or pipe can be made.
    pub fn start(command: &[OsString]) -> Result<Self, SamplingError> {
        let failed = |error: io::Error| {
            SamplingError::new(ErrorClass::Failed, "cannot start the command").because(error)
        };
        let Some((program, arguments)) = command.split_first() else {
            return Err(SamplingError::new(ErrorClass::Invalid, "the command after -- is missing"));
        };
        let (mut told, tell) = io::pipe().map_err(failed)?;
        let (wait, release) = io::pipe().map_err(failed)?;
        let mut new = Command::new(program);
        new.args(arguments);
        if let Some(environment) = rights::callers_environment() {
            new.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        }
        let (tell_fd, wait_fd, release_fd) = (tell.as_raw_fd(), wait.as_raw_fd(), release.as_raw_fd());
        // SAFETY: between fork and exec; only async-signal-safe calls on descriptors that outlive
        // the fork.
        unsafe {
            new.pre_exec(move || {
                // The child's own copy of the writing end would keep it waiting should the parent
                // die.
                libc::close(release_fd);
                let pid = libc::getpid().to_ne_bytes();
                if libc::write(tell_fd, pid.as_ptr().cast(), pid.len()) != pid.len() as isize {
                    return Err(io::Error::last_os_error());
                }
                let mut go = 0u8;
                match libc::read(wait_fd, (&raw mut go).cast(), 1) {
                    1 => Ok(()),
                    _ => Err(io::Error::from_raw_os_error(libc::ECANCELED)),
                }
            });
        }
        let spawning = std::thread::Builder::new()
            .name("spawn".into())
            .spawn(move || {
                // The command's file is looked up with the rights of the caller.
                let child = rights::lower_all().map_err(io::Error::other).and_then(|()| new.spawn());
                // Kept open until here: the child inherits them at the fork.
                drop((tell, wait));
                child
            })
            .map_err(failed)?;
        let mut pid = [0; 4];
        told.read_exact(&mut pid).map_err(failed)?;
        Ok(Self { pid: u32::from_ne_bytes(pid), name: program.clone(), release, spawning })
    }

    /// Lets it exec.
    ///
    /// # Errors
    ///
    /// When there is no such program, or it may not be executed.
    pub fn release(mut self) -> Result<Running, SamplingError> {
        let name = self.name.to_string_lossy().into_owned();
        let failed = |error: io::Error| {
            SamplingError::new(ErrorClass::Failed, format!("cannot run {name}"))
                .because(error)
                .remedy(Remedy::CheckCommand)
        };
        self.release.write_all(&[1]).map_err(failed)?;
        let child = self
            .spawning
            .join()
            .map_err(|_| {
                SamplingError::new(
                    ErrorClass::Failed,
                    format!("cannot run {name}: the process that starts it died"),
                )
            })?
            .map_err(failed)?;
        Ok(Running { child })
    }
}

impl Running {
    /// Whether it has ended, and how.
    ///
    /// # Errors
    ///
    /// What waitpid(2) says.
    pub fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        self.child.try_wait()
    }

    /// Ends the command: by SIGTERM, and by SIGKILL if it is still there after `grace`. Takes at
    /// most twice `grace`.
    ///
    /// # Errors
    ///
    /// What waitpid(2) or kill(2) says.
    pub fn end(mut self, grace: Duration) -> io::Result<Ending> {
        if self.child.try_wait()?.is_some() {
            return Ok(Ending::Ended);
        }
        for (signal, ending) in [(libc::SIGTERM, Ending::Ended), (libc::SIGKILL, Ending::Killed)] {
            // SAFETY: a child that was not waited for yet, so its id is its own.
            if unsafe { libc::kill(self.child.id() as i32, signal) } != 0 {
                let error = io::Error::last_os_error();
                return match error.raw_os_error() {
                    Some(libc::EPERM) => Ok(Ending::Forbidden),
                    _ => Err(error),
                };
            }
            if self.ends_within(grace)? {
                return Ok(ending);
            }
        }
        Ok(Ending::Stuck)
    }

    /// Whether the command ends within `time`. Returns as soon as it has ended.
    fn ends_within(&mut self, time: Duration) -> io::Result<bool> {
        let begin = Instant::now();
        let mut pause = Duration::from_millis(1);
        while self.child.try_wait()?.is_none() {
            if begin.elapsed() >= time {
                return Ok(false);
            }
            std::thread::sleep(pause);
            pause = (2 * pause).min(PAUSE);
        }
        Ok(true)
    }
}

impl Ending {
    /// A note for the reader of the result, unless the command ended as it should.
    pub fn note(self) -> Option<String> {
        let seconds = GRACE.as_secs();
        match self {
            Self::Ended => None,
            Self::Killed => Some(format!(
                "the command had not ended {seconds} s after SIGTERM, and was killed (SIGKILL): what it started may go on"
            )),
            Self::Forbidden => Some(
                "the command runs as another user, to whom precise may send no signal: it was not ended and goes on"
                    .to_owned(),
            ),
            Self::Stuck => Some(format!(
                "the command was killed (SIGKILL), and had not ended {seconds} s later: it waits for the kernel"
            )),
        }
    }
}

/// The exit code of a command as a shell would give it.
pub fn shell_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(255)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_command_runs_when_it_is_released() {
        let held = Held::start(&["sh".into(), "-c".into(), "exit 23".into()]).unwrap();
        assert!(held.pid > 0);
        let mut running = held.release().unwrap();
        assert_eq!(shell_code(running.child.wait().unwrap()), 23);
    }

    #[test]
    fn a_command_is_asked_to_end_before_it_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let ready = folder.path().join("ready");
        let end = |trap: &str| {
            let script =
                format!("trap '{trap}' TERM; echo >{}; while :; do sleep 0.01; done", ready.display());
            let running = Held::start(&["sh".into(), "-c".into(), script.into()]).unwrap().release().unwrap();
            // Before the trap is set, SIGTERM ends any shell.
            while !ready.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::fs::remove_file(&ready).unwrap();
            let pid = running.child.id();
            let begin = Instant::now();
            let ending = running.end(Duration::from_millis(200)).unwrap();
            // SAFETY: signal 0 only asks whether there is such a process.
            let there = unsafe { libc::kill(pid as i32, 0) } == 0;
            assert!(!there, "{trap}: process {pid} is there after {ending:?}");
            (ending, begin.elapsed())
        };
        assert_eq!(end("exit 0").0, Ending::Ended);
        let (ending, took) = end("");
        assert_eq!(ending, Ending::Killed);
        assert!(took >= Duration::from_millis(200), "killed after {took:?}");
    }

    #[test]
    fn a_command_that_has_ended_is_not_sent_signals() {
        let mut running = Held::start(&["true".into()]).unwrap().release().unwrap();
        running.child.wait().unwrap();
        assert_eq!(running.end(Duration::ZERO).unwrap(), Ending::Ended);
    }

    #[test]
    fn a_missing_program_is_a_sentence() {
        let held = Held::start(&["/no/such/program".into()]).unwrap();
        let failure = held.release().unwrap_err();
        assert!(failure.with_causes().contains("cannot run /no/such/program"), "{failure}");
    }
}
