//! The verdict on precision: findings that only the run itself can make. The views derive
//! everything else from the ledger.

use crate::machine::{MachineInfo, Sysctls};
use crate::pmu::{EventRequest, Exactness};
use precise_common::ledger::Counter;
use precise_model::digits::thousands;
use precise_model::{EventInfo, Vendor};

/// Adds the findings that the run has shown. Steps down that were found before the run are already
/// in the verdict.
pub fn judge(info: &mut EventInfo, request: &EventRequest, machine: &MachineInfo, after: &Sysctls) {
    let in_flight = info.in_flight(machine.machine.cpus);
    let EventInfo { verdict, ledger, marks_exact, .. } = info;
    let (seen, exact) = (ledger.counter(Counter::Seen), ledger.counter(Counter::Exact));
    if *marks_exact && verdict.precise && seen > 0 && exact == 0 {
        verdict.precise = false;
        verdict
            .findings
            .push("the hardware marked no sample as exact, whatever level the kernel granted".into());
    }
    // Applies to cpu-clock if the idle time is not known: an idle CPU of a virtual machine takes
    // few timer interrupts, and while its tick is stopped the kernel throttles the event after the
    // number of samples that fit in one tick.
    let missing = ledger.event_count.saturating_sub(ledger.counter(Counter::PeriodSeen)) as f64;
    if request.pmu == "software"
        && request.unit == "ns"
        && ledger.idle_ns.is_none()
        && missing > 0.01 * ledger.event_count as f64 + in_flight
    {
        verdict
            .findings
            .push("idle CPUs delay or throttle a timer event, so samples of idle time are missing".into());
    }
    let (counted, aggregated) = (ledger.event_count, ledger.counter(Counter::Aggregated));
    if seen == 0 && verdict.granted > 0 && ledger.expected.is_some_and(|expected| expected > 0) {
        verdict.findings.push(format!(
            "the event counted {} {}, but the hardware wrote no record: this core cannot sample it precisely",
            thousands(counted),
            request.unit
        ));
    }
    let bare = aggregated > 0 && ledger.counter(Counter::NoAddress) == aggregated;
    if machine.cpu.hypervisor && request.fields.address && verdict.granted > 0 && bare {
        verdict.findings.push(
            "no sample has an address: the host may give guests only the basic record, as Linux does \
             since 6.9"
                .into(),
        );
    }
    verdict.findings.extend(changed(&machine.sysctls, after));
}

/// Returns what is known, before the first sample, of an event that was granted `level`.
pub fn before(request: &EventRequest, level: u8, machine: &MachineInfo) -> Vec<String> {
    let mut findings = Vec::new();
    if machine.cpu.hypervisor && request.pmu != "software" {
        findings.push("this machine is virtual; what it has of the PMU depends on the hypervisor".to_owned());
    }
    let (all, granted) = (request.fields, request.fields_at(level));
    let missing = [
        (all.address && !granted.address, "data addresses"),
        (all.latency && !granted.latency, "latencies"),
        (all.data_source && !granted.data_source, "memory levels"),
    ];
    let missing: Vec<&str> = missing.into_iter().filter(|(lacks, _)| *lacks).map(|(_, what)| what).collect();
    if !missing.is_empty() {
        findings.push(format!("{} has no {} at level {level}", request.name, missing.join(" and no ")));
    }
    findings
}

/// Returns a note on the cost that every PEBS event of a run pays for its samples. It is not a
/// finding, because samples are neither lost nor imprecise.
pub fn pebs_note(request: &EventRequest, level: u8, machine: &MachineInfo) -> Option<String> {
    let pebs = machine.cpu.vendor == Vendor::Intel
        && level > 0
        && matches!(request.exactness, Exactness::PreciseIp { .. });
    // With large PEBS the kernel reads many records at once, and shows only the last of them to
    // eBPF programs.
    pebs.then(|| {
        "every PEBS record costs an interrupt: large PEBS is off, because programs would see only a \
         fraction of its records"
            .to_owned()
    })
}

/// Returns a note on samples that no perf event takes. It is not a finding, because samples are
/// neither lost nor imprecise.
pub fn tracepoints_note(at_tracepoints: bool) -> Option<String> {
    at_tracepoints.then(|| {
        "each page fault ran the program at a tracepoint, which costs less than a sample of an event; no \
         event counted them beside it"
            .to_owned()
    })
}

/// Returns one sentence for each sysctl that changed during the run.
fn changed(before: &Sysctls, after: &Sysctls) -> Vec<String> {
    let of = |sysctls: &Sysctls| {
        [
            ("perf_event_max_sample_rate", sysctls.perf_event_max_sample_rate),
            ("perf_cpu_time_max_percent", sysctls.perf_cpu_time_max_percent),
            ("perf_event_paranoid", sysctls.perf_event_paranoid),
            ("perf_event_mlock_kb", sysctls.perf_event_mlock_kb),
            ("nmi_watchdog", sysctls.nmi_watchdog),
            ("kptr_restrict", sysctls.kptr_restrict),
        ]
    };
    let number = |value: Option<i64>| value.map_or_else(|| "unreadable".into(), |value| value.to_string());
    of(before)
        .into_iter()
        .zip(of(after))
        .filter(|((_, before), (_, after))| before != after)
        .map(|((name, before), (_, after))| {
            format!("kernel.{name} changed during the run, from {} to {}", number(before), number(after))
        })
        .collect()
}

#[cfg(test)]
#[path = "verdict_tests.rs"]
mod tests;
