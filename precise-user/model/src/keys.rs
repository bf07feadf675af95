//! What a report groups and sorts by, and the names that users type for it.

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::Dimension;
use crate::suggest::nearest;

crate::catalogue! {
    /// A group key: something that rows are grouped by.
    ///
    /// Every `--by` takes these words, and perf's for them. `record --by` and `import --by` keep
    /// the [`Dimension`] that the key needs. So each dimension has the name of a key, and where
    /// words could mean two things, this is what they mean:
    ///
    /// * `process` and `comm` are the name of the process, `pid` its number: one dimension.
    /// * `source` is the data source, not a source file. A report shows where the access was served
    ///   (`level`); `snoop`, `tlb`, `op`, `locked` and `remote` are its other parts. A source file
    ///   with the line is `line`.
    /// * `ip` is the instruction, `address` the data that it accessed.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum Key: KeyEntry {
        /// Function, the innermost inlined one.
        Function => entry("function", &["sym", "symbol", "func"], "Function", Some(Dimension::Ip)),
        /// Function and distance from its start.
        SymbolOffset => entry("symoff", &["symbol_offset"], "Function + offset", Some(Dimension::Ip)),
        /// Source line.
        Line => entry("line", &["srcline", "src_line"], "Line", Some(Dimension::Ip)),
        /// Runtime address of the instruction.
        Ip => entry("ip", &["addr_ip"], "Instruction", Some(Dimension::Ip)),
        /// File of the instruction.
        Module => entry("module", &["dso"], "Module", Some(Dimension::Ip)),
        /// Call chain: the callers of the sampled function.
        Stack => entry("stack", &["chain", "callchain"], "Callers", Some(Dimension::Stack)),
        /// Cgroup path.
        Cgroup => entry("cgroup", &["cgroup_id"], "Cgroup", Some(Dimension::Cgroup)),
        /// Process name.
        Process => entry("process", &["comm"], "Process", Some(Dimension::Process)),
        /// Process id.
        Pid => entry("pid", &[], "PID", Some(Dimension::Process)),
        /// Thread id.
        Tid => entry("tid", &["thread"], "TID", Some(Dimension::Thread)),
        /// CPU.
        Cpu => entry("cpu", &[], "CPU", Some(Dimension::Cpu)),
        /// NUMA node of the CPU.
        Node => entry("node", &["numa"], "Node", Some(Dimension::Cpu)),
        /// Event. Reports are per event in any case.
        Event => entry("event", &[], "Event", None),
        /// Where the access was served: the part of the data source that is asked for most.
        Level => entry("level", &["source", "mem", "mem_lvl"], "Memory access", Some(Dimension::Source)),
        /// What other caches said.
        Snoop => entry("snoop", &["mem_snoop"], "Snoop", Some(Dimension::Source)),
        /// How the address was translated.
        Tlb => entry("tlb", &["dtlb", "mem_dtlb"], "TLB access", Some(Dimension::Source)),
        /// Load, store, …
        Op => entry("op", &["mem_op", "type"], "Op", Some(Dimension::Source)),
        /// Whether the instruction was locked.
        Locked => entry("locked", &["mem_lock"], "Locked", Some(Dimension::Source)),
        /// Whether the access was served remotely.
        Remote => entry("remote", &["mem_remote"], "Remote", Some(Dimension::Source)),
        /// Latency bucket.
        Latency => entry("latency", &["local_weight", "weight", "local_ins_lat", "ins_lat"], "Latency", Some(Dimension::Latency)),
        /// What became of the branch, or of the instruction fetch.
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
        /// What the data address lies in.
        Region => entry("region", &["dso_daddr"], "Region", Some(Dimension::Address)),
        /// Epoch.
        Epoch => entry("epoch", &["time"], "Epoch", None),
        /// Kernel or user.
        Kernel => entry("kernel", &["cpumode", "mode"], "Mode", None),
    }
}

/// What belongs to a key.
#[derive(Clone, Copy)]
struct KeyEntry {
    /// As users type it.
    name: &'static str,
    /// Other words for it, most of them perf's.
    aliases: &'static [&'static str],
    /// Title of its column.
    title: &'static str,
    /// The dimension that a run must record for it.
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
    /// As users type it.
    pub const fn name(self) -> &'static str {
        self.entry().name
    }

    /// Other words for it, most of them perf's.
    pub const fn aliases(self) -> &'static [&'static str] {
        self.entry().aliases
    }

    /// Title of its column.
    pub const fn title(self) -> &'static str {
        self.entry().title
    }

    /// The dimension that a run must record for it; `None` when every run has it.
    pub const fn dimension(self) -> Option<Dimension> {
        self.entry().dimension
    }

    /// Every key, as help texts list them.
    pub fn list() -> String {
        Self::ALL.map(Self::name).join(", ")
    }

    /// The key of a word, ours or perf's; upper and lower case are the same.
    ///
    /// # Errors
    ///
    /// A sentence that names the nearest word, and all keys.
    pub fn parse(text: &str) -> Result<Self, UnknownName> {
        let word = text.trim().to_ascii_lowercase();
        let is = |key: &Self| key.name() == word || key.aliases().contains(&word.as_str());
        Self::ALL.into_iter().find(is).ok_or_else(|| {
            let aliases: Vec<_> = Self::ALL.iter().flat_map(|key| key.aliases()).copied().collect();
            UnknownName::new("group key", &word, &Self::ALL.map(Self::name), &aliases)
        })
    }

    /// A comma-separated list of keys; each once, in the order given.
    ///
    /// # Errors
    ///
    /// That of the first word that is none.
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

    /// The dimensions that a run must record for these keys; each once, in their order.
    pub fn dimensions(keys: &[Self]) -> Vec<Dimension> {
        let mut dimensions = Vec::new();
        for dimension in keys.iter().filter_map(|key| key.dimension()) {
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
    /// The sort order of a name: a measure, or a key. `latency` is the sum; a latency bucket is
    /// sorted by `key:latency`.
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
            // JSON has the names that users type.
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
