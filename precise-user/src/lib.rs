//! `precise`: precise samples (Intel PEBS, AMD IBS), filtered and aggregated in the kernel.
//!
//! The modules follow the path of a sample:
//!
//! * [`machine`]: what is known about this machine, apart from its PMUs.
//! * [`pmu`]: the PMUs of this machine, and how a preset becomes events.
//! * [`filter`]: the grammar of `--filter`, and its translation into the slots of the BPF program.
//! * [`kernel`]: opens events, loads and attaches the BPF program, drains the cell table, reads the
//!   sideband.
//! * [`run`]: the steps that all live runs share, from the plan to the final counts of the events.
//! * [`records`]: the file format of `perf record`.
//! * [`capture`]: the model of a capture, and the file that stores it.
//! * [`archive`]: captures under a label, in a folder or an object store.
//! * [`fleet`]: the captures of many machines as tables.
//! * [`serve`]: a live run without an end: samples summed up by label, for a metrics scraper.
//! * [`top`]: a live run whose last seconds are a capture in memory.
//! * [`stream`]: a live run without a table: single samples, as they pass the filter.
//! * [`doctor`]: what a machine can be expected to do, according to its files.
//! * [`self_test`]: whether the machine really does it, tested by work with known samples.
//! * [`rights`]: the privileges of this process, and dropping those that a run no longer needs.
//! * [`symbols`]: addresses to names; cgroups to names.
//! * [`views`]: pure functions from a capture to a result, each for one question.
//! * [`render`]: a result to a table, JSON or a picture.
//! * [`screen`]: a live window as tables and strips, in cells of a terminal.
//! * [`export`]: a capture in the formats of other tools.
//! * [`mcp`]: a server whose tools are the views, for agents.
//! * [`push`]: backends of others that take the profiles of [`serve`].
//! * [`debuginfod`]: debug information that this machine does not have.
//!
//! The binary's `cli` turns arguments into one call of these, and prints the result.
//!
//! # Rules for all modules
//!
//! Failures that a user must expect are data, not errors: an address without a symbol is
//! [`model::Name::Unknown`] with its reason. `views` opens nothing; `kernel` prints nothing; clap
//! is not used outside of `cli`.
//!
//! # What this library does not do
//!
//! It does not trace: no event per sample leaves the kernel unless [`stream`] requests it. It does
//! not copy stacks: they are unwound where they are, by tables ([`unwind`]). It does not scale
//! counts of hardware-filtered events into rates that they cannot support.

pub use precise_capture as capture;
pub use precise_code as code;
pub use precise_filter as filter;
pub use precise_fleet as fleet;
pub use precise_model as model;
pub use precise_records as records;
pub use precise_sampling::{
    btf, doctor, import, kernel, machine, pmu, reader, rights, run, serve, stream, symbols, top, unwind,
};
pub use precise_views as views;
pub use precise_views::render;

pub mod archive;
pub mod asking;
pub mod debuginfod;
pub mod error;
pub mod export;
pub mod mcp;
pub mod push;
pub mod screen;
pub mod self_test;
pub mod text;
#[cfg(feature = "s3")]
mod web;
