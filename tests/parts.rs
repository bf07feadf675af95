//! Every view answers the same if only the parts of rows are read that it says it reads.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use precise::capture::{CaptureFile as _, ReadLimits};
use precise::code::{FunctionId, Instruction};
use precise::import::{ImportOptions, import};
use precise::model::{Capture, Dimension, Meta, Projection, Reason};
use precise::views::code::Code;
use precise::views::narrow::{WantedPart, narrow};
use precise::views::registry::VIEWS;
use precise::views::render::TextOptions;
use precise::views::view::{AnyView, Captures, Input, OptionValues};
use precise::views::{idle, typing};

/// The options with which the views are asked, beside the usual ones. Each is taken where a view
/// has it.
const OPTIONS: [&[(&str, &str)]; 12] = [
    &[],
    &[("by", "function,process")],
    &[("by", "line,cgroup,symoff")],
    &[("by", "variable,region,page,address")],
    &[("by", "ip,module,stack,kernel")],
    &[("by", "thread,tid,cpu,node,epoch")],
    &[("by", "level,snoop,tlb,op,locked,remote,latency,page-size,outcome"), ("sort", "latency")],
    &[("by", "type,field")],
    &[("axis", "address"), ("panels", "process")],
    &[("axis", "function"), ("panels", "event")],
    &[("axis", "latency"), ("panels", "none")],
    &[("fail-on", "share by function > +5pp"), ("by", "latency")],
];

/// Captures of all recordings of the repository, by few and by all dimensions.
fn captures(folder: &Path) -> Result<Vec<PathBuf>> {
    let recordings = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings");
    let mut captures = Vec::new();
    for recording in fs::read_dir(recordings)? {
        let recording = recording?;
        let input = recording.path().join("perf.data");
        if !input.is_file() {
            continue;
        }
        let name = recording.file_name().to_string_lossy().into_owned();
        let few = vec![Dimension::Ip, Dimension::Process];
        for (kind, dimensions) in
            [("usual", None), ("few", Some(few)), ("all", Some(Dimension::ALL.to_vec()))]
        {
            let output = folder.join(format!("{name}-{kind}.parquet"));
            let options = ImportOptions {
                input: input.clone(),
                output: output.clone(),
                dimensions,
                epoch: Some(std::time::Duration::from_millis(10)),
                ..ImportOptions::default()
            };
            // Not every recording has what every dimension needs.
            if import(&options).is_ok() {
                captures.push(output);
            }
        }
    }
    Ok(captures)
}

struct NoFiles;

impl Code for NoFiles {
    fn instructions(&mut self, _: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        Err(Reason::FileMissing)
    }

    fn source(&mut self, _: &str, _: u32) -> Option<String> {
        None
    }
}

/// A question: the view, its options, and the part of the run that it is asked about.
struct Asked<'a> {
    view: &'a dyn AnyView,
    values: &'a OptionValues,
    part: &'a WantedPart,
}

impl Asked<'_> {
    fn reads(&self, meta: &Meta) -> Projection {
        let reads = self.view.reads(self.values, meta).unwrap_or(Projection::EVERYTHING);
        reads.and(self.part.reads()).and(idle::reads(meta))
    }

    /// Returns the answer as text and JSON, or why there is none. Of the rows only these parts are
    /// read.
    fn answer(&self, file: &Path, parts: &dyn Fn(&Meta) -> Projection) -> Result<[String; 2]> {
        let mut capture = Capture::read_parts(file, &ReadLimits::default(), parts)?;
        idle::leave_out(&mut capture, false);
        let mut capture = match narrow(capture, self.part) {
            Ok(capture) => capture,
            Err(why) => return Ok([why.to_string(), String::new()]),
        };
        let mut code = NoFiles;
        let keys = self.view.keys(self.values).unwrap_or_default();
        typing::look_up(&mut capture, &keys, &mut code);
        let base = capture.clone();
        let mut input = match self.view.description().captures {
            Captures::One => Input::of(&capture, &mut code),
            Captures::Pair | Captures::Baseline => Input::pair(&base, &capture, &mut code),
        };
        Ok(match self.view.answer(&mut input, self.values) {
            Ok(answer) => {
                let text = answer.text(&TextOptions { width: 200, ..TextOptions::default() });
                [text, answer.json(None, None)?]
            }
            Err(why) => [why.to_string(), String::new()],
        })
    }
}

fn values(view: &dyn AnyView, options: &[(&'static str, &str)]) -> Option<OptionValues> {
    let known = view.description().options;
    let mut values = OptionValues::defaults(known);
    let mut taken = 0;
    for (name, value) in options {
        if known.iter().any(|option| option.name == *name) {
            values = values.with(name, value);
            taken += 1;
        }
    }
    // A question that was asked already is not asked again.
    (taken == options.len() || known.iter().any(|option| option.required.is_some())).then_some(values)
}

#[test]
fn every_view_answers_the_same_of_the_parts_that_it_reads() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let captures = captures(folder.path())?;
    ensure!(captures.len() >= 15, "{} captures", captures.len());
    let everything = WantedPart::default();
    let (mut answered, mut projected) = (0, 0);
    for file in &captures {
        let meta = Capture::read(file)?.meta;
        for view in VIEWS {
            let name = view.description().name;
            for options in OPTIONS {
                let Some(values) = values(*view, options) else { continue };
                let asked = Asked { view: *view, values: &values, part: &everything };
                let whole = asked.answer(file, &|_| Projection::EVERYTHING)?;
                let parts = asked.answer(file, &|meta| asked.reads(meta))?;
                let what = || format!("{name} {options:?} of {}", file.display());
                ensure!(whole[0] == parts[0], "{}:\n{}\n{}", what(), whole[0], parts[0]);
                same(&whole[1], &parts[1]).with_context(what)?;
                answered += usize::from(!whole[1].is_empty());
                projected += usize::from(asked.reads(&meta) != Projection::EVERYTHING);
            }
        }
    }
    ensure!(answered > 500 && projected > 500, "{answered} answers, {projected} of parts of rows");
    Ok(())
}

/// The filter of a question is of rows whose parts it tests, too.
#[test]
fn a_filter_reads_what_it_tests() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let captures = captures(folder.path())?;
    let view = precise::views::registry::find("report").context("no report")?;
    let values = OptionValues::defaults(view.description().options).with("by", "kernel");
    let mut answered = 0;
    for filter in
        ["pid > 0", "comm == nothing || latency >= 64", "addr >= 0x1000", "user", "mem_op == load", "tid > 0"]
    {
        let flags = precise::filter::FilterFlags::default().with_filter(filter)?;
        let part = WantedPart { flags, time: None };
        let asked = Asked { view, values: &values, part: &part };
        for file in &captures {
            let whole = asked.answer(file, &|_| Projection::EVERYTHING)?;
            let parts = asked.answer(file, &|meta| asked.reads(meta))?;
            ensure!(whole[0] == parts[0], "{filter} of {}:\n{}\n{}", file.display(), whole[0], parts[0]);
            same(&whole[1], &parts[1]).with_context(|| format!("{filter} of {}", file.display()))?;
            answered += usize::from(!whole[1].is_empty());
        }
    }
    ensure!(answered > 5, "{answered} answers");
    Ok(())
}

/// Compares two JSON documents. Numbers may differ by what the order of additions makes.
fn same(whole: &str, parts: &str) -> Result<()> {
    if whole == parts {
        return Ok(());
    }
    let [whole, parts] = [whole, parts].map(serde_json::from_str::<serde_json::Value>);
    compare(&whole?, &parts?, "")
}

fn compare(whole: &serde_json::Value, parts: &serde_json::Value, at: &str) -> Result<()> {
    use serde_json::Value::{Array, Number, Object};
    match (whole, parts) {
        (Object(whole), Object(parts)) => {
            ensure!(whole.keys().eq(parts.keys()), "{at}: other keys");
            whole
                .iter()
                .zip(parts.values())
                .try_for_each(|((key, whole), parts)| compare(whole, parts, &format!("{at}.{key}")))
        }
        (Array(whole), Array(parts)) => {
            ensure!(whole.len() == parts.len(), "{at}: {} and {} elements", whole.len(), parts.len());
            let pairs = whole.iter().zip(parts).enumerate();
            pairs.into_iter().try_for_each(|(i, (whole, parts))| compare(whole, parts, &format!("{at}[{i}]")))
        }
        (Number(a), Number(b)) if !a.is_u64() => {
            let (a, b) = (a.as_f64().unwrap_or_default(), b.as_f64().unwrap_or_default());
            ensure!((a - b).abs() <= 1e-9 * a.abs().max(1.0), "{at}: {a} and {b}");
            Ok(())
        }
        (whole, parts) => {
            ensure!(whole == parts, "{at}: {whole} and {parts}");
            Ok(())
        }
    }
}
