//! Tests of latencies on synthetic captures.

use super::csv::latency_csv;
use super::text::latency_text;
use super::{LatencyOptions, latency};
use crate::mem::tests::two_nodes;
use crate::render::TextOptions;
use crate::testing::{csv_has_a_field_for_each_name, shown};
use precise_model::Dimension;

#[test]
fn latencies_per_level_with_intervals_and_their_mode() {
    let view = latency(&two_nodes(), &LatencyOptions::default()).unwrap();
    let event = &view.events[0];
    assert_eq!((event.timed, event.untimed, event.too_few), (970, 230, None));
    let all = event.all.as_ref().unwrap();
    assert_eq!(all.buckets.iter().map(|b| b.samples).collect::<Vec<_>>(), [620, 100, 50, 150, 50]);
    let p50 = all.group.p50.unwrap();
    assert_eq!((p50.cycles, p50.interval), (6.0, [6, 6]));
    // 5 % of 970 samples are slower than the remote memory, with an uncertainty of 14 samples.
    let p90 = all.group.p90.unwrap();
    assert!((p90.low..=p90.high).contains(&600), "{p90:?}");
    let mode = all.mode.as_ref().unwrap();
    assert_eq!((mode.bucket.low, mode.bucket.samples), (6, 620));
    let (level, share) = mode.served.clone().unwrap();
    assert_eq!((level.as_str(), share.value), ("L1 hit", 1.0));
    let names: Vec<_> = event.groups.iter().map(|g| g.group.values[0].text()).collect();
    assert_eq!(names, ["L1 hit", "Remote RAM hit", "L3 hit", "RAM hit"]);
    let ram = &event.groups[3];
    assert_eq!(ram.buckets.iter().map(|b| b.samples).collect::<Vec<_>>(), [50, 50]);
    assert_eq!(ram.group.p99, None, "a hundred samples have no 99th percentile");
}

#[test]
fn a_mode_without_levels_is_a_rule_of_thumb() {
    let mut capture = two_nodes();
    capture.meta.dimensions.retain(|d| *d != Dimension::Source);
    let view = latency(&capture, &LatencyOptions::default()).unwrap();
    let mode = view.events[0].all.as_ref().unwrap().mode.clone().unwrap();
    assert_eq!((mode.served, mode.usually), (None, "the L1 cache"));
    assert!(view.by.is_empty() && view.events[0].groups.is_empty());
}

#[test]
fn latencies_at_80_columns() {
    let text =
        latency_text(&latency(&two_nodes(), &LatencyOptions::default()).unwrap(), &TextOptions::default());
    shown("latency.md", "latency", &text);
}

#[test]
fn csv_is_complete() {
    let view = latency(&two_nodes(), &LatencyOptions::default()).unwrap();
    csv_has_a_field_for_each_name(&latency_csv(&view, ","), ',');
}
