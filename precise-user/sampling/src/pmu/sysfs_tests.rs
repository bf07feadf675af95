use super::*;
use crate::pmu::fixture;

#[test]
fn formats_are_read_as_the_kernel_writes_them() {
    let format = TermFormat::parse("config:0-7,32-35").unwrap();
    assert_eq!((format.word, format.width(), format.max()), (Word::Config, 12, 0xfff));
    assert_eq!(TermFormat::parse("config1:0-63").unwrap().max(), u64::MAX);
    assert_eq!(TermFormat::parse("config3:5\n").unwrap().ranges, [(5, 5)]);
    for odd in
        ["", "config", "config9:1", "config:64", "config:7-0", "config:", "config:0-63,0-63", "config:a"]
    {
        assert!(TermFormat::parse(odd).is_err(), "{odd}");
    }
}

#[test]
fn what_is_odd_is_left_out_and_said() {
    let tree = fixture::skl()
        .pmu("cpu", 4, &["format/new=config9:1", "cpumask=x"])
        .file("/sys/bus/event_source/devices/broken/type", "soon")
        .file("/sys/bus/event_source/devices/empty/format/event", "config:0-7");
    let pmus = tree.pmus();
    assert!(pmus.get("broken").is_none() && pmus.get("empty").is_none());
    assert_eq!(pmus.problems.len(), 4, "{:#?}", pmus.problems);
    let cpu = pmus.get("cpu").unwrap();
    assert!(!cpu.format.contains_key("new") && cpu.format.contains_key("event") && cpu.cpumask.is_none());
    assert!(!pmus.get("power").unwrap().events.contains_key("energy-pkg.scale"));
}

#[test]
fn hybrid_cores_come_with_their_cpus() {
    let pmus = fixture::adl().pmus();
    let cores: Vec<(&str, usize)> =
        pmus.cores().iter().map(|pmu| (pmu.name.as_str(), pmu.cpus.as_ref().unwrap().len())).collect();
    assert_eq!(cores, [("cpu_core", 16), ("cpu_atom", 8)]);
    assert!(pmus.is_hybrid() && !fixture::spr().pmus().is_hybrid());
    assert_eq!(pmus.get("cpu_atom").unwrap().events["mem-stores"], "event=0xd0,umask=0x6");
}

#[test]
fn an_empty_tree_and_this_machine_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let pmus = Pmus::read(&Root(folder.path().to_owned()));
    assert!(pmus.pmus.is_empty() && pmus.problems.len() == 2 && pmus.why_no_core_pmu().is_some());
    let live = Pmus::read(&Root::default());
    assert_eq!(live.get("software").map(|pmu| pmu.type_), Some(1), "{:?}", live.problems);
}
