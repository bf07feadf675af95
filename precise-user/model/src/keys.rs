//! The group keys and sort orders of a report, and the names that users type for them.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::Dimension;
use crate::suggest::nearest;

crate::catalogue! {
    /// A group key: something that rows are grouped by.
    ///
    /// Every `--by` accepts these names, and perf's names for them. `record --by` and `import --by`
    /// keep the [`Dimension`] that the key needs, so each dimension has the name of a key. Some
    /// names could mean two things:
    ///
    /// * `process` and `comm` are the name of the process, `pid` is its number: all are one
    ///   dimension.
    /// * `thread` is the name of the thread, `tid` its number: both are one dimension. perf's
    ///   `comm` is the name of the thread.
    /// * `source` is the data source, not a source file. A report shows where the access was served
    ///   (`level`); `snoop`, `tlb`, `op`, `locked` and `remote` are the other parts of the data
    ///   source. A source file with the line is `line`.
    /// * `ip` is the instruction, `address` is the data that it accessed.
    /// * `object` is the memory that was accessed, by who touched it first: the functions whose
    ///   page fault gave the process the page, and `age` is how long ago that was. The run must
    ///   sample page faults as well.
    /// * `type` is the type of the accessed object. The kind of operation is `op`.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Key: KeyEntry {
        /// Function, the innermost inlined one.
        Function => entry("function", &["sym", "symbol", "func"], "Function", Some(Dimension::Ip)),
        /// Function and distance from its start, in bytes.
        SymbolOffset => entry("symoff", &["symbol_offset"], "Function + offset", Some(Dimension::Ip)),
        /// Source line.
        Line => entry("line", &["srcline", "src_line"], "Line", Some(Dimension::Ip)),
        /// Runtime address of the instruction.
        Ip => entry("ip", &["addr_ip"], "Instruction", Some(Dimension::Ip)),
        /// File or module that contains the instruction.
        Module => entry("module", &["dso"], "Module", Some(Dimension::Ip)),
        /// Type of the accessed object, from the debug information of the binary.
        Type => entry("type", &["data_type"], "Type", Some(Dimension::Ip)),
        /// Field of the accessed object, after the name of its type.
        Field => entry("field", &["typeoff"], "Field", Some(Dimension::Ip)),
        /// Call chain: the callers of the sampled function.
        Stack => entry("stack", &["chain", "callchain"], "Callers", Some(Dimension::Stack)),
        /// Cgroup path.
        Cgroup => entry("cgroup", &["cgroup_id"], "Cgroup", Some(Dimension::Cgroup)),
        /// Process name.
        Process => entry("process", &["comm"], "Process", Some(Dimension::Process)),
        /// Process id.
        Pid => entry("pid", &[], "PID", Some(Dimension::Process)),
        /// Thread name.
        Thread => entry("thread", &[], "Thread", Some(Dimension::Thread)),
        /// Thread id.
        Tid => entry("tid", &[], "TID", Some(Dimension::Thread)),
        /// CPU.
        Cpu => entry("cpu", &[], "CPU", Some(Dimension::Cpu)),
        /// NUMA node of the CPU.
        Node => entry("node", &["numa"], "Node", Some(Dimension::Cpu)),
        /// Event. Reports are separate per event even without this key.
        Event => entry("event", &[], "Event", None),
        /// Where the access was served: the most used part of the data source.
        Level => entry("level", &["source", "mem", "mem_lvl"], "Memory access", Some(Dimension::Source)),
        /// The snoop result: what other caches answered.
        Snoop => entry("snoop", &["mem_snoop"], "Snoop", Some(Dimension::Source)),
        /// How the address was translated.
        Tlb => entry("tlb", &["dtlb", "mem_dtlb"], "TLB access", Some(Dimension::Source)),
        /// The operation: load, store, …
        Op => entry("op", &["mem_op"], "Op", Some(Dimension::Source)),
        /// Whether the instruction was locked.
        Locked => entry("locked", &["mem_lock"], "Locked", Some(Dimension::Source)),
        /// Whether the access was served remotely.
        Remote => entry("remote", &["mem_remote"], "Remote", Some(Dimension::Source)),
        /// Latency bucket.
        Latency => entry("latency", &["local_weight", "weight", "local_ins_lat", "ins_lat"], "Latency", Some(Dimension::Latency)),
        /// Outcome of the branch or of the instruction fetch.
        Outcome => entry("outcome", &["branch", "fetch"], "Outcome", Some(Dimension::Outcome)),
        /// Data address.
        Address => entry("address", &["addr", "daddr"], "Address", Some(Dimension::Address)),
        /// Cache line of the data address: 64 bytes.
        LineAddress => entry("line-address", &["dcacheline", "cacheline"], "Cache line", Some(Dimension::Address)),
        /// Page of the data address: 4,096 bytes.
        Page => entry("page", &[], "Page", Some(Dimension::Address)),
        /// Size of the page of the data address.
        PageSize => entry("page-size", &["page_size", "data_page_size", "data_pgsz"], "Page size", Some(Dimension::PageSize)),
        /// Variable.
        Variable => entry("variable", &["symbol_daddr", "sym_daddr"], "Variable", Some(Dimension::Address)),
        /// Region that contains the data address.
        Region => entry("region", &["dso_daddr"], "Region", Some(Dimension::Address)),
        /// Functions whose page fault made the page of the data address, the innermost one first.
        Object => entry("object", &["first_touch"], "First touched by", Some(Dimension::Address)),
        /// How long before the access that page fault was.
        Age => entry("age", &["object_age"], "Touched before", Some(Dimension::Address)),
        /// Epoch.
        Epoch => entry("epoch", &["time"], "Epoch", None),
        /// Kernel or user.
        Kernel => entry("kernel", &["cpumode", "mode"], "Mode", None),
    }
}

/// The texts and the dimension of a key.
#[derive(Clone, Copy)]
struct KeyEntry {
    /// The name that users type.
    name: &'static str,
    /// Other names for the key, most of them perf's.
    aliases: &'static [&'static str],
    /// The title of the column.
    title: &'static str,
    /// The dimension that a run must record for the key.
    dimension: Option<Dimension>,
}

const fn entry(
    name: &'static str,
    aliases: &'static [&'static str],
    title: &'static str,
    dimension: Option<Dimension>,
) -> KeyEntry {
    KeyEntry { name, aliases, title, dimension }
}

/// The sort order of a report. Measures are sorted from large to small, keys from small to large.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// Samples.
    #[default]
    Samples,
    /// Events that the samples stand for.
    Period,
    /// Sum of latencies, which shows where the time went.
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

/// The error for a name that is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a {what}.{hint} Valid values: {valid}.")]
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
    /// Returns the name that users type.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns the other names of the key, most of them perf's.
    pub const fn aliases(self) -> &'static [&'static str] {
        self.entry().aliases
    }

    /// Returns the title of the column.
    pub const fn title(self) -> &'static str {
        self.entry().title
    }

    /// Returns the dimension that a run must record for the key; `None` if every run has it.
    pub const fn dimension(self) -> Option<Dimension> {
        self.entry().dimension
    }

    /// Returns the names of all keys, as help texts list them.
    pub fn list() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// Returns whether rows have a value only after their types were looked up in the binaries.
    pub const fn needs_types(self) -> bool {
        matches!(self, Self::Type | Self::Field)
    }

    /// Returns whether rows have a value only after the page faults of their capture were looked up
    /// ([`crate::first_touch::look_up`]).
    pub const fn needs_touches(self) -> bool {
        matches!(self, Self::Object | Self::Age)
    }

    /// Parses the name of a key, ours or perf's. Upper and lower case are the same.
    ///
    /// # Errors
    ///
    /// Returns an error if there is no such key. Its message names the nearest name, and lists all
    /// keys.
    pub fn parse(text: &str) -> Result<Self, UnknownName> {
        let word = text.trim().to_ascii_lowercase();
        let is = |key: &Self| key.name() == word || key.aliases().contains(&word.as_str());
        Self::ALL.into_iter().find(is).ok_or_else(|| {
            let aliases: Vec<_> = Self::ALL.iter().flat_map(|key| key.aliases()).copied().collect();
            UnknownName::new("group key", &word, &Self::ALL.map(Self::name), &aliases)
        })
    }

    /// Parses a comma-separated list of keys. Duplicates are dropped; the order is kept.
    ///
    /// # Errors
    ///
    /// Returns the error of the first name that is not a key.
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

    /// Returns the dimensions that a run must record for these keys, without duplicates, in the
    /// order of the keys.
    pub fn dimensions(keys: &[Self]) -> Vec<Dimension> {
        let mut dimensions = Vec::new();
        // A page belongs to a process, and is called by the instruction that touched it.
        let beside = |key: &Self| match key {
            Self::Object => [Some(Dimension::Process), Some(Dimension::Ip)],
            Self::Age => [Some(Dimension::Process), None],
            _ => [None; 2],
        };
        let all = keys.iter().flat_map(|key| [key.dimension()].into_iter().chain(beside(key)));
        for dimension in all.flatten() {
            if !dimensions.contains(&dimension) {
                dimensions.push(dimension);
            }
        }
        dimensions
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Sort {
    /// Parses a sort order: a measure, or a key. `latency` is the sum of latencies; `key:latency`
    /// sorts by latency bucket.
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
                .chain(Key::ALL.map(Key::name).into_iter().filter(|n| *n != "latency"))
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
        for key in Key::ALL {
            for word in key.aliases().iter().copied().chain([key.name()]) {
                assert_eq!(Key::parse(word), Ok(key));
                assert!(!seen.contains(&word), "{word} twice");
                seen.push(word);
            }
            assert_eq!(Sort::parse(&Sort::Key(key).to_string()), Ok(Sort::Key(key)));
            // JSON uses the names that users type.
            if key != Key::SymbolOffset {
                assert_eq!(serde_json::to_value(key).unwrap(), key.name());
            }
        }
        for (sort, name, aliases) in MEASURES {
            for word in aliases.iter().chain([name]) {
                assert_eq!(Sort::parse(word), Ok(*sort));
            }
        }
    }

    #[test]
    fn a_run_is_grouped_by_the_words_of_a_report() {
        let of = |text| Key::dimensions(&Key::parse_list(text).unwrap());
        assert_eq!(of("function,level,dso"), [Dimension::Ip, Dimension::Source]);
        assert_eq!(of("comm,pid,node,event"), [Dimension::Process, Dimension::Cpu]);
        for dimension in Dimension::ALL {
            assert_eq!(of(dimension.as_str()), [dimension], "what captures call it is a word of --by");
        }
    }

    #[test]
    fn lists_and_mistakes() {
        assert_eq!(Key::parse_list("sym,DSO,,symbol"), Ok(vec![Key::Function, Key::Module]));
        let error = Key::parse("fucntion").unwrap_err().to_string();
        assert!(error.starts_with(
            "\"fucntion\" is not a group key. Did you mean `function`? Valid values: function, "
        ));
        let error = Sort::parse("zzzzzzzz").unwrap_err().to_string();
        assert!(
            error.starts_with("\"zzzzzzzz\" is not a sort order. Valid values: samples, period, "),
            "{error}"
        );
        assert_eq!(Sort::parse("local_weight"), Ok(Sort::Average));
    }
}
