//! Hashes and random numbers that are the same on every machine and in every version.

use sha2::{Digest as _, Sha256};

use crate::tables::NODE_GROUPS;

/// Returns 63 bits of the hash of texts, so that the number has a place in a signed column.
pub fn hash63(texts: &[&str]) -> u64 {
    let mut hash = Sha256::new();
    for text in texts {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text.as_bytes());
    }
    let first = hash.finalize().iter().take(8).fold(0, |number, byte| number << 8 | u64::from(*byte));
    first >> 1
}

/// Returns the first 16 hexadecimal digits of the hash of bytes.
pub(crate) fn digits(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

/// Returns the group of a node.
pub fn node_group(cluster: &str, node: &str) -> u8 {
    (hash63(&[cluster, node]) % NODE_GROUPS) as u8
}

/// Random numbers from a seed: SplitMix64.
pub(crate) struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    /// Returns how many of `count` samples stay if each stays with one in `thinner`: a number of
    /// the binomial distribution. Of many samples it is one of the normal distribution, which then
    /// differs by less than a sample.
    pub fn thinned(&mut self, count: u64, thinner: u64) -> u64 {
        /// Up to this number, each sample is drawn by itself.
        const DRAWN: u64 = 1 << 14;
        if count <= DRAWN {
            let stays = u64::MAX / thinner;
            return (0..count).filter(|_| self.next() < stays).count() as u64;
        }
        // The sum of twelve uniform numbers has a variance of 1. All in units of 2⁻³².
        const ONE: i128 = 1 << 32;
        let normal = (0..12).map(|_| i128::from(self.next() >> 32)).sum::<i128>() - 6 * ONE;
        let deviation = i128::from((count.saturating_mul(thinner - 1)).isqrt());
        let kept = (i128::from(count) * ONE + normal * deviation) / i128::from(thinner);
        ((kept + ONE / 2) / ONE).clamp(0, count.into()) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_fixed() {
        assert_eq!(hash63(&["a", "b"]), hash63(&["a", "b"]));
        assert_ne!(hash63(&["a", "b"]), hash63(&["ab", ""]));
        assert_eq!((hash63(&[]), digits(b"")), (0xe3b0_c442_98fc_1c14 >> 1, "e3b0c44298fc1c14".to_owned()));
        let groups: std::collections::BTreeSet<_> =
            (0..1000).map(|n| node_group("", &n.to_string())).collect();
        assert_eq!((groups.len(), groups.last()), (32, Some(&31)));
    }

    #[test]
    fn thinning_keeps_a_fifth_with_the_right_spread() {
        let mut random = Random(1);
        for (count, rounds) in [(1, 50_000), (40, 20_000), (1000, 5000), (1 << 14, 500), (1 << 20, 20_000)] {
            let all: Vec<f64> = (0..rounds).map(|_| random.thinned(count, 5) as f64).collect();
            let mean = all.iter().sum::<f64>() / f64::from(rounds);
            let variance = all.iter().map(|kept| (kept - mean).powi(2)).sum::<f64>() / f64::from(rounds - 1);
            let (expected, spread) = (count as f64 / 5.0, count as f64 * 0.16);
            assert!((mean - expected).abs() < 4.0 * (spread / f64::from(rounds)).sqrt(), "{count}: {mean}");
            assert!((variance / spread - 1.0).abs() < 0.3, "{count}: {variance} instead of {spread}");
        }
        assert!(random.thinned(u64::MAX, 5) > u64::MAX / 6);
    }
}
