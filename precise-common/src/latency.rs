//! Log-linear latency buckets: exact below 16, then eight buckets per power of two.
//!
//! The width of a bucket is at most an eighth of its lower bound, so its midpoint is within 6.25 %
//! of every value in it. This is the stated error of every percentile that `precise` prints.

/// The logarithm of the number of buckets per power of two, which is `1 << SUB_BITS`.
pub const SUB_BITS: u32 = 3;
/// The number of values, from 0, that have a bucket of their own.
pub const LINEAR: u32 = 2 << SUB_BITS;
/// The number of buckets that cover all of `u32`.
pub const BUCKETS: u32 = LINEAR + (32 - SUB_BITS - 1) * (1 << SUB_BITS);
/// The largest relative distance of a value from the middle of its bucket.
pub const RELATIVE_ERROR: f64 = 1.0 / 16.0;

/// Returns the bucket of a latency in core cycles, in `0..BUCKETS`.
#[inline(always)]
pub const fn bucket(cycles: u32) -> u32 {
    if cycles < LINEAR {
        return cycles;
    }
    // Does not use `leading_zeros`: BPF before ISA v4 has no such instruction, and its emulation is
    // longer than these five steps.
    let mut exponent = 0;
    let mut rest = cycles;
    if rest >> 16 != 0 {
        exponent += 16;
        rest >>= 16;
    }
    if rest >> 8 != 0 {
        exponent += 8;
        rest >>= 8;
    }
    if rest >> 4 != 0 {
        exponent += 4;
        rest >>= 4;
    }
    if rest >> 2 != 0 {
        exponent += 2;
        rest >>= 2;
    }
    exponent += rest >> 1;
    let sub = (cycles >> (exponent - SUB_BITS)) & ((1 << SUB_BITS) - 1);
    LINEAR + (exponent - SUB_BITS - 1) * (1 << SUB_BITS) + sub
}

/// Returns the smallest latency in core cycles that falls into `bucket`.
///
/// After the last bucket it returns 2³², so that `lower(b)..lower(b + 1)` is the range of every
/// bucket.
pub const fn lower(bucket: u32) -> u64 {
    if bucket < LINEAR {
        return bucket as u64;
    }
    let step = bucket - LINEAR;
    let exponent = step / (1 << SUB_BITS) + SUB_BITS + 1;
    let sub = (step % (1 << SUB_BITS)) as u64;
    (1u64 << exponent) + (sub << (exponent - SUB_BITS))
}

/// Returns the middle of a bucket in core cycles, the value to print for a percentile in that
/// bucket.
pub fn middle(bucket: u32) -> f64 {
    if bucket < LINEAR { bucket as f64 } else { (lower(bucket) + lower(bucket + 1) - 1) as f64 / 2.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_values_are_exact() {
        for cycles in 0..LINEAR {
            assert_eq!(bucket(cycles), cycles);
            assert_eq!(lower(cycles), cycles as u64);
        }
    }

    #[test]
    fn every_bucket_holds_its_own_bounds_and_they_tile_u32() {
        for b in 0..BUCKETS {
            let (first, last) = (lower(b), lower(b + 1) - 1);
            assert_eq!(bucket(first as u32), b, "first of {b}");
            assert_eq!(bucket(last as u32), b, "last of {b}");
        }
        assert_eq!(lower(BUCKETS), 1 << 32);
        assert_eq!(bucket(u32::MAX), BUCKETS - 1);
    }

    #[test]
    fn the_stated_error_holds() {
        for b in LINEAR..BUCKETS {
            let (first, middle) = (lower(b) as f64, middle(b));
            assert!((middle - first) / first <= RELATIVE_ERROR, "bucket {b}");
        }
    }
}
