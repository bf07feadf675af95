//! The fields that `--fields` selects.

use precise_model::Fields;

/// A field of a streamed sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StreamField {
    /// Time of the sample.
    Time,
    /// Number of the CPU.
    Cpu,
    /// Process name.
    Comm,
    /// Thread name.
    Thread,
    /// Process id.
    Pid,
    /// Thread id.
    Tid,
    /// Name of the event.
    Event,
    /// Number of events that the sample represents.
    Period,
    /// Access latency.
    Latency,
    /// Latency of the instruction.
    InstructionLatency,
    /// Cycles that the instruction took to retire.
    RetireLatency,
    /// Operation: load, store, …
    Op,
    /// Memory level that served the access.
    Level,
    /// Result of the snoop in other caches.
    Snoop,
    /// How the address was translated.
    Tlb,
    /// Whether the instruction was locked.
    Locked,
    /// Whether the access was served remotely.
    Remote,
    /// The whole data source word.
    DataSrc,
    /// Data address.
    Address,
    /// Physical data address.
    PhysAddress,
    /// Bytes of the page of the data address.
    PageSize,
    /// Variable at the data address.
    Variable,
    /// Memory region of the data address.
    Region,
    /// Cgroup path.
    Cgroup,
    /// Kernel or user.
    Mode,
    /// Whether the instruction address is exact.
    Exact,
    /// Instruction address.
    Ip,
    /// Name of the function.
    Symbol,
    /// File of the instruction.
    Module,
    /// Source line.
    Line,
    /// Registers that the driver adds, decoded.
    Registers,
    /// Raw data that the driver adds.
    Raw,
}

/// What a sample must have so that a field exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Needs {
    Nothing,
    Address,
    Latency,
    Source,
    Registers,
}

/// Field, name, aliases, column title and width, requirement, description.
type Entry = (StreamField, &'static str, &'static [&'static str], &'static str, usize, Needs, &'static str);

/// All fields, in the order of the columns.
const TABLE: &[Entry] = &[
    (
        StreamField::Time,
        "time",
        &[],
        "TIME",
        14,
        Needs::Nothing,
        "time of the sample (CLOCK_MONOTONIC): seconds in text, nanoseconds in JSON",
    ),
    (StreamField::Cpu, "cpu", &[], "CPU", 3, Needs::Nothing, "CPU"),
    (StreamField::Comm, "comm", &["process"], "COMM", 15, Needs::Nothing, "process name"),
    (
        StreamField::Thread,
        "thread",
        &[],
        "THREAD",
        15,
        Needs::Nothing,
        "thread name, which for the first thread is that of the process",
    ),
    (StreamField::Pid, "pid", &[], "PID", 7, Needs::Nothing, "process id"),
    (StreamField::Tid, "tid", &[], "TID", 7, Needs::Nothing, "thread id"),
    (StreamField::Event, "event", &[], "EVENT", 8, Needs::Nothing, "event, as named with -e"),
    (StreamField::Period, "period", &[], "PERIOD", 6, Needs::Nothing, "events that the sample stands for"),
    (
        StreamField::Latency,
        "latency",
        &["weight", "lat"],
        "LATENCY",
        7,
        Needs::Latency,
        "access latency, core cycles",
    ),
    (
        StreamField::InstructionLatency,
        "instruction_latency",
        &["ins_lat"],
        "INS-LATENCY",
        11,
        Needs::Latency,
        "latency from dispatch to retirement, core cycles, if the CPU reports it",
    ),
    (
        StreamField::RetireLatency,
        "retire_latency",
        &["retire_lat", "p_stage_cyc"],
        "RET-LATENCY",
        11,
        Needs::Latency,
        "latency in retirement, core cycles, if the CPU reports it",
    ),
    (StreamField::Op, "op", &["mem_op"], "OP", 5, Needs::Source, "load, store, …"),
    (
        StreamField::Level,
        "level",
        &["mem", "mem_lvl"],
        "LEVEL",
        11,
        Needs::Source,
        "level that served the access",
    ),
    (
        StreamField::Snoop,
        "snoop",
        &["mem_snoop"],
        "SNOOP",
        5,
        Needs::Source,
        "state of the line in other caches",
    ),
    (StreamField::Tlb, "tlb", &["mem_dtlb"], "TLB", 12, Needs::Source, "how the address was translated"),
    (
        StreamField::Locked,
        "locked",
        &["mem_lock", "lock"],
        "LOCKED",
        6,
        Needs::Source,
        "whether the instruction was locked",
    ),
    (
        StreamField::Remote,
        "remote",
        &["mem_remote"],
        "REMOTE",
        6,
        Needs::Source,
        "whether another node or core served the access",
    ),
    (
        StreamField::DataSrc,
        "data_src",
        &[],
        "DATA_SRC",
        14,
        Needs::Source,
        "the whole `perf_mem_data_src` word",
    ),
    (StreamField::Address, "address", &["addr"], "ADDRESS", 14, Needs::Address, "data address"),
    (
        StreamField::PhysAddress,
        "phys_address",
        &["phys_addr", "phys"],
        "PHYS-ADDRESS",
        14,
        Needs::Address,
        "physical data address; costs a page-table walk per sample on Intel",
    ),
    (
        StreamField::PageSize,
        "page_size",
        &["data_page_size"],
        "PAGE-SIZE",
        9,
        Needs::Address,
        "page size of the data address, bytes; costs a page-table walk per sample on Intel",
    ),
    (
        StreamField::Variable,
        "variable",
        &["sym_daddr"],
        "VARIABLE",
        24,
        Needs::Address,
        "variable at the data address",
    ),
    (
        StreamField::Region,
        "region",
        &["dso_daddr"],
        "REGION",
        24,
        Needs::Address,
        "what contains the data address: file, heap, stack, …",
    ),
    (
        StreamField::Cgroup,
        "cgroup",
        &[],
        "CGROUP",
        24,
        Needs::Nothing,
        "cgroup path, in the perf_event controller's hierarchy",
    ),
    (StreamField::Mode, "mode", &["cpumode"], "MODE", 6, Needs::Nothing, "kernel or user"),
    (
        StreamField::Exact,
        "exact",
        &[],
        "EXACT",
        5,
        Needs::Nothing,
        "whether the instruction address is exact",
    ),
    (StreamField::Ip, "ip", &[], "IP", 16, Needs::Nothing, "instruction address"),
    (
        StreamField::Symbol,
        "symbol",
        &["sym", "function"],
        "SYMBOL",
        1,
        Needs::Nothing,
        "function and offset from its start",
    ),
    (StreamField::Module, "module", &["dso"], "MODULE", 24, Needs::Nothing, "file of the instruction"),
    (StreamField::Line, "line", &["srcline"], "LINE", 24, Needs::Nothing, "source line"),
    (
        StreamField::Registers,
        "registers",
        &["ibs"],
        "REGISTERS",
        40,
        Needs::Registers,
        "IBS registers in words: branch, target, cycles to retirement, width, page, prefetch, …",
    ),
    (
        StreamField::Raw,
        "raw",
        &[],
        "RAW",
        8,
        Needs::Registers,
        "data that the driver adds, as hex words: IBS registers",
    ),
];

/// The error for a word in `--fields` that is not a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown field '{word}'. Valid fields: {valid}.")]
pub struct UnknownField {
    word: String,
    valid: String,
}

impl StreamField {
    /// Returns every field, in the order of the columns.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|entry| entry.0)
    }

    fn entry(self) -> Option<&'static Entry> {
        TABLE.iter().find(|entry| entry.0 == self)
    }

    /// Returns the name of the field, for `--fields` and as the key in JSON.
    pub fn name(self) -> &'static str {
        self.entry().map_or("", |entry| entry.1)
    }

    /// Returns the aliases of the field, including perf's names.
    pub fn aliases(self) -> &'static [&'static str] {
        self.entry().map_or(&[], |entry| entry.2)
    }

    /// Returns the title of the column.
    pub fn title(self) -> &'static str {
        self.entry().map_or("", |entry| entry.3)
    }

    /// Returns the minimum width of the column, in characters.
    pub fn width(self) -> usize {
        self.entry().map_or(0, |entry| entry.4)
    }

    /// Returns a short description of the field.
    pub fn doc(self) -> &'static str {
        self.entry().map_or("", |entry| entry.6)
    }

    /// Returns whether samples with these fields have it. `registers`: the driver adds raw data.
    pub fn exists(self, fields: Fields, registers: bool) -> bool {
        match self.entry().map_or(Needs::Nothing, |entry| entry.5) {
            Needs::Nothing => true,
            Needs::Address => fields.address,
            Needs::Latency => fields.latency,
            Needs::Source => fields.data_source,
            Needs::Registers => registers,
        }
    }

    /// Parses the name of a field, or an alias of it, ignoring case.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such field.
    pub fn parse(text: &str) -> Result<Self, UnknownField> {
        let word = text.trim().to_ascii_lowercase().replace('-', "_");
        let found = TABLE.iter().find(|entry| entry.1 == word || entry.2.contains(&word.as_str()));
        found.map(|entry| entry.0).ok_or_else(|| UnknownField {
            word: word.chars().take(40).collect(),
            valid: TABLE.iter().map(|entry| entry.1).collect::<Vec<_>>().join(", "),
        })
    }

    /// Returns whether the values are numbers, which are right-aligned in their column.
    pub fn is_number(self) -> bool {
        use StreamField::{
            Address, Cpu, DataSrc, InstructionLatency, Ip, Latency, PageSize, Period, PhysAddress, Pid,
            RetireLatency, Tid, Time,
        };
        matches!(
            self,
            Time | Cpu
                | Pid
                | Tid
                | Period
                | Latency
                | InstructionLatency
                | RetireLatency
                | DataSrc
                | Address
                | PhysAddress
                | PageSize
                | Ip
        )
    }

    /// Returns whether the field needs the instruction to be symbolized.
    pub fn needs_code(self) -> bool {
        matches!(self, Self::Symbol | Self::Module | Self::Line)
    }

    /// Returns whether the field needs the data address to be symbolized.
    pub fn needs_data(self) -> bool {
        matches!(self, Self::Variable | Self::Region)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_one_entry_and_every_name_means_one_field() {
        for field in StreamField::all() {
            assert_eq!(TABLE.iter().filter(|entry| entry.0 == field).count(), 1, "{field:?}");
            assert_eq!(StreamField::parse(field.name()), Ok(field));
        }
        let names: Vec<&str> =
            TABLE.iter().flat_map(|entry| entry.2.iter().copied().chain([entry.1])).collect();
        for (i, name) in names.iter().enumerate() {
            assert!(!names[i + 1..].contains(name), "{name}");
        }
        assert_eq!(StreamField::parse(" ADDR "), Ok(StreamField::Address));
        assert!(StreamField::parse("callchain").is_err_and(|error| error.to_string().contains("period")));
    }
}
