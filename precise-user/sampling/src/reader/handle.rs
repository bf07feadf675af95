//! The handle to the reader, in the process that samples.

mod ahead;

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt as _;
use std::process::ExitStatus;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use precise_common::ledger::own;
use rustc_hash::{FxHashMap, FxHashSet};

use super::confine::Confinement;
use super::elf::Headers;
use super::keeper::Keeper;
use super::limit::{Limit, START_LIMIT, cpu_time};
use super::protocol::{
    FileId, FoundSymbol, FoundTypes, FunctionCode, JitAnswer, MAX_ADDRESSES, OrderReply, ReaderRequest,
    Reply, Split, SplitFile, WorkerOrder,
};
use super::unwind::UnwindInfo;
use super::wire;
use crate::error::SamplingError;
pub use ahead::{MAX_AHEAD, SentAhead};
use precise_code::ReturnSite;
use precise_code::types::TypedCode;

/// The most time that an answer may take, also where the worker waits for a disk or for the CPU.
const TIME_LIMIT: Duration = Duration::from_secs(60);

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
    nursery: Keeper,
    worker: Option<Worker>,
    /// Whether the worker has not been asked about any file yet.
    fresh: bool,
    /// Files that ended a worker, or could not be read.
    levels: FxHashMap<FileId, Level>,
    /// Files whose unwind information ended a worker.
    without_unwind: FxHashSet<FileId>,
    next: FileId,
    /// The requests that were sent ahead, in the order in which the worker answers them.
    ahead: VecDeque<ahead::Ahead>,
    /// The number of the last of them.
    last_ahead: u64,
    lost: u64,
    of: ReaderUse,
    /// The processes of [`Self::helpers`].
    helpers: Arc<AtomicU64>,
}

#[derive(Debug)]
struct Worker {
    socket: UnixStream,
    id: u32,
    clock: libc::clockid_t,
    confinement: Confinement,
    of: ReaderUse,
    /// Whether its socket has room for requests that it does not answer yet.
    takes_requests_ahead: bool,
}

/// What a reader reads files for. The CPU time of each is counted on its own, because naming has a
/// budget that nothing else may use up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderUse {
    /// Names of samples.
    Names,
    /// Code and types, for views.
    Code,
}

/// The CPU clocks of the workers of this process, and the CPU time of those that ended.
struct Workers {
    running: Vec<libc::clockid_t>,
    ended: Duration,
}

impl Workers {
    const fn none() -> Mutex<Self> {
        Mutex::new(Self { running: Vec::new(), ended: Duration::ZERO })
    }

    /// Returns those of readers for this use.
    fn of(of: ReaderUse) -> MutexGuard<'static, Self> {
        static WORKERS: [Mutex<Workers>; 2] = [Workers::none(), Workers::none()];
        WORKERS[of as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the CPU time in nanoseconds that all readers of this process have taken for this use.
pub fn cpu_ns(of: ReaderUse) -> u64 {
    let workers = Workers::of(of);
    let running: Duration = workers.running.iter().map(|&clock| cpu_time(clock)).sum();
    u64::try_from((running + workers.ended).as_nanos()).unwrap_or(u64::MAX)
}

impl Worker {
    fn new(
        socket: UnixStream,
        id: u32,
        clock: libc::clockid_t,
        confinement: Confinement,
        of: ReaderUse,
    ) -> Self {
        Workers::of(of).running.push(clock);
        let buffer = rustix::net::sockopt::socket_send_buffer_size(&socket).unwrap_or(0);
        let takes_requests_ahead = buffer >= ahead::MIN_BUFFER;
        Self { socket, id, clock, confinement, of, takes_requests_ahead }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let mut workers = Workers::of(self.of);
        workers.ended += cpu_time(self.clock);
        workers.running.retain(|clock| *clock != self.clock);
    }
}

impl Reader {
    /// Starts the nursery of a reader for names, with the rights that this process has now. Those
    /// that allow it to become another user or to unshare namespaces make it safer, so start it
    /// before they are given up.
    ///
    /// # Errors
    ///
    /// Returns an error if the program cannot be executed again, or if it has not called
    /// [`super::run_if_reader`].
    pub fn start() -> Result<Self, SamplingError> {
        Self::start_for(ReaderUse::Names)
    }

    /// Starts the nursery of a reader for this use, as [`Self::start`] does.
    ///
    /// # Errors
    ///
    /// Returns the same errors.
    pub fn start_for(of: ReaderUse) -> Result<Self, SamplingError> {
        let nursery = Keeper::start()?;
        let helpers = Arc::new(AtomicU64::new(own::pack(nursery.id(), own::NONE)));
        let (levels, without_unwind) = (FxHashMap::default(), FxHashSet::default());
        let (worker, fresh) = (None, true);
        let ahead = VecDeque::new();
        let (next, last_ahead, lost) = (0, 0, 0);
        Ok(Self {
            nursery,
            worker,
            fresh,
            levels,
            without_unwind,
            next,
            ahead,
            last_ahead,
            lost,
            of,
            helpers,
        })
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
    /// [`own::pack`]. The word changes when one of them is replaced.
    pub fn helpers(&self) -> Arc<AtomicU64> {
        self.helpers.clone()
    }

    /// Returns what happened since the last call to the process that starts workers, one sentence
    /// each.
    pub fn take_notes(&mut self) -> Vec<String> {
        self.nursery.take_notes()
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
        match self.ask(&ReaderRequest::Inspect, &[file])? {
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
        match self.ask(&ReaderRequest::Checksum(sum), &[file])? {
            Reply::Checksum(same) => Ok(same),
            other => Err(unexpected(&other)),
        }
    }

    /// Returns the symbols at virtual addresses of a file, in their order. A file whose debug
    /// information cannot be read is asked for its symbols alone. `supplement` is the file with
    /// supplementary debug information, and `sent` what [`Self::ask_ahead`] returned for the same
    /// addresses. `note` is called with what could not be read, and why.
    pub fn symbols(
        &mut self,
        (id, file): (FileId, &File),
        supplement: Option<(FileId, &File)>,
        addresses: &[u64],
        sent: Option<SentAhead>,
        mut note: impl FnMut(&str, &Trouble),
    ) -> Vec<FoundSymbol> {
        let mut found = Vec::with_capacity(addresses.len());
        let mut ahead = sent.and_then(|sent| self.take_ahead(&sent));
        for part in addresses.chunks(MAX_ADDRESSES) {
            let answer = loop {
                let level = self.level(id);
                let (what, below) = match level {
                    Level::Lines => ("line information", Level::Symbols),
                    Level::Symbols => ("symbols", Level::Nothing),
                    Level::Nothing => break None,
                };
                let lines = level == Level::Lines;
                let answer = match ahead.take() {
                    Some((had_lines, answer)) if had_lines == lines => answer,
                    _ => {
                        let (request, files) = ahead::symbols_request((id, file), supplement, lines, part);
                        self.ask(&request, &files)
                    }
                };
                let trouble = match answer {
                    Ok(Reply::Symbols(packed)) => match packed.unpack(part.len()) {
                        Ok(symbols) => break Some(symbols),
                        Err(why) => Trouble::Failed(why.to_owned()),
                    },
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
            found.extend(answer.unwrap_or_else(|| vec![FoundSymbol::Failed; part.len()]));
        }
        found
    }

    /// Returns how much of a file is still read.
    fn level(&self, id: FileId) -> Level {
        self.levels.get(&id).copied().unwrap_or(Level::Lines)
    }

    /// Returns whether a file is not asked for symbols any more, which was said when it began.
    pub fn has_given_up(&self, id: FileId) -> bool {
        self.levels.get(&id) == Some(&Level::Nothing)
    }

    /// Returns the types of a function's accesses to memory, or, if `split` is [`Split::Unknown`],
    /// the name of the file that has its debug information. `supplement` is the file with
    /// supplementary debug information. A file whose debug information cannot be read is not asked
    /// again.
    ///
    /// # Errors
    ///
    /// Returns why they cannot be read.
    pub fn types(
        &mut self,
        (id, file): (FileId, &File),
        (split, supplement): (Split<'_>, Option<(FileId, &File)>),
        code: &FunctionCode<'_>,
    ) -> Result<FoundTypes, Trouble> {
        let mut all = TypedCode::default();
        for part in code.wanted.chunks(MAX_ADDRESSES) {
            if self.levels.get(&id).is_some_and(|level| *level < Level::Lines) {
                return Err(Trouble::Failed("it could not be read before".to_owned()));
            }
            let (split, second) = match split {
                Split::Unknown => (SplitFile::Unknown, None),
                Split::Found(id, file) => (SplitFile::Found(id), Some(file)),
                Split::Missing => (SplitFile::Missing, None),
            };
            let supplement = supplement.filter(|_| second.is_none());
            let request = ReaderRequest::Types {
                file: id,
                split,
                supplement: supplement.map(|(id, _)| id),
                start: code.start,
                of: code.of,
                code: code.bytes.to_vec(),
                wanted: part.to_vec(),
            };
            let unknown = split == SplitFile::Unknown;
            let second = second.or(supplement.map(|(_, file)| file));
            let files: Vec<&File> = [file].into_iter().chain(second).collect();
            match self.ask(&request, &files) {
                Ok(Reply::Types(FoundTypes::Code(answer))) if answer.instructions.len() == part.len() => {
                    all.append(answer);
                }
                Ok(Reply::Types(split @ FoundTypes::Split(_))) if unknown => return Ok(split),
                Ok(other) => return Err(unexpected(&other)),
                Err(trouble) => {
                    if !matches!(trouble, Trouble::Unavailable(_)) {
                        self.levels.insert(id, Level::Symbols);
                    }
                    return Err(trouble);
                }
            }
        }
        Ok(FoundTypes::Code(all))
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
            match self.ask(&ReaderRequest::Jit { map, addresses: part.to_vec() }, &[file]) {
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

    /// Returns the unwind information of a file, which is checked. A file that ended a worker when
    /// it was asked for this is not asked for it again. `frame_pointers`: large parts of the code
    /// without unwind information are unwound by frame pointers.
    ///
    /// # Errors
    ///
    /// Returns why the file cannot be read.
    pub fn unwind(&mut self, id: FileId, file: &File, frame_pointers: bool) -> Result<UnwindInfo, Trouble> {
        if self.without_unwind.contains(&id) {
            return Err(Trouble::Failed("it could not be read before".to_owned()));
        }
        match self.ask(&ReaderRequest::Unwind { frame_pointers }, &[file]) {
            Ok(Reply::Unwind(info)) => {
                info.check().map(|()| info).map_err(|why| Trouble::Failed(why.to_owned()))
            }
            Ok(other) => Err(unexpected(&other)),
            Err(trouble) => {
                if matches!(trouble, Trouble::Died(_)) {
                    self.without_unwind.insert(id);
                }
                Err(trouble)
            }
        }
    }

    /// Returns what is at offsets of a file, in their order; `None` beyond its end.
    ///
    /// # Errors
    ///
    /// Returns why the file cannot be read.
    pub fn return_sites(&mut self, file: &File, offsets: &[u64]) -> Result<Vec<Option<ReturnSite>>, Trouble> {
        let mut all = Vec::with_capacity(offsets.len());
        for part in offsets.chunks(MAX_ADDRESSES) {
            match self.ask(&ReaderRequest::ReturnSites(part.to_vec()), &[file])? {
                Reply::ReturnSites(sites) if sites.len() == part.len() => all.extend(sites),
                other => return Err(unexpected(&other)),
            }
        }
        Ok(all)
    }

    /// Lets the worker close these files, which are not asked about again.
    pub fn forget(&mut self, ids: Vec<FileId>) {
        ids.iter().for_each(|id| {
            self.levels.remove(id);
            self.without_unwind.remove(id);
        });
        // Without a worker nothing is open.
        if !ids.is_empty() && self.worker.is_some() {
            let _the_next_request_will_say = self.ask(&ReaderRequest::Forget(ids), &[]);
        }
    }

    /// Asks the worker. A worker that dies is replaced and asked again, unless it was fresh:
    /// what it read before may have been the cause. So is one that ended with the nursery, as often
    /// as the nursery is replaced.
    fn ask(&mut self, request: &ReaderRequest, files: &[&File]) -> Result<Reply, Trouble> {
        loop {
            // The worker answers in the order of the requests.
            self.receive_ahead(self.ahead.len());
            self.worker()?;
            let was_fresh = std::mem::replace(&mut self.fresh, false);
            match self.ask_once(request, files) {
                Ok(Reply::Failed(why)) => return Err(Trouble::Failed(why)),
                Ok(reply) => return Ok(reply),
                Err(error) => {
                    let how = self.lose(&error);
                    if self.nursery.is_lost() {
                        // The worker ended with its nursery, which says nothing about the file.
                        continue;
                    }
                    if was_fresh {
                        return Err(Trouble::Died(how));
                    }
                }
            }
        }
    }

    fn ask_once(&self, request: &ReaderRequest, files: &[&File]) -> io::Result<Reply> {
        let worker = self.send(request, files)?;
        let limit = Limit::start(Some(worker.clock), TIME_LIMIT);
        wire::receive(&worker.socket, || limit.wait(&worker.socket)).map(|(reply, _)| reply)
    }

    /// Sends a request to the worker, and returns the worker.
    fn send(&self, request: &ReaderRequest, files: &[&File]) -> io::Result<&Worker> {
        let worker = self.worker.as_ref().ok_or(io::ErrorKind::NotConnected)?;
        let descriptors: Vec<_> = files.iter().map(|file| file.as_fd()).collect();
        wire::send(&worker.socket, request, &descriptors)?;
        Ok(worker)
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

    fn start_worker(&mut self) -> io::Result<Worker> {
        let (reply, sockets) = match self.nursery.order(WorkerOrder::Start) {
            Err(_) if self.nursery.is_lost() => {
                self.nursery.renew()?;
                self.helpers.store(own::pack(self.nursery.id(), own::NONE), Ordering::Relaxed);
                self.nursery.order(WorkerOrder::Start)?
            }
            answer => answer?,
        };
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
            (Reply::Ready(confinement), _) => {
                self.nursery.compare(confinement);
                Ok(Worker::new(socket, id, clock, confinement, self.of))
            }
            (Reply::Failed(why), _) => Err(io::Error::other(why)),
            (other, _) => Err(io::Error::other(unexpected(&other).to_string())),
        }
    }

    /// Removes a worker that did not answer, and counts it. Returns how it ended, in words.
    fn lose(&mut self, error: &io::Error) -> String {
        self.worker = None;
        self.lost += 1;
        let killed = error.kind() == io::ErrorKind::TimedOut;
        match self.nursery.order(WorkerOrder::Kill) {
            _ if killed => format!("was ended: {error}"),
            Ok((OrderReply::Ended(status), _)) => words(ExitStatus::from_raw(status)),
            _ => "ended".to_owned(),
        }
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Its CPU time is known as long as it exists, and it ends with the nursery.
        self.worker = None;
    }
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
        Reply::Types(_) => "types",
        Reply::Checksum(_) => "a checksum",
        Reply::Jit(_) => "functions of a perf map",
        Reply::Unwind(_) => "unwind information",
        Reply::ReturnSites(_) => "return addresses",
        Reply::Done => "nothing",
        Reply::Failed(why) => return Trouble::Failed(why.clone()),
    };
    Trouble::Failed(format!("the process that reads it sent {kind} instead of an answer"))
}
