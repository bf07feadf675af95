//! The causes that are planted.

use super::super::Topic;
use super::{Access, EPOCHS, Kind};

/// A cause, at three strengths, and what must be said of it.
pub(super) struct Planted {
    pub(super) name: &'static str,
    pub(super) strengths: [f64; 3],
    pub(super) unit: &'static str,
    pub(super) topics: &'static [Topic],
    /// What one finding must say: all of these.
    pub(super) says: &'static [&'static str],
    pub(super) plant: fn(f64, &mut Access),
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

pub(super) const KINDS: &[Planted] = &[
    Planted {
        name: "memory of another node",
        strengths: [4.0, 8.0, 30.0],
        unit: "% of the accesses",
        topics: &[Topic::RemoteMemory],
        says: &[],
        plant: |share, access| part(share, Kind::Remote, access),
    },
    Planted {
        name: "a neighbour evicts a service's lines from 20 to 45 s",
        strengths: [6.0, 10.0, 30.0],
        unit: "% of its accesses go to memory",
        topics: &[Topic::Change],
        says: &["/web", "/cron took"],
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
        says: &[],
        plant: |share, access| part(share, Kind::Walk, access),
    },
    Planted {
        name: "false sharing of a line",
        strengths: [4.0, 8.0, 30.0],
        unit: "% of the loads",
        topics: &[Topic::FalseSharing],
        says: &["counters"],
        plant: |share, access| {
            shared(share, 8, access);
        },
    },
    Planted {
        name: "true sharing of a line",
        strengths: [4.0, 8.0, 30.0],
        unit: "% of the loads",
        topics: &[Topic::TrueSharing],
        says: &["counters"],
        plant: |share, access| {
            shared(share, 0, access);
        },
    },
    Planted {
        name: "a service takes most of the samples",
        strengths: [45.0, 65.0, 90.0],
        unit: "% of all",
        topics: &[Topic::OneUser],
        says: &["/db"],
        plant: |share, access| dominate(share, 25.0, access.service == 2, access),
    },
    Planted {
        name: "a thread takes most of the samples",
        strengths: [40.0, 60.0, 90.0],
        unit: "% of all",
        topics: &[Topic::OneUser],
        says: &["1012"],
        plant: |share, access| {
            dominate(share, 6.25, access.service == 1 && access.thread == 2, access);
        },
    },
    Planted {
        name: "a cache line takes most of the waiting",
        strengths: [2.0, 10.0, 50.0],
        unit: "% of the accesses",
        topics: &[Topic::OneUser],
        says: &["0x7f0040"],
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
        says: &["table"],
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
        says: &["CPU 3"],
        plant: |times, access| access.latency *= if access.thread == 3 { times } else { 1.0 },
    },
    Planted {
        name: "one service is slow",
        strengths: [1.5, 2.5, 6.0],
        unit: "times the latency",
        topics: &[Topic::LatencyTail],
        says: &["db"],
        plant: |times, access| access.latency *= if access.service == 2 { times } else { 1.0 },
    },
    Planted {
        name: "latencies rise all the time",
        strengths: [1.2, 2.0, 5.0],
        unit: "times at the end",
        topics: &[Topic::Change],
        says: &["/web"],
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
        says: &["/api"],
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
        says: &["/cron"],
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
        says: &["RAM"],
        plant: |share, access| part(share, Kind::Memory, access),
    },
    Planted {
        name: "a few accesses to memory of another node, which take 1,500 cycles",
        strengths: [0.3, 1.0, 3.0],
        unit: "% of the accesses",
        topics: &[Topic::RemoteMemory],
        says: &["/db"],
        plant: |share, access| {
            part(share, Kind::Remote, access);
            if access.kind == Kind::Remote {
                access.samples *= if access.service == 2 { 4.0 } else { 0.0 };
                access.latency = 1500.0;
            }
        },
    },
    Planted {
        name: "a neighbour slows a service for 5 s of each 15 s",
        strengths: [1.2, 1.4, 2.0],
        unit: "times the latency",
        topics: &[Topic::Change],
        says: &["/web", "/cron took"],
        plant: |times, access| {
            let on = access.epoch % 15 < 5;
            match access.service {
                3 => access.samples *= if on { 3.0 } else { 0.1 },
                0 if on => access.latency *= times,
                _ => {}
            }
        },
    },
    Planted {
        name: "a neighbour slows a service from 8 to 16 s and from 33 to 45 s",
        strengths: [1.2, 1.4, 2.0],
        unit: "times the latency",
        topics: &[Topic::Change],
        says: &["/web", "/cron took", "from 8.00 s to 16.0 s and from 33.0 s to 45.0 s"],
        plant: |times, access| {
            let on = (8..16).contains(&access.epoch) || (33..45).contains(&access.epoch);
            match access.service {
                3 => access.samples *= if on { 3.0 } else { 0.1 },
                0 if on => access.latency *= times,
                _ => {}
            }
        },
    },
    Planted {
        name: "a neighbour goes to memory from 20 to 35 s, as often as it went elsewhere, and slows a service",
        strengths: [1.2, 1.4, 2.0],
        unit: "times the latency",
        topics: &[Topic::Change],
        says: &["of /web", "of /cron"],
        plant: |times, access| match access.service {
            _ if !(20..35).contains(&access.epoch) => {}
            3 => part(40.0, Kind::Memory, access),
            0 => access.latency *= times,
            _ => {}
        },
    },
    Planted {
        name: "memory is slow for everybody from 25 to 40 s",
        strengths: [1.2, 1.4, 2.5],
        unit: "times its latency",
        topics: &[Topic::Change],
        says: &["from 25.0 s to 40.0 s", "/web", "/api", "/db", "/cron"],
        plant: |times, access| {
            if access.kind == Kind::Memory && (25..40).contains(&access.epoch) {
                access.latency *= times;
            }
        },
    },
    Planted {
        name: "cold caches for the first 6 s",
        strengths: [8.0, 20.0, 50.0],
        unit: "% of the accesses go to memory",
        topics: &[Topic::Change],
        says: &["from 0.00 s to 6.00 s", "/web", "/api", "/db", "/cron"],
        plant: |share, access| {
            if access.epoch < 6 {
                part(share, Kind::Memory, access);
            }
        },
    },
    Planted {
        name: "a service is held up for 3 s of each 10 s",
        strengths: [0.8, 0.6, 0.0],
        unit: "times its rate",
        topics: &[Topic::Change],
        says: &["/api"],
        plant: |times, access| {
            access.samples *= if access.service == 1 && access.epoch % 10 < 3 { times } else { 1.0 };
        },
    },
    Planted {
        name: "most of the waiting is for the L3 cache",
        strengths: [20.0, 60.0, 80.0],
        unit: "% of the accesses go there",
        topics: &[Topic::Waiting],
        says: &["L3"],
        plant: |share, access| match access.kind {
            Kind::L3 => access.samples = share,
            Kind::L1 => access.samples = 95.0 - share,
            _ => {}
        },
    },
    Planted {
        name: "a page takes most of the waiting",
        strengths: [2.0, 10.0, 50.0],
        unit: "% of the accesses",
        topics: &[Topic::OneUser],
        says: &["page: 0x7f0000"],
        plant: |share, access| {
            part(share, Kind::Memory, access);
            if access.kind == Kind::Memory {
                access.address = 0x7f_0000 + 64 * (access.address >> 12 & 63);
            }
        },
    },
    Planted {
        name: "a hot function",
        strengths: [45.0, 60.0, 90.0],
        unit: "% of the samples",
        topics: &[Topic::HotSpot],
        says: &["web_9"],
        plant: |share, access| {
            // All samples of one service are in the function.
            if access.service == 0 {
                access.function = 9;
            }
            dominate(share, 25.0, access.service == 0, access);
        },
    },
    Planted {
        name: "memory gets slower all the time for one service",
        strengths: [1.3, 2.0, 4.0],
        unit: "times its latency at the end",
        topics: &[Topic::Change],
        says: &["/web"],
        plant: |times, access| {
            if access.service == 0 && access.kind == Kind::Memory {
                access.latency *= 1.0 + (times - 1.0) * f64::from(access.epoch) / f64::from(EPOCHS);
            }
        },
    },
    Planted {
        name: "two neighbours slow a service in turn, for 8 s each, one of them more",
        strengths: [1.2, 1.5, 2.5],
        unit: "times the latency",
        topics: &[Topic::Change],
        says: &["/web", "/cron took", "/db"],
        plant: |times, access| {
            let first = access.epoch / 8 % 2 == 0;
            match access.service {
                3 => access.samples *= if first { 3.0 } else { 0.1 },
                2 => access.samples *= if first { 0.1 } else { 3.0 },
                0 if first => access.latency *= times,
                _ => {}
            }
        },
    },
    Planted {
        name: "memory of the CPUs of one node is on another from 30 s on",
        strengths: [20.0, 50.0, 100.0],
        unit: "% of their accesses to memory",
        topics: &[Topic::Change, Topic::RemoteMemory],
        says: &["from 30.0 s to 60.0 s", "memory of another node"],
        plant: |share, access| {
            if access.thread >= 2 && access.epoch >= 30 {
                match access.kind {
                    Kind::Memory => access.samples = 25.0 * (1.0 - share / 100.0),
                    Kind::Remote => access.samples = 25.0 * share / 100.0,
                    _ => {}
                }
            } else if access.kind == Kind::Memory {
                access.samples = 25.0;
            }
        },
    },
    Planted {
        name: "a page takes page walks and most of the waiting",
        strengths: [2.0, 10.0, 40.0],
        unit: "% of the accesses",
        topics: &[Topic::OneUser],
        says: &["page: 0x7f0000"],
        plant: |share, access| {
            part(share, Kind::Walk, access);
            if access.kind == Kind::Walk {
                access.address = 0x7f_0000 + 64 * (access.address >> 12 & 63);
            }
        },
    },
    Planted {
        name: "a service loses its huge pages at 25 s",
        strengths: [8.0, 20.0, 50.0],
        unit: "% of its accesses need a page walk",
        topics: &[Topic::Change],
        says: &["/db", "needed a page walk", "from 25.0 s to 60.0 s"],
        plant: |share, access| {
            if access.service == 2 && access.epoch >= 25 {
                part(share, Kind::Walk, access);
            }
        },
    },
    Planted {
        name: "a lock is contended from 15 to 28 s",
        strengths: [4.0, 10.0, 40.0],
        unit: "% of a service's loads",
        topics: &[Topic::Change],
        says: &["/api", "found the line modified", "from 15.0 s to 28.0 s"],
        plant: |share, access| {
            if access.service == 1 && (15..28).contains(&access.epoch) {
                part(share, Kind::Modified, access);
            }
        },
    },
    Planted {
        name: "a burst of 2 s slows a service",
        strengths: [1.05, 1.5, 5.0],
        unit: "times the latency",
        topics: &[Topic::Change],
        says: &["/api", "from 40.0 s to 42.0 s"],
        plant: |times, access| {
            let burst = access.service == 1 && (40..42).contains(&access.epoch);
            access.latency *= if burst { times } else { 1.0 };
        },
    },
    Planted {
        name: "a service stops for 1 s",
        strengths: [0.8, 0.3, 0.0],
        unit: "times its rate",
        topics: &[Topic::Change],
        says: &["/web", "from 37.0 s to 38.0 s"],
        plant: |times, access| {
            access.samples *= if access.service == 0 && access.epoch == 37 { times } else { 1.0 };
        },
    },
    Planted {
        name: "the samples of a service fall steadily",
        strengths: [80.0, 60.0, 25.0],
        unit: "% of its rate are left at the end",
        topics: &[Topic::Change],
        says: &["/db", "a second"],
        plant: |left, access| {
            if access.service == 2 {
                access.samples *= 1.0 - (1.0 - left / 100.0) * access.epoch as f64 / EPOCHS as f64;
            }
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
