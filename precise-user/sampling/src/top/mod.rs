//! A live run without an end whose last seconds are a capture in memory: what a live view shows.
//!
//! Samples take the same path as in a capture file ([`precise_capture`]) up to their rows. Then
//! they are kept in a [`Window`]: the rows of the last seconds, the names that these rows refer to,
//! and the state of the events at the end of each epoch. [`Live::latest`] makes a capture of it:
//! its ledger is the difference between the counters at the two ends of the window, so it closes as
//! that of a file does, and every view can answer its question about it.
//!
//! Memory is bounded ([`MOST_ROWS`], [`MOST_BYTES`]): a window that would take more has fewer
//! epochs.

mod live;
mod owners;
mod state;
mod tables;
mod window;

pub(crate) use live::state;
pub use live::{Live, TopEnd, TopProgress, run};
pub use state::LiveCost;
pub(crate) use state::{Rates, TopState, events_between, ledgers};
pub use tables::MOST_BYTES;
pub(crate) use tables::{Mover, Tables};
pub use window::{MOST_ROWS, Window, WindowSnapshot};
