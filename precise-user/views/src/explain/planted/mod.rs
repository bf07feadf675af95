//! Captures with a planted cause, and healthy ones: what `explain` finds of them. The table in
//! docs/explain.md is this test's: `PRECISE_UPDATE_DOCUMENTS=1 cargo test -p precise-views planted`
//! writes it.

mod kinds;

use super::tests::Nowhere;
use super::text::explain_text;
use super::*;
use crate::render::TextOptions;
use crate::testing::shown;
use kinds::{KINDS, Planted};
use precise_model::testing::{Builder, L1, L3_HITM, RAM, RAM_WALK, REMOTE_RAM, ibs_op};
use precise_model::{CpuGap, Name, Node, Origin};

const STORE: u64 = 0x508_0144;
const L3: u64 = 0x6_6820_0842;
const SERVICES: [&str; 4] = ["/web", "/api", "/db", "/cron"];
const EPOCHS: u32 = 60;
const HEALTHY: u64 = 100;

/// Some accesses of a thread in an epoch.
struct Access {
    epoch: u32,
    service: usize,
    thread: u32,
    kind: Kind,
    /// The number of samples that are expected.
    samples: f64,
    latency: f64,
    function: u32,
    address: u64,
    variable: &'static str,
}

#[derive(Clone, Copy, PartialEq, Eq, PartialOrd)]
enum Kind {
    L1,
    L3,
    Memory,
    Remote,
    Walk,
    Modified,
    Store,
}

impl Kind {
    const ALL: [(Self, u64, f64, f64); 7] = [
        (Self::L1, L1, 85.0, 5.0),
        (Self::L3, L3, 10.0, 45.0),
        (Self::Memory, RAM, 5.0, 280.0),
        (Self::Remote, REMOTE_RAM, 0.0, 600.0),
        (Self::Walk, RAM_WALK, 0.0, 400.0),
        (Self::Modified, L3_HITM, 0.0, 200.0),
        (Self::Store, STORE, 0.0, 0.0),
    ];
}

struct Random(u64);

impl Random {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Returns a number of samples of which `expected` are expected: nearly Poisson's distribution.
    fn count(&mut self, expected: f64) -> u64 {
        let normal = (0..12).map(|_| self.uniform()).sum::<f64>() - 6.0;
        (expected + expected.sqrt() * normal + self.uniform()).max(0.0) as u64
    }
}

/// Returns a minute of four services of four threads each, changed by `plant`.
fn capture(seed: u64, plant: &dyn Fn(&mut Access)) -> Capture {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut made = Builder::new();
    let meta = made.meta();
    meta.events[0].name = "loads".into();
    ibs_op(&mut meta.events[0]);
    let node = |id: u32, first: u32| Node { id, cpus: vec![first, first + 1] };
    meta.machine.nodes = vec![node(0, 0), node(1, 2)];
    meta.machine.cpus = 4;
    for epoch in 0..EPOCHS {
        for (service, path) in SERVICES.iter().enumerate() {
            for thread in 0..4u32 {
                for (at, (kind, word, samples, latency)) in Kind::ALL.into_iter().enumerate() {
                    let function = (epoch + thread + at as u32) % 6;
                    let spot = (service as u64 * 4 + u64::from(thread)) * 8 + u64::from(function);
                    let mut access = Access {
                        epoch,
                        service,
                        thread,
                        kind,
                        samples,
                        latency,
                        function,
                        address: 0x10_0000 + 0x1000 * spot,
                        variable: "",
                    };
                    plant(&mut access);
                    let count = random.count(access.samples);
                    if access.samples <= 0.0 || count == 0 {
                        continue;
                    }
                    let cycles = (access.latency * (0.9 + 0.2 * random.uniform())) as u32;
                    let pid = 100 + service as u32;
                    let function = format!("{}_{}", &path[1..], access.function);
                    let ip = 0x1000 * (service as u64 + 1) + 64 * u64::from(access.function);
                    let cell = made.cell().epoch(epoch).samples(count).cpu(thread as u16);
                    let cell = cell.process(pid, &path[1..]).cgroup(service as u64 + 1, path);
                    let cell = cell.code(ip, &path[1..], &function, "", 0);
                    let cell = cell.data(access.address, "[heap]", access.variable).data_src(word);
                    let mut cell = if kind == Kind::Store { cell } else { cell.latency(cycles) };
                    cell.row().tid = 10 * pid + thread;
                }
            }
        }
    }
    made.build()
}

fn explained(capture: &Capture) -> Explanation {
    explain(capture, &ExplainOptions::default(), &mut Nowhere)
}

fn is_found(view: &Explanation, planted: &Planted) -> bool {
    view.findings.iter().any(|finding| {
        let said = format!("{} {}", finding.says, finding.details.join(" "));
        planted.topics.contains(&finding.topic) && planted.says.iter().all(|who| said.contains(who))
    })
}

/// Returns the table of docs/explain.md.
fn table() -> String {
    let mut out = String::from("| planted | weak | medium | strong |\n| --- | --- | --- | --- |\n");
    for planted in KINDS {
        out += &format!("| {} ({})", planted.name, planted.unit);
        for (at, strength) in planted.strengths.iter().enumerate() {
            let made = capture(1000 + at as u64, &|access| (planted.plant)(*strength, access));
            let found = if is_found(&explained(&made), planted) { "found" } else { "**missed**" };
            out += &format!(" | {strength}: {found}");
        }
        out += " |\n";
    }
    let alarms = (1..=HEALTHY).filter(|seed| !explained(&capture(*seed, &|_| {})).nothing_stands_out).count();
    out + &format!("\nOf {HEALTHY} healthy captures, {alarms} had a finding.\n")
}

#[test]
fn planted_causes_are_found_as_the_documentation_says() {
    const BEGIN: &str = "<!-- planted causes: begin -->\n";
    const END: &str = "<!-- planted causes: end -->\n";
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/explain.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once(BEGIN).unwrap();
    let (said, after) = rest.split_once(END).unwrap();
    let now = table();
    if std::env::var_os("PRECISE_UPDATE_DOCUMENTS").is_some() {
        std::fs::write(path, format!("{before}{BEGIN}\n{now}\n{END}{after}")).unwrap();
        return;
    }
    assert_eq!(said.trim(), now.trim(), "run it with PRECISE_UPDATE_DOCUMENTS=1");
}

#[test]
fn the_page_shows_what_a_neighbour_looks_like() {
    let planted = KINDS.iter().find(|planted| planted.name.contains("neighbour evicts")).unwrap();
    let view = explained(&capture(1002, &|access| (planted.plant)(planted.strengths[2], access)));
    shown("explain.md", "change", &explain_text(&view, &TextOptions::default()));
}

fn changes(view: &Explanation) -> Vec<&Finding> {
    view.findings.iter().filter(|finding| finding.topic == Topic::Change).collect()
}

#[test]
fn who_changed_in_the_same_time_is_one_finding() {
    // A service that goes to memory more often has the same rate, so its rate does not tell.
    let made = capture(7, &|access| match access.service {
        _ if !(20..35).contains(&access.epoch) => {}
        3 => {
            access.samples = if access.kind == Kind::Memory { 45.0 } else { access.samples * 0.58 };
        }
        0 => access.latency *= 2.0,
        _ => {}
    });
    let view = explained(&made);
    let [found] = changes(&view)[..] else { panic!("{view:#?}") };
    let said = format!("{} {}", found.says, found.details.join(" "));
    assert!(said.contains("of /web") && said.contains("of /cron"), "{said}");
    assert!(!said.contains("None of the other"), "{said}");
}

#[test]
fn what_lasts_to_the_end_is_told_once() {
    let made = capture(12, &|access| {
        access.latency *= if access.service == 2 && access.epoch >= 25 { 3.0 } else { 1.0 };
    });
    let view = explained(&made);
    let [found] = changes(&view)[..] else { panic!("{view:#?}") };
    assert!(found.says.contains("from 25.0 s to 60.0 s"), "{}", found.says);
}

#[test]
fn time_without_any_cpu_is_no_change() {
    let mut made = capture(8, &|access| {
        access.samples *= if (20..30).contains(&access.epoch) { 0.0 } else { 1.0 };
    });
    assert!(!changes(&explained(&made)).is_empty(), "the CPUs were there, and idle");
    let gap = |cpu| CpuGap { cpu, start_ns: 20_000_000_000, end_ns: 30_000_000_000 };
    made.meta.events[0].ledger.gaps = (0..made.meta.machine.cpus).map(gap).collect();
    let view = explained(&made);
    assert!(changes(&view).is_empty(), "{view:#?}");
}

#[test]
fn an_import_of_the_whole_machine_tells_who_dominates() {
    let of = |command: &str| {
        let mut made = capture(11, &|access| {
            access.samples *= if access.service == 2 { 9.0 } else { 1.0 };
        });
        made.meta.target = format!("`{command}`");
        let command = command.split_whitespace().map(str::to_owned).collect();
        made.meta.origin = Some(Origin { command, ..Origin::default() });
        let view = explained(&made);
        view.findings.iter().any(|found| found.says.contains("one cgroup: /db"))
    };
    assert!(of("perf mem record -a sleep 60") && of("perf c2c record --all-cpus -- sleep 60") && of(""));
    assert!(!of("perf mem record ./db") && !of("perf record -- ./db -a"), "one program is most of itself");
}

#[test]
fn cgroups_that_were_not_looked_at_are_counted() {
    let mut made = capture(9, &|_| {});
    for (at, row) in made.rows.iter_mut().enumerate() {
        let id = made.names.intern(&format!("/service-{}", at % 19));
        row.cgroup = Name::Known(id);
    }
    let view = explained(&made);
    let left_out = view.unknown.iter().find(|unknown| unknown.topic == Topic::Change).unwrap();
    assert!(left_out.why.starts_with("3 other cgroups, with 1"), "{left_out:?}");
    let text = text::explain_text(&view, &crate::render::TextOptions::default());
    assert!(text.contains("No check found a problem. Not checked: see below."), "{text}");
}

#[test]
fn few_remote_accesses_that_take_most_of_the_waiting_are_found_with_their_owner() {
    let made = capture(10, &|access| {
        if access.kind == Kind::Remote {
            (access.samples, access.latency) = (if access.service == 2 { 12.0 } else { 0.0 }, 1500.0);
        }
    });
    let view = explained(&made);
    let found = view.findings.iter().find(|finding| finding.topic == Topic::RemoteMemory).unwrap();
    assert!(found.says.starts_with("of the waiting of loads went to"), "{found:#?}");
    assert!(found.details.iter().any(|says| says.contains("100% come from cgroup /db")), "{found:#?}");
}
