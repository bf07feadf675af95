//! The captures of many machines as tables in a folder or a bucket, for precise and for SQL.
//!
//! A compactor adds up the captures of an hour ([`compact`]): the parts of the tables
//! ([`FleetTable`]), and then a manifest that lists them ([`FleetManifest`]). Compactors have no
//! state; any number of them may work on one place. A reader takes the newest manifest of each hour
//! and reads the parts that its question needs ([`read_part`]).
//!
//! Where the bytes are is up to a [`FleetBucket`].

mod bucket;
mod day;
mod encode;
mod fold;
mod hash;
mod hour;
mod ledger;
mod listing;
mod making;
mod manifest;
mod part;
mod raw;
mod run;
mod service;
pub mod tables;
#[doc(hidden)]
pub mod testing;
#[cfg(test)]
mod tests;

pub use bucket::{FleetBucket, FleetError, FleetObject};
pub use hash::{hash63, node_group};
pub use hour::{FleetDay, FleetHour};
pub use manifest::{FleetManifest, FleetPeriod, HourManifests, ManifestPart, NamedInput, NamedReason};
pub use part::{FleetBatch, FleetPick, read_part};
pub use run::{CompactOptions, Compacted, CompactedPeriod, compact};
pub use tables::FleetTable;
