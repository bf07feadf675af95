//! Runs precise with the program that logs, and prints its log on standard error.
//!
//! `cargo xtask trace` builds the program and sets `PRECISE_BPF_OBJECT` to it, which precise reads
//! in builds with debug assertions only. aya-log then finds the log of each program that precise
//! has loaded by the program's id.

use std::{
    collections::{HashMap, hash_map::Entry},
    fs,
    io::Write as _,
    process::{Child, Command, ExitCode},
    sync::{Arc, Mutex, PoisonError},
    thread::sleep,
    time::Duration,
};

use anyhow::{Context as _, Result};
use aya::{
    maps::{Map, MapData, MapInfo, PerCpuArray},
    programs::loaded_programs,
};
use aya_log::EbpfLogger;
use precise_common::{
    config::MAX_CLAUSES,
    ledger::{Counter, rejected},
    trace::{CPU_LOG_WORDS, CPU_LOGS},
};

/// The time between two looks at the logs, in which a CPU logs at most 4 lines (`precise-ebpf`).
const EACH: Duration = Duration::from_millis(20);

fn main() -> ExitCode {
    match run() {
        Ok(code) => code,
        Err(error) => {
            eprintln!("trace: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<ExitCode> {
    let folder = std::env::current_exe()?;
    let precise = folder.with_file_name("precise");
    let mut precise = Command::new(&precise)
        .args(std::env::args_os().skip(1))
        .spawn()
        .with_context(|| format!("{} cannot be started", precise.display()))?;
    let mut logs = Logs::default();
    let status = loop {
        // Before the logs are read, so that the last look is one after the end.
        let ended = precise.try_wait()?;
        if ended.is_none() {
            logs.find(&precise)?;
        }
        logs.print();
        if let Some(status) = ended {
            break status;
        }
        sleep(EACH);
    };
    logs.end()?;
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    Ok(code.map_or(ExitCode::FAILURE, ExitCode::from))
}

/// The logs of the programs that precise has loaded, by the ids of the programs.
#[derive(Default)]
struct Logs(HashMap<u32, ProgramLog>);

/// The log of one program.
struct ProgramLog {
    lines: EbpfLogger<Printer>,
    /// What the program knows of the lines of each CPU.
    cpus: PerCpuArray<MapData, [u64; CPU_LOG_WORDS]>,
    printed: Printer,
}

impl Logs {
    /// Opens the logs of programs that were loaded since the last call. A descriptor of precise
    /// says which program it is (`prog_id` in /proc).
    fn find(&mut self, precise: &Child) -> Result<()> {
        let folder = format!("/proc/{}/fdinfo", precise.id());
        // Descriptors come and go, and so may the process.
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let Ok(text) = fs::read_to_string(entry.path()) else { continue };
            let Some(id) = text.lines().find_map(|line| line.strip_prefix("prog_id:")) else { continue };
            let id: u32 = id.trim().parse().context("the id of a program")?;
            if let Entry::Vacant(new) = self.0.entry(id) {
                new.insert(ProgramLog::open(id).with_context(|| format!("the log of program {id}"))?);
            }
        }
        Ok(())
    }

    fn print(&mut self) {
        self.0.values_mut().for_each(|log| log.lines.flush());
    }

    /// Prints what no line of a CPU came after.
    fn end(&self) -> Result<()> {
        self.0.values().try_for_each(ProgramLog::end)
    }
}

impl ProgramLog {
    fn open(id: u32) -> Result<Self> {
        let printed = Printer::default();
        let lines = EbpfLogger::init_from_id_with_logger(id, printed.clone())?;
        let program = loaded_programs().filter_map(Result::ok).find(|info| info.id() == id);
        let maps = program.context("the program is not loaded")?.map_ids()?.unwrap_or_default();
        let infos = maps.into_iter().filter_map(|id| MapInfo::from_id(id).ok());
        let cpus = infos.into_iter().find(|info| info.name_as_str() == Some(CPU_LOGS));
        let cpus = MapData::from_id(cpus.context("the program has no counts of lines")?.id())?;
        Ok(Self { lines, cpus: Map::PerCpuArray(cpus).try_into()?, printed })
    }

    fn end(&self) -> Result<()> {
        for (cpu, words) in (0..).zip(self.cpus.get(&0, 0)?.iter()) {
            let [logged, left_out, ..] = *words;
            self.printed.missing(cpu, CpuLines { number: logged + 1, left_out });
        }
        Ok(())
    }
}

/// Prints the lines of one program.
#[derive(Clone, Default)]
struct Printer(Arc<Mutex<HashMap<u64, CpuLines>>>);

/// What is known of the lines of a CPU at one of them.
#[derive(Clone, Copy, Default)]
struct CpuLines {
    /// The number of the line.
    number: u64,
    /// The lines that the limit of the program left out until then.
    left_out: u64,
}

impl Printer {
    /// Prints how many lines are missing between the last line of a CPU and this one.
    fn missing(&self, cpu: u64, at: CpuLines) {
        let mut cpus = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let last = std::mem::replace(cpus.entry(cpu).or_default(), at);
        let lost = at.number.saturating_sub(last.number + 1);
        let left_out = at.left_out.saturating_sub(last.left_out);
        if lost + left_out > 0 {
            // If standard error is closed, nobody reads the log.
            let _closed = writeln!(
                std::io::stderr().lock(),
                "trace: cpu {cpu}: not logged: {left_out} beyond the limit, {lost} without room in the ring"
            );
        }
    }
}

impl log::Log for Printer {
    fn enabled(&self, _of: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let text = record.args().to_string();
        let numbers: Vec<u64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
        // If standard error is closed, nobody reads the log.
        let _closed = match numbers[..] {
            [cpu, word, process, thread, ip, number, left_out] => {
                self.missing(cpu, CpuLines { number, left_out });
                let fate = fate(word);
                let mut err = std::io::stderr().lock();
                writeln!(err, "trace: cpu {cpu}, task {process}/{thread}, ip {ip:#x}: {fate}")
            }
            _ => writeln!(std::io::stderr().lock(), "trace: not a line of this program: {text}"),
        };
    }

    fn flush(&self) {}
}

/// Returns the words for what a word of the ledger counts.
fn fate(word: u64) -> String {
    let word = usize::try_from(word).unwrap_or(usize::MAX);
    if let Some(counter) = Counter::ALL.iter().find(|counter| counter.id() == word) {
        let info = counter.info();
        return format!("{} ({}: {})", info.fate.words(), info.name, info.meaning);
    }
    match (0..MAX_CLAUSES).find(|clause| rejected(*clause) == word) {
        Some(clause) => format!("rejected (clause {} of the filter)", clause + 1),
        None => format!("word {word} of the ledger"),
    }
}
