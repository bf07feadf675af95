//! The answers to a question, as text.

use std::fmt::Write as _;

use precise_tests::quantile::{median, quantile};

use super::question::Question;
use super::tool::Tool;
use super::words::{filled, number};

impl Question {
    /// Returns the values of a program; `None` if it was not asked.
    pub fn of(&self, tool: Tool) -> Option<&[f64]> {
        let contender = self.contenders.iter().find(|contender| contender.tool == tool)?;
        Some(&contender.values)
    }

    /// Returns what all others are compared with: the run without a profiler, or with an empty
    /// program; `None` if both were not asked.
    fn baseline(&self) -> Option<Tool> {
        [Tool::None, Tool::EmptyProgram].into_iter().find(|tool| self.of(*tool).is_some())
    }

    /// Returns what a tool costs in each round: its value, less the baseline if there is one.
    fn costs(&self, tool: Tool) -> Option<Vec<f64>> {
        let values = self.of(tool)?;
        Some(match self.baseline().and_then(|tool| self.of(tool)) {
            Some(without) => values.iter().zip(without).map(|(value, without)| value - without).collect(),
            None => values.to_vec(),
        })
    }

    /// Returns the median of the ratios of precise's cost to that of a peer; `None` if the peer was
    /// not asked, or if in a round its cost was lost in the noise, or mostly that of precise.
    fn ratio(&self, peer: Tool) -> Option<f64> {
        let (ours, theirs) = (self.costs(Tool::Precise)?, self.costs(peer)?);
        if theirs.iter().any(|cost| *cost <= 0.0) {
            return None;
        }
        let ratios: Vec<f64> = ours.iter().zip(&theirs).map(|(ours, theirs)| ours / theirs).collect();
        median(&ratios).filter(|ratio| *ratio > 0.0)
    }

    /// Returns a sentence if precise costs more, next to perf, than is allowed.
    pub fn beyond_limit(&self) -> Option<String> {
        let (limit, ratio) = (self.limit?, self.ratio(Tool::Perf)?);
        (ratio > limit)
            .then(|| format!("{}: {ratio:.2} times perf's cost, and {limit:.2} is the limit", self.title))
    }

    /// Returns the table as Markdown.
    pub fn text(&self) -> String {
        let mut out = format!("### {}\n\n", self.title);
        if !self.note.is_empty() {
            out += &format!("{}\n\n", filled(self.note));
        }
        let baseline = self.baseline();
        let added = baseline.is_some();
        let _ = write!(out, "| | {} | quartiles |", self.unit);
        out += if added {
            " added | precise : this |\n| --- | --- | --- | --- | --- |\n"
        } else {
            " precise : this |\n| --- | --- | --- | --- |\n"
        };
        for contender in &self.contenders {
            let (tool, values) = (contender.tool, &contender.values);
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
                let cost = if baseline == Some(tool) { None } else { self.costs(tool) };
                let cost = cost.and_then(|costs| median(&costs));
                let _ = write!(out, " {} |", cost.map_or(String::new(), number));
            }
            let ratio = if tool == Tool::Precise || baseline == Some(tool) {
                String::new()
            } else {
                self.ratio(tool).map_or("lost in the noise".to_owned(), |ratio| format!("{ratio:.2}"))
            };
            let _ = writeln!(out, " {ratio} |");
        }
        out.push('\n');
        let commands = self.commands();
        if !commands.is_empty() {
            out += &format!("```\n{}\n```\n\n", commands.join("\n"));
        }
        out
    }
}
