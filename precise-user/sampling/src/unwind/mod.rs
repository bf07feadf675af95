//! Unwinding without frame pointers: follows what processes map as code, has tables made of the
//! files, and publishes both to the program.
//!
//! 1. `spaces` follows the executable mappings of processes, from `/proc` and from the sideband.
//! 2. The thread of the symbolizer opens the files, and the reader makes tables of them
//!    ([`crate::symbols::CodeFiles`]).
//! 3. `publisher` writes rules, tables, regions and processes into the shared arrays, where the
//!    program finds them.
//!
//! All of it runs on one thread ([`Unwinder`]). A process whose mappings, or whose tables, have not
//! been published yet has chains of one frame, which end with
//! [`precise_common::unwind::End::NotYet`].
//!
//! Copies of stacks are unwound by the same tables ([`StackUnwinder`]), in arrays that no program
//! reads.

mod copies;
mod publisher;
mod spaces;
mod tables;
mod thread;

pub use crate::kernel::event::UNWIND_REGISTERS;
pub use copies::{StackUnwinder, UserPart, kernel_part};
pub use tables::{Fallback, UnwindReport, UnwindTarget};
pub use thread::Unwinder;
pub(crate) use thread::concerns_code;
