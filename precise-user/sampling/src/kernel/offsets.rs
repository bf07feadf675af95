//! Resolves the running kernel's types to the constants of the eBPF program.

use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;

use precise_common::config::{ABSENT, Offsets};

use crate::btf::{Btf, BtfError};
use crate::error::{ErrorClass, Remedy, SamplingError};
use crate::machine::Root;

/// What a program needs to know of the running kernel's types.
#[derive(Clone, Copy, Debug)]
pub struct KernelTypes {
    /// Where the program finds the fields that it reads.
    pub offsets: Offsets,
    /// The id of `bpf_cast_to_kern_ctx`; `None` before Linux 6.2.
    pub cast: Option<u32>,
    /// What the program at the tracepoints of page faults needs; `None` before Linux 6.2.
    pub faults: Option<FaultTypes>,
}

/// What the program at the tracepoints of page faults needs.
#[derive(Clone, Copy, Debug)]
pub struct FaultTypes {
    /// The id of `bpf_rdonly_cast`.
    pub cast: u32,
    /// The id of `struct pt_regs`.
    pub registers: u32,
}

impl KernelTypes {
    /// Returns what the running kernel says. It is read once: a run loads a program for each event,
    /// and the kernel's types take 7 MB.
    ///
    /// # Errors
    ///
    /// Returns an error if the kernel was built without BTF, if it may not be read, or if a field
    /// is missing that every supported kernel has.
    pub fn of_this_kernel() -> Result<&'static Self, SamplingError> {
        static TYPES: OnceLock<KernelTypes> = OnceLock::new();
        static READING: Mutex<()> = Mutex::new(());
        // A second caller waits for the result of the first.
        let _reading = READING.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(types) = TYPES.get() {
            return Ok(types);
        }
        let btf = read()?;
        let offsets = resolve(&btf)?;
        // The tracepoints have these names on x86, and since Linux 6.16 wherever there are any.
        let [cast, typed, of_user, of_kernel] = btf.function_ids([
            "bpf_cast_to_kern_ctx",
            "bpf_rdonly_cast",
            "__traceiter_page_fault_user",
            "__traceiter_page_fault_kernel",
        ]);
        let are_there = of_user.and(of_kernel).is_some() && offsets.pagefault_disabled != ABSENT;
        let faults = typed.zip(btf.structure_id("pt_regs")).filter(|_| are_there);
        let faults = faults.map(|(cast, registers)| FaultTypes { cast, registers });
        let types = Self { offsets, cast, faults };
        Ok(TYPES.get_or_init(|| types))
    }

    /// Starts a thread that reads the types; [`Self::of_this_kernel`] waits for it. Opening the
    /// first event of a task blocks for about as long (`synchronize_rcu()` in `account_event()`,
    /// kernel/events/core.c), so the two overlap.
    pub fn read_ahead() -> Option<JoinHandle<()>> {
        let read = || {
            // The next caller meets the same error.
            let _error = Self::of_this_kernel();
        };
        // If the thread cannot be started, the types are read when they are needed.
        std::thread::Builder::new().name("types".into()).spawn(read).ok()
    }
}

/// Reads the running kernel's type information.
fn read() -> Result<Btf, SamplingError> {
    Btf::read(&Root::default()).map_err(|error| {
        let what = error.to_string();
        match error {
            BtfError::Unreadable { error, .. } if error.kind() == std::io::ErrorKind::PermissionDenied => {
                SamplingError::new(ErrorClass::Permission, what).remedy(Remedy::ReadableTypes)
            }
            BtfError::Unreadable { .. } => {
                SamplingError::new(ErrorClass::Unsupported, what).remedy(Remedy::KernelTypes)
            }
            BtfError::Malformed(_) => SamplingError::new(ErrorClass::Unsupported, what),
        }
    })
}

/// Returns the offsets of the fields that the program reads.
///
/// # Errors
///
/// Returns an error if a field is missing that every supported kernel has.
fn resolve(btf: &Btf) -> Result<Offsets, SamplingError> {
    let required = |structure: &str, member: &str| {
        btf.offset(structure, member).ok_or_else(|| {
            SamplingError::new(
                ErrorClass::Unsupported,
                format!(
                    "the kernel's type information has no {structure}.{member}, so this kernel is \
                    too old or too new"
                ),
            )
            .remedy(Remedy::ReportKernel)
        })
    };
    let optional = |structure: &str, member: &str| btf.offset(structure, member).unwrap_or(ABSENT);
    Ok(Offsets {
        ctx_data: required("bpf_perf_event_data_kern", "data")?,
        ctx_event: required("bpf_perf_event_data_kern", "event")?,
        event_period: required("perf_event", "hw")? + required("hw_perf_event", "sample_period")?,
        regs_ip: required("pt_regs", "ip")?,
        sample_flags: optional("perf_sample_data", "sample_flags"),
        raw: required("perf_sample_data", "raw")?,
        raw_data: required("perf_raw_record", "frag")? + required("perf_raw_frag", "data")?,
        tid_entry: required("perf_sample_data", "tid_entry")?,
        phys_addr: optional("perf_sample_data", "phys_addr"),
        weight: required("perf_sample_data", "weight")?,
        data_src: required("perf_sample_data", "data_src")?,
        data_page_size: optional("perf_sample_data", "data_page_size"),
        callchain: required("perf_sample_data", "callchain")?,
        time: required("perf_sample_data", "time")?,
        pagefault_disabled: optional("task_struct", "pagefault_disabled"),
        task_flags: required("task_struct", "flags")?,
        task_pid: required("task_struct", "pid")?,
        task_tgid: required("task_struct", "tgid")?,
        task_cgroups: optional("task_struct", "cgroups"),
    })
}
