//! The words of the grammar: terms and their named values. The names follow `perf record --filter`.

use precise_common::config::operand;
use precise_common::data_src::MemoryLevel;
use precise_common::ibs::OutcomeBits;

precise_model::catalogue! {
    /// A term: the value of a sample that a test looks at.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub enum Term: &'static [&'static str] {
        /// Instruction address.
        Ip => &["ip"],
        /// Data address; 0 if the sample has none.
        Address => &["addr", "address"],
        /// Physical data address; 0 if the sample has none.
        PhysAddress => &["phys_addr", "phys_address"],
        /// Access latency in core cycles; 0 if the sample has none.
        Latency => &["latency", "weight", "weight1", "lat"],
        /// Operation.
        Op => &["mem_op"],
        /// Memory level that served the access.
        Level => &["mem_lvl", "mem_lvlnum", "mem_lvl_num"],
        /// Snoop result: what other caches answered.
        Snoop => &["mem_snoop"],
        /// How the data address was translated.
        Tlb => &["mem_dtlb", "mem_tlb"],
        /// Whether another node or another core's cache served the access.
        Remote => &["mem_remote"],
        /// Whether the instruction was locked.
        Lock => &["mem_lock"],
        /// Distance of a remote access, as in `mem_hops`: 0 not given, 1 (`hops0`) another core of
        /// this node, …
        Hops => &["mem_hops"],
        /// The reason why the load was blocked.
        Block => &["mem_blk"],
        /// Details of the access, from the registers of IBS.
        Access => &["access"],
        /// The cache that answered, by AMD's core complexes.
        Ccx => &["mem_ccx"],
        /// Outcome of the branch.
        Branch => &["branch"],
        /// Outcome of the instruction fetch.
        Fetch => &["fetch"],
        /// Size of the page that contains the data address, in bytes.
        PageSize => &["data_pgsz", "data_page_size"],
        /// Process id, in the initial pid namespace.
        Pid => &["pid"],
        /// Thread id, in the initial pid namespace.
        Tid => &["tid"],
        /// CPU number.
        Cpu => &["cpu"],
        /// User id.
        Uid => &["uid"],
        /// Group id.
        Gid => &["gid"],
        /// Process name.
        Comm => &["comm"],
        /// Cgroup, including all cgroups below it.
        Cgroup => &["cgroup"],
        /// Kernel or user code.
        Mode => &["mode"],
    }
}

/// The kind of a term's values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TermKind {
    /// A number from 0 to `max`, read through `operand`.
    Number {
        /// The [`operand`] of the number.
        operand: u32,
        /// The largest value that a sample can have.
        max: u64,
    },
    /// One of several names.
    Class(&'static [NamedValue]),
    /// A text.
    Text,
}

/// A named value.
#[derive(Clone, Copy, Debug)]
pub struct NamedValue {
    /// The accepted names; the first is the canonical one.
    pub names: &'static [&'static str],
    pub(super) meaning: Meaning,
}

impl NamedValue {
    /// Returns the canonical name, which is printed.
    pub fn name(&self) -> &'static str {
        self.names[0]
    }
}

/// A value is identified by its name within its term.
impl PartialEq for NamedValue {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name()
    }
}

/// The condition under which a named value holds.
#[derive(Clone, Copy, Debug)]
pub(super) enum Meaning {
    /// The six bits of the data source from bit `shift` on, read as a number, are in `set`.
    Window { shift: u32, set: u64 },
    /// None of these bits of the data source is set.
    NoBit(u64),
    /// The access was served by this level.
    Level(MemoryLevel),
    /// The access was remote, or, if false, it was not.
    Remote(bool),
    /// All bits of `all` are set in the outcome, and none of `none`.
    Outcome { all: u64, none: u64 },
    /// The IP is in the kernel, or, if false, it is not.
    Kernel(bool),
}

/// The first bits of the six-bit windows that a slot can test at once. Each window contains
/// everything that one or two terms need.
pub(super) mod window {
    /// `mem_op`.
    pub const OP: u32 = 0;
    /// Legacy `mem_lvl`: L1, LFB, L2.
    pub const LEGACY_NEAR: u32 = 8;
    /// Legacy `mem_lvl`: L3, local RAM, remote RAM (2), remote cache (2).
    pub const LEGACY_FAR: u32 = 11;
    /// `mem_snoop` without its "not given" bit; `mem_lock`.
    pub const SNOOP_LOCK: u32 = 20;
    /// `mem_dtlb` without its "not given" bit.
    pub const TLB: u32 = 27;
    /// `mem_lvl_num`, `mem_remote`.
    pub const LEVEL_REMOTE: u32 = 33;
    /// `mem_remote`, `mem_snoopx`, `mem_blk`.
    pub const SNOOPX_BLOCK: u32 = 37;
    /// `mem_hops`.
    pub const HOPS: u32 = 43;
}

/// Returns the six-bit numbers that have at least one bit of `any`, all bits of `all`, and none of
/// `none`. An `any` of 0 requires nothing.
pub(super) const fn numbers(any: u32, all: u32, none: u32) -> u64 {
    let mut set = 0;
    let mut n = 0;
    while n < 64 {
        if (any == 0 || n & any != 0) && n & all == all && n & none == 0 {
            set |= 1 << n;
        }
        n += 1;
    }
    set
}

const fn bit(names: &'static [&'static str], shift: u32, bit: u32) -> NamedValue {
    NamedValue { names, meaning: Meaning::Window { shift, set: numbers(bit, 0, 0) } }
}

const fn in_window(names: &'static [&'static str], shift: u32, set: u64) -> NamedValue {
    NamedValue { names, meaning: Meaning::Window { shift, set } }
}

const fn level(names: &'static [&'static str], level: MemoryLevel) -> NamedValue {
    NamedValue { names, meaning: Meaning::Level(level) }
}

const OPS: &[NamedValue] = &[
    bit(&["load"], window::OP, 2),
    bit(&["store"], window::OP, 4),
    bit(&["pfetch", "prefetch"], window::OP, 8),
    bit(&["exec"], window::OP, 16),
    in_window(&["na"], window::OP, numbers(0, 0, 0x1e)),
];

const LEVELS: &[NamedValue] = &[
    level(&["l1"], MemoryLevel::L1),
    level(&["l2"], MemoryLevel::L2),
    level(&["l3"], MemoryLevel::L3),
    level(&["l4"], MemoryLevel::L4),
    level(&["lfb", "mab"], MemoryLevel::Lfb),
    level(&["ram", "dram"], MemoryLevel::Ram),
    level(&["pmem"], MemoryLevel::Pmem),
    level(&["cxl"], MemoryLevel::Cxl),
    level(&["io"], MemoryLevel::Io),
    level(&["unc", "uncached"], MemoryLevel::Uncached),
    level(&["any_cache"], MemoryLevel::AnyCache),
    level(&["mhb", "l2_mhb"], MemoryLevel::L2Mhb),
    level(&["msc"], MemoryLevel::Msc),
    level(&["na"], MemoryLevel::Na),
];

const SNOOPS: &[NamedValue] = &[
    bit(&["none"], window::SNOOP_LOCK, 1),
    bit(&["hit"], window::SNOOP_LOCK, 2),
    bit(&["miss"], window::SNOOP_LOCK, 4),
    bit(&["hitm"], window::SNOOP_LOCK, 8),
    bit(&["fwd"], window::SNOOPX_BLOCK, 2),
    bit(&["peer"], window::SNOOPX_BLOCK, 4),
    NamedValue { names: &["na"], meaning: Meaning::NoBit(0xf << 20 | 3 << 38) },
];

// Bits of the window: 1 hit, 2 miss, 4 first level, 8 second level, 16 walker, 32 operating system.
const TLBS: &[NamedValue] = &[
    in_window(&["l1_hit"], window::TLB, numbers(0, 1 | 4, 8)),
    in_window(&["l2_hit"], window::TLB, numbers(0, 1 | 8, 4)),
    bit(&["any_hit"], window::TLB, 1),
    // A miss in the first level: it is reported as one, or only the second level hit, or the walker
    // was needed.
    in_window(&["l1_miss"], window::TLB, numbers(2 | 16, 0, 0) | numbers(0, 1 | 8, 4)),
    // A miss without a level is one in the second level, because the walker follows.
    in_window(&["l2_miss"], window::TLB, numbers(16, 0, 0) | numbers(0, 2 | 8, 0) | numbers(0, 2, 4)),
    bit(&["any_miss"], window::TLB, 2 | 16),
    bit(&["walk"], window::TLB, 16),
    bit(&["fault", "os"], window::TLB, 32),
    in_window(&["na"], window::TLB, 1),
];

const REMOTES: &[NamedValue] = &[
    NamedValue { names: &["remote", "1"], meaning: Meaning::Remote(true) },
    NamedValue { names: &["local", "0"], meaning: Meaning::Remote(false) },
];

const LOCKS: &[NamedValue] = &[
    bit(&["locked", "1"], window::SNOOP_LOCK, 32),
    in_window(&["unlocked", "0"], window::SNOOP_LOCK, numbers(0, 0, 48)),
    in_window(&["na"], window::SNOOP_LOCK, numbers(0, 16, 32)),
];

const BLOCKS: &[NamedValue] = &[
    bit(&["data", "by_data"], window::SNOOPX_BLOCK, 16),
    bit(&["addr", "by_addr"], window::SNOOPX_BLOCK, 32),
    in_window(&["na"], window::SNOOPX_BLOCK, numbers(0, 0, 48)),
];

const fn outcome(names: &'static [&'static str], all: u64, none: u64) -> NamedValue {
    NamedValue { names, meaning: Meaning::Outcome { all, none } }
}

const BRANCHES: &[NamedValue] = &[
    outcome(&["any"], OutcomeBits::BRANCH, 0),
    outcome(&["taken"], OutcomeBits::BRANCH | OutcomeBits::TAKEN, 0),
    outcome(&["not_taken"], OutcomeBits::BRANCH, OutcomeBits::TAKEN),
    outcome(&["mispredicted", "misp"], OutcomeBits::BRANCH | OutcomeBits::MISPREDICTED, 0),
    outcome(&["predicted"], OutcomeBits::BRANCH, OutcomeBits::MISPREDICTED),
    outcome(&["return", "ret"], OutcomeBits::BRANCH | OutcomeBits::RETURN, 0),
];

const ACCESSES: &[NamedValue] = &[
    outcome(&["misaligned", "split"], OutcomeBits::MISALIGNED, 0),
    outcome(&["aligned"], 0, OutcomeBits::MISALIGNED),
    outcome(&["uncached"], OutcomeBits::UNCACHED, 0),
    outcome(&["write_combining", "wc"], OutcomeBits::WRITE_COMBINING, 0),
];

/// The mask has all five bits of the data source, because each number is a different source.
const CCXS: &[NamedValue] = &[
    outcome(&["same_ccx"], OutcomeBits::SOURCE_SAME_CCX, OutcomeBits::SOURCE & !OutcomeBits::SOURCE_SAME_CCX),
    outcome(
        &["other_ccx"],
        OutcomeBits::SOURCE_OTHER_CCX,
        OutcomeBits::SOURCE & !OutcomeBits::SOURCE_OTHER_CCX,
    ),
    outcome(
        &["other_node"],
        OutcomeBits::SOURCE_OTHER_NODE,
        OutcomeBits::SOURCE & !OutcomeBits::SOURCE_OTHER_NODE,
    ),
];

const FETCHES: &[NamedValue] = &[
    outcome(&["completed"], OutcomeBits::COMPLETED, 0),
    outcome(&["aborted"], 0, OutcomeBits::COMPLETED),
    outcome(&["ic_miss"], OutcomeBits::IC_MISS, 0),
    outcome(&["itlb_miss"], OutcomeBits::ITLB_L1_MISS, 0),
    outcome(&["itlb_walk"], OutcomeBits::ITLB_L1_MISS | OutcomeBits::ITLB_L2_MISS, 0),
    outcome(&["l2_miss"], OutcomeBits::FETCH_L2_MISS, 0),
    outcome(&["l3_miss"], OutcomeBits::FETCH_L3_MISS, 0),
    outcome(&["oc_miss"], OutcomeBits::OP_CACHE_MISS, 0),
];

const MODES: &[NamedValue] = &[
    NamedValue { names: &["kernel"], meaning: Meaning::Kernel(true) },
    NamedValue { names: &["user"], meaning: Meaning::Kernel(false) },
];

/// Terms of perf that are not supported here, with the message about them.
pub(super) const NOT_HERE: &[(&str, &str)] = &[
    (
        "ins_lat",
        "`latency` is the access latency (perf's `weight1`); the latency of the instruction cannot be \
         filtered",
    ),
    ("weight2", "`latency` is the access latency (perf's `weight1`); perf's `weight2` cannot be filtered"),
    ("weight3", "`latency` is the access latency (perf's `weight1`); perf's `weight3` cannot be filtered"),
    (
        "retire_lat",
        "`latency` is the access latency (perf's `weight1`); the retire latency cannot be filtered",
    ),
    ("p_stage_cyc", "`latency` is the access latency (perf's `weight1`); pipeline stages cannot be filtered"),
    ("period", "all samples of a run have the same period"),
    ("id", "the program sees one event at a time, so its id cannot select samples"),
    ("time", "the kernel cannot filter by time; a capture keeps epochs, which views can select"),
    ("txn", "transactions cannot be filtered"),
    ("code_pgsz", "`data_pgsz` is the page size of the data; the page size of the code cannot be filtered"),
    (
        "code_page_size",
        "`data_pgsz` is the page size of the data; the page size of the code cannot be filtered",
    ),
];

/// Names of `mem_hops`, in perf's numbering, which starts at one core away.
pub(super) const HOPS: &[(&str, u64)] = &[("hops0", 1), ("hops1", 2), ("hops2", 3), ("hops3", 4)];

const U32: u64 = u32::MAX as u64;

impl Term {
    /// Returns the accepted names; the first is the canonical one.
    pub fn names(self) -> &'static [&'static str] {
        self.entry()
    }

    /// Returns the canonical name, which is printed.
    pub fn name(self) -> &'static str {
        self.names()[0]
    }

    /// Returns the term with this name; `None` if there is none.
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|term| term.names().contains(&name))
    }

    /// Returns the kind of the term's values.
    pub fn kind(self) -> TermKind {
        let (operand, max) = match self {
            Self::Ip => (operand::IP, u64::MAX),
            Self::Address => (operand::ADDRESS, u64::MAX),
            Self::PhysAddress => (operand::PHYS_ADDRESS, u64::MAX),
            Self::Latency => (operand::LATENCY, U32),
            Self::PageSize => (operand::PAGE_SIZE, u64::MAX),
            Self::Pid => (operand::PID, U32),
            Self::Tid => (operand::TID, U32),
            Self::Cpu => (operand::CPU, U32),
            Self::Uid => (operand::UID, U32),
            Self::Gid => (operand::GID, U32),
            Self::Hops => (operand::DATA_SRC, 7),
            Self::Op => return TermKind::Class(OPS),
            Self::Level => return TermKind::Class(LEVELS),
            Self::Snoop => return TermKind::Class(SNOOPS),
            Self::Tlb => return TermKind::Class(TLBS),
            Self::Remote => return TermKind::Class(REMOTES),
            Self::Lock => return TermKind::Class(LOCKS),
            Self::Block => return TermKind::Class(BLOCKS),
            Self::Access => return TermKind::Class(ACCESSES),
            Self::Ccx => return TermKind::Class(CCXS),
            Self::Branch => return TermKind::Class(BRANCHES),
            Self::Fetch => return TermKind::Class(FETCHES),
            Self::Mode => return TermKind::Class(MODES),
            Self::Comm | Self::Cgroup => return TermKind::Text,
        };
        TermKind::Number { operand, max }
    }

    /// Returns the named value of this term; `None` if there is none.
    pub fn class(self, name: &str) -> Option<NamedValue> {
        match self.kind() {
            TermKind::Class(values) => values.iter().copied().find(|value| value.names.contains(&name)),
            _ => None,
        }
    }
}
