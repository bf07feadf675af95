//! Finds the members that threads share by writing, so that one waits for the other's cache line.

use std::collections::{BTreeMap, BTreeSet};

use precise_code::types::TypeLayout;

use super::{OfType, member_at};
use crate::c2c::is_stray;

/// The samples of a member in one object, by thread: all, and the writes among them.
type Threads = BTreeMap<u32, (u64, u64)>;

/// Pairs of members, the smaller index first: one thread writes one of them, and another thread
/// uses the other, in one object. Both are the same member if the two threads use the same.
#[derive(Default)]
pub(super) struct Sharing {
    pairs: BTreeSet<(usize, usize)>,
}

impl Sharing {
    /// Returns how the sampled threads share the members of a type.
    pub fn of(layout: &TypeLayout, of_type: &OfType) -> Self {
        let mut objects: BTreeMap<(u32, u64), BTreeMap<usize, Threads>> = BTreeMap::new();
        for (key, visit) in of_type.visits.iter().filter(|(key, _)| key.tid != 0) {
            let members = objects.entry((key.pid, key.base)).or_default();
            for (offset, uses) in visit {
                let Some(member) = member_at(layout, *offset) else { continue };
                let sum = members.entry(member).or_default().entry(key.tid).or_default();
                *sum = (sum.0.saturating_add(uses.samples), sum.1.saturating_add(uses.written));
            }
        }
        // The samples that compete, and those of the less used member, where there are two threads.
        let mut all: BTreeMap<(usize, usize), (u64, u64)> = BTreeMap::new();
        for members in objects.values() {
            for (a, of_a) in members {
                for (b, of_b) in members.range(a..) {
                    if of_a.len() > 1 || !of_a.keys().eq(of_b.keys()) {
                        let competing = competing(of_a, of_b).max(competing(of_b, of_a));
                        let sum = all.entry((*a, *b)).or_default();
                        sum.0 = sum.0.saturating_add(competing);
                        sum.1 = sum.1.saturating_add(samples(of_a).min(samples(of_b)));
                    }
                }
            }
        }
        let pairs = all.into_iter().filter(|(_, (part, whole))| *part > 0 && !is_stray(*part, *whole));
        Self { pairs: pairs.map(|(pair, _)| pair).collect() }
    }

    /// Returns whether any members are shared by writing.
    pub fn any(&self) -> bool {
        !self.pairs.is_empty()
    }

    /// Returns whether two members, or the one member twice, are shared by writing.
    pub fn between(&self, a: usize, b: usize) -> bool {
        self.pairs.contains(&(a.min(b), a.max(b)))
    }
}

/// Returns the writes to one member that compete with other threads' uses of another one: of each
/// writer, at most as many as there are such uses.
fn competing(written: &Threads, used: &Threads) -> u64 {
    let uses = samples(used);
    let of_thread = |(tid, (_, writes)): (&u32, &(u64, u64))| {
        let own = used.get(tid).map_or(0, |(samples, _)| *samples);
        (*writes).min(uses.saturating_sub(own))
    };
    written.iter().map(of_thread).fold(0, u64::saturating_add)
}

fn samples(threads: &Threads) -> u64 {
    threads.values().fold(0, |sum, (samples, _)| sum.saturating_add(*samples))
}
