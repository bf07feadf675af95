//! The captures of many machines as tables in a folder or a bucket, for precise and for SQL.
//!
//! A compactor adds up the captures of an hour ([`compact`]): the parts of the tables
//! ([`FleetTable`]), and then a manifest that lists them ([`FleetManifest`]). Compactors have no
//! state; any number of them may work on one place. A reader takes the newest manifest of each hour
//! and reads the parts that its question needs ([`read_part`]).
//!
//! Where the bytes are is up to a [`FleetBucket`].

mod accesses;
mod add_up;
#[cfg(test)]
mod ask_tests;
mod asked;
mod bucket;
mod census;
mod columns;
mod compare;
#[cfg(test)]
mod coverage_tests;
mod day;
mod encode;
mod fold;
mod functions;
mod gather;
mod hash;
mod hour;
mod keys;
mod latencies;
mod ledger;
mod listing;
#[doc(hidden)]
pub mod made_day;
mod making;
mod manifest;
mod met;
mod names;
mod part;
mod question;
mod raw;
mod report;
mod run;
mod service;
mod sources;
mod span;
mod spread;
mod sums;
pub mod tables;
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;
mod together;
mod typed;

pub use asked::{FleetAsked, FleetRead};
pub use bucket::{FleetBucket, FleetError, FleetObject};
pub use census::{FleetCensus, FleetFinding, FleetLedger};
pub use compare::{FleetDiff, FleetDifference, FleetEventDiff, FleetTotals, fleet_diff};
pub use hash::{hash63, node_group};
pub use hour::{FleetDay, FleetHour};
pub use latencies::{FleetDistribution, FleetLatency, FleetLatencyEvent, fleet_latency};
pub use manifest::{FleetManifest, FleetPeriod, HourManifests, ManifestPart, NamedInput, NamedReason};
pub use part::{FleetBatch, FleetPick, read_part};
pub use question::{AskError, FleetKey, FleetQuestion, FleetTier};
pub use report::{FleetCut, FleetEvent, FleetGroup, FleetLeftOut, FleetReport, fleet_report};
pub use run::{CompactOptions, Compacted, CompactedPeriod, compact};
pub use span::FleetSpan;
pub use spread::{FleetInterval, FleetPercentile};
pub use tables::FleetTable;
pub use typed::{FleetAccess, FleetFunction, FleetTypes, NoFleetTypes};
