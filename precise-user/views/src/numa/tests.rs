//! Tests of `precise numa` on synthetic captures.

use super::csv::numa_csv;
use super::text::numa_text;
use super::{ServingPlace, numa};
use crate::ViewError;
use crate::mem::tests::two_nodes;
use crate::render::TextOptions;
use crate::testing::shown;
use precise_model::{Dimension, Node};

#[test]
fn nodes_are_rows_and_memory_is_a_column() {
    let view = numa(&two_nodes(), None).unwrap();
    let event = &view.events[0];
    let cells =
        |row: usize| -> Vec<_> { event.from[row].to.iter().map(|to| (to.place, to.samples)).collect() };
    assert_eq!(event.from.iter().map(|row| row.node).collect::<Vec<_>>(), [Some(0), Some(1)]);
    // Stores that hit L1 count as accesses.
    assert_eq!(cells(0), [(ServingPlace::Memory(0), 50), (ServingPlace::Cache, 900)]);
    assert_eq!(
        cells(1),
        [(ServingPlace::Memory(0), 150), (ServingPlace::Memory(1), 50), (ServingPlace::Cache, 20)]
    );
    assert_eq!((event.memory, event.remote, event.without), (250, 150, 30));
    assert_eq!(event.remote_share.unwrap().value, 0.6);
}

#[test]
fn what_a_sample_does_not_say_of_nodes_is_not_known() {
    let mut capture = two_nodes();
    capture.meta.machine.nodes.push(Node { id: 2, cpus: vec![] });
    let view = numa(&capture, None).unwrap();
    assert_eq!(view.events[0].from[1].to[1].place, ServingPlace::OtherMemory);
    assert!(view.events[0].notes[0].contains("which node's memory was remote"), "{:?}", view.events[0].notes);
    capture.meta.machine.nodes.clear();
    let view = numa(&capture, None).unwrap();
    let places: Vec<_> = view.events[0].from[0].to.iter().map(|to| (to.place, to.samples)).collect();
    assert_eq!(
        places,
        [(ServingPlace::OwnMemory, 100), (ServingPlace::OtherMemory, 150), (ServingPlace::Cache, 920)]
    );
    assert!(view.events[0].notes[0].contains("which CPU belongs to which node"));
    capture.meta.dimensions.retain(|d| *d != Dimension::Cpu);
    assert!(matches!(numa(&capture, None), Err(ViewError::NotRecorded { .. })));
}

#[test]
fn nodes_at_80_columns() {
    let text = numa_text(&numa(&two_nodes(), None).unwrap(), &TextOptions::default());
    shown("numa.md", "nodes", &text);
    let csv = numa_csv(&numa(&two_nodes(), None).unwrap(), ",");
    assert!(csv.contains("\nmem,1,memory 0,150,0.681818,0.617601,0.739794,600.000\n"), "{csv}");
}
