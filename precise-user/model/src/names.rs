//! The strings of a capture, each stored once, and the reasons for missing names.

use hashbrown::HashTable;
use rustc_hash::FxBuildHasher;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::hash::BuildHasher as _;

/// An index of a string in [`Names`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct NameId(pub u32);

/// Interned strings. Id 0 is the empty string.
#[derive(Clone, Debug)]
pub struct Names {
    strings: Vec<Box<str>>,
    /// The ids, by the hash of the string.
    index: HashTable<NameId>,
    /// The bytes of all strings.
    bytes: usize,
}

/// What a name takes beside its bytes: an entry of a list that is half full, a heap block, and an
/// entry of the index, also while it grows.
const BYTES_EACH: usize = 2 * size_of::<Box<str>>() + 16 + crate::Interner::BYTES;

impl Default for Names {
    fn default() -> Self {
        let mut names = Self { strings: Vec::new(), index: HashTable::new(), bytes: 0 };
        names.intern("");
        names
    }
}

impl PartialEq for Names {
    fn eq(&self, other: &Self) -> bool {
        self.strings == other.strings
    }
}

impl Names {
    /// Forgets all strings. The table keeps its room.
    pub fn clear(&mut self) {
        self.strings.clear();
        self.index.clear();
        self.bytes = 0;
        self.intern("");
    }

    /// Returns the id of `text`, which is added if it is new.
    pub fn intern(&mut self, text: &str) -> NameId {
        let Self { strings, index, bytes } = self;
        let of = |id: &NameId| strings.get(id.0 as usize).map_or("", |text| &**text);
        let hash = |text: &str| FxBuildHasher.hash_one(text);
        let hashed = hash(text);
        if let Some(id) = index.find(hashed, |id| of(id) == text) {
            return *id;
        }
        let id = NameId(strings.len() as u32);
        index.insert_unique(hashed, id, |id| hash(of(id)));
        *bytes += text.len();
        strings.push(text.into());
        id
    }

    /// Returns the string of `id`; empty for an id that this table did not give out.
    pub fn get(&self, id: NameId) -> &str {
        self.strings.get(id.0 as usize).map_or("", |text| text)
    }

    /// Returns the number of strings.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Returns the memory of the table in bytes, about.
    pub fn bytes(&self) -> usize {
        self.bytes + self.strings.len() * BYTES_EACH
    }

    /// Returns whether the table has only the empty string.
    pub fn is_empty(&self) -> bool {
        self.strings.len() <= 1
    }
}

/// A name, or the reason why there is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Name {
    /// The name is known.
    Known(NameId),
    /// The name is not known, for this reason.
    Unknown(Reason),
}

crate::catalogue! {
    /// The reason why something has no name. Captures store [`Reason::as_str`], which is never
    /// renamed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Reason: (&'static str, &'static str) {
        /// The run did not record it.
        NotRecorded => ("not-recorded", "not recorded"),
        /// The process exited before its mappings were read.
        ProcessGone => ("process-gone", "process gone"),
        /// The thread exited before its name was read, or the recording has no name of it.
        ThreadGone => ("thread-gone", "thread gone"),
        /// The process or its mappings were forgotten to limit memory; a note of the capture has
        /// the number.
        Forgotten => ("forgotten", "memory limit"),
        /// The address is in no mapping of the process.
        Unmapped => ("unmapped", "unmapped"),
        /// The mappings that the process had before the run may not be read (missing
        /// CAP_SYS_PTRACE), and it has made none at the address since.
        MapsHidden => ("maps-hidden", "no permission"),
        /// A virtual machine's guest ran, whose code the host cannot name.
        Guest => ("guest", "in a guest"),
        /// Several files were mapped as code at the address in the epoch, one after the other.
        MappingReplaced => ("mapping-replaced", "mapping replaced"),
        /// The mapped file could not be opened.
        FileMissing => ("file-missing", "file missing"),
        /// The file on disk is not the one that was mapped (its build id differs).
        FileChanged => ("file-changed", "file changed"),
        /// The file has no symbol at the address.
        NoSymbol => ("no-symbol", "no symbol"),
        /// The file has no line information at the address.
        NoLine => ("no-line", "no line info"),
        /// Code without a file: a JIT without a perf map.
        Jit => ("jit", "JIT, no perf map"),
        /// The kernel hides its addresses (`kernel.kptr_restrict`, missing CAP_SYSLOG).
        KernelHidden => ("kernel-hidden", "kernel hidden"),
        /// The symbolizer failed; the capture's notes have the error.
        Failed => ("failed", "failed"),
        /// The cgroup was removed before its path was read.
        CgroupGone => ("cgroup-gone", "cgroup gone"),
        /// The table of call chains was full.
        StackFull => ("stack-full", "table of call chains full"),
        /// The kernel delivered no call chain.
        StackNotGiven => ("stack-not-given", "not delivered by the kernel"),
        /// The call chain could not be read.
        StackUnreadable => ("stack-unreadable", "unreadable"),
        /// The run had to end before the name was looked up, or looking up names was far behind.
        NotInTime => ("not-in-time", "not named in time"),
        /// No page fault of the process at the page was sampled before the access: the page is
        /// older than the run, was inherited from a parent, or belongs to a huge page.
        NoTouch => ("no-touch", "first touch not seen"),
        /// The run has no samples of page faults with their addresses.
        NoFaults => ("no-faults", "no page faults sampled"),
    }
}

impl Reason {
    /// Returns the stable id, as in captures and JSON.
    pub const fn as_str(self) -> &'static str {
        self.entry().0
    }

    /// Returns the words that a table shows in place of the name.
    pub const fn words(self) -> &'static str {
        self.entry().1
    }

    /// Returns the reason with a stored id; `None` if there is none.
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|r| r.as_str() == text)
    }
}
