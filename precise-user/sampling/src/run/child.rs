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
};

use crate::{
    error::{Class, Failure},
    rights,
};

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

impl Held {
    /// Forks; the child waits.
    ///
    /// `Command::spawn` itself only returns after the exec, so it runs on a thread of its own, and the child tells its id
    /// through a pipe.
    ///
    /// # Errors
    ///
    /// When no process or pipe can be made.
    pub fn start(command: &[OsString]) -> Result<Self, Failure> {
        let failed =
            |error: io::Error| Failure::new(Class::Failed, format!("the command cannot be started: {error}"));
        let Some((program, arguments)) = command.split_first() else {
            return Err(Failure::new(Class::Usage, "there is no command behind --"));
        };
        let (mut told, tell) = io::pipe().map_err(failed)?;
        let (wait, release) = io::pipe().map_err(failed)?;
        let mut new = Command::new(program);
        new.args(arguments);
        if let Some(environment) = rights::callers_environment() {
            new.env_clear().envs(environment.iter().map(|(name, value)| (name, value)));
        }
        let (tell_fd, wait_fd, release_fd) = (tell.as_raw_fd(), wait.as_raw_fd(), release.as_raw_fd());
        // SAFETY: between fork and exec; only async-signal-safe calls on descriptors that outlive the fork.
        unsafe {
            new.pre_exec(move || {
                // The child's own copy of the writing end would keep it waiting should the parent die.
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
    pub fn release(mut self) -> Result<Running, Failure> {
        let name = self.name.to_string_lossy().into_owned();
        let failed = |error: io::Error| {
            Failure::new(Class::Failed, format!("{name} cannot be run: {error}"))
                .advise("Check the command behind -- and its path.")
        };
        self.release.write_all(&[1]).map_err(failed)?;
        let child = self
            .spawning
            .join()
            .map_err(|_| {
                Failure::new(Class::Failed, format!("{name} cannot be run: the starting thread died"))
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

    /// Asks it to end (SIGTERM) and waits for it.
    ///
    /// # Errors
    ///
    /// What waitpid(2) says.
    pub fn end(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.child.try_wait()? {
            return Ok(status);
        }
        // SAFETY: a child that was not waited for yet, so its id is its own.
        unsafe { libc::kill(self.child.id() as i32, libc::SIGTERM) };
        self.child.wait()
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
    fn a_missing_program_is_a_sentence() {
        let held = Held::start(&["/no/such/program".into()]).unwrap();
        let failure = held.release().unwrap_err();
        assert!(failure.what.contains("/no/such/program cannot be run"), "{failure}");
    }
}
