//! `cargo xtask bench all`: what precise costs next to other programs, in one run on one machine.
//!
//! Each question is asked of each contender once per round, in turn, so that a machine that is
//! slower for a minute is slower for all of them. What is compared are differences and ratios
//! within a round; what is printed are their medians.

mod commands;
mod growing;
mod growth;
mod imports;
mod interrupt;
mod kernel_table;
mod page;
mod paper;
mod part;
mod picture;
mod pictures;
mod program_time;
mod question;
mod running;
mod setting;
mod slowdown;
mod symbols;
mod table;
mod tool;
mod user_space;
mod views;
mod words;
mod work;

use std::io::ErrorKind;
use std::path::Path;
use std::process::ExitCode;
use std::rc::Rc;

use anyhow::{Context as _, Result, bail, ensure};
use precise_tests::say;

use part::Part;
use question::Question;
use setting::Setting;
use tool::Tool;
use work::Work;

const USAGE: &str = "usage: bench-compare PRECISE all|quick|CHAPTER[,CHAPTER …] ROUNDS [PAGE]";

/// The chapters of the page, in its order.
const CHAPTERS: [Chapter; 12] = [
    Chapter {
        name: "slowdown",
        title: "What a sample costs the program",
        parts: |setting| asked(slowdown::faults(setting)),
    },
    Chapter {
        name: "timers",
        title: "What a timer's samples cost the program",
        parts: |setting| asked(slowdown::timers(setting)),
    },
    Chapter {
        name: "interrupt",
        title: "What a timer's sample takes in the interrupt",
        parts: |setting| asked(interrupt::questions(setting)),
    },
    Chapter {
        name: "program",
        title: "What the eBPF program takes",
        parts: |setting| asked(program_time::questions(setting)),
    },
    Chapter {
        name: "profiler",
        title: "What the profiler takes",
        parts: |setting| asked(user_space::questions(setting)),
    },
    Chapter { name: "growth", title: "How it grows", parts: growing::parts },
    Chapter { name: "symbols", title: "Names", parts: symbols::parts },
    Chapter { name: "imports", title: "Reading recordings of perf", parts: imports::parts },
    Chapter { name: "views", title: "Asking a capture", parts: views::parts },
    Chapter { name: "pictures", title: "Drawing a heatmap", parts: pictures::parts },
    Chapter { name: "table", title: "Reading the kernel's table", parts: kernel_table::parts },
    Chapter { name: "paper", title: "A machine of 512 CPUs, on paper", parts: paper::parts },
];

/// Questions that belong together.
struct Chapter {
    name: &'static str,
    title: &'static str,
    parts: fn(&Rc<Setting>) -> Result<Vec<Part>>,
}

/// Returns questions as the parts of a chapter.
#[expect(clippy::unnecessary_wraps, reason = "other chapters can fail")]
fn asked(questions: Vec<Question>) -> Result<Vec<Part>> {
    Ok(questions.into_iter().map(Part::Question).collect())
}

fn chosen(which: &str) -> Result<Vec<&'static Chapter>> {
    if which == "all" {
        return Ok(CHAPTERS.iter().collect());
    }
    let names: Vec<&str> = which.split(',').collect();
    let known = CHAPTERS.map(|chapter| chapter.name).join(", ");
    for name in &names {
        ensure!(
            CHAPTERS.iter().any(|chapter| chapter.name == *name),
            "no chapter '{name}': there are {known}"
        );
    }
    Ok(CHAPTERS.iter().filter(|chapter| names.contains(&chapter.name)).collect())
}

fn main() -> Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (precise, which, rounds, page) = match arguments.as_slice() {
        [precise, which, rounds] => (precise, which, rounds, None),
        [precise, which, rounds, page] => (precise, which, rounds, Some(Path::new(page))),
        _ => bail!(USAGE),
    };
    let rounds: usize = rounds.parse().context(USAGE)?;
    let folder = tempfile::tempdir()?;
    let work = Work::new(folder.path())?;
    let setting = Rc::new(Setting { precise: precise.into(), folder: folder.path().to_owned(), work });
    if which == "quick" {
        return quick(&setting, rounds);
    }
    let mut chapters = Vec::new();
    for chapter in chosen(which)? {
        let mut parts = (chapter.parts)(&setting).with_context(|| chapter.name)?;
        for part in &mut parts {
            part.ask(rounds)?;
            say(&part.text());
        }
        chapters.push((chapter.title, parts));
    }
    if let Some(page) = page {
        let so_far = match std::fs::read_to_string(page) {
            Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
            read => read.with_context(|| page.display().to_string())?,
        };
        let text = page::page(
            &so_far,
            &CHAPTERS.map(|chapter| chapter.title),
            &chapters,
            (&setting.precise, rounds),
        );
        let picture = page.with_file_name(page::PICTURE);
        picture.parent().map_or(Ok(()), std::fs::create_dir_all)?;
        for (path, text) in [(&*picture, picture::ratios(&text)), (page, text)] {
            std::fs::write(path, text).with_context(|| path.display().to_string())?;
            say(&format!("wrote {}", path.display()));
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// Asks what has a limit. A ratio is judged and never a time, because machines differ, and not
/// before it was beyond its limit three times, because machines are busy.
fn quick(setting: &Rc<Setting>, rounds: usize) -> Result<ExitCode> {
    const TIMES: usize = 3;
    let questions = slowdown::faults(setting).into_iter().chain(user_space::questions(setting));
    let mut worse = Vec::new();
    for mut question in questions.filter(|question| question.limit.is_some()) {
        question.contenders.retain(|contender| !contender.tool.is_bpftrace());
        ensure!(question.of(Tool::Perf).is_some(), "perf is not installed: `cargo xtask setup` installs it");
        for _ in 0..TIMES {
            question.ask(rounds)?;
            say(&question.text());
            if question.beyond_limit().is_none() {
                break;
            }
        }
        worse.extend(question.beyond_limit());
    }
    worse.iter().for_each(|line| say(line));
    Ok(if worse.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
