//! Call chains of samples, with the same ids that the eBPF program assigns.
//!
//! Some samples have only a part of their chain ([`PartialChain`]); `callers` finds the rest.

use std::sync::Arc;

use precise_common::stack::{CONTEXT_USER, CONTEXT_USER_DEFERRED, ENTRIES, id_of, none};

use crate::unwind::{UserPart, kernel_part};
use precise_records::Chains;
use precise_records::record::sample::Sample;

/// The maximum size of the remembered chains in bytes. Beyond it all are forgotten, and the same
/// chain may then be stored twice.
const MAX_BYTES: usize = 32 << 20;

/// The call chain of a sample.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ImportedChain {
    /// The id from [`id_of`], or the code of the reason why there is no chain.
    pub id: u64,
    /// The entries as the kernel recorded them; `None` if it recorded none.
    pub entries: Option<Arc<[u64]>>,
    /// The bytes that this chain adds to the memory of earlier chains; 0 if it is already known.
    pub bytes: usize,
}

/// A call chain that the sample has only a part of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PartialChain {
    /// The entries of the kernel.
    pub kernel: Vec<u64>,
    /// Where the callers in user space come from.
    pub rest: RestOfChain,
}

/// Where the callers in user space of a chain come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RestOfChain {
    /// A copy of the stack, which is unwound when all mappings of its time are known.
    Copied(UserPart),
    /// A later record of the thread with this cookie.
    Deferred { tid: u32, cookie: u64 },
}

impl PartialChain {
    /// Returns the part of a chain that the kernel delivered with a sample whose stack was copied.
    pub fn copied(sample: &Sample) -> Self {
        let rest = RestOfChain::Copied(UserPart::of(sample).detached());
        Self { kernel: kernel_part(&sample.call_chain).collect(), rest }
    }

    /// Returns the part of a chain whose rest the kernel has deferred; `None` if it has not.
    pub fn deferred(sample: &Sample) -> Option<Self> {
        let entries: Vec<u64> = words(&sample.call_chain).collect();
        let marker = entries.iter().position(|entry| *entry == CONTEXT_USER_DEFERRED)?;
        let cookie = *entries.get(marker + 1)?;
        let kernel = entries.get(..marker)?.to_vec();
        Some(Self { kernel, rest: RestOfChain::Deferred { tid: sample.tid, cookie } })
    }

    /// Returns the memory of the chain in bytes.
    pub fn bytes(&self) -> usize {
        let copied = match &self.rest {
            RestOfChain::Copied(part) => part.bytes(),
            RestOfChain::Deferred { .. } => 0,
        };
        size_of::<Self>() + size_of_val(&self.kernel[..]) + copied
    }
}

/// Returns the entries of a chain as the kernel wrote it.
pub(super) fn words(entries: &[u8]) -> impl Iterator<Item = u64> {
    entries.as_chunks().0.iter().map(|entry| u64::from_ne_bytes(*entry))
}

/// The chains seen so far. Most samples share their chain with others.
#[derive(Debug, Default)]
pub(super) struct Seen {
    chains: Chains,
    bytes: usize,
}

impl Seen {
    /// Returns the chain whose entries are these bytes.
    pub fn chain(&mut self, entries: &[u8]) -> ImportedChain {
        self.remember(words(entries))
    }

    /// Returns the chain with these entries.
    pub fn of(&mut self, entries: &[u64]) -> ImportedChain {
        self.remember(entries.iter().copied())
    }

    /// Returns the chain of the kernel's entries up to the interrupted instruction in user space,
    /// and of the calls in the branch records from there on, innermost first.
    pub fn lbr_chain(&mut self, entries: &[u8], branches: &[u8]) -> ImportedChain {
        /// `struct perf_branch_entry`: where from, where to, flags.
        const BRANCH: usize = 24;
        let kernel: Vec<u64> = words(entries).collect();
        let Some(user) = kernel.iter().position(|entry| *entry == CONTEXT_USER) else {
            return self.remember(kernel.into_iter());
        };
        let word = |bytes: &[u8]| bytes.first_chunk().map_or(0, |word| u64::from_ne_bytes(*word));
        let calls = branches.chunks_exact(BRANCH);
        // Without the interrupted instruction, the most recent call still names its function.
        let called = calls.clone().next().and_then(|call| call.get(8..)).map(word);
        let interrupted = kernel.get(user + 1).copied().or(called);
        let before = kernel.iter().take(user + 1).copied();
        // Callers are return addresses elsewhere, so the call instruction is one byte before them.
        let callers = calls.map(|call| word(call).saturating_add(1));
        self.remember(before.chain(interrupted).chain(callers))
    }

    fn remember(&mut self, entries: impl Iterator<Item = u64>) -> ImportedChain {
        let entries: Vec<u64> = entries.take(ENTRIES).collect();
        if entries.is_empty() {
            return ImportedChain { id: none::NOT_GIVEN, entries: None, bytes: 0 };
        }
        let id = id_of(&entries);
        if let Some(known) = self.chains.get(&id) {
            return ImportedChain { id, entries: Some(known.clone()), bytes: 0 };
        }
        let bytes = bytes_of(&entries);
        if self.bytes.saturating_add(bytes) > MAX_BYTES {
            self.chains.clear();
            self.bytes = 0;
        }
        self.bytes += bytes;
        let entries: Arc<[u64]> = entries.into();
        self.chains.insert(id, entries.clone());
        ImportedChain { id, entries: Some(entries), bytes }
    }
}

/// Returns the bytes that a chain takes, including its entry in a map.
pub(super) fn bytes_of(entries: &[u64]) -> usize {
    size_of_val(entries) + 2 * size_of::<(u64, Arc<[u64]>)>()
}

#[cfg(test)]
mod tests {
    use precise_common::stack::CONTEXT_KERNEL;

    use super::*;

    fn bytes(entries: &[u64]) -> Vec<u8> {
        entries.iter().flat_map(|entry| entry.to_ne_bytes()).collect()
    }

    #[test]
    fn a_chain_is_held_once_and_is_no_longer_than_the_program_keeps() {
        let mut seen = Seen::default();
        let long: Vec<u64> = (0..1000).collect();
        let first = seen.chain(&bytes(&long));
        assert_eq!(first.entries.as_deref(), Some(&long[..ENTRIES]));
        assert_eq!(first.id, id_of(&long[..ENTRIES]));
        assert!(first.bytes > ENTRIES * 8);
        assert_eq!(seen.chain(&bytes(&long)), ImportedChain { bytes: 0, ..first });
        assert_eq!(seen.chain(&[]), ImportedChain { id: none::NOT_GIVEN, entries: None, bytes: 0 });
    }

    #[test]
    fn the_calls_of_the_lbr_take_the_place_of_the_kernels_callers() {
        let branch = |from: u64, to: u64| bytes(&[from, to, 0]);
        let lbr = [branch(0x200, 0x100), branch(0x305, 0x210)].concat();
        let kernel = bytes(&[CONTEXT_KERNEL, 1 << 63, CONTEXT_USER, 0x108, 0x9999]);
        let chain = Seen::default().lbr_chain(&kernel, &lbr);
        let found = [CONTEXT_KERNEL, 1 << 63, CONTEXT_USER, 0x108, 0x201, 0x306];
        assert_eq!(chain.entries.as_deref(), Some(&found[..]));
        let chain = Seen::default().lbr_chain(&bytes(&[CONTEXT_USER]), &lbr);
        assert_eq!(chain.entries.as_deref(), Some(&[CONTEXT_USER, 0x100, 0x201, 0x306][..]));
        assert_eq!(Seen::default().lbr_chain(&[], &lbr).id, none::NOT_GIVEN);
    }

    #[test]
    fn memory_is_bounded_however_many_there_are() {
        let mut seen = Seen::default();
        for first in 0..100_000 {
            let entries: Vec<u64> = (first..first + 100).collect();
            assert_eq!(seen.chain(&bytes(&entries)).id, id_of(&entries));
            assert!(seen.bytes <= MAX_BYTES);
        }
        assert!(seen.chains.len() < 50_000);
    }
}
