//! Symbols on their way from a worker: each text of an answer is sent once.
//!
//! The functions of a file are in few source files, and often in one. Sent with each address, the
//! paths were most of an answer, and took a heap block on both sides each time.

use std::ffi::OsStr;
use std::rc::Rc;

use blazesym::symbolize::{CodeInfo, Reason, Sym, Symbolized};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

use super::demangle::{bounded, demangle};
use super::protocol::{FileLine, FoundSymbol, Inlined, MAX_INLINED, Symbol};

/// Maximum number of bytes that the symbols of one answer may take.
const MAX_ANSWER: usize = 16 << 20;
/// What a symbol, an inlined function and a text take of [`MAX_ANSWER`], beside the bytes of texts.
const SYMBOL: usize = 64;
const INLINED: usize = 16;
const TEXT: usize = 8;

/// The symbols at the addresses of a request, in their order.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PackedSymbols {
    /// All texts, one behind the other.
    texts: String,
    /// Where each text ends, in bytes. A text is referred to by its index here.
    ends: Vec<u32>,
    found: Vec<PackedSymbol>,
    /// The inlined functions of all symbols, one symbol behind the other.
    inlined: Vec<PackedInlined>,
}

/// [`FoundSymbol`], with the indexes of its texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum PackedSymbol {
    Symbol {
        name: u32,
        address: u64,
        offset: u64,
        size: Option<u64>,
        line: Option<PackedLine>,
        /// The number of its inlined functions.
        inlined: u32,
    },
    None,
    Failed,
}

/// [`Inlined`], with the indexes of its texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PackedInlined {
    name: u32,
    line: Option<PackedLine>,
}

/// [`FileLine`], with the index of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct PackedLine {
    path: u32,
    number: Option<u32>,
}

/// What is wrong with an answer that does not hold what it claims.
const WRONG: &str = "the process that reads it sent symbols that cannot be right";

impl PackedSymbols {
    /// Returns the symbols of this number of addresses.
    ///
    /// # Errors
    ///
    /// Returns a sentence if the answer refers to a text or to an inlined function that it does not
    /// have, or is about another number of addresses.
    pub(super) fn unpack(self, addresses: usize) -> Result<Vec<FoundSymbol>, &'static str> {
        if self.found.len() != addresses {
            return Err(WRONG);
        }
        let texts = self.texts().ok_or(WRONG)?;
        let text = |index: u32| texts.get(index as usize).cloned();
        let line = |line: Option<PackedLine>| match line {
            Some(PackedLine { path, number }) => Some(Some(FileLine { path: text(path)?, number })),
            None => Some(None),
        };
        let mut rest = self.inlined.as_slice();
        let mut unpack = |packed: &PackedSymbol| {
            Some(match *packed {
                PackedSymbol::Symbol { name, address, offset, size, line: at, inlined } => {
                    let (inlined, behind) = rest.split_at_checked(inlined as usize)?;
                    rest = behind;
                    let inlined = inlined
                        .iter()
                        .map(|frame| Some(Inlined { name: text(frame.name)?, line: line(frame.line)? }));
                    let inlined = inlined.collect::<Option<_>>()?;
                    FoundSymbol::Symbol(Symbol {
                        name: text(name)?,
                        address,
                        offset,
                        size,
                        line: line(at)?,
                        inlined,
                    })
                }
                PackedSymbol::None => FoundSymbol::None,
                PackedSymbol::Failed => FoundSymbol::Failed,
            })
        };
        self.found.iter().map(&mut unpack).collect::<Option<_>>().ok_or(WRONG)
    }

    /// Returns the texts; `None` if they are not where the answer claims, or if there are more than
    /// its symbols can have.
    fn texts(&self) -> Option<Vec<Rc<str>>> {
        if self.ends.len() > 2 * (self.found.len() + self.inlined.len()) {
            return None;
        }
        let mut start = 0;
        let text = |&end: &u32| {
            let text = self.texts.get(start..end as usize)?;
            start = end as usize;
            Some(text.into())
        };
        self.ends.iter().map(text).collect()
    }
}

/// Packs the symbols of an answer.
#[derive(Default)]
pub(super) struct Packer<'a> {
    packed: PackedSymbols,
    /// The indexes of the texts of names, as they are in the file.
    names: FxHashMap<&'a str, u32>,
    /// The indexes of the texts of paths: of a folder, and of a file in it.
    paths: FxHashMap<(&'a OsStr, &'a OsStr), u32>,
    /// The bytes of [`MAX_ANSWER`] that are taken.
    taken: usize,
}

impl<'a> Packer<'a> {
    /// Adds the library's answer for one address. `part` is the part of the function that the
    /// address is in, if the answer does not say where that begins.
    pub fn add(&mut self, found: &'a Symbolized<'_>, part: Option<&'a Sym<'_>>) {
        let packed = match found {
            Symbolized::Sym(symbol) => self.pack(symbol, part).unwrap_or(PackedSymbol::Failed),
            Symbolized::Unknown(Reason::IgnoredError) => PackedSymbol::Failed,
            Symbolized::Unknown(_) => PackedSymbol::None,
        };
        self.packed.found.push(packed);
    }

    /// Returns the answer.
    pub fn finish(self) -> PackedSymbols {
        self.packed
    }

    /// Returns the symbol; `None` if the answer has no room for it.
    fn pack(&mut self, symbol: &'a Sym<'_>, part: Option<&'a Sym<'_>>) -> Option<PackedSymbol> {
        self.take(SYMBOL)?;
        let place = part.unwrap_or(symbol);
        let name = self.name(&place.name)?;
        let line = self.line(symbol.code_info.as_deref())?;
        let begin = self.packed.inlined.len();
        for frame in symbol.inlined.iter().take(MAX_INLINED) {
            let Some(frame) = self.inlined(&frame.name, frame.code_info.as_ref()) else {
                self.packed.inlined.truncate(begin);
                return None;
            };
            self.packed.inlined.push(frame);
        }
        Some(PackedSymbol::Symbol {
            name,
            address: place.addr,
            offset: place.offset as u64,
            size: place.size.map(|size| size as u64),
            line,
            inlined: (self.packed.inlined.len() - begin) as u32,
        })
    }

    fn inlined(&mut self, name: &'a str, line: Option<&'a CodeInfo<'_>>) -> Option<PackedInlined> {
        self.take(INLINED)?;
        Some(PackedInlined { name: self.name(name)?, line: self.line(line)? })
    }

    /// Returns the index of a name; `None` if there is no room for it.
    fn name(&mut self, name: &'a str) -> Option<u32> {
        if let Some(known) = self.names.get(name) {
            return Some(*known);
        }
        let index = self.text(&demangle(name))?;
        self.names.insert(name, index);
        Some(index)
    }

    /// Returns a line, if there is one; `None` if there is no room for it.
    #[expect(clippy::option_option, reason = "there may be no line, and no room for one")]
    fn line(&mut self, line: Option<&'a CodeInfo<'_>>) -> Option<Option<PackedLine>> {
        let Some(line) = line else { return Some(None) };
        let folder = line.dir.as_deref().map_or(OsStr::new(""), |folder| folder.as_os_str());
        let key = (folder, &*line.file);
        let path = match self.paths.get(&key) {
            Some(known) => *known,
            None => {
                let index = self.text(&bounded(&line.to_path().to_string_lossy()))?;
                self.paths.insert(key, index);
                index
            }
        };
        Some(Some(PackedLine { path, number: line.line }))
    }

    fn text(&mut self, text: &str) -> Option<u32> {
        self.take(TEXT + text.len())?;
        let index = self.packed.ends.len() as u32;
        self.packed.texts.push_str(text);
        self.packed.ends.push(self.packed.texts.len() as u32);
        Some(index)
    }

    /// Takes this number of bytes; `None` if there are not as many left.
    fn take(&mut self, bytes: usize) -> Option<()> {
        let taken = self.taken.checked_add(bytes).filter(|taken| *taken <= MAX_ANSWER)?;
        self.taken = taken;
        Some(())
    }
}

/// Returns a symbol of the library, with demangled and bounded names; `None` if it is too large.
pub(crate) fn convert(symbol: Sym<'_>) -> Option<Symbol> {
    let found = Symbolized::Sym(symbol);
    let mut packer = Packer::default();
    packer.add(&found, None);
    match packer.finish().unpack(1).ok()?.pop()? {
        FoundSymbol::Symbol(symbol) => Some(symbol),
        FoundSymbol::None | FoundSymbol::Failed => None,
    }
}

#[cfg(test)]
#[path = "symbols_tests.rs"]
mod tests;
