//! Which levels of `perf_event_attr.precise_ip` to try, and how to report that one was refused.
//!
//! The kernel never lowers a level itself: it refuses the event (`x86_pmu_hw_config()`, Linux
//! 6.12). Nor does `caps/max_precise` predict which level it will grant: the file contains 0 on
//! AMD, and 0 on Intel until the first hardware event is opened. So the levels are tried from the
//! highest down, and the verdict reports each step down.

use schemars::JsonSchema;
use serde::Serialize;

use super::request::{EventRequest, Exactness, PreciseLevel};
use precise_model::Precision;

/// The precise levels to try for one event.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct Ladder {
    /// Levels to try, in this order. Empty if none may be tried; the findings say why.
    pub levels: Vec<u8>,
    /// Facts that are known before the first attempt, one sentence each.
    pub findings: Vec<String>,
}

/// Returns the levels to try for an event.
///
/// * `Precision::Auto`: from the level in the event's text (without one: the highest level) down to
///   0.
/// * `Precision::Require`: the same levels, but only the exact ones.
/// * `Precision::Off`: 0.
pub fn ladder(request: &EventRequest, precision: Precision) -> Ladder {
    let (max, exact) = match &request.exactness {
        // The kernel ignores the level of these events; with 0, older kernels do not refuse them.
        Exactness::Nature | Exactness::Ibs => {
            return Ladder { levels: vec![0], findings: Vec::new() };
        }
        Exactness::Never(why) => {
            let wanted = precision == Precision::Require
                || !matches!(request.precise, PreciseLevel::Unspecified | PreciseLevel::Given(0));
            let findings = match precision {
                Precision::Off => Vec::new(),
                _ if wanted => vec![format!("{} cannot be precise: {why}", request.name)],
                _ => vec![format!("{} is not precise: {why}", request.name)],
            };
            let levels = if precision == Precision::Require { Vec::new() } else { vec![0] };
            return Ladder { levels, findings };
        }
        Exactness::PreciseIp { max, exact } => (*max, *exact),
    };
    let top = match (precision, request.precise) {
        (Precision::Off, _) => 0,
        (_, PreciseLevel::Given(level)) => level.min(3),
        (_, PreciseLevel::Max | PreciseLevel::Unspecified) => max,
    };
    let bottom = if precision == Precision::Require { exact } else { 0 };
    let levels: Vec<u8> = (bottom..=top).rev().collect();
    let mut findings = Vec::new();
    if levels.is_empty() {
        let why = format!(
            "{} requests level {top}, but its IPs are exact only from level {exact} on",
            request.name
        );
        findings.push(why);
    }
    Ladder { levels, findings }
}

/// Returns whether a lower level may succeed after the kernel refused this one with `errno`. Other
/// errors (EACCES, EMFILE, ESRCH, …) are not about precision.
///
/// Sources: `x86_pmu_hw_config()` (EOPNOTSUPP: the level is above the PMU's maximum), the
/// constraints of level 3 (EINVAL), `forward_event_to_ibs()` (ENOENT: the driver cannot map the
/// event to AMD's IBS).
pub fn may_step_down(errno: i32) -> bool {
    matches!(errno, libc::EOPNOTSUPP | libc::EINVAL | libc::ENOENT)
}

/// Returns the finding for a level that the kernel refused.
pub fn refused(request: &EventRequest, level: u8, errno: i32) -> String {
    let why = match errno {
        libc::EOPNOTSUPP => "this machine does not support it",
        libc::EINVAL => "this event does not support it (its counter or its period does not allow it)",
        libc::ENOENT => "the hardware has no precise form of this event",
        _ => "the cause is not precision",
    };
    format!(
        "{}: precise level {level} was refused: {why} ({})",
        request.name,
        std::io::Error::from_raw_os_error(errno)
    )
}

/// Returns the finding for the level that the kernel granted; `None` if its IPs are exact.
pub fn granted(request: &EventRequest, level: u8) -> Option<String> {
    if request.exact_at(level) {
        return None;
    }
    Some(match level {
        0 => format!(
            "{}: IPs are not exact; they are a few instructions after the event, where the interrupt arrived",
            request.name
        ),
        1 => format!("{}: IPs are one instruction late (level 1: constant skid)", request.name),
        _ => format!("{}: whether IPs are exact at level {level} is unknown", request.name),
    })
}

#[cfg(test)]
mod tests {
    use super::super::{encode::parse, fixture};
    use super::*;

    fn levels(text: &str, tree: &fixture::Tree, precision: Precision) -> Vec<u8> {
        ladder(&parse(text, &tree.pmus()).unwrap()[0], precision).levels
    }

    #[test]
    fn intel_steps_from_the_top_or_from_what_was_asked() {
        let skl = fixture::skl();
        assert_eq!(levels("cycles", &skl, Precision::Auto), [3, 2, 1, 0]);
        assert_eq!(levels("cycles:P", &skl, Precision::Auto), [3, 2, 1, 0]);
        assert_eq!(levels("cycles:pp", &skl, Precision::Auto), [2, 1, 0]);
        assert_eq!(levels("cycles", &skl, Precision::Require), [3, 2]);
        assert_eq!(levels("cycles:p", &skl, Precision::Require), Vec::<u8>::new());
        assert_eq!(levels("cycles:ppp", &skl, Precision::Off), [0]);
        assert_eq!(levels("cpu/mem-loads,ldlat=30/P", &skl, Precision::Auto), [2, 1, 0]);
        assert_eq!(levels("cpu/mem-loads,ldlat=30/ppp", &skl, Precision::Auto), [3, 2, 1, 0]);
    }

    #[test]
    fn amd_has_levels_for_cycles_and_ops_only() {
        let zen4 = fixture::zen4();
        assert_eq!(levels("cycles", &zen4, Precision::Auto), [2, 1, 0]);
        assert_eq!(levels("r76", &zen4, Precision::Require), [2, 1]);
        assert_eq!(levels("r0c1:p", &zen4, Precision::Require), [1]);
        assert_eq!(levels("branch-misses", &zen4, Precision::Auto), [0]);
        assert_eq!(levels("ibs_op//", &zen4, Precision::Require), [0]);
        let never = ladder(&parse("branch-misses:pp", &zen4.pmus()).unwrap()[0], Precision::Require);
        assert!(never.levels.is_empty() && never.findings[0].contains("cannot be precise"), "{never:?}");
    }

    #[test]
    fn software_events_are_exact_by_nature_or_not_at_all() {
        let vm = fixture::vm();
        assert_eq!(levels("page-faults:pp", &vm, Precision::Require), [0]);
        assert_eq!(levels("cpu-clock", &vm, Precision::Auto), [0]);
        assert_eq!(levels("cpu-clock", &vm, Precision::Require), Vec::<u8>::new());
    }

    #[test]
    fn each_step_is_a_sentence() {
        let cycles = &parse("cycles", &fixture::skl().pmus()).unwrap()[0];
        assert!(refused(cycles, 3, libc::EOPNOTSUPP).starts_with("cycles: precise level 3 was refused"));
        assert!(may_step_down(libc::EINVAL) && !may_step_down(libc::EACCES));
        assert_eq!(granted(cycles, 2), None);
        assert!(granted(cycles, 1).unwrap().contains("one instruction late"));
        assert!(granted(cycles, 0).unwrap().contains("not exact"));
    }
}
