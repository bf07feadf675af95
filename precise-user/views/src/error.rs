//! Why a view cannot answer: a sentence, and the command that records what is missing.

fn dimensions(missing: &str) -> &'static str {
    if missing.contains(' ') { "dimensions" } else { "dimension" }
}

/// Why a view cannot answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The capture lacks a dimension that the view needs.
    #[error(
        "{view} needs the {} {missing}, which this capture lacks. Record with `precise record -e \
         {events} --by {by}`.",
        dimensions(missing)
    )]
    NotRecorded {
        /// The command that needs the dimensions.
        view: String,
        /// The missing dimensions.
        missing: String,
        /// The events of the capture, as `-e` takes them.
        events: String,
        /// A list for `--by` with the recorded dimensions and the missing ones.
        by: String,
    },
    /// The samples of no event in the capture contain what the view needs.
    #[error(
        "{view} needs {what}, which samples of {events} do not have. Record others with `precise record \
         -e {preset}{by}`; `precise list` shows whether this machine supports it."
    )]
    NoSuchSamples {
        /// The command that needs it.
        view: String,
        /// What the samples lack.
        what: String,
        /// The events of the capture.
        events: String,
        /// A preset whose samples contain it.
        preset: &'static str,
        /// ` --by` with a list; empty if the default dimensions of `record` suffice.
        by: String,
    },
    /// The capture has no event that was sampled both with precision and without.
    #[error(
        "`precise skid` compares precise and imprecise samples of the same event, and the capture has \
         {events}, {why}. Record both with `precise record -e skid`; `precise list` shows whether this \
         machine supports it."
    )]
    NotPaired {
        /// The events of the capture.
        events: String,
        /// What is missing.
        why: &'static str,
    },
    /// The run did not record call chains.
    #[error("the capture has no call chains. Record them with `precise record -g -e {events}`.")]
    NoChains {
        /// The events of the capture, as `-e` takes them.
        events: String,
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
         Record with a smaller --granule."
    )]
    TooCoarse {
        /// The group key that needs finer addresses.
        key: &'static str,
        /// Granularity of the recorded addresses, in bytes.
        granule: u64,
    },
}

impl ViewError {
    /// Returns what is said of an imported capture instead; `None` if the same. The recording may
    /// have what the import left out, and has nothing else.
    pub fn of_import(&self) -> Option<String> {
        Some(match self {
            Self::NotRecorded { view, missing, by, .. } => format!(
                "{view} needs the {} {missing}, which this import lacks. If the recording has what is missing, \
                 import it again without --by, or with `precise import --by {by} FILE`.",
                dimensions(missing)
            ),
            Self::NoSuchSamples { view, what, events, preset, .. } => format!(
                "{view} needs {what}, which samples of {events} do not have, so no import of this recording has \
                 it. A run of `precise record -e {preset}` has it, on a machine whose `precise list` shows that \
                 event."
            ),
            Self::NotPaired { events, why } => format!(
                "`precise skid` compares precise and imprecise samples of the same event, and the recording has \
                 {events}, {why}. A run of `precise record -e skid` has both."
            ),
            Self::NoChains { .. } => {
                "the import has no call chains. `perf record -g` records them; an import \
                 without --by keeps them."
                    .to_owned()
            }
            Self::NoSuchEvent { .. } | Self::TooCoarse { .. } => return None,
        })
    }

    /// Returns the command that records what the view lacks; `None` if a new recording does not
    /// help.
    pub fn record(&self) -> Option<String> {
        match self {
            Self::NotRecorded { events, by, .. } => Some(format!("precise record -e {events} --by {by}")),
            Self::NoSuchSamples { preset, by, .. } => Some(format!("precise record -e {preset}{by}")),
            Self::NotPaired { .. } => Some("precise record -e skid".to_owned()),
            Self::NoChains { events } => Some(format!("precise record -g -e {events}")),
            Self::NoSuchEvent { .. } | Self::TooCoarse { .. } => None,
        }
    }
}
