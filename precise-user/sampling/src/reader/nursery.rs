//! The nursery: the process that gives up every right, and forks workers.

use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};

use super::confine::{self, Confinement};
use super::protocol::{OrderReply, WorkerOrder};
use super::{wire, worker};

/// The first argument of a program that is to be a nursery. Its standard input is the socket.
pub(super) const ARGUMENT: &str = "--as-reader-of-files";

/// Whether this program has called [`run_if_reader`].
static ASKED: AtomicBool = AtomicBool::new(false);

/// Becomes the reader if this process was started to be one; then it does not return.
///
/// Call it first in `main` of every program that names addresses, before any thread is started:
/// [`super::Reader::start`] executes this program again, and refuses to if it does not call this.
pub fn run_if_reader() {
    ASKED.store(true, Ordering::Relaxed);
    let mut arguments = std::env::args_os();
    if arguments.nth(1).as_deref() != Some(OsStr::new(ARGUMENT)) || arguments.next().is_some() {
        return;
    }
    // It was executed as /proc/self/exe, and would be called `exe`.
    // SAFETY: the name is a C string, which the kernel copies.
    unsafe { libc::prctl(libc::PR_SET_NAME, c"precise-reader".as_ptr()) };
    leave_ending_to_the_run();
    // SAFETY: the process that started this one made standard input a socket for this use; nothing
    // else in this process uses it.
    let socket = UnixStream::from(unsafe { OwnedFd::from_raw_fd(0) });
    let ended = serve(&socket);
    std::process::exit(i32::from(ended.is_err()));
}

/// Ignores the signals that end a run. A terminal sends them to all processes in front of it, and
/// systemd to all of a service. The run still looks up names then; this process ends with it, when
/// its socket does.
fn leave_ending_to_the_run() {
    for signal in [libc::SIGHUP, libc::SIGINT, libc::SIGQUIT, libc::SIGTERM] {
        // SAFETY: an ignored signal runs no code of this process.
        unsafe { libc::signal(signal, libc::SIG_IGN) };
    }
}

/// Returns whether the program can be executed again as the reader.
pub(super) fn program_can_read() -> bool {
    ASKED.load(Ordering::Relaxed)
}

fn serve(socket: &UnixStream) -> io::Result<()> {
    // Only the three standard descriptors are wanted here. All others are marked to be closed, but
    // a program that uses this library may have forgotten one.
    close_from(3);
    let confined = confine::confine();
    let mut worker = None;
    loop {
        let order = match wire::receive(socket, || Ok(())) {
            Ok((order, _)) => order,
            // The process that samples has ended.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                end(&mut worker);
                return Ok(());
            }
            Err(error) => {
                end(&mut worker);
                return Err(error);
            }
        };
        let status = end(&mut worker);
        match (order, &confined) {
            (WorkerOrder::Kill, _) => wire::send(socket, &OrderReply::Ended(status), &[])?,
            (WorkerOrder::Start, Err(why)) => wire::send(socket, &OrderReply::Failed(why.clone()), &[])?,
            (WorkerOrder::Start, Ok(confined)) => match start(*confined) {
                Ok((id, end)) => {
                    worker = Some(id);
                    wire::send(socket, &OrderReply::Started(id.cast_unsigned()), &[end.as_fd()])?;
                }
                Err(error) => wire::send(socket, &OrderReply::Failed(error.to_string()), &[])?,
            },
        }
    }
}

/// Forks a worker. Returns its process id and the other end of its socket.
fn start(confined: Confinement) -> io::Result<(libc::pid_t, UnixStream)> {
    let (theirs, ours) = UnixStream::pair()?;
    // SAFETY: the nursery has one thread, so the child has a whole copy of a consistent process.
    match unsafe { libc::fork() } {
        -1 => Err(io::Error::last_os_error()),
        0 => {
            drop(theirs);
            let ended = worker::run(&ours, confined);
            // SAFETY: ends this process at once, without the handlers that it has from the nursery.
            unsafe { libc::_exit(i32::from(ended.is_err())) }
        }
        worker => Ok((worker, theirs)),
    }
}

/// Kills the worker and waits for its end. Returns its status; 0 if there is none.
fn end(worker: &mut Option<libc::pid_t>) -> i32 {
    let Some(id) = worker.take() else { return 0 };
    let mut status = 0;
    // SAFETY: the worker is a child of this process that has not been waited for, so the id is its
    // own; the status outlives the call.
    unsafe {
        libc::kill(id, libc::SIGKILL);
        while libc::waitpid(id, &raw mut status, 0) == -1
            && io::Error::last_os_error().kind() == io::ErrorKind::Interrupted
        {}
    }
    status
}

/// Closes the descriptor `first` and all above.
fn close_from(first: libc::c_uint) {
    // SAFETY: the nursery has opened no descriptor yet. Linux has the call since 5.9.
    unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
}
