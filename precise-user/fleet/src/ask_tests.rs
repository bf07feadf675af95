//! Questions to fleets whose answers are known.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use super::testing::{FleetTruth, MadeCapture, MadeFleet, MemoryBucket};
use super::*;

const HOURS: u32 = 28;

/// Returns a place with the tables of a small fleet, and what is in them.
fn fleet() -> (Arc<dyn FleetBucket>, &'static FleetTruth) {
    let (bucket, truth) = whole();
    (Arc::<MemoryBucket>::clone(bucket), truth)
}

fn whole() -> &'static (Arc<MemoryBucket>, FleetTruth) {
    static FLEET: LazyLock<(Arc<MemoryBucket>, FleetTruth)> = LazyLock::new(|| {
        let (made, bucket, mut truth) = (made(), MemoryBucket::default(), FleetTruth::new());
        for node in 0..made.nodes {
            for hour in 0..HOURS {
                // A node falls silent after 20 hours.
                if node != 3 || hour < 20 {
                    let MadeCapture { name, bytes, modified_ns } =
                        made.capture(node, hour, &mut truth).unwrap();
                    bucket.put(&name, bytes, modified_ns);
                }
            }
        }
        let bucket = Arc::new(bucket);
        let place: Arc<dyn FleetBucket> = Arc::<MemoryBucket>::clone(&bucket);
        let now_ns = FleetHour(made.first.0 + 72).end_ns();
        let options = CompactOptions { hour: None, since_ns: 0, now_ns, memory: 64 << 20 };
        compact(&place, &options, |_| {}).unwrap();
        (bucket, truth)
    });
    &FLEET
}

fn made() -> MadeFleet {
    let first = FleetHour::parse("2026-11-23T23").unwrap();
    MadeFleet { first, rows: 30, ..MadeFleet::small() }
}

fn span(text: &str) -> FleetSpan {
    FleetSpan::parse(text).unwrap()
}

fn ask(bucket: &Arc<dyn FleetBucket>, question: &FleetQuestion) -> FleetReport {
    fleet_report(bucket, question, &mut NoFleetTypes, Duration::default).unwrap()
}

fn question(time: &str, by: &[FleetKey]) -> FleetQuestion {
    FleetQuestion { limit: usize::MAX, ..FleetQuestion::about(span(time), by.to_vec()) }
}

/// Returns samples and events by group, of all kinds.
fn sums(report: &FleetReport) -> BTreeMap<Vec<String>, [u64; 2]> {
    let mut all = BTreeMap::new();
    for group in report.events.iter().flat_map(|event| &event.groups) {
        let values: Vec<String> = group.values.iter().map(|value| value.clone().unwrap()).collect();
        let total: &mut [u64; 2] = all.entry(values).or_default();
        total[0] += group.samples;
        total[1] += group.weight;
    }
    all
}

fn expected(
    truth: &FleetTruth,
    of: impl Fn(FleetHour, &str) -> bool,
    key: impl Fn(FleetHour, &str, &str) -> Vec<String>,
) -> BTreeMap<Vec<String>, [u64; 2]> {
    let mut all = BTreeMap::new();
    for ((hour, service, function), sums) in truth.iter().filter(|((hour, service, _), _)| of(*hour, service))
    {
        let total: &mut [u64; 2] = all.entry(key(*hour, service, function)).or_default();
        total[0] += sums[0];
        total[1] += sums[1];
    }
    all
}

#[test]
fn answers_have_the_sums_of_the_captures() {
    use FleetKey::{Function, Hour, Module, Service};
    let (bucket, truth) = fleet();
    // A whole day, some hours, both together, and a time with hours without tables.
    for (time, days) in [
        ("2026-11-24", 1),
        ("2026-11-24T01..2026-11-24T05", 0),
        ("2026-11-23T20..2026-11-24", 1),
        ("2026-11-24..2026-11-25T02", 1),
    ] {
        let within = |hour: FleetHour, _: &str| span(time).has(hour);
        let report = ask(&bucket, &question(time, &[Service]));
        assert_eq!(report.asked.read.days, days, "{time}");
        assert_eq!(sums(&report), expected(truth, within, |_, service, _| vec![service.to_owned()]));
        let report = ask(&bucket, &question(time, &[Function, Service]));
        let by = |_, service: &str, function: &str| vec![function.to_owned(), service.to_owned()];
        assert_eq!(sums(&report), expected(truth, within, by));
        let report = ask(&bucket, &question(time, &[Hour]));
        assert_eq!(report.asked.read.days, 0);
        assert_eq!(sums(&report), expected(truth, within, |hour, _, _| vec![hour.to_string()]));
        let of = FleetQuestion { service: Some("shop/web2".into()), ..question(time, &[Function]) };
        let one = |hour: FleetHour, service: &str| span(time).has(hour) && service == "shop/web2";
        assert_eq!(sums(&ask(&bucket, &of)), expected(truth, one, |_, _, name| vec![name.to_owned()]));
    }
    // The mean latency, and the limit.
    let report = ask(&bucket, &FleetQuestion { limit: 2, ..question("2026-11-24", &[Service, Module]) });
    for event in &report.events {
        let [first, second] = &event.groups[..] else { panic!("{:?}", event.groups) };
        assert!(first.weight >= second.weight && first.share.holds(first.share.value));
        assert_eq!(event.samples, first.samples + second.samples + event.left_out.samples);
        assert!((20.0..1300.0).contains(&first.latency_avg.unwrap()) && event.too_few.is_none());
        assert_eq!(first.values[1].as_ref().unwrap().split_once("/bin/").unwrap().0, "");
        assert!(event.left_out.groups > 3 && event.cut.is_none());
    }
    let total: u64 = report.events.iter().map(|event| event.weight).sum();
    let day = expected(truth, |hour, _| span("2026-11-24").has(hour), |_, _, _| Vec::new());
    assert_eq!(total, day[&Vec::new()][1]);
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!((&json["from"], &json["until"]), (&"2026-11-24T00".into(), &"2026-11-25T00".into()));
}

#[test]
fn nodes_are_expected_reported_and_silent() {
    use FleetKey::Node;
    let (bucket, _) = fleet();
    // 2026-11-23T23:20 is the first capture: the day before has one hour.
    let report = ask(&bucket, &question("2026-11-24T21..2026-11-24T22", &[Node]));
    let nodes = &report.asked.nodes;
    assert_eq!((nodes.expected, nodes.reported, nodes.known), (Some(12), 11, 12));
    assert_eq!(
        (nodes.silent, &nodes.silent_nodes[..], nodes.degraded),
        (1, &["prod/node-00003".into()][..], 0)
    );
    assert_eq!(report.events.iter().map(|event| event.groups.len()).sum::<usize>(), 11);
    let first = ask(&bucket, &question("2026-11-23", &[Node]));
    assert_eq!((first.asked.nodes.expected, first.asked.nodes.reported), (None, 12));
    assert_eq!(first.asked.read.missing_hours.len(), 23);
    // Each sample of each node is in the ledger of its event.
    for event in &report.events {
        let ledger = &event.ledger;
        assert!(ledger.closes && ledger.unaccounted == 0, "{ledger:?}");
        assert_eq!((ledger.in_tables, ledger.nodes), (event.samples, event.groups.len() as u64));
        assert!((2..=11).contains(&event.node_groups));
    }
    let of = FleetQuestion { service: Some("shop/web2".into()), ..question("2026-11-24", &[Node]) };
    let report = ask(&bucket, &of);
    for event in &report.events {
        assert_eq!(event.nodes, Some(event.groups.len() as u64));
        assert!(event.ledger.in_tables > event.samples);
    }
    for (question, says) in [
        (
            FleetQuestion { service: Some("shop/none".into()), ..of.clone() },
            "no sample of the service 'shop/none'",
        ),
        (
            FleetQuestion { event: Some("stores".into()), ..question("2026-11-24", &[Node]) },
            "the event 'stores'",
        ),
        (
            question("2026-12-24", &[Node]),
            "there are no tables of 2026-12-24 00:00 to 24:00 UTC; the newest are of 2026-11-25",
        ),
    ] {
        let error =
            fleet_report(&bucket, &question, &mut NoFleetTypes, Duration::default).unwrap_err().to_string();
        assert!(error.contains(says), "{error}");
    }
}

#[test]
fn little_memory_leaves_groups_out_and_says_so() {
    use FleetKey::{Function, Node, Service};
    let (bucket, truth) = fleet();
    let by = [Function, Service, Node];
    let whole = ask(&bucket, &question("2026-11-24", &by));
    let little = ask(&bucket, &FleetQuestion { memory: 40 << 10, ..question("2026-11-24", &by) });
    let total = |report: &FleetReport| report.events.iter().map(|event| event.weight).sum::<u64>();
    let day = expected(truth, |hour, _| span("2026-11-24").has(hour), |_, _, _| Vec::new());
    assert_eq!([total(&whole), total(&little)], [day[&Vec::new()][1]; 2]);
    for (event, all) in little.events.iter().zip(&whole.events) {
        let cut = event.cut.as_ref().unwrap();
        assert!(cut.groups > 10 && cut.most > 0.0 && event.groups.len() < all.groups.len());
        for group in &event.groups {
            let other = all.groups.iter().find(|other| other.values == group.values).unwrap();
            let missing = other.share.value - group.share.value;
            assert!((0.0..=cut.most + 1e-12).contains(&missing), "{missing} of {cut:?}");
        }
        let shown: u64 = event.groups.iter().map(|group| group.samples).sum();
        assert_eq!(event.samples, shown + event.left_out.samples);
    }
}

#[test]
fn tiers_are_picked_by_time_and_by_interval() {
    let (bucket, _) = fleet();
    let by = [FleetKey::Service];
    let of = |tier| FleetQuestion { tier, ..question("2026-11-24", &by) };
    let read = |tier| ask(&bucket, &of(tier)).asked.read;
    let exact = read(FleetTier::Exact);
    assert_eq!((exact.tier, exact.one_of), (0, 1));
    assert_eq!(read(FleetTier::Good(1.0)).one_of, 125);
    assert_eq!(read(FleetTier::Good(0.0)).tier, 0);
    let middle = read(FleetTier::Good(0.12));
    assert!((1..3).contains(&middle.tier), "{middle:?}");
    // Each look at the clock is a second later: the thin tier takes a second.
    let within = |seconds| {
        let mut now = Duration::default();
        let clock = || {
            now += Duration::from_secs(1);
            now
        };
        fleet_report(&bucket, &of(FleetTier::Within(Duration::from_secs(seconds))), &mut NoFleetTypes, clock)
            .unwrap()
            .asked
            .read
    };
    assert_eq!([within(0).tier, within(1).tier, within(1000).tier], [3, 3, 0]);
    let some = within(6);
    assert!(some.tier < 3 && some.tier > 0, "{some:?}");
    // Sums are estimates of those of all samples.
    let (thin, whole) = (ask(&bucket, &of(FleetTier::Good(1.0))), ask(&bucket, &of(FleetTier::Exact)));
    for (thin, whole) in thin.events.iter().zip(&whole.events) {
        assert_eq!(thin.samples, thin.samples_read * 125);
        let off = thin.weight as f64 / whole.weight as f64 - 1.0;
        assert!(off.abs() < 4.0 / (thin.samples_read as f64).sqrt(), "{off}");
        let mean = thin.latency_avg.unwrap() / whole.latency_avg.unwrap();
        assert!((0.8..1.25).contains(&mean), "{mean}");
    }
    // Hours have no tiers.
    assert_eq!(
        ask(&bucket, &FleetQuestion { by: vec![FleetKey::Hour], ..of(FleetTier::Good(1.0)) }).asked.read.tier,
        0
    );
}

#[test]
fn latencies_are_those_of_the_captures() {
    let (bucket, truth) = fleet();
    let latency = |by: &[FleetKey], service: Option<&str>| {
        let of = FleetQuestion { service: service.map(str::to_owned), ..question("2026-11-24", by) };
        fleet_latency(&bucket, &of).unwrap()
    };
    let all = latency(&[], None);
    let day = |hour: FleetHour, _: &str| span("2026-11-24").has(hour);
    let sums = expected(truth, day, |_, _, _| Vec::new());
    assert_eq!(all.events.iter().map(|event| event.all.samples).sum::<u64>(), sums[&Vec::new()][0]);
    for event in &all.events {
        assert!(event.groups.is_empty() && event.left_out.groups == 0);
        // A quarter each of 4 to 8, 60 to 159, 150 to 329 and 300 to 499 cycles; a node in fifty,
        // here node 7, takes four times as long.
        let p50 = event.all.p50.unwrap();
        assert!((120.0..260.0).contains(&p50.cycles), "{p50:?}");
        let [from, to] = p50.interval;
        assert!(from <= p50.low && p50.high <= to && to - from < 200, "{p50:?}");
        assert!(event.all.p90.unwrap().cycles <= event.all.p99.unwrap().cycles);
    }
    // Of a level alone, where there are many samples near the median, it is known better.
    for group in latency(&[FleetKey::Level], None).events.iter().flat_map(|event| &event.groups) {
        let own = match group.values[0].as_deref() {
            Some("L1 hit") => 4.0..9.0,
            Some("L3 hit") => 60.0..160.0,
            Some("RAM hit") => 150.0..330.0,
            _ => 300.0..500.0,
        };
        let p50 = group.p50.unwrap();
        let [from, to] = p50.interval;
        assert!(own.contains(&p50.cycles), "{:?}: {p50:?}", group.values);
        assert!(((to - from) as f64) < own.end - own.start, "{:?}: {p50:?}", group.values);
    }
    let levels = latency(&[FleetKey::Level], Some("shop/web3"));
    for event in &levels.events {
        assert_eq!(event.groups.len(), 4);
        let parts: f64 = event.groups.iter().map(|group| group.share.value).sum();
        assert!((parts - 1.0).abs() < 1e-9);
        assert_eq!(event.all.samples, event.groups.iter().map(|group| group.samples).sum::<u64>());
    }
    let functions = latency(&[FleetKey::Service, FleetKey::Function], None);
    assert!(functions.events.iter().all(|event| event.groups.len() > 20));
}

#[test]
fn what_did_not_change_did_not_change() {
    let (bucket, truth) = fleet();
    let spans = [span("2026-11-24T02..2026-11-24T07"), span("2026-11-24T12..2026-11-24T17")];
    let of = question("2026-11-24", &[FleetKey::Service]);
    let diff = fleet_diff(&bucket, &of, spans, &mut NoFleetTypes).unwrap();
    let samples: u64 = diff.events.iter().map(|event| event.totals[1].samples).sum();
    let after = expected(truth, |hour, _| spans[1].has(hour), |_, _, _| Vec::new());
    assert_eq!((samples, diff.notes.len()), (after[&Vec::new()][0], 0));
    for event in &diff.events {
        assert!(event.groups.iter().all(|group| !group.changed), "{:?}", event.groups);
        let growth = event.growth.unwrap();
        assert!(growth.low < 0.0 && growth.high > 0.0 && growth.value.abs() < 0.2, "{growth:?}");
    }
    // Each node has ten services: those of one node are all of a span without the others.
    let nothing = fleet_diff(&bucket, &of, [spans[0], span("2026-12-24")], &mut NoFleetTypes).unwrap_err();
    assert!(matches!(nothing, AskError::NoTables { .. }));
}

/// Debug information in which the functions of a service access a few types in turn.
#[derive(Default)]
struct Orders {
    asked: Vec<FleetFunction>,
}

fn number(function: &str) -> u32 {
    function.rsplit_once("::f").unwrap().1.parse().unwrap()
}

fn object(function: &str) -> Result<(String, String), String> {
    match number(function) % 3 {
        0 => Ok(("Order".to_owned(), "id".to_owned())),
        // The name of a type of Rust.
        1 => Ok(("[u64; 4]".to_owned(), String::new())),
        _ => Err("conflicting types".to_owned()),
    }
}

impl FleetTypes for Orders {
    fn accesses(
        &mut self,
        function: &FleetFunction,
        wanted: &[u64],
    ) -> Result<Vec<(u64, Vec<FleetAccess>)>, String> {
        self.asked.push(function.clone());
        if number(&function.name) == 4 {
            return Err("code not available".to_owned());
        }
        let access = |at: &u64| {
            let access = FleetAccess { reads: true, writes: false, found: object(&function.name) };
            (*at, if number(&function.name) == 3 { Vec::new() } else { vec![access] })
        };
        Ok(wanted.iter().map(access).collect())
    }
}

#[test]
fn samples_are_added_up_by_type_and_by_field() {
    use FleetKey::{Field, Function, Hour, Module, Service, Type};
    let (bucket, truth) = fleet();
    let day = |hour: FleetHour, _: &str| span("2026-11-24").has(hour);
    let found = |function: &str| match number(function) {
        4 => Err("code not available".to_owned()),
        3 => Err("instruction without an access to memory".to_owned()),
        _ => object(function),
    };
    let ty = |function: &str| found(function).map_or_else(|why| format!("[{why}]"), |(ty, _)| ty);
    let field = |function: &str| match found(function) {
        Ok((ty, field)) if field.is_empty() => ty,
        Ok((_, field)) => field,
        Err(why) => format!("[{why}]"),
    };
    let whole = |function: &str| match found(function) {
        Ok((ty, field)) if !field.is_empty() => format!("{ty}.{field}"),
        Ok((text, _)) => text,
        Err(why) => format!("[{why}]"),
    };
    let answer = |by: &[FleetKey]| {
        let mut types = Orders::default();
        let of = question("2026-11-24", by);
        (fleet_report(&bucket, &of, &mut types, Duration::default).unwrap(), types.asked)
    };
    let (report, asked) = answer(&[Service, Type]);
    let by_type = expected(truth, day, |_, service, function| vec![service.to_owned(), ty(function)]);
    assert_eq!(sums(&report), by_type);
    assert_eq!(sums(&answer(&[Type, Field]).0), expected(truth, day, |_, _, f| vec![ty(f), field(f)]));
    assert_eq!(sums(&answer(&[Field]).0), expected(truth, day, |_, _, f| vec![whole(f)]));
    // Each function of each build is asked for once, by what is in its file.
    let mut once = asked.clone();
    once.sort_by(|a, b| (&a.name, &a.build_id).cmp(&(&b.name, &b.build_id)));
    once.dedup();
    assert_eq!(once.len(), asked.len());
    assert!(
        asked.iter().all(|function| function.module.starts_with("/bin/web") && !function.build_id.is_empty())
    );
    let samples = |keep: &dyn Fn(&str) -> bool| -> u64 {
        by_type.iter().filter(|(values, _)| keep(&values[1])).map(|(_, sums)| sums[1]).sum()
    };
    let accesses = samples(&|ty| ty != "[instruction without an access to memory]");
    let typed = samples(&|ty| ty == "Order" || ty == "[u64; 4]") as f64 / accesses as f64;
    // One event for each kind; together they have all samples.
    let all: f64 = report.events.iter().map(|event| event.typed.unwrap().value).sum();
    assert!((all / report.events.len() as f64 - typed).abs() < 0.05, "{all} {typed}");
    // The tables of hours say the same.
    let hours = answer(&[Hour, Type]).0;
    let by_hour = |hour: FleetHour, _: &str, function: &str| vec![hour.to_string(), ty(function)];
    assert_eq!((hours.asked.read.days, sums(&hours)), (0, expected(truth, day, by_hour)));
    assert_eq!(answer(&[Function, Module, Type]).0.asked.read.hours_without_instructions, [""; 0]);
    // What the tables of instructions do not have is refused.
    let of = question("2026-11-24", &[FleetKey::Node, Type]);
    let error = fleet_report(&bucket, &of, &mut NoFleetTypes, Duration::default).unwrap_err();
    assert_eq!(error.to_string(), "types are not kept by node");
    let error = fleet_latency(&bucket, &question("2026-11-24", &[Type])).unwrap_err();
    assert!(error.to_string().contains("no types"), "{error}");
    // With little memory, the groups that are left have no more than they have.
    let all = sums(&answer(&[Type]).0);
    let little = FleetQuestion { memory: 40_000, ..question("2026-11-24", &[Type]) };
    let little = fleet_report(&bucket, &little, &mut Orders::default(), Duration::default).unwrap();
    assert!(little.events.iter().any(|event| event.cut.is_some()));
    for (values, [samples, _]) in sums(&little) {
        assert!(samples <= all[&values][0], "{values:?}: {samples} of {:?}", all[&values]);
    }
    // Without debug information, every sample has its reason.
    let none = ask(&bucket, &question("2026-11-24", &[Type]));
    let reasons = sums(&none);
    assert_eq!(reasons.keys().flatten().collect::<Vec<_>>(), ["[code not available]"]);
    assert!(none.events.iter().all(|event| event.typed.unwrap().value == 0.0));
}

/// A day that an older precise compacted has no groups of nodes, and the same answers.
#[test]
fn groups_of_nodes_give_the_answers_of_their_nodes() {
    let (bucket, _) = fleet();
    let older = MemoryBucket::default();
    for (name, bytes) in whole().0.with_prefix("v1/") {
        let is_day = name == "v1/manifest/date=2026-11-24/day-0000.json";
        let bytes = if is_day { without_newer_tables(&bytes).into() } else { bytes };
        older.put(&name, bytes, 0);
    }
    let older: Arc<dyn FleetBucket> = Arc::new(older);
    use FleetKey::{Cluster, Function, Level, Service};
    for by in [&[Service][..], &[Function, Level], &[Cluster]] {
        let of = question("2026-11-24", by);
        let (groups, nodes) = (ask(&bucket, &of), ask(&older, &of));
        assert_eq!((groups.asked.read.days, nodes.asked.read.days), (1, 1));
        assert_ne!(groups.asked.read.part_bytes, nodes.asked.read.part_bytes);
        assert_eq!((groups.events, groups.asked.nodes), (nodes.events, nodes.asked.nodes));
    }
    // Its instructions are those of its hours.
    let by_type = |bucket| sums(&ask(bucket, &question("2026-11-24", &[FleetKey::Type])));
    assert_eq!(by_type(&bucket), by_type(&older));
    // Nodes are counted if a service is asked for.
    let service = Some("shop/web3".to_owned());
    let web = ask(&bucket, &FleetQuestion { service, ..question("2026-11-24", &[Function]) });
    assert!(web.asked.service_nodes.is_some_and(|nodes| nodes > 1));
}

fn without_newer_tables(manifest: &[u8]) -> Vec<u8> {
    let mut manifest: FleetManifest = serde_json::from_slice(manifest).unwrap();
    let newer = [FleetTable::DayGroup, FleetTable::DayInstruction, FleetTable::DayLedger];
    assert!(newer.iter().all(|table| manifest.parts.iter().any(|part| part.table == *table)));
    manifest.parts.retain(|part| !newer.contains(&part.table));
    manifest.instructions = false;
    serde_json::to_vec(&manifest).unwrap()
}
