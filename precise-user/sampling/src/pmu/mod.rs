//! What this machine can sample, and how a preset becomes events.
//!
//! * [`sysfs`]: the PMUs, as the kernel shows them.
//! * [`encode`]: an event as users of perf write it, to the words of `perf_event_attr`; [`names`]
//!   has the names that no PMU of sysfs has, [`request`] what comes out.
//! * `identity`: the kind of PMU of an event, and what its hardware drops.
//! * [`tables`]: Intel's precise events by core, as data.
//! * [`preset`]: what a user wants to know, to events; [`intel`], [`amd`] and [`generic`] know the
//!   hardware.
//! * [`modified`]: `loads:u`, a preset with the modifiers of events.
//! * [`mod@ladder`]: which precise levels to try, and in which words to report that one was
//!   refused.
//! * [`list`]: what `precise list` shows.
//!
//! Nothing here opens an event: what the kernel grants is known only after it was asked.

pub mod amd;
pub mod encode;
pub mod error;
pub mod generic;
pub(crate) mod identity;
pub mod intel;
pub mod ladder;
pub mod list;
mod list_text;
pub mod modified;
pub mod names;
pub mod preset;
pub mod request;
pub mod sysfs;
pub mod tables;
mod terms;

#[cfg(test)]
pub(crate) mod fixture;
#[cfg(test)]
mod machines_tests;
#[cfg(test)]
mod page_tests;

pub use encode::{parse, parse_list, split_list};
pub use error::EncodeError;
pub use ladder::{Ladder, ladder};
pub use preset::{Options, Unsupported};
pub use request::{EventRequest, Exactness, Level, Tagged};
pub use sysfs::{Pmu, Pmus};
