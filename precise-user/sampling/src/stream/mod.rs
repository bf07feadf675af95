//! A streaming run: the samples that pass the filter, one by one, with names, instead of a table of
//! them.
//!
//! The way of a sample: the program lets it pass, the kernel writes it to its event's ring
//! ([`crate::kernel::sampler`]), [`live`] takes it out, `order` puts the CPUs' samples in the order
//! of time, `naming` joins it with what the sideband said, and a [`Sink`] writes it. Wherever it
//! can be lost on that way, something counts: [`Account`].

mod account;
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
pub use field::{Field, UnknownField};
pub use named::Named;

/// Where named samples go.
pub trait Sink: Send {
    /// Takes the next one. They come in the order of time.
    ///
    /// # Errors
    ///
    /// When it cannot be written; the run then ends.
    fn put(&mut self, sample: &Named<'_>) -> io::Result<()>;

    /// Nothing follows for the moment: what was taken should be seen.
    ///
    /// # Errors
    ///
    /// As [`Self::put`].
    fn flush(&mut self) -> io::Result<()>;
}
