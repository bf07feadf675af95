//! Tests with known outcomes and known counts.

use super::csv::derived_csv;
use super::text::derived_text;
use super::*;
use crate::branches::tests::mispredicted;
use crate::fetch::tests::starved;
use crate::render::TextOptions;
use crate::testing::{csv_has_a_field_for_each_name, has, shown};
use precise_model::TaggedOf;
use precise_model::testing::CaptureBuilder;

/// Builds a capture with one IBS event.
fn event(tagged: TaggedOf, family: u32, model: u32) -> CaptureBuilder {
    let mut builder = CaptureBuilder::new();
    let meta = builder.meta();
    meta.machine.cpu_id = Some(CpuId { vendor: Vendor::Amd, family, model, ..CpuId::default() });
    meta.events[0].tagged = Some(tagged);
    builder
}

fn add(builder: &mut CaptureBuilder, outcome: Outcome, samples: u64, latency: u32) {
    let mut cell = builder.cell().samples(samples);
    cell.row().outcome = Some(outcome);
    cell.row().measures.latency_sum = samples * u64::from(latency);
}

fn value(view: &DerivedView, short: &str) -> Option<u64> {
    let mut all = view.events.iter().flat_map(|event| &event.derived);
    all.find(|derived| derived.abbreviation == short).unwrap_or_else(|| panic!("no {short}")).value
}

#[test]
fn the_list_is_whole_and_in_order() {
    assert_eq!(TABLE.len(), 13 + 10 + 24 + 13);
    assert!(TABLE.windows(2).all(|pair| pair[0].select < pair[1].select));
    for entry in TABLE {
        assert!(entry.name.starts_with("IBS ") && entry.short.starts_with("IBS "), "{}", entry.name);
        assert!(entry.of.is_none_or(|of| TABLE.iter().any(|other| other.select == of)), "{}", entry.name);
        // The text of the table must fit into 80 columns.
        assert!(entry.short.len() <= 21 && entry.meaning.len() <= 31, "{}", entry.name);
    }
}

#[test]
fn the_page_names_every_event() {
    let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/derived.md");
    let page = std::fs::read_to_string(page).unwrap();
    for entry in TABLE {
        let row = format!("| 0x{:X} | {} | {} | {}", entry.select, entry.name, entry.short, entry.meaning);
        assert!(page.contains(&row), "docs/derived.md has no row that begins with `{row}`");
    }
}

#[test]
fn fetches_by_what_became_of_them() {
    let mut builder = event(TaggedOf::Fetch, 0x19, 0x11);
    let fetch = |bits| Outcome::Fetch(bits);
    add(&mut builder, fetch(0), 50, 3);
    add(&mut builder, fetch(Bits::COMPLETED | Bits::PHYSICAL_VALID), 300, 10);
    add(&mut builder, fetch(Bits::COMPLETED | Bits::PHYSICAL_VALID | Bits::IC_MISS | 1 << 4), 70, 40);
    add(&mut builder, fetch(Bits::ITLB_L1_MISS | Bits::ITLB_L2_MISS), 30, 90);
    let view = derived(&builder.build(), None).unwrap();
    for (short, wanted) in [
        ("IBS fetch", 450),
        ("IBS fetch killed", 50),
        ("IBS fetch attempt", 400),
        ("IBS fetch comp", 370),
        ("IBS fetch abort", 30),
        ("IBS L1 ITLB hit", 370),
        ("IBS ITLB L1M L2H", 0),
        ("IBS ITLB L1M L2M", 30),
        ("IBS IC miss", 70),
        ("IBS IC hit", 300),
        ("IBS 4K page", 300),
        ("IBS 2M page", 70),
        ("IBS fetch lat", 300 * 10 + 70 * 40 + 30 * 90),
    ] {
        assert_eq!(value(&view, short), Some(wanted), "{short}");
    }
    let latency = view.events[0].derived.last().unwrap();
    assert_eq!((latency.average, latency.of), (Some(8500.0 / 400.0), Some("IBS fetch attempt")));
    assert_eq!(view.absent.len(), 47);
    let missed = &view.events[0].derived[8];
    assert_eq!(missed.share, Some(Share::wilson(70, 400)));
}

#[test]
fn ops_by_what_their_registers_say() {
    let mut builder = event(TaggedOf::Op, 0x19, 0x11);
    let valid = Bits::ADDRESS_VALID;
    let missed = Bits::LOAD | valid | Bits::L1_MISS | Bits::L2_MISS;
    let op = |bits| Outcome::Op(bits);
    add(&mut builder, op(0), 100, 0);
    add(&mut builder, op(Bits::BRANCH | Bits::TAKEN | Bits::MISPREDICTED), 40, 0);
    add(&mut builder, op(Bits::BRANCH | Bits::RETURN | Bits::TAKEN | Bits::LOAD | valid), 60, 0);
    add(&mut builder, op(missed | Bits::SOURCE_SAME_CCX | Bits::OWNED), 11, 50);
    add(&mut builder, op(missed | Bits::SOURCE_OTHER_CCX), 13, 90);
    add(&mut builder, op(missed | Bits::SOURCE_OTHER_NODE), 17, 300);
    add(&mut builder, op(missed | 3 << 33 | Bits::REMOTE_NODE | Bits::DTLB_L1_MISS), 19, 400);
    add(&mut builder, op(Bits::STORE | valid | Bits::L1_MISS | Bits::LOCKED | Bits::DTLB_L1_2M), 23, 0);
    let view = derived(&builder.build(), None).unwrap();
    for (short, wanted) in [
        ("IBS all ops", 283),
        ("IBS BR", 100),
        ("IBS misp BR", 40),
        ("IBS misp taken BR", 40),
        ("IBS RET", 60),
        ("IBS misp RET", 0),
        ("IBS load/store", 143),
        ("IBS load", 120),
        ("IBS store", 23),
        ("IBS DTLB L1M L2H", 19),
        ("IBS L2 DTLB 4K", 19),
        ("IBS L1 DTLB 2M", 23),
        ("IBS DC miss", 83),
        ("IBS locked op", 23),
        ("IBS DC miss lat", 11 * 50 + 13 * 90 + 17 * 300 + 19 * 400),
        ("IBS NB local", 24),
        ("IBS NB remote", 36),
        ("IBS NB local L3", 11),
        ("IBS NB local cache", 13),
        ("IBS NB remote cache", 17),
        ("IBS NB remote DRAM", 19),
        ("IBS NB cache Modified", 30),
        ("IBS NB cache Owned", 11),
        ("IBS NB remote lat", 17 * 300 + 19 * 400),
    ] {
        assert_eq!(value(&view, short), Some(wanted), "{short}");
    }
    for short in ["IBS tag-to-ret", "IBS resync", "IBS bank conf load", "IBS forwarded"] {
        assert_eq!(value(&view, short), None, "{short}");
    }
}

#[test]
fn what_a_generation_does_not_say_is_not_known() {
    let local = Bits::LOAD | Bits::L1_MISS | Bits::L2_MISS | 2 << 33;
    let of = |family, model| {
        let mut builder = event(TaggedOf::Op, family, model);
        add(&mut builder, Outcome::Op(local), 200, 0);
        derived(&builder.build(), None).unwrap()
    };
    let zen2 = of(0x17, 0x31);
    let values =
        ["IBS NB local L3", "IBS NB local cache", "IBS NB cache Modified"].map(|short| value(&zen2, short));
    assert_eq!(values, [None, Some(200), Some(200)]);
    let zen3 = of(0x19, 0x01);
    let values =
        ["IBS NB local L3", "IBS NB local cache", "IBS NB cache Modified"].map(|short| value(&zen3, short));
    assert_eq!(values, [None, Some(200), None]);

    let mut builder = event(TaggedOf::Fetch, 0x19, 0x01);
    // Erratum 1347: code 2 means 2 MiB.
    let bits = Bits::COMPLETED | Bits::PHYSICAL_VALID | Bits::UNKNOWN | 2 << 4;
    add(&mut builder, Outcome::Fetch(bits), 200, 0);
    let fetches = derived(&builder.build(), None).unwrap();
    let values = ["IBS IC miss", "IBS IC hit", "IBS 2M page"].map(|short| value(&fetches, short));
    assert_eq!(values, [None, None, Some(200)]);
}

#[test]
fn branches_alone_say_nothing_of_ops_and_counters_are_left_out() {
    let mut builder = event(TaggedOf::Branch, 0x19, 0x11);
    let counter = EventInfo { name: "cycles".into(), ..EventInfo::default() };
    builder.meta().events.push(counter);
    add(&mut builder, Outcome::Op(Bits::BRANCH), 200, 0);
    builder.cell().event(1).samples(500);
    let capture = builder.build();
    let view = derived(&capture, None).unwrap();
    assert_eq!(
        (value(&view, "IBS BR"), value(&view, "IBS all ops"), value(&view, "IBS load")),
        (Some(200), None, None)
    );
    assert_eq!(view.left_out, ["cycles"]);

    let few = derived(&capture, Some(1000)).unwrap();
    assert_eq!((few.events[0].too_few, few.events[0].derived.len()), (Some(1000), 0));
    let mut capture = capture;
    capture.meta.events.remove(0);
    let error = derived(&capture, None).unwrap_err().to_string();
    assert!(error.contains("`precise record -e fetch,ops --by ip,process,latency,outcome`"), "{error}");
    capture.meta.machine.cpu = "Intel(R) Xeon(R) Gold 6138".to_owned();
    capture.meta.machine.cpu_id = Some(CpuId { vendor: Vendor::Intel, ..CpuId::default() });
    let error = derived(&capture, None).unwrap_err().to_string();
    assert!(error.ends_with("the capture is of a CPU without it: Intel(R) Xeon(R) Gold 6138."), "{error}");
}

#[test]
fn derived_at_80_columns() {
    let fetches = derived_text(&derived(&starved(), None).unwrap(), &TextOptions::default());
    has(&fetches, "\nIBS IC hit            600   63.2% ±3.1  completed without an IC miss\n");
    shown("derived.md", "fetches", &fetches);
    let branches = derived_text(&derived(&mispredicted(), None).unwrap(), &TextOptions::default());
    has(&branches, "33.3% ±4.1  mispredicted branches\n");
    has(&branches, "unknown            -  ops that load or store\n");
}

#[test]
fn csv_is_complete() {
    csv_has_a_field_for_each_name(&derived_csv(&derived(&starved(), None).unwrap(), "|"), '|');
}
