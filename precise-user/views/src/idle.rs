//! Idle CPUs: their samples are a sentence, and no part of tables and findings.
//!
//! An idle CPU waits in one function of the kernel. A timer takes samples there, so that this
//! function would be the hottest of most machines.
//!
//! ```
//! use precise_model::testing::CaptureBuilder;
//! use precise_views::idle;
//!
//! let mut made = CaptureBuilder::new();
//! made.cell().samples(900).code(0xffff_8000_0000_1000, "[kernel]", "pv_native_safe_halt", "", 0);
//! made.cell().samples(100).process(17, "app").code(0x1000, "/bin/app", "parse", "", 0);
//! let mut capture = made.build();
//! for row in &mut capture.rows {
//!     row.kernel = row.pid == 0;
//! }
//!
//! idle::leave_out(&mut capture, false);
//! assert_eq!(capture.rows.len(), 1);
//! assert_eq!(capture.meta.events[0].idle.map(|idle| idle.samples), Some(900));
//! ```

use precise_common::ledger::Counter;
use precise_model::digits::{percent, thousands};
use precise_model::{Capture, EventInfo, Idle, Meta, Name, NameId, Projection, Row, RowPart};

/// The functions of the kernel in which an idle CPU waits. perf's list (`symbol__is_idle`,
/// tools/perf/util/symbol.c), and what x86 has beside it: the halt of guests
/// (arch/x86/kernel/paravirt.c), and of cpuidle's drivers and governors.
const WAITING: &[&str] = &[
    "acpi_processor_ffh_cstate_enter",
    "acpi_safe_halt",
    "amd_e400_idle",
    "arch_cpu_idle",
    "cpu_idle",
    "cpu_idle_poll",
    "cpu_startup_entry",
    "cpuidle_enter",
    "cpuidle_enter_state",
    "cpuidle_idle_call",
    "default_enter_idle",
    "default_idle",
    "default_idle_call",
    "do_idle",
    "enter_idle",
    "exit_idle",
    "idle_cpu",
    "mwait_idle",
    "mwait_idle_with_hints",
    "native_safe_halt",
    "poll_idle",
    "pv_native_safe_halt",
    "tdx_safe_halt",
    "xen_safe_halt",
];
/// Prefixes of more such functions: each driver has one for each kind of sleep.
const DRIVERS: &[&str] = &["acpi_idle_", "intel_idle"];

/// Counts the samples of idle CPUs in each event that counts time or cycles, and removes their rows
/// unless `include`. The events keep what was found: [`EventInfo::idle`].
pub fn leave_out(capture: &mut Capture, include: bool) {
    drop(take_out(capture, include));
}

/// Does what [`leave_out`] does, and returns the rows that it removes.
#[must_use]
pub fn take_out(capture: &mut Capture, include: bool) -> Vec<Row> {
    let counts: Vec<bool> = capture.meta.events.iter().map(counts_time).collect();
    let waits: Vec<bool> = capture.code.iter().map(|code| code.kernel && waits(capture, code)).collect();
    let is_idle = |capture: &Capture, row: &Row| {
        counts.get(usize::from(row.event)) == Some(&true)
            && row.pid == 0
            && match row.code {
                Some(id) => waits.get(id as usize) == Some(&true),
                None => name(capture, row.process).is_some_and(|name| name.starts_with("swapper")),
            }
    };
    let mut idle = vec![(0u64, 0u64); counts.len()];
    let mut all = vec![0u64; counts.len()];
    for row in &capture.rows {
        let event = usize::from(row.event);
        let Some((samples, period)) = idle.get_mut(event) else { continue };
        all[event] = all[event].saturating_add(row.measures.period_sum);
        if is_idle(capture, row) {
            *samples = samples.saturating_add(row.measures.count);
            *period = period.saturating_add(row.measures.period_sum);
        }
    }
    let mut taken = Vec::new();
    if !include {
        let mut rows = std::mem::take(&mut capture.rows);
        taken.extend(rows.extract_if(.., |row| is_idle(capture, row)));
        capture.rows = rows;
    }
    for ((info, (samples, period)), all) in capture.meta.events.iter_mut().zip(idle).zip(all) {
        info.idle = found(info, samples, period, all, include);
    }
    taken
}

/// Returns the parts of rows that tell which samples are of idle CPUs; none if no event of the
/// capture counts time or cycles.
pub fn reads(meta: &Meta) -> Projection {
    match meta.events.iter().any(counts_time) {
        true => Projection::of(&[RowPart::Process, RowPart::Function, RowPart::Inlined]),
        false => Projection::NOTHING,
    }
}

/// Returns whether an event counts time or cycles, which pass also where nothing is to be done.
fn counts_time(info: &EventInfo) -> bool {
    matches!(info.unit.as_str(), "ns" | "cycles")
}

fn found(info: &EventInfo, samples: u64, period: u64, all: u64, included: bool) -> Option<Idle> {
    let (idle_ns, count) = (info.ledger.idle_ns.filter(|ns| *ns > 0), info.ledger.event_count);
    if samples == 0 {
        return None;
    }
    let of_time = info.unit == "ns";
    let share = match idle_ns {
        Some(idle_ns) if of_time && count > 0 => (idle_ns as f64 / count as f64).min(1.0),
        _ => period as f64 / all.max(1) as f64,
    };
    Some(Idle { samples, share, of_time, included })
}

fn waits(capture: &Capture, code: &precise_model::CodeLocation) -> bool {
    let inlined = code.inlined_into.iter().map(|frame| capture.names.get(frame.function));
    name(capture, code.function).into_iter().chain(inlined).any(|function| {
        let function = function.split('.').next().unwrap_or(function);
        WAITING.contains(&function) || DRIVERS.iter().any(|driver| function.starts_with(driver))
    })
}

fn name(capture: &Capture, name: Name) -> Option<&str> {
    match name {
        Name::Known(id) if id != NameId::default() => Some(capture.names.get(id)),
        _ => None,
    }
}

/// Returns the number of samples of an event that are in no row because they are of idle CPUs.
pub(crate) fn left_out(info: &EventInfo) -> u64 {
    info.idle.filter(|idle| !idle.included).map_or(0, |idle| idle.samples)
}

/// Returns whether an event's timer lost nothing but samples of idle CPUs: then what the kernel
/// reports about the event (throttling) concerns idle CPUs only.
pub(crate) fn only_idle_is_missing(info: &EventInfo, coverage_remarkable: bool) -> bool {
    info.ledger.idle_ns.is_some_and(|ns| ns > 0)
        && !coverage_remarkable
        && info.ledger.counter(Counter::PeriodSeen) > 0
}

/// Returns the sentence about idle CPUs.
pub(crate) fn sentence(idle: &Idle) -> String {
    let (share, samples) = (percent(idle.share), thousands(idle.samples));
    let noun = if idle.samples == 1 { "sample" } else { "samples" };
    let tables = if idle.included { "include" } else { "leave out" };
    match idle.of_time {
        true => {
            format!("The CPUs were idle {share} of the time: the tables {tables} {samples} {noun} of that.")
        }
        false => format!("Idle CPUs took {share} of the cycles: the tables {tables} these {samples} {noun}."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::TextOptions;
    use crate::report::text::report_text;
    use crate::report::{ReportOptions, report};
    use crate::summary::summary;
    use crate::trust::trust;
    use precise_model::testing::CaptureBuilder;

    /// A machine of which `idle` of 1,000 ms were idle, and the timer took every second sample of
    /// that time, and all others but `lost`.
    fn clock(idle: u64, lost: u64) -> Capture {
        let mut made = CaptureBuilder::new();
        made.cell().samples(idle / 2).code(0xffff_8000_0000_1000, "[kernel]", "pv_native_safe_halt", "", 0);
        made.cell().samples(1000 - idle - lost).process(17, "app").code(0x1000, "/app", "parse", "", 0);
        let info = &mut made.meta().events[0];
        (info.name, info.unit, info.period) = ("cpu-clock".into(), "ns".into(), Some(1_000_000));
        info.marks_exact = false;
        let mut capture = made.build();
        capture.rows[0].kernel = true;
        capture.code[0].kernel = true;
        for row in &mut capture.rows {
            row.measures.period_sum = row.measures.count * 1_000_000;
        }
        let ledger = &mut capture.meta.events[0].ledger;
        ledger.event_count = 1_000_000_000;
        ledger.idle_ns = Some(idle * 1_000_000);
        ledger.expected = Some(1000);
        ledger.counters.set(Counter::PeriodSeen, (1000 - lost - idle / 2) * 1_000_000);
        ledger.counters.set(Counter::PeriodIdle, idle / 2 * 1_000_000);
        capture
    }

    #[test]
    fn idle_time_is_a_sentence_and_no_row() {
        let mut capture = clock(900, 0);
        leave_out(&mut capture, false);
        let report = report(&capture, &ReportOptions::default()).unwrap();
        let section = &report.events[0];
        assert_eq!((section.groups.list.len(), section.groups.total.count), (1, 100));
        assert_eq!(section.groups.list[0].share.value, 1.0);
        let text = report_text(&report, &TextOptions::default());
        assert!(text.contains("The CPUs were idle 90.0% of the time"), "{text}");
        let json = serde_json::to_value(&report).unwrap();
        let idle = &json["events"][0]["idle"];
        assert_eq!((&idle["samples"], &idle["share"]), (&450.into(), &0.9.into()), "{json}");
        assert!(!text.contains("aggregated and not discarded") && !text.contains("--"), "{text}");
    }

    #[test]
    fn idle_time_can_be_included() {
        let mut capture = clock(900, 0);
        leave_out(&mut capture, true);
        assert_eq!(capture.rows.len(), 2);
        let summary = summary(&capture, &ReportOptions::default()).unwrap();
        // The first table is of processes, the second of functions.
        let section = &summary.reports[1].events[0];
        assert_eq!(section.groups.list[0].values[0].text(), "pv_native_safe_halt");
        assert!(section.event.idle.is_some_and(|idle| idle.included && idle.samples == 450));
    }

    #[test]
    fn idle_time_is_no_loss_of_coverage_and_lost_work_is() {
        for (idle, lost, remarkable) in [(900, 0, false), (500, 0, false), (500, 100, true), (0, 60, true)] {
            let mut capture = clock(idle, lost);
            capture.meta.events[0].ledger.throttled = 7;
            leave_out(&mut capture, false);
            let event = &trust(&capture).events[0];
            assert_eq!(event.coverage_remarkable, remarkable, "{idle} {lost}: {:?}", event.coverage);
            let busy = event.findings.iter().any(|finding| finding.contains("under-represented"));
            assert_eq!(busy, remarkable, "{idle} {lost}: {:?}", event.findings);
        }
    }

    #[test]
    fn work_of_the_idle_task_and_other_events_stay() {
        let mut made = CaptureBuilder::new();
        made.cell().samples(100).code(0xffff_8000_0000_1000, "[kernel]", "handle_softirqs", "", 0);
        made.cell().samples(100).process(17, "app").code(0x2000, "/app", "default_idle", "", 0);
        made.cell().samples(100).event(1).code(0xffff_8000_0000_2000, "[kernel]", "default_idle", "", 0);
        let other = EventInfo { unit: "page faults".into(), ..made.meta().events[0].clone() };
        made.meta().events.push(other);
        let mut capture = made.build();
        capture.code.iter_mut().for_each(|code| code.kernel = true);
        let before = capture.clone();
        leave_out(&mut capture, false);
        assert_eq!(capture, before);
    }
}
