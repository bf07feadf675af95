//! The overhead of a run, as far as it can be known, and the control that keeps it within the
//! budget.
//!
//! The cost of a sample has two parts. The eBPF program measures the time from the filter's
//! decision to its end, on one in 64 samples; where the kernel looks up call chains, physical
//! addresses or page sizes, from the preparation of the sample. The interrupt around it cannot be
//! measured; its cost is an assumption. The cost of user space is the CPU time of the thread that
//! reads the tables, as accounted by the kernel.

use precise_common::ledger::Counter;

use super::{
    governor::{Governor, Spent, scaled},
    opening::SampledEvent,
    plan::{EPOCH, Plan, Target},
};
use crate::kernel::clock::{monotonic_ns, process_cpu_ns, thread_cpu_ns};
use crate::kernel::event::{Rate, Trigger};
use crate::reader::{self, ReaderUse};
use precise_model::{Overhead, RateChange};

/// Assumed cost in nanoseconds of the interrupt that takes a sample: entry, the PMU driver, exit,
/// and cache misses afterwards. Linux itself lowers the sample rate when these interrupts take
/// 2,500 ns on average (`perf_cpu_time_max_percent`).
const INTERRUPT_NS: u64 = 1000;
/// Assumed cost in nanoseconds of a sample of a software event, which the kernel takes without an
/// interrupt of its own.
const NO_INTERRUPT_NS: u64 = 100;
/// Assumed time in nanoseconds that a sample takes in the kernel, until it has been measured.
const UNMEASURED_NS: f64 = 300.0;

/// Upper limit of the period's scale if tasks inherit the event: a longer period may then change
/// little or nothing, and must not grow forever.
const MOST_OF_TASKS: f64 = 1000.0;

/// The part of a window after which it ends with the epoch: timers are a little late or early.
const NEARLY_ALL: f64 = 0.9;

/// Measures the overhead of a run, and adjusts the rates if the run has a budget.
#[derive(Debug)]
pub(crate) struct Cost {
    governor: Option<Governor>,
    budget: Option<f64>,
    /// The length of a window in nanoseconds: an epoch, or several short ones. A burst may use up
    /// the budget of a window.
    window_ns: f64,
    events: Vec<OfEvent>,
    cpus: usize,
    begun: u64,
    last: u64,
    thread_ns: u64,
    process_ns: u64,
    files_ns: u64,
    /// Sampling cost of the whole run in nanoseconds, by CPU; and the cost of reading.
    sampling: Vec<f64>,
    reading: f64,
    window: Spent,
    last_window: f64,
    worst: f64,
    /// Whether tasks inherit the events. A task that has inherited an event keeps its rate.
    inherited: bool,
    notes: Vec<String>,
}

#[derive(Debug)]
struct OfEvent {
    interrupt_ns: f64,
    sixteens: bool,
    asked: Rate,
    now: Rate,
    /// Number of samples that each CPU had seen at the last look.
    seen: Vec<u64>,
    changes: Vec<RateChange>,
}

impl Cost {
    /// Starts to measure. Must be called on the thread that reads the tables.
    pub fn new(plan: &Plan, events: &[SampledEvent]) -> Self {
        let of = |event: &SampledEvent| OfEvent {
            interrupt_ns: interrupt_ns(event.trigger) as f64,
            // Events that run on IBS, also through the core's PMU, start with such a period.
            sixteens: event.trigger == Trigger::Hardware
                && matches!(event.planned.rate, Rate::Period(period) if period.is_multiple_of(16)),
            asked: event.planned.rate,
            now: event.planned.rate,
            seen: event.sampler.seen_by_cpu(),
            changes: Vec::new(),
        };
        let most = if plan.target == Target::All { f64::INFINITY } else { MOST_OF_TASKS };
        let now = monotonic_ns();
        let window_ns = plan.epoch.max(EPOCH).as_nanos() as f64;
        Self {
            notes: Vec::new(),
            inherited: plan.target != Target::All,
            governor: plan.budget.map(|budget| Governor::new(budget, window_ns, most)),
            budget: plan.budget,
            window_ns,
            events: events.iter().map(of).collect(),
            cpus: plan.cpus.len().max(1),
            begun: now,
            last: now,
            thread_ns: thread_cpu_ns(),
            process_ns: own_cpu_ns(),
            files_ns: reader::cpu_ns(ReaderUse::Names),
            sampling: Vec::new(),
            reading: 0.0,
            window: Spent::default(),
            last_window: 0.0,
            worst: 0.0,
        }
    }

    /// Adds the cost since the last look, and changes the rates if the budget requires it.
    pub fn look(&mut self, sampled: &mut [SampledEvent]) {
        let spent = self.spent(sampled);
        let scale = self.governor.as_mut().and_then(|governor| governor.look(&spent));
        self.apply(scale, sampled);
    }

    /// Adds the cost since the last look, and ends the epoch.
    pub fn end_epoch(&mut self, sampled: &mut [SampledEvent]) {
        self.look(sampled);
        // The rest at the end of a run is shorter than a window, so its share would not be
        // comparable.
        if self.window.elapsed < self.window_ns * NEARLY_ALL {
            return;
        }
        self.last_window = std::mem::take(&mut self.window).share();
        self.worst = self.worst.max(self.last_window);
        let scale = self.governor.as_mut().and_then(Governor::end_epoch);
        self.apply(scale, sampled);
    }

    /// Returns the overhead of the last window, as a share of the busiest CPU's time.
    pub fn last_window(&self) -> f64 {
        self.last_window
    }

    /// Returns the sampling cost of each CPU so far, in nanoseconds.
    pub fn sampling(&self) -> &[f64] {
        &self.sampling
    }

    /// Returns the CPU time in nanoseconds of the thread that reads the tables, so far.
    pub fn reading(&self) -> f64 {
        self.reading * self.cpus as f64
    }

    /// Returns the current rate of each event.
    pub fn rates(&self) -> Vec<Rate> {
        self.events.iter().map(|of| of.now).collect()
    }

    /// Returns the notes for the reader since the last call.
    pub fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    fn spent(&mut self, sampled: &[SampledEvent]) -> Spent {
        // The cost and the number of the samples of each CPU.
        let mut by_cpu: Vec<(f64, f64)> = Vec::new();
        for (of, event) in self.events.iter_mut().zip(sampled) {
            let each = of.interrupt_ns + measured_ns(event).unwrap_or(UNMEASURED_NS);
            let seen = event.sampler.seen_by_cpu();
            by_cpu.resize(by_cpu.len().max(seen.len()), (0.0, 0.0));
            for (((spent, samples), now), before) in by_cpu.iter_mut().zip(&seen).zip(&of.seen) {
                let more = now.saturating_sub(*before) as f64;
                *samples += more;
                *spent += more * each;
            }
            of.seen = seen;
        }
        let (now, thread_ns) = (monotonic_ns(), thread_cpu_ns());
        let busiest = by_cpu.iter().copied().max_by(|(one, _), (other, _)| one.total_cmp(other));
        let (sampling, samples) = busiest.unwrap_or_default();
        let spent = Spent {
            elapsed: now.saturating_sub(self.last) as f64,
            sampling,
            samples,
            reading: thread_ns.saturating_sub(self.thread_ns) as f64 / self.cpus as f64,
        };
        (self.last, self.thread_ns) = (now, thread_ns);
        self.sampling.resize(by_cpu.len(), 0.0);
        self.sampling.iter_mut().zip(&by_cpu).for_each(|(sum, (spent, _))| *sum += spent);
        self.reading += spent.reading;
        self.window.add(&spent);
        spent
    }

    fn apply(&mut self, scale: Option<f64>, sampled: &mut [SampledEvent]) {
        let Some(scale) = scale else { return };
        for (of, event) in self.events.iter_mut().zip(sampled) {
            let new = slower(of.asked, scale, of.sixteens);
            if new == of.now || event.sampler.has_ended() {
                continue;
            }
            if let Err(failure) = event.set_rate(new) {
                // A failure here must not end a run that otherwise samples well.
                self.notes.push(format!("the budget has no effect from here on: {}", failure.with_causes()));
                self.governor = None;
                return;
            }
            of.now = new;
            let at_ns = monotonic_ns().saturating_sub(self.begun);
            of.changes.push(match new {
                Rate::Frequency(hertz) => RateChange { at_ns, period: None, frequency: Some(hertz) },
                Rate::Period(period) => RateChange { at_ns, period: Some(period), frequency: None },
                Rate::Count => continue,
            });
        }
    }

    /// Returns the overhead of the whole run, the rate changes of each event, and the notes for the
    /// reader.
    pub fn finish(&mut self, sampled: &[SampledEvent]) -> (Overhead, Vec<Vec<RateChange>>, Vec<String>) {
        self.spent(sampled);
        let overhead = self.overhead(sampled);
        let changes = self.take_rate_changes();
        if self.inherited && changes.iter().any(|changes| !changes.is_empty()) {
            self.notes.push(
                "processes that inherited the event before the period changed kept the old period, so the \
                 limit of the overhead does not hold for them; in a run of all processes it holds"
                    .to_owned(),
            );
        }
        (overhead, changes, std::mem::take(&mut self.notes))
    }

    /// Returns the overhead from the start of the run to the last look.
    pub fn overhead(&self, sampled: &[SampledEvent]) -> Overhead {
        let elapsed = self.last.saturating_sub(self.begun).max(1) as f64;
        let busiest = self.sampling.iter().copied().fold(0.0, f64::max);
        let millionths = |part: f64| (part * 1e6).round() as u64;
        let measured = sampled.iter().filter_map(measured_ns).fold(0.0, f64::max);
        let assumed = self.events.iter().map(|of| of.interrupt_ns).fold(0.0, f64::max);
        let files = reader::cpu_ns(ReaderUse::Names).saturating_sub(self.files_ns) as f64;
        let process = own_cpu_ns().saturating_sub(self.process_ns) as f64;
        let busiest_ppm = millionths((busiest + self.reading) / elapsed);
        Overhead {
            budget_ppm: self.budget.map(millionths),
            busiest_ppm,
            // A run shorter than a window has no worst one.
            worst_epoch_ppm: millionths(self.worst).max(busiest_ppm),
            reading_ppm: millionths(self.reading() / elapsed),
            process_ppm: millionths(process / elapsed),
            naming_ppm: millionths((process - files - self.reading()).max(0.0) / elapsed),
            files_ppm: millionths(files / elapsed),
            unwinding: None,
            sample_measured_ns: measured.round() as u64,
            sample_assumed_ns: assumed as u64,
        }
    }

    /// Returns the changes of each event's rate since the last call. A run without an end calls it
    /// after each epoch, so that the list does not grow.
    pub fn take_rate_changes(&mut self) -> Vec<Vec<RateChange>> {
        self.events.iter_mut().map(|of| std::mem::take(&mut of.changes)).collect()
    }
}

/// Returns the CPU time of this process, and of the one that reads files for it, in nanoseconds.
pub(crate) fn own_cpu_ns() -> u64 {
    process_cpu_ns() + reader::cpu_ns(ReaderUse::Names) + reader::cpu_ns(ReaderUse::Code)
}

/// Returns the average time of the measured samples in nanoseconds; `None` if none was measured.
fn measured_ns(event: &SampledEvent) -> Option<f64> {
    let table = &event.sampler.program().table;
    average(table.counter(Counter::Timed), table.counter(Counter::TimedNs))
}

/// Returns the average time of a sample. The kernel's NMI-safe clock may step back a little while
/// it is adjusted (`ktime_get_mono_fast_ns`), so the sum over a few samples can be negative; it
/// then counts as not measured.
fn average(samples: u64, ns: u64) -> Option<f64> {
    let ns = ns.cast_signed();
    (samples > 0 && ns > 0).then(|| ns as f64 / samples as f64)
}

/// Returns `asked`, slowed down by the factor `scale`. The result is never faster than `asked`, and
/// is of the same kind: the kernel would interpret hertz as a period.
fn slower(asked: Rate, scale: f64, sixteens: bool) -> Rate {
    match asked {
        Rate::Period(period) => Rate::Period(scaled(period, scale, sixteens)),
        Rate::Frequency(hertz) => Rate::Frequency(((hertz as f64 / scale.max(1.0)) as u64).max(1)),
        Rate::Count => Rate::Count,
    }
}

fn interrupt_ns(trigger: Trigger) -> u64 {
    match trigger {
        Trigger::Kernel => NO_INTERRUPT_NS,
        Trigger::Hardware | Trigger::Timer => INTERRUPT_NS,
    }
}

#[cfg(test)]
mod tests {
    use super::{average, slower};
    use crate::{
        kernel::event::{Encoding, Rate},
        pmu::names,
        run::{
            governor::{Governor, Spent},
            pace::most_per_second,
        },
    };

    #[test]
    fn a_clock_that_steps_back_measures_nothing() {
        assert_eq!(average(2, 600), Some(300.0));
        assert_eq!(average(0, 0), None);
        assert_eq!(average(1, 5u64.wrapping_neg()), None);
        assert_eq!(average(1, 0), None);
    }

    /// An event as the kernel keeps it. The ioctl does not say whether it changes a period or a
    /// frequency.
    struct Kernel {
        frequency: bool,
        value: u64,
    }

    impl Kernel {
        /// Opens the event at this rate. A timer does not remember that its rate was a frequency.
        fn open(asked: Rate, timer: bool) -> Self {
            match asked {
                Rate::Frequency(hertz) if timer => Self { frequency: false, value: 1_000_000_000 / hertz },
                Rate::Frequency(value) => Self { frequency: true, value },
                Rate::Period(value) => Self { frequency: false, value },
                Rate::Count => panic!("no sampling event"),
            }
        }

        /// Samples per second, at `events` events per second.
        fn rate(&self, timer: bool, events: f64) -> f64 {
            match (self.frequency, timer) {
                (true, _) => (self.value as f64).min(events),
                (false, true) => 1e9 / self.value.max(10_000) as f64,
                (false, false) => events / self.value as f64,
            }
        }
    }

    /// Every software event, with each way to request samples, under a budget that is far too
    /// tight, on a CPU that does nothing else.
    #[test]
    fn no_software_event_is_ever_sampled_more_often_than_was_asked() {
        const LOOK: f64 = 50e6;
        const BUDGET: f64 = 0.0001;
        const COST: f64 = 2000.0;
        let events = 1e6;
        let asked = [Rate::Frequency(99), Rate::Frequency(4999), Rate::Period(1), Rate::Period(100_003)];
        for software in names::SOFTWARE {
            let encoding = Encoding { pmu: 1, config: software.config, ..Encoding::default() };
            let trigger = encoding.trigger();
            let timer = software.unit == "ns";
            for asked in asked {
                let mut kernel = Kernel::open(asked, timer);
                let most = kernel.rate(timer, events);
                let begin = trigger.in_force(asked);
                if let Some(per_second) = most_per_second(asked, trigger, false) {
                    assert!((per_second / most - 1.0).abs() < 1e-4 || !timer, "{per_second}, {most}");
                }
                let mut governor = Governor::new(BUDGET, 1e9, f64::INFINITY);
                let mut rates = Vec::new();
                for look in 1..=400 {
                    let rate = kernel.rate(timer, events);
                    rates.push(rate);
                    let sampling = rate * LOOK / 1e9 * COST;
                    let samples = sampling / COST;
                    let spent = Spent { elapsed: LOOK, sampling, samples, reading: 0.0 };
                    let ended = (look % 20 == 0).then(|| governor.end_epoch()).flatten();
                    for scale in governor.look(&spent).into_iter().chain(ended) {
                        let new = slower(begin, scale, false);
                        let (Rate::Period(value) | Rate::Frequency(value)) = trigger.in_force(new) else {
                            panic!("{new:?}");
                        };
                        kernel.value = value;
                    }
                }
                let said = format!("{} {asked:?}: {rates:?}", software.names[0]);
                assert!(rates.iter().all(|rate| *rate <= most), "{said}");
                assert!(rates[200..].iter().all(|rate| rate * COST <= BUDGET * 1e9), "{said}");
            }
        }
    }

    #[test]
    fn a_slower_rate_is_of_the_same_kind() {
        for scale in [0.5, 1.0, 7.3, 1e9, f64::INFINITY] {
            assert!(matches!(slower(Rate::Period(1009), scale, false), Rate::Period(1009..)), "{scale}");
            assert!(matches!(slower(Rate::Frequency(99), scale, false), Rate::Frequency(1..=99)), "{scale}");
        }
    }
}
