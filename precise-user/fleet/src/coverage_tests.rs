//! Intervals hold the truth as often as they say.
//!
//! The truth is that of the population of which the nodes are a sample: the share that a group has
//! of all that nodes do in the long run. Each node does more or less of each function than others,
//! by a factor of its own; the number of its samples is by chance. So two fleets of one population
//! differ, and an interval is right if it holds what neither of them shows.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use super::add_up::Sums;
use super::encode::{self, EncodedPart};
use super::fold::{EventKey, Fold, NodeKey};
use super::functions::SymbolNames;
use super::hash::Random;
use super::keys::RowKey;
use super::spread::{GROUPS, Spread, percentile, share_change};
use super::testing::MemoryBucket;
use super::*;

impl Random {
    fn uniform(&mut self) -> f64 {
        ((self.next() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Returns a factor with the mean 1 and about this relative deviation.
    fn factor(&mut self, deviation: f64) -> f64 {
        (self.normal() * deviation - deviation * deviation / 2.0).exp()
    }

    fn poisson(&mut self, mean: f64) -> u64 {
        if mean > 50.0 {
            return (mean + mean.sqrt() * self.normal()).round().max(0.0) as u64;
        }
        let (mut count, mut product) = (0, self.uniform());
        while product > (-mean).exp() {
            product *= self.uniform();
            count += 1;
        }
        count
    }
}

const NODES: u32 = 150;
const SERVICES: u32 = 3;
const FUNCTIONS: u32 = 12;
const LEVELS: [&str; 2] = ["L1 hit", "Local RAM hit"];
/// The population's samples of each function, level and service on a node.
fn mean(service: u32, function: u32, level: u32) -> f64 {
    f64::from(1 + service) * 60.0 / f64::from(1 + function).powf(1.3) / f64::from(1 + 2 * level)
}

fn day() -> FleetDay {
    FleetDay::parse("2026-11-24").unwrap()
}

/// Returns a place with the day of a fleet.
fn fleet(seed: u64) -> Arc<dyn FleetBucket> {
    let mut random = Random(seed);
    let mut fold = Fold::new();
    let key = EventKey { event: "loads".into(), unit: "loads".into(), kind: "intel".into() };
    let event = fold.event(key).unwrap();
    let levels = LEVELS.map(|level| Fold::text(&mut fold.levels, level).unwrap());
    for node in 0..NODES {
        let key = NodeKey { node: format!("n{seed}-{node}"), cluster: String::new() };
        let node = fold.node(key).unwrap();
        // A node may sample twice as often as others, and has more or less to do.
        let period = if random.next().is_multiple_of(2) { 1000 } else { 2000 };
        let busy = random.factor(0.5) * 1000.0 / f64::from(period);
        for service in 0..SERVICES {
            let name = format!("s{service}");
            let number = Fold::text(&mut fold.services, &name).unwrap();
            let runs = busy * random.factor(0.4);
            for function in 0..FUNCTIONS {
                let (function_name, module) = (format!("f{function}"), format!("/bin/{name}"));
                let names = SymbolNames { name: &function_name, module: &module, ..SymbolNames::default() };
                let number_of_function = fold.symbol(names).unwrap();
                let own = runs * random.factor(0.6);
                for (level, number_of_level) in levels.iter().enumerate() {
                    let count = random.poisson(own * mean(service, function, level as u32));
                    let row = RowKey {
                        service: number,
                        event,
                        function: number_of_function,
                        level: *number_of_level,
                        node,
                        timed: true,
                    };
                    let sums =
                        Sums { count, weight: count * period as u64, latency_sum: count * 9, latency_max: 9 };
                    if count > 0 {
                        fold.rows.push((row.pack(), sums));
                    }
                }
            }
        }
    }
    written(fold)
}

/// Writes the tables of a day.
fn written(mut fold: Fold) -> Arc<dyn FleetBucket> {
    let bucket = Arc::new(MemoryBucket::default());
    fold.finish();
    let symbols: Vec<_> = fold.functions.named().collect();
    let mut parts = Vec::new();
    let mut put = |part: Option<EncodedPart>, tier| {
        let part = part.unwrap();
        let name = part.table.of_day(day(), tier, "x");
        bucket.put(&name, part.bytes.clone(), 1);
        let (table, bytes, rows) = (part.table, part.bytes.len() as u64, part.rows);
        parts.push(ManifestPart { table, tier, name, rows, bytes, services: part.services });
    };
    put(encode::symbols(&symbols).unwrap(), None);
    let mut rows = std::mem::take(&mut fold.rows);
    for tier in 0..4 {
        if tier > 0 {
            rows = encode::thin(&fold, &rows, day().first(), tier);
        }
        put(encode::rows(FleetTable::Day, &fold, &rows, day().first()).unwrap(), Some(tier));
    }
    let name = |period: FleetPeriod| period.name(0);
    let hour = FleetPeriod::Hour(day().first());
    let json = |manifest: &FleetManifest| Bytes::from(serde_json::to_vec(manifest).unwrap());
    bucket.put(&name(hour), json(&FleetManifest::default()), 1);
    let of = vec![name(hour)];
    bucket.put(
        &name(FleetPeriod::Day(day())),
        json(&FleetManifest { parts, of, ..FleetManifest::default() }),
        1,
    );
    bucket
}

/// The share of a group in the population.
fn truth(values: &[Option<String>], by: &[FleetKey], service: Option<u32>) -> f64 {
    let (mut part, mut whole) = (0.0, 0.0);
    for of in (0..SERVICES).filter(|of| service.is_none_or(|service| service == *of)) {
        for function in 0..FUNCTIONS {
            for (level, name) in LEVELS.iter().enumerate() {
                let here = mean(of, function, level as u32);
                whole += here;
                let is = |(key, value): (&FleetKey, &Option<String>)| {
                    let value = value.as_deref();
                    match key {
                        FleetKey::Service => value == Some(&format!("s{of}")),
                        FleetKey::Function => value == Some(&format!("f{function}")),
                        _ => value == Some(name),
                    }
                };
                if by.iter().zip(values).all(is) {
                    part += here;
                }
            }
        }
    }
    part / whole
}

#[test]
fn intervals_of_a_thousand_questions_hold_the_truth() {
    use FleetKey::{Function, Level, Service};
    let mut held = [[0_u32; 2]; 4];
    let (mut asked, mut widths) = (0, [0.0; 4]);
    let mut random = Random(7);
    let keys: [&[FleetKey]; 5] =
        [&[Service], &[Function], &[Level], &[Service, Function], &[Function, Level]];
    for seed in 0..50 {
        let bucket = fleet(seed);
        for _ in 0..20 {
            // A random question: a service or all, a random grouping, and one of its groups.
            let service = Some(random.next() as u32 % (SERVICES + 1)).filter(|service| *service < SERVICES);
            let by = keys[random.next() as usize % keys.len()].to_vec();
            let question = FleetQuestion {
                service: service.map(|service| format!("s{service}")),
                limit: 1000,
                ..FleetQuestion::about(FleetSpan::of_day(day()), by.clone())
            };
            let exact = fleet_report(&bucket, &question, &mut NoFleetTypes, Default::default).unwrap();
            let groups = &exact.events[0].groups;
            let group = &groups[random.next() as usize % groups.len()];
            let population = truth(&group.values, &by, service);
            asked += 1;
            for tier in 0..4 {
                // The interval of a group with no sample in a thin tier is that of none.
                let report = report::of_tier(&bucket, &question, tier);
                let found = report.events[0].groups.iter().find(|other| other.values == group.values);
                let n = report.events[0].samples_read as f64;
                let none = FleetInterval { value: 0.0, low: 0.0, high: 4.0 / (n + 4.0) };
                let interval = found.map_or(none, |group| group.share);
                held[tier as usize][0] += u32::from(interval.holds(population));
                held[tier as usize][1] += u32::from(interval.holds(group.share.value));
                widths[tier as usize] += interval.half_width();
            }
        }
    }
    assert_eq!(asked, 1000);
    eprintln!("held (population, whole counts) by tier: {held:?}, widths {widths:?}");
    for (tier, [population, whole]) in held.into_iter().enumerate() {
        assert!(population >= 950, "tier {tier}: {population} of {asked} hold the population's share");
        assert!(whole >= 950, "tier {tier}: {whole} of {asked} hold the share in all samples");
    }
    // They are not right by being useless: a thinner tier has wider ones, and that of all samples
    // is about that of 150 nodes.
    assert!(widths[0] < widths[1] && widths[1] < widths[3] && widths[0] / 1000.0 < 0.04, "{widths:?}");
}

/// Returns a node group's samples of two things, of which nodes do more or less.
fn two(random: &mut Random, share: f64, nodes: u32) -> [Spread; 2] {
    let (mut part, mut whole) = (Spread::default(), Spread::default());
    for _ in 0..nodes {
        let group = random.next() as u32 % GROUPS as u32;
        let busy = 300.0 * random.factor(0.5);
        let [a, b] = [share, 1.0 - share].map(|share| busy * share * random.factor(0.5));
        let (a, b) = (random.poisson(a), random.poisson(b));
        part.add(group, a, a);
        whole.add(group, a + b, a + b);
    }
    [part, whole]
}

#[test]
fn nothing_changed_is_said_to_have_changed_in_one_of_twenty_at_most() {
    let mut random = Random(3);
    let (mut wrong, mut held) = (0, 0);
    for round in 0..1000 {
        let share = 0.02 + 0.4 * random.uniform();
        let [before, after] =
            [two(&mut random, share, 20 + round % 200), two(&mut random, share, 20 + round % 200)];
        let found = share_change([&before[0], &before[1]], [&after[0], &after[1]]);
        wrong += u32::from(found.p <= 0.05);
        held += u32::from(found.change.holds(0.0));
    }
    assert!((5..=50).contains(&wrong) && held >= 950, "{wrong} of 1000 false alarms, {held} hold 0");
}

#[test]
fn percentiles_of_a_thousand_fleets_hold_that_of_the_population() {
    let mut random = Random(5);
    let shares = [0.05, 0.2, 0.22, 0.18, 0.15, 0.1, 0.06, 0.025, 0.01, 0.005];
    let mut held = [0; 3];
    for round in 0..1000 {
        let mut buckets: BTreeMap<u8, Spread> = BTreeMap::new();
        let mut whole = Spread::default();
        for _ in 0..40 + round % 150 {
            let group = random.next() as u32 % GROUPS as u32;
            let busy = 200.0 * random.factor(0.5);
            for (bucket, share) in shares.iter().enumerate() {
                let own = busy * share * random.factor(0.5);
                let count = random.poisson(own);
                buckets.entry(bucket as u8).or_default().add(group, count, count);
                whole.add(group, count, count);
            }
        }
        let buckets: Vec<(u8, Spread)> = buckets.into_iter().collect();
        for (fraction, held) in [0.5, 0.9, 0.99].into_iter().zip(&mut held) {
            let mut below = 0.0;
            let bucket = shares.iter().position(|share| {
                below += share;
                below >= fraction
            });
            // Buckets of few cycles have one latency each.
            let cycles = bucket.unwrap() as u64;
            let found = percentile(&buckets, &whole, fraction).unwrap();
            *held += u32::from((found.interval[0]..=found.interval[1]).contains(&cycles));
        }
    }
    assert!(held.iter().all(|held| *held >= 950), "{held:?} of 1000");
}
