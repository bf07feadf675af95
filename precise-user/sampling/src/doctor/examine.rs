//! Derives from a machine's state whether precise sampling can be expected.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Check, CheckStatus, MachineState, ReaderConfinement, around};
use crate::error::ErrorClass;
use crate::machine::Sysctls;
use crate::pmu;
use crate::pmu::{EventRequest, Exactness, PresetOptions};
use precise_model::digits::counted;
use precise_model::{Precision, Preset};

/// The result of all checks of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// The conclusion, in one sentence.
    pub verdict: String,
    /// The checks and their results.
    pub checks: Vec<Check>,
    /// The class of error with which a run would fail; `None` if precise sampling can be expected.
    #[serde(skip)]
    pub class: Option<ErrorClass>,
}

/// Runs every check that decides whether precise sampling can be expected.
pub fn examine(state: &MachineState) -> Diagnosis {
    let mut checks = vec![cpu(state), around::host(state)];
    checks.extend(around::guests(state));
    checks.extend([kernel(state), btf(state)]);
    checks.extend(around::bpf(state));
    checks.extend([pmu(state), around::record_unit(state), level(state), rights(state)]);
    checks.extend(around::process(state));
    checks.extend(state.naming.as_ref().map(ReaderConfinement::check));
    checks.extend(limits(state));
    checks.push(around::cgroups(state));
    checks.extend(around::quiet(state));
    let bad =
        |name: &str| checks.iter().find(|check| check.name == name && check.status != CheckStatus::Passed);
    let hopeless = bad("BTF").or_else(|| bad("kernel")).or_else(|| bad("lockdown"));
    let no_rights = bad("rights").filter(|check| check.status == CheckStatus::Failed);
    let (class, verdict) = if let Some(check) = hopeless {
        (Some(ErrorClass::Unsupported), format!("This machine cannot be sampled: {}.", check.reason))
    } else if let Some(check) = bad("PMU").or_else(|| bad("precise level")) {
        // If the firmware disabled the unit, this explains what the kernel lacks.
        let cause = ["PEBS", "IBS"]
            .into_iter()
            .find_map(|unit| bad(unit).filter(|c| c.status == CheckStatus::Failed));
        let (class, software) = match no_rights {
            // A run of the events that there are would fail by this.
            Some(rights) => (ErrorClass::Permission, format!("could be sampled, but {}", rights.reason)),
            None => (ErrorClass::Unsupported, "can be sampled".to_owned()),
        };
        let verdict = format!(
            "No precise hardware samples on this machine: {}. Page faults and a timer (cpu-clock) \
             {software}.",
            cause.unwrap_or(check).reason
        );
        (Some(class), verdict)
    } else if let Some(rights) = no_rights {
        (
            Some(ErrorClass::Permission),
            format!("This machine supports precise sampling, but {}.", rights.reason),
        )
    } else {
        let verdict = "This machine should support precise sampling; `precise doctor --self-test` proves it.";
        (None, verdict.to_owned())
    };
    Diagnosis { verdict, checks, class }
}

fn cpu(state: &MachineState) -> Check {
    let cpu = &state.machine.cpu;
    let found = format!(
        "{}, family {}, model {}, stepping {}; {} online",
        if cpu.name.is_empty() { "unknown" } else { &cpu.name },
        cpu.family,
        cpu.model,
        cpu.stepping,
        counted(state.machine.online.len() as u64, "CPU"),
    );
    Check::new("CPU", CheckStatus::Passed, found, "")
}

fn kernel(state: &MachineState) -> Check {
    let found = state.machine.machine.kernel.clone();
    match state.machine.kernel {
        Some(version) if version.at_least(6, 1) => {
            let reason = if version.at_least(6, 3) {
                ""
            } else {
                "samples are read more slowly and have fewer fields than on Linux 6.3 and later"
            };
            Check::new("kernel", CheckStatus::Passed, found, reason)
        }
        // Older kernels work too, but some fields cannot be trusted: docs/hardware.md.
        Some(_) => {
            Check::new("kernel", CheckStatus::Passed, found, "Linux before 6.1 is not officially supported")
        }
        None => Check::new("kernel", CheckStatus::NotDecided, found, "the kernel release cannot be parsed"),
    }
}

fn btf(state: &MachineState) -> Check {
    if state.btf {
        Check::new("BTF", CheckStatus::Passed, "/sys/kernel/btf/vmlinux", "")
    } else {
        let why = "the kernel has no BTF type information, which the program needs \
            (/sys/kernel/btf/vmlinux; build it with CONFIG_DEBUG_INFO_BTF)";
        Check::new("BTF", CheckStatus::Failed, "none", why)
    }
}

/// Returns the names of the PMUs that can take precise samples.
fn hardware(state: &MachineState) -> Vec<&str> {
    let samples = |name: &&str| matches!(*name, "cpu" | "ibs_op" | "ibs_fetch") || name.starts_with("cpu_");
    state.names.iter().map(String::as_str).filter(samples).collect()
}

fn pmu(state: &MachineState) -> Check {
    let hardware = hardware(state);
    if hardware.is_empty() {
        let why = pmu::preset::events_for(Preset::Cycles, &state.pmus, &PresetOptions::default())
            .err()
            .map_or("the kernel has no PMU driver for this CPU".to_owned(), |unsupported| unsupported.reason);
        return Check::new("PMU", CheckStatus::NotOffered, "none", why);
    }
    Check::new("PMU", CheckStatus::Passed, hardware.join(", "), "")
}

/// Checks what makes samples precise on this machine. It opens no event, so only a run can show
/// what the kernel grants.
fn level(state: &MachineState) -> Check {
    let name = "precise level";
    let presets = [Preset::Cycles, Preset::Ops, Preset::Loads];
    let mut refused = "this machine has no precise event".to_owned();
    for preset in presets {
        match pmu::preset::events_for(preset, &state.pmus, &PresetOptions::default()) {
            Ok(events) => match events.iter().find(|event| is_precise(event)) {
                Some(event) => {
                    let found = match event.exactness {
                        Exactness::PreciseIp { max, .. } => format!("up to level {max}"),
                        _ => "every IBS sample is exact".to_owned(),
                    };
                    return Check::new(
                        name,
                        CheckStatus::Passed,
                        found,
                        "the kernel decides when an event is opened",
                    );
                }
                None => {
                    if let Some(Exactness::Never(why)) = events.first().map(|event| &event.exactness) {
                        refused.clone_from(why);
                    }
                }
            },
            Err(unsupported) => refused = unsupported.reason,
        }
    }
    // If there is no PMU, the check of the PMU already gives the reason.
    let reason = if hardware(state).is_empty() { "there is no PMU".to_owned() } else { refused };
    Check::new(name, CheckStatus::NotOffered, "none", reason)
}

fn is_precise(event: &EventRequest) -> bool {
    let ladder = pmu::ladder(event, Precision::Require);
    ladder.levels.iter().any(|level| event.exact_at(*level))
}

fn rights(state: &MachineState) -> Check {
    match state.rights.capabilities.map(|_| state.rights.refusal()) {
        Some(None) => Check::new("rights", CheckStatus::Passed, "may sample and load programs", ""),
        Some(Some((why, _))) => {
            Check::new("rights", CheckStatus::Failed, "may not sample all processes and load programs", why)
                .fix("setcap cap_perfmon,cap_bpf,cap_sys_ptrace,cap_syslog=ep \"$(command -v precise)\"")
        }
        None => Check::new(
            "rights",
            CheckStatus::NotDecided,
            "",
            "/proc/self/status does not tell the rights of this process",
        ),
    }
}

/// Checks the kernel's limits, with their effect on a run by a user who has the rights.
fn limits(state: &MachineState) -> Vec<Check> {
    let Sysctls {
        perf_event_paranoid,
        perf_event_max_sample_rate,
        perf_cpu_time_max_percent,
        kptr_restrict,
        nmi_watchdog,
        perf_event_mlock_kb: _,
    } = state.machine.sysctls;
    let allowed = state.may_sample() == Some(true);
    let limit = |name: &str, value: Option<i64>, meaning: &dyn Fn(i64) -> (bool, &'static str)| match value {
        Some(value) => {
            let (fine, meaning) = meaning(value);
            let status = if fine { CheckStatus::Passed } else { CheckStatus::Failed };
            Check::new(name, status, value.to_string(), meaning)
        }
        None => Check::new(name, CheckStatus::NotDecided, "", "cannot be read"),
    };
    let paranoid = limit("perf_event_paranoid", perf_event_paranoid, &|value| match value {
        ..=-1 => (true, "all users may sample"),
        _ if allowed => (true, "restricts only users without CAP_PERFMON"),
        0 => (true, "users may sample CPUs and the kernel"),
        1 => (false, "users may sample only their own processes"),
        2 => (false, "users may sample neither CPUs nor the kernel"),
        // Levels from distribution patches: Debian, Ubuntu and Android. Some of their kernels
        // require CAP_SYS_ADMIN at level 4.
        _ => (false, "a level that only some distributions have: users may not open any event"),
    });
    let pointers = limit("kptr_restrict", kptr_restrict, &|value| match value {
        ..=0 => {
            (true, "kernel functions have names; at perf_event_paranoid 2, only for users with CAP_SYSLOG")
        }
        1 if allowed => (true, "kernel functions have names only for users with CAP_SYSLOG"),
        _ => (false, "kernel functions have no names, because their addresses are hidden"),
    });
    let time = limit("perf_cpu_time_max_percent", perf_cpu_time_max_percent, &|value| match value {
        0 | 100.. => (true, "no time limit"),
        _ => (true, "% of a CPU; above this the kernel lowers the sampling rate, and the verdict reports it"),
    });
    let watchdog = limit("nmi_watchdog", nmi_watchdog, &|value| match value {
        0 => (true, "uses no counter"),
        _ => (
            true,
            "uses one counter of each CPU, so an event that needs exactly this counter cannot be opened",
        ),
    });
    let fixed = |check: Check, when: bool, command: &str| if when { check.fix(command) } else { check };
    vec![
        paranoid,
        fixed(pointers, kptr_restrict.is_some_and(|value| value > 1), "sysctl kernel.kptr_restrict=1"),
        around::rate(perf_event_max_sample_rate),
        time,
        fixed(watchdog, nmi_watchdog.is_some_and(|value| value > 0), "sysctl kernel.nmi_watchdog=0"),
    ]
}
