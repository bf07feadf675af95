//! Views: each answers one question about a capture. Views are pure functions from a capture to a
//! result; they open nothing and print nothing.
//!
//! Each view is a folder with a type that implements [`view::View`]; [`registry::VIEWS`] lists all
//! of them.

/// Declares the modules of the views, and the list of all views.
macro_rules! views {
    ($($module:ident::$view:ident,)*) => {
        $(pub mod $module;)*

        /// All views, in the order of `precise --help`.
        static VIEWS: &[&dyn view::AnyView] = &[$(&$module::$view,)*];
    };
}

// A new view needs its folder and one line here.
views! {
    explain::ExplainView,
    report::ReportView,
    summary::SummaryView,
    call_graph::CallGraphView,
    mem::MemView,
    latency::LatencyView,
    tlb::PageWalks,
    numa::NumaView,
    threads::ThreadsView,
    c2c::C2cView,
    fetch::Fetches,
    branches::BranchesView,
    derived::DerivedEvents,
    annotate::AnnotateView,
    chase::ChaseView,
    skid::SkidView,
    diff::DiffView,
    check::CheckView,
    flame::FlamegraphView,
    heatmap::HeatmapView,
}

pub mod about;
mod chains;
pub mod code;
pub mod cost_text;
pub(crate) mod csv;
pub mod document;
pub mod gates;
mod group_table;
pub mod grouping;
pub mod html;
pub mod imported;
pub mod needs;
pub mod pairing;
pub mod registry;
pub mod render;
mod run_text;
pub mod stats;
#[cfg(test)]
pub(crate) mod testing;
pub mod trust;
pub mod trust_text;
pub mod view;
mod weighing;

use precise_model::{Capture, EventInfo};

/// Returns the number of samples of an event in the capture.
pub fn samples(capture: &Capture, event: usize) -> u64 {
    let rows = capture.rows.iter().filter(|row| usize::from(row.event) == event);
    rows.fold(0, |sum, row| sum.saturating_add(row.measures.count))
}

/// Returns the event with this name, and its index. Without a name, returns the first event with
/// samples.
///
/// # Errors
///
/// Returns an error if there is no such event.
pub fn event_of<'a>(capture: &'a Capture, name: Option<&str>) -> Result<(usize, &'a EventInfo), ViewError> {
    let events = &capture.meta.events;
    let wanted = match name {
        Some(name) => events.iter().position(|event| event.name == name),
        None => (0..events.len()).find(|index| samples(capture, *index) > 0).or(Some(0)),
    };
    let found = wanted.and_then(|index| Some((index, events.get(index)?)));
    found.ok_or_else(|| {
        let known: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
        ViewError::NoSuchEvent { event: name.unwrap_or_default().to_owned(), known: known.join(", ") }
    })
}

/// Why a view cannot answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The capture lacks a dimension that the view needs.
    #[error(
        "{view} needs the {} {missing}, which this capture lacks. Record with `precise record -e \
         {events} --by {by}`.",
        if missing.contains(' ') { "dimensions" } else { "dimension" }
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
