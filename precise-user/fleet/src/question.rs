//! What is asked of a fleet.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::bucket::FleetError;
use crate::hour::FleetDay;
use crate::sources::PartChoice;
use crate::span::FleetSpan;
use crate::tables::FleetTable;

precise_model::catalogue! {
    /// A property that the samples of a fleet are grouped by.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum FleetKey: (&'static str, &'static str) {
        /// The service.
        Service => ("service", "Service"),
        /// The function, by name: builds of one program are added up.
        Function => ("function", "Function"),
        /// The file, kernel or kernel module that contains the function.
        Module => ("module", "Module"),
        /// Where accesses were served.
        Level => ("level", "Level"),
        /// The node.
        Node => ("node", "Node"),
        /// The cluster: the label of the captures.
        Cluster => ("cluster", "Cluster"),
        /// The hour.
        Hour => ("hour", "Hour (UTC)"),
        /// The type of the object that an instruction accesses.
        Type => ("type", "Type"),
        /// The field of that object.
        Field => ("field", "Field"),
    }
}

impl FleetKey {
    /// Returns the name of the key.
    pub const fn name(self) -> &'static str {
        self.entry().0
    }

    /// Returns the title of the key's column.
    pub const fn title(self) -> &'static str {
        self.entry().1
    }

    /// Returns whether the key is read from the debug information of programs.
    pub const fn is_of_types(self) -> bool {
        matches!(self, Self::Type | Self::Field)
    }

    /// Returns whether the tables of instructions have the key, so that it goes with types.
    pub const fn goes_with_types(self) -> bool {
        !matches!(self, Self::Level | Self::Node | Self::Cluster)
    }

    /// Returns the key with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|key| key.name() == name)
    }
}

/// Which tier of a day is read.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum FleetTier {
    /// All samples.
    #[default]
    Exact,
    /// The least thinned tier that takes at most this long.
    Within(Duration),
    /// The most thinned tier of which no share that is shown has an interval of more than this to
    /// a side, in 0..1.
    Good(f64),
}

/// A question to a fleet.
#[derive(Clone, Debug, PartialEq)]
pub struct FleetQuestion {
    /// Only this service; the empty name stands for samples without one.
    pub service: Option<String>,
    /// Only this event.
    pub event: Option<String>,
    /// The time that the question is about.
    pub span: FleetSpan,
    /// What groups are made by; at least one key.
    pub by: Vec<FleetKey>,
    /// The number of groups that are shown.
    pub limit: usize,
    /// The number of samples from which on groups are ranked.
    pub min_samples: u64,
    /// Which tier is read.
    pub tier: FleetTier,
    /// About how many bytes of groups are held in memory.
    pub memory: u64,
}

impl FleetQuestion {
    /// Returns a question about everything in a span.
    pub fn about(span: FleetSpan, by: Vec<FleetKey>) -> Self {
        Self {
            service: None,
            event: None,
            span,
            by,
            limit: 20,
            min_samples: 100,
            tier: FleetTier::Exact,
            memory: 256 << 20,
        }
    }

    pub(crate) fn has(&self, key: FleetKey) -> bool {
        self.by.contains(&key)
    }

    /// Returns whether the answer needs the types of objects.
    pub(crate) fn has_types(&self) -> bool {
        self.by.iter().any(|key| key.is_of_types())
    }

    /// Returns which rows of samples are read.
    pub(crate) fn samples(&self, tier: u8) -> PartChoice {
        let table = if self.has_types() { FleetTable::Instruction } else { FleetTable::Hour };
        PartChoice { table, tier, hourly: self.has(FleetKey::Hour), nodes: self.has(FleetKey::Node) }
    }

    /// Returns which rows of latencies are read.
    pub(crate) fn latencies(&self) -> PartChoice {
        let hourly = self.has(FleetKey::Hour);
        PartChoice { table: FleetTable::Latency, tier: 0, hourly, nodes: false }
    }
}

/// The reason why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The tables cannot be read.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// There are no tables of the time.
    #[error("there are no tables of {span}{}", newest.map(|day| format!("; the newest are of {day}")).unwrap_or_default())]
    NoTables {
        /// The time.
        span: FleetSpan,
        /// The newest day that has tables; `None` if there are none at all.
        newest: Option<FleetDay>,
    },
    /// A key that the tables of instructions do not have.
    #[error("types are not kept by {}", .0.name())]
    NotWithTypes(FleetKey),
    /// A question about latencies has a key of types.
    #[error("latencies are not kept by instruction, so that they have no types")]
    NoTypesOfLatencies,
    /// No sample is of the service or the event.
    #[error("no sample of {what} in the tables of {span}")]
    NoSamples {
        /// The service, the event, or both.
        what: String,
        /// The time.
        span: FleetSpan,
    },
}
