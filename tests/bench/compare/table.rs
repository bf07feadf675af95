//! The answers to a question, as text and as a page.

use std::fmt::Write as _;

use anyhow::{Context as _, Result};
use precise::machine::{MachineInfo, Root};
use precise_tests::quantile::{median, quantile};

use super::contender::{Contender, Tool};
use super::question::Question;

/// The values of all contenders.
pub struct Table {
    question: Question,
    contenders: Vec<Contender>,
    /// The values of each contender, one per round.
    values: Vec<Vec<f64>>,
}

impl Table {
    /// Creates an empty table.
    pub fn new(question: &Question, contenders: &[Contender]) -> Self {
        Self {
            question: *question,
            contenders: contenders.to_vec(),
            values: vec![Vec::new(); contenders.len()],
        }
    }

    /// Adds the value of the contender `at` in this round.
    pub fn add(&mut self, at: usize, value: f64) {
        if let Some(values) = self.values.get_mut(at) {
            values.push(value);
        }
    }

    fn of(&self, tool: Tool) -> Option<&[f64]> {
        let at = self.contenders.iter().position(|contender| contender.tool == tool)?;
        self.values.get(at).map(Vec::as_slice)
    }

    /// Returns what a tool costs in each round: its value, less that without a profiler if there is
    /// one.
    fn costs(&self, tool: Tool) -> Option<Vec<f64>> {
        let values = self.of(tool)?;
        Some(match self.of(Tool::None) {
            Some(without) => values.iter().zip(without).map(|(value, without)| value - without).collect(),
            None => values.to_vec(),
        })
    }

    /// Returns the median of the ratios of precise's cost to that of a peer; `None` if the peer was
    /// not asked, or if in a round its cost was lost in the noise.
    fn ratio(&self, peer: Tool) -> Option<f64> {
        let (ours, theirs) = (self.costs(Tool::Precise)?, self.costs(peer)?);
        if theirs.iter().any(|cost| *cost <= 0.0) {
            return None;
        }
        let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
        median(&ratios)
    }

    /// Returns a sentence if precise costs more, next to perf, than is allowed.
    pub fn beyond_limit(&self) -> Option<String> {
        let (limit, ratio) = (self.question.limit?, self.ratio(Tool::Perf)?);
        (ratio > limit).then(|| {
            format!("{}: {ratio:.2} times perf's cost, and {limit:.2} is the limit", self.question.title)
        })
    }

    /// Returns the table as Markdown.
    pub fn text(&self) -> String {
        let mut out = format!("## {}\n\n", self.question.title);
        let added = self.of(Tool::None).is_some();
        let _ = write!(out, "| | {} | quartiles |", self.question.unit);
        out += if added {
            " added | precise : this |\n| --- | --- | --- | --- | --- |\n"
        } else {
            " precise : this |\n| --- | --- | --- | --- |\n"
        };
        for (contender, values) in self.contenders.iter().zip(&self.values) {
            let tool = contender.tool;
            let quartiles = [0.25, 0.75].map(|part| quantile(values, part).map_or("-".to_owned(), number));
            let _ = write!(
                out,
                "| {} | {} | {} to {} |",
                tool.name(),
                median(values).map_or("-".to_owned(), number),
                quartiles[0],
                quartiles[1]
            );
            if added {
                let cost = if tool == Tool::None { None } else { self.costs(tool) };
                let cost = cost.and_then(|costs| median(&costs));
                let _ = write!(out, " {} |", cost.map_or(String::new(), number));
            }
            let ratio = match tool {
                Tool::None | Tool::Precise => String::new(),
                peer => {
                    self.ratio(peer).map_or("lost in the noise".to_owned(), |ratio| format!("{ratio:.2}"))
                }
            };
            let _ = writeln!(out, " {ratio} |");
        }
        out + "\n"
    }

    /// Returns the commands of the contenders, as Markdown.
    fn commands(&self) -> String {
        let commands = self.contenders.iter().filter_map(|contender| {
            let (program, arguments) = contender.command.split_first()?;
            let program = program.rsplit('/').next().unwrap_or(program);
            Some([&[program.to_owned()], arguments].concat().join(" "))
        });
        format!("```\n{}\n```\n\n", commands.collect::<Vec<_>>().join("\n"))
    }
}

/// Returns the page of all tables.
pub fn page(tables: &[Table]) -> Result<String> {
    let machine = MachineInfo::read(&Root::default()).machine;
    let rounds = tables.first().and_then(|table| table.values.first()).map_or(0, Vec::len);
    let perf = version("perf");
    let bpftrace = version("bpftrace");
    let mut out = format!(
        "# What precise costs next to others\n\n\
         `cargo xtask bench compare --page docs/performance.md` wrote this page: {rounds} rounds on\n\
         {} ({} CPUs, Linux {}),\nwith {perf} and {bpftrace}.\n\n\
         In a round, each contender is measured once, in turn; one that cannot do what is asked is\n\
         missing. The columns are the median, the quartiles, the median of what a profiler added to\n\
         the same round without one, and the median of the ratios of what precise added to what the\n\
         other added: below 1, precise costs less. A ratio is lost in the noise where the other added\n\
         nothing in some round.\n\n",
        machine.cpu, machine.cpus, machine.kernel,
    );
    for table in tables {
        out += &table.text();
        out += &table.commands();
    }
    Ok(out)
}

/// Returns the version that a program prints.
fn version(program: &str) -> String {
    let ran = std::process::Command::new(program).arg("--version").output().context("not installed");
    match ran {
        Ok(ran) => String::from_utf8_lossy(&ran.stdout).trim().trim_end_matches('.').to_owned(),
        Err(_) => format!("no {program}"),
    }
}

/// Returns a number with three digits that count.
fn number(value: f64) -> String {
    match value.abs() {
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}
