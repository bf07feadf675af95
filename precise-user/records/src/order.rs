//! The samples of all CPUs in the order of time.
//!
//! Each ring is in order; between rings, one that is read later may hold an older sample. Two
//! rounds of reading suffice to tell: what was taken before the last round but one began has been
//! read by now, whatever its ring.

/// Samples that wait for older ones.
#[derive(Debug)]
pub struct Order<T> {
    held: Vec<(u64, T)>,
    /// When the last round began to read the rings.
    began: u64,
}

impl<T> Default for Order<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Order<T> {
    /// An order that holds no sample yet.
    pub const fn new() -> Self {
        Self { held: Vec::new(), began: 0 }
    }

    /// One that was taken at `time`.
    pub fn push(&mut self, time: u64, sample: T) {
        self.held.push((time, sample));
    }

    /// A round is complete whose reading began at `began`: hands out what nothing older can follow.
    pub fn round(&mut self, began: u64) -> Vec<T> {
        self.timed_round(began).into_iter().map(|(_, sample)| sample).collect()
    }

    /// [`Self::round`], with the times.
    pub fn timed_round(&mut self, began: u64) -> Vec<(u64, T)> {
        let before = std::mem::replace(&mut self.began, began);
        // Stable: samples of one time stay in the order of their ring.
        self.held.sort_by_key(|(time, _)| *time);
        let ready = self.held.partition_point(|(time, _)| *time < before);
        self.held.drain(..ready).collect()
    }

    /// Memory is short: hands out the older half, whatever may follow.
    pub fn older_half(&mut self) -> Vec<(u64, T)> {
        self.held.sort_by_key(|(time, _)| *time);
        let half = self.held.len().div_ceil(2);
        self.held.drain(..half).collect()
    }

    /// No round follows: hands out the rest.
    pub fn finish(&mut self) -> Vec<T> {
        self.began = u64::MAX;
        self.round(u64::MAX)
    }

    /// The time before which nothing will be handed out any more.
    pub fn oldest(&self) -> u64 {
        self.held.iter().map(|(time, _)| *time).min().unwrap_or(u64::MAX).min(self.began)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_sample_of_a_ring_that_was_read_before_comes_first() {
        let mut order = Order::new();
        // Round 1, begun at 100: CPU 0 is read at 100, CPU 1 at 105. CPU 0 takes a sample at 102,
        // seen in round 2.
        order.push(90, 'a');
        order.push(104, 'c');
        assert!(order.round(100).is_empty());
        order.push(102, 'b');
        order.push(210, 'd');
        // Everything before 100 is known.
        assert_eq!(order.round(200), ['a']);
        assert_eq!(order.oldest(), 102);
        assert_eq!(order.round(300), ['b', 'c']);
        assert_eq!(order.finish(), ['d']);
        assert!(order.finish().is_empty());
    }

    #[test]
    fn samples_of_one_time_stay_in_order() {
        let mut order = Order::new();
        for sample in 0..100 {
            order.push(7, sample);
        }
        assert_eq!(order.finish(), (0..100).collect::<Vec<_>>());
    }

    #[test]
    fn the_older_half_can_be_had_early() {
        let mut order = Order::new();
        for time in [3, 1, 2] {
            order.push(time, time);
        }
        assert_eq!(order.older_half(), [(1, 1), (2, 2)]);
        assert_eq!(order.finish(), [3]);
    }
}
