//! What every live run does, whatever becomes of its samples: [`precise_capture`] adds them up,
//! [`crate::stream`] writes them one by one.
//!
//! A [`plan`] becomes open events (`opening`), of which a `session` takes care until the run is
//! over. Names are found on a thread of their own (`naming`), as the run loop must be back in time.

mod allocator;
pub mod assemble;
pub mod child;
pub mod cost;
pub mod event_filter;
pub mod governor;
mod keeping;
pub mod kill_switch;
pub mod live;
#[cfg(test)]
pub(crate) mod made_tests;
pub mod naming;
pub(crate) mod naming_thread;
pub mod opening;
pub mod pace;
pub mod plan;
mod plan_builder;
mod plan_error;
pub(crate) mod running;
pub(crate) mod session;
pub mod verdict;
mod watch;
