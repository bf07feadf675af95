//! What the eBPF program and user space agree on, and the decoders that both run.
//!
//! Everything here is `no_std`, integer-only and `#[repr(C)]` where it crosses the kernel boundary: no Rust enum, `bool`
//! or `Option` is shared, because their layout is not an ABI. Every shared type has its size asserted at compile time.
//!
//! * [`cell`]: one combination of dimensions with its measures, the unit of the kernel table.
//! * [`config`]: the filter block, the key and the field offsets; read-only constants to the program.
//! * [`ledger`]: counter ids. Append-only, never reused: captures store them.
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
pub mod stack;
