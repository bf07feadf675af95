//! Sorts the samples of all CPUs by time.
//!
//! Each ring buffer is in order, but one that is read later may contain an older sample than one
//! that was read before it. Two rounds of reading are enough: every sample that was taken before
//! the start of the last but one round has been read by now, whatever its ring buffer.

/// A queue of samples that wait for older ones.
#[derive(Debug)]
pub struct TimeOrder<T> {
    held: Vec<(u64, T)>,
    /// The time when the last round started to read the ring buffers.
    began: u64,
}

impl<T> Default for TimeOrder<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> TimeOrder<T> {
    /// Creates a queue without samples.
    pub const fn new() -> Self {
        Self { held: Vec::new(), began: 0 }
    }

    /// Adds a sample that was taken at `time`.
    pub fn push(&mut self, time: u64, sample: T) {
        self.held.push((time, sample));
    }

    /// Ends a round of reading that began at `began`. Returns the samples that no older one can
    /// follow.
    pub fn round(&mut self, began: u64) -> Vec<T> {
        self.timed_round(began).into_iter().map(|(_, sample)| sample).collect()
    }

    /// Ends a round like [`Self::round`], and returns the samples with their times.
    pub fn timed_round(&mut self, began: u64) -> Vec<(u64, T)> {
        let before = std::mem::replace(&mut self.began, began);
        // The sort is stable: samples with equal times stay in the order of their ring buffer.
        self.held.sort_by_key(|(time, _)| *time);
        let ready = self.held.partition_point(|(time, _)| *time < before);
        self.held.drain(..ready).collect()
    }

    /// Returns the older half, to free memory. Older samples may still follow.
    pub fn older_half(&mut self) -> Vec<(u64, T)> {
        self.held.sort_by_key(|(time, _)| *time);
        let half = self.held.len().div_ceil(2);
        self.held.drain(..half).collect()
    }

    /// Returns the remaining samples, after the last round.
    pub fn finish(&mut self) -> Vec<T> {
        self.began = u64::MAX;
        self.round(u64::MAX)
    }

    /// Returns the time before which no sample will be returned any more.
    pub fn oldest(&self) -> u64 {
        self.held.iter().map(|(time, _)| *time).min().unwrap_or(u64::MAX).min(self.began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_sample_of_a_ring_that_was_read_before_comes_first() {
        let mut order = TimeOrder::new();
        // Round 1 starts at 100: CPU 0 is read at 100, CPU 1 at 105. CPU 0 takes a sample at 102,
        // which round 2 reads.
        order.push(90, 'a');
        order.push(104, 'c');
        assert!(order.round(100).is_empty());
        order.push(102, 'b');
        order.push(210, 'd');
        // Every sample before 100 has been read.
        assert_eq!(order.round(200), ['a']);
        assert_eq!(order.oldest(), 102);
        assert_eq!(order.round(300), ['b', 'c']);
        assert_eq!(order.finish(), ['d']);
        assert!(order.finish().is_empty());
    }

    #[test]
    fn samples_of_one_time_stay_in_order() {
        let mut order = TimeOrder::new();
        for sample in 0..100 {
            order.push(7, sample);
        }
        assert_eq!(order.finish(), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn the_older_half_can_be_had_early() {
        let mut order = TimeOrder::new();
        for time in [3, 1, 2] {
            order.push(time, time);
        }
        assert_eq!(order.older_half(), [(1, 1), (2, 2)]);
        assert_eq!(order.finish(), [3]);
    }
}
