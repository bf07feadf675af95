//! Whatever the governor did while a run went on, every view says the same of the same load.

use serde_json::Value;

use super::annotate::{AnnotateOptions, annotate};
use super::branches::{BranchOptions, branches};
use super::c2c::tests as c2c_tests;
use super::c2c::{C2cOptions, c2c};
use super::call_graph::{CallGraphOptions, call_graph};
use super::code::Code;
use super::derived::derived;
use super::explain::{ExplainOptions, explain};
use super::fetch::{FetchOptions, fetch};
use super::flame::{FlameOptions, flame};
use super::front_tests;
use super::heatmap::{EVENED, HeatmapOptions, heatmap};
use super::latency::{LatencyOptions, latency};
use super::mem::{MemOptions, mem};
use super::numa::numa;
use super::report::{ReportOptions, report};
use super::skid::{SkidOptions, skid};
use super::tlb::{TlbOptions, tlb};
use crate::call_graph::tests as call_graph_tests;
use crate::mem::tests as mem_tests;
use crate::skid::tests as skid_tests;
use precise_code::{FunctionId, Instruction};
use precise_model::keys::Key;
use precise_model::{Capture, RateChange, Reason};

/// How many times as often the governor sampled, one row after the other.
const TIMES: [u64; 3] = [1, 10, 3];

/// The same load as a governor would have sampled it that was not even.
fn governed(even: &Capture) -> Capture {
    let mut capture = even.clone();
    for (row, times) in capture.rows.iter_mut().zip(TIMES.into_iter().cycle()) {
        row.measures.count *= times;
        row.measures.latency_sum *= times;
    }
    let at = |times: u64| RateChange { period: Some(1000 / times), ..RateChange::default() };
    for event in &mut capture.meta.events {
        (event.period, event.rates) = (None, TIMES.map(at).to_vec());
    }
    capture
}

fn even(mut capture: Capture) -> Capture {
    for row in &mut capture.rows {
        row.measures.period_sum = row.measures.count * 1000;
    }
    capture
}

/// What does not depend on how often the load was sampled: parts, means, percentiles, and the order of all lists.
const SAME: [&str; 14] = [
    "share",
    "latency_share",
    "period_share",
    "rate",
    "taken",
    "average",
    "walked_average",
    "other_average",
    "hitm_average",
    "remote_share",
    "remote_of_accesses",
    "precise_share",
    "level",
    "served",
];

/// Compares two results; how many numbers were the same.
fn same(a: &Value, b: &Value, path: &str) -> usize {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            let keys = a.iter().filter_map(|(key, value)| Some((key, value, b.get(key)?)));
            keys.map(|(key, a, b)| {
                let path = format!("{path}.{key}");
                match (a, b) {
                    (Value::Number(a), Value::Number(b))
                        if SAME.contains(&key.as_str()) || key == "value" =>
                    {
                        // A count of samples is called a value, too: of a derived event.
                        if a.is_u64() && b.is_u64() {
                            return 0;
                        }
                        let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
                        assert!((a - b).abs() <= 1e-9 * a.abs().max(1.0), "{path}: {a} and {b}");
                        1
                    }
                    (Value::String(a), Value::String(b)) if SAME.contains(&key.as_str()) || key == "Text" => {
                        assert_eq!(a, b, "{path}");
                        1
                    }
                    _ => same(a, b, &path),
                }
            })
            .sum()
        }
        (Value::Array(a), Value::Array(b)) => {
            a.iter().zip(b).enumerate().map(|(i, (a, b))| same(a, b, &format!("{path}[{i}]"))).sum()
        }
        _ => 0,
    }
}

struct NoCode;

impl Code for NoCode {
    fn instructions(&mut self, _: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        Err(Reason::FileMissing)
    }

    fn source(&mut self, _: &str, _: u32) -> Option<String> {
        None
    }
}

/// A view of a load that was sampled evenly, and of the same load as a governor might have sampled it.
fn both<T>(capture: Capture, view: impl Fn(&Capture) -> T) -> (T, T) {
    let even = even(capture);
    (view(&even), view(&governed(&even)))
}

fn check(name: &str, capture: Capture, least: usize, view: impl Fn(&Capture) -> Value) {
    let (a, b) = both(capture, view);
    let found = same(&a, &b, name);
    assert!(found >= least, "{name}: only {found} numbers");
}

fn json<T: serde::Serialize, E: std::fmt::Debug>(view: Result<T, E>) -> Value {
    serde_json::to_value(view.unwrap()).unwrap()
}

#[test]
fn every_view_weighs_samples_by_what_they_stand_for() {
    let functions = || Some(vec![Key::Function]);
    check("report", mem_tests::two_nodes(), 10, |c| {
        json(report(c, &ReportOptions { by: functions().unwrap(), ..Default::default() }))
    });
    check("mem", mem_tests::two_nodes(), 10, |c| json(mem(c, &MemOptions::default())));
    check("latency", mem_tests::two_nodes(), 10, |c| {
        json(latency(c, &LatencyOptions { by: functions(), ..Default::default() }))
    });
    check("tlb", mem_tests::page_sizes(), 10, |c| json(tlb(c, &TlbOptions::default())));
    check("numa", mem_tests::two_nodes(), 10, |c| json(numa(c, None)));
    check("fetch", front_tests::starved(), 10, |c| json(fetch(c, &FetchOptions::default())));
    check("retired", front_tests::retired(), 5, |c| json(fetch(c, &FetchOptions::default())));
    check("derived", front_tests::starved(), 10, |c| json(derived(c, None)));
    check("branches", front_tests::mispredicted(), 10, |c| {
        json(branches(c, &BranchOptions::default(), &mut front_tests::Loop(Ok(()))))
    });
    check("c2c", c2c_tests::shared_lines(), 4, |c| json(c2c(c, &C2cOptions::default(), &mut NoCode)));
    check("annotate", mem_tests::two_nodes(), 10, |c| {
        json(annotate(c, &AnnotateOptions::default(), &mut NoCode))
    });
    check("call graph", call_graph_tests::capture(), 10, |c| {
        json(call_graph(c, &CallGraphOptions::default()))
    });
    check("skid", skid_tests::three_late(), 4, |c| json(skid(c, &SkidOptions::default(), &mut NoCode)));
    check("explain", mem_tests::two_nodes(), 2, |c| {
        json::<_, ()>(Ok(explain(c, &ExplainOptions::default(), &mut NoCode)))
    });
}

#[test]
fn a_flame_graph_is_as_wide_as_what_its_samples_stand_for() {
    let (a, b) = both(call_graph_tests::capture(), |c| flame(c, &FlameOptions::default()).unwrap());
    for (a, b) in a.stacks.iter().zip(&b.stacks) {
        assert_eq!((&a.frames, a.weight * 1000), (&b.frames, b.weight));
    }
    assert_eq!((b.total, a.stacks.len()), (100_000, b.stacks.len()));
}

/// The shortest period is a tenth of the even one.
#[test]
fn a_heatmap_has_no_dip_where_the_period_grew() {
    let (a, b) = both(mem_tests::two_nodes(), |c| heatmap(c, &HeatmapOptions::default()).unwrap());
    for (a, b) in a.panels.iter().zip(&b.panels) {
        assert_eq!(a.cells.iter().map(|samples| 10 * samples).collect::<Vec<_>>(), b.cells);
        assert!(b.weight == 10 * a.samples && b.samples < b.weight, "{} {}", b.samples, b.weight);
    }
    assert_eq!((a.header.evened, b.header.evened), (false, true));
    assert!(b.header.notes.iter().any(|note| note == EVENED));
}
