//! The list of what is compared.

use super::work::Load;

/// What a profiler is told to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// Sample each page fault of the machine by instruction, cgroup and process.
    EachFault,
    /// Look at each page fault of the machine, and keep none.
    NoFault,
    /// Sample all CPUs by a timer.
    Timer {
        /// Samples per second.
        hertz: u32,
    },
    /// Profile a program that ends at once.
    Start,
}

/// A question that is asked of each contender.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The heading of its table.
    pub title: &'static str,
    /// What a profiler does.
    pub what: What,
    /// The program that it slows down; `None`: its own time is measured.
    pub load: Option<Load>,
    /// The unit of the values.
    pub unit: &'static str,
    /// The largest ratio of precise's cost to that of perf with which `--quick` is content. It
    /// leaves room for a noisy machine: it is twice what was measured, or more.
    pub limit: Option<f64>,
}

const fn slowed(title: &'static str, what: What, load: Load, limit: Option<f64>) -> Question {
    Question { title, what, load: Some(load), unit: "ns per operation", limit }
}

const fn timer(title: &'static str, hertz: u32, load: Load) -> Question {
    slowed(title, What::Timer { hertz }, load, None)
}

/// All questions, in the order of the page.
pub const QUESTIONS: [Question; 12] = [
    slowed(
        "A page fault, each sampled by instruction, cgroup and process",
        What::EachFault,
        Load::Faults,
        Some(1.2),
    ),
    slowed("A page fault that a filter rejects", What::NoFault, Load::Faults, None),
    timer("A cache miss, timer of 1 kHz", 1000, Load::Memory),
    timer("A cache miss, timer of 10 kHz", 10_000, Load::Memory),
    timer("A cache miss, timer of 20 kHz", 20_000, Load::Memory),
    timer("A multiplication, timer of 1 kHz", 1000, Load::Compute),
    timer("A multiplication, timer of 10 kHz", 10_000, Load::Compute),
    timer("A multiplication, timer of 20 kHz", 20_000, Load::Compute),
    timer("A system call, timer of 1 kHz", 1000, Load::Syscalls),
    timer("A system call, timer of 10 kHz", 10_000, Load::Syscalls),
    timer("A system call, timer of 20 kHz", 20_000, Load::Syscalls),
    Question {
        title: "From start to end of a profile of `true`",
        what: What::Start,
        load: None,
        unit: "ms",
        limit: Some(1.0),
    },
];

impl Question {
    /// Returns whether the values mean something only next to those without a profiler.
    pub fn needs_baseline(&self) -> bool {
        self.load.is_some()
    }
}
