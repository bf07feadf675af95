//! Sampling: what this machine supports, its perf events and the eBPF program, symbolization, and
//! the run itself.
//!
//! The modules from the bottom up; each module uses only those above it in this list:
//!
//! * [`machine`], [`error`], [`rights`]: the machine's files below a root directory, errors,
//!   capabilities.
//! * [`pmu`]: what can be sampled, and how a preset becomes events. [`symbols`]: maps addresses to
//!   names.
//! * [`kernel`]: opens events, loads the program, drains its table, reads its rings. [`doctor`]:
//!   checks the state of the machine.
//! * [`run`]: one live run, from its plan to the end of its events.
//! * [`stream`], [`import`], [`serve`]: what is done with samples and rows.

pub mod doctor;
pub mod error;
pub mod import;
pub mod kernel;
pub mod machine;
pub mod pmu;
pub mod rights;
pub mod run;
pub mod serve;
pub mod stream;
pub mod symbols;
