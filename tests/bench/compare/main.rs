//! `cargo xtask bench compare`: what precise costs next to other profilers, in one run on one
//! machine.
//!
//! Each question is asked of each contender once per round, in turn, so that a machine that is
//! slower for a minute is slower for all of them. What is compared are differences and ratios
//! within a round; what is printed are their medians.

mod contender;
mod question;
mod table;
mod work;

use std::{
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use precise_tests::say;

use contender::{Contender, Tool};
use question::{QUESTIONS, Question};
use table::Table;
use work::Work;

const USAGE: &str = "usage: bench-compare PRECISE all|quick ROUNDS [PAGE]";

/// Asks one question of all contenders.
fn ask(question: &Question, precise: &Path, rounds: usize, work: &Work) -> Result<Table> {
    let contenders = Contender::all(question, precise);
    let mut table = Table::new(question, &contenders);
    for round in 1..=rounds {
        for (at, contender) in contenders.iter().enumerate() {
            let value = contender.measure(question, work);
            let value = value.with_context(|| format!("{}, {}", question.title, contender.tool.name()))?;
            table.add(at, value);
        }
        say(&format!("{}: round {round} of {rounds}", question.title));
    }
    Ok(table)
}

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (precise, which, rounds, page) = match arguments.as_slice() {
        [precise, which, rounds] => (precise, which, rounds, None),
        [precise, which, rounds, page] => (precise, which, rounds, Some(PathBuf::from(page))),
        _ => bail!(USAGE),
    };
    let quick = match which.as_str() {
        "quick" => true,
        "all" => false,
        _ => bail!(USAGE),
    };
    let rounds: usize = rounds.parse().context(USAGE)?;
    let folder = tempfile::tempdir()?;
    let work = Work::new(folder.path())?;
    let mut tables = Vec::new();
    for question in QUESTIONS.iter().filter(|question| !quick || question.limit.is_some()) {
        let table = ask(question, Path::new(precise), rounds, &work)?;
        say(&table.text());
        tables.push(table);
    }
    for tool in Tool::PEERS.into_iter().filter(|tool| !tool.is_installed()) {
        say(&format!("{} is not installed, so nothing is said of it", tool.name()));
    }
    if let Some(page) = page {
        std::fs::write(&page, table::page(&tables)?).with_context(|| page.display().to_string())?;
        say(&format!("wrote {}", page.display()));
    }
    let worse: Vec<String> = tables.iter().filter_map(Table::beyond_limit).collect();
    worse.iter().for_each(|line| say(line));
    Ok(if quick && !worse.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
