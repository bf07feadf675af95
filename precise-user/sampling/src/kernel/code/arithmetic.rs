//! What computations and comparisons result in, as the kernel defines them.

use super::operation::{comparison, operator};

/// Returns the result of a computation: in 64 bits if `wide`, else in 32. `None` if the operator is
/// not known.
pub(super) fn compute(wide: bool, operator: u8, left: u64, right: u64) -> Option<u64> {
    let bits = if wide { 64 } else { 32 };
    let (left, right) = if wide { (left, right) } else { (left & 0xffff_ffff, right & 0xffff_ffff) };
    let shift = (right % bits) as u32;
    let result = match operator {
        operator::ADD => left.wrapping_add(right),
        operator::SUBTRACT => left.wrapping_sub(right),
        operator::MULTIPLY => left.wrapping_mul(right),
        operator::DIVIDE => left.checked_div(right).unwrap_or(0),
        operator::REMAINDER => left.checked_rem(right).unwrap_or(left),
        operator::OR => left | right,
        operator::AND => left & right,
        operator::XOR => left ^ right,
        operator::SHIFT_LEFT => left << shift,
        operator::SHIFT_RIGHT => left >> shift,
        operator::SHIFT_SIGNED if wide => (left as i64 >> shift) as u64,
        operator::SHIFT_SIGNED => (left as i32 >> shift) as u64,
        operator::NEGATE => left.wrapping_neg(),
        operator::MOVE => right,
        _ => return None,
    };
    Some(if wide { result } else { result & 0xffff_ffff })
}

/// Returns whether a comparison holds.
pub(super) fn compare(wide: bool, comparison: u8, left: u64, right: u64) -> Option<bool> {
    let (left, right) = if wide { (left, right) } else { (left & 0xffff_ffff, right & 0xffff_ffff) };
    let signed = |number: u64| if wide { number as i64 } else { i64::from(number as i32) };
    Some(match comparison {
        comparison::EQUAL => left == right,
        comparison::NOT_EQUAL => left != right,
        comparison::ABOVE => left > right,
        comparison::NOT_BELOW => left >= right,
        comparison::BELOW => left < right,
        comparison::NOT_ABOVE => left <= right,
        comparison::ANY_BIT => left & right != 0,
        comparison::GREATER => signed(left) > signed(right),
        comparison::NOT_LESS => signed(left) >= signed(right),
        comparison::LESS => signed(left) < signed(right),
        comparison::NOT_GREATER => signed(left) <= signed(right),
        _ => return None,
    })
}
