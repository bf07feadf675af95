//! Checks of the surroundings of the PMU: firmware, hypervisor, BPF, rights, cgroups, noise.

use caps::Capability;

use super::{Check, CheckStatus, MachineState};
use precise_model::Vendor;

/// The default of `kernel.perf_event_max_sample_rate` at boot, in samples per second per CPU
/// (`DEFAULT_MAX_SAMPLE_RATE`, kernel/events/core.c).
const BOOT_RATE: i64 = 100_000;

/// Checks PEBS or IBS: compares what the CPU reports with what the kernel uses. If they differ, the
/// firmware or the hypervisor has disabled it.
pub(super) fn record_unit(state: &MachineState) -> Check {
    let around = &state.around;
    let cpu = &state.machine.cpu;
    let (flag, unit, has_pmu) = match cpu.vendor {
        Vendor::Intel => {
            ("pebs", "PEBS", state.names.iter().any(|name| name == "cpu" || name.starts_with("cpu_")))
        }
        Vendor::Amd => ("ibs", "IBS", state.names.iter().any(|name| name == "ibs_op")),
        Vendor::Other => {
            return Check::new("PEBS or IBS", CheckStatus::NotOffered, "neither Intel nor AMD", "");
        }
    };
    match (around.has_flag(flag), has_pmu) {
        (true, true) => {
            Check::new(unit, CheckStatus::Passed, format!("the CPU supports it (flag {flag})"), "")
        }
        (true, false) => Check::new(
            unit,
            CheckStatus::Failed,
            format!("the CPU supports it (flag {flag}), but the kernel does not use it"),
            "the firmware disables it or sets it up wrongly; the kernel log says why: dmesg | grep -i \
             -e ibs -e pebs",
        )
        .fix("dmesg | grep -i -e ibs -e pebs"),
        (false, _) if cpu.hypervisor => Check::new(
            unit,
            CheckStatus::NotOffered,
            format!("no CPU flag {flag}"),
            "the hypervisor hides it",
        ),
        (false, true) if cpu.vendor == Vendor::Intel => Check::new(
            unit,
            CheckStatus::Failed,
            format!("there is a PMU, but no CPU flag {flag}"),
            "the firmware disables PEBS (IA32_MISC_ENABLE, bit 12)",
        ),
        (false, _) => Check::new(
            unit,
            CheckStatus::NotOffered,
            format!("no CPU flag {flag}"),
            "the CPU does not report it",
        ),
    }
}

/// Checks the host: its product name, and whether it is a virtual machine.
pub(super) fn host(state: &MachineState) -> Check {
    let product = state.around.product.clone().unwrap_or_default();
    let reason = if state.machine.cpu.hypervisor {
        "virtual machine; what it has of the PMU depends on the hypervisor"
    } else {
        "no hypervisor"
    };
    Check::new("virtualisation", CheckStatus::Passed, product, reason)
}

/// Says what samples of virtual machines have, where these may run.
pub(super) fn guests(state: &MachineState) -> Option<Check> {
    state.machine.can_run_guests.then(|| {
        Check::new(
            "guests",
            CheckStatus::Passed,
            "may run here",
            "a sample taken while a virtual machine's guest runs has its process and no instruction; for \
             these, record in the guest",
        )
    })
}

/// Checks BPF, and what prevents programs from reading kernel memory.
pub(super) fn bpf(state: &MachineState) -> Vec<Check> {
    let call = match state.around.bpf {
        true => Check::new(
            "BPF",
            CheckStatus::Passed,
            match state.around.unprivileged_bpf_disabled {
                Some(0) => "unprivileged users may load programs",
                _ => "loading programs takes CAP_BPF and CAP_PERFMON",
            },
            "",
        ),
        false => Check::new(
            "BPF",
            CheckStatus::NotDecided,
            "",
            "the kernel does not seem to have the bpf system call (CONFIG_BPF_SYSCALL)",
        ),
    };
    let lockdown = match state.around.lockdown.as_deref() {
        None => Check::new(
            "lockdown",
            CheckStatus::Passed,
            "none",
            "this kernel has no lockdown, or securityfs is not mounted",
        ),
        Some("confidentiality") => Check::new(
            "lockdown",
            CheckStatus::Failed,
            "confidentiality",
            "nobody may sample the kernel or read it from a program, not even root, until the next boot \
             (kernel parameter lockdown=)",
        ),
        Some(mode) => Check::new("lockdown", CheckStatus::Passed, mode, "does not restrict sampling"),
    };
    vec![call, lockdown]
}

/// Checks the rights of this process beyond sampling, and the restrictions of its container.
pub(super) fn process(state: &MachineState) -> Vec<Check> {
    let rights = &state.rights;
    let names = [
        (Capability::CAP_SYS_PTRACE, "names in other users' processes"),
        (Capability::CAP_SYSLOG, "names in the kernel"),
    ];
    let mut checks: Vec<Check> = names
        .into_iter()
        .map(|(capability, what)| {
            let name = capability.to_string();
            match rights.has(capability) {
                Some(true) => Check::new(&name, CheckStatus::Passed, "held", what),
                Some(false) => Check::new(&name, CheckStatus::NotOffered, "not held", format!("no {what}")),
                None => Check::new(&name, CheckStatus::NotDecided, "", "/proc/self/status does not tell"),
            }
        })
        .collect();
    checks.push(match (rights.seccomp, rights.user_namespace) {
        (_, Some(true)) => Check::new(
            "container",
            CheckStatus::Failed,
            "a user namespace",
            "its capabilities do not count for perf events and eBPF programs",
        ),
        (Some(true), _) => Check::new(
            "container",
            CheckStatus::Passed,
            "a seccomp filter",
            "it must allow perf_event_open and bpf; only a run shows whether it does",
        ),
        (Some(false), _) => {
            Check::new("container", CheckStatus::Passed, "no seccomp filter, no user namespace", "")
        }
        (None, _) => Check::new("container", CheckStatus::NotDecided, "", "/proc/self/status does not tell"),
    });
    checks
}

/// Checks the limit of the sample rate, compared with its value at boot.
pub(super) fn rate(value: Option<i64>) -> Check {
    let name = "perf_event_max_sample_rate";
    let command = format!("sysctl kernel.perf_event_max_sample_rate={BOOT_RATE}");
    match value {
        None => Check::new(name, CheckStatus::NotDecided, "", "cannot be read"),
        Some(value @ ..=999) => Check::new(
            name,
            CheckStatus::Failed,
            value.to_string(),
            "samples per second per CPU; the default periods give about 1,000 and would be throttled",
        )
        .fix(command),
        Some(value) if value < BOOT_RATE => Check::new(
            name,
            CheckStatus::Passed,
            value.to_string(),
            format!(
                "samples per second per CPU; {BOOT_RATE} at boot, lowered since: by the kernel because \
                 interrupts took too long, or by an administrator"
            ),
        )
        .fix(command),
        Some(value) => Check::new(name, CheckStatus::Passed, value.to_string(), "samples per second per CPU"),
    }
}

/// Checks the cgroup hierarchies.
pub(super) fn cgroups(state: &MachineState) -> Check {
    let around = &state.around;
    let on = around.perf_event_on;
    match (&around.cgroup_v2, around.cgroup_v1) {
        (Some(point), false) => Check::new("cgroups", CheckStatus::Passed, format!("v2, at {point}"), ""),
        (Some(point), true) => {
            let controller = match on {
                Some("v1") => {
                    "; perf_event is on v1, so precise walks the tree once a second to find new cgroups"
                }
                _ => "",
            };
            Check::new(
                "cgroups",
                CheckStatus::Passed,
                format!("hybrid: v1, and v2 at {point}"),
                format!(
                    "filters by cgroup and cgroup names see only the v2 tree, which holds only what was \
                     placed there explicitly{controller}"
                ),
            )
        }
        (None, true) => Check::new(
            "cgroups",
            CheckStatus::Failed,
            "v1 only",
            "eBPF programs see only the v2 hierarchy: filters by cgroup and container names are not \
             available",
        )
        .fix("mount -t cgroup2 none /sys/fs/cgroup/unified"),
        (None, false) => Check::new(
            "cgroups",
            CheckStatus::NotDecided,
            "none mounted",
            "filters by cgroup and container names are not available",
        ),
    }
}

/// Checks SMT and the frequency governor, which change latencies and rates during a measurement,
/// and the kernel's line information.
pub(super) fn quiet(state: &MachineState) -> Vec<Check> {
    let around = &state.around;
    let smt = match around.smt {
        Some(true) => Check::new(
            "SMT",
            CheckStatus::Passed,
            "on",
            "hyper-threads share caches and counters, so latencies depend on what the sibling runs",
        ),
        Some(false) => Check::new("SMT", CheckStatus::Passed, "off", ""),
        None => Check::new("SMT", CheckStatus::NotDecided, "", "the kernel does not tell"),
    };
    let governor = match &around.governors[..] {
        [] => Check::new("governor", CheckStatus::NotDecided, "", "no CPU frequency governor"),
        [one] if one == "performance" => Check::new("governor", CheckStatus::Passed, one.as_str(), ""),
        several => Check::new(
            "governor",
            CheckStatus::Passed,
            several.join(", "),
            "the clock changes with the load: latencies in cycles stay comparable, rates do not",
        )
        .fix("cpupower frequency-set --governor performance"),
    };
    let lines = if around.kernel_lines {
        Check::new("debug info", CheckStatus::Passed, "of the running kernel", "")
    } else {
        let check = Check::new(
            "debug info",
            CheckStatus::NotOffered,
            "none for the running kernel",
            "kernel functions have names, but no source lines",
        );
        // Nobody has packed the debug information of a kernel that is not from a package.
        match around.kernel_packaged {
            true => check.fix("apt-get install linux-image-$(uname -r)-dbg"),
            false => check,
        }
    };
    vec![smt, governor, lines]
}
