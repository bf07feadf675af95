//! Tests of `precise threads` on a machine of two nodes with two CPUs each.

use precise_model::testing::CaptureBuilder;
use precise_model::{Capture, Dimension, Node};

use super::csv::threads_csv;
use super::text::threads_text;
use super::{On, ThreadsOptions, threads};
use crate::ViewError;
use crate::render::TextOptions;
use crate::stats::Share;
use crate::testing::{csv_has_a_field_for_each_name, has};

/// Thread 11 moves between nodes, thread 12 stays on one CPU, and thread 13 has few samples.
pub(crate) fn moving() -> Capture {
    let mut builder = CaptureBuilder::new();
    builder.meta().machine.nodes = vec![Node { id: 0, cpus: vec![0, 1] }, Node { id: 1, cpus: vec![2, 3] }];
    for (tid, cpu, samples) in [(11, 0, 300), (11, 1, 100), (11, 2, 200), (12, 3, 390), (13, 0, 10)] {
        // A thread that changes its name is shown with its last one.
        let name = if cpu == 0 { "app" } else { "pool" };
        let _ = builder.cell().samples(samples).cpu(cpu).process(10, "app").thread(tid, name);
    }
    builder.build()
}

#[test]
fn a_thread_has_its_cpus_and_nodes() {
    let view = threads(&moving(), &ThreadsOptions::default()).unwrap();
    let [eleven, twelve, thirteen] = &view.events[0].threads[..] else { panic!("{:?}", view.events) };
    assert_eq!((eleven.tid, eleven.samples, eleven.share), (11, 600, Share::wilson(600, 1000)));
    let on = |id, samples| On { id, samples };
    assert_eq!(eleven.cpus, [on(0, 300), on(2, 200), on(1, 100)]);
    assert_eq!(eleven.nodes, [on(0, 400), on(1, 200)]);
    assert_eq!(eleven.on_main_cpu, Some(Share::wilson(300, 600)));
    assert_eq!(eleven.off_main_node, Some(Share::wilson(200, 600)));
    assert_eq!((twelve.tid, twelve.on_main_cpu), (12, Some(Share::wilson(390, 390))));
    assert_eq!(twelve.off_main_node, Some(Share::wilson(0, 390)));
    assert_eq!((thirteen.samples, thirteen.on_main_cpu, thirteen.off_main_node), (10, None, None));
}

#[test]
fn without_nodes_there_are_cpus() {
    let mut capture = moving();
    capture.meta.machine.nodes.clear();
    let view = threads(&capture, &ThreadsOptions { limit: 1, ..ThreadsOptions::default() }).unwrap();
    let event = &view.events[0];
    assert_eq!((event.threads.len(), event.left_out), (1, (2, 400)));
    assert!(event.threads[0].nodes.is_empty() && event.threads[0].off_main_node.is_none());
    assert_eq!(event.notes, ["The capture does not say which CPU belongs to which node."]);
    assert!(!threads_text(&view, &TextOptions::default()).contains("Off node"));
}

#[test]
fn what_is_missing_names_the_command() {
    let mut capture = moving();
    capture.meta.dimensions = vec![Dimension::Ip, Dimension::Cpu];
    let error = threads(&capture, &ThreadsOptions::default()).unwrap_err();
    assert!(matches!(error, ViewError::NotRecorded { .. }), "{error}");
    assert!(error.to_string().contains("`precise threads` needs the dimension thread"), "{error}");
    assert!(error.to_string().contains("`precise record -e cycles --by ip,thread,cpu`"), "{error}");
}

#[test]
fn too_few_samples_make_no_table() {
    let options = ThreadsOptions { min_samples: 2000, ..ThreadsOptions::default() };
    let view = threads(&moving(), &options).unwrap();
    assert_eq!((view.events[0].too_few, view.events[0].threads.len()), (Some(2000), 0));
}

#[test]
fn threads_at_80_columns() {
    let view = threads(&moving(), &ThreadsOptions::default()).unwrap();
    has(
        &threads_text(&view, &TextOptions::default()),
        "
     Share  Samples  CPUs         Most used    Off node  Nodes  TID  Thread
60.0% ±3.1      600     3   50.0% ±4.0 on 0  33.3% ±3.9  0-1     11  pool (app)
39.0% ±3.1      390     1  100.0% ±1.0 on 3   0.0% ±1.0  1       12  pool (app)
 1.0% ±0.8       10     1                 -           -  0       13  app
",
    );
    csv_has_a_field_for_each_name(&threads_csv(&view, "|"), '|');
}
