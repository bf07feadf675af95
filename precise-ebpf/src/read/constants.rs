//! The constants and questions of the filter block, as operands of instructions.

/// Returns the constant at a byte offset of the filter block: of four bytes, or of eight if
/// `CONSTANT_WIDE` is added to the offset.
///
/// It is the operand of an instruction, not memory: the loader finds each such instruction by its
/// sentinel and writes the constant into it before the kernel sees the program. So a constant costs
/// no load and no cache line, and the loader removes every branch that it decides. (This is a
/// macro because only `asm!` accepts an offset computed from a generic parameter.)
macro_rules! constant {
    ($offset:expr) => {{
        let value: u64;
        // SAFETY: a 64-bit immediate load; it touches nothing but its output.
        unsafe {
            core::arch::asm!(
                "{value} = {sentinel} ll",
                value = out(reg) value,
                sentinel = const ((precise_common::config::CONSTANT_SENTINEL as u64) << 32 | $offset) as i64,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        value
    }};
}
pub(crate) use constant;

/// Returns a constant of the filter block by its path: `config!(offsets.ip)`, `config!(wide
/// address_mask)`. It is a `u64` even if the field has four bytes, because narrowing costs
/// instructions.
macro_rules! config {
    (wide $($path:tt)+) => {
        crate::read::constant!(
            core::mem::offset_of!(precise_common::config::Config, $($path)+) as u64
                | precise_common::config::CONSTANT_WIDE
        )
    };
    ($($path:tt)+) => {
        crate::read::constant!(core::mem::offset_of!(precise_common::config::Config, $($path)+) as u64)
    };
}
pub(crate) use config;

/// Returns the address of the only element of an array, as a pointer to a type:
/// `element!(TABLE as Cell)`.
///
/// The loader writes the address into the instruction (`BPF_PSEUDO_MAP_VALUE`) for the arrays that
/// it makes with one element. A lookup would take a key on the stack, eight instructions and a
/// branch.
macro_rules! element {
    ($map:ident as $type:ty) => {{
        let address: *mut $type;
        // SAFETY: a 64-bit immediate load; it touches nothing but its output.
        unsafe {
            core::arch::asm!(
                "{address} = {map} ll",
                address = out(reg) address,
                map = sym $map,
                options(pure, nomem, nostack, preserves_flags),
            );
        }
        address
    }};
}
pub(crate) use element;

/// Asks a question about the filter block (`precise_common::config::Question`): `asks!(fields, has
/// field::EXACT)`, `asks!(mode, is mode::STREAM)`, `asks!(at offset, test)`. The loader answers it,
/// and nothing of it is left. `likely` makes the compiler place the code for a positive answer
/// before that for a negative one.
macro_rules! asks {
    (at $offset:expr, $test:expr) => {
        crate::read::asks!(@jump "if {answer} != 0 goto {target}", true, $offset, $test)
    };
    (likely $($path:ident).+, has $bit:expr) => {
        crate::read::asks!(
            @jump "if {answer} == 0 goto {target}",
            false,
            core::mem::offset_of!(precise_common::config::Config, $($path).+),
            precise_common::config::QuestionTest::Bit(($bit as u32).trailing_zeros())
        )
    };
    ($($path:ident).+, has $bit:expr) => {
        crate::read::asks!(
            at core::mem::offset_of!(precise_common::config::Config, $($path).+),
            precise_common::config::QuestionTest::Bit(($bit as u32).trailing_zeros())
        )
    };
    ($($path:ident).+, is $value:expr) => {
        crate::read::asks!(
            at core::mem::offset_of!(precise_common::config::Config, $($path).+),
            precise_common::config::QuestionTest::Is($value)
        )
    };
    (@jump $jump:literal, $when_taken:literal, $offset:expr, $test:expr) => {
        'asks: {
            // SAFETY: a register is written and tested; nothing else is touched.
            unsafe {
                core::arch::asm!(
                    "{answer} = {question}",
                    $jump,
                    answer = out(reg) _,
                    question = const precise_common::config::Question { offset: $offset, test: $test }.encode() as i32,
                    target = label { break 'asks $when_taken },
                    options(nomem, nostack, preserves_flags),
                );
            }
            !$when_taken
        }
    };
}
pub(crate) use asks;
