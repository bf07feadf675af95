//! The types that the BPF program and user space share, and the decoders that both use.
//!
//! Everything here is `no_std`, integer-only, and `#[repr(C)]` if it crosses the kernel boundary.
//! Memory that both sides access contains no Rust enum, `bool` or `Option`, because their layout is
//! not an ABI. The size of every shared type is asserted at compile time.
//!
//! * [`cell`]: one combination of dimensions with its measures, the unit of the kernel table.
//! * [`config`]: the filter block, the map key and the field offsets, which are constants of the
//!   program.
//! * [`ledger`]: the catalogue of counters, and the fate of the samples that each counts.
//!   Append-only, because captures store counters by name.
//! * [`sample_bits`]: the bits `PERF_SAMPLE_*` of samples.
//! * [`data_src`]: decodes `perf_mem_data_src` to levels, snoop and TLB results.
//! * [`ibs`]: decodes AMD's IBS registers, which describe an op or a fetch.
//! * [`latency`]: the log-linear latency buckets.
//! * [`mode`]: whether an address is the kernel's.
//! * [`unwind`]: unwind tables in shared memory, and the step from a frame to its caller.
//!
//! This crate has no code that opens files, allocates or prints.
#![no_std]

pub mod cell;
pub mod config;
pub mod data_src;
pub mod hitm;
pub mod ibs;
pub mod latency;
pub mod ledger;
pub mod mode;
pub mod sample_bits;
pub mod stack;
pub mod trace;
pub mod unwind;
