//! Errors of plans as failures of the command: exit code, flags, and advice.

use precise::error::{ExitClass, Failure};
use precise::kernel::map_memory::page_size;
use precise::model::format_cpu_list;
use precise::pmu::EncodeError;
use precise::render::number;
use precise::run::event_filter::{CgroupError, FilterError};
use precise::run::plan::{MAX_RING_PAGES, PlanError};
use precise::stream::MissingField;

const SEE_LIST: &str = "`precise list` shows what this machine supports.";

/// PMUs that other machines have: their names are not typing errors.
const PMUS: [&str; 5] = ["cpu", "cpu_core", "cpu_atom", "ibs_op", "ibs_fetch"];

/// Converts an error of a plan into a failure of the command.
pub fn plan_failure(error: PlanError) -> Failure {
    let sentence = error.to_string();
    let usage = |what: &str| Failure::new(ExitClass::Usage, what);
    match error {
        PlanError::Stopped(error) | PlanError::NothingOpens(error) => error.into(),
        PlanError::Preset(_) => Failure::new(ExitClass::Unsupported, sentence).advise(SEE_LIST),
        // The event is written correctly, but this machine does not support it.
        PlanError::Event(EncodeError::Unsupported { .. }) => {
            Failure::new(ExitClass::Unsupported, sentence).advise(SEE_LIST)
        }
        PlanError::Event(EncodeError::UnknownPmu { name, .. }) if PMUS.contains(&name.as_str()) => {
            Failure::new(ExitClass::Unsupported, sentence).advise(SEE_LIST)
        }
        PlanError::NoPreset { event } => usage(&format!(
            "--ldlat and --l3-miss-only apply only to presets, and '{event}' is not a preset"
        ))
        .advise("Write them as terms of the event instead: cpu/mem-loads,ldlat=30/, ibs_op/l3missonly=1/."),
        PlanError::Cpus { online, .. } => {
            usage(&sentence).advise(format!("Online CPUs: {}.", format_cpu_list(&online)))
        }
        PlanError::Cgroup(error) => cgroup(&error),
        PlanError::Filter(error) => match error {
            FilterError::Own { .. } | FilterError::Cgroups(_) => Failure::new(ExitClass::Failed, sentence),
            FilterError::Compile(_) => usage(&sentence),
        },
        PlanError::ChainsWithAddresses => usage(
            "a capture can hold call chains (-g, --by stack) or data addresses (--by address), but not both",
        )
        .advise(
            "Make two captures: one with -g, one with --by address. Only page faults can have both: add -e page-faults, and other events keep their addresses.",
        ),
        PlanError::Lacking { .. } => usage(&sentence).advise("`precise list` shows which events have them."),
        PlanError::Granule(bytes) => usage(&format!("--granule {bytes} is not a power of two")),
        PlanError::Lines(_) => usage("--lines must be from 1 to 16M (8 bytes each)"),
        PlanError::Cells(_) => usage("--table-cells must be from 1 to 4M (128 bytes each)"),
        PlanError::UnwindMemory(_) => usage("--unwind-memory must be from 1M to 1G"),
        PlanError::StackCopy(_) => usage("--stack-copy must be from 8 to 65,528, a multiple of 8"),
        PlanError::Depth(_) => usage("--stack-depth must be from 1 to 127"),
        PlanError::Stacks(_) => usage("--stacks must be from 1 to 256K (2,112 bytes each)"),
        PlanError::RingPages(pages) => usage(&format!(
            "--ring-pages {pages} is not a power of two up to {}",
            number::thousands(MAX_RING_PAGES as u64)
        ))
        .advise(format!("A page has {} bytes; a sample takes 60 to 250 bytes.", page_size())),
        PlanError::Event(_)
        | PlanError::NoEvents
        | PlanError::Rate
        | PlanError::Epoch(_)
        | PlanError::Budget(_)
        | PlanError::NotStreamed(_) => usage(&sentence),
    }
}

fn cgroup(error: &CgroupError) -> Failure {
    match error {
        CgroupError::Unreadable(_) => Failure::new(ExitClass::Failed, error.to_string()),
        CgroupError::OnlyV1 => Failure::new(
            ExitClass::Unsupported,
            "-G needs a cgroup v2 hierarchy, and this machine has only v1, which eBPF programs cannot see",
        )
        .advise("Mount one (mount -t cgroup2 none /sys/fs/cgroup/unified) and move the processes into its cgroups (docs/containers.md)."),
        CgroupError::Syntax { .. } => Failure::new(ExitClass::Usage, format!("-G {error}")),
        CgroupError::Missing(_) => Failure::new(ExitClass::Usage, format!("-G {error}"))
            .advise("Write the path from the root of the hierarchy (/system.slice/nginx.service), or a pattern, which also matches cgroups that are created later ('/system.slice/nginx*')."),
    }
}

/// Returns the failure for a field of --fields that the events do not have.
pub fn missing_field(error: &MissingField) -> Failure {
    Failure::new(ExitClass::Usage, error.to_string())
        .advise("`precise list` shows which events have addresses, latencies and memory levels.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use precise::model::Dimension;
    use precise::run::kill_switch::KillSwitch;
    use std::time::Duration;

    #[test]
    fn classes_are_those_of_the_documentation() {
        let class = |error| plan_failure(error).class;
        let stopped = KillSwitch::and(Some("/".into())).allow().unwrap_err();
        assert_eq!(class(PlanError::Stopped(stopped)), ExitClass::Stopped);
        assert_eq!(class(PlanError::Cgroup(CgroupError::OnlyV1)), ExitClass::Unsupported);
        let unsupported = EncodeError::Unsupported { name: "loads:k".into(), why: "no".into() };
        let pmu = |name: &str| {
            let name = name.to_owned();
            PlanError::Event(EncodeError::UnknownPmu { name, nearest: None, known: Vec::new() })
        };
        assert_eq!([class(pmu("ibs_op")), class(pmu("ibs_pp"))], [ExitClass::Unsupported, ExitClass::Usage]);
        assert_eq!(class(PlanError::Event(unsupported)), ExitClass::Unsupported);
        let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        assert_eq!(class(PlanError::Filter(FilterError::Cgroups(denied))), ExitClass::Failed);
        for wrong in [
            PlanError::NoEvents,
            PlanError::Granule(3),
            PlanError::Lines(0),
            PlanError::Cells(u64::MAX),
            PlanError::UnwindMemory(0),
            PlanError::StackCopy(9),
            PlanError::Depth(0),
            PlanError::Stacks(0),
            PlanError::RingPages(3),
            PlanError::Epoch(Duration::ZERO),
            PlanError::ChainsWithAddresses,
            PlanError::Lacking { dimension: Dimension::Address, events: vec!["cycles".into()] },
            PlanError::Cpus { missing: vec![9], online: vec![0, 1] },
            PlanError::Event(EncodeError::Syntax { text: "x/".into(), why: "no".into() }),
        ] {
            assert_eq!(class(wrong), ExitClass::Usage);
        }
    }

    #[test]
    fn flags_are_named_here_and_not_in_the_library() {
        let error = PlanError::Granule(48);
        assert!(!error.to_string().contains("--"), "{error}");
        assert_eq!(plan_failure(error).what, "--granule 48 is not a power of two");
        let missing = PlanError::Cgroup(CgroupError::Missing("/a".into()));
        assert_eq!(plan_failure(missing).what, "-G /a: this cgroup does not exist in the v2 hierarchy");
    }
}
