//! Filters, which decide which samples are counted: from the text that a user writes to the
//! compares that the BPF program runs in the kernel.
//!
//! * [`mod@parse`]: parses text to an [`Expr`]; the grammar is described there.
//! * [`mod@compile`]: compiles an [`Expr`] to the slots of [`precise_common::config::Config`], and
//!   lists the fields that the event must record for them.
//! * [`flags`]: turns the filter flags of the command line (`--cpu`, `--comm`, …) into one more
//!   [`Expr`].
//! * [`eval`]: evaluates both in plain Rust. Tests use it to prove that the compiled slots mean the
//!   same as the text.
//!
//! # What this crate does not do
//!
//! It does not resolve names: a [`Resolver`] turns cgroup paths into ids. It filters only samples
//! that reach the BPF program. Hardware filters (`ldlat`, user or kernel) are set by the code that
//! opens the event, from the [`Expr`] or from its own flags.

mod ast;
mod atom;
pub mod compile;
mod error;
pub mod eval;
pub mod flags;
mod literal;
mod lower;
pub mod parse;
pub mod pattern;
#[cfg(test)]
mod proofs;
mod term;
#[cfg(test)]
mod tests;

pub use ast::{Expr, NumberItem, Order, TermTest};
pub use compile::{Compiled, EventFields, check, compile};
pub use error::{CompileError, ParseError};
pub use flags::FilterFlags;
pub use literal::check_comm;
pub use lower::{CgroupMatch, CompilerOptions, NoCgroups, OptionalFields, Resolver};
pub use parse::parse;
pub use term::{NamedValue, Term, TermKind};
