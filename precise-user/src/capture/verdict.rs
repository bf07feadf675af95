//! The verdict: were the samples precise, and what was missing? Judged from the ledger after a run.

use super::model::{Ledger, Verdict};
use crate::{
    machine::{MachineInfo, Sysctls},
    pmu::{EventRequest, Exactness},
};

/// Coverage below this is a finding. Above it, the rest are the periods that had not ended when the run did.
const COVERED: f64 = 0.99;

/// Adds what the run itself has shown. A step down found before it is in the verdict already.
pub fn judge(verdict: &mut Verdict, request: &EventRequest, ledger: &Ledger, machine: &MachineInfo, after: &Sysctls) {
    let mut say = |sentence: String| verdict.findings.push(sentence);
    let seen = ledger.counter("seen");
    let aggregated = ledger.counter("aggregated");

    let hardware = matches!(request.exactness, Exactness::PreciseIp { .. } | Exactness::Ibs);
    let inexact = seen.saturating_sub(ledger.counter("exact"));
    if hardware && verdict.precise && seen > 0 && inexact > 0 {
        say(format!("{} of the samples were not marked as exact by the hardware", percent(inexact, seen)));
        verdict.precise = inexact < seen;
    }
    let mut say = |sentence: String| verdict.findings.push(sentence);
    for (counter, what) in
        [("no_address", "data address"), ("no_data_source", "memory level"), ("no_latency", "latency")]
    {
        let without = ledger.counter(counter);
        if without > 0 {
            say(format!("{} of the samples have no {what}", percent(without, aggregated)));
        }
    }
    if let Some(coverage) = ledger.coverage().filter(|coverage| *coverage < COVERED) {
        let mut sentence = format!("samples stand for {:.1} % of the events that were counted", coverage * 100.0);
        if request.type_ == 1 && request.unit == "ns" {
            sentence.push_str(
                "; on an idle CPU a timer event is held back or throttled by the kernel, which costs only idle samples",
            );
        }
        say(sentence);
    }
    if ledger.throttled > 0 {
        say(format!("the kernel throttled the event {} times because it came too often", ledger.throttled));
    }
    if ledger.lost > 0 {
        say(format!("the kernel or the hardware lost {} samples", ledger.lost));
    }
    if ledger.counter("table_full") > 0 {
        say(format!(
            "{} of the samples found the table full: raise --table-cells, group by less, or filter more",
            percent(ledger.counter("table_full"), seen)
        ));
    }
    if ledger.running_ns < ledger.enabled_ns {
        say(format!(
            "the event was multiplexed: it counted for {} of the time",
            percent(ledger.running_ns, ledger.enabled_ns)
        ));
    }
    if ledger.unaccounted() != 0 {
        say(format!("{} samples are in no counter: this is a bug, please report it", ledger.unaccounted()));
    }
    let (before, after) = (machine.sysctls.perf_event_max_sample_rate, after.perf_event_max_sample_rate);
    if before != after {
        say(format!(
            "kernel.perf_event_max_sample_rate changed during the run, from {} to {}",
            number(before),
            number(after)
        ));
    }
}

fn percent(part: u64, whole: u64) -> String {
    if whole == 0 {
        return "none".into();
    }
    format!("{:.1} %", 100.0 * part as f64 / whole as f64)
}

fn number(value: Option<i64>) -> String {
    value.map_or_else(|| "unreadable".into(), |value| value.to_string())
}
