//! Views: one question asked of a capture each. Pure: a capture goes in, a result comes out,
//! nothing is opened or printed.
//!
//! Each view is a folder with a type that implements [`view::View`]; [`registry::VIEWS`] has all of
//! them.

/// Declares the modules of views, and lists the views.
macro_rules! views {
    ($($module:ident::$view:ident,)*) => {
        $(pub mod $module;)*

        /// Every view, in the order of `precise --help`.
        static VIEWS: &[&dyn view::AnyView] = &[$(&$module::$view,)*];
    };
}

// A view is a folder, and one line here.
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
pub mod page;
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

/// Samples of an event that a capture holds.
pub fn samples(capture: &Capture, event: usize) -> u64 {
    let rows = capture.rows.iter().filter(|row| usize::from(row.event) == event);
    rows.fold(0, |sum, row| sum.saturating_add(row.measures.count))
}

/// The event of that name with its number; without a name, the first one with samples.
///
/// # Errors
///
/// When there is none.
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

/// Why a view has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ViewError {
    /// The run did not record what the view needs.
    #[error(
        "{view} needs the {} {missing}, which this capture lacks. Record with `precise record -e \
         {events} --by {by}`.",
        if missing.contains(' ') { "dimensions" } else { "dimension" }
    )]
    NotRecorded {
        /// Who needs it.
        view: String,
        /// The dimensions that the capture lacks.
        missing: String,
        /// The events of the capture, as `-e` takes them.
        events: String,
        /// A `--by` list that has all that the capture has, and what is missing.
        by: String,
    },
    /// No event of the capture has samples that say it.
    #[error(
        "{view} needs {what}, which samples of {events} do not have. Record others with `precise record \
         -e {preset}{by}`; `precise list` shows whether this machine supports it."
    )]
    NoSuchSamples {
        /// Who needs it.
        view: String,
        /// What the samples do not say.
        what: String,
        /// The events of the capture.
        events: String,
        /// The preset whose samples do.
        preset: &'static str,
        /// ` --by` and a list for it; empty where what `record` groups by anyway will do.
        by: String,
    },
    /// The capture has no event both with precision and without.
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
    /// The run took no call chains.
    #[error("the capture has no call chains. Record them with `precise record -g -e {events}`.")]
    NoChains {
        /// The events of the capture, as `-e` takes them.
        events: String,
    },
    /// The capture has no event of this name.
    #[error("the capture has no event {event:?}; its events: {known}.")]
    NoSuchEvent {
        /// What was asked for.
        event: String,
        /// What there is.
        known: String,
    },
    /// The run recorded addresses too coarsely.
    #[error(
        "the capture cannot be grouped by {key}: its data addresses are multiples of {granule} bytes. \
         Record with a smaller --granule."
    )]
    TooCoarse {
        /// The key that cannot be had.
        key: &'static str,
        /// Bytes.
        granule: u64,
    },
}

impl ViewError {
    /// The command that records what the view lacks; `None` where recording again does not help.
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
