//! `precise check` as a view of the registry.

use precise_model::keys::Key;
use precise_model::{Meta, Preset, Projection, RowPart};

use super::csv::check_csv;
use super::text::check_text;
use super::{CheckReport, Condition, ConditionVerdict, check, parse};
use crate::document::document_type;
use crate::render::TextOptions;
use crate::view::{
    Captures, Example, Heading, Input, Judgement, Need, NoAnswer, Opt, OptionKind, OptionValues, View,
};

/// The view `precise check`.
#[derive(Debug)]
pub struct CheckView;

document_type!(CheckReport: "check" 1);

impl View for CheckView {
    const NAME: &'static str = "check";
    const ABOUT: &'static str = "Fail if a capture is significantly worse than another";
    const EXAMPLES: &'static [Example] = &[
        Example {
            command: "precise check -b old.parquet new.parquet --fail-on 'p99(latency) by cgroup > +10%'",
            says: "Fail a deploy if the slowest accesses of a service became more than 10 % slower.",
        },
        Example {
            command: "precise check -b old.parquet new.parquet --fail-on 'share by function > +2pp'",
            says: "Fail if the share of a function grew by more than two percentage points.",
        },
    ];
    const MORE: &'static str = "\
Conditions:
  p99(latency) by cgroup > +10%       a percentile, or mean(latency), against BASE
  p50(latency) > +20 cycles           the same in cycles; 500 cycles is a limit of NEW
  share by function > +2pp            points of all samples
  share(level == RAM hit) > +10%      part of the samples that have a value
  rate > +10%                         events per second; count: of the whole run

The exit code is 0 if every condition passes, 71 if one fails, and 72 if the
samples cannot tell. docs/check.md has the grammar and the statistics.";
    const NEEDS: Need = Need { dimensions: &[], preset: Preset::Loads };
    const CAPTURES: Captures = Captures::Baseline;
    const OPTIONS: &'static [Opt] = &[
        Opt::new(
            "fail-on",
            OptionKind::Checked(is_condition),
            "CONDITION",
            "Fail if the samples show that CONDITION holds; may be given several times",
        )
        .several()
        .required("p99(latency) by cgroup > +10%")
        .heading(Heading::Gates),
        Opt::limit("20", "Show N groups of each condition, those that fail first"),
    ];
    type Options = (Vec<Condition>, usize);
    type Answer = CheckReport;

    fn options(values: &OptionValues) -> Result<Self::Options, NoAnswer> {
        let conditions = values.all("fail-on").iter().map(|text| parse(text)).collect::<Result<_, _>>();
        let conditions = conditions.map_err(|error| NoAnswer::usage(error.to_string()))?;
        Ok((conditions, values.number("limit")?))
    }

    fn keys((conditions, _): &Self::Options) -> Vec<Key> {
        conditions.iter().flat_map(Condition::keys).collect()
    }

    fn reads(_: &Self::Options, _: &Meta) -> Projection {
        Projection::of(&[RowPart::Latency])
    }

    fn answer(input: &mut Input<'_>, (conditions, _): &Self::Options) -> Result<CheckReport, NoAnswer> {
        check(input.base()?, input.capture, conditions).map_err(|error| NoAnswer::usage(error.to_string()))
    }

    fn text(answer: &CheckReport, (_, limit): &Self::Options, text: &TextOptions) -> String {
        check_text(answer, *limit, text)
    }

    fn csv(answer: &CheckReport, _: &Self::Options, separator: &str) -> String {
        check_csv(answer, separator)
    }

    fn judgement(answer: &CheckReport) -> Judgement {
        let text = |verdict: ConditionVerdict| {
            let found = answer.conditions.iter().filter(|judgement| judgement.verdict == verdict);
            found.map(|judgement| judgement.sentence.as_str()).collect::<Vec<_>>().join("\n")
        };
        match answer.verdict {
            ConditionVerdict::Pass => Judgement::Pass,
            ConditionVerdict::Fail => Judgement::Worse(text(ConditionVerdict::Fail)),
            ConditionVerdict::CannotTell => Judgement::CannotTell {
                text: text(ConditionVerdict::CannotTell),
                advice: "Record both for longer or sample more often, group by less, or allow more.",
            },
        }
    }

    #[cfg(test)]
    fn trials() -> crate::view::trial::Trials {
        use super::tests::capture;
        use crate::view::trial::{Trial, Trials};
        let load = || Trial::pair(capture(20_000, 1.0), capture(20_000, 1.5), 2);
        Trials::Weighs(vec![
            load().with("fail-on", "share by cgroup > +5pp"),
            load().with("fail-on", "mean(latency) > +10%"),
        ])
    }
}

fn is_condition(text: &str) -> Result<(), String> {
    parse(text).map(drop).map_err(|error| error.to_string())
}
