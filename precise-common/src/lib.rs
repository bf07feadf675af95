//! What the eBPF program and user space agree on, and the decoders that both run.
//!
//! Everything here is `no_std`, integer-only and `#[repr(C)]` where it crosses the kernel boundary:
//! memory that both sides access holds no Rust enum, `bool` or `Option`, because their layout is
//! not an ABI. Every shared type has its size asserted at compile time.
//!
//! * [`cell`]: one combination of dimensions with its measures, the unit of the kernel table.
//! * [`config`]: the filter block, the key and the field offsets; read-only constants to the
//!   program.
//! * [`ledger`]: the catalogue of counters, and the fate of the samples that each counts.
//!   Append-only: captures store counters by name.
//! * [`sample_bits`]: the bits `PERF_SAMPLE_*` of samples.
//! * [`data_src`]: `perf_mem_data_src` to levels, snoops and TLB results.
//! * [`ibs`]: AMD's IBS registers, and what they say of an op or a fetch.
//! * [`latency`]: the log-linear latency buckets.
//!
//! Not here: anything that opens, allocates or prints.
#![no_std]

pub mod cell;
pub mod config;
pub mod data_src;
pub mod hitm;
pub mod ibs;
pub mod latency;
pub mod ledger;
pub mod sample_bits;
pub mod stack;
