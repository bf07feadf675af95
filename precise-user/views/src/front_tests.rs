//! Tests of the views of the front end on captures made by hand.

use precise_common::ibs::Outcome as Bits;

use super::branches::{Basis, BranchOptions, branches};
use super::code::Code;
use super::fetch::{Fact, FetchOptions, fetch};
use super::stats::Share;
use precise_code::{Branch, BranchKind, FunctionId, Instruction, Place};
use precise_model::TaggedOf;
use precise_model::keys::Key;
use precise_model::testing::{Builder, intel};
use precise_model::{Capture, Dimension, EventInfo, Fields, Outcome, PmuKind, Reason};
use precise_model::{CpuId, Vendor};

fn of_ibs(name: &str, pmu: PmuKind, tagged: TaggedOf) -> Builder {
    let mut builder = Builder::new();
    let meta = builder.meta();
    meta.machine.cpu_id = Some(CpuId { vendor: Vendor::Amd, family: 0x19, model: 0x11, ..CpuId::default() });
    let event = &mut meta.events[0];
    (event.name, event.pmu, event.tagged) = (name.into(), pmu, Some(tagged));
    builder
}

/// Fetches of a Zen 4: `parse` is starved, `sum` is not.
pub fn starved() -> Capture {
    let mut builder = of_ibs("fetch", PmuKind::IbsFetch, TaggedOf::Fetch);
    let good = Bits::COMPLETED | Bits::PHYSICAL_VALID;
    for (function, bits, samples, latency) in [
        ("sum", good, 600, 5),
        ("parse", good | Bits::IC_MISS, 200, 60),
        ("parse", good | Bits::IC_MISS | Bits::FETCH_L2_MISS | Bits::ITLB_L1_MISS, 50, 300),
        ("parse", Bits::PHYSICAL_VALID, 100, 20),
        ("parse", 0, 50, 2),
    ] {
        let ip = 0x1000 + u64::from(latency);
        let mut cell = builder.cell().samples(samples).latency(latency).code(ip, "/bin/app", function, "", 0);
        cell.row().outcome = Some(Outcome::Fetch(bits));
    }
    builder.build()
}

#[test]
fn fetches_are_counted_by_what_became_of_them() {
    let view = fetch(&starved(), &FetchOptions::default()).unwrap();
    let section = &view.sections[0];
    let of = |fact| section.facts.iter().find(|known| known.fact == fact).unwrap();
    for (fact, samples) in [
        (Fact::Attempted, 950),
        (Fact::Killed, 50),
        (Fact::Completed, 850),
        (Fact::Aborted, 100),
        (Fact::Waited, 350),
        (Fact::IcMiss, 250),
        (Fact::L2Miss, 50),
        (Fact::ItlbMiss, 50),
        (Fact::ItlbWalk, 0),
        (Fact::OpCacheMiss, 0),
    ] {
        assert_eq!(of(fact).samples, Some(samples), "{fact:?}");
    }
    assert_eq!(of(Fact::IcMiss).share, Some(Share::wilson(250, 950)));
    assert_eq!(of(Fact::Killed).share, Some(Share::wilson(50, 1000)));
    let [parse, sum] = &section.groups[..] else { panic!("{:?}", section.groups) };
    assert_eq!((parse.values[0].text(), sum.values[0].text()), ("parse".into(), "sum".into()));
    // Killed fetches have no part in the time.
    let cycles = 200 * 60 + 50 * 300 + 100 * 20;
    assert_eq!(parse.average, Some(f64::from(cycles) / 350.0));
    assert!((parse.share.value - f64::from(cycles) / f64::from(cycles + 3000)).abs() < 1e-9);
}

#[test]
fn what_a_cpu_or_a_capture_does_not_say_is_not_known() {
    let mut capture = starved();
    capture.meta.machine.cpu_id = None;
    capture.meta.dimensions.retain(|d| *d != Dimension::Latency);
    let view = fetch(&capture, &FetchOptions::default()).unwrap();
    let unknown: Vec<_> =
        view.sections[0].facts.iter().filter(|k| k.samples.is_none()).map(|k| k.fact).collect();
    assert_eq!(unknown, [Fact::Waited, Fact::OpCacheMiss, Fact::L3Miss]);
    capture.meta.dimensions.retain(|d| *d != Dimension::Outcome);
    let error = fetch(&capture, &FetchOptions::default()).unwrap_err().to_string();
    assert!(error.contains("`precise record -e fetch --by ip,"), "{error}");
    let few = FetchOptions { min_samples: 2000, ..FetchOptions::default() };
    let few = fetch(&starved(), &few).unwrap();
    assert_eq!((few.sections[0].too_few, few.sections[0].groups.len()), (Some(2000), 0));
}

/// Two events of Intel's front end.
pub fn retired() -> Capture {
    let mut builder = Builder::new();
    let meta = builder.meta();
    meta.dimensions = vec![Dimension::Ip];
    let event = |name: &str| EventInfo {
        name: name.into(),
        encoding: "cpu/event=0xc6,umask=0x1/ppp".into(),
        pmu: intel(0xc6, 0x01),
        period: Some(1000),
        fields: Fields::default(),
        ..EventInfo::default()
    };
    meta.events = vec![event("frontend_retired.latency_ge_16"), event("frontend_retired.l1i_miss")];
    for (index, function, samples) in [(0, "parse", 150), (0, "sum", 50), (1, "parse", 120)] {
        builder.cell().event(index).samples(samples).code(0x1000, "/bin/app", function, "", 0);
    }
    builder.build()
}

#[test]
fn events_of_the_front_end_share_the_table() {
    let view = fetch(&retired(), &FetchOptions::default()).unwrap();
    let [section] = &view.sections[..] else { panic!("{} sections", view.sections.len()) };
    let known: Vec<_> =
        section.facts.iter().filter_map(|k| Some((k.fact, k.samples?, k.period_sum?))).collect();
    assert_eq!(known, [(Fact::Waited, 200, 200_000), (Fact::IcMiss, 120, 120_000)]);
    assert!(
        section.facts.iter().all(|known| known.share.is_none()),
        "no rate of what is an event of its own"
    );
    let parse = &section.groups[0];
    assert_eq!((parse.values[0].text(), parse.share), ("parse".into(), Share::wilson(150, 200)));
    let of = |fact| section.groups[1].facts.iter().find(|known| known.fact == fact).unwrap().samples;
    assert_eq!((of(Fact::Waited), of(Fact::IcMiss), of(Fact::Aborted)), (Some(50), Some(0), None));
}

/// A function of four branches, each four bytes.
pub struct Loop(pub Result<(), Reason>);

impl Code for Loop {
    fn instructions(&mut self, _: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        self.0?;
        let branch = |kind, target| Some(Branch { kind, target });
        let all = [
            branch(BranchKind::Conditional, Some(0x5008)),
            branch(BranchKind::IndirectJump, None),
            None,
            branch(BranchKind::Conditional, Some(0x9000)),
        ];
        let list = (0u64..).zip(all).map(|(i, branch)| Instruction {
            offset: 4 * i,
            address: 0x5000 + 4 * i,
            length: 4,
            text: String::new(),
            accessed: None,
            branch,
            frames: Vec::<Place>::new(),
            decoded: Default::default(),
        });
        Ok(list.collect())
    }

    fn source(&mut self, _: &str, _: u32) -> Option<String> {
        None
    }
}

/// Branches with outcome and target: one unpredictable, one indirect with two targets, one fused with its compare.
pub fn mispredicted() -> Capture {
    let mut builder = of_ibs("branches", PmuKind::IbsOp, TaggedOf::Branch);
    let (taken, missed) = (Bits::BRANCH | Bits::TAKEN, Bits::MISPREDICTED);
    for (offset, bits, samples, target) in [
        (0, taken | missed, 90, 0x5008),
        (0, taken, 110, 0x5008),
        (0, Bits::BRANCH | missed, 60, 0),
        (0, Bits::BRANCH, 140, 0),
        (4, taken | missed, 30, 0x7000),
        (4, taken, 10, 0x8000),
        (8, Bits::BRANCH | Bits::FUSED, 100, 0),
        (0, 0, 7, 0),
    ] {
        let mut cell = builder.cell().samples(samples).code(0x1000 + offset, "/bin/app", "parse", "", 0);
        cell.row().outcome = Some(Outcome::Op(bits));
        if target != 0 {
            cell.data(target, "[anon]", "");
        }
    }
    builder.build()
}

#[test]
fn branches_by_their_site() {
    let view = branches(&mispredicted(), &BranchOptions::default(), &mut Loop(Ok(()))).unwrap();
    let event = &view.events[0];
    assert_eq!((event.branches, event.mispredicted, event.without), (540, 180, 7));
    assert_eq!(event.rate, Some(Share::wilson(180, 540)));
    let [conditional, indirect, fused] = &event.sites[..] else { panic!("{:?}", event.sites) };
    assert_eq!((conditional.place.as_str(), conditional.kind), ("parse+0x0", Some(BranchKind::Conditional)));
    assert_eq!(conditional.rate, Some(Share::wilson(150, 400)));
    assert_eq!(conditional.taken, Some(Share::wilson(200, 400)));
    assert_eq!(conditional.share, Share::wilson(150, 180));
    let target = conditional.target.as_ref().unwrap();
    assert_eq!((target.to.as_str(), target.sampled), ("+0x8", false));
    assert_eq!(indirect.kind, Some(BranchKind::IndirectJump));
    let target = indirect.target.as_ref().unwrap();
    assert_eq!((target.to.as_str(), target.sampled, target.others), ("0x7000", true, 1));
    assert_eq!(fused.kind, Some(BranchKind::Conditional), "the compare's address stands for both");
}

#[test]
fn code_that_cannot_be_read_has_a_reason_and_no_kind() {
    let code = &mut Loop(Err(Reason::FileChanged));
    let view = branches(&mispredicted(), &BranchOptions::default(), code).unwrap();
    let site = &view.events[0].sites[0];
    assert_eq!((site.kind, site.no_code), (None, Some(Reason::FileChanged)));
    assert_eq!(site.target.as_ref().unwrap().to, "0x5008", "the samples say it");
}

#[test]
fn mispredictions_alone_have_no_rate() {
    let mut capture = retired();
    capture.meta.events[0].name = "br_misp_retired.all_branches".into();
    let view = branches(&capture, &BranchOptions::default(), &mut Loop(Ok(()))).unwrap();
    let [event] = &view.events[..] else { panic!("{} events", view.events.len()) };
    assert_eq!((event.basis, event.branches, event.rate), (Basis::Mispredictions, 200, None));
    assert!(event.sites.iter().all(|site| site.rate.is_none() && site.taken.is_none()));
    let error = branches(&retired(), &BranchOptions::default(), &mut Loop(Ok(()))).unwrap_err().to_string();
    assert!(error.contains("`precise record -e branches`"), "{error}");
}

#[test]
fn keys_of_other_dimensions_are_refused_with_the_command() {
    let by = FetchOptions { by: Some(vec![Key::Cgroup]), ..FetchOptions::default() };
    let error = fetch(&retired(), &by).unwrap_err().to_string();
    assert!(error.contains("--by ip,cgroup`"), "{error}");
}
