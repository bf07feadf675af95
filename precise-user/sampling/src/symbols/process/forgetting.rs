//! Forgets processes and mappings so that the history stays within its limit. The documentation of
//! the module above says what is forgotten first.

use std::sync::Arc;

use super::{Processes, name_bytes};
use crate::symbols::mapping::Image;

/// The part of [`HistoryLimits::bytes`] from which the mappings of one process count as large: 1
/// MiB of the default, which is some 20,000 mappings that are shared with no other process.
const LARGE: usize = 256;

impl Processes {
    /// Forgets something if there are more bytes than the limit.
    pub(super) fn bound(&mut self) {
        if self.account.bytes() > self.limits.bytes.max(self.held) {
            self.make_room();
            let step = self.limits.bytes / 16;
            let left = self.account.bytes();
            self.held = if left + step > self.limits.bytes { left + step } else { 0 };
        }
    }

    /// Forgets until an eighth of the limit is free, so that this is not done for each record. See
    /// the module's documentation for what is forgotten.
    fn make_room(&mut self) {
        let target = self.limits.bytes - self.limits.bytes / 8;
        self.by_pid.values_mut().for_each(|generation| generation.space.forget_replaced(self.horizon));
        self.prune_shared(0);
        self.forget_mappings(target, self.limits.bytes / LARGE);
        self.forget_ended(target);
        self.forget_mappings(target, 0);
        self.forget_living(target);
    }

    /// Forgets the mappings of generations, the largest first, until there are at most `target`
    /// bytes, or none has more than `least` bytes.
    fn forget_mappings(&mut self, target: usize, least: usize) {
        for round in 0.. {
            let bytes = self.account.bytes();
            if bytes <= target {
                return;
            }
            // What several processes share is free when the last of them has forgotten it, so each
            // round forgets twice as much.
            let target = bytes.saturating_sub((bytes - target) << round.min(8));
            // The bytes of the spaces with 2^n to 2^(n+1) bytes each.
            let mut by_size = [0_usize; usize::BITS as usize];
            for generation in self.by_pid.values().filter(|generation| !generation.space.is_empty()) {
                let own = generation.space.own_bytes();
                if own > least {
                    by_size[own.ilog2() as usize] += own;
                }
            }
            let (mut left, mut smallest) = (bytes, by_size.len());
            while smallest > 0 && left > target {
                smallest -= 1;
                left = left.saturating_sub(by_size[smallest]);
            }
            if left == bytes {
                return;
            }
            let mut left = bytes;
            // Of those of the smallest size, up to a factor of two, the ones with the lowest pids.
            for sizes in [smallest + 1..by_size.len(), smallest..smallest + 1] {
                for generation in self.by_pid.values_mut().filter(|one| !one.space.is_empty()) {
                    let own = generation.space.own_bytes();
                    if left > target && own > least && sizes.contains(&(own.ilog2() as usize)) {
                        generation.space.forget();
                        left = left.saturating_sub(own);
                        self.counts.spaces += 1;
                    }
                }
            }
            self.prune_shared(0);
        }
    }

    /// Forgets ended generations, those that ended first first, until there are at most `target`
    /// bytes.
    fn forget_ended(&mut self, target: usize) {
        for round in 0.. {
            let bytes = self.account.bytes();
            if bytes <= target {
                return;
            }
            let target = bytes.saturating_sub((bytes - target) << round.min(8));
            let mut left = bytes;
            while left > target {
                let Some((until, generation)) = self.take_ended() else { return self.prune_shared(0) };
                left = left.saturating_sub(generation.own_bytes());
                self.forgotten_until = self.forgotten_until.max(until);
                self.counts.ended += 1;
            }
            self.prune_shared(0);
        }
    }

    /// Forgets living generations, those that started last first, until there are at most `target`
    /// bytes. None has mappings or an earlier generation any more.
    fn forget_living(&mut self, target: usize) {
        let bytes = self.account.bytes();
        if bytes <= target || self.by_pid.is_empty() {
            return;
        }
        let mut serials: Vec<u64> = self.by_pid.keys().map(|(_, serial)| *serial).collect();
        // All take about the same.
        let kept = (serials.len() as u128 * target as u128 / bytes as u128) as usize;
        let kept = kept.min(serials.len() - 1);
        let (_, first, _) = serials.select_nth_unstable(kept);
        let (before, first) = (self.by_pid.len(), *first);
        self.by_pid.retain(|(_, serial), _| *serial < first);
        self.counts.living += (before - self.by_pid.len()) as u64;
        self.forgotten_until = u64::MAX;
        self.prune_shared(0);
    }

    /// Drops shared images and names that have no other owner, if there are more than `many`.
    pub(super) fn prune_shared(&mut self, many: usize) {
        let mut freed = 0;
        if self.images.len() > many {
            self.images.retain(|image, _| {
                let kept = Arc::strong_count(image) > 1;
                freed += if kept { 0 } else { Image::bytes(image) };
                kept
            });
            self.images.shrink_to(2 * self.images.len().max(many));
        }
        if self.names.len() > many {
            self.names.retain(|name| {
                let kept = Arc::strong_count(name) > 1;
                freed += if kept { 0 } else { name_bytes(name) };
                kept
            });
            self.names.shrink_to(2 * self.names.len().max(many));
        }
        self.shared.set(self.shared.bytes().saturating_sub(freed));
    }
}
