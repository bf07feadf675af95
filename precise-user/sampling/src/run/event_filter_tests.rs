//! Tests of the fields that the filter of an event needs, and of the cgroups that texts name. No
//! event is opened; the cgroups are those of this machine.

use super::*;
use crate::pmu::fixture::{self, Tree};
use crate::pmu::{PresetOptions, preset::events_for};
use precise_model::Preset;

fn requests(tree: &Tree, preset: Preset) -> Vec<EventRequest> {
    events_for(preset, &tree.pmus(), &PresetOptions::default()).unwrap()
}

fn planned(tree: &Tree, request: &EventRequest, text: Option<&str>) -> Result<PlannedEvent, FilterError> {
    let expression = text.map(|text| parse::parse(text).unwrap());
    plan(expression.as_ref(), request.clone(), Rate::Period(7), &MachineInfo::read(&tree.root()), &[])
}

#[test]
fn registers_of_ibs_are_asked_for_only_by_a_filter_that_needs_them() {
    let tree = fixture::zen4();
    let loads = &requests(&tree, Preset::Loads)[0];
    assert_eq!(loads.tagged, None);
    assert_eq!(planned(&tree, loads, Some("latency > 100")).unwrap().request.tagged, None);
    let width = planned(&tree, loads, Some("access == misaligned")).unwrap();
    assert_eq!(width.request.tagged.map(|tagged| tagged.of), Some(TaggedOf::Access));
    assert_eq!(width.rate, Rate::Period(7));
    // Planning a planned event again, for example for another target, changes nothing.
    let again = planned(&tree, &width.request, Some("access == misaligned")).unwrap();
    assert_eq!(again.request, width.request);
}

#[test]
fn the_events_own_filter_comes_with_the_users() {
    let tree = fixture::zen4();
    let loads = &requests(&tree, Preset::Loads)[0];
    let own = planned(&tree, loads, None).unwrap().filter;
    let both = planned(&tree, loads, Some("pid == 4711")).unwrap().filter;
    assert_eq!(own.clauses.len() + 1, both.clauses.len());
    assert!(own.clauses.iter().all(|clause| both.clauses.contains(clause)), "{both:?}");
    let wrong = EventRequest { filter: Some("mem_op ==".into()), ..loads.clone() };
    assert!(
        matches!(planned(&tree, &wrong, None), Err(FilterError::Own { event, .. }) if event == loads.name)
    );
}

#[test]
fn what_the_event_does_not_record_cannot_be_asked_about() {
    let tree = fixture::vm();
    let faults = &requests(&tree, Preset::Faults)[0];
    for text in ["latency > 100", "mem_lvl == l3", "access == misaligned"] {
        let refused = planned(&tree, faults, Some(text));
        assert!(matches!(refused, Err(FilterError::Compile(CompileError::NotRecorded { .. }))), "{text}");
    }
    planned(&tree, faults, Some("addr in 0x1000..0x2000 && pid == 1")).unwrap();
    let missing = planned(&tree, faults, Some("cgroup == \"/no/such/cgroup\""));
    assert!(matches!(missing, Err(FilterError::Compile(CompileError::Cgroup { .. }))), "{missing:?}");
}

#[test]
fn a_cgroup_below_another_adds_nothing() {
    let of = |paths: &[&str]| topmost(paths.iter().map(|path| (*path).to_owned()).collect());
    assert_eq!(of(&["/b", "/a/c", "/a", "/a", "/ab", "/a/c/d"]), ["/a", "/ab", "/b"]);
    assert_eq!(of(&["/a", "/"]), ["/"]);
    assert!(of(&[]).is_empty());
}

#[test]
fn texts_mean_cgroups_or_patterns_that_wait() {
    if open_cgroups().unwrap().report().v2.is_none() {
        assert!(matches!(wanted_cgroups(&["/".to_owned()]), Err(CgroupError::OnlyV1)));
        return;
    }
    let wanted = wanted_cgroups(&["/".to_owned(), "unit:nginx.service".to_owned()]).unwrap();
    assert_eq!(wanted.names(), ["/", "unit:nginx.service"]);
    assert_eq!(wanted.watch.iter().map(Pattern::text).collect::<Vec<_>>(), ["unit:nginx.service"]);
}
