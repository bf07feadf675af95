//! What a report groups and sorts by, and the names that users type for it.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::Dimension;
use crate::suggest::nearest;

/// Something that a report groups by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Key {
    /// Function, the innermost inlined one.
    Function,
    /// Function and distance from its start.
    SymbolOffset,
    /// Source line.
    Line,
    /// Runtime address of the instruction.
    Ip,
    /// File of the instruction.
    Module,
    /// Cgroup path.
    Cgroup,
    /// Process name.
    Process,
    /// Process id.
    Pid,
    /// Thread id.
    Tid,
    /// CPU.
    Cpu,
    /// NUMA node of the CPU.
    Node,
    /// Event. Reports are per event in any case.
    Event,
    /// Where the access was served.
    Level,
    /// What other caches said.
    Snoop,
    /// How the address was translated.
    Tlb,
    /// Load, store, …
    Op,
    /// Whether the instruction was locked.
    Locked,
    /// Whether the access was served remotely.
    Remote,
    /// Latency bucket.
    Latency,
    /// What became of the branch, or of the instruction fetch.
    Outcome,
    /// Data address.
    Address,
    /// Cache line of the data address: 64 bytes.
    LineAddress,
    /// Page of the data address: 4,096 bytes.
    Page,
    /// Size of the page of the data address.
    PageSize,
    /// Variable.
    Variable,
    /// What the data address lies in.
    Region,
    /// Epoch.
    Epoch,
    /// Kernel or user.
    Kernel,
}

/// Key, name, perf's names for it, title of its column.
type Entry = (Key, &'static str, &'static [&'static str], &'static str);

const TABLE: &[Entry] = &[
    (Key::Function, "function", &["sym", "symbol", "func"], "Function"),
    (Key::SymbolOffset, "symoff", &["symbol_offset"], "Function + offset"),
    (Key::Line, "line", &["srcline", "src_line"], "Line"),
    (Key::Ip, "ip", &["addr_ip"], "Instruction"),
    (Key::Module, "module", &["dso"], "Module"),
    (Key::Cgroup, "cgroup", &["cgroup_id"], "Cgroup"),
    (Key::Process, "process", &["comm"], "Process"),
    (Key::Pid, "pid", &[], "PID"),
    (Key::Tid, "tid", &["thread"], "TID"),
    (Key::Cpu, "cpu", &[], "CPU"),
    (Key::Node, "node", &["numa"], "Node"),
    (Key::Event, "event", &[], "Event"),
    (Key::Level, "level", &["mem", "mem_lvl"], "Memory access"),
    (Key::Snoop, "snoop", &["mem_snoop"], "Snoop"),
    (Key::Tlb, "tlb", &["dtlb", "mem_dtlb"], "TLB access"),
    (Key::Op, "op", &["mem_op", "type"], "Op"),
    (Key::Locked, "locked", &["mem_lock"], "Locked"),
    (Key::Remote, "remote", &["mem_remote"], "Remote"),
    (Key::Latency, "latency", &["local_weight", "weight", "local_ins_lat", "ins_lat"], "Latency"),
    (Key::Outcome, "outcome", &["branch", "fetch"], "Outcome"),
    (Key::Address, "address", &["addr", "daddr"], "Address"),
    (Key::LineAddress, "line-address", &["dcacheline", "cacheline"], "Cache line"),
    (Key::Page, "page", &[], "Page"),
    (Key::PageSize, "page-size", &["page_size", "data_page_size", "data_pgsz"], "Page size"),
    (Key::Variable, "variable", &["symbol_daddr", "sym_daddr"], "Variable"),
    (Key::Region, "region", &["dso_daddr"], "Region"),
    (Key::Epoch, "epoch", &["time"], "Epoch"),
    (Key::Kernel, "kernel", &["cpumode", "mode"], "Mode"),
];

/// What a report is sorted by. Measures go from large to small, keys from small to large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// Samples.
    #[default]
    Samples,
    /// Events that the samples stand for.
    Period,
    /// Sum of latencies: where the time went.
    Latency,
    /// Average latency.
    Average,
    /// Largest latency.
    Maximum,
    /// A key.
    Key(Key),
}

const MEASURES: &[(Sort, &str, &[&str])] = &[
    (Sort::Samples, "samples", &["count", "overhead", "sample"]),
    (Sort::Period, "period", &["events"]),
    (Sort::Latency, "latency", &["weight", "latency_sum", "ins_lat"]),
    (Sort::Average, "avg", &["average", "mean", "local_weight"]),
    (Sort::Maximum, "max", &["maximum"]),
];

/// A name that means nothing here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no {what} {word:?}.{hint} Valid are: {valid}.")]
pub struct UnknownName {
    what: &'static str,
    word: String,
    hint: String,
    valid: String,
}

impl UnknownName {
    fn new(what: &'static str, word: &str, valid: &[&str], aliases: &[&str]) -> Self {
        let near = nearest(word, valid.iter().chain(aliases).copied());
        let hint = near.map_or(String::new(), |name| format!(" Did you mean `{name}`?"));
        let word = word.chars().take(40).collect();
        Self { what, word, hint, valid: valid.join(", ") }
    }
}

impl Key {
    /// Every key, in the order that help texts list them.
    pub fn all() -> impl Iterator<Item = Self> {
        TABLE.iter().map(|entry| entry.0)
    }

    fn entry(self) -> Option<&'static Entry> {
        TABLE.iter().find(|entry| entry.0 == self)
    }

    /// As users type it.
    pub fn name(self) -> &'static str {
        self.entry().map_or("", |entry| entry.1)
    }

    /// Title of its column.
    pub fn title(self) -> &'static str {
        self.entry().map_or("", |entry| entry.3)
    }

    /// The dimension that a run must record for it; `None` when every run has it.
    pub fn dimension(self) -> Option<Dimension> {
        match self {
            Self::Function | Self::SymbolOffset | Self::Line | Self::Ip | Self::Module => Some(Dimension::Ip),
            Self::Cgroup => Some(Dimension::Cgroup),
            Self::Process | Self::Pid => Some(Dimension::Process),
            Self::Tid => Some(Dimension::Thread),
            Self::Cpu | Self::Node => Some(Dimension::Cpu),
            Self::Level | Self::Snoop | Self::Tlb | Self::Op | Self::Locked | Self::Remote => {
                Some(Dimension::Source)
            }
            Self::PageSize => Some(Dimension::PageSize),
            Self::Latency => Some(Dimension::Latency),
            Self::Outcome => Some(Dimension::Outcome),
            Self::Address | Self::LineAddress | Self::Page | Self::Variable | Self::Region => {
                Some(Dimension::Address)
            }
            Self::Event | Self::Epoch | Self::Kernel => None,
        }
    }

    /// The key of a name, ours or perf's; upper and lower case are the same.
    pub fn parse(text: &str) -> Result<Self, UnknownName> {
        let word = text.trim().to_ascii_lowercase();
        let hit =
            TABLE.iter().find(|(_, name, aliases, _)| *name == word || aliases.contains(&word.as_str()));
        hit.map(|entry| entry.0).ok_or_else(|| {
            let names: Vec<_> = TABLE.iter().map(|entry| entry.1).collect();
            let aliases: Vec<_> = TABLE.iter().flat_map(|entry| entry.2).copied().collect();
            UnknownName::new("key", &word, &names, &aliases)
        })
    }

    /// A comma-separated list of keys; each once, in the order given.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, UnknownName> {
        let mut keys = Vec::new();
        for word in text.split(',').filter(|word| !word.trim().is_empty()) {
            let key = Self::parse(word)?;
            if !keys.contains(&key) {
                keys.push(key);
            }
        }
        Ok(keys)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Sort {
    /// The sort order of a name: a measure, or a key. `latency` is the sum; a latency bucket is sorted by
    /// `key:latency`.
    pub fn parse(text: &str) -> Result<Self, UnknownName> {
        let word = text.trim().to_ascii_lowercase();
        if let Some(key) = word.strip_prefix("key:") {
            return Key::parse(key).map(Self::Key);
        }
        let hit =
            MEASURES.iter().find(|(_, name, aliases)| *name == word || aliases.contains(&word.as_str()));
        if let Some((sort, _, _)) = hit {
            return Ok(*sort);
        }
        Key::parse(&word).map(Self::Key).map_err(|_| {
            let names: Vec<_> = MEASURES
                .iter()
                .map(|m| m.1)
                .chain(TABLE.iter().map(|e| e.1).filter(|n| *n != "latency"))
                .collect();
            let aliases: Vec<_> = MEASURES.iter().flat_map(|m| m.2).copied().collect();
            UnknownName::new("sort order", &word, &names, &aliases)
        })
    }
}

impl fmt::Display for Sort {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Key(Key::Latency) => f.write_str("key:latency"),
            Self::Key(key) => f.write_str(key.name()),
            measure => f.write_str(MEASURES.iter().find(|m| m.0 == *measure).map_or("", |m| m.1)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_to_its_key_and_none_is_used_twice() {
        let mut seen = Vec::new();
        for (key, name, aliases, _) in TABLE {
            for word in aliases.iter().chain([name]) {
                assert_eq!(Key::parse(word), Ok(*key));
                assert!(!seen.contains(word), "{word} twice");
                seen.push(word);
            }
            assert_eq!(Sort::parse(&Sort::Key(*key).to_string()), Ok(Sort::Key(*key)));
        }
        for (sort, name, aliases) in MEASURES {
            for word in aliases.iter().chain([name]) {
                assert_eq!(Sort::parse(word), Ok(*sort));
            }
        }
    }

    #[test]
    fn lists_and_mistakes() {
        assert_eq!(Key::parse_list("sym,DSO,,symbol"), Ok(vec![Key::Function, Key::Module]));
        let error = Key::parse("fucntion").unwrap_err().to_string();
        assert!(
            error.starts_with("there is no key \"fucntion\". Did you mean `function`? Valid are: function, ")
        );
        let error = Sort::parse("zzzzzzzz").unwrap_err().to_string();
        assert!(
            error.starts_with("there is no sort order \"zzzzzzzz\". Valid are: samples, period, "),
            "{error}"
        );
        assert_eq!(Sort::parse("local_weight"), Ok(Sort::Average));
    }
}
