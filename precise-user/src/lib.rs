//! `precise`: precise samples (Intel PEBS, AMD IBS), filtered and aggregated in the kernel.
//!
//! The way of a sample, one module per step:
//!
//! * [`machine`]: what is known of this machine beside its PMUs.
//! * [`pmu`]: what this machine has, and how a preset becomes events.
//! * [`filter`]: the grammar of `--filter`, and its way to the program's slots.
//! * [`kernel`]: opens events, loads and attaches the program, drains the cell table, reads the
//!   sideband.
//! * [`run`]: what every live run does, from a plan to open events to their last words.
//! * [`records`]: the container that `perf record` writes.
//! * [`capture`]: the model of what was seen, and the file that keeps it.
//! * [`archive`]: captures under a label, in a folder or an object store.
//! * [`serve`]: a live run without an end: samples added up by label, for whoever scrapes them.
//! * [`stream`]: a live run without a table: the samples that pass, one by one.
//! * [`doctor`]: what a machine can be expected to do, from its files.
//! * [`self_test`]: whether it does it, by work whose samples are known.
//! * [`rights`]: what this process may do, and giving up what a run needs no more.
//! * [`symbols`]: addresses to names; cgroups to names.
//! * [`views`]: one question each; pure functions from a capture to a result.
//! * [`render`]: a result to a table, JSON or a picture.
//! * [`export`]: a capture in the formats of other tools.
//!
//! The binary's `cli` turns arguments into one call of these, and prints the result.
//!
//! # What holds everywhere
//!
//! Failure that a user must expect is data, not an error: an address without a symbol is
//! [`model::Name::Unknown`] with its reason. `views` opens nothing; `kernel` prints nothing; clap
//! ends in `cli`.
//!
//! # What this library does not do
//!
//! It does not trace (no event per sample leaves the kernel unless [`stream`] asks for it), does
//! not unwind stacks by DWARF, and does not scale counts of hardware-filtered events into rates
//! that they cannot support.

pub use precise_capture as capture;
pub use precise_code as code;
pub use precise_filter as filter;
pub use precise_model as model;
pub use precise_records as records;
pub use precise_sampling::{doctor, import, kernel, machine, pmu, rights, run, serve, stream, symbols};
pub use precise_views as views;
pub use precise_views::render;

pub mod archive;
pub mod error;
pub mod export;
pub mod self_test;
pub mod text;
