//! Remedies for errors, in terms of this program's flags.

use precise::error::Remedy;

/// Returns the remedy as a sentence.
pub const fn words(remedy: Remedy) -> &'static str {
    match remedy {
        Remedy::GrantCapabilities => {
            "Run as root, or give the binary the capabilities: setcap \
             cap_perfmon,cap_bpf=ep FILE. For names in other users' programs and in the kernel, add \
             cap_sys_ptrace,cap_syslog (docs/privileges.md)."
        }
        Remedy::LeaveUserNamespace => {
            "Run on the host, or in a container without a user namespace (docs/privileges.md)."
        }
        Remedy::AllowSystemCalls => {
            "Allow perf_event_open and bpf in the container's seccomp profile (docs/privileges.md)."
        }
        Remedy::Doctor => {
            "Run `precise doctor` to see what restricts this process; the kernel log \
             (dmesg) may name a security module."
        }
        Remedy::PlainFile => {
            "Remove both bits (chmod u-s,g-s FILE) and give the file capabilities (docs/privileges.md)."
        }
        Remedy::MoreLockedMemory => "Raise kernel.perf_event_mlock_kb, or run with CAP_IPC_LOCK.",
        Remedy::ReadableTypes => "Make it readable for this user (by default it is readable for all).",
        Remedy::KernelTypes => {
            "Use a kernel built with CONFIG_DEBUG_INFO_BTF=y, as distribution kernels since about 5.10 are."
        }
        Remedy::ReportKernel => {
            "precise knows Linux 5.10 to 7.2. Please report this with the kernel release (uname -r)."
        }
        Remedy::ReportBug => "This is a bug in precise: please report the message above.",
        Remedy::RebuildProgram => "This is a bug in this build: rebuild it with `cargo xtask build-ebpf`.",
        Remedy::SeeEvents => "`precise list` shows the events that this machine has.",
        Remedy::PresetOpensBoth => "Use the preset `loads`, which opens both events.",
        Remedy::EndOtherProfiler => {
            "Stop the other profiler, or the NMI watchdog: sysctl kernel.nmi_watchdog=0."
        }
        Remedy::CheckIds => "Check the ids with `ps`.",
        Remedy::CheckCommand => "Check the command after -- and its path.",
        Remedy::LeaveTermOut => "Remove the term from the filter.",
        Remedy::AnyReadPath => "Omit --read-path: precise then uses probe reads.",
        Remedy::FewerCells => "Use a smaller --table-cells or --stacks, or sample fewer CPUs (-C).",
        Remedy::FewerChains => "Use a smaller --stacks.",
        Remedy::AnyPrecision => {
            "Use --precise auto to sample as precisely as possible; `precise list` shows \
             which events can be precise."
        }
        Remedy::LowerPrecision => "Use --precise auto, or an event that `precise list` shows as precise.",
        Remedy::FewerDescriptors => {
            "Sample whole CPUs and filter (-a --filter 'pid == …'), or fewer CPUs (-C) or threads \
             (-t), or raise the hard limit (ulimit -Hn; LimitNOFILE= of a systemd unit)."
        }
        Remedy::LowerFrequency => {
            "The kernel lowers kernel.perf_event_max_sample_rate when interrupts take too \
             long. Use a lower -F, or raise the sysctl."
        }
        Remedy::WholeCpus => {
            "Use -a (or -C) while the program runs, and filter its samples: --comm NAME, or \
             --filter 'pid == …'."
        }
        Remedy::NoPageSizes => "Remove page-size from --by.",
        Remedy::NoChains => "Record without -g, or import what `perf record -g` writes (`precise import`).",
        Remedy::OtherAddress => {
            "Another program, perhaps another precise, may use this port: choose another \
             with --listen ADDRESS:PORT."
        }
        Remedy::SecureAddress => {
            "Give --tls-cert, --tls-key and --token-file, or listen on a loopback address, behind a \
             proxy that asks for more."
        }
        Remedy::AskWhoStopsIt => {
            "An administrator created this file and can remove it: see docs/overhead.md."
        }
        Remedy::ReadLater => "`precise report -i FILE` may use more memory and can show more.",
    }
}
