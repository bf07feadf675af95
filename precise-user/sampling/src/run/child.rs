//! Starts the command to sample, and holds it before its exec until its events are open.

use std::{
    ffi::OsString,
    io::{self, Read as _, Write as _},
    os::{
        fd::{AsFd as _, AsRawFd as _, OwnedFd},
        unix::process::{CommandExt as _, ExitStatusExt as _},
    },
    process::{Command, ExitStatus},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};
use tokio::io::unix::AsyncFd;

use super::family::Family;
use crate::{
    error::{ErrorClass, Remedy, SamplingError},
    kernel::{descriptors, readable::readable},
    rights,
};

/// Time between SIGTERM and SIGKILL. A server that writes its data out needs seconds, and the whole
/// run must end within 5 s.
pub(super) const GRACE: Duration = Duration::from_secs(3);
/// How long to wait for the end of a command that was killed.
const DEATH: Duration = Duration::from_millis(500);
/// The longest pause between two checks for the end of the command.
const PAUSE: Duration = Duration::from_millis(20);

/// A forked process that waits before its exec.
#[derive(Debug)]
pub struct Held {
    /// Its process id.
    pub pid: u32,
    name: OsString,
    release: io::PipeWriter,
    spawning: JoinHandle<io::Result<std::process::Child>>,
}

/// A command that was released to run.
#[derive(Debug)]
pub struct RunningCommand {
    child: std::process::Child,
    /// Readable when the command has ended; `None` until somebody waits for that.
    end: Option<AsyncFd<OwnedFd>>,
}

/// How an attempt to end a command came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// The command and the processes that it started have ended, by themselves or by SIGTERM.
    Ended,
    /// The command, or a process that it started, did not end in time after SIGTERM, and SIGKILL
    /// ended it.
    Killed,
    /// The command runs as another user, to whom this process may not send signals. The command
    /// continues.
    Forbidden,
    /// The command, or a process that it started, did not end in time after SIGKILL, because it
    /// waits in the kernel.
    Stuck,
}

impl Held {
    /// Forks a process that waits before its exec.
    ///
    /// `Command::spawn` returns only after the exec, so it runs on its own thread, and the child
    /// sends its process id through a pipe. If `output_apart`, its standard output is the standard
    /// error of this process.
    ///
    /// # Errors
    ///
    /// Returns an error if the command is empty, or if a process, thread or pipe cannot be created.
    pub fn start(command: &[OsString], output_apart: bool) -> Result<Self, SamplingError> {
        let failed = |error: io::Error| SamplingError::failed("cannot start the command", error);
        let Some((program, arguments)) = command.split_first() else {
            return Err(SamplingError::new(ErrorClass::Invalid, "the command after -- is missing"));
        };
        let (mut told, tell) = io::pipe().map_err(failed)?;
        let (wait, release) = io::pipe().map_err(failed)?;
        let mut new = Command::new(program);
        new.args(arguments);
        if output_apart {
            new.stdout(io::stderr().as_fd().try_clone_to_owned().map_err(failed)?);
        }
        if let Some(environment) = rights::callers_environment() {
            new.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        }
        let limits = descriptors::before();
        let (tell_fd, wait_fd, release_fd) = (tell.as_raw_fd(), wait.as_raw_fd(), release.as_raw_fd());
        // SAFETY: between fork and exec; only async-signal-safe calls on descriptors that outlive
        // the fork.
        unsafe {
            new.pre_exec(move || {
                // If the child kept its copy of the pipe's writing end, it would wait forever if
                // the parent died.
                libc::close(release_fd);
                // Programs that call select(2) rely on the low limit.
                if let Some(limits) = &limits {
                    descriptors::restore(limits)?;
                }
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
                // Looks up the command's file with the privileges of the caller.
                let child = rights::lower_all().map_err(io::Error::other).and_then(|()| new.spawn());
                // Must stay open until here: the child inherits the descriptors at the fork.
                drop((tell, wait));
                child
            })
            .map_err(failed)?;
        let mut pid = [0; 4];
        told.read_exact(&mut pid).map_err(failed)?;
        Ok(Self { pid: u32::from_ne_bytes(pid), name: program.clone(), release, spawning })
    }

    /// Lets the process exec the command.
    ///
    /// # Errors
    ///
    /// Returns an error if the program does not exist or cannot be executed.
    pub fn release(mut self) -> Result<RunningCommand, SamplingError> {
        let name = self.name.to_string_lossy().into_owned();
        let failed = |error: io::Error| {
            SamplingError::failed(format!("cannot run {name}"), error).remedy(Remedy::CheckCommand)
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
        Ok(RunningCommand { child, end: None })
    }
}

impl RunningCommand {
    /// Returns the exit status of the command when it ends.
    ///
    /// # Errors
    ///
    /// Returns the error of pidfd_open(2), epoll_ctl(2) or waitpid(2).
    pub async fn ends(&mut self) -> io::Result<ExitStatus> {
        let Self { child, end } = self;
        let end = match end {
            Some(end) => end,
            None => {
                // The child was not waited for yet, so its process id was not reused.
                let new = pidfd_open(Pid::from_child(child), PidfdFlags::empty())?;
                end.insert(readable(new)?)
            }
        };
        loop {
            let mut ready = end.readable().await?;
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            ready.clear_ready();
        }
    }

    /// Ends the command and the processes that it started with SIGTERM, then with SIGKILL if one of
    /// them still runs after `grace`. Takes little longer than `grace`.
    ///
    /// # Errors
    ///
    /// Returns the error of waitpid(2) or kill(2).
    pub fn end(mut self, grace: Duration) -> io::Result<Ending> {
        if self.child.try_wait()?.is_some() {
            return Ok(Ending::Ended);
        }
        let mut family = Family::of(self.child.id());
        let steps = [(Signal::TERM, grace, Ending::Ended), (Signal::KILL, DEATH, Ending::Killed)];
        for (signal, time, ending) in steps {
            family.grow();
            // The child was not waited for yet, so its process id was not reused.
            if self.child.try_wait()?.is_none()
                && let Err(error) = kill_process(Pid::from_child(&self.child), signal)
            {
                return if error == Errno::PERM { Ok(Ending::Forbidden) } else { Err(error.into()) };
            }
            family.signal(signal);
            if self.ends_within(time, &family)? {
                return Ok(ending);
            }
        }
        Ok(Ending::Stuck)
    }

    /// Returns whether the command and its family end within `time`. Returns as soon as they have
    /// ended.
    fn ends_within(&mut self, time: Duration, family: &Family) -> io::Result<bool> {
        let begin = Instant::now();
        let mut pause = Duration::from_millis(1);
        while self.child.try_wait()?.is_none() || !family.has_ended() {
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
    /// Returns a note for the reader of the result; `None` if the command ended as expected.
    pub fn note(self) -> Option<String> {
        let seconds = GRACE.as_secs();
        match self {
            Self::Ended => None,
            Self::Killed => Some(format!(
                "the command, or a process that it started, had not ended {seconds} s after SIGTERM, and was killed (SIGKILL)"
            )),
            Self::Forbidden => Some(
                "the command runs as another user, to whom precise may send no signal: it was not ended and goes on"
                    .to_owned(),
            ),
            Self::Stuck => Some(format!(
                "the command, or a process that it started, was killed (SIGKILL), and had not ended {} ms later: it waits \
                 for the kernel",
                DEATH.as_millis()
            )),
        }
    }
}

/// Returns the exit code of a command as a shell reports it: 128 plus the signal number after a
/// signal.
pub fn shell_code(status: ExitStatus) -> u8 {
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0));
    u8::try_from(code).unwrap_or(255)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_held_command_runs_when_it_is_released() {
        let held = Held::start(&["sh".into(), "-c".into(), "exit 23".into()], false).unwrap();
        assert!(held.pid > 0);
        let mut running = held.release().unwrap();
        assert_eq!(shell_code(running.child.wait().unwrap()), 23);
    }

    #[tokio::test]
    async fn the_end_of_a_command_is_noticed_while_something_else_is_waited_for() {
        let start = |script: &str| {
            Held::start(&["sh".into(), "-c".into(), script.into()], false).unwrap().release().unwrap()
        };
        let mut running = start("exec sleep 1000");
        tokio::select! {
            biased;
            ended = running.ends() => panic!("it ended: {ended:?}"),
            () = async {} => {}
        }
        let pid = Pid::from_child(&running.child);
        kill_process(pid, Signal::KILL).unwrap();
        assert_eq!(shell_code(running.ends().await.unwrap()), 137);
        assert_eq!(shell_code(start("exit 7").ends().await.unwrap()), 7);
    }

    #[test]
    fn a_command_is_asked_to_end_before_it_is_killed() {
        let folder = tempfile::tempdir().unwrap();
        let ready = folder.path().join("ready");
        let end = |trap: &str| {
            let script =
                format!("trap '{trap}' TERM; echo >{}; while :; do sleep 0.01; done", ready.display());
            let running =
                Held::start(&["sh".into(), "-c".into(), script.into()], false).unwrap().release().unwrap();
            // SIGTERM ends any shell that has not set its trap yet.
            while !ready.exists() {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::fs::remove_file(&ready).unwrap();
            let pid = running.child.id();
            let begin = Instant::now();
            let ending = running.end(Duration::from_millis(200)).unwrap();
            // SAFETY: signal 0 only checks whether the process exists.
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
    fn what_a_command_started_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let ids = folder.path().join("ids");
        // The shell ends at SIGTERM. Its child ignores the signal, and has a child itself.
        let inner = format!("sleep 1000 & echo $! $$ >{}; wait", ids.display());
        let script = format!("(trap '' TERM; exec sh -c '{inner}') & wait");
        let running =
            Held::start(&["sh".into(), "-c".into(), script.into()], false).unwrap().release().unwrap();
        let pids = loop {
            let text = std::fs::read_to_string(&ids).unwrap_or_default();
            if text.ends_with('\n') {
                break text;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        assert_eq!(running.end(Duration::from_millis(200)).unwrap(), Ending::Killed);
        for pid in pids.split_whitespace() {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            // Init may not have waited for the process yet.
            assert!(stat.is_empty() || stat.contains(") Z "), "process {pid} is still there: {stat}");
        }
    }

    #[test]
    fn a_command_that_has_ended_is_not_sent_signals() {
        let mut running = Held::start(&["true".into()], false).unwrap().release().unwrap();
        running.child.wait().unwrap();
        assert_eq!(running.end(Duration::ZERO).unwrap(), Ending::Ended);
    }

    #[test]
    fn a_missing_program_is_a_sentence() {
        let held = Held::start(&["/no/such/program".into()], false).unwrap();
        let failure = held.release().unwrap_err();
        assert!(failure.with_causes().contains("cannot run /no/such/program"), "{failure}");
    }
}
