//! What every live run does, whatever becomes of its samples: [`crate::capture`] adds them up, [`crate::stream`] writes them
//! one by one.
//!
//! A [`plan`] becomes open events (`opening`), of which a `session` takes care until the run is over. Names are found on a
//! thread of their own (`naming`), as the run loop must be back in time.

pub mod child;
pub(crate) mod cost;
pub mod event_filter;
pub mod governor;
pub mod kill_switch;
pub(crate) mod naming;
pub mod opening;
pub mod plan;
pub(crate) mod session;
mod watch;
