//! How much of a kernel's code has types, by its debug information or else by its own description
//! of them (BTF), and how long that takes.
//!
//! ```text
//! bench-kernel-types ROOT EVERY btf|debug-information WANTED [REASON]
//! ```
//!
//! `ROOT` is `/`, or a folder with a kernel's `proc/kcore` (an uncompressed kernel will do),
//! `proc/kallsyms`, `sys/kernel/notes`, and `sys/kernel/btf/vmlinux` or
//! `usr/lib/debug/boot/vmlinux-…`. Takes every `EVERY`th function. Fails if less than `WANTED`
//! percent of the accesses through pointers have a type: by BTF of all of them, by debug
//! information of those in code that has variables. Prints the instructions that have no type for
//! `REASON`. Accesses to the stack, to variables of the CPU and to fixed addresses are counted
//! apart: the others are accesses through pointers.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use precise::code::FunctionId;
use precise::code::types::{TypeOrigin, Untyped};
use precise::symbols::listing::Listings;
use precise::symbols::{KERNEL, KernelSymbols, SymbolOptions};

const USAGE: &str = "usage: bench-kernel-types ROOT EVERY btf|debug-information WANTED [REASON]";
/// Where the compiler expects the number that protects the stack, until Linux 6.14. It is no
/// variable.
const STACK_PROTECTOR: u64 = 0x28;

fn main() -> Result<ExitCode> {
    // Debug information is read by this program, executed again without rights.
    precise::reader::run_if_reader();
    let mut arguments = std::env::args().skip(1);
    let mut argument = || arguments.next().context(USAGE);
    let (root, every, by) = (PathBuf::from(argument()?), argument()?.parse()?, argument()?);
    let wanted: f64 = argument()?.parse()?;
    let shown = arguments.next();
    // Below this folder, no package has installed debug information.
    let without = tempfile::tempdir()?;
    let root = match by.as_str() {
        "debug-information" => root,
        "btf" => {
            let root = root.canonicalize()?;
            for name in ["proc", "sys"] {
                std::os::unix::fs::symlink(root.join(name), without.path().join(name))?;
            }
            without.path().to_owned()
        }
        _ => bail!(USAGE),
    };
    let kallsyms = root.join("proc/kallsyms");
    let text = std::fs::read_to_string(&kallsyms).context("proc/kallsyms")?;
    let build_id = KernelSymbols::new(root.clone(), Some(kallsyms), true).build_id(KERNEL);
    let build_id = build_id.map(|id| id.hex()).unwrap_or_default();
    let options = SymbolOptions { root, ..SymbolOptions::default() };
    let mut listings = Listings::new(&options, Path::new("/"));
    let (mut functions, mut unread, mut typed, mut apart) = (0_u64, 0_u64, 0_u64, 0_u64);
    let (mut segment, mut per_cpu, mut apart_typed) = (0_u64, 0_u64, 0_u64);
    let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
    let mut took = Duration::ZERO;
    let staying = staying_code(&text);
    for line in text.lines().filter(|line| is_function(line)).step_by(every) {
        let mut words = line.split(' ');
        let (Some(address), Some(name)) = (words.next(), words.nth(1)) else { continue };
        let start = u64::from_str_radix(address, 16)?;
        if !staying.contains(&start) {
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
                if let (Err(why), Some(shown)) = (access.object, &shown)
                    && why.words() == shown
                {
                    let at = code.iter().find(|of| of.offset == instruction.offset);
                    let text = at.map_or("", |at| &at.text);
                    println!("{}+{:#x}  {text}", function.name, instruction.offset);
                }
                match access.object {
                    Ok(_) if of_segment => per_cpu += 1,
                    Err(_) if of_segment => segment += 1,
                    Ok(object) => match object.origin {
                        TypeOrigin::Variable | TypeOrigin::Flow => typed += 1,
                        TypeOrigin::Stack | TypeOrigin::Global => apart_typed += 1,
                    },
                    Err(Untyped::Stack | Untyped::NoGlobal | Untyped::Segment) => apart += 1,
                    Err(why) => *reasons.entry(why.words()).or_default() += 1,
                }
            }
        }
    }
    let all = typed + reasons.values().sum::<u64>();
    ensure!(all > 0, "no code could be read ({unread} functions): {:?}", listings.take_troubles());
    let share = 100.0 * typed as f64 / all as f64;
    let of = |why: Untyped| reasons.get(why.words()).copied().unwrap_or(0);
    let described = all - of(Untyped::NoDebugInfo) - of(Untyped::NoVariables);
    let share_described = 100.0 * typed as f64 / described.max(1) as f64;
    println!(
        "by {by}: {functions} functions, typed in {:.1} s; {unread} could not be read",
        took.as_secs_f64()
    );
    println!("{all} accesses through pointers, {share:.1} % typed");
    println!("{described} of these in code that has variables, {share_described:.1} % typed");
    println!("{} accesses to variables of the CPU, {per_cpu} typed", segment + per_cpu);
    println!("{} accesses to the stack and to fixed addresses, {apart_typed} typed", apart + apart_typed);
    for (why, count) in reasons {
        println!("{:5.1} %  {why}", 100.0 * count as f64 / all as f64);
    }
    let judged = if by == "btf" { share } else { share_described };
    Ok(if judged >= wanted { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// Returns the addresses of the code that stays: what the kernel forgets after its start has become
/// something else.
fn staying_code(kallsyms: &str) -> std::ops::Range<u64> {
    let at = |name: &str| {
        let line = kallsyms.lines().find(|line| line.ends_with(name))?;
        u64::from_str_radix(line.get(..16)?, 16).ok()
    };
    at(" _stext").unwrap_or(0)..at(" _etext").unwrap_or(0)
}

/// Returns whether a line of /proc/kallsyms is a function of the kernel itself.
fn is_function(line: &str) -> bool {
    let kind = line.split(' ').nth(1);
    matches!(kind, Some("t" | "T")) && !line.ends_with(']') && !line.contains(" __pfx_")
}
