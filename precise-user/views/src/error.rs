//! Why a view cannot answer: a sentence, and the command that records what is missing.

use super::again::Again;

/// Why a view cannot answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The capture lacks a dimension that the view needs.
    #[error(
        "{view} needs the {} {missing}, which this capture lacks. {again}",
        if missing.contains(' ') { "dimensions" } else { "dimension" }
    )]
    NotRecorded {
        /// The command that needs the dimensions.
        view: String,
        /// The missing dimensions.
        missing: String,
        /// The command that makes a capture with them.
        again: Again,
    },
    /// The samples of no event in the capture contain what the view needs.
    #[error("{view} needs {what}, which samples of {events} do not have. {}", others(again))]
    NoSuchSamples {
        /// The command that needs it.
        view: String,
        /// What the samples lack.
        what: String,
        /// The events of the capture.
        events: String,
        /// The command that makes a capture with such samples.
        again: Again,
    },
    /// The CPU of the capture has no IBS.
    #[error(
        "`precise derived` counts what AMD's IBS reports, and the capture is of a CPU without it: {cpu}."
    )]
    NoIbs {
        /// The CPU.
        cpu: String,
    },
    /// The capture has no event that was sampled both with precision and without.
    #[error(
        "`precise skid` compares precise and imprecise samples of the same event, and the capture has \
         {events}, {why}. {}",
        others(again)
    )]
    NotPaired {
        /// The events of the capture.
        events: String,
        /// What is missing.
        why: &'static str,
        /// The command that records both.
        again: Again,
    },
    /// The run did not record call chains.
    #[error("the capture has no call chains. {again}")]
    NoChains {
        /// The command that makes a capture with them.
        again: Again,
    },
    /// The capture has no event of this name.
    #[error("the capture has no event {event:?}; its events: {known}.")]
    NoSuchEvent {
        /// The requested name.
        event: String,
        /// The names of the events that exist.
        known: String,
    },
    /// The recorded addresses are too coarse.
    #[error(
        "the capture cannot be grouped by {key}: its data addresses are multiples of {granule} bytes. \
         Record or import with a smaller --granule."
    )]
    TooCoarse {
        /// The group key that needs finer addresses.
        key: &'static str,
        /// Granularity of the recorded addresses, in bytes.
        granule: u64,
    },
}

impl ViewError {
    /// Returns the command that makes a capture with what the view lacks; `None` if none does.
    pub fn again(&self) -> Option<&Again> {
        match self {
            Self::NotRecorded { again, .. }
            | Self::NoSuchSamples { again, .. }
            | Self::NotPaired { again, .. }
            | Self::NoChains { again } => Some(again),
            Self::NoIbs { .. } | Self::NoSuchEvent { .. } | Self::TooCoarse { .. } => None,
        }
    }
}

/// Returns the advice to record other samples. Not every machine has them.
fn others(again: &Again) -> String {
    match again {
        Again::Record(command) => {
            format!("Record others with `{command}`; `precise list` shows whether this machine supports it.")
        }
        again => again.to_string(),
    }
}
