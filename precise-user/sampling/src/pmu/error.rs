//! Errors of parsing an event.

/// Why a text is not an event of this machine. Each message says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// The syntax of the text is wrong.
    #[error("'{text}' is not an event: {why}")]
    Syntax {
        /// The text of the event.
        text: String,
        /// What is wrong.
        why: String,
    },
    /// There is no event with this name.
    #[error("unknown event '{name}'{}; known events: {}", did_you_mean(.nearest), .known.join(", "))]
    UnknownEvent {
        /// The name in the text.
        name: String,
        /// The known name that is most similar, if any is.
        nearest: Option<String>,
        /// All known names.
        known: Vec<String>,
    },
    /// There is no PMU with this name.
    #[error("this machine has no PMU '{name}'{}; it has: {}", did_you_mean(.nearest), .known.join(", "))]
    UnknownPmu {
        /// The name in the text.
        name: String,
        /// The known name that is most similar, if any is.
        nearest: Option<String>,
        /// All known names.
        known: Vec<String>,
    },
    /// The PMU has no term or event with this name.
    #[error("{pmu} has no term or event '{term}'{}; it has: {}", did_you_mean(.nearest), .known.join(", "))]
    UnknownTerm {
        /// The PMU.
        pmu: String,
        /// The name in the text.
        term: String,
        /// The known name that is most similar, if any is.
        nearest: Option<String>,
        /// All known names.
        known: Vec<String>,
    },
    /// The value of a term does not fit its field.
    #[error("'{term}={value:#x}' is too large for {pmu}: the maximum of {term} is {max:#x}")]
    TooLarge {
        /// The PMU.
        pmu: String,
        /// The term.
        term: String,
        /// The value in the text.
        value: u64,
        /// The largest value that fits.
        max: u64,
    },
    /// The event is valid, but this machine cannot sample it.
    #[error("'{name}' cannot be sampled here: {why}")]
    Unsupported {
        /// The event as written.
        name: String,
        /// The reason.
        why: String,
    },
}

fn did_you_mean(nearest: &Option<String>) -> String {
    nearest.as_ref().map(|name| format!(" (did you mean '{name}'?)")).unwrap_or_default()
}
