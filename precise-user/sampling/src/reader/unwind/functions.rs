//! The functions that have unwind information, in the order of their addresses.

use gimli::{
    BaseAddresses, CommonInformationEntry, DebugFrame, EhFrame, EndianSlice, Error, FrameDescriptionEntry,
    LittleEndian, UnwindContext, UnwindOffset, UnwindSection,
};
use precise_common::unwind::Rule;
use rustc_hash::FxHashMap;

use super::rule;
use super::table::TableBuilder;
use crate::reader::elf::{Segment, le32, le64};

/// The bytes of a section.
pub(super) type Bytes<'a> = EndianSlice<'a, LittleEndian>;
type Cie<'a> = CommonInformationEntry<Bytes<'a>>;
type Fde<'a> = FrameDescriptionEntry<Bytes<'a>>;

/// Maximum number of functions: at most one in 16 bytes of a section.
const MAX_FUNCTIONS: usize = 8 << 20;
/// Maximum number of rows of a function: 16 MiB. Those of the largest programs have a few thousand.
const MAX_FUNCTION_ROWS: usize = 1 << 20;
/// Maximum number of common entries that are kept. Linkers make a few per file.
const MAX_COMMON: usize = 64;

/// The section that describes a function. Where both do, the first one counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum FrameSection {
    EhFrame,
    DebugFrame,
}

impl FrameSection {
    /// The id that marks a common entry in a section; other numbers refer to one.
    fn common(self, wide: bool) -> u64 {
        match (self, wide) {
            (Self::EhFrame, _) => 0,
            (Self::DebugFrame, false) => u64::from(u32::MAX),
            (Self::DebugFrame, true) => u64::MAX,
        }
    }
}

/// A function: its addresses, and where a section describes it. Sorted by address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Function {
    start: u64,
    source: FrameSection,
    offset: u32,
    length: u32,
}

impl Function {
    fn end(&self) -> u64 {
        self.start.saturating_add(u64::from(self.length))
    }
}

/// The functions of a file.
pub(super) struct Functions<'a> {
    segments: &'a [Segment],
    all: Vec<Function>,
    /// The number of functions that cannot be read.
    pub skipped: u64,
}

impl<'a> Functions<'a> {
    /// Starts with no function. Functions outside of `segments` are not taken: linkers leave the
    /// entries of code that they removed, at address 0.
    pub fn new(segments: &'a [Segment]) -> Self {
        Self { segments, all: Vec::new(), skipped: 0 }
    }

    /// Takes the functions of a section. What is damaged is skipped.
    pub fn collect<'s, S>(&mut self, section: &S, bases: &BaseAddresses, source: FrameSection)
    where
        S: UnwindSection<Bytes<'s>> + gimli::Section<Bytes<'s>>,
        S::Offset: From<usize>,
    {
        let bytes = gimli::Section::reader(section).slice();
        let mut common = Common::default();
        let mut at = 0;
        while let Some(entry) = Entry::read(bytes, at, source) {
            let Some(next) = entry.end.filter(|end| *end <= bytes.len()) else {
                // Where the next entry begins is not known.
                self.skipped += 1;
                return;
            };
            if !entry.is_common {
                let parsed = section.fde_from_offset(bases, at.into(), |section, bases, offset| {
                    common.get(section, bases, offset)
                });
                match parsed {
                    Ok(fde) => self.take(&fde, source),
                    Err(_) => self.skipped += 1,
                }
            }
            at = next;
        }
    }

    fn take(&mut self, fde: &Fde<'_>, source: FrameSection) {
        let start = fde.initial_address();
        let holds = |segment: &&Segment| {
            (segment.vaddr..segment.vaddr.saturating_add(segment.file_size)).contains(&start)
        };
        let Some(segment) = self.segments.iter().find(holds) else { return };
        let room = segment.vaddr.saturating_add(segment.file_size) - start;
        let length = u32::try_from(fde.len().min(room));
        match (length, u32::try_from(fde.offset())) {
            (Ok(0), _) => {}
            (Ok(length), Ok(offset)) if self.all.len() < MAX_FUNCTIONS => {
                self.all.push(Function { start, source, offset, length });
            }
            _ => self.skipped += 1,
        }
    }

    /// Puts the functions into order, and removes those that begin within another.
    pub fn sorted(mut self) -> Self {
        if !self.all.is_sorted() {
            self.all.sort_unstable();
        }
        let mut end = 0;
        let mut contradicting = 0;
        self.all.retain(|function| {
            let free = function.start >= end;
            if free {
                end = function.end();
            } else if function.source == FrameSection::EhFrame {
                contradicting += 1;
            }
            free
        });
        self.skipped += contradicting;
        self
    }

    /// Returns the number of bytes of all functions.
    pub fn bytes(&self) -> u64 {
        self.all.iter().map(|function| u64::from(function.length)).sum()
    }

    /// Adds the rows of all functions to a table. Returns how many functions are damaged.
    ///
    /// # Errors
    ///
    /// Returns why there is no room for the table.
    pub fn evaluate(
        &self,
        eh_frame: &EhFrame<Bytes<'_>>,
        debug_frame: &DebugFrame<Bytes<'_>>,
        bases: &BaseAddresses,
        table: &mut TableBuilder,
    ) -> Result<u64, String> {
        let mut eh_frame = Evaluation::new(eh_frame, bases);
        let mut debug_frame = Evaluation::new(debug_frame, bases);
        let mut damaged = 0;
        for function in &self.all {
            let (rows, sound) = match function.source {
                FrameSection::EhFrame => eh_frame.function(function),
                FrameSection::DebugFrame => debug_frame.function(function),
            };
            damaged += u64::from(!sound);
            table.function(rows, function.end())?;
        }
        Ok(damaged)
    }
}

/// The frame of an entry of a section.
struct Entry {
    is_common: bool,
    /// The offset of the next entry; `None` if it is beyond all numbers.
    end: Option<usize>,
}

impl Entry {
    /// Reads the entry at an offset; `None` at the end of the section.
    fn read(bytes: &[u8], at: usize, source: FrameSection) -> Option<Self> {
        let rest = bytes.get(at..).filter(|rest| !rest.is_empty())?;
        let length = le32(rest, 0);
        let (wide, length, head) = match length {
            0 if source == FrameSection::EhFrame => return None,
            u32::MAX => (true, le64(rest, 4), 12),
            length => (false, u64::from(length), 4),
        };
        let id = if wide && source == FrameSection::DebugFrame {
            le64(rest, 12)
        } else {
            u64::from(le32(rest, head))
        };
        let end = usize::try_from(length).ok().and_then(|length| at.checked_add(head)?.checked_add(length));
        Some(Self { is_common: id == source.common(wide) || length == 0, end })
    }
}

/// The common entries that were read last, by their offset.
#[derive(Default)]
struct Common<'a>(FxHashMap<usize, Cie<'a>>);

impl<'a> Common<'a> {
    fn get<S: UnwindSection<Bytes<'a>>>(
        &mut self,
        section: &S,
        bases: &BaseAddresses,
        offset: S::Offset,
    ) -> Result<Cie<'a>, Error> {
        let key = UnwindOffset::into(offset);
        if let Some(cie) = self.0.get(&key) {
            return Ok(cie.clone());
        }
        let cie = section.cie_from_offset(bases, offset)?;
        if self.0.len() >= MAX_COMMON {
            self.0.clear();
        }
        self.0.insert(key, cie.clone());
        Ok(cie)
    }
}

/// What the functions of one section are evaluated with.
struct Evaluation<'s, 'a, S> {
    section: &'s S,
    bases: &'s BaseAddresses,
    common: Common<'a>,
    context: UnwindContext<usize>,
    /// The rows of one function.
    rows: Vec<(u64, Rule)>,
}

impl<'s, 'a, S> Evaluation<'s, 'a, S>
where
    S: UnwindSection<Bytes<'a>>,
    S::Offset: From<usize>,
{
    fn new(section: &'s S, bases: &'s BaseAddresses) -> Self {
        let (common, context) = (Common::default(), UnwindContext::new());
        Self { section, bases, common, context, rows: Vec::new() }
    }

    /// Returns from which address on which rule holds, in the order of addresses; and whether the
    /// function is sound. Where it is not, the rows before the damage count.
    fn function(&mut self, function: &Function) -> (&[(u64, Rule)], bool) {
        self.rows.clear();
        let mut end = function.start;
        let sound = self.add_rows(function, &mut end) == Ok(true);
        if !sound && end < function.end() {
            self.rows.pop_if(|(last, _)| *last >= end);
            self.rows.push((end, Rule::UNSUPPORTED));
        }
        (&self.rows, sound)
    }

    /// Adds the rows of a function; `end` becomes the address after those that were read. Returns
    /// whether these are all.
    fn add_rows(&mut self, function: &Function, end: &mut u64) -> Result<bool, Error> {
        let offset = (function.offset as usize).into();
        let fde = self.section.fde_from_offset(self.bases, offset, |section, bases, offset| {
            self.common.get(section, bases, offset)
        })?;
        let mut table = fde.rows(self.section, self.bases, &mut self.context)?;
        while let Some(row) = table.next_row()? {
            let start = row.start_address();
            if start >= function.end() {
                break;
            }
            if self.rows.len() >= MAX_FUNCTION_ROWS {
                return Ok(false);
            }
            // An instruction may advance by nothing.
            self.rows.pop_if(|(last, _)| *last >= start);
            self.rows.push((start, rule::of(row, &fde, self.section)));
            *end = row.end_address();
        }
        Ok(true)
    }
}
