//! `precise check`.

use std::{path::PathBuf, process::ExitCode};

use clap::Args;
use precise::{
    error::{Class, Failure},
    render::TextOptions,
    views::{
        check::{self, Condition, Verdict},
        gates::GateResult,
    },
};

use super::{
    Outcome, Output,
    form::{Form, Printers, read},
    require,
};

const AFTER_HELP: &str = "\
Conditions:
  p99(latency) by cgroup > +10%       a percentile, or mean(latency), against BASE
  p50(latency) > +20 cycles           the same in cycles; 500 cycles is a limit of NEW
  share by function > +2pp            points of all samples
  share(level == RAM hit) > +10%      part of the samples that have a value
  rate > +10%                         events per second; count: of the whole run

It ends with 0 where all pass, 71 where one fails, 72 where the samples do not
tell. docs/check.md has the grammar and the statistics.";

#[derive(Debug, Args)]
#[command(after_help = AFTER_HELP)]
pub struct CheckArguments {
    /// The capture to compare with: before the change
    #[arg(short, long, value_name = "BASE")]
    baseline: PathBuf,
    /// The capture to judge: after the change
    #[arg(value_name = "NEW")]
    new: PathBuf,
    /// Fail where this is so, for certain; several may be given
    #[arg(long, value_name = "CONDITION", required = true, value_parser = parse)]
    fail_on: Vec<Condition>,
    /// Show this many groups of each condition, those that fail first
    #[arg(short = 'n', long, short_alias = 'E', visible_alias = "entries", default_value_t = 20)]
    limit: usize,
    #[command(flatten)]
    form: Form,
}

fn parse(text: &str) -> Result<Condition, String> {
    check::parse(text).map_err(|error| error.to_string())
}

/// Judges a capture by another. Both must hold what is required, before anything is judged by them.
pub fn run(arguments: &CheckArguments, out: &mut Output) -> Outcome {
    let (base, new) = (read(&arguments.baseline)?, read(&arguments.new)?);
    let view = check::check(&base, &new, &arguments.fail_on)
        .map_err(|error| Failure::new(Class::Usage, error.to_string()))?;
    let gates = arguments.form.gates(&base).zip(arguments.form.gates(&new));
    let gates = gates.map(|(base, new)| [base, new].concat());
    let printers = Printers {
        text: |text: &TextOptions| precise::views::check::text::check_text(&view, arguments.limit, text),
        json: |gates: Option<&[GateResult]>| precise::views::document::document(&view, gates),
        csv: |separator: &str| precise::views::check::text::check_csv(&view, separator),
    };
    arguments.form.print(gates.as_deref(), out, printers)?;
    require::check(gates.as_deref())?;
    let sentences = |verdict: Verdict| {
        let found = view.conditions.iter().filter(|judgement| judgement.verdict == verdict);
        found.map(|judgement| judgement.sentence.as_str()).collect::<Vec<_>>().join("\n")
    };
    match view.verdict {
        Verdict::Pass => Ok(ExitCode::SUCCESS),
        Verdict::Fail => Err(Failure::new(Class::Worse, sentences(Verdict::Fail))),
        Verdict::CannotTell => Err(Failure::new(Class::CannotTell, sentences(Verdict::CannotTell))
            .advise("Record both for longer or sample more often, group by less, or allow more.")),
    }
}
