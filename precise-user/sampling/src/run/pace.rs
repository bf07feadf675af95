//! Detects a runaway event: one that takes far more samples than requested, so that something must
//! be wrong. If a kernel or hypervisor interprets the rate differently, the event could take a
//! whole CPU.
//!
//! It is pure: the caller supplies the time and the samples of each CPU.

use precise_model::Runaway;

use crate::kernel::event::{Rate, Trigger};

/// Length in nanoseconds of a stretch over which samples are compared with the requested rate.
const STRETCH: u64 = 1_000_000_000;
/// Number of consecutive stretches that must be too busy. In frequency mode the kernel needs up to
/// a third of a second to find the period (`perf_adjust_period`), and finds it anew after idle
/// times.
const PATIENCE: u32 = 3;
/// A stretch is too busy if it has more than this many times the requested samples, and
const FAR: f64 = 10.0;
/// at least this many samples per second more than requested: exceeding a low rate costs little.
const HARMLESS: f64 = 1000.0;

/// Returns the maximum number of samples per second and CPU that the rate allows; `None` if the
/// rate sets no limit.
///
/// `inherited` says whether tasks inherit the event. In frequency mode each task starts with a
/// period that the kernel adjusts only later, so a large number of short tasks may together exceed
/// the rate without a fault.
pub fn most_per_second(rate: Rate, trigger: Trigger, inherited: bool) -> Option<f64> {
    match (trigger, trigger.in_force(rate)) {
        (Trigger::Timer, Rate::Period(nanoseconds)) => Some(1e9 / nanoseconds as f64),
        (_, Rate::Frequency(hertz)) if !inherited => Some(hertz as f64),
        // A period does not limit how often the event happens.
        _ => None,
    }
}

/// Compares the samples of one event on each CPU with the requested rate.
#[derive(Clone, Debug)]
pub struct Pace {
    /// The requested samples per second per CPU; `None` if the rate sets no limit.
    asked: Option<f64>,
    began: u64,
    /// Start of the stretch, and the samples that each CPU had seen by then.
    stretch: u64,
    seen: Vec<u64>,
    /// The time up to which `due` counts the samples requested in this stretch.
    until: u64,
    due: f64,
    busy: u32,
}

impl Pace {
    /// Starts at `now`, in nanoseconds. `asked` is [`most_per_second`] of the event's rate.
    pub fn new(asked: Option<f64>, now: u64) -> Self {
        Self { asked, began: now, stretch: now, seen: Vec::new(), until: now, due: 0.0, busy: 0 }
    }

    /// Changes the requested rate from `now` on.
    pub fn change(&mut self, asked: Option<f64>, now: u64) {
        self.pass(now);
        self.asked = asked;
    }

    /// Takes the number of samples that each CPU has seen by `now`. Returns a [`Runaway`] if a CPU
    /// has seen too many for too long.
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
