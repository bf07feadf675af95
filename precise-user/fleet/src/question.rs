//! What is asked of a fleet.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;

use crate::bucket::FleetError;
use crate::span::FleetSpan;

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
}

/// The reason why a question has no answer.
#[derive(Debug, thiserror::Error)]
pub enum AskError {
    /// The tables cannot be read.
    #[error(transparent)]
    Fleet(#[from] FleetError),
    /// There are no tables of the time.
    #[error("there are no tables of {0}")]
    NoTables(FleetSpan),
    /// No sample is of the service or the event.
    #[error("no sample of {what} in the tables of {span}")]
    NoSamples {
        /// The service, the event, or both.
        what: String,
        /// The time.
        span: FleetSpan,
    },
}
