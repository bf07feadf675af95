//! What a capture is, and the words for it: plain data that opens nothing.
//!
//! A live run, an import and a file all produce a [`Capture`]; every view reads one. Everything that describes a capture is
//! here: its rows, events and names, the ledger that says where each sample went, the machine, the group keys.

mod capture;
mod cost;
mod cpu;
pub mod csv;
pub mod digits;
pub mod encoding;
pub mod keys;
pub mod labels;
mod names;
mod origin;
mod outcome;
mod owner;
mod preset;
pub mod safe_json;
pub mod stack;
#[doc(hidden)]
pub mod testing;
pub mod text;
pub mod values;
pub mod words;

pub use capture::*;
pub use cost::{Overhead, RateChange};
pub use cpu::{CpuId, KernelVersion, Vendor, format_cpu_list, parse_cpu_list};
pub use encoding::TaggedOf;
pub use names::{Name, NameId, Names, Reason};
pub use origin::{Imported, Origin};
pub use outcome::Outcome;
pub use owner::Owner;
pub use preset::{C2C_DIMENSIONS, Workflow};
pub use stack::{Chain, Stack, StackId};
pub use words::has_source;
