//! Tests of the export to OTLP with this project's own reader. `tests/otlp.rs` has those with an
//! independent one.

use super::otlp::{OtlpOptions, otlp};
use super::wire::{WireFields, WireValue};
use precise_model::testing::{CaptureBuilder, L1, RAM};
use precise_model::{Capture, Fields, Owner};

/// Returns the messages, or texts, of a field.
fn each(bytes: &[u8], field: u64) -> Vec<&[u8]> {
    let of = |(found, value)| match value {
        WireValue::Bytes(bytes) if found == field => Some(bytes),
        _ => None,
    };
    WireFields::new(bytes).filter_map(of).collect()
}

/// Returns the integers of a packed list.
fn numbers(bytes: &[u8], field: u64) -> Vec<u64> {
    let mut all = Vec::new();
    for list in each(bytes, field) {
        // Each number as the value of a field 1.
        let mut at = list;
        while !at.is_empty() {
            let length = at.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
            let one = [&[0x08], &at[..length]].concat();
            match WireFields::new(&one).next() {
                Some((1, WireValue::Number(number))) => all.push(number),
                other => panic!("{other:?}"),
            }
            at = &at[length..];
        }
    }
    all
}

/// The type of a profile and the sum of its values.
type TypedSum = (String, u64);

/// Returns the services with the sums of their profiles.
fn sums(request: &[u8]) -> Vec<(String, Vec<TypedSum>)> {
    let dictionary = each(request, 2)[0];
    let strings = each(dictionary, 5);
    let text = |index: u64| String::from_utf8(strings[index as usize].to_vec()).unwrap();
    let mut all = Vec::new();
    for resource_profiles in each(request, 1) {
        let name = each(each(resource_profiles, 1)[0], 1)[0];
        assert_eq!(each(name, 1), [b"service.name"]);
        let name = String::from_utf8(each(each(name, 2)[0], 1)[0].to_vec()).unwrap();
        let mut profiles = Vec::new();
        for profile in each(each(resource_profiles, 2)[0], 2) {
            let kind = match WireFields::new(each(profile, 1)[0]).next() {
                Some((1, WireValue::Number(index))) => text(index),
                other => panic!("{other:?}"),
            };
            let sum = each(profile, 2).iter().flat_map(|sample| numbers(sample, 4)).sum();
            profiles.push((kind, sum));
        }
        all.push((name, profiles));
    }
    all
}

fn capture() -> Capture {
    let mut builder = CaptureBuilder::new();
    let mut faults = builder.meta().events[0].clone();
    (faults.name, faults.unit, faults.fields) =
        ("page-faults".into(), "page faults".into(), Fields::default());
    builder.meta().events.push(faults);
    builder.meta().owners =
        vec![Owner { path: "/web".into(), container: Some("shop".into()), ..Owner::default() }];
    for (pid, cgroup, ip, source, samples, latency) in [
        (1, "/web", 0x1010, RAM, 30, 300),
        (2, "/web", 0x1010, RAM, 10, 500),
        (1, "/web", 0x1020, L1, 60, 5),
        (3, "/batch.service", 0x1020, L1, 7, 9),
    ] {
        let cell = builder.cell().samples(samples).latency(latency).process(pid, "app").cgroup(7, cgroup);
        cell.code(ip, "/bin/app", "f", "/src/app.c", 12).callers(&["main"]).data_src(source);
    }
    builder.cell().event(1).samples(5).cgroup(7, "/web").code(0x1030, "/bin/app", "g", "", 0);
    builder.build()
}

#[test]
fn each_unit_of_each_event_is_a_profile_of_its_own() {
    let capture = capture();
    let request = otlp(&capture, &OtlpOptions::default()).unwrap();
    assert_eq!((request.profiles, request.samples), (8, 112));
    let typed = |list: &[(&str, u64)]| -> Vec<TypedSum> {
        list.iter().map(|(kind, sum)| ((*kind).to_owned(), *sum)).collect()
    };
    let web = typed(&[
        ("cycles_samples", 100),
        ("cycles", 100_000),
        ("cycles_latency", 14_300),
        ("page-faults_samples", 5),
        ("page-faults", 5_000),
    ]);
    let batch = typed(&[("cycles_samples", 7), ("cycles", 7_000), ("cycles_latency", 63)]);
    assert_eq!(sums(&request.bytes), [("shop".to_owned(), web), ("batch".to_owned(), batch)]);

    let one = OtlpOptions { event: Some("page-faults".into()), service: Some("node".into()) };
    let request = otlp(&capture, &one).unwrap();
    assert_eq!((request.profiles, request.samples), (2, 5));
    let faults = typed(&[("page-faults_samples", 5), ("page-faults", 5_000)]);
    assert_eq!(sums(&request.bytes), [("node".to_owned(), faults)]);
    assert!(otlp(&capture, &OtlpOptions { event: Some("none".into()), service: None }).is_err());
}

#[test]
fn index_0_of_each_table_is_nothing() {
    for capture in [capture(), Capture::default()] {
        let request = otlp(&capture, &OtlpOptions::default()).unwrap();
        let dictionary = each(&request.bytes, 2)[0];
        for table in 1..=7 {
            let items = each(dictionary, table);
            assert_eq!(items.first(), Some(&&b""[..]), "table {table}");
            assert!(items[1..].iter().all(|item| !item.is_empty()), "table {table}");
        }
    }
}

/// A request that is sent once more has the same bytes, and with them the same ids of profiles.
#[test]
fn the_same_capture_is_the_same_request() {
    let once = otlp(&capture(), &OtlpOptions::default()).unwrap();
    assert_eq!(once, otlp(&capture(), &OtlpOptions::default()).unwrap());
}

#[test]
fn no_name_in_a_request_gives_orders_to_a_terminal() {
    let mut builder = CaptureBuilder::new();
    let cell = builder.cell().samples(1).process(1, "a\u{1b}]0;b\u{7}").cgroup(7, "/c\nd\u{202e}");
    cell.code(0x1010, "/bin/e\u{9b}", "f\u{1b}[2J", "/src/\rg.c", 12).callers(&["h\u{8}"]);
    let request = otlp(&builder.build(), &OtlpOptions::default()).unwrap();
    let strings = each(each(&request.bytes, 2)[0], 5);
    let strings: Vec<_> = strings.iter().map(|text| std::str::from_utf8(text).unwrap()).collect();
    for text in &strings {
        assert_eq!(*text, precise_model::text::sanitize(text), "{text:?}");
    }
    assert!(strings.contains(&"f\u{fffd}[2J"), "{strings:?}");
    // The cgroup is an attribute of the resource, which has its own texts.
    let whole = String::from_utf8_lossy(&request.bytes);
    assert!(whole.contains("/c\u{fffd}d\u{fffd}") && !whole.contains("/c\n"), "{whole:?}");
}
