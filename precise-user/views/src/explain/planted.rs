//! Captures with a planted cause, and healthy ones: what `explain` finds of them. The table in
//! docs/explain.md is this test's: `PRECISE_UPDATE_DOCUMENTS=1 cargo test -p precise-views planted`
//! writes it.

use super::tests::Nowhere;
use super::*;
use precise_model::Node;
use precise_model::testing::{Builder, L1, L3_HITM, RAM, RAM_WALK, REMOTE_RAM, ibs_op};

const STORE: u64 = 0x508_0144;
const L3: u64 = 0x6_6820_0842;
const SERVICES: [&str; 4] = ["/web", "/api", "/db", "/cron"];
const EPOCHS: u32 = 60;
const HEALTHY: u64 = 40;

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

/// A cause, at three strengths, and what must be said of it.
struct Planted {
    name: &'static str,
    strengths: [f64; 3],
    unit: &'static str,
    topics: &'static [Topic],
    says: &'static str,
    plant: fn(f64, &mut Access),
}

/// Makes `share` percent of the accesses of this kind.
fn part(share: f64, kind: Kind, access: &mut Access) {
    if access.kind == kind {
        access.samples = share;
    } else if access.kind < Kind::Remote {
        access.samples *= 1.0 - share / 100.0;
    }
}

/// Gives `share` percent of all samples to what is chosen, which has `usual` percent otherwise.
fn dominate(share: f64, usual: f64, chosen: bool, access: &mut Access) {
    if chosen {
        access.samples *= share / usual * (100.0 - usual) / (100.0 - share);
    }
}

const KINDS: &[Planted] = &[
    Planted {
        name: "memory of another node",
        strengths: [4.0, 8.0, 30.0],
        unit: "% of the accesses",
        topics: &[Topic::RemoteMemory],
        says: "",
        plant: |share, access| part(share, Kind::Remote, access),
    },
    Planted {
        name: "a neighbour evicts a service's lines from 20 to 45 s",
        strengths: [6.0, 10.0, 30.0],
        unit: "% of its accesses go to memory",
        topics: &[Topic::Change],
        says: "/web",
        plant: |share, access| match access.service {
            _ if !(20..45).contains(&access.epoch) => {
                access.samples *= if access.service == 3 { 0.02 } else { 1.0 }
            }
            0 => part(share, Kind::Memory, access),
            3 => access.samples = if access.kind == Kind::Memory { 95.0 } else { 1.0 },
            _ => {}
        },
    },
    Planted {
        name: "page walks",
        strengths: [8.0, 15.0, 50.0],
        unit: "% of the accesses",
        topics: &[Topic::PageWalks],
        says: "",
        plant: |share, access| part(share, Kind::Walk, access),
    },
    Planted {
        name: "false sharing of a line",
        strengths: [4.0, 8.0, 30.0],
        unit: "% of the loads",
        topics: &[Topic::FalseSharing],
        says: "counters",
        plant: |share, access| {
            shared(share, 8, access);
        },
    },
    Planted {
        name: "true sharing of a line",
        strengths: [4.0, 8.0, 30.0],
        unit: "% of the loads",
        topics: &[Topic::TrueSharing],
        says: "counters",
        plant: |share, access| {
            shared(share, 0, access);
        },
    },
    Planted {
        name: "a service takes most of the samples",
        strengths: [45.0, 65.0, 90.0],
        unit: "% of all",
        topics: &[Topic::OneUser],
        says: "/db",
        plant: |share, access| dominate(share, 25.0, access.service == 2, access),
    },
    Planted {
        name: "a thread takes most of the samples",
        strengths: [40.0, 60.0, 90.0],
        unit: "% of all",
        topics: &[Topic::OneUser],
        says: "1012",
        plant: |share, access| {
            dominate(share, 6.25, access.service == 1 && access.thread == 2, access);
        },
    },
    Planted {
        name: "a cache line takes most of the waiting",
        strengths: [2.0, 10.0, 50.0],
        unit: "% of the accesses",
        topics: &[Topic::OneUser],
        says: "0x7f0040",
        plant: |share, access| {
            part(3.0 + share, Kind::Memory, access);
            if access.kind == Kind::Memory {
                access.address = 0x7f_0040;
            }
        },
    },
    Planted {
        name: "a variable takes most of the waiting",
        strengths: [2.0, 10.0, 50.0],
        unit: "% of the accesses",
        topics: &[Topic::OneUser],
        says: "table",
        plant: |share, access| {
            part(share, Kind::Memory, access);
            if access.kind == Kind::Memory {
                access.variable = "table";
            }
        },
    },
    Planted {
        name: "one CPU is slow",
        strengths: [1.5, 2.5, 6.0],
        unit: "times the latency",
        topics: &[Topic::LatencyTail],
        says: "CPU 3",
        plant: |times, access| access.latency *= if access.thread == 3 { times } else { 1.0 },
    },
    Planted {
        name: "one service is slow",
        strengths: [1.5, 2.5, 6.0],
        unit: "times the latency",
        topics: &[Topic::LatencyTail],
        says: "db",
        plant: |times, access| access.latency *= if access.service == 2 { times } else { 1.0 },
    },
    Planted {
        name: "latencies rise all the time",
        strengths: [1.2, 2.0, 5.0],
        unit: "times at the end",
        topics: &[Topic::Change],
        says: "/web",
        plant: |times, access| {
            access.latency *= if access.service == 0 {
                1.0 + (times - 1.0) * f64::from(access.epoch) / f64::from(EPOCHS)
            } else {
                1.0
            };
        },
    },
    Planted {
        name: "a service is held up from 30 to 40 s",
        strengths: [0.8, 0.6, 0.0],
        unit: "times its rate",
        topics: &[Topic::Change],
        says: "/api",
        plant: |times, access| {
            access.samples *=
                if access.service == 1 && (30..40).contains(&access.epoch) { times } else { 1.0 };
        },
    },
    Planted {
        name: "a burst of 6 s",
        strengths: [1.3, 2.0, 10.0],
        unit: "times its rate",
        topics: &[Topic::Change],
        says: "/cron",
        plant: |times, access| {
            access.samples *=
                if access.service == 3 && (50..56).contains(&access.epoch) { times } else { 1.0 };
        },
    },
    Planted {
        name: "the caches are too small",
        strengths: [15.0, 25.0, 80.0],
        unit: "% of the accesses go to memory",
        topics: &[Topic::Waiting],
        says: "RAM",
        plant: |share, access| part(share, Kind::Memory, access),
    },
    Planted {
        name: "a hot function",
        strengths: [45.0, 60.0, 90.0],
        unit: "% of the samples",
        topics: &[Topic::HotSpot],
        says: "web_9",
        plant: |share, access| {
            // All samples of one service are in the function.
            if access.service == 0 {
                access.function = 9;
            }
            dominate(share, 25.0, access.service == 0, access);
        },
    },
];

/// Makes `share` percent of the loads find a line modified, of which each thread of a service uses
/// the bytes `apart` from those of the thread before.
fn shared(share: f64, apart: u64, access: &mut Access) {
    part(share, Kind::Modified, access);
    if access.kind == Kind::Store {
        access.samples = share / 2.0;
    }
    if matches!(access.kind, Kind::Modified | Kind::Store) {
        access.samples *= if access.service == 0 { 4.0 } else { 0.0 };
        access.address = 0x7000_0000 + apart * u64::from(access.thread);
        access.variable = "counters";
    }
}

fn explained(capture: &Capture) -> Explanation {
    explain(capture, &ExplainOptions::default(), &mut Nowhere)
}

fn is_found(view: &Explanation, planted: &Planted) -> bool {
    view.findings.iter().any(|finding| {
        let said = format!("{} {}", finding.says, finding.details.join(" "));
        planted.topics.contains(&finding.topic) && said.contains(planted.says)
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
