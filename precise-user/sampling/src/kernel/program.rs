//! Loads the eBPF program: writes its constants, patches the kfunc call, maps its maps.

use std::{
    os::fd::{AsFd as _, BorrowedFd},
    sync::Arc,
};

use precise_common::{
    cell::Cell,
    config::{ABSENT, CAST_SENTINEL, Config, FilterSlot, TYPED_SENTINEL, operand, promote, source, watched},
    ledger::rejected,
    stack::StackSlot,
};
use precise_model::{CompactSort as _, digits::thousands};

use super::{
    bpf::{self, Refused},
    explain,
    map_memory::SharedMemory,
    object::{ArraySize, Loaded, ObjectError},
    offsets::KernelTypes,
    patch,
    stacks::Stacks,
    table::CellTable,
    unwind::{MAPS as UNWIND_MAPS, UnwindMemory, UnwindSizes},
    watched::Watched,
};
use crate::{
    error::{ErrorClass, Remedy, SamplingError},
    machine::{CpuState, Root},
};

/// The object that `cargo xtask build-ebpf` built, packed by the build script.
static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/object.z"));

/// The environment variable that names an object file to load instead of the embedded one.
///
/// `cargo xtask test` sets it if another toolchain built the embedded object. Release builds do not
/// read it, because a caller who chooses the object could read and write kernel memory with the
/// rights of this process.
#[cfg(debug_assertions)]
pub const OBJECT_VARIABLE: &str = "PRECISE_BPF_OBJECT";

/// The largest element of an array in which the verifier follows a program's computed offset, in
/// bytes (`BPF_MAX_VAR_OFF` in include/linux/bpf_verifier.h).
const MOST_OF_ONE: usize = 1 << 29;

/// How the program reads the kernel's structures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadPath {
    /// Direct loads through `bpf_cast_to_kern_ctx`, on Linux 6.2 and later.
    Direct,
    /// Calls of `bpf_probe_read_kernel`: works on every kernel, but is slower.
    Probe,
    /// Direct loads at the tracepoints of page faults ([`super::tracepoints`]).
    Fault,
}

/// What the kernel prepares in the sample before the program runs, because the event asks for it
/// (`PERF_SAMPLE_*`). By default nothing: the program finds both elsewhere.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Prepared {
    /// Process and thread id, in the pid namespace of the process that opened the event; otherwise
    /// the program reads the ids in the initial namespace.
    pub ids: bool,
    /// The time, from which the cost of the sample is measured; otherwise it is measured from the
    /// filter's decision on.
    pub time: bool,
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
    /// What the program reads from the sample. On Linux before 6.3, it reads all of this elsewhere.
    pub prepared: Prepared,
    /// The read path to use; `None` selects the fastest one that the kernel supports.
    pub read_path: Option<ReadPath>,
    /// The sizes of the unwind tables; `None`: the user's part of call chains is the kernel's.
    pub unwind: Option<UnwindSizes>,
    /// An object and entry point to load instead of the embedded ones, for comparing measurements.
    pub other: Option<(&'static [u8], &'static str)>,
}

/// A loaded eBPF program with its table.
#[derive(Debug)]
pub struct Program {
    loaded: Loaded,
    /// The cell table and the ledger.
    pub table: CellTable,
    /// The cgroups that the filter watches; `None` if it watches none.
    pub watched: Option<Arc<Watched>>,
    /// The unwind tables, which all programs of a run share; `None` if the run has none.
    pub unwind: Option<Arc<UnwindMemory>>,
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
    /// The number of instructions that the verifier looked at, on all paths: what loading costs.
    pub verified_instructions: u32,
}

impl Program {
    /// Loads the program into the kernel, with a table for every possible CPU.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel has no BTF, if a permission is missing, or if the verifier
    /// rejects the program.
    pub fn load(options: &ProgramOptions) -> Result<Self, SamplingError> {
        let possible = possible();
        Self::load_on(options, &possible, None)
    }

    /// Loads the program with a table for some CPUs. `first` is the program of the first event of
    /// the run, if this is another one.
    ///
    /// The program shares the set of promoted lines with `first`, so a line that one event promotes
    /// is promoted for all events; and the unwind tables.
    ///
    /// # Errors
    ///
    /// Returns the same errors as [`Self::load`].
    pub fn load_on(
        options: &ProgramOptions,
        cpus: &[u32],
        first: Option<&Self>,
    ) -> Result<Self, SamplingError> {
        let types = KernelTypes::of_this_kernel()?;
        let read_path = match (options.read_path, types.cast) {
            (Some(path), _) => path,
            (None, Some(_)) => ReadPath::Direct,
            (None, None) => ReadPath::Probe,
        };
        let kfunc = kfunc(read_path, types)?;
        // A table has a partition for each CPU that the run samples: many virtual machines could
        // have a hundred CPUs more than they have.
        let mut partitions = cpus.to_vec();
        partitions.compact_sort();
        partitions.dedup();
        // CPU numbers index the rows of the ledger. They may have gaps.
        let last = possible().last().max(partitions.last()).copied().unwrap_or(0);
        let rows = last as usize + 1;
        let slots = options.slots.max(16).next_power_of_two();
        let stacks = if options.stacks == 0 { 0 } else { options.stacks.max(16).next_power_of_two() };
        let halves = 2 * partitions.len();
        let half_bytes = slots * size_of::<Cell>();
        let most = |of_all: usize, size: usize, what: &str, fewer: Remedy| {
            let most = MOST_OF_ONE / size;
            if of_all > most {
                let [of_all, most] = [of_all, most].map(|number| thousands(number as u64));
                let what = format!("a table of {of_all} {what} is too large; it has room for at most {most}");
                return Err(SamplingError::new(ErrorClass::Invalid, what).remedy(fewer));
            }
            Ok(of_all as u32)
        };
        let cells = ArraySize::One(most(halves * slots, size_of::<Cell>(), "cells", Remedy::FewerCells)?);
        let chains = match stacks {
            // The kernel does not create a map without entries.
            0 => ArraySize::Elements(1),
            stacks => {
                let times = most(stacks, size_of::<StackSlot>(), "call chains", Remedy::FewerChains)?;
                ArraySize::Larger { elements: halves as u32, times }
            }
        };
        let mut config = Config {
            offsets: types.offsets,
            source: options.config.source | source_bits(types, options),
            slot_mask: (slots - 1) as u32,
            stack_mask: stacks.saturating_sub(1) as u32,
            rows: rows as u32,
            halves: halves as u32,
            half_shift: half_bytes.ilog2(),
            regs_type: types.faults.map_or(0, |faults| faults.registers),
            process_mask: options.unwind.map_or(0, |sizes| sizes.processes.saturating_sub(1)),
            slots: options.config.slots.map(|slot| FilterSlot { clause: counted_at(slot.clause), ..slot }),
            ..options.config
        };
        if config.reads_data() {
            config.source |= source::DATA;
        }
        let mut object = match options.other {
            Some((bytes, _)) => bytes.to_vec(),
            None => object()?,
        };
        if let Some((sentinel, id)) = kfunc {
            patch::kfunc(&mut object, sentinel, id).map_err(|lacking| broken_object(&lacking.to_string()))?;
        }
        patch::constants(&mut object, &config).map_err(|lacking| broken_object(&lacking.to_string()))?;
        let watches = config.slots.iter().any(|slot| slot.operand == operand::CGROUP_WATCHED);
        let mut sizes = vec![
            ("TABLE", cells),
            ("LEDGER", ArraySize::One(rows as u32)),
            ("STACKS", chains),
            ("CHAIN", ArraySize::Elements(if stacks > 0 { rows as u32 } else { 1 })),
            ("LINES", ArraySize::Elements(config.line_mask.saturating_add(1))),
            ("CGROUPS", ArraySize::Elements(if watches { watched::ROOM } else { 1 })),
        ];
        sizes.extend(UnwindSizes::arrays(options.unwind.as_ref()));
        let entry = match (options.other, read_path) {
            (Some((_, entry)), _) => entry,
            (None, ReadPath::Direct) => "sample",
            (None, ReadPath::Probe) => "sample_probe",
            (None, ReadPath::Fault) => "fault",
        };
        let lines = (config.promote & promote::ON != 0).then_some("LINES");
        let unwinds = options.unwind.iter().flat_map(|_| UNWIND_MAPS);
        let mut shared = Vec::new();
        if let Some(first) = first {
            for name in lines.into_iter().chain(unwinds) {
                shared.push((name, first.loaded.map(name).ok_or_else(|| broken_object(name))?));
            }
        }
        let bytes = halves * (half_bytes + stacks * size_of::<StackSlot>());
        let loaded = Loaded::load(&object, entry, &sizes, &shared).map_err(|error| match error {
            ObjectError::Map { error, .. } if error.raw_os_error() == Some(libc::ENOMEM) => {
                explain::no_memory(bytes, partitions.len())
            }
            error => refused(error),
        })?;
        let mut set = None;
        let mut unwind = None;
        let table = {
            let fd = |name: &str| loaded.map(name).ok_or_else(|| broken_object(name));
            let failed = |error| SamplingError::failed("cannot share the table with the kernel", error);
            let chains = match stacks {
                0 => None,
                stacks => Some(Stacks::map(fd("STACKS")?, partitions.len(), stacks).map_err(failed)?),
            };
            if watches {
                set = Some(Arc::new(Watched::map(fd("CGROUPS")?).map_err(failed)?));
            }
            if let Some(sizes) = options.unwind {
                let map = |name: &str, bytes| SharedMemory::map(fd(name)?, bytes).map_err(failed);
                unwind = Some(match first.and_then(|first| first.unwind.clone()) {
                    Some(memory) => memory,
                    None => Arc::new(UnwindMemory::map(sizes, map)?),
                });
            }
            CellTable::map(fd("TABLE")?, fd("LEDGER")?, chains, partitions, rows, slots).map_err(failed)?
        };
        Ok(Self { loaded, table, watched: set, unwind, read_path })
    }

    /// Returns whether the program runs at tracepoints, and not at the samples of an event.
    pub fn is_for_tracepoints(&self) -> bool {
        self.read_path == ReadPath::Fault
    }

    /// Returns the program's descriptor, for attaching it.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.loaded.program.as_fd()
    }

    /// Returns the program's run count, run time and size, as accounted by the kernel.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel does not supply the statistics.
    pub fn stats(&self) -> Result<ProgramStats, SamplingError> {
        let info = bpf::program_info(self.fd())
            .map_err(|error| SamplingError::failed("the kernel does not describe the program", error))?;
        Ok(ProgramStats {
            runs: info.run_cnt,
            run_ns: info.run_time_ns,
            translated_bytes: info.xlated_prog_len,
            verified_instructions: info.verified_insns,
        })
    }
}

/// Returns the call of a kernel function that a program has: the helper number in its place, and
/// the function's id. `None` if it has none.
fn kfunc(path: ReadPath, types: &KernelTypes) -> Result<Option<(u32, u32)>, SamplingError> {
    let (name, sentinel, id) = match path {
        ReadPath::Probe => return Ok(None),
        ReadPath::Direct => ("bpf_cast_to_kern_ctx", CAST_SENTINEL, types.cast),
        ReadPath::Fault => ("bpf_rdonly_cast", TYPED_SENTINEL, types.faults.map(|faults| faults.cast)),
    };
    match id {
        Some(id) => Ok(Some((sentinel, id))),
        None => Err(SamplingError::new(
            ErrorClass::Unsupported,
            format!("this kernel lacks {name} (Linux 6.2 and later), so samples cannot be read directly"),
        )
        .remedy(Remedy::AnyReadPath)),
    }
}

/// Returns the CPUs that may come online. Where the list cannot be read, it is empty, and a program
/// has rows for the CPUs that it is loaded for.
fn possible() -> Vec<u32> {
    Root::default().cpus(CpuState::Possible).unwrap_or_default()
}

fn source_bits(types: &KernelTypes, options: &ProgramOptions) -> u32 {
    let mut bits = if options.unwind.is_some() { source::UNWIND } else { 0 };
    if Root::default().kernel().is_some_and(|version| version.at_least(6, 3)) {
        // Since 6.3, perf_prepare_sample() runs before the program (commit 0eed28220598), so every
        // requested field is valid.
        let Prepared { ids, time } = options.prepared;
        for (prepared, bit) in [(ids, source::TID_FROM_SAMPLE), (time, source::TIME_FROM_SAMPLE)] {
            if prepared {
                bits |= bit;
            }
        }
    } else if types.offsets.sample_flags != ABSENT {
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
    prebuilt()
}

/// Returns the object that is embedded.
pub(super) fn prebuilt() -> Result<Vec<u8>, SamplingError> {
    let files = precise_packed::unpack(PACKED).map_err(|error| broken_object(&format!("bytes: {error}")))?;
    files.find("precise.bpf.o").map(<[u8]>::to_vec).ok_or_else(|| broken_object("its only file"))
}

/// Returns the word of the ledger in which the program counts the samples that fail this clause.
fn counted_at(clause: u32) -> u32 {
    u32::try_from(rejected(clause as usize)).unwrap_or(clause)
}

fn broken_object(what: &str) -> SamplingError {
    SamplingError::new(ErrorClass::Failed, format!("the embedded eBPF object lacks {what}"))
        .remedy(Remedy::RebuildProgram)
}

/// Explains why the object could not be loaded, with the end of the verifier's log if there is one.
fn refused(error: ObjectError) -> SamplingError {
    let (what, error, log) = match error {
        ObjectError::Lacks(what) => return broken_object(&what),
        ObjectError::Map { name, error } => (format!("cannot create the map {name}"), error, String::new()),
        ObjectError::Refused(Refused { error, log }) => ("BPF_PROG_LOAD failed".to_owned(), error, log),
    };
    let reason: Vec<&str> = log.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match error.raw_os_error() {
        // The verifier explains its refusals, and it also uses EACCES. If the user may not load
        // programs, there is no log.
        Some(libc::EPERM | libc::EACCES) if reason.is_empty() => explain::load(),
        _ => {
            // The verifier's message is near the end of the log, before its statistics.
            let end = reason[reason.len().saturating_sub(6)..].join("; ");
            SamplingError::new(
                ErrorClass::Unsupported,
                format!("the kernel refused the eBPF program: {what}: {error}; {end}"),
            )
            .remedy(Remedy::ReportKernel)
        }
    }
}
