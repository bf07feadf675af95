//! Filters: which samples count. From the text that a user writes to the compares that the program
//! runs in the kernel.
//!
//! * [`mod@parse`]: text to [`Expr`]; the grammar is described there.
//! * [`mod@compile`]: [`Expr`] to the slots of [`precise_common::config::Config`], and what the
//!   event must record for them.
//! * [`flags`]: the command line's shorthands (`--cpu`, `--comm`, …) as one more [`Expr`].
//! * [`eval`]: both sides in plain Rust. Tests use it to prove that the compiled slots mean what
//!   the text says.
//!
//! # What this module does not do
//!
//! It resolves no names by itself: a [`Resolver`] turns cgroup paths into ids. It filters what the
//! program is handed; what the hardware can filter (`ldlat`, user or kernel) the opener takes from
//! the [`Expr`] or from its own flags.

mod ast;
mod atom;
pub mod compile;
mod error;
pub mod eval;
pub mod flags;
mod literal;
mod lower;
pub mod parse;
#[cfg(test)]
mod proofs;
mod term;
#[cfg(test)]
mod tests;

pub use ast::{Expr, Item, Order, Test};
pub use compile::{CompileError, Compiled, EventFields, Options, check, compile};
pub use error::ParseError;
pub use flags::Flags;
pub use literal::check_comm;
pub use lower::{CgroupMatch, Fields, NoCgroups, Resolver};
pub use parse::parse;
pub use term::{Class, Term, TermKind};
