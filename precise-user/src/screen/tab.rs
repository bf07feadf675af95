//! The tabs: one question each.

/// A tab of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tab {
    /// The functions that were sampled.
    Functions,
    /// The source lines.
    Lines,
    /// The levels of the memory hierarchy that served accesses.
    Levels,
    /// The cgroups, with percentiles of the latency.
    Cgroups,
    /// The samples over time, by latency if there is one, with a strip for each cgroup.
    Time,
    /// The cache lines that cores contend for.
    CacheLines,
    /// The functions with their callees, and their callers.
    Callers,
    /// The ledger and the verdict: where the samples went, and whether they are precise.
    Ledger,
    /// The types of the objects that sampled instructions access.
    Types,
}

impl Tab {
    /// All tabs, in order.
    pub const ALL: [Self; 9] = [
        Self::Functions,
        Self::Lines,
        Self::Levels,
        Self::Cgroups,
        Self::Time,
        Self::CacheLines,
        Self::Callers,
        Self::Ledger,
        Self::Types,
    ];

    /// Returns the title of the tab.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Functions => "Functions",
            Self::Lines => "Lines",
            Self::Levels => "Levels",
            Self::Cgroups => "Cgroups",
            Self::Time => "Time",
            Self::CacheLines => "Shared",
            Self::Callers => "Calls",
            Self::Ledger => "Ledger",
            Self::Types => "Types",
        }
    }

    /// Returns the question that the tab answers.
    pub const fn question(self) -> &'static str {
        match self {
            Self::Functions => "which functions the samples hit",
            Self::Lines => "which source lines",
            Self::Levels => "which level of memory served the accesses (-e loads)",
            Self::Cgroups => "which services, and how long their accesses took",
            Self::Time => "when: a strip for each cgroup, latency or function upwards",
            Self::CacheLines => "cache lines that cores contend for (-e c2c)",
            Self::Callers => "functions with what they called (-g)",
            Self::Ledger => "where the samples went, and whether they are precise",
            Self::Types => "which structs and fields the samples access",
        }
    }

    /// Returns the tab that is `steps` to the right, around the end.
    pub fn beside(self, steps: usize) -> Self {
        let at = Self::ALL.iter().position(|tab| *tab == self).unwrap_or(0);
        Self::ALL[(at + steps) % Self::ALL.len()]
    }
}
