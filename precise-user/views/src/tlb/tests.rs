//! Tests of `precise tlb` on synthetic captures.

use super::csv::tlb_csv;
use super::text::tlb_text;
use super::{TlbOptions, tlb};
use crate::mem::tests::{page_sizes, two_nodes};
use crate::render::TextOptions;
use crate::testing::{csv_has_a_field_for_each_name, shown};

#[test]
fn walks_are_counted_per_function_with_what_they_cost() {
    let view = tlb(&two_nodes(), &TlbOptions::default()).unwrap();
    let event = &view.events[0];
    assert_eq!((event.all.accesses, event.all.walked), (970, 50));
    assert_eq!((event.all.walked_average, event.without), (Some(900.0), 230));
    assert_eq!(event.walks.len(), 1);
    let chase = &event.walks[0];
    assert_eq!((chase.values[0].text(), chase.accesses, chase.walked), ("chase".into(), 220, 50));
    assert_eq!(chase.other_average, Some((150.0 * 600.0 + 20.0 * 6.0) / 170.0));
    assert!(chase.rate.low < 50.0 / 220.0 && 50.0 / 220.0 < chase.rate.high && chase.share.value == 1.0);
}

#[test]
fn walks_are_counted_by_the_size_of_the_page_that_needed_none_as_well() {
    let view = tlb(&page_sizes(), &TlbOptions::default()).unwrap();
    let sizes: Vec<_> = view.events[0]
        .sizes
        .iter()
        .map(|s| (s.values[0].text(), s.accesses, s.walked, s.walked_average))
        .collect();
    let expected = [
        ("4 KiB", 590, 90, Some(700.0)),
        ("2 MiB", 10, 10, Some(900.0)),
        ("1 GiB", 300, 0, None),
        ("N/A", 20, 0, None),
    ];
    assert_eq!(
        sizes,
        expected.map(|(size, accesses, walked, average)| (size.to_owned(), accesses, walked, average))
    );
    assert!(tlb(&two_nodes(), &TlbOptions::default()).unwrap().events[0].sizes.is_empty());
}

#[test]
fn walks_at_80_columns() {
    let text = tlb_text(&tlb(&two_nodes(), &TlbOptions::default()).unwrap(), &TextOptions::default());
    shown("tlb.md", "walks", &text);
}

#[test]
fn sizes_of_pages_at_80_columns() {
    let text = tlb_text(&tlb(&page_sizes(), &TlbOptions::default()).unwrap(), &TextOptions::default());
    shown("tlb.md", "page sizes", &text);
}

#[test]
fn csv_is_complete() {
    csv_has_a_field_for_each_name(&tlb_csv(&tlb(&two_nodes(), &TlbOptions::default()).unwrap(), ","), ',');
}
