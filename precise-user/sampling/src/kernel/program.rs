//! Loading the program: constants in, kfunc patched, maps mapped.

use std::{
    os::fd::{AsFd, AsRawFd as _, BorrowedFd},
    sync::Arc,
};

use aya::{
    Ebpf, EbpfLoader,
    maps::Map,
    programs::{PerfEvent, ProgramError},
};
use precise_common::config::{ABSENT, Config, operand, promote, source, watched};

use super::{btf::Btf, explain, offsets, patch, stacks::Stacks, table::Table, watched::Watched};
use crate::{
    error::{ErrorClass, Remedy, SamplingError},
    machine::{MachineInfo, Root},
};

/// The object that `cargo xtask build-ebpf` made.
pub(super) static PREBUILT: &[u8] = aya::include_bytes_aligned!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../precise-ebpf/prebuilt/precise.bpf.o"
));

/// The variable that names an object file to load instead of the embedded one: `cargo xtask test`
/// sets it where another toolchain made the embedded one. Release builds do not have it, as whoever
/// chooses the object reads and writes kernel memory with the rights of this process.
#[cfg(debug_assertions)]
pub const OBJECT_VARIABLE: &str = "PRECISE_BPF_OBJECT";

/// How the program reads the kernel's structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPath {
    /// Direct loads through `bpf_cast_to_kern_ctx` (6.2 and later).
    Direct,
    /// `bpf_probe_read_kernel`: every kernel, slower.
    Probe,
}

/// What to load.
#[derive(Clone, Debug)]
pub struct ProgramOptions {
    /// Key, fields and filter. Offsets, source bits and table geometry are filled in by
    /// [`Program::load`].
    pub config: Config,
    /// Cells per CPU and half; rounded up to a power of two.
    pub slots: usize,
    /// Call chains per CPU and half, rounded up to a power of two; 0 where none are taken.
    pub stacks: usize,
    /// The cgroup id comes with the sample (`PERF_SAMPLE_CGROUP` was requested).
    pub cgroup_from_sample: bool,
    /// Forces a read path; `None` takes the fastest that the kernel has.
    pub read_path: Option<ReadPath>,
    /// Another object and entry point than the embedded ones, for measuring against them.
    pub other: Option<(&'static [u8], &'static str)>,
}

/// A loaded program with its table.
#[derive(Debug)]
pub struct Program {
    ebpf: Ebpf,
    entry: &'static str,
    /// The cell table and the ledger.
    pub table: Table,
    /// The cgroups that the filter watches, where it does.
    pub watched: Option<Arc<Watched>>,
    /// How it reads.
    pub read_path: ReadPath,
}

/// What the kernel says about a loaded program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ProgramStats {
    /// Runs; 0 unless statistics are enabled (`kernel.bpf_stats_enabled`).
    pub runs: u64,
    /// Nanoseconds of all runs together.
    pub run_ns: u64,
    /// Bytes of the program after the verifier removed what is dead; an instruction is 8.
    pub translated_bytes: u32,
}

impl Program {
    /// Loads the program into the kernel.
    ///
    /// # Errors
    ///
    /// No BTF, no permission, or a verifier that refuses.
    pub fn load(options: &ProgramOptions) -> Result<Self, SamplingError> {
        Self::load_beside(options, None)
    }

    /// The same for one more event of a run. What promotes lines for one event promotes them for
    /// all: the program uses the set of lines of `first`.
    ///
    /// # Errors
    ///
    /// As [`Self::load`].
    pub fn load_beside(options: &ProgramOptions, first: Option<&Self>) -> Result<Self, SamplingError> {
        let btf = kernel_btf()?;
        let cast = btf.function_id("bpf_cast_to_kern_ctx");
        let read_path = match (options.read_path, cast) {
            (Some(ReadPath::Direct), None) => {
                return Err(SamplingError::new(
                    ErrorClass::Unsupported,
                    "this kernel lacks bpf_cast_to_kern_ctx (Linux 6.2 and later), so samples cannot be \
                     read directly",
                )
                .remedy(Remedy::AnyReadPath));
            }
            (Some(path), _) => path,
            (None, Some(_)) => ReadPath::Direct,
            (None, None) => ReadPath::Probe,
        };
        let machine = MachineInfo::read(&Root::default());
        // CPU numbers index the partitions; possible ones need not be consecutive.
        let cpus = machine.possible.last().map_or(1, |last| *last as usize + 1);
        let slots = options.slots.max(16).next_power_of_two();
        let stacks = if options.stacks == 0 { 0 } else { options.stacks.max(16).next_power_of_two() };
        let config = Config {
            offsets: offsets::resolve(&btf)?,
            source: options.config.source | source_bits(&btf, options, &machine),
            slot_mask: (slots - 1) as u32,
            cpus: cpus as u32,
            stack_mask: stacks.saturating_sub(1) as u32,
            ..options.config
        };
        let entries = |of_each: usize, what: &str, fewer: Remedy| {
            u32::try_from(2 * cpus * of_each).map_err(|_| {
                let what =
                    format!("a table of {of_each} {what} for each of {cpus} CPUs does not fit in memory");
                SamplingError::new(ErrorClass::Invalid, what).remedy(fewer)
            })
        };
        let cells = entries(slots, "cells", Remedy::FewerCells)?;
        // The kernel makes no map without an entry.
        let chains = entries(stacks, "call chains", Remedy::FewerChains)?.max(1);

        let mut object = match options.other {
            Some((bytes, _)) => bytes.to_vec(),
            None => object()?,
        };
        if let (ReadPath::Direct, Some(id)) = (read_path, cast) {
            patch::cast(&mut object, id).map_err(|lacking| broken_object(&lacking.to_string()))?;
        }
        patch::constants(&mut object, &config).map_err(|lacking| broken_object(&lacking.to_string()))?;
        let mut loader = EbpfLoader::new();
        loader.map_max_entries("TABLE", cells).map_max_entries("LEDGER", cpus as u32);
        let watches = config.slots.iter().any(|slot| slot.operand == operand::CGROUP_WATCHED);
        if options.other.is_none() {
            loader.map_max_entries("LINES", config.line_mask.saturating_add(1));
            loader.map_max_entries("CGROUPS", if watches { watched::ROOM } else { 1 });
        }
        loader
            .map_max_entries("STACKS", chains)
            .map_max_entries("CHAIN", if stacks > 0 { cpus as u32 } else { 1 });
        let mut ebpf = loader.load(&object).map_err(|error| refused(&error))?;
        if let (true, Some(first)) = (config.promote & promote::ON != 0, first) {
            share(&first.ebpf, &ebpf, "LINES")?;
        }

        let entry = match (options.other, read_path) {
            (Some((_, entry)), _) => entry,
            (None, ReadPath::Direct) => "sample",
            (None, ReadPath::Probe) => "sample_probe",
        };
        let program: &mut PerfEvent = ebpf
            .program_mut(entry)
            .ok_or_else(|| broken_object(entry))?
            .try_into()
            .map_err(|_| broken_object(entry))?;
        load(program).map_err(|error| refused(&error))?;
        let mut set = None;
        let table = {
            let fd = |name: &str| map_fd(&ebpf, name).ok_or_else(|| broken_object(name));
            let failed = |error| {
                SamplingError::new(ErrorClass::Failed, "cannot share the table with the kernel")
                    .because(error)
            };
            let chains = match stacks {
                0 => None,
                stacks => Some(Stacks::map(fd("STACKS")?, cpus, stacks).map_err(failed)?),
            };
            if watches {
                set = Some(Arc::new(Watched::map(fd("CGROUPS")?).map_err(failed)?));
            }
            Table::map(fd("TABLE")?, fd("LEDGER")?, chains, cpus, slots).map_err(failed)?
        };
        Ok(Self { ebpf, entry, table, watched: set, read_path })
    }

    /// The program's descriptor, for attaching.
    ///
    /// # Errors
    ///
    /// Never once loaded; aya's API allows for it.
    pub fn fd(&self) -> Result<BorrowedFd<'_>, SamplingError> {
        self.ebpf
            .program(self.entry)
            .and_then(|program| program.fd().ok())
            .map(AsFd::as_fd)
            .ok_or_else(|| broken_object(self.entry))
    }

    /// Runs, time and size of the program as the kernel accounts them.
    ///
    /// # Errors
    ///
    /// When the kernel does not answer.
    pub fn stats(&self) -> Result<ProgramStats, SamplingError> {
        let info = self.ebpf.program(self.entry).ok_or_else(|| broken_object(self.entry))?.info().map_err(
            |error| {
                SamplingError::new(ErrorClass::Failed, "the kernel does not describe the program")
                    .because(error)
            },
        )?;
        Ok(ProgramStats {
            runs: info.run_count(),
            run_ns: info.run_time().as_nanos() as u64,
            translated_bytes: info.size_translated().unwrap_or(0),
        })
    }
}

/// The kernel's own type information.
///
/// # Errors
///
/// When the kernel was built without it.
pub fn kernel_btf() -> Result<Btf, SamplingError> {
    let path = Root::default().path("/sys/kernel/btf/vmlinux");
    let bytes = std::fs::read(&path).map_err(|error| {
        let what =
            format!("cannot read the kernel's type information (BTF) from {}: {error}", path.display());
        match error.kind() {
            std::io::ErrorKind::PermissionDenied => {
                SamplingError::new(ErrorClass::Permission, what).remedy(Remedy::ReadableTypes)
            }
            _ => SamplingError::new(ErrorClass::Unsupported, what).remedy(Remedy::KernelTypes),
        }
    })?;
    Btf::parse(bytes).map_err(|error| SamplingError::new(ErrorClass::Unsupported, error.to_string()))
}

/// Loads a program. The verifier gives up with `EAGAIN` when a signal comes, as SIGCHLD does of
/// each child that ends: it is asked again, as libbpf does it.
fn load(program: &mut PerfEvent) -> Result<(), ProgramError> {
    const ATTEMPTS: usize = 20;
    for _ in 1..ATTEMPTS {
        match program.load() {
            Err(error) if is_interrupted(&error) => {}
            result => return result,
        }
    }
    program.load()
}

fn is_interrupted(error: &ProgramError) -> bool {
    matches!(error, ProgramError::LoadError { io_error, .. } if io_error.raw_os_error() == Some(libc::EAGAIN))
}

fn source_bits(btf: &Btf, options: &ProgramOptions, machine: &MachineInfo) -> u32 {
    let mut bits = 0;
    if machine.kernel.is_some_and(|version| version.at_least(6, 3)) {
        // Since 6.3 perf_prepare_sample() runs before the program (commit 0eed28220598): every
        // requested field is valid.
        bits |= source::IP_FROM_SAMPLE | source::TID_FROM_SAMPLE | source::TIME_FROM_SAMPLE;
        if options.cgroup_from_sample {
            bits |= source::CGROUP_FROM_SAMPLE;
        }
    } else if btf.offset("perf_sample_data", "sample_flags").is_some_and(|offset| offset != ABSENT) {
        bits |= source::CHECK_FLAGS;
        if options.stacks > 0 {
            bits |= source::CALLS_FOR_CHAIN;
        }
    }
    bits
}

/// The object to load: the embedded one, or in a debug build another.
fn object() -> Result<Vec<u8>, SamplingError> {
    #[cfg(debug_assertions)]
    if let (false, Some(path)) = (crate::rights::is_secure(), std::env::var_os(OBJECT_VARIABLE)) {
        return std::fs::read(&path).map_err(|error| {
            let path = path.to_string_lossy();
            SamplingError::new(
                ErrorClass::Failed,
                format!("{OBJECT_VARIABLE} names {path}, which cannot be read"),
            )
            .because(error)
        });
    }
    Ok(PREBUILT.to_vec())
}

/// Lets the programs of `ebpf`, which are not yet in the kernel, use the map of `first` in place of
/// their own.
///
/// Their instructions name a map by its descriptor, and the kernel looks at it when they are
/// loaded: what the descriptor then refers to is what they use. (aya shares maps by pinning them in
/// a file system, which a container may not have.)
fn share(first: &Ebpf, ebpf: &Ebpf, name: &str) -> Result<(), SamplingError> {
    let fd = |ebpf| map_fd(ebpf, name).ok_or_else(|| broken_object(name));
    let (shared, own) = (fd(first)?, fd(ebpf)?);
    // SAFETY: both are open, and stay owned by their maps; the kernel replaces what `own` refers to
    // at once.
    if unsafe { libc::dup3(shared.as_raw_fd(), own.as_raw_fd(), libc::O_CLOEXEC) } < 0 {
        let error = crate::error::SyscallError::last("dup3");
        return Err(SamplingError::new(
            ErrorClass::Failed,
            "the events cannot share their set of cache lines",
        )
        .because(error));
    }
    Ok(())
}

fn map_fd<'a>(ebpf: &'a Ebpf, name: &str) -> Option<BorrowedFd<'a>> {
    match ebpf.map(name)? {
        Map::Array(data) => Some(data.fd().as_fd()),
        _ => None,
    }
}

fn broken_object(what: &str) -> SamplingError {
    SamplingError::new(ErrorClass::Failed, format!("the embedded eBPF object lacks {what}"))
        .remedy(Remedy::RebuildProgram)
}

/// A refusal to load, as a sentence. The verifier's log follows when there is one.
fn refused(error: &dyn std::error::Error) -> SamplingError {
    let mut text = error.to_string();
    let mut errno = None;
    let mut source = error.source();
    while let Some(cause) = source {
        errno =
            errno.or_else(|| cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error));
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    // The verifier says why, and refuses with EACCES too; who may not load programs is told
    // nothing.
    let (text, log) = text.split_once("Verifier output:").unwrap_or((&text, ""));
    let reason: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match errno {
        Some(libc::EPERM | libc::EACCES) if reason.is_empty() => explain::load(),
        _ => {
            // The sentence is near the end, before the verifier's statistics.
            let end = reason[reason.len().saturating_sub(6)..].join("; ");
            let text = text.trim_end_matches([' ', '.', ':']);
            SamplingError::new(
                ErrorClass::Unsupported,
                format!("the kernel refused the eBPF program: {text}; {end}"),
            )
            .remedy(Remedy::ReportKernel)
        }
    }
}
