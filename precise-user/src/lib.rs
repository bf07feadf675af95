//! `precise`: precise samples (Intel PEBS, AMD IBS), filtered and aggregated in the kernel.
//!
//! The way of a sample, one module per step:
//!
//! * [`machine`]: what is known of this machine beside its PMUs.
//! * [`pmu`]: what this machine has, and how a workflow becomes events.
//! * [`filter`]: the grammar of `--filter`, and its way to the program's slots.
//! * [`kernel`]: opens events, loads and attaches the program, drains the cell table, reads the sideband.
//! * [`capture`]: the model of what was seen, and the file that keeps it.
//! * [`symbols`]: addresses to names; cgroups to names.
//! * [`views`]: one question each; pure functions from a capture to a result.
//! * [`render`]: a result to a table, JSON or a picture.
//!
//! The binary's `cli` turns arguments into one call of these, and prints the result.
//!
//! # What holds everywhere
//!
//! Failure that a user must expect is data, not an error: an address without a symbol is
//! [`capture::Name::Unknown`] with its reason. `views` opens nothing; `kernel` prints nothing; clap ends in `cli`.
//!
//! # What this library does not do
//!
//! It does not trace (no event per sample leaves the kernel unless asked for), does not unwind stacks by DWARF, and does
//! not scale counts of hardware-filtered events into rates that they cannot support.

pub mod capture;
pub mod error;
pub mod filter;
pub mod kernel;
pub mod machine;
pub mod pmu;
pub mod render;
pub mod symbols;
pub mod views;
