//! The sampling library: PMUs and presets, perf events, the eBPF program, symbolization, and live
//! runs.
//!
//! The modules, from the lowest layer up. A module uses only modules above it in this list:
//!
//! * [`machine`], [`error`], [`rights`]: facts about this machine, read below a root folder;
//!   errors; capabilities.
//! * [`btf`]: the kernel's own description of its types.
//! * [`reader`]: the process without rights that reads the files of others.
//! * [`pmu`]: which events can be sampled, and how a preset becomes events. [`symbols`]: names for
//!   addresses.
//! * [`kernel`]: opens events, loads the program, drains its cell table and reads its rings.
//!   [`doctor`]: checks the state of the machine.
//! * [`unwind`]: unwind tables of all that runs, for call chains without frame pointers.
//! * [`run`]: one live run, from the plan through the open events to their final ledgers.
//! * [`stream`], [`import`], [`serve`], [`top`]: consumers of samples and rows.

pub mod btf;
pub mod doctor;
pub mod error;
pub mod import;
pub mod kernel;
pub mod machine;
pub mod pmu;
pub mod reader;
pub mod rights;
pub mod run;
pub mod serve;
pub mod stream;
pub mod symbols;
pub mod top;
pub mod unwind;
