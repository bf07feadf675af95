//! The data model of captures: plain data, without any access to files or the kernel.
//!
//! A live run, an import and a file all produce a [`Capture`]; every view reads one. This crate has
//! everything that describes a capture: its rows, events and names, the ledger with the fate of
//! each sample, the machine, the group keys.
//!
//! A row refers to its event, its names and its locations by number. An address or process without
//! a name carries the reason:
//!
//! ```
//! use precise_model::{Capture, Name, Reason, testing::CaptureBuilder};
//!
//! fn samples_by_process(capture: &Capture) -> Vec<(String, u64)> {
//!     let name = |name| match name {
//!         Name::Known(id) => capture.names.get(id).to_owned(),
//!         Name::Unknown(reason) => format!("({})", reason.as_str()),
//!     };
//!     capture.rows.iter().map(|row| (name(row.process), row.measures.count)).collect()
//! }
//!
//! // Captures come from a live run, an import or a file; the samples of this one are synthetic.
//! let mut made = CaptureBuilder::new();
//! made.cell().samples(3);
//! let capture = made.build();
//!
//! assert_eq!(capture.meta.events[0].name, "cycles");
//! let nameless = format!("({})", Reason::NotRecorded.as_str());
//! assert_eq!(samples_by_process(&capture), [(nameless, 3)]);
//! ```

pub mod accesses;
mod capture;
mod catalogue;
mod chain_end;
mod compact_sort;
mod cost;
mod cpu;
pub mod csv;
pub mod digits;
mod dimension;
pub mod encoding;
pub mod first_touch;
mod gap;
mod idle;
mod imported;
mod interner;
mod joining;
pub mod keys;
pub mod labels;
mod ledger;
mod names;
mod origin;
mod outcome;
mod owner;
mod pmu;
mod preset;
mod projection;
pub mod safe_json;
pub mod sampled;
pub mod stack;
pub mod suggest;
#[doc(hidden)]
pub mod testing;
pub mod text;
pub mod touches;
pub mod values;
pub mod words;

pub use capture::*;
pub use chain_end::ChainEnd;
pub use compact_sort::CompactSort;
pub use cost::{Overhead, RateChange, Runaway, UnwindUse};
pub use cpu::{CpuId, KernelVersion, Vendor, format_cpu_list, parse_cpu_list};
pub use dimension::Dimension;
pub use encoding::TaggedOf;
pub use gap::CpuGap;
pub use idle::Idle;
pub use imported::Imported;
pub use interner::Interner;
pub use joining::Joining;
pub use ledger::{Counted, Counters, Ledger};
pub use names::{Name, NameId, Names, Reason};
pub use origin::Origin;
pub use outcome::Outcome;
pub use owner::Owner;
pub use pmu::{CoreEvent, EventSelect, HardwareFilter, PmuKind};
pub use preset::{C2C_DIMENSIONS, Preset};
pub use projection::{Projection, RowPart};
pub use words::has_source;
