//! Why a text is no event.

/// Why a text is no event of this machine. Each says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Its shape is wrong.
    #[error("'{text}' is not an event: {why}")]
    Syntax {
        /// What was read.
        text: String,
        /// What is wrong.
        why: String,
    },
    /// No event has this name.
    #[error("unknown event '{name}'{}; known events: {}", did_you_mean(.nearest), .known.join(", "))]
    UnknownEvent {
        /// What was read.
        name: String,
        /// The name that is nearest.
        nearest: Option<String>,
        /// Every name.
        known: Vec<String>,
    },
    /// No PMU has this name.
    #[error("this machine has no PMU '{name}'{}; it has: {}", did_you_mean(.nearest), .known.join(", "))]
    UnknownPmu {
        /// What was read.
        name: String,
        /// The name that is nearest.
        nearest: Option<String>,
        /// Every name.
        known: Vec<String>,
    },
    /// The PMU has no such term or event.
    #[error("{pmu} has no term or event '{term}'{}; it has: {}", did_you_mean(.nearest), .known.join(", "))]
    UnknownTerm {
        /// The PMU.
        pmu: String,
        /// What was read.
        term: String,
        /// The name that is nearest.
        nearest: Option<String>,
        /// Every name.
        known: Vec<String>,
    },
    /// The value of a term has more bits than its field.
    #[error("'{term}={value:#x}' is too large for {pmu}: the maximum of {term} is {max:#x}")]
    TooLarge {
        /// The PMU.
        pmu: String,
        /// The term.
        term: String,
        /// What was read.
        value: u64,
        /// What fits.
        max: u64,
    },
    /// The event is right, and this machine cannot do it.
    #[error("'{name}' cannot be sampled here: {why}")]
    Unsupported {
        /// What was read.
        name: String,
        /// Why not.
        why: String,
    },
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default()
}
