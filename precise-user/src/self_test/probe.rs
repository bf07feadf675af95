//! The probes of the self-test: presets, the work for each, and sample periods.

use super::{
    task::{Task, Work},
    topology::Topology,
};
use precise_model::{Preset, Vendor};
use precise_sampling::pmu::PresetOptions;
use precise_sampling::pmu::request::period;

/// One test: a preset, and the work to sample.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The preset to sample.
    pub preset: Preset,
    /// The work, in a few words.
    pub work: &'static str,
    /// Whether the samples come from the hardware.
    pub hardware: bool,
}

/// All probes, in the order in which they run.
pub const PROBES: [Probe; 8] = [
    Probe { preset: Preset::Cycles, work: "a pointer chase", hardware: true },
    Probe { preset: Preset::Loads, work: "a pointer chase over three buffers", hardware: true },
    Probe { preset: Preset::Stores, work: "stores to one buffer", hardware: true },
    Probe { preset: Preset::C2c, work: "two CPUs that write to the same line", hardware: true },
    Probe { preset: Preset::Branches, work: "a random branch beside a predictable one", hardware: true },
    Probe { preset: Preset::Fetch, work: "the same loop", hardware: true },
    Probe { preset: Preset::Faults, work: "the first access to each of many pages", hardware: false },
    Probe { preset: Preset::Clock, work: "a loop without calls", hardware: false },
];

/// One run of a probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProbeStep {
    /// The work to do.
    pub task: Task,
    /// Sample period: events per sample. `None` uses the event's default.
    pub period: Option<u64>,
    /// Name of the run if a probe has several, for example "in the L1 cache"; otherwise empty.
    pub name: &'static str,
}

/// Size of a page in bytes.
const PAGE: u64 = 4096;
/// Assumed sizes of caches in bytes, if the machine does not report them: common values.
const L1: u64 = 32 << 10;
const L2: u64 = 1 << 20;
const LAST: u64 = 16 << 20;
/// Maximum size in bytes of the buffer that fits no cache.
const MOST: u64 = 1 << 30;

impl Probe {
    /// Returns the options for the PMU. If loads have a latency threshold, it is set low enough to
    /// include loads that hit the L1 cache.
    pub fn options(&self, vendor: Vendor) -> PresetOptions {
        let all_loads = self.preset == Preset::Loads && vendor == Vendor::Intel;
        // 3 is the lowest threshold that perf uses.
        PresetOptions { ldlat: all_loads.then_some(3), ..PresetOptions::default() }
    }

    /// Returns the runs of the probe.
    ///
    /// # Errors
    ///
    /// Returns a sentence that says why this machine lacks what the work needs.
    pub fn steps(&self, machine: &Topology, vendor: Vendor) -> Result<Vec<ProbeStep>, String> {
        let Some(cpu) = machine.cpus.first() else {
            return Err("the CPUs that this process may use are unknown".to_owned());
        };
        let amd = vendor == Vendor::Amd;
        let one = |work, bytes, period| {
            vec![ProbeStep { task: Task { work, bytes, cpus: vec![*cpu] }, period, name: "" }]
        };
        let cache = |level: usize, usual| machine.caches.get(level).copied().unwrap_or(usual);
        let near = half(cache(0, L1));
        let middle = half(cache(1, L2)).max(near * 2);
        Ok(match self.preset {
            Preset::Loads => {
                let last = machine.caches.iter().skip(2).copied().max().unwrap_or(LAST);
                let far = (last.saturating_mul(4)).next_power_of_two().clamp(LAST * 4, MOST);
                if machine.available < far * 2 {
                    return Err(format!(
                        "a buffer larger than all caches needs {} MiB of free memory",
                        far >> 19
                    ));
                }
                // About 1,000 samples per second for each buffer. A round of the nearest buffer
                // takes a hundredth of the time of the farthest one.
                let periods = if amd { AMD_LOADS } else { INTEL_LOADS };
                [(near, "in the L1 cache"), (middle, "in the L2 cache"), (far, "in memory")]
                    .into_iter()
                    .zip(periods)
                    .map(|((bytes, name), period)| ProbeStep {
                        task: Task { work: Work::Chase, bytes, cpus: vec![*cpu] },
                        period: Some(period),
                        name,
                    })
                    .collect()
            }
            Preset::Stores => one(Work::Store, middle, None),
            Preset::C2c => {
                let Some(cpus) = machine.two_cores() else {
                    return Err("the test needs two cores, and this process may use only one".to_owned());
                };
                vec![ProbeStep {
                    task: Task { work: Work::Share, bytes: PAGE, cpus: cpus.to_vec() },
                    period: None,
                    name: "",
                }]
            }
            Preset::Branches => {
                one(Work::Branch, PAGE, Some(if amd { AMD_BRANCHES } else { INTEL_BRANCHES }))
            }
            Preset::Faults => one(Work::Touch, 1 << 20, Some(FAULTS)),
            Preset::Fetch | Preset::Clock => one(Work::Branch, PAGE, None),
            _ => one(Work::Chase, near, None),
        })
    }
}

/// Sample periods for the three buffers. They are primes, or on IBS 16 times a prime. IBS counts
/// ops, and three of ten ops are loads.
const INTEL_LOADS: [u64; 3] = [1_000_003, 200_003, 20_011];
const AMD_LOADS: [u64; 3] = [period::IBS_OPS, period::IBS_UNIT * 12_503, period::IBS_UNIT * 1_871];
/// The loop has a mispredicted branch about every 50 cycles.
const INTEL_BRANCHES: u64 = 100_003;
/// An eighth of the ops in the loop are branches.
const AMD_BRANCHES: u64 = period::IBS_UNIT * 12_503;
/// Touching a page takes a microsecond or less.
const FAULTS: u64 = 101;

/// Returns the largest power of two that is at most half of `bytes`, and at least a page.
fn half(bytes: u64) -> u64 {
    let half = (bytes / 2).max(PAGE);
    1 << half.ilog2()
}
