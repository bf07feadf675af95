//! Tests of `precise branches` on synthetic captures.

use precise_code::{Branch, BranchKind, FunctionId, Instruction, SourceLine};
use precise_common::ibs::OutcomeBits as Bits;
use precise_model::PmuKind;
use precise_model::{Capture, Outcome, Reason, TaggedOf};

use super::csv::branches_csv;
use super::text::branches_text;
use super::{BranchBasis, BranchOptions, branches};
use crate::code::Code;
use crate::fetch::tests::retired;
use crate::render::TextOptions;
use crate::stats::Share;
use crate::testing::{csv_has_a_field_for_each_name, of_ibs, shown};

/// A function of four branches, each four bytes long.
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
            frames: Vec::<SourceLine>::new(),
            decoded: Default::default(),
        });
        Ok(list.collect())
    }

    fn source(&mut self, _: &str, _: u32) -> Option<String> {
        None
    }
}

/// Branches with outcome and target: one is unpredictable, one is indirect with two targets, one is
/// fused with its compare.
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
    assert_eq!((event.basis, event.branches, event.rate), (BranchBasis::Mispredictions, 200, None));
    assert!(event.sites.iter().all(|site| site.rate.is_none() && site.taken.is_none()));
    let error = branches(&retired(), &BranchOptions::default(), &mut Loop(Ok(()))).unwrap_err().to_string();
    assert!(error.contains("`precise record -e branches`"), "{error}");
}

#[test]
fn branches_at_80_columns() {
    let view = branches(&mispredicted(), &BranchOptions::default(), &mut Loop(Ok(()))).unwrap();
    shown("branches.md", "sites", &branches_text(&view, &TextOptions::default()));
}

#[test]
fn csv_is_complete() {
    let view = branches(&mispredicted(), &BranchOptions::default(), &mut Loop(Ok(()))).unwrap();
    csv_has_a_field_for_each_name(&branches_csv(&view, "|"), '|');
}
