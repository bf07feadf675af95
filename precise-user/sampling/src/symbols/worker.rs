//! The thread that owns the symbolization library, and the handle to it.
//!
//! The library is bound to one thread. Queries are sent to it in batches. The answers come with
//! their own table of names, which the caller's thread merges into the table of the capture.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, OnceLock};

use anyhow::Context;

use super::SymbolOptions;
use super::ahead::AskedAhead;
use super::code_file::{CodeFile, ContentId, FileUnwinding};
use super::mapping::Mapped;
use super::query::{CodeQuery, DataQuery};
use super::resolve::BatchResolver;
use crate::reader::{MAX_AHEAD, Reader};
use crate::rights;
use precise_code::ReturnSite;
use precise_model::{CodeLocation, DataLocation, Frame, Name, NameId, Names, Reason};

/// Maximum number of waiting requests: enough for all files that a process maps at its start.
const QUEUE: usize = 256;

enum Request {
    ForgetUnused,
    /// The sender is dropped when the files are open.
    Open(Vec<Mapped>, Sender<()>),
    Code(Vec<CodeQuery>, Sender<Reply<CodeLocation>>),
    Data(Vec<DataQuery>, Sender<Reply<DataLocation>>),
    CodeFiles(Vec<Mapped>, Sender<Vec<Result<CodeFile, Reason>>>),
    ReturnSites(Vec<CodeQuery>, Sender<Vec<Option<ReturnSite>>>),
    Unwind(ContentId, bool, Sender<FileUnwinding>),
    /// The symbolizer is dropped, though others may still have a way to ask.
    End,
}

/// A way to ask for the files of code, for another thread. It outlives the symbolizer, and then has
/// no answers.
#[derive(Clone, Debug)]
pub struct CodeFiles(SyncSender<Request>);

impl CodeFiles {
    /// Returns the files of mappings, in their order. Waits for the answer; `None`: there is nobody
    /// to answer any more.
    pub fn find(&self, mapped: Vec<Mapped>) -> Option<Vec<Result<CodeFile, Reason>>> {
        let (reply, answer) = channel();
        self.0.send(Request::CodeFiles(mapped, reply)).ok()?;
        answer.recv().ok()
    }

    /// Returns the unwind information of a file; `None`: as in [`Self::find`]. `frame_pointers`: as
    /// in [`Reader::unwind`].
    pub fn unwind(&self, content: ContentId, frame_pointers: bool) -> Option<FileUnwinding> {
        let (reply, answer) = channel();
        self.0.send(Request::Unwind(content, frame_pointers, reply)).ok()?;
        answer.recv().ok()
    }
}

#[derive(Debug)]
struct Reply<T> {
    names: Names,
    locations: Vec<T>,
    notes: Vec<String>,
}

/// Queries that were sent, and whose answers nobody has waited for.
#[derive(Debug)]
pub struct SentQueries<P, T> {
    /// The places that each batch asks about, and where its answer will come.
    batches: Vec<SentBatch<P, T>>,
}

type SentBatch<P, T> = (Vec<P>, Option<Receiver<Reply<T>>>);

/// Queries for code, by whether the address is the kernel's, and the address.
pub type SentCode = SentQueries<(bool, u64), CodeLocation>;
/// Queries for data, by address.
pub type SentData = SentQueries<u64, DataLocation>;

impl<P, T> SentQueries<P, T> {
    /// Returns the number of queries.
    pub fn len(&self) -> usize {
        self.batches.iter().map(|(places, _)| places.len()).sum()
    }
}

/// Maximum number of notes that wait for [`Symbolizer::take_notes`]: every program that is started
/// can be the reason for one.
const MAX_KEPT: usize = 256;

/// Maximum number of queries that are sent at once: what others ask the thread meanwhile, such as
/// for unwind tables of a new program, is answered before the next ones.
const BATCH: usize = 512;

/// Whether to wait until files are open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Does not block.
    No,
    /// Returns when those that could be opened are open.
    UntilOpen,
}

/// Names addresses, on its own thread, which ends its work when this is dropped.
#[derive(Debug)]
pub struct Symbolizer {
    requests: SyncSender<Request>,
    /// Disconnected when the thread has let go of the files and of their reader.
    ended: Receiver<()>,
    notes: Vec<String>,
    /// Number of notes that found no room in `notes`.
    left_out: u64,
    not_opened: AtomicU64,
    died: OnceLock<()>,
}

impl Symbolizer {
    /// Starts the thread, which has `reader` read the files.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread cannot be started.
    pub fn spawn(options: SymbolOptions, reader: Reader) -> anyhow::Result<Self> {
        let (requests, inbox) = sync_channel(QUEUE);
        let (ending, ended) = channel();
        std::thread::Builder::new()
            .name("symbols".into())
            .spawn(move || rights::raised_for_names(|| serve(&options, reader, &inbox, ending)))
            .context("cannot start the symbolizer thread")?;
        Ok(Self {
            requests,
            ended,
            notes: Vec::new(),
            left_out: 0,
            not_opened: AtomicU64::new(0),
            died: OnceLock::new(),
        })
    }

    /// Returns a way to ask for the files of code.
    pub fn code_files(&self) -> CodeFiles {
        CodeFiles(self.requests.clone())
    }

    /// Opens files while the processes that map them exist. Files that do not fit in the queue are
    /// dropped, and counted in [`Self::not_opened`].
    pub fn open_early(&self, files: Vec<Mapped>, wait: Wait) {
        if files.is_empty() {
            return;
        }
        let (opened, all) = channel();
        let request = Request::Open(files, opened);
        if let Err(TrySendError::Full(Request::Open(files, _))) = self.requests.try_send(request) {
            self.not_opened.fetch_add(files.len() as u64, Ordering::Relaxed);
        }
        if wait == Wait::UntilOpen {
            // An error says that the request is done with, or that there is no thread any more.
            let _done = all.recv();
        }
    }

    /// Forgets the files and answers that nobody asked for since the last call. Does not block: if
    /// the queue is full, the next call does it.
    pub fn forget_unused(&self) {
        let _full_or_dead = self.requests.try_send(Request::ForgetUnused);
    }

    /// Returns the number of files that [`Self::open_early`] dropped.
    pub fn not_opened(&self) -> u64 {
        self.not_opened.load(Ordering::Relaxed)
    }

    /// Returns the code locations of `queries`, in their order. Waits for the answers.
    pub fn resolve_code(&mut self, names: &mut Names, queries: Vec<CodeQuery>) -> Vec<CodeLocation> {
        self.resolve_code_while(names, &mut queries.into_iter(), || true)
    }

    /// Returns the code locations of the first of `queries`, in their order, and leaves the others
    /// from when `go_on` says so: it is asked before each batch. Waits for the answers.
    pub fn resolve_code_while(
        &mut self,
        names: &mut Names,
        queries: &mut impl Iterator<Item = CodeQuery>,
        go_on: impl FnMut() -> bool,
    ) -> Vec<CodeLocation> {
        self.locate_while(names, queries, go_on, (code_place, failed_code), Request::Code, IdMap::code)
    }

    /// Returns what the code says about the first of these return addresses, in their order, and
    /// leaves the others as [`Self::resolve_code_while`] does; `None` if there is no file to tell,
    /// as for the code of a JIT compiler. Each query is for the last byte before the address. Waits
    /// for the answers.
    pub fn return_sites_while(
        &mut self,
        queries: &mut impl Iterator<Item = CodeQuery>,
        go_on: impl FnMut() -> bool,
    ) -> Vec<Option<ReturnSite>> {
        let mut sites = Vec::with_capacity(queries.size_hint().0);
        self.ask_in_batches(
            queries,
            go_on,
            |_query| None,
            Request::ReturnSites,
            |_symbols, asked, answer| {
                sites.extend(answer.unwrap_or(asked));
            },
        );
        sites
    }

    /// Returns the data locations of `queries`, in their order. Waits for the answers.
    pub fn resolve_data(&mut self, names: &mut Names, queries: Vec<DataQuery>) -> Vec<DataLocation> {
        self.resolve_data_while(names, &mut queries.into_iter(), || true)
    }

    /// Returns the data locations of the first of `queries`, in their order, and leaves the others
    /// as [`Self::resolve_code_while`] does. Waits for the answers.
    pub fn resolve_data_while(
        &mut self,
        names: &mut Names,
        queries: &mut impl Iterator<Item = DataQuery>,
        go_on: impl FnMut() -> bool,
    ) -> Vec<DataLocation> {
        self.locate_while(names, queries, go_on, (data_place, failed_data), Request::Data, IdMap::data)
    }

    /// Returns the locations of the first of `queries`, as [`Self::resolve_code_while`] does.
    /// `failed` makes the location of a query without an answer, of its `place`; `in_table` gives a
    /// location the ids of the caller's table.
    fn locate_while<Q, P, T>(
        &mut self,
        names: &mut Names,
        queries: &mut impl Iterator<Item = Q>,
        go_on: impl FnMut() -> bool,
        (place, failed): (impl Fn(&Q) -> P, impl Fn(P) -> T),
        request: impl Fn(Vec<Q>, Sender<Reply<T>>) -> Request,
        in_table: impl Fn(&IdMap, T) -> T,
    ) -> Vec<T> {
        let mut locations = Vec::with_capacity(queries.size_hint().0);
        self.ask_in_batches(queries, go_on, place, request, |symbols, places, reply| {
            symbols.keep(names, &mut locations, (places, &failed), reply, &in_table);
        });
        locations
    }

    /// Sends queries for code, for [`Self::receive_code`]. Waits only while the queue is full.
    pub fn send_code(&self, queries: Vec<CodeQuery>) -> SentCode {
        self.send_all(queries, code_place, Request::Code)
    }

    /// Sends queries for data, for [`Self::receive_data`], as [`Self::send_code`] does.
    pub fn send_data(&self, queries: Vec<DataQuery>) -> SentData {
        self.send_all(queries, data_place, Request::Data)
    }

    /// Returns the answers to queries that were sent, in their order. Waits for them.
    pub fn receive_code(&mut self, names: &mut Names, sent: SentCode) -> Vec<CodeLocation> {
        self.receive_all(names, sent, failed_code, IdMap::code)
    }

    /// Returns the answers to queries that were sent, in their order. Waits for them.
    pub fn receive_data(&mut self, names: &mut Names, sent: SentData) -> Vec<DataLocation> {
        self.receive_all(names, sent, failed_data, IdMap::data)
    }

    fn send_all<Q, P, T>(
        &self,
        queries: Vec<Q>,
        place: impl Fn(&Q) -> P,
        request: impl Fn(Vec<Q>, Sender<Reply<T>>) -> Request,
    ) -> SentQueries<P, T> {
        let mut queries = queries.into_iter();
        let batches = std::iter::from_fn(|| {
            let batch: Vec<Q> = queries.by_ref().take(BATCH).collect();
            (!batch.is_empty()).then(|| {
                let places = batch.iter().map(&place).collect();
                (places, self.send(|reply| request(batch, reply)))
            })
        });
        SentQueries { batches: batches.collect() }
    }

    fn receive_all<P, T>(
        &mut self,
        names: &mut Names,
        sent: SentQueries<P, T>,
        failed: impl Fn(P) -> T,
        in_table: impl Fn(&IdMap, T) -> T,
    ) -> Vec<T> {
        let mut locations = Vec::with_capacity(sent.len());
        for (places, answer) in sent.batches {
            let reply = self.receive(answer);
            self.keep(names, &mut locations, (places, &failed), reply, &in_table);
        }
        locations
    }

    /// Adds the locations of an answer, with the ids of the caller's table. Without an answer,
    /// those of the places have failed.
    fn keep<P, T>(
        &mut self,
        names: &mut Names,
        locations: &mut Vec<T>,
        (places, failed): (Vec<P>, &impl Fn(P) -> T),
        reply: Option<Reply<T>>,
        in_table: &impl Fn(&IdMap, T) -> T,
    ) {
        let Some(reply) = reply else { return locations.extend(places.into_iter().map(failed)) };
        let map = merge(names, &reply.names);
        self.keep_notes(reply.notes);
        locations.extend(reply.locations.into_iter().map(|location| in_table(&map, location)));
    }

    /// Returns the problems since the last call, one sentence each, as notes for the capture.
    pub fn take_notes(&mut self) -> Vec<String> {
        let mut notes = std::mem::take(&mut self.notes);
        let left_out = std::mem::take(&mut self.left_out);
        if left_out > 0 {
            notes.push(format!("{left_out} more notes about files that cannot be used are left out"));
        }
        notes
    }

    /// Lets the thread end when it has answered everything, for which dropping this waits.
    pub fn begin_to_end(&self) {
        // An error says that the thread has died.
        let _dead = self.requests.send(Request::End);
    }

    /// Asks `queries` in batches of [`BATCH`] while `go_on` says so. Each is sent before `take` is
    /// given the answer to the last one, so that the thread has work meanwhile. `take` also gets
    /// the `fact` of each query, and no answer if the thread has died.
    fn ask_in_batches<Q, F, T>(
        &mut self,
        queries: &mut impl Iterator<Item = Q>,
        mut go_on: impl FnMut() -> bool,
        fact: impl Fn(&Q) -> F,
        request: impl Fn(Vec<Q>, Sender<T>) -> Request,
        mut take: impl FnMut(&mut Self, Vec<F>, Option<T>),
    ) {
        let mut before = None;
        loop {
            let batch: Vec<Q> = if go_on() { queries.take(BATCH).collect() } else { Vec::new() };
            let next = (!batch.is_empty()).then(|| {
                let facts = batch.iter().map(&fact).collect();
                (facts, self.send(|reply| request(batch, reply)))
            });
            let last = next.is_none();
            if let Some((facts, sent)) = std::mem::replace(&mut before, next) {
                let answer = self.receive(sent);
                take(self, facts, answer);
            }
            if last {
                return;
            }
        }
    }

    /// Sends a request. Returns where its answer will come; `None` if the thread has died.
    fn send<T>(&self, request: impl FnOnce(Sender<T>) -> Request) -> Option<Receiver<T>> {
        let (reply, answer) = channel();
        self.requests.send(request(reply)).ok()?;
        Some(answer)
    }

    /// Waits for an answer; `None` if the thread has died, which the first note says.
    fn receive<T>(&mut self, sent: Option<Receiver<T>>) -> Option<T> {
        let answer = sent.and_then(|answer| answer.recv().ok());
        if answer.is_none() && self.died.set(()).is_ok() {
            self.notes.push("the symbolizer failed: names are missing from here on".to_owned());
        }
        answer
    }

    fn keep_notes(&mut self, notes: Vec<String>) {
        for note in notes {
            if self.notes.contains(&note) {
                continue;
            }
            if self.notes.len() < MAX_KEPT {
                self.notes.push(note);
            } else {
                self.left_out += 1;
            }
        }
    }
}

impl Drop for Symbolizer {
    fn drop(&mut self) {
        // Errors say that the thread has died, which was already reported as missing names.
        self.begin_to_end();
        let _dead = self.ended.recv();
    }
}

/// Answers until the end. `ending` is dropped when files and reader are let go of; after that the
/// thread frees the names of a whole run, for which nobody waits.
fn serve(options: &SymbolOptions, reader: Reader, inbox: &Receiver<Request>, ending: Sender<()>) {
    let mut resolver = BatchResolver::new(options, reader);
    // Requests that the reader has begun with, in the order of their arrival.
    let mut begun = VecDeque::new();
    loop {
        if begun.is_empty() {
            let Ok(request) = inbox.recv() else { break };
            begun.push_back(begin(&mut resolver, request));
        }
        // What is not about code asks the reader itself, which answers in the order of requests.
        while begun.len() < MAX_AHEAD && begun.iter().all(|(request, _)| matches!(request, Request::Code(..)))
        {
            let Ok(request) = inbox.try_recv() else { break };
            begun.push_back(begin(&mut resolver, request));
        }
        let Some((request, ahead)) = begun.pop_front() else { break };
        let mut names = Names::default();
        // A send fails only if the caller is gone, and then no answer is needed.
        match request {
            Request::ForgetUnused => resolver.forget_unused(),
            Request::Open(files, _opened) => files.iter().for_each(|file| resolver.open(file)),
            Request::Code(queries, reply) => {
                let locations = resolver.code(&mut names, &queries, ahead);
                let _ = reply.send(Reply { names, locations, notes: resolver.take_notes() });
            }
            Request::CodeFiles(mapped, reply) => {
                let _ = reply.send(mapped.iter().map(|mapped| resolver.code_file(mapped)).collect());
            }
            Request::Unwind(content, frame_pointers, reply) => {
                let _ = reply.send(resolver.unwind_info(content, frame_pointers));
            }
            Request::ReturnSites(queries, reply) => {
                let _ = reply.send(resolver.return_sites(&queries));
            }
            Request::End => break,
            Request::Data(queries, reply) => {
                let locations = resolver.data(&mut names, &queries);
                let _ = reply.send(Reply { names, locations, notes: resolver.take_notes() });
            }
        }
    }
    let BatchResolver { files, reader, .. } = resolver;
    drop((files, reader, ending));
}

/// Returns a request, after the reader has begun with what it asks for.
fn begin(resolver: &mut BatchResolver, request: Request) -> (Request, Option<AskedAhead>) {
    let ahead = match &request {
        Request::Code(queries, _) => resolver.ask_ahead(queries),
        _ => None,
    };
    (request, ahead)
}

/// Returns what a query asks about, for [`failed_code`].
fn code_place(query: &CodeQuery) -> (bool, u64) {
    (query.kernel, query.address)
}

/// Returns what a query asks about, for [`failed_data`].
fn data_place(query: &DataQuery) -> u64 {
    query.address
}

/// The ids of a reply's names in the caller's table, by their id in the reply.
struct IdMap(Arc<[NameId]>);

fn merge(into: &mut Names, from: &Names) -> IdMap {
    IdMap((0..from.len() as u32).map(|id| into.intern(from.get(NameId(id)))).collect())
}

impl IdMap {
    fn id(&self, id: NameId) -> NameId {
        self.0.get(id.0 as usize).copied().unwrap_or_default()
    }

    fn name(&self, name: Name) -> Name {
        match name {
            Name::Known(id) => Name::Known(self.id(id)),
            unknown @ Name::Unknown(_) => unknown,
        }
    }

    fn code(&self, mut location: CodeLocation) -> CodeLocation {
        location.module = self.name(location.module);
        location.build_id = self.id(location.build_id);
        location.function = self.name(location.function);
        location.source = self.name(location.source);
        for frame in &mut location.inlined_into {
            *frame = Frame { function: self.id(frame.function), source: self.id(frame.source), ..*frame };
        }
        location
    }

    fn data(&self, location: DataLocation) -> DataLocation {
        DataLocation {
            region: self.name(location.region),
            variable: self.name(location.variable),
            ..location
        }
    }
}

fn failed_code((kernel, address): (bool, u64)) -> CodeLocation {
    let failed = Name::Unknown(Reason::Failed);
    CodeLocation {
        kernel,
        runtime_address: address,
        module: failed,
        build_id: NameId::default(),
        file_offset: 0,
        function: failed,
        function_offset: 0,
        source: failed,
        line: 0,
        inlined_into: Vec::new(),
    }
}

fn failed_data(address: u64) -> DataLocation {
    let failed = Name::Unknown(Reason::Failed);
    DataLocation {
        runtime_address: address,
        region: failed,
        file_offset: 0,
        variable: failed,
        variable_offset: 0,
    }
}
