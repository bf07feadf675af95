//! The encoding of small numbers in Parquet pages: runs of one number, and groups of eight numbers
//! with a fixed number of bits each (Parquet's "RLE / bit-packing hybrid").
//!
//! The parquet crate has an encoder that takes a number at a time. Columns of a sorted table have
//! long runs, and here a run is found as a whole.

use super::varint;

/// The smallest run that is written as a run.
const SHORTEST_RUN: usize = 8;

/// Returns the number of bits that numbers below `count` take.
pub(super) fn bits_below(count: usize) -> u8 {
    let most = count.saturating_sub(1);
    (usize::BITS - most.leading_zeros()) as u8
}

/// Appends numbers of at most `bits` bits.
pub(super) fn put_hybrid(out: &mut Vec<u8>, bits: u8, numbers: &[u32]) {
    let (mut at, mut packed_from) = (0_usize, 0_usize);
    while let Some(first) = numbers.get(at) {
        let rest = numbers.get(at..).unwrap_or_default();
        let run = rest.iter().position(|number| number != first).unwrap_or(rest.len());
        // Groups have eight numbers: those that wait take what they lack from the run.
        let lacking = packed_from.wrapping_sub(at) % 8;
        if run < lacking + SHORTEST_RUN {
            at += run;
            continue;
        }
        put_packed(out, bits, numbers.get(packed_from..at + lacking).unwrap_or_default());
        varint::put(out, ((run - lacking) as u64) << 1);
        out.extend_from_slice(first.to_le_bytes().get(..usize::from(bits.div_ceil(8))).unwrap_or_default());
        at += run;
        packed_from = at;
    }
    put_packed(out, bits, numbers.get(packed_from..).unwrap_or_default());
}

/// Appends groups of eight numbers. The last one is filled with zeros.
fn put_packed(out: &mut Vec<u8>, bits: u8, numbers: &[u32]) {
    if numbers.is_empty() {
        return;
    }
    let groups = numbers.len().div_ceil(8);
    varint::put(out, (groups as u64) << 1 | 1);
    let end = out.len() + groups * usize::from(bits);
    let (mut waiting, mut count) = (0_u64, 0);
    for number in numbers {
        waiting |= u64::from(*number) << count;
        count += u32::from(bits);
        if count >= 32 {
            out.extend_from_slice(&(waiting as u32).to_le_bytes());
            waiting >>= 32;
            count -= 32;
        }
    }
    out.extend_from_slice(&waiting.to_le_bytes());
    out.resize(end, 0);
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the numbers of runs, of each as many bits.
    pub fn numbers(runs: &[(u32, usize)], bits: u8) -> Vec<u32> {
        let most = (1_u64 << bits) - 1;
        let of = |(number, length): &(u32, usize)| {
            std::iter::repeat_n((u64::from(*number) & most) as u32, *length)
        };
        runs.iter().flat_map(of).collect()
    }

    /// Reads numbers as the format describes them.
    fn read(mut bytes: &[u8], bits: u8, count: usize) -> Vec<u32> {
        let mut take = |length: usize| {
            let (taken, rest) = bytes.split_at(length);
            bytes = rest;
            taken
        };
        let mut numbers = Vec::new();
        while numbers.len() < count {
            let (mut header, mut shift) = (0_u64, 0);
            loop {
                let byte = take(1)[0];
                header |= u64::from(byte & 0x7f) << shift;
                shift += 7;
                if byte < 0x80 {
                    break;
                }
            }
            let length = (header >> 1) as usize;
            if header & 1 == 0 {
                let mut number = [0; 4];
                let value = take(usize::from(bits.div_ceil(8)));
                number[..value.len()].copy_from_slice(value);
                numbers.extend(std::iter::repeat_n(u32::from_le_bytes(number), length));
            } else {
                let packed = take(length * usize::from(bits));
                let bit = |at: usize| u32::from(packed[at / 8] >> (at % 8) & 1);
                let wide = usize::from(bits);
                numbers.extend(
                    (0..length * 8).map(|n| (0..wide).fold(0, |of, at| of | bit(n * wide + at) << at)),
                );
            }
        }
        numbers.truncate(count);
        numbers
    }

    proptest! {
        #[test]
        fn numbers_come_back_as_they_were(
            runs in prop::collection::vec((any::<u32>(), 1_usize..40), 0..40),
            bits in 0_u8..=32,
        ) {
            let numbers = numbers(&runs, bits);
            let mut bytes = Vec::new();
            put_hybrid(&mut bytes, bits, &numbers);
            prop_assert_eq!(read(&bytes, bits, numbers.len()), numbers);
        }
    }

    #[test]
    fn a_run_takes_a_few_bytes() {
        let mut bytes = Vec::new();
        put_hybrid(&mut bytes, 9, &[7; 100_000]);
        assert_eq!(bytes, [0xc0, 0x9a, 0x0c, 7, 0]);
        assert_eq!([0, 1, 2, 3, 256, 257].map(bits_below), [0, 0, 1, 2, 8, 9]);
    }
}
