//! A streaming run: writes each sample that passes the filter, with its names, instead of a table
//! of aggregated samples.
//!
//! The path of a sample: the program passes it on, the kernel writes it to its event's ring
//! ([`crate::kernel::sampler`]), [`live`] reads it, `order` sorts the samples of all CPUs by time,
//! `naming` joins it with the sideband, and a [`Sink`] writes it. Every place where a sample can be
//! lost has a counter: [`Account`].

mod account;
mod chains;
mod choice;
mod field;
pub mod live;
mod named;
mod naming;
mod value;
mod worker;

use std::io;

pub use account::{Account, AccountRow};
pub use choice::{MissingField, choose_fields};
pub use field::{StreamField, UnknownField};
pub use named::{NamedChain, NamedSample};

/// A consumer of symbolized samples.
pub trait Sink: Send {
    /// Takes the next sample. Samples arrive in the order of time.
    ///
    /// # Errors
    ///
    /// Returns an error if the sample cannot be written; the run then ends.
    fn put(&mut self, sample: &NamedSample<'_>) -> io::Result<()>;

    /// Makes the samples so far visible, because no more are available at the moment.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Self::put`].
    fn flush(&mut self) -> io::Result<()>;
}
