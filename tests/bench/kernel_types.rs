//! How much of a kernel's code has types by its own description of them (BTF), and how long that
//! takes.
//!
//! ```text
//! bench-kernel-types [ROOT] [EVERY]
//! ```
//!
//! `ROOT` is `/`, or a folder with a kernel's `proc/kcore` (an uncompressed kernel will do),
//! `proc/kallsyms`, `sys/kernel/notes` and `sys/kernel/btf/vmlinux`. `EVERY` takes one function of
//! so many. Accesses to the stack, to variables of the CPU and to fixed addresses are counted
//! apart: what is left are accesses through pointers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use precise::code::FunctionId;
use precise::code::types::Untyped;
use precise::symbols::listing::Listings;
use precise::symbols::{KERNEL, KernelSymbols, SymbolOptions};

/// The share of accesses through pointers that must have a type, in percent.
const WANTED: f64 = 45.0;
/// Where the compiler expects the number that protects the stack, until Linux 6.14. It is no
/// variable.
const STACK_PROTECTOR: u64 = 0x28;

fn main() -> Result<ExitCode> {
    let mut arguments = std::env::args_os().skip(1);
    let root = arguments.next().map_or_else(|| PathBuf::from("/"), PathBuf::from);
    let every = arguments.next().map_or(Ok(1), |every| every.to_string_lossy().parse()).context("EVERY")?;
    let kallsyms = root.join("proc/kallsyms");
    let text = std::fs::read_to_string(&kallsyms).context("proc/kallsyms")?;
    let build_id = KernelSymbols::new(root.clone(), Some(kallsyms), true).build_id(KERNEL);
    let build_id = build_id.map(|id| id.hex()).unwrap_or_default();
    let options = SymbolOptions { root, ..SymbolOptions::default() };
    let mut listings = Listings::new(&options, Path::new("/"));
    let (mut functions, mut unread, mut typed, mut apart) = (0_u64, 0_u64, 0_u64, 0_u64);
    let (mut segment, mut per_cpu, mut large) = (0_u64, 0_u64, 0_u64);
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    let mut took = Duration::ZERO;
    let initial = initial(&text);
    for line in text.lines().filter(|line| is_function(line)).step_by(every) {
        let mut words = line.split(' ');
        let (Some(address), Some(name)) = (words.next(), words.nth(1)) else { continue };
        let start = u64::from_str_radix(address, 16)?;
        if initial.contains(&start) {
            continue;
        }
        let (module, name, build_id) = (KERNEL.to_owned(), name.to_owned(), build_id.clone());
        let function = FunctionId { module, build_id, name, start, kernel: true };
        let Ok(code) = listings.read(&function) else {
            unread += 1;
            continue;
        };
        functions += 1;
        let wanted: Vec<u64> =
            code.iter().filter(|instruction| instruction.accessed.is_some()).map(|i| i.offset).collect();
        let of_cpu = |instruction: &&precise::code::Instruction| {
            instruction.gs_address().is_some_and(|address| address != STACK_PROTECTOR)
        };
        let of_segment: Vec<u64> = code.iter().filter(of_cpu).map(|i| i.offset).collect();
        let begun = Instant::now();
        let answer = listings.types(&function, &wanted);
        took += begun.elapsed();
        let Ok(answer) = answer else { continue };
        for instruction in &answer.instructions {
            let of_segment = of_segment.binary_search(&instruction.offset).is_ok();
            for access in &instruction.accesses {
                match access.object {
                    Ok(_) if of_segment => per_cpu += 1,
                    Err(_) if of_segment => segment += 1,
                    Ok(_) => typed += 1,
                    // What is no function, but data behind the last one.
                    Err(Untyped::TooLarge) => large += 1,
                    Err(Untyped::Stack | Untyped::NoGlobal | Untyped::Segment) => apart += 1,
                    Err(why) => *reasons.entry(why.words()).or_default() += 1,
                }
            }
        }
    }
    let all = typed + reasons.values().sum::<u64>();
    ensure!(all > 0, "no code could be read ({unread} functions): {:?}", listings.take_troubles());
    let share = 100.0 * typed as f64 / all as f64;
    println!("{functions} functions, typed in {:.1} s; {unread} could not be read", took.as_secs_f64());
    println!("{all} accesses through pointers, {share:.1} % typed");
    println!("{} accesses to variables of the CPU, {per_cpu} typed", segment + per_cpu);
    println!("{apart} accesses to the stack and to fixed addresses, not counted");
    println!("{large} in symbols that are too large to be functions, not counted");
    for (why, count) in reasons {
        println!("{:5.1} %  {why}", 100.0 * count as f64 / all as f64);
    }
    Ok(if share >= WANTED { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the addresses of the code that the kernel forgets after its start, whose memory has
/// become something else.
fn initial(kallsyms: &str) -> std::ops::Range<u64> {
    let at = |name: &str| {
        let line = kallsyms.lines().find(|line| line.ends_with(name))?;
        u64::from_str_radix(line.get(..16)?, 16).ok()
    };
    at(" _sinittext").unwrap_or(0)..at(" _einittext").unwrap_or(0)
}

/// Returns whether a line of /proc/kallsyms is a function of the kernel itself.
fn is_function(line: &str) -> bool {
    let kind = line.split(' ').nth(1);
    matches!(kind, Some("t" | "T")) && !line.ends_with(']') && !line.contains(" __pfx_")
}
