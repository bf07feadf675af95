use super::*;
use crate::{
    error::ErrorClass,
    pmu::fixture::{self, Tree},
};

fn ready(tree: Tree) -> Tree {
    tree.file("/sys/kernel/btf/vmlinux", "types")
        .file("/proc/self/status", "Name:\tprecise\nCapEff:\t000001ffffffffff")
        .file("/proc/sys/kernel/perf_event_paranoid", "2")
        .file("/proc/sys/kernel/kptr_restrict", "1")
        .file("/proc/sys/kernel/perf_event_max_sample_rate", "100000")
        .file("/sys/devices/system/cpu/online", "0-1")
}

fn diagnosis(tree: &Tree) -> Diagnosis {
    examine(&MachineState::read(&tree.root()))
}

fn check<'a>(diagnosis: &'a Diagnosis, name: &str) -> &'a Check {
    diagnosis.checks.iter().find(|check| check.name == name).unwrap()
}

#[test]
fn machines_that_can_are_told_so() {
    for (tree, pmus, level) in [
        (fixture::skl(), "cpu", "up to level 3"),
        (fixture::zen4(), "cpu, ibs_fetch, ibs_op", "every IBS sample is exact"),
    ] {
        let diagnosis = diagnosis(&ready(tree));
        assert_eq!(diagnosis.class, None, "{diagnosis:?}");
        assert_eq!(check(&diagnosis, "PMU").found, pmus);
        assert_eq!(check(&diagnosis, "precise level").found, level);
        assert_eq!(check(&diagnosis, "perf_event_paranoid").status, CheckStatus::Passed);
    }
}

#[test]
fn a_virtual_machine_without_a_pmu_has_software_events() {
    let diagnosis = diagnosis(&ready(fixture::vm()));
    assert_eq!(diagnosis.class, Some(ErrorClass::Unsupported));
    assert_eq!(check(&diagnosis, "PMU").status, CheckStatus::NotOffered);
    assert!(
        diagnosis.verdict.starts_with("No precise hardware samples on this machine: "),
        "{}",
        diagnosis.verdict
    );
    assert!(diagnosis.verdict.contains("Page faults"), "{}", diagnosis.verdict);
}

#[test]
fn who_may_not_sample_software_events_either_is_told_so() {
    let user = ready(fixture::vm()).file("/proc/self/status", "CapEff:\t0000000000000000");
    let user = diagnosis(&user);
    assert_eq!(user.class, Some(ErrorClass::Permission));
    assert!(user.verdict.contains("could be sampled, but "), "{}", user.verdict);
    assert!(user.verdict.contains("CAP_PERFMON"), "{}", user.verdict);
}

#[test]
fn what_is_missing_is_said_before_what_follows_from_it() {
    let no_types = diagnosis(&fixture::skl());
    assert_eq!(no_types.class, Some(ErrorClass::Unsupported));
    assert!(no_types.verdict.contains("CONFIG_DEBUG_INFO_BTF"), "{}", no_types.verdict);

    let user = ready(fixture::skl()).file("/proc/self/status", "CapEff:\t0000000000000000");
    let user = diagnosis(&user);
    assert_eq!(user.class, Some(ErrorClass::Permission));
    assert_eq!(check(&user, "perf_event_paranoid").status, CheckStatus::Failed);
    assert!(user.verdict.contains("CAP_PERFMON"), "{}", user.verdict);
}

#[test]
fn nothing_readable_is_not_decided() {
    let folder = tempfile::tempdir().unwrap();
    let state = MachineState::read(&crate::machine::Root(folder.path().to_owned()));
    let diagnosis = examine(&state);
    assert_eq!(check(&diagnosis, "rights").status, CheckStatus::NotDecided);
    assert_eq!(check(&diagnosis, "kernel").status, CheckStatus::NotDecided);
    assert_eq!(diagnosis.class, Some(ErrorClass::Unsupported));
}

#[test]
fn a_switch_of_the_firmware_is_told_from_a_cpu_without_it() {
    let flags = |flags: &str| {
        format!("vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t: 17\nflags\t: fpu lm {flags}")
    };
    let tree =
        |words: &str| ready(Tree::new(&flags(words), "6.12.0").pmu("cpu", 4, &["format/event=config:0-7"]));
    let off = diagnosis(&tree("ibs"));
    assert_eq!(check(&off, "IBS").status, CheckStatus::Failed);
    assert!(off.verdict.contains("firmware"), "{}", off.verdict);
    assert_eq!(check(&diagnosis(&tree("")), "IBS").status, CheckStatus::NotOffered);
    let hidden = diagnosis(&tree("hypervisor"));
    assert!(check(&hidden, "IBS").reason.contains("hypervisor"));
    assert!(check(&hidden, "virtualisation").reason.contains("virtual machine"));
}

#[test]
fn a_host_of_virtual_machines_is_told_what_their_samples_have() {
    let guests = |flags: &str| {
        let cpu =
            format!("vendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t: 17\nflags\t: fpu lm {flags}");
        let diagnosis = diagnosis(&ready(Tree::new(&cpu, "6.12.0")));
        diagnosis.checks.into_iter().find(|check| check.name == "guests")
    };
    assert!(guests("svm").unwrap().reason.contains("no instruction"));
    assert_eq!(guests(""), None);
}

#[test]
fn what_restricts_samples_is_found() {
    let tree = ready(fixture::skl())
        .file("/sys/kernel/security/lockdown", "none integrity [confidentiality]")
        .file("/proc/self/status", "CapEff:\t000000c000000000\nSeccomp:\t2")
        .file("/proc/self/uid_map", "0 0 4294967295")
        .file("/proc/sys/kernel/perf_event_paranoid", "4")
        .file("/proc/sys/kernel/kptr_restrict", "2")
        .file("/proc/sys/kernel/nmi_watchdog", "1")
        .file("/proc/sys/kernel/unprivileged_bpf_disabled", "2")
        .file("/sys/devices/system/cpu/smt/active", "1")
        .file("/sys/devices/system/cpu/cpufreq/policy0/scaling_governor", "powersave")
        .file("/sys/devices/system/cpu/cpufreq/policy1/scaling_governor", "powersave")
        .file("/proc/sys/kernel/perf_event_max_sample_rate", "12500")
        .file("/usr/lib/debug/boot/vmlinux-6.12.0", "");
    let found = diagnosis(&tree);
    assert_eq!(found.class, Some(ErrorClass::Unsupported));
    assert!(found.verdict.contains("nobody may sample the kernel"), "{}", found.verdict);
    assert_eq!(check(&found, "container").found, "a seccomp filter");
    assert_eq!(check(&found, "CAP_SYS_PTRACE").status, CheckStatus::NotOffered);
    assert_eq!(check(&found, "kptr_restrict").fix.as_deref(), Some("sysctl kernel.kptr_restrict=1"));
    assert!(check(&found, "perf_event_max_sample_rate").reason.contains("100000 at boot"));
    assert_eq!(check(&found, "SMT").found, "on");
    assert_eq!(check(&found, "governor").found, "powersave");
    assert_eq!(check(&found, "BPF").status, CheckStatus::Passed);

    // The levels of Debian and Ubuntu restrict users without CAP_PERFMON.
    let user = diagnosis(&tree.file("/proc/self/status", "CapEff:\t0"));
    assert!(check(&user, "perf_event_paranoid").reason.contains("distribution"));
}

#[test]
fn hierarchies_of_cgroups_are_told_apart() {
    let at = |mounts: &str| {
        let state = ready(fixture::skl()).file("/proc/self/mountinfo", mounts);
        check(&diagnosis(&state), "cgroups").clone()
    };
    let v2 = "35 24 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw";
    let v1 = "33 31 0:30 / /sys/fs/cgroup/perf_event rw - cgroup cgroup rw,perf_event";
    assert_eq!(at(v2).found, "v2, at /sys/fs/cgroup");
    let hybrid = at(&format!("{v2}\n{v1}"));
    assert!(hybrid.found.starts_with("hybrid"), "{hybrid:?}");
    assert!(hybrid.reason.contains("perf_event is on v1"), "{hybrid:?}");
    let only = at(v1);
    assert_eq!((only.status, only.found.as_str()), (CheckStatus::Failed, "v1 only"));
    assert!(only.fix.is_some());
}
