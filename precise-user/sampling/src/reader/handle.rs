//! The handle to the reader, in the process that samples.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use precise_common::ledger::own;
use rustc_hash::FxHashMap;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::confine::Confinement;
use super::elf::Headers;
use super::nursery::{ARGUMENT, program_can_read};
use super::protocol::{FileId, Found, JitAnswer, MAX_ADDRESSES, OrderReply, Reply, Request, WorkerOrder};
use super::wire;
use crate::error::{ErrorClass, SamplingError};

/// The most CPU time that an answer may take. Debug information of a gigabyte takes about a second.
const CPU_LIMIT: Duration = Duration::from_secs(10);
/// The most time that an answer may take, also where the worker waits for a disk or for the CPU.
const TIME_LIMIT: Duration = Duration::from_secs(60);
/// How long the nursery may take to start or to answer.
const START_LIMIT: Duration = Duration::from_secs(30);
/// How often the CPU time of a worker is looked at.
const LOOK: Timespec = Timespec { tv_sec: 0, tv_nsec: 200_000_000 };

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The file cannot be read, for this reason.
    Failed(String),
    /// The worker ended while it read the file, in this way.
    Died(String),
    /// There is no worker, for this reason.
    Unavailable(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(why) => write!(f, "{why}"),
            Self::Died(how) => write!(f, "the process that read it {how}"),
            Self::Unavailable(why) => write!(f, "the process that reads files cannot be started: {why}"),
        }
    }
}

/// How much of a file is still read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Level {
    Nothing,
    Symbols,
    Lines,
}

/// The reader: started once, it is asked until it is dropped.
#[derive(Debug)]
pub struct Reader {
    nursery: Child,
    orders: UnixStream,
    worker: Option<Worker>,
    /// Whether the worker has not been asked about any file yet.
    fresh: bool,
    /// Files that ended a worker, or could not be read.
    levels: FxHashMap<FileId, Level>,
    next: FileId,
    lost: u64,
    /// The processes of [`Self::helpers`].
    helpers: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Worker {
    socket: UnixStream,
    id: u32,
    clock: libc::clockid_t,
    confinement: Confinement,
}

/// The CPU clocks of the workers of this process, and the CPU time of those that ended.
static WORKERS: Mutex<(Vec<libc::clockid_t>, Duration)> = Mutex::new((Vec::new(), Duration::ZERO));

/// Returns the CPU time in nanoseconds that all readers of this process have taken.
pub fn cpu_ns() -> u64 {
    let (running, ended) = &*WORKERS.lock().unwrap_or_else(PoisonError::into_inner);
    let total: Duration = running.iter().map(|&clock| cpu_time(clock)).sum::<Duration>() + *ended;
    u64::try_from(total.as_nanos()).unwrap_or(u64::MAX)
}

impl Worker {
    fn new(socket: UnixStream, id: u32, clock: libc::clockid_t, confinement: Confinement) -> Self {
        WORKERS.lock().unwrap_or_else(PoisonError::into_inner).0.push(clock);
        Self { socket, id, clock, confinement }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let (running, ended) = &mut *WORKERS.lock().unwrap_or_else(PoisonError::into_inner);
        *ended += cpu_time(self.clock);
        running.retain(|clock| *clock != self.clock);
    }
}

impl Reader {
    /// Starts the nursery, with the rights that this process has now. Those that allow it to become
    /// another user or to unshare namespaces make it safer, so start it before they are given up.
    ///
    /// # Errors
    ///
    /// Returns an error if the program cannot be executed again, or if it has not called
    /// [`super::run_if_reader`].
    pub fn start() -> Result<Self, SamplingError> {
        if !program_can_read() {
            return Err(SamplingError::new(
                ErrorClass::Failed,
                "this program cannot name addresses: its main must call reader::run_if_reader first",
            ));
        }
        let sockets =
            UnixStream::pair().map_err(|error| SamplingError::failed("cannot make a socket", error))?;
        let (orders, theirs) = sockets;
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
        let nursery = command.spawn().map_err(|error| {
            SamplingError::failed("cannot execute /proc/self/exe to read files of others", error)
        })?;
        let helpers = Arc::new(AtomicU64::new(own::pack(nursery.id(), own::NONE)));
        let levels = FxHashMap::default();
        Ok(Self { nursery, orders, worker: None, fresh: true, levels, next: 0, lost: 0, helpers })
    }

    /// Returns a number for a file, which no other file gets.
    pub fn new_id(&mut self) -> FileId {
        self.next += 1;
        self.next
    }

    /// Returns how the worker is confined; starts it if there is none.
    ///
    /// # Errors
    ///
    /// Returns why there is no worker.
    pub fn confinement(&mut self) -> Result<Confinement, Trouble> {
        self.worker().map(|worker| worker.confinement)
    }

    /// Returns the process ids of the nursery and of the worker, if there is one.
    pub fn processes(&self) -> (u32, Option<u32>) {
        (self.nursery.id(), self.worker.as_ref().map(|worker| worker.id))
    }

    /// Returns the process ids of the nursery and of the worker that it forked last, packed by
    /// [`own::pack`]. The word changes when a worker is replaced.
    pub fn helpers(&self) -> Arc<AtomicU64> {
        self.helpers.clone()
    }

    /// Returns the number of workers that ended while they read a file.
    pub fn lost_workers(&self) -> u64 {
        self.lost
    }

    /// Returns the headers of a file; `None` if it is not an ELF file.
    ///
    /// # Errors
    ///
    /// Returns why they cannot be read.
    pub fn headers(&mut self, file: &File) -> Result<Option<Headers>, Trouble> {
        match self.ask(&Request::Inspect, &[file])? {
            Reply::Headers(headers) => Ok(headers),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns whether the CRC-32 of a file is `sum`.
    ///
    /// # Errors
    ///
    /// Returns why the file cannot be read.
    pub fn has_checksum(&mut self, file: &File, sum: u32) -> Result<bool, Trouble> {
        match self.ask(&Request::Checksum(sum), &[file])? {
            Reply::Checksum(same) => Ok(same),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns the symbols at virtual addresses of a file, in their order. A file whose debug
    /// information cannot be read is asked for its symbols alone. `supplement` is the file with
    /// supplementary debug information. `note` is called with what could not be read, and why.
    pub fn symbols(
        &mut self,
        (id, file): (FileId, &File),
        supplement: Option<(FileId, &File)>,
        addresses: &[u64],
        mut note: impl FnMut(&str, &Trouble),
    ) -> Vec<Found> {
        let mut found = Vec::with_capacity(addresses.len());
        for part in addresses.chunks(MAX_ADDRESSES) {
            let answer = loop {
                let level = self.levels.get(&id).copied().unwrap_or(Level::Lines);
                let (what, below) = match level {
                    Level::Lines => ("line information", Level::Symbols),
                    Level::Symbols => ("symbols", Level::Nothing),
                    Level::Nothing => break None,
                };
                let request = Request::Symbols {
                    file: id,
                    supplement: supplement.map(|(id, _)| id),
                    lines: level == Level::Lines,
                    addresses: part.to_vec(),
                };
                let files: Vec<&File> = [file].into_iter().chain(supplement.map(|(_, file)| file)).collect();
                let trouble = match self.ask(&request, &files) {
                    Ok(Reply::Symbols(symbols)) if symbols.len() == part.len() => break Some(symbols),
                    Ok(other) => unexpected(&other),
                    // Says nothing about the file.
                    Err(trouble @ Trouble::Unavailable(_)) => {
                        note(what, &trouble);
                        break None;
                    }
                    Err(trouble) => trouble,
                };
                note(what, &trouble);
                self.levels.insert(id, below);
            };
            found.extend(answer.unwrap_or_else(|| vec![Found::Failed; part.len()]));
        }
        found
    }

    /// Returns whether a file is not asked for symbols any more, which was said when it began.
    pub fn has_given_up(&self, id: FileId) -> bool {
        self.levels.get(&id) == Some(&Level::Nothing)
    }

    /// Returns the functions of a perf map at addresses, in their order.
    ///
    /// # Errors
    ///
    /// Returns why the map cannot be read.
    pub fn jit(&mut self, (map, file): (FileId, &File), addresses: &[u64]) -> Result<JitAnswer, Trouble> {
        let mut all = JitAnswer::default();
        for part in addresses.chunks(MAX_ADDRESSES) {
            if self.levels.get(&map) == Some(&Level::Nothing) {
                return Err(Trouble::Failed("it could not be read before".to_owned()));
            }
            match self.ask(&Request::Jit { map, addresses: part.to_vec() }, &[file]) {
                Ok(Reply::Jit(answer)) if answer.functions.len() == part.len() => {
                    all.functions.extend(answer.functions);
                    all.refused = answer.refused;
                }
                Ok(other) => return Err(unexpected(&other)),
                Err(trouble) => {
                    if !matches!(trouble, Trouble::Unavailable(_)) {
                        self.levels.insert(map, Level::Nothing);
                    }
                    return Err(trouble);
                }
            }
        }
        Ok(all)
    }

    /// Lets the worker close these files, which are not asked about again.
    pub fn forget(&mut self, ids: Vec<FileId>) {
        ids.iter().for_each(|id| {
            self.levels.remove(id);
        });
        // Without a worker nothing is open.
        if !ids.is_empty() && self.worker.is_some() {
            let _the_next_request_will_say = self.ask(&Request::Forget(ids), &[]);
        }
    }

    /// Asks the worker. A worker that dies is replaced and asked again, unless it was fresh:
    /// what it read before may have been the cause.
    fn ask(&mut self, request: &Request, files: &[&File]) -> Result<Reply, Trouble> {
        loop {
            self.worker()?;
            let was_fresh = std::mem::replace(&mut self.fresh, false);
            match self.ask_once(request, files) {
                Ok(Reply::Failed(why)) => return Err(Trouble::Failed(why)),
                Ok(reply) => return Ok(reply),
                Err(error) => {
                    let how = self.bury(&error);
                    self.lost += 1;
                    if was_fresh {
                        return Err(Trouble::Died(how));
                    }
                }
            }
        }
    }

    fn ask_once(&self, request: &Request, files: &[&File]) -> io::Result<Reply> {
        let worker = self.worker.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let descriptors: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
        wire::send(&worker.socket, request, &descriptors)?;
        let limit = Limit::start(Some(worker.clock), TIME_LIMIT);
        wire::receive(&worker.socket, || limit.wait(&worker.socket)).map(|(reply, _)| reply)
    }

    /// Returns the worker; starts one if there is none.
    fn worker(&mut self) -> Result<&Worker, Trouble> {
        let worker = match self.worker.take() {
            Some(worker) => worker,
            None => {
                self.fresh = true;
                self.start_worker().map_err(|error| Trouble::Unavailable(error.to_string()))?
            }
        };
        Ok(self.worker.insert(worker))
    }

    fn start_worker(&self) -> io::Result<Worker> {
        let (reply, sockets) = self.order(WorkerOrder::Start)?;
        let id = match reply {
            OrderReply::Started(id) => id,
            OrderReply::Failed(why) => return Err(io::Error::other(why)),
            OrderReply::Ended(_) => return Err(io::Error::other("it answers another order")),
        };
        self.helpers.store(own::pack(self.nursery.id(), id), Ordering::Relaxed);
        let socket = sockets.into_iter().next().ok_or_else(|| io::Error::other("it sent no socket"))?;
        let socket = UnixStream::from(OwnedFd::from(socket));
        let mut clock = 0;
        // SAFETY: the call writes a number to `clock`, which outlives it.
        let result = unsafe { libc::clock_getcpuclockid(id.cast_signed(), &raw mut clock) };
        if result != 0 {
            return Err(io::Error::from_raw_os_error(result));
        }
        let limit = Limit::start(None, START_LIMIT);
        match wire::receive(&socket, || limit.wait(&socket))? {
            (Reply::Ready(confinement), _) => Ok(Worker::new(socket, id, clock, confinement)),
            (Reply::Failed(why), _) => Err(io::Error::other(why)),
            (other, _) => Err(io::Error::other(unexpected(&other).to_string())),
        }
    }

    fn order(&self, order: WorkerOrder) -> io::Result<(OrderReply, Vec<File>)> {
        wire::send(&self.orders, &order, &[])?;
        let limit = Limit::start(None, START_LIMIT);
        wire::receive(&self.orders, || limit.wait(&self.orders))
    }

    /// Removes a worker that did not answer. Returns how it ended, in words.
    fn bury(&mut self, error: &io::Error) -> String {
        self.worker = None;
        let killed = error.kind() == io::ErrorKind::TimedOut;
        match self.order(WorkerOrder::Kill) {
            _ if killed => format!("was ended: {error}"),
            Ok((OrderReply::Ended(status), _)) => words(ExitStatus::from_raw(status)),
            _ => "ended".to_owned(),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Its CPU time is known as long as it exists.
        self.worker = None;
        // The nursery reads no bytes of others, so it can be relied on to end when nobody can give
        // it orders; it ends the worker. Killing it is for a kernel that holds it up.
        let _closed = self.orders.shutdown(std::net::Shutdown::Both);
        let begun = Instant::now();
        while begun.elapsed() < Duration::from_secs(1) {
            if !matches!(self.nursery.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        let _ended = self.nursery.kill();
    }
}

/// How long to wait for an answer.
struct Limit {
    clock: Option<libc::clockid_t>,
    cpu_at_start: Duration,
    begun: Instant,
    time: Duration,
}

impl Limit {
    fn start(clock: Option<libc::clockid_t>, time: Duration) -> Self {
        Self { clock, cpu_at_start: clock.map_or(Duration::ZERO, cpu_time), begun: Instant::now(), time }
    }

    /// Waits until there is something to read.
    fn wait(&self, socket: &UnixStream) -> io::Result<()> {
        loop {
            let mut waiting = [PollFd::new(socket, PollFlags::IN)];
            match poll(&mut waiting, Some(&LOOK)) {
                Err(rustix::io::Errno::INTR) | Ok(0) => {}
                Err(error) => return Err(error.into()),
                Ok(_) => return Ok(()),
            }
            let timed_out = |what: String| Err(io::Error::new(io::ErrorKind::TimedOut, what));
            if self.begun.elapsed() > self.time {
                return timed_out(format!("it took more than {} s", self.time.as_secs()));
            }
            let Some(clock) = self.clock else { continue };
            if cpu_time(clock).saturating_sub(self.cpu_at_start) > CPU_LIMIT {
                return timed_out(format!("it took more than {} s of CPU time", CPU_LIMIT.as_secs()));
            }
        }
    }
}

/// Returns the CPU time of another process; zero if it has ended.
fn cpu_time(clock: libc::clockid_t) -> Duration {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the call writes a time to `time`, which outlives it.
    if unsafe { libc::clock_gettime(clock, &raw mut time) } != 0 {
        return Duration::ZERO;
    }
    Duration::new(time.tv_sec.cast_unsigned(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns how a worker ended, after "the process that read it".
fn words(status: ExitStatus) -> String {
    match status.signal() {
        Some(libc::SIGABRT) => "ran out of memory or stack, or gave up at an internal fault".to_owned(),
        Some(libc::SIGSEGV | libc::SIGBUS) => "crashed, for example because its stack was full".to_owned(),
        Some(libc::SIGKILL) => "was killed, for example because memory was short".to_owned(),
        Some(signal) => format!("was ended by signal {signal}"),
        None => format!("ended with exit code {}", status.code().unwrap_or(0)),
    }
}

fn unexpected(reply: &Reply) -> Trouble {
    let kind = match reply {
        Reply::Ready(_) => "its confinement",
        Reply::Headers(_) => "headers",
        Reply::Symbols(_) => "symbols",
        Reply::Checksum(_) => "a checksum",
        Reply::Jit(_) => "functions of a perf map",
        Reply::Done => "nothing",
        Reply::Failed(why) => return Trouble::Failed(why.clone()),
    };
    Trouble::Failed(format!("the process that reads it sent {kind} instead of an answer"))
}
