//! Whether an event takes as many samples as were asked for, or so many more that something is
//! wrong: a kernel or a hypervisor that understands a rate otherwise than precise does would let
//! the event take a CPU for itself.
//!
//! Pure: it is told the time and what each CPU has seen.

use precise_model::Runaway;

use crate::kernel::event::{Rate, Trigger};

/// Seen is compared with asked over stretches of this length, in nanoseconds.
const STRETCH: u64 = 1_000_000_000;
/// How many stretches in a row must be too busy. In frequency mode the kernel takes up to a third
/// of a second to find the period (`perf_adjust_period`), and finds it anew after idle times.
const PATIENCE: u32 = 3;
/// More than this many times what was asked for is too busy, and
const FAR: f64 = 10.0;
/// at least this many samples a second more: what is rarely asked for costs little at first.
const HARMLESS: f64 = 1000.0;

/// Samples that each CPU takes per second at most, where the rate says it.
///
/// `inherited`: whether tasks inherit the event. In frequency mode each of them begins with a
/// period that the kernel has yet to find, so that many short ones together are rightly above the
/// rate.
pub fn most_per_second(rate: Rate, trigger: Trigger, inherited: bool) -> Option<f64> {
    match (trigger, trigger.in_force(rate)) {
        (Trigger::Timer, Rate::Period(nanoseconds)) => Some(1e9 / nanoseconds as f64),
        (_, Rate::Frequency(hertz)) if !inherited => Some(hertz as f64),
        // How often the event happens is nobody's to ask for.
        _ => None,
    }
}

/// Compares what one event's CPUs see with what was asked for.
#[derive(Clone, Debug)]
pub struct Pace {
    /// Samples per second and CPU that are asked for now.
    asked: Option<f64>,
    began: u64,
    /// Begin of the stretch, and what each CPU had seen then.
    stretch: u64,
    seen: Vec<u64>,
    /// Until when `due` has what was asked for in this stretch.
    until: u64,
    due: f64,
    busy: u32,
}

impl Pace {
    /// From `now` on, in nanoseconds. `asked` is [`most_per_second`] of the event's rate.
    pub fn new(asked: Option<f64>, now: u64) -> Self {
        Self { asked, began: now, stretch: now, seen: Vec::new(), until: now, due: 0.0, busy: 0 }
    }

    /// The rate is another one from `now` on.
    pub fn change(&mut self, asked: Option<f64>, now: u64) {
        self.pass(now);
        self.asked = asked;
    }

    /// `seen`: samples of each CPU up to `now`. What is wrong, where too many came for too long.
    pub fn look(&mut self, now: u64, seen: Vec<u64>) -> Option<Runaway> {
        self.pass(now);
        let elapsed = now.saturating_sub(self.stretch);
        if elapsed < STRETCH {
            return None;
        }
        let seconds = elapsed as f64 / 1e9;
        let before = self.seen.iter().copied().chain(std::iter::repeat(0));
        let (most, cpu) = seen
            .iter()
            .zip(before)
            .zip(0..)
            .map(|((now, before), cpu)| (now.saturating_sub(before), cpu))
            .max_by_key(|(samples, _)| *samples)?;
        let bound = (FAR * self.due).max(self.due + HARMLESS * seconds);
        self.busy = if self.asked.is_some() && most as f64 > bound { self.busy + 1 } else { 0 };
        let runaway = Runaway {
            after_ns: now.saturating_sub(self.began),
            cpu,
            per_second: (most as f64 / seconds).round() as u64,
            asked_per_second: (self.due / seconds).round().max(1.0) as u64,
        };
        (self.stretch, self.seen, self.due) = (now, seen, 0.0);
        (self.busy >= PATIENCE).then_some(runaway)
    }

    fn pass(&mut self, now: u64) {
        let seconds = now.saturating_sub(self.until) as f64 / 1e9;
        self.due += self.asked.unwrap_or(0.0) * seconds;
        self.until = now;
    }
}

#[cfg(test)]
#[path = "pace_tests.rs"]
mod tests;
