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

        /// How the schemas of their documents are derived.
        static SCHEMAS: &[document::DerivedSchema] =
            &[$(document::DerivedSchema::of::<<$module::$view as view::View>::Answer>(),)*];
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
    types::TypesView,
    skid::SkidView,
    diff::DiffView,
    check::CheckView,
    flame::FlamegraphView,
    heatmap::HeatmapView,
}

pub mod about;
mod again;
mod cache_line;
mod chains;
pub mod code;
pub mod cost_text;
mod crowd;
pub(crate) mod csv;
pub mod document;
mod error;
mod events;
pub mod gates;
mod group_table;
pub mod grouping;
pub mod html;
pub mod idle;
pub mod imported;
pub mod loss;
mod markup;
pub mod narrow;
pub mod needs;
pub mod pairing;
pub mod registry;
pub mod render;
mod run_text;
pub mod stats;
#[cfg(test)]
pub(crate) mod testing;
mod thread_names;
pub mod trust;
pub mod trust_text;
pub mod typing;
pub mod view;
mod weighing;

pub use again::Again;
pub use error::ViewError;
pub use events::{event_of, samples};
