//! Decodes the registers of IBS, which the driver adds to a sample beyond its fields.

use precise_common::ibs::{self, OutcomeBits as Bits, caps, fetch, op};

use precise_model::Outcome;

/// The kind of registers in a sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Registers {
    /// Whether they are the registers of a fetch, not of an op.
    pub fetch: bool,
    /// Whether the CPU has the errata of Zen 3; see [`Bits::of_op`].
    pub zen3_errata: bool,
}

impl Registers {
    /// Returns the facts of a record in words, separated by `; `. `None` if it is too short.
    /// Latencies are in core cycles.
    pub fn words(self, raw: &[u8]) -> Option<String> {
        let facts = if self.fetch { self.fetch(raw)? } else { self.op(raw)? };
        Some(facts.join("; "))
    }

    fn fetch(self, raw: &[u8]) -> Option<Vec<String>> {
        let ctl = ibs::register(raw, fetch::CTL)?;
        let outcome = Bits::of_fetch(ctl, self.zen3_errata);
        let mut facts = vec![Outcome::Fetch(outcome.0).words(), format!("fetch {}", ibs::fetch_latency(ctl))];
        if has(raw, caps::FETCH_EXTENDED) && outcome.has(Bits::ITLB_L1_MISS) {
            let extended = ibs::register(raw, fetch::EXTENDED)?;
            facts.push(format!("ITLB refill {}", ibs::itlb_refill_latency(extended)));
        }
        if outcome.has(Bits::PHYSICAL_VALID) {
            facts.push(format!("physical {:#x}", ibs::register(raw, fetch::PHYSICAL)?));
        }
        Some(facts)
    }

    fn op(self, raw: &[u8]) -> Option<Vec<String>> {
        let [data, data2, data3] =
            [ibs::register(raw, op::DATA)?, ibs::register(raw, op::DATA2)?, ibs::register(raw, op::DATA3)?];
        let outcome = Bits::of_op(data, data2, data3, self.zen3_errata);
        let mut facts = Vec::new();
        if outcome.has(Bits::BRANCH) {
            facts.push(format!("branch {}", Outcome::Op(outcome.0).words()));
            if has(raw, caps::BRANCH_TARGET) {
                facts.push(format!("target {:#x}", ibs::register(raw, op::TARGET)?));
            }
        }
        facts.push(format!("tag to retire {}", ibs::tag_to_retire(data)));
        facts.push(format!("completion to retire {}", ibs::completion_to_retire(data)));
        facts.extend(outcome.width().map(|bytes| format!("{bytes} bytes")));
        facts.extend(outcome.data_page().map(|bytes| match bytes {
            4096 => "page 4K".to_owned(),
            0x20_0000 => "page 2M".to_owned(),
            _ => "page 1G".to_owned(),
        }));
        if outcome.has(Bits::DTLB_L1_MISS) {
            facts.push(format!("DTLB refill {}", ibs::tlb_refill_latency(data3)));
        }
        for (bit, word) in [
            (Bits::PREFETCH, "software prefetch"),
            (Bits::MISALIGNED, "misaligned"),
            (Bits::WRITE_COMBINING, "write-combining"),
            (Bits::UNCACHED, "uncacheable"),
            (Bits::NO_MAB, "miss already in flight"),
            (Bits::MICROCODE, "microcode"),
            (Bits::RIP_INVALID, "IP invalid"),
            (Bits::UNKNOWN, "data source invalid (erratum 1293)"),
        ] {
            if outcome.has(bit) {
                facts.push(word.to_owned());
            }
        }
        Some(facts)
    }
}

/// Returns whether the record's capabilities have this bit.
fn has(raw: &[u8], bit: u32) -> bool {
    raw.first_chunk().is_some_and(|caps| u32::from_le_bytes(*caps) & bit != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(caps: u32, registers: &[u64]) -> Vec<u8> {
        let words = registers.iter().flat_map(|word| word.to_le_bytes());
        caps.to_le_bytes().into_iter().chain(words).collect()
    }

    #[test]
    fn an_op_in_words() {
        let ops = Registers { fetch: false, zen3_errata: false };
        let branch = record(caps::BRANCH_TARGET, &[0, 0, 35 << 16 | 5 | 7 << 35, 0, 0, 0, 0, 0x1234]);
        assert_eq!(
            ops.words(&branch).as_deref(),
            Some("branch taken, mispredicted; target 0x1234; tag to retire 35; completion to retire 5")
        );
        let load = record(0, &[0, 0, 9 << 16, 3, 1 | 1 << 2 | 1 << 17 | 1 << 4 | 4 << 22 | 77 << 48, 8, 0]);
        assert_eq!(
            ops.words(&load).as_deref(),
            Some("tag to retire 9; completion to retire 0; 8 bytes; page 2M; DTLB refill 77")
        );
        assert_eq!(ops.words(&load[..20]), None);
        assert_eq!(ops.words(&[]), None);
    }

    #[test]
    fn a_fetch_in_words() {
        let fetches = Registers { fetch: true, zen3_errata: false };
        let raw = record(caps::FETCH_EXTENDED, &[1 << 51 | 1 << 52 | 1 << 55 | 40 << 32, 0, 0x5000, 12]);
        assert_eq!(
            fetches.words(&raw).as_deref(),
            Some("aborted, IC miss, L2 ITLB hit; fetch 40; ITLB refill 12; physical 0x5000")
        );
        assert_eq!(fetches.words(&raw[..30]), None);
    }
}
