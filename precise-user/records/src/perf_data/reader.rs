//! Reads the records of a file. Records that belong to the container are processed here; the others
//! are returned.

use std::{
    fs::File,
    io::{Read, Seek, SeekFrom},
    path::Path,
    time::UNIX_EPOCH,
};

use bytes::{Buf as _, Bytes, BytesMut};
use rustc_hash::FxHashMap;

use super::{
    attr::Attr,
    error::{Error, ReadLoss},
    features::{Features, until_nul},
    head::{Described, Head, is_pipe},
    inflate::Inflate,
    stream::{Raw, Stream, record},
};
use crate::record::{HEADER, SAMPLE};

/// The types of records that perf itself writes: `PERF_RECORD_*`,
/// tools/lib/perf/include/perf/event.h.
mod user {
    pub const FIRST: u32 = 64;
    pub const HEADER_ATTR: u32 = 64;
    pub const TRACING_DATA: u32 = 66;
    pub const BUILD_ID: u32 = 67;
    pub const FINISHED_ROUND: u32 = 68;
    pub const AUXTRACE: u32 = 71;
    pub const EVENT_UPDATE: u32 = 78;
    pub const HEADER_FEATURE: u32 = 80;
    pub const COMPRESSED: u32 = 81;
    pub const COMPRESSED2: u32 = 83;
}

/// The largest number of events in pipe format.
const MAX_EVENTS: usize = 4096;
/// The largest number of ids that are remembered, over all events.
const MAX_IDS: usize = 1 << 22;

/// The next item of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RecordingItem {
    /// A record of the kernel, or one that perf synthesized in the same format.
    Record {
        /// `header.type`.
        kind: u32,
        /// `header.misc`.
        misc: u16,
        /// The bytes after the header.
        body: Bytes,
        /// The event of the record, as an index into [`RecordingReader::events`]; `None` if its id
        /// belongs to no event.
        event: Option<usize>,
    },
    /// The end of a round (`PERF_RECORD_FINISHED_ROUND`). Every record from before the last but one
    /// round has been returned by now.
    Round,
    /// The end of the recording; a `ReadLoss` if it ended early.
    End(Option<ReadLoss>),
}

/// A source of bytes.
trait Input: Read + std::fmt::Debug + Send {}
impl<T: Read + std::fmt::Debug + Send> Input for T {}

/// A reader of a `perf.data` file.
#[derive(Debug)]
pub struct RecordingReader {
    stream: Stream<Box<dyn Input>>,
    pipe: bool,
    length: Option<u64>,
    events: Vec<Described>,
    by_id: FxHashMap<u64, usize>,
    features: Features,
    inflate: Option<Inflate>,
    expanded: Bytes,
    compressed_at: u64,
    /// The number of perf's own records that could not be read.
    damaged: u64,
    compressed_records: u64,
    /// The bytes of hardware traces that were skipped.
    trace_bytes: u64,
    modified_ns: Option<u64>,
    size: Option<u64>,
}

impl RecordingReader {
    /// Opens a file; `-` reads pipe format from the standard input.
    ///
    /// # Errors
    ///
    /// Returns an error if nothing of the file can be read.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if path == Path::new("-") {
            return Self::pipe(std::io::stdin());
        }
        let file = File::open(path)?;
        let kind = file.metadata()?;
        if kind.is_dir() {
            return Err(if path.join("data").exists() {
                Error::Directory
            } else {
                Error::Io(std::io::ErrorKind::IsADirectory.into())
            });
        }
        if !kind.is_file() {
            return Self::pipe(file);
        }
        let since_1970 = kind.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let modified_ns = since_1970.and_then(|time| u64::try_from(time.as_nanos()).ok());
        Ok(Self { modified_ns, size: Some(kind.len()), ..Self::file(file)? })
    }

    /// Opens an input that can be read twice: a file, or bytes.
    ///
    /// # Errors
    ///
    /// Returns an error if nothing of the input can be read.
    pub fn file(mut file: impl Read + Seek + std::fmt::Debug + Send + 'static) -> Result<Self, Error> {
        if is_pipe(&mut file)? {
            return Ok(Self::new(file, Head { pipe: true, begin: 16, ..Head::default() }));
        }
        let head = Head::read(&mut file)?;
        file.seek(SeekFrom::Start(head.begin))?;
        Ok(Self::new(file, head))
    }

    /// Opens an input in pipe format.
    ///
    /// # Errors
    ///
    /// Returns an error if nothing of the input can be read.
    pub fn pipe(mut input: impl Read + std::fmt::Debug + Send + 'static) -> Result<Self, Error> {
        if !is_pipe(&mut input)? {
            return Err(Error::NotSeekable);
        }
        Ok(Self::new(input, Head { pipe: true, begin: 16, ..Head::default() }))
    }

    fn new(input: impl Read + std::fmt::Debug + Send + 'static, head: Head) -> Self {
        let mut reader = Self {
            stream: Stream::new(Box::new(input), head.begin, head.length),
            pipe: head.pipe,
            length: head.length,
            events: Vec::new(),
            by_id: FxHashMap::default(),
            features: head.features,
            inflate: None,
            expanded: Bytes::new(),
            compressed_at: 0,
            damaged: 0,
            compressed_records: 0,
            trace_bytes: 0,
            modified_ns: None,
            size: None,
        };
        head.events.into_iter().for_each(|event| reader.add(event));
        reader
    }

    /// Returns the events so far. In pipe format they arrive as records, before the first record
    /// that belongs to them.
    pub fn events(&self) -> &[Described] {
        &self.events
    }

    /// Returns the metadata of the recording so far.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// Returns whether the format is that of a pipe.
    pub fn is_pipe(&self) -> bool {
        self.pipe
    }

    /// Returns whether the header states where the records end. If not, perf did not exit normally,
    /// and the file has no metadata of the machine.
    pub fn is_finished(&self) -> bool {
        self.pipe || self.length.is_some()
    }

    /// Returns the number of perf's own records that could not be read.
    pub fn damaged(&self) -> u64 {
        self.damaged
    }

    /// Returns the number of compressed records that were decompressed.
    pub fn compressed_records(&self) -> u64 {
        self.compressed_records
    }

    /// Returns the number of bytes that were read so far.
    pub fn position(&self) -> u64 {
        self.stream.position()
    }

    /// Returns the size of the file in bytes; `None` for a pipe.
    pub fn size(&self) -> Option<u64> {
        self.size
    }

    /// Returns when the file was last written, in nanoseconds since the Unix epoch; `None` for a
    /// pipe.
    pub fn modified_ns(&self) -> Option<u64> {
        self.modified_ns
    }

    /// Returns the number of bytes of hardware traces (Intel PT, Arm SPE) that were skipped.
    pub fn trace_bytes(&self) -> u64 {
        self.trace_bytes
    }

    fn add(&mut self, event: Described) {
        if self.events.len() >= MAX_EVENTS {
            self.damaged += 1;
            return;
        }
        for id in &event.ids {
            if self.by_id.len() < MAX_IDS {
                self.by_id.insert(*id, self.events.len());
            }
        }
        self.events.push(event);
    }

    /// Returns the next item.
    pub fn next_event(&mut self) -> RecordingItem {
        loop {
            let raw = match self.raw() {
                Ok(Some(raw)) => raw,
                Ok(None) => return RecordingItem::End(None),
                Err(loss) => return RecordingItem::End(Some(loss)),
            };
            if raw.kind < user::FIRST {
                let event = self.event_of(raw.kind, &raw.body);
                return RecordingItem::Record { kind: raw.kind, misc: raw.misc, body: raw.body, event };
            }
            if raw.kind == user::FINISHED_ROUND {
                return RecordingItem::Round;
            }
            match self.own(&raw) {
                Ok(Taken::Whole) => {}
                Ok(Taken::Damaged) => self.damaged += 1,
                Err(loss) => return RecordingItem::End(Some(loss)),
            }
        }
    }

    /// Returns the next record, from decompressed data or from the file.
    fn raw(&mut self) -> Result<Option<Raw>, ReadLoss> {
        loop {
            if let Some(raw) = record(&mut self.expanded, self.compressed_at)? {
                return Ok(Some(raw));
            }
            match &mut self.inflate {
                Some(inflate) if !inflate.is_done() => {
                    let mut more = BytesMut::from(&self.expanded[..]);
                    let failed = |_| ReadLoss::Compressed { at: self.compressed_at };
                    inflate.take(&mut more).map_err(failed)?;
                    self.expanded = more.freeze();
                }
                _ => {
                    return match self.stream.next_record()? {
                        None if !self.expanded.is_empty() => {
                            Err(ReadLoss::Truncated { at: self.compressed_at })
                        }
                        next => Ok(next),
                    };
                }
            }
        }
    }

    /// Returns the event that a record belongs to.
    fn event_of(&self, kind: u32, body: &Bytes) -> Option<usize> {
        let first = self.events.first()?;
        if self.events.len() == 1 {
            return Some(0);
        }
        // The ids of all events are at the same position; otherwise perf could not read them
        // either.
        let (front, back) = first.attr.id_places();
        let place = if kind == SAMPLE {
            front.map(|word| 8 * word)
        } else if first.attr.layout().sample_id_all {
            back.and_then(|word| body.len().checked_sub(8 * word))
        } else {
            return Some(0);
        };
        // If records have no ids, the events cannot be told apart.
        let Some(place) = place else { return Some(0) };
        let id = body.get(place..)?.get(..8).map(|mut word| word.get_u64_le())?;
        // Records that perf synthesizes have the id 0.
        if id == 0 { Some(0) } else { self.by_id.get(&id).copied() }
    }

    /// Returns the event with this id, for records that contain an event id in their body.
    pub fn event_by_id(&self, id: u64) -> Option<usize> {
        if self.events.len() == 1 { Some(0) } else { self.by_id.get(&id).copied() }
    }

    /// Processes one of perf's own records.
    fn own(&mut self, raw: &Raw) -> Result<Taken, ReadLoss> {
        let mut body = raw.body.clone();
        let whole = |good: bool| Ok(if good { Taken::Whole } else { Taken::Damaged });
        match raw.kind {
            user::HEADER_ATTR => whole(self.attr(body).is_some()),
            user::EVENT_UPDATE => whole(self.update(body).is_some()),
            user::BUILD_ID => whole(self.features.build_id(raw.misc, body).is_ok()),
            user::HEADER_FEATURE => {
                let Ok(number) = body.try_get_u64_le() else { return Ok(Taken::Damaged) };
                let mut described = Vec::new();
                self.features.take(u32::try_from(number).unwrap_or(u32::MAX), body, &mut described);
                for (event, named) in self.events.iter_mut().zip(described) {
                    event.name = named.name;
                }
                Ok(Taken::Whole)
            }
            user::COMPRESSED | user::COMPRESSED2 => self.compressed(raw, body),
            // The announced data follows the record and is not included in its size.
            user::AUXTRACE => match body.try_get_u64_le() {
                Ok(size) => {
                    self.trace_bytes = self.trace_bytes.saturating_add(size);
                    self.stream.skip(size).map(|()| Taken::Whole)
                }
                Err(_) => Ok(Taken::Damaged),
            },
            user::TRACING_DATA => match body.try_get_u32_le() {
                Ok(size) => self.stream.skip(u64::from(size).next_multiple_of(8)).map(|()| Taken::Whole),
                Err(_) => Ok(Taken::Damaged),
            },
            _ => Ok(Taken::Whole),
        }
    }

    fn compressed(&mut self, raw: &Raw, mut body: Bytes) -> Result<Taken, ReadLoss> {
        let failed = ReadLoss::Compressed { at: raw.at };
        if raw.kind == user::COMPRESSED2 {
            let Ok(size) = body.try_get_u64_le() else { return Err(failed) };
            // The remaining bytes are padding.
            body.truncate(usize::try_from(size).unwrap_or(usize::MAX));
        }
        // perf never nests compressed records. A file that does could make this decompress without
        // end.
        if self.inflate.as_ref().is_some_and(|inflate| !inflate.is_done()) {
            return Err(failed);
        }
        let inflate = match &mut self.inflate {
            Some(inflate) => inflate,
            none => match Inflate::new() {
                Ok(new) => none.insert(new),
                Err(_) => return Err(failed),
            },
        };
        inflate.put(body);
        self.compressed_at = raw.at;
        self.compressed_records += 1;
        Ok(Taken::Whole)
    }

    fn attr(&mut self, body: Bytes) -> Option<()> {
        let attr = Attr::parse(&body).ok()?;
        let size = body.slice(4..HEADER).get_u32_le() as usize;
        let mut ids = body.get(size..).map(|_| body.slice(size..))?;
        let ids = std::iter::from_fn(|| ids.try_get_u64_le().ok()).collect();
        self.add(Described { attr, name: String::new(), ids });
        Some(())
    }

    /// Reads `PERF_RECORD_EVENT_UPDATE`: its type, the id of the event, and the name if the type is
    /// that of a name.
    fn update(&mut self, mut body: Bytes) -> Option<()> {
        const NAME: u64 = 2;
        let (kind, id) = (body.try_get_u64_le().ok()?, body.try_get_u64_le().ok()?);
        if kind == NAME {
            let event = self.event_by_id(id)?;
            self.events.get_mut(event)?.name = until_nul(&body);
        }
        Some(())
    }
}

/// The result of processing one of perf's own records.
enum Taken {
    Whole,
    Damaged,
}
