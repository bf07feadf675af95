//! Explains the kernel's refusals: what each errno means, and what the user can do about it.

use super::event::{OpenRequest, Rate, Scope};
use crate::{
    error::{ErrorClass, Remedy, SamplingError, SyscallError},
    machine::{Root, Sysctls},
    rights::Rights,
};
use precise_model::digits::thousands;

/// Returns the error for missing rights: `what` failed, and which right is missing if that is
/// known.
fn permission(what: String) -> SamplingError {
    match Rights::read(&Root::default()).refusal() {
        Some((why, remedy)) => {
            SamplingError::new(ErrorClass::Permission, format!("{what}: {why}")).remedy(remedy)
        }
        // The cause may be a security module, lockdown, or a distribution's kernel with stricter
        // levels of perf_event_paranoid than upstream Linux.
        None => SamplingError::new(ErrorClass::Permission, format!("{what}, and the reason is unknown"))
            .remedy(Remedy::Doctor),
    }
}

/// Explains a failed perf_event_open(2).
pub fn open(error: &SyscallError, request: &OpenRequest, scope: Scope) -> SamplingError {
    let place = match scope {
        Scope::Cpu(cpu) => format!("on CPU {cpu}"),
        Scope::Task { tid, .. } => format!("for thread {tid}"),
    };
    match error.errno() {
        libc::EPERM | libc::EACCES => permission(format!(
            "the kernel does not let this user sample {place} (kernel.perf_event_paranoid is {})",
            sysctls().perf_event_paranoid.map_or_else(|| "unreadable".into(), |value| value.to_string())
        )),
        libc::EINVAL => invalid(request, &place),
        libc::ENOENT | libc::ENODEV | libc::ENXIO => SamplingError::new(
            ErrorClass::Unsupported,
            format!("this machine does not have this event {place}"),
        )
        .remedy(Remedy::SeeEvents),
        libc::EOPNOTSUPP => {
            let what = if request.precise > 0 {
                format!("the PMU does not support precision level {} for this event", request.precise)
            } else {
                format!("the PMU can count this event, but not sample it {place}")
            };
            SamplingError::new(ErrorClass::Unsupported, what).remedy(Remedy::LowerPrecision)
        }
        libc::ENODATA => SamplingError::new(
            ErrorClass::Unsupported,
            "this CPU samples load latencies only together with the auxiliary event mem-loads-aux, \
             which was not opened",
        )
        .remedy(Remedy::PresetOpensBoth),
        libc::EBUSY => SamplingError::new(
            ErrorClass::Failed,
            format!("the counter that this event needs is in use by another program {place}"),
        )
        .remedy(Remedy::EndOtherProfiler),
        libc::EMFILE => SamplingError::new(
            ErrorClass::Failed,
            format!(
                "too many open files: each event needs one for each thread and CPU, and none is left {place}"
            ),
        )
        .remedy(Remedy::FewerDescriptors),
        libc::ESRCH => SamplingError::new(
            ErrorClass::Failed,
            format!("process or thread {} does not exist", task_of(scope)),
        )
        .remedy(Remedy::CheckIds),
        libc::ENOSYS => SamplingError::new(ErrorClass::Unsupported, "this kernel has no perf events"),
        _ => SamplingError::failed(format!("the event cannot be opened {place}"), error.clone()),
    }
}

/// Returns the error for a run whose events need more descriptors than the process may have.
/// `others` are the descriptors for everything else.
pub fn too_many_files(need: u64, others: u64, limit: u64) -> SamplingError {
    SamplingError::new(
        ErrorClass::Failed,
        format!(
            "the events need {} open files, one for each thread and CPU, beside {} others, and this \
             process may have {}",
            thousands(need),
            thousands(others),
            thousands(limit)
        ),
    )
    .remedy(Remedy::FewerDescriptors)
}

fn task_of(scope: Scope) -> String {
    match scope {
        Scope::Task { tid, .. } => tid.to_string(),
        Scope::Cpu(_) => String::new(),
    }
}

fn invalid(request: &OpenRequest, place: &str) -> SamplingError {
    if let Rate::Frequency(wanted) = request.rate
        && let Some(limit) = sysctls().perf_event_max_sample_rate.and_then(|limit| u64::try_from(limit).ok())
        && wanted > limit
    {
        return SamplingError::new(
            ErrorClass::Invalid,
            format!("{wanted} samples per second exceed the current limit of this machine ({limit})"),
        )
        .remedy(Remedy::LowerFrequency);
    }
    let what = if request.precise > 0 {
        format!("the PMU does not accept this event at precision level {} {place}", request.precise)
    } else {
        format!("the PMU does not accept this event, its terms or its period {place}")
    };
    SamplingError::new(ErrorClass::Unsupported, what).remedy(Remedy::SeeEvents)
}

/// Returns the error for IBS on a task before Linux 6.2 (`perf_invalid_context` of the IBS PMUs,
/// arch/x86/events/amd/ibs.c).
pub fn whole_cpus_only(event: &str) -> SamplingError {
    SamplingError::new(
        ErrorClass::Unsupported,
        format!(
            "{event}: this kernel samples IBS only on whole CPUs, not for a command, process or \
            thread (Linux 6.2 and later do)"
        ),
    )
    .remedy(Remedy::WholeCpus)
}

/// Returns the error for a filter on a field that `perf_prepare_sample()` fills in, on a kernel
/// that calls this function after the program (commit 0eed28220598 of Linux 6.3 moved the call).
pub fn looked_up_too_late(term: &str) -> SamplingError {
    SamplingError::new(
        ErrorClass::Unsupported,
        format!(
            "`{term}` cannot be filtered on this kernel, which looks it up only after the filter \
            has run (Linux 6.3 and later look it up before)"
        ),
    )
    .remedy(Remedy::LeaveTermOut)
}

/// Returns the error for page sizes on a kernel that looks them up after the program: see
/// [`looked_up_too_late`].
pub fn no_page_sizes() -> SamplingError {
    SamplingError::new(
        ErrorClass::Unsupported,
        "page-size cannot be a dimension on this kernel, which looks page sizes up only after the \
         program has run (Linux 6.3 and later look them up before)",
    )
    .remedy(Remedy::NoPageSizes)
}

/// Returns the error for call chains on a kernel whose samples do not say whether they have one
/// (`sample_flags` is new in Linux 6.1).
pub fn no_chains() -> SamplingError {
    SamplingError::new(
        ErrorClass::Unsupported,
        "call chains need Linux 6.1: older kernels do not tell the program whether a sample has a call chain",
    )
    .remedy(Remedy::NoChains)
}

/// Explains a failed mmap(2) of a ring.
pub fn ring(error: &SyscallError) -> SamplingError {
    match error.errno() {
        libc::EPERM => SamplingError::new(
            ErrorClass::Permission,
            "this user may not lock enough memory for the rings of the events",
        )
        .remedy(Remedy::MoreLockedMemory),
        _ => SamplingError::failed("the ring of the event cannot be mapped", error.clone()),
    }
}

/// Returns the error for a program that the kernel refused to load for lack of rights, not because
/// of the verifier.
pub fn load() -> SamplingError {
    permission("the kernel does not let this user load an eBPF program".to_owned())
}

/// Returns the error for tables that the kernel had no memory for: the machine has too little, or
/// the memory cgroup of this process allows too little.
pub fn no_memory(bytes: usize, cpus: usize) -> SamplingError {
    SamplingError::new(
        ErrorClass::Failed,
        format!(
            "the kernel has no memory for the tables: {} bytes for {cpus} CPUs (the limit may be that of a \
             memory cgroup)",
            thousands(bytes as u64)
        ),
    )
    .remedy(Remedy::FewerCells)
}

/// Explains why the program could not be attached.
pub fn attach(error: &SyscallError) -> SamplingError {
    match error.errno() {
        libc::EPERM | libc::EACCES => {
            permission("the kernel does not let this user attach an eBPF program to the event".to_owned())
        }
        _ => SamplingError::failed("the eBPF program cannot be attached to the event", error.clone()),
    }
}

/// Explains a failure to start, stop, read or drain an event.
pub fn control(error: &SyscallError) -> SamplingError {
    SamplingError::failed("the running event cannot be controlled", error.clone())
}

/// Returns the error for a run whose tasks all ended before sampling could start.
pub fn nothing_to_sample() -> SamplingError {
    SamplingError::new(ErrorClass::Failed, "all processes and threads to be sampled have ended")
        .remedy(Remedy::CheckIds)
}

/// Explains why the sideband could not be opened.
pub fn sideband(error: &SyscallError) -> SamplingError {
    match error.errno() {
        libc::EPERM | libc::EACCES => permission(
            "the kernel does not let this user follow process starts and mappings, which names need"
                .to_owned(),
        ),
        _ => SamplingError::failed("the mappings of processes cannot be followed", error.clone()),
    }
}

fn sysctls() -> Sysctls {
    Sysctls::read(&Root::default(), &mut Vec::new())
}
