//! The header of a file: the positions of attributes, records and sections.

use std::io::{Read, Seek, SeekFrom};

use bytes::{Buf, Bytes};

use super::{
    attr::Attr,
    error::Error,
    features::{Features, MAX_SECTION},
};

/// The size of the header in pipe format, in bytes: magic and the header's own size.
const PIPE_HEAD: u64 = 16;
/// The size of the header of a file, in bytes.
const FILE_HEAD: usize = 104;
/// The largest number of events in one file: perf opens one per kind, not per CPU.
const MAX_EVENTS: u64 = 4096;
/// The largest number of ids of one event: one per CPU or thread.
const MAX_IDS: u64 = 1 << 20;
/// The number of sections that a header has bits for.
const FEATURES: u32 = 256;

/// An event of the file.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Described {
    /// The attributes with which it was opened.
    pub attr: Attr,
    /// The name in perf; empty if the file does not have it.
    pub name: String,
    /// The ids with which records refer to the event.
    pub ids: Vec<u64>,
}

/// The content of the header.
#[derive(Debug, Default)]
pub struct Head {
    /// Whether the format is that of a pipe: everything follows as records.
    pub pipe: bool,
    /// The events.
    pub events: Vec<Described>,
    /// The metadata of the recording.
    pub features: Features,
    /// The start of the records, in bytes from the start of the file.
    pub begin: u64,
    /// The size of the records in bytes; `None`: up to the end of the file.
    pub length: Option<u64>,
}

/// The position and size of a section, in bytes.
#[derive(Clone, Copy, Debug)]
struct Section {
    offset: u64,
    size: u64,
}

impl Section {
    fn take(bytes: &mut Bytes) -> Result<Self, Error> {
        let short = |_| Error::Head("a section is truncated");
        Ok(Self {
            offset: bytes.try_get_u64_le().map_err(short)?,
            size: bytes.try_get_u64_le().map_err(short)?,
        })
    }
}

/// Reads magic and size. Returns whether the format is that of a pipe.
pub fn is_pipe(input: &mut impl Read) -> Result<bool, Error> {
    let mut start = [0; 16];
    input.read_exact(&mut start).map_err(|error| match error.kind() {
        std::io::ErrorKind::UnexpectedEof => Error::Foreign,
        _ => Error::Io(error),
    })?;
    let (magic, mut size) = start.split_at(8);
    match magic {
        b"PERFILE2" => Ok(size.get_u64_le() == PIPE_HEAD),
        b"2ELIFREP" => Err(Error::BigEndian),
        b"PERFFILE" => Err(Error::Old),
        _ => Err(Error::Foreign),
    }
}

impl Head {
    /// Reads the header of a file and everything that is not records. The file position is
    /// undefined afterwards.
    pub fn read(file: &mut (impl Read + Seek)) -> Result<Self, Error> {
        let length = file.seek(SeekFrom::End(0))?;
        let mut head = part(file, Section { offset: 0, size: FILE_HEAD as u64 }, length)
            .ok_or(Error::Head("it is truncated"))?;
        head.advance(16);
        let entry = head.get_u64_le();
        let (attrs, data) = (Section::take(&mut head)?, Section::take(&mut head)?);
        let _event_types = Section::take(&mut head)?;
        let mut bits = head;
        let mut this = Self { begin: data.offset, ..Self::default() };
        // Zero if perf was killed before it could write it: then the records reach to the end of
        // the file, and no sections follow.
        this.length = (data.size != 0).then_some(data.size);

        let mut described = Vec::new();
        if this.length.is_some() {
            let mut place = data.offset.saturating_add(data.size);
            for number in 0..FEATURES {
                let word = number as usize / 8;
                if bits.chunk().get(word).is_none_or(|byte| byte >> (number % 8) & 1 == 0) {
                    continue;
                }
                let section = part(file, Section { offset: place, size: 16 }, length)
                    .and_then(|mut bytes| Section::take(&mut bytes).ok())
                    .and_then(|section| part(file, section, length));
                match section {
                    Some(section) => this.features.take(number, section, &mut described),
                    None => this.features.unreadable += 1,
                }
                place = place.saturating_add(16);
            }
        }
        bits.clear();
        this.events = events(file, attrs, entry, length)?;
        // Only the names are used: ids and attributes are the same, or the section is damaged.
        for (event, named) in this.events.iter_mut().zip(described) {
            event.name = named.name;
            if event.ids.is_empty() {
                event.ids = named.ids;
            }
        }
        Ok(this)
    }
}

/// Reads the attributes, each with the position of its ids.
fn events(
    file: &mut (impl Read + Seek),
    attrs: Section,
    entry: u64,
    length: u64,
) -> Result<Vec<Described>, Error> {
    const SECTION: u64 = 16;
    if !(64 + SECTION..=4096).contains(&entry) {
        return Err(Error::Head("the size of its attributes"));
    }
    let count = attrs.size / entry;
    if count == 0 || count > MAX_EVENTS {
        return Err(Error::Head("the number of its events"));
    }
    let mut bytes =
        part(file, attrs, length).ok_or(Error::Head("its attributes lie beyond the end of the file"))?;
    let mut events = Vec::new();
    for _ in 0..count {
        let mut one = bytes.split_to(entry as usize);
        let attr = Attr::parse(&one.split_to((entry - SECTION) as usize))
            .map_err(|_| Error::Head("an attribute is truncated"))?;
        let ids = Section::take(&mut one)?;
        let ids = Section { size: ids.size.min(8 * MAX_IDS), ..ids };
        let mut ids =
            part(file, ids, length).ok_or(Error::Head("event ids lie beyond the end of the file"))?;
        let ids = std::iter::from_fn(|| ids.try_get_u64_le().ok()).collect();
        events.push(Described { attr, name: String::new(), ids });
    }
    Ok(events)
}

/// Reads a section of the file; `None` if it is not inside the file, is too large, or cannot be
/// read.
fn part(file: &mut (impl Read + Seek), section: Section, length: u64) -> Option<Bytes> {
    let end = section.offset.checked_add(section.size)?;
    if end > length || section.size > MAX_SECTION {
        return None;
    }
    let mut bytes = vec![0; section.size as usize];
    file.seek(SeekFrom::Start(section.offset)).ok()?;
    file.read_exact(&mut bytes).ok()?;
    Some(bytes.into())
}
