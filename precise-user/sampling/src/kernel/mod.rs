//! The kernel side of a run: opens events, loads and attaches the eBPF program, shares its table,
//! reads the sideband.
//!
//! This module does not print, and it does not use symbols or files.

pub mod blueprint;
mod bpf;
pub mod clock;
mod code;
pub mod descriptors;
pub mod event;
pub mod explain;
pub mod map_memory;
mod object;
pub mod offsets;
pub mod opener;
mod patch;
pub mod program;
pub mod readable;
pub mod ring;
pub mod sampler;
pub mod sideband;
pub mod stacks;
pub mod table;
pub mod tracepoints;
pub mod unwind;
pub mod watched;

/// The layout of the fields that follow each record in the rings of this module's events.
pub const LAYOUT: precise_records::record::RecordLayout = {
    use precise_records::record::sample_bits::{CPU, ID, TID, TIME};
    precise_records::record::RecordLayout { sample_type: TID | TIME | ID | CPU, sample_id_all: true }
};
