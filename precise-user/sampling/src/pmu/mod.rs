//! What this machine can sample, and how a preset becomes events.
//!
//! * [`sysfs`]: the PMUs, as the kernel shows them.
//! * [`encode`]: parses an event in perf's syntax and encodes it as the words of `perf_event_attr`.
//!   [`names`] has the event names that belong to no PMU of sysfs; [`request`] defines the result.
//! * `identity`: the kind of an event's PMU, and what its hardware filter drops.
//! * [`tables`]: Intel's precise events per core, as data.
//! * [`preset`]: maps a user's question to events; [`intel`], [`amd`] and [`generic`] contain the
//!   hardware's rules.
//! * [`modified`]: presets with event modifiers, such as `loads:u`.
//! * [`mod@ladder`]: which precise levels to try, and how to report that one was refused.
//! * [`list`]: the content of `precise list`.
//!
//! Nothing here opens an event: only opening one shows what the kernel grants.

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
pub use preset::{PresetOptions, Unsupported};
pub use request::{EventRequest, Exactness, PreciseLevel, TaggedFields};
pub use sysfs::{Pmu, Pmus};
