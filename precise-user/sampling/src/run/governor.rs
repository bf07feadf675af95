//! The control law that keeps the overhead of a run within its budget: computes from the measured
//! cost how much longer the sample periods must be.
//!
//! It is pure: it knows neither events nor clocks. Each epoch has a budget, a share of each CPU's
//! time. Nothing changes until the epoch has used up its budget, because a short burst of samples
//! is what a user wants to see. Then the periods grow by as much as the latest measurement
//! requires. After an epoch that used little of its budget they shrink again, but never below the
//! initial periods.

/// Share of the budget that a new rate aims at. The rest is a margin for variation.
const AIM: f64 = 0.8;
/// Periods may shrink after an epoch in which sampling used less than this share of its allowance.
const IDLE: f64 = 0.4;
/// The smallest factor by which periods may shrink in one epoch, because a quiet phase may not
/// last.
const SHRINK: f64 = 0.25;
/// Share of the budget that sampling may always use, even if user space alone exceeds the budget:
/// longer periods would not help then, and a run without samples is useless.
const LEAST: f64 = 0.1;
/// Samples per second that the CPU that samples most keeps, whatever they seem to cost. What a
/// sample takes is measured on one in 64, so where few are taken, one whose program was interrupted
/// for long (by a hypervisor, for example) would make all of them seem that dear.
const LEAST_PER_SECOND: f64 = 10.0;
/// A scale that shrinks below this value becomes 1: the initial periods are then close enough.
const NEARLY: f64 = 1.25;
/// The smallest change of the scale, as a factor, that is worth a change of the rates.
const WORTH: f64 = 1.1;

/// The cost of a stretch of a run; times in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Spent {
    /// Length of the stretch.
    pub elapsed: f64,
    /// Time for sampling, on the CPU that sampled most.
    pub sampling: f64,
    /// Number of samples of that CPU.
    pub samples: f64,
    /// Time that user space took to read the table, divided by the number of CPUs.
    pub reading: f64,
}

impl Spent {
    /// Returns the cost as a share of the time of the CPU that sampled most.
    pub fn share(&self) -> f64 {
        if self.elapsed > 0.0 { self.total() / self.elapsed } else { 0.0 }
    }

    fn total(&self) -> f64 {
        self.sampling + self.reading
    }

    /// Adds another stretch to this one.
    pub fn add(&mut self, other: &Self) {
        self.elapsed += other.elapsed;
        self.sampling += other.sampling;
        self.samples += other.samples;
        self.reading += other.reading;
    }
}

/// Computes by what factor to lengthen the initial periods.
#[derive(Clone, Debug, PartialEq)]
pub struct Governor {
    budget: f64,
    epoch_ns: f64,
    scale: f64,
    most: f64,
    /// The cost in this epoch. Its samples are as many as there would have been with the initial
    /// periods.
    spent: Spent,
    /// Whether the scale was raised in this epoch: the cost from before does not predict the cost
    /// at the new rate.
    raised: bool,
}

impl Governor {
    /// Creates a governor. `budget` is a share of each CPU's time, above 0; `epoch_ns` is the
    /// length of an epoch in nanoseconds; `most` is the largest scale of the periods.
    pub fn new(budget: f64, epoch_ns: f64, most: f64) -> Self {
        Self { budget, epoch_ns, scale: 1.0, most, spent: Spent::default(), raised: false }
    }

    /// Returns the current scale: the ratio of the current to the initial periods.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Adds the cost since the last look. Returns the new scale if the periods must change at once.
    pub fn look(&mut self, spent: &Spent) -> Option<f64> {
        self.spent.add(&Spent { samples: spent.samples * self.scale, ..*spent });
        let used_up = self.spent.total() > self.budget * self.epoch_ns.max(self.spent.elapsed);
        if !used_up || spent.share() <= self.budget {
            return None;
        }
        let still = self.still(&self.spent);
        self.rescale(spent, 1.0, still)
    }

    /// Ends the epoch that the looks described. Returns the new scale if the periods must change.
    pub fn end_epoch(&mut self) -> Option<f64> {
        let spent = std::mem::take(&mut self.spent);
        if std::mem::take(&mut self.raised) {
            return None;
        }
        let room = self.room(&spent);
        if spent.share() > self.budget && spent.sampling > room {
            let new = self.rescale(&spent, 1.0, self.still(&spent));
            self.raised = false;
            return new;
        }
        // Compares with what reading leaves of the budget, because periods do not change the cost
        // of reading.
        if self.scale > 1.0 && spent.sampling < IDLE * room {
            return self.rescale(&spent, SHRINK, self.still(&spent));
        }
        None
    }

    /// Returns the scale that leaves [`LEAST_PER_SECOND`], by what this epoch has shown so far.
    fn still(&self, epoch: &Spent) -> f64 {
        epoch.samples / (LEAST_PER_SECOND * epoch.elapsed.max(self.epoch_ns) / 1e9)
    }

    /// Returns the time in nanoseconds that sampling may take in this stretch.
    fn room(&self, spent: &Spent) -> f64 {
        let whole = self.budget * spent.elapsed;
        (AIM * whole - spent.reading).max(LEAST * whole)
    }

    /// Changes the scale to the one that would have kept this stretch within the budget, but to no
    /// less than `least` times the current scale, and to no more than `still` unless it is more
    /// already. Returns the new scale; `None` if the change is too small.
    fn rescale(&mut self, spent: &Spent, least: f64, still: f64) -> Option<f64> {
        let room = self.room(spent);
        if room <= 0.0 {
            return None;
        }
        let mut new = (self.scale * (spent.sampling / room).max(least)).max(1.0).min(self.most);
        if new > self.scale {
            new = new.min(still).max(self.scale);
        }
        if new < self.scale && new < NEARLY {
            new = 1.0;
        }
        let change = new / self.scale;
        if change < WORTH && change > WORTH.recip() {
            return None;
        }
        self.raised |= new > self.scale;
        self.scale = new;
        Some(new)
    }
}

/// Returns `period` made `scale` times longer and rounded up to the next prime, so that sampling
/// does not fall into step with a loop. If the hardware accepts only multiples of 16 (AMD IBS), the
/// result is 16 times a prime and at least 0x90. A scale of 1 returns the period itself.
pub fn scaled(period: u64, scale: f64, sixteens: bool) -> u64 {
    /// The longest period that the registers of every PMU can hold.
    const LONGEST: u64 = (1 << 31) - 1;
    /// 16 times the largest prime below 2²⁷.
    const LONGEST_OF_SIXTEENS: u64 = 16 * ((1 << 27) - 39);
    if scale <= 1.0 {
        return period;
    }
    let wanted = ((period as f64 * scale) as u64).min(LONGEST.max(period));
    // Only a user can have chosen such a long period; a longer one may not be accepted.
    if wanted >= LONGEST {
        return if sixteens { LONGEST_OF_SIXTEENS } else { LONGEST.max(period) };
    }
    if sixteens {
        (16 * next_prime((wanted / 16).max(9))).min(LONGEST_OF_SIXTEENS)
    } else {
        next_prime(wanted)
    }
}

/// Returns the smallest prime that is not less than `least`, below 2³².
fn next_prime(least: u64) -> u64 {
    (least.max(2)..).find(|n| is_prime(*n)).unwrap_or(least)
}

fn is_prime(n: u64) -> bool {
    n == 2
        || (n > 2 && n % 2 == 1 && (3..).step_by(2).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d)))
}

#[cfg(test)]
#[path = "governor_tests.rs"]
mod tests;
