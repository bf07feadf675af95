//! The verdict: what only the run itself can say of its precision. What follows from the ledger, the views derive.

use super::model::{Ledger, Verdict};
use crate::{
    machine::{MachineInfo, Sysctls},
    pmu::EventRequest,
};

/// Adds what the run has shown. A step down found before it is in the verdict already.
pub fn judge(
    verdict: &mut Verdict,
    request: &EventRequest,
    marks_exact: bool,
    ledger: &Ledger,
    machine: &MachineInfo,
    after: &Sysctls,
) {
    let (seen, exact) = (ledger.counter("seen"), ledger.counter("exact"));
    if marks_exact && verdict.precise && seen > 0 && exact == 0 {
        verdict.precise = false;
        verdict
            .findings
            .push("the hardware marked not one sample as exact, whatever the kernel granted".into());
    }
    // cpu-clock: an idle CPU of a virtual machine takes few timer interrupts, and with its tick stopped the kernel
    // throttles the event after as many samples as fit one tick.
    if request.pmu == "software"
        && request.unit == "ns"
        && ledger.coverage().is_some_and(|covered| covered < 0.99)
    {
        verdict
            .findings
            .push("on idle CPUs a timer event is held back or throttled: idle samples are missing".into());
    }
    let (before, after) = (machine.sysctls.perf_event_max_sample_rate, after.perf_event_max_sample_rate);
    if before != after {
        let number =
            |value: Option<i64>| value.map_or_else(|| "unreadable".into(), |value| value.to_string());
        verdict.findings.push(format!(
            "kernel.perf_event_max_sample_rate changed during the run, from {} to {}",
            number(before),
            number(after)
        ));
    }
}
