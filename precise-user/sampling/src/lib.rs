//! Sampling: what this machine can do, its perf events and the eBPF program, addresses to names,
//! and the run.
//!
//! From the ground up; a module uses what is above it in this list:
//!
//! * [`machine`], [`error`], [`rights`]: this machine below a root folder, failures, capabilities.
//! * [`pmu`]: what can be sampled, and how a preset becomes events. [`symbols`]: addresses to
//!   names.
//! * [`kernel`]: opens events, loads the program, drains its table, reads its rings. [`doctor`]:
//!   the state of the machine.
//! * [`run`]: one live run, from a plan to open events to their last words.
//! * [`stream`], [`import`], [`serve`]: what becomes of samples and rows.

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
