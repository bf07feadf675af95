//! Loads the eBPF program: writes its constants, patches the kfunc call, maps its maps.

use std::{
    os::fd::{AsFd, AsRawFd as _, BorrowedFd},
    sync::Arc,
};

use aya::{
    Ebpf, EbpfLoader,
    maps::Map,
    programs::{PerfEvent, ProgramError},
};
use precise_common::{
    cell::Cell,
    config::{ABSENT, Config, Slot as FilterSlot, operand, promote, source, watched},
    ledger::rejected,
    stack::Slot,
};

use super::{btf::Btf, explain, offsets, patch, stacks::Stacks, table::Table, watched::Watched};
use crate::{
    error::{ErrorClass, Remedy, SamplingError},
    machine::{MachineInfo, Root},
};

/// The object that `cargo xtask build-ebpf` built.
pub(super) static PREBUILT: &[u8] = aya::include_bytes_aligned!(concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../../precise-ebpf/prebuilt/precise.bpf.o"
));

/// The environment variable that names an object file to load instead of the embedded one.
///
/// `cargo xtask test` sets it if another toolchain built the embedded object. Release builds do not
/// read it, because a caller who chooses the object could read and write kernel memory with the
/// rights of this process.
#[cfg(debug_assertions)]
pub const OBJECT_VARIABLE: &str = "PRECISE_BPF_OBJECT";

/// How the program reads the kernel's structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPath {
    /// Direct loads through `bpf_cast_to_kern_ctx`, on Linux 6.2 and later.
    Direct,
    /// Calls of `bpf_probe_read_kernel`: works on every kernel, but is slower.
    Probe,
}

/// Options of a program load.
#[derive(Clone, Debug)]
pub struct ProgramOptions {
    /// The map key, the fields and the filter. [`Program::load`] fills in the offsets, the source
    /// bits and the sizes of the table.
    pub config: Config,
    /// The number of cells per CPU and half, rounded up to a power of two.
    pub slots: usize,
    /// The number of call chains per CPU and half, rounded up to a power of two; 0 for no call
    /// chains.
    pub stacks: usize,
    /// Whether the sample carries the cgroup id (`PERF_SAMPLE_CGROUP` was requested).
    pub cgroup_from_sample: bool,
    /// The read path to use; `None` selects the fastest one that the kernel supports.
    pub read_path: Option<ReadPath>,
    /// An object and entry point to load instead of the embedded ones, for comparing measurements.
    pub other: Option<(&'static [u8], &'static str)>,
}

/// A loaded eBPF program with its table.
#[derive(Debug)]
pub struct Program {
    ebpf: Ebpf,
    entry: &'static str,
    /// The cell table and the ledger.
    pub table: Table,
    /// The cgroups that the filter watches; `None` if it watches none.
    pub watched: Option<Arc<Watched>>,
    /// How the program reads the kernel's structures.
    pub read_path: ReadPath,
}

/// The kernel's statistics about a loaded program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct ProgramStats {
    /// The number of runs; 0 unless statistics are enabled (`kernel.bpf_stats_enabled`).
    pub runs: u64,
    /// The total time of all runs, in nanoseconds.
    pub run_ns: u64,
    /// The program's size in bytes after the verifier removed dead code; an instruction has 8
    /// bytes.
    pub translated_bytes: u32,
}

impl Program {
    /// Loads the program into the kernel, with a table for every possible CPU.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel has no BTF, if a permission is missing, or if the verifier
    /// rejects the program.
    pub fn load(options: &ProgramOptions) -> Result<Self, SamplingError> {
        let possible = MachineInfo::read(&Root::default()).possible;
        Self::load_on(options, &possible, None)
    }

    /// Loads the program with a table for some CPUs. `first` is the program of the first event of
    /// the run, if this is another one.
    ///
    /// The program shares the set of promoted lines with `first`, so a line that one event promotes
    /// is promoted for all events.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Self::load`].
    pub fn load_on(
        options: &ProgramOptions,
        cpus: &[u32],
        first: Option<&Self>,
    ) -> Result<Self, SamplingError> {
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
        // A table has a partition for each CPU that the run samples: many virtual machines could
        // have a hundred CPUs more than they have.
        let mut partitions = cpus.to_vec();
        partitions.sort_unstable();
        partitions.dedup();
        // CPU numbers index the rows of the ledger. They may have gaps.
        let last = machine.possible.last().max(partitions.last()).copied().unwrap_or(0);
        let rows = last as usize + 1;
        let slots = options.slots.max(16).next_power_of_two();
        let stacks = if options.stacks == 0 { 0 } else { options.stacks.max(16).next_power_of_two() };
        let config = Config {
            offsets: offsets::resolve(&btf)?,
            source: options.config.source | source_bits(&btf, options, &machine),
            slot_mask: (slots - 1) as u32,
            partitions: partitions.len() as u32,
            stack_mask: stacks.saturating_sub(1) as u32,
            slots: options.config.slots.map(|slot| FilterSlot { clause: counted_at(slot.clause), ..slot }),
            ..options.config
        };
        let entries = |of_each: usize, what: &str, fewer: Remedy| {
            let cpus = partitions.len();
            u32::try_from(2 * cpus * of_each).map_err(|_| {
                let what =
                    format!("a table of {of_each} {what} for each of {cpus} CPUs does not fit in memory");
                SamplingError::new(ErrorClass::Invalid, what).remedy(fewer)
            })
        };
        let cells = entries(slots, "cells", Remedy::FewerCells)?;
        // The kernel does not create a map without entries.
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
        loader.map_max_entries("TABLE", cells).map_max_entries("LEDGER", rows as u32);
        let watches = config.slots.iter().any(|slot| slot.operand == operand::CGROUP_WATCHED);
        if options.other.is_none() {
            loader.map_max_entries("LINES", config.line_mask.saturating_add(1));
            loader.map_max_entries("CGROUPS", if watches { watched::ROOM } else { 1 });
        }
        loader
            .map_max_entries("STACKS", chains)
            .map_max_entries("CHAIN", if stacks > 0 { rows as u32 } else { 1 });
        let bytes = 2 * partitions.len() * (slots * size_of::<Cell>() + stacks * size_of::<Slot>());
        let mut ebpf = loader.load(&object).map_err(|error| match errno(&error) {
            Some(libc::ENOMEM) => explain::no_memory(bytes, partitions.len()),
            _ => refused(&error),
        })?;
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
            let failed = |error| SamplingError::failed("cannot share the table with the kernel", error);
            let chains = match stacks {
                0 => None,
                stacks => Some(Stacks::map(fd("STACKS")?, partitions.len(), stacks).map_err(failed)?),
            };
            if watches {
                set = Some(Arc::new(Watched::map(fd("CGROUPS")?).map_err(failed)?));
            }
            Table::map(fd("TABLE")?, fd("LEDGER")?, chains, partitions, rows, slots).map_err(failed)?
        };
        Ok(Self { ebpf, entry, table, watched: set, read_path })
    }

    /// Returns the program's descriptor, for attaching it.
    ///
    /// # Errors
    ///
    /// Never fails for a loaded program; aya's API returns a `Result`.
    pub fn fd(&self) -> Result<BorrowedFd<'_>, SamplingError> {
        self.ebpf
            .program(self.entry)
            .and_then(|program| program.fd().ok())
            .map(AsFd::as_fd)
            .ok_or_else(|| broken_object(self.entry))
    }

    /// Returns the program's run count, run time and size, as accounted by the kernel.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel does not supply the statistics.
    pub fn stats(&self) -> Result<ProgramStats, SamplingError> {
        let info = self
            .ebpf
            .program(self.entry)
            .ok_or_else(|| broken_object(self.entry))?
            .info()
            .map_err(|error| SamplingError::failed("the kernel does not describe the program", error))?;
        Ok(ProgramStats {
            runs: info.run_count(),
            run_ns: info.run_time().as_nanos() as u64,
            translated_bytes: info.size_translated().unwrap_or(0),
        })
    }
}

/// Reads the kernel's type information (BTF).
///
/// # Errors
///
/// Returns an error if the kernel was built without BTF.
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

/// Loads a program, retrying on `EAGAIN` as libbpf does. The verifier gives up with `EAGAIN` if a
/// signal arrives, such as SIGCHLD when a child ends.
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
        // Since 6.3, perf_prepare_sample() runs before the program (commit 0eed28220598), so every
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

/// Returns the object to load: the embedded one, or another one in a debug build.
fn object() -> Result<Vec<u8>, SamplingError> {
    #[cfg(debug_assertions)]
    if let (false, Some(path)) = (crate::rights::is_secure(), std::env::var_os(OBJECT_VARIABLE)) {
        return std::fs::read(&path).map_err(|error| {
            let path = path.to_string_lossy();
            SamplingError::failed(format!("{OBJECT_VARIABLE} names {path}, which cannot be read"), error)
        });
    }
    Ok(PREBUILT.to_vec())
}

/// Returns the word of the ledger in which the program counts the samples that fail this clause.
fn counted_at(clause: u32) -> u32 {
    u32::try_from(rejected(clause as usize)).unwrap_or(clause)
}

/// Makes the programs of `ebpf`, which are not loaded yet, use a map of `first` instead of their
/// own.
///
/// The instructions name a map by its descriptor, and the kernel resolves the descriptor at load
/// time. So the programs use whatever map the descriptor refers to then. (aya can only share maps
/// that are pinned in a file system, which a container may lack.)
fn share(first: &Ebpf, ebpf: &Ebpf, name: &str) -> Result<(), SamplingError> {
    let fd = |ebpf| map_fd(ebpf, name).ok_or_else(|| broken_object(name));
    let (shared, own) = (fd(first)?, fd(ebpf)?);
    // SAFETY: both descriptors are open and stay owned by their maps; the kernel replaces the file
    // behind `own` atomically.
    if unsafe { libc::dup3(shared.as_raw_fd(), own.as_raw_fd(), libc::O_CLOEXEC) } < 0 {
        let error = crate::error::SyscallError::last("dup3");
        return Err(SamplingError::failed("the events cannot share their set of cache lines", error));
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

/// Returns the `errno` that an error of aya was caused by.
fn errno(error: &dyn std::error::Error) -> Option<i32> {
    let mut source = error.source();
    while let Some(cause) = source {
        let errno = cause.downcast_ref::<std::io::Error>().and_then(std::io::Error::raw_os_error);
        if errno.is_some() {
            return errno;
        }
        source = cause.source();
    }
    None
}

/// Explains why a program could not be loaded, followed by the verifier's log if there is one.
fn refused(error: &dyn std::error::Error) -> SamplingError {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    // The verifier explains its refusals, and it also uses EACCES. If the user may not load
    // programs, there is no log.
    let (text, log) = text.split_once("Verifier output:").unwrap_or((&text, ""));
    let reason: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match errno(error) {
        Some(libc::EPERM | libc::EACCES) if reason.is_empty() => explain::load(),
        _ => {
            // The verifier's message is near the end of the log, before its statistics.
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
