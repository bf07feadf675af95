//! Tests of folded stacks. The tests of their frames are next to those of the call graph.

use super::{FlameOptions, flame};
use crate::view::trial::{even, governed};

#[test]
fn a_flame_graph_is_as_wide_as_what_its_samples_stand_for() {
    let even = even(crate::call_graph::tests::capture());
    let [a, b] = [&even, &governed(&even)].map(|c| flame(c, &FlameOptions::default()).unwrap());
    for (a, b) in a.stacks.iter().zip(&b.stacks) {
        assert_eq!((&a.frames, a.weight * 1000), (&b.frames, b.weight));
    }
    assert_eq!((b.total, a.stacks.len()), (100_000, b.stacks.len()));
}
