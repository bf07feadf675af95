//! The worker's machine code: loops in which the address of each instruction is known.
//!
//! The loops are in assembly, because no compiler promises which instruction makes an access, or
//! that a branch stays one. Each loop takes a pointer (or a seed) and a number of rounds, and
//! returns the value that the next call continues with. No sampled instruction is next to one that
//! the hardware might fuse with it.

use std::arch::global_asm;

use super::places::Span;

/// A loop: its first and last address, and the instructions whose samples are expected.
pub(super) struct Loop {
    /// Runs the loop for the number of rounds in the second argument.
    pub call: unsafe extern "C" fn(u64, u64) -> u64,
    /// Addresses of the loop.
    pub function: Span,
    /// Addresses of the expected instructions, which all have the same length.
    pub instructions: Vec<u64>,
    /// Address of the predictable branch, if the loop has one.
    pub predictable: Option<u64>,
}

/// Defines a function whose `count` instructions `wanted`, all of the same length, are between two
/// labels.
macro_rules! function {
    ($name:literal, [$($before:literal)*], $count:literal x $wanted:literal, [$($after:literal)*]) => {
        global_asm!(
            ".pushsection .text.precise_self_test, \"ax\", @progbits",
            ".p2align 6",
            concat!(".type ", $name, ", @function"),
            concat!(".globl ", $name),
            concat!(".hidden ", $name),
            concat!($name, ":"),
            $($before,)*
            concat!(".globl ", $name, "_wanted"),
            concat!(".hidden ", $name, "_wanted"),
            concat!($name, "_wanted:"),
            concat!(".rept ", $count),
            $wanted,
            ".endr",
            concat!(".globl ", $name, "_behind"),
            concat!(".hidden ", $name, "_behind"),
            concat!($name, "_behind:"),
            $($after,)*
            concat!(".globl ", $name, "_end"),
            concat!(".hidden ", $name, "_end"),
            concat!($name, "_end:"),
            concat!(".size ", $name, ", . - ", $name),
            ".popsection",
        );
    };
}

function!("precise_self_test_chase", ["2:"], 8 x "mov rdi, [rdi]",
    ["dec rsi" "mov rax, rdi" "jnz 2b" "ret"]);
function!("precise_self_test_store", ["2:"], 1 x "mov [rdi], rsi",
    ["add rdi, 64" "dec rsi" "mov rax, rdi" "jnz 2b" "ret"]);
// A load and a store, three bytes each. The store writes a value computed from the load of the
// previous round.
function!("precise_self_test_share", ["2:"], 1 x "mov rax, [rdi]; mov [rdi], rdx",
    ["lea rdx, [rax + 1]" "dec rsi" "mov rax, rdi" "jnz 2b" "ret"]);
// xorshift64 (Marsaglia 2003). The branch tests one bit of its state.
function!("precise_self_test_branch",
    ["2:" "mov rax, rdi" "shl rax, 13" "xor rdi, rax" "mov rax, rdi" "shr rax, 7" "xor rdi, rax" "mov rax, rdi"
     "shl rax, 17" "xor rdi, rax" "test dil, 1" "mov r8, rdi"],
    1 x "jz 3f",
    ["lea rdx, [rdx + 1]" "3:" "dec rsi" "mov r9, rdi"
     ".globl precise_self_test_branch_predictable" ".hidden precise_self_test_branch_predictable"
     "precise_self_test_branch_predictable:" "jnz 2b" "mov rax, rdi" "ret"]);
function!("precise_self_test_touch", ["2:"], 1 x "mov [rdi], rsi",
    ["add rdi, 4096" "dec rsi" "mov rax, rdi" "jnz 2b" "ret"]);

/// Declares the labels of a function, and defines its [`Loop`].
macro_rules! declared {
    ($make:ident, $name:ident, $wanted:ident, $behind:ident, $end:ident, $count:literal, $predictable:expr) => {
        unsafe extern "C" {
            fn $name(from: u64, rounds: u64) -> u64;
            static $wanted: u8;
            static $behind: u8;
            static $end: u8;
        }

        pub(super) fn $make() -> Loop {
            let begin = $name as *const () as u64;
            let (wanted, behind, end) =
                (&raw const $wanted as u64, &raw const $behind as u64, &raw const $end as u64);
            let length = (behind - wanted) / $count;
            Loop {
                call: $name,
                function: Span { begin, end },
                instructions: (0..$count).map(|number| wanted + number * length).collect(),
                predictable: $predictable,
            }
        }
    };
}

unsafe extern "C" {
    static precise_self_test_branch_predictable: u8;
}

declared!(
    chase,
    precise_self_test_chase,
    precise_self_test_chase_wanted,
    precise_self_test_chase_behind,
    precise_self_test_chase_end,
    8,
    None
);
declared!(
    store,
    precise_self_test_store,
    precise_self_test_store_wanted,
    precise_self_test_store_behind,
    precise_self_test_store_end,
    1,
    None
);
declared!(
    share,
    precise_self_test_share,
    precise_self_test_share_wanted,
    precise_self_test_share_behind,
    precise_self_test_share_end,
    2,
    None
);
declared!(
    branch,
    precise_self_test_branch,
    precise_self_test_branch_wanted,
    precise_self_test_branch_behind,
    precise_self_test_branch_end,
    1,
    Some(&raw const precise_self_test_branch_predictable as u64)
);
declared!(
    touch,
    precise_self_test_touch,
    precise_self_test_touch_wanted,
    precise_self_test_touch_behind,
    precise_self_test_touch_end,
    1,
    None
);
