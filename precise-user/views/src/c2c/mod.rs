//! `precise c2c`: contended cache lines. These are lines that loads found modified in another
//! core's cache (HITM), with the code that reads and writes each of their bytes.
//!
//! Two threads write different variables that happen to be in one cache line. Each write takes the
//! line away from the other thread's core:
//!
//! ```
//! # struct NoCode;
//! # impl precise_views::code::Code for NoCode {
//! #     fn instructions(
//! #         &mut self,
//! #         _: &precise_code::FunctionId,
//! #     ) -> Result<Vec<precise_code::Instruction>, precise_model::Reason> {
//! #         Err(precise_model::Reason::FileMissing)
//! #     }
//! #     fn source(&mut self, _: &str, _: u32) -> Option<String> {
//! #         None
//! #     }
//! # }
//! use precise_model::testing::{CaptureBuilder, L3_HITM};
//! use precise_views::c2c::{C2cOptions, SharingVerdict, c2c};
//!
//! const STORE: u64 = 0x508_0144;
//!
//! let mut made = CaptureBuilder::new();
//! for (thread, offset) in [(1, 0), (2, 8)] {
//!     // A HITM load found its line modified in the cache of another core.
//!     for (source, samples) in [(L3_HITM, 100), (STORE, 50)] {
//!         let cell = made.cell().samples(samples).data_src(source).process(thread, "worker");
//!         let mut cell = cell.data(0x7000 + offset, "/dev/shm/counters", "");
//!         cell.row().width = Some(8);
//!     }
//! }
//!
//! // `NoCode` implements `Code` without files: here, each sample tells the width of its access.
//! let result = c2c(&made.build(), &C2cOptions::default(), &mut NoCode)?;
//!
//! let line = &result.lines[0];
//! assert_eq!((line.address, line.hitm.total, line.stores), (0x7000, 200, 100));
//! // Bytes 0 to 7 belong to one thread and bytes 8 to 15 to the other: padding would help.
//! assert_eq!(line.verdict, SharingVerdict::FalseSharing);
//! # Ok::<(), precise_views::ViewError>(())
//! ```

pub mod csv;
mod fields;
mod lines;
mod result;
#[cfg(test)]
pub(crate) mod tests;
pub mod text;
mod verdict;
mod view;

pub use view::C2cView;

pub use result::{C2c, C2cEvent, Classes, ProcessPair, SharedAccess, SharedBytes, SharedLine, WidthFrom};
pub(crate) use verdict::is_stray;
pub use verdict::{MIN_LINE_SAMPLES, SharingVerdict};

use precise_common::data_src::DataSource;

use super::about::{self, EventSummary, Run};
use super::code::Code;
use super::needs::{self, Needs};
use super::stats::{MIN_SAMPLES, Samples};
use super::weighing::Weighing;
use super::{ViewError, trust};
use lines::CacheLines;
use precise_model::keys::Key;
use precise_model::{Capture, Dimension, EventInfo, Vendor};

/// Options for `precise c2c`.
#[derive(Clone, Debug, PartialEq)]
pub struct C2cOptions {
    /// Number of lines to show; `None` for all.
    pub limit: Option<usize>,
    /// Minimum number of HITM loads for a ranking of lines.
    pub min_samples: u64,
}

impl Default for C2cOptions {
    fn default() -> Self {
        Self { limit: None, min_samples: MIN_SAMPLES }
    }
}

/// Returns the contended cache lines of a capture, those with most HITM loads first. `code`
/// provides the width of an access if the hardware does not report it.
///
/// # Errors
///
/// Returns an error if the capture lacks data that the view needs. The message names the command
/// that records it.
pub fn c2c(capture: &Capture, options: &C2cOptions, code: &mut dyn Code) -> Result<C2c, ViewError> {
    let mut needs = Needs::of::<C2cView>();
    // A thread id or a CPU number identifies the sharer; one of them is required.
    if !needs::has(capture, Dimension::Thread) && !needs::has(capture, Dimension::Cpu) {
        needs = needs.with(&[Dimension::Thread, Dimension::Cpu]);
    }
    needs.check(capture)?;
    needs::coarse(capture, &[Key::LineAddress])?;
    let trust = trust::trust(capture);
    let events = capture.meta.events.iter().zip(trust.events).enumerate();
    let events: Vec<_> = events
        .map(|(index, (info, trust))| of_event(capture, index, EventSummary::of(info, trust), info))
        .collect();
    let lines = CacheLines::of(capture);
    let (hitm, weight) = lines.hitm();
    let too_few = (hitm < options.min_samples).then_some(options.min_samples);
    let (mut found, rest) = lines.look(options.limit.unwrap_or(usize::MAX), code);
    for line in &mut found {
        line.share = line.weight.share_of(weight);
    }
    let pairs = lines::pairs(&found);
    let paths = pairs.iter().flat_map(|pair| [&pair.reader_cgroup, &pair.writer_cgroup]);
    let called = |path: &String| Some((path.clone(), capture.meta.owner(path)?.name.clone()));
    Ok(C2c {
        run: Run::of(capture),
        cgroup_names: paths.filter_map(called).collect(),
        pairs,
        notes: notes(capture),
        promoted_lines: capture.meta.promoted_lines,
        events,
        hitm,
        quiet_lines: lines.quiet,
        lines: found,
        left_out: (rest.lines, rest.hitm),
        left_out_weight: rest.weight,
        too_few,
    })
}

/// Returns whether the data sources of an event come from AMD's driver.
fn is_amd(capture: &Capture, info: &EventInfo) -> bool {
    // An imported file may lack the name of the PMU but name the CPU.
    let vendor = capture.meta.machine.cpu_id.as_ref().map(|cpu| cpu.vendor);
    info.pmu.is_ibs() || vendor == Some(Vendor::Amd)
}

fn of_event(capture: &Capture, index: usize, event: EventSummary, info: &EventInfo) -> C2cEvent {
    let weight = Samples::default();
    let mut result =
        C2cEvent { event, samples: 0, loads: 0, weight, stores: 0, elsewhere: 0, notes: Vec::new() };
    let weighing = Weighing::of(capture, index);
    for row in capture.rows.iter().filter(|row| usize::from(row.event) == index) {
        let count = row.measures.count;
        result.samples = result.samples.saturating_add(count);
        let op = row.data_source().op;
        if op & DataSource::LOAD != 0 {
            result.weight.add(weighing.samples(row));
        }
        if op & DataSource::STORE != 0 {
            result.stores = result.stores.saturating_add(count);
        }
        if row.data.is_none() {
            result.elsewhere = result.elsewhere.saturating_add(count);
        }
    }
    result.loads = result.weight.count;
    result.notes.extend(about::latency_limits(info));
    result
}

/// Returns the caveats about these numbers, one sentence each.
fn notes(capture: &Capture) -> Vec<String> {
    let mut notes = Vec::new();
    if capture.meta.events.iter().any(|info| is_amd(capture, info)) {
        notes.push(
            "IBS reports the cache that had the line for loads only, so stores that waited for the line \
             are in no HITM number."
                .to_owned(),
        );
    } else {
        notes.push(
            "HITM is reported for loads only, so stores that waited for the line are in no HITM number. \
             Loads below the latency threshold (ldlat), such as L1 hits, were not sampled."
                .to_owned(),
        );
    }
    if capture.meta.address_granule > 1 {
        notes.push(format!(
            "Addresses are multiples of {} bytes, so accesses within that range cannot be told apart. \
             Record or import with --granule 1.",
            capture.meta.address_granule
        ));
    }
    if !needs::has(capture, Dimension::Thread) {
        notes.push(
            "Threads were not recorded, so accesses from different CPUs count as different threads."
                .to_owned(),
        );
    }
    notes
}
