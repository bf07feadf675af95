//! Live runs: the part that is common to all of them. [`precise_capture`] aggregates their samples;
//! [`crate::stream`] writes the samples one by one.
//!
//! A [`plan`] is turned into open events (`opening`), which a `session` manages until the run ends.
//! Symbolization runs on its own thread (`naming`), so that it never delays the run loop.

pub(crate) mod alarm;
pub(crate) mod allocator;
mod allowance;
pub mod assemble;
pub mod budget;
pub mod cell_slot;
pub mod child;
pub mod cost;
mod cpus;
pub mod deadline;
mod each_fault;
pub mod event_filter;
mod family;
mod filling;
pub mod governor;
mod heaviest;
mod idle;
mod keeping;
pub mod kill_switch;
pub mod live;
#[cfg(test)]
pub(crate) mod made_tests;
pub mod naming;
pub(crate) mod naming_thread;
pub mod opening;
mod own;
pub mod pace;
pub mod plan;
mod plan_builder;
mod plan_error;
pub(crate) mod running;
mod scopes;
pub(crate) mod session;
mod signals;
pub mod verdict;
mod wanted;
mod watch;
