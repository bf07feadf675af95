use super::*;
use crate::pmu::{self, Pmus, sysfs::Pmu};
use precise_model::CpuId;
use precise_model::{Ledger, Verdict};

fn machine(vendor: Vendor, hypervisor: bool) -> MachineInfo {
    MachineInfo { cpu: CpuId { vendor, hypervisor, ..CpuId::default() }, ..MachineInfo::default() }
}

/// A Golden Cove core, with its event for loads.
fn pmus(machine: &MachineInfo) -> Pmus {
    let mut cpu = Pmu { name: "cpu".into(), type_: 4, ..Pmu::default() };
    for (term, bits) in [("event", "config:0-7"), ("umask", "config:8-15"), ("ldlat", "config1:0-15")] {
        cpu.format.insert(term.into(), pmu::sysfs::TermFormat::parse(bits).unwrap());
    }
    cpu.caps.insert("pmu_name".into(), "sapphire_rapids".into());
    Pmus { pmus: vec![cpu], cpu: machine.cpu.clone(), ..Pmus::default() }
}

fn event(text: &str, machine: &MachineInfo) -> EventRequest {
    pmu::parse(text, &pmus(machine)).unwrap().remove(0)
}

fn ledger(counters: &[(Counter, u64)]) -> Ledger {
    let counters = counters.iter().copied().collect();
    Ledger { counters, event_count: 10_000_000, expected: Some(1000), ..Ledger::default() }
}

fn after(text: &str, granted: u8, machine: &MachineInfo, ledger: &Ledger, sysctls: &Sysctls) -> Vec<String> {
    let verdict = Verdict { granted, precise: granted > 1, ..Verdict::default() };
    let ledger = ledger.clone();
    let mut info = EventInfo { verdict, ledger, marks_exact: true, ..EventInfo::default() };
    judge(&mut info, &event(text, machine), machine, sysctls);
    info.verdict.findings
}

#[test]
fn a_virtual_pmu_and_missing_fields_are_known_before_the_run() {
    let (real, guest) = (machine(Vendor::Intel, false), machine(Vendor::Intel, true));
    let loads = event("cpu/event=0xcd,umask=0x1,ldlat=30/P", &real);
    assert_eq!(before(&loads, 2, &real), Vec::<String>::new());
    assert_eq!(
        before(&loads, 2, &guest),
        ["this machine is virtual; what it has of the PMU depends on the hypervisor"]
    );
    let lost = &before(&loads, 0, &real)[0];
    assert!(
        lost.ends_with("has no data addresses and no latencies and no memory levels at level 0"),
        "{lost}"
    );
    assert_eq!(before(&event("page-faults", &guest), 0, &guest), Vec::<String>::new());
    assert!(pebs_note(&loads, 2, &real).unwrap().contains("large PEBS is off"));
    assert_eq!(
        (pebs_note(&loads, 0, &real), pebs_note(&loads, 2, &machine(Vendor::Amd, false))),
        (None, None)
    );
}

#[test]
fn an_event_that_never_gives_a_record_is_named() {
    let real = machine(Vendor::Intel, false);
    let found = after("cpu/event=0xd1,umask=0x20/pp", 2, &real, &ledger(&[]), &Sysctls::default());
    assert_eq!(
        found,
        [
            "the event counted 10,000,000 L3 misses, but the hardware wrote no record: this core cannot sample it precisely"
        ]
    );
    let seen = ledger(&[(Counter::Seen, 1000), (Counter::Aggregated, 1000), (Counter::Exact, 1000)]);
    assert!(after("cpu/event=0xd1,umask=0x20/pp", 2, &real, &seen, &Sysctls::default()).is_empty());
}

#[test]
fn a_guest_with_basic_records_only_is_named() {
    let all = [(Counter::Seen, 9), (Counter::Aggregated, 9), (Counter::Exact, 9), (Counter::NoAddress, 9)];
    let found = |hypervisor, ledger: &Ledger| {
        after(
            "cpu/event=0xd1,umask=0x20/pp",
            2,
            &machine(Vendor::Intel, hypervisor),
            ledger,
            &Sysctls::default(),
        )
    };
    assert!(found(true, &ledger(&all))[0].contains("only the basic record"));
    assert!(found(false, &ledger(&all)).is_empty() && found(true, &ledger(&all[..3])).is_empty());
}

#[test]
fn every_limit_that_changed_is_named() {
    let real = machine(Vendor::Intel, false);
    let seen = ledger(&[(Counter::Seen, 1), (Counter::Exact, 1)]);
    let lowered =
        Sysctls { perf_event_max_sample_rate: Some(50_000), kptr_restrict: Some(2), ..Sysctls::default() };
    let found = after("cpu/event=0xd1,umask=0x20/pp", 2, &real, &seen, &lowered);
    assert_eq!(
        found,
        [
            "kernel.perf_event_max_sample_rate changed during the run, from unreadable to 50000",
            "kernel.kptr_restrict changed during the run, from unreadable to 2",
        ]
    );
}
