//! The control law that keeps a run's cost within its budget: from what was spent to how much
//! longer the periods must be.
//!
//! Pure: it knows neither events nor clocks. An epoch has its budget, a part of each CPU's time. As
//! long as the epoch has not used it up, nothing changes: a short burst is what a user wants to
//! see. Once it has, periods grow by as much as the latest look demands; and when an epoch used
//! little of its budget, they shrink again, though never below what the run began with.

/// The part of the budget that a new rate aims at. The rest is for what varies.
const AIM: f64 = 0.8;
/// An epoch in which sampling took less than this part of what it may lets periods shrink.
const IDLE: f64 = 0.4;
/// Periods shrink at most by this factor in an epoch: what was quiet for a while may not stay so.
const SHRINK: f64 = 0.25;
/// What sampling may use even where user space alone exceeds the budget: longer periods would not
/// help there, and a run without samples is for nothing.
const LEAST: f64 = 0.1;
/// Periods that shrink to less than this are as at first again: the rest of the way is within the
/// budget.
const NEARLY: f64 = 1.25;
/// A change by less is not worth its record.
const WORTH: f64 = 1.1;

/// What a stretch of a run cost, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct Spent {
    /// How long it was.
    pub elapsed: f64,
    /// Sampling, on the CPU that sampled most.
    pub sampling: f64,
    /// What user space took for reading the table, spread over the CPUs.
    pub reading: f64,
}

impl Spent {
    /// Of the CPU that sampled most, as a part of its time.
    pub fn share(&self) -> f64 {
        if self.elapsed > 0.0 { self.total() / self.elapsed } else { 0.0 }
    }

    fn total(&self) -> f64 {
        self.sampling + self.reading
    }

    /// Adds another stretch.
    pub fn add(&mut self, other: &Self) {
        self.elapsed += other.elapsed;
        self.sampling += other.sampling;
        self.reading += other.reading;
    }
}

/// Decides how much longer than at first the periods are.
#[derive(Clone, Debug, PartialEq)]
pub struct Governor {
    budget: f64,
    epoch_ns: f64,
    scale: f64,
    most: f64,
    spent: Spent,
    /// Whether the scale was raised in this epoch: what was spent before says nothing of what is
    /// spent since.
    raised: bool,
}

impl Governor {
    /// `budget` is a part of each CPU's time, above 0; an epoch takes so many nanoseconds. Periods
    /// never become more than `most` times longer.
    pub fn new(budget: f64, epoch_ns: f64, most: f64) -> Self {
        Self { budget, epoch_ns, scale: 1.0, most, spent: Spent::default(), raised: false }
    }

    /// How many times longer the periods are than those that the run began with.
    pub fn scale(&self) -> f64 {
        self.scale
    }

    /// Takes in what was spent since the last look. The new scale, where it must change at once.
    pub fn look(&mut self, spent: &Spent) -> Option<f64> {
        self.spent.add(spent);
        let used_up = self.spent.total() > self.budget * self.epoch_ns.max(self.spent.elapsed);
        if used_up && spent.share() > self.budget { self.rescale(spent, 1.0) } else { None }
    }

    /// Ends the epoch, which looks have told of. The new scale, where it must change.
    pub fn end_epoch(&mut self) -> Option<f64> {
        let spent = std::mem::take(&mut self.spent);
        if std::mem::take(&mut self.raised) {
            return None;
        }
        let room = self.room(&spent);
        if spent.share() > self.budget && spent.sampling > room {
            let new = self.rescale(&spent, 1.0);
            self.raised = false;
            return new;
        }
        // Of what reading leaves: periods change nothing about that.
        if self.scale > 1.0 && spent.sampling < IDLE * room {
            return self.rescale(&spent, SHRINK);
        }
        None
    }

    /// What sampling may take of this stretch.
    fn room(&self, spent: &Spent) -> f64 {
        let whole = self.budget * spent.elapsed;
        (AIM * whole - spent.reading).max(LEAST * whole)
    }

    /// What would have kept this within the budget, where that is at least `least` times what there
    /// is.
    fn rescale(&mut self, spent: &Spent, least: f64) -> Option<f64> {
        let room = self.room(spent);
        if room <= 0.0 {
            return None;
        }
        let mut new = (self.scale * (spent.sampling / room).max(least)).max(1.0).min(self.most);
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

/// `period` made `scale` times longer: the next prime, so that it falls into step with no loop; or,
/// where the hardware takes multiples of 16 only (AMD IBS), 16 times a prime and at least 0x90. A
/// scale of 1 is the period itself.
pub fn scaled(period: u64, scale: f64, sixteens: bool) -> u64 {
    /// What the registers of every PMU hold.
    const LONGEST: u64 = (1 << 31) - 1;
    if scale <= 1.0 {
        return period;
    }
    let wanted = ((period as f64 * scale) as u64).min(LONGEST.max(period));
    // A period beyond what is common is the user's own: nothing longer is known to be taken.
    if wanted >= LONGEST {
        return if sixteens { LONGEST & !0xf } else { LONGEST.max(period) };
    }
    if sixteens { 16 * next_prime((wanted / 16).max(9)) } else { next_prime(wanted) }
}

/// The least prime that is not less, below 2³².
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
