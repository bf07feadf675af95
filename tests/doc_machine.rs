//! Compares what docs/list.md and docs/doctor.md show with what the binary prints on the machine
//! that they describe: a virtual machine without a PMU.
//!
//! With `PRECISE_UPDATE_DOCUMENTS=1` the outputs are rewritten instead of compared.

use std::fs;

use anyhow::Result;
use precise::doctor::{MachineState, ReaderConfinement, examine};
use precise::machine::Root;
use precise::pmu::{Pmus, list};
use precise::reader::Confinement;
use precise::text::doctor_text::diagnosis_text;
use precise::views::render::TextOptions;
use tempfile::TempDir;

use crate::documents::same_part;

/// The files that list and doctor read on such a machine.
const FILES: &[(&str, &str)] = &[
    (
        "proc/cpuinfo",
        "processor\t: 0\nvendor_id\t: GenuineIntel\ncpu family\t: 6\nmodel\t\t: 85\n\
         model name\t: Intel(R) Xeon(R) Processor @ 2.50GHz\nstepping\t: 7\n\
         flags\t\t: fpu lm hypervisor\n\nprocessor\t: 1\nvendor_id\t: GenuineIntel",
    ),
    (
        "proc/self/mountinfo",
        "24 1 0:22 / /sys rw - sysfs sysfs rw\n\
         25 24 0:6 / /sys/kernel/security rw - securityfs securityfs rw\n\
         26 24 0:23 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw",
    ),
    ("proc/self/status", "Name:\tprecise\nCapEff:\t000001ffffffffff\nSeccomp:\t0"),
    ("proc/self/uid_map", "         0          0 4294967295"),
    ("proc/sys/kernel/hostname", "vm"),
    ("proc/sys/kernel/kptr_restrict", "0"),
    ("proc/sys/kernel/nmi_watchdog", "0"),
    ("proc/sys/kernel/osrelease", "6.12.41+deb13-cloud-amd64"),
    ("proc/sys/kernel/perf_cpu_time_max_percent", "25"),
    ("proc/sys/kernel/perf_event_max_sample_rate", "100000"),
    ("proc/sys/kernel/perf_event_paranoid", "2"),
    ("proc/sys/kernel/unprivileged_bpf_disabled", "2"),
    ("sys/bus/event_source/devices/breakpoint/type", "5"),
    ("sys/bus/event_source/devices/msr/type", "10"),
    ("sys/bus/event_source/devices/software/type", "1"),
    ("sys/bus/event_source/devices/tracepoint/type", "2"),
    ("sys/devices/system/cpu/online", "0-1"),
    ("sys/devices/system/cpu/possible", "0-1"),
    ("sys/devices/system/cpu/smt/active", "0"),
    ("sys/kernel/btf/vmlinux", ""),
    ("sys/kernel/security/lockdown", "[none] integrity confidentiality"),
];

/// Returns the root folder of the machine, which is removed when this is dropped.
fn machine() -> Result<(TempDir, Root)> {
    let folder = tempfile::tempdir()?;
    for (path, text) in FILES {
        let path = folder.path().join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, format!("{text}\n"))?;
    }
    let root = Root(folder.path().to_owned());
    Ok((folder, root))
}

fn fence(command: &str, output: &str) -> String {
    format!("```\n$ {command}\n{}\n```\n", output.trim_end())
}

#[test]
fn the_list_is_what_the_binary_prints() -> Result<()> {
    let (_folder, root) = machine()?;
    let text = list::list(&Pmus::read(&root)).to_text(TextOptions::default().width);
    same_part("list.md", "list", &fence("precise list", &text))
}

#[test]
fn the_diagnosis_is_what_the_binary_prints() -> Result<()> {
    let (_folder, root) = machine()?;
    let mut state = MachineState::read(&root);
    let confinement = Confinement { own_user: true, empty_root: true, own_network: true, landlock: true };
    state.naming =
        Some(ReaderConfinement { confinement: Some(confinement), refusal: None, landlock_abi: Some(6) });
    let text = diagnosis_text(&examine(&state), &TextOptions::default());
    same_part("doctor.md", "diagnosis", &fence("precise doctor", &text))
}
