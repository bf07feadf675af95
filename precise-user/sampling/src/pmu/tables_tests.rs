use super::*;
use crate::pmu::fixture;

#[test]
fn every_line_of_every_table_is_an_event_of_its_own() {
    for core in Core::ALL {
        let mut seen: Vec<TableEvent> = Vec::new();
        for line in lines(core) {
            let event = TableEvent::parse(line).unwrap_or_else(|why| panic!("{}: {why}", core.name()));
            assert!(seen.iter().all(|other| other.name != event.name), "{line}");
            assert!(
                seen.iter().all(|other| (other.code, other.config1) != (event.code, event.config1)),
                "{line}"
            );
            assert_eq!(event.config1 != 0, event.code & 0xff == 0xc6 && event.code != 0x10c6, "{line}");
            assert!(!event.unit.is_empty() && event.name.is_ascii(), "{line}");
            seen.push(event);
        }
        assert!(seen.iter().any(|event| event.presets == [Preset::Ops]), "{}", core.name());
        assert_eq!(seen, core.events());
    }
}

/// `intel_{skl,icl,glc,rwc}_extra_regs`, arch/x86/events/intel/core.c: the kernel refuses other
/// bits with EINVAL.
#[test]
fn the_front_end_register_has_no_bit_that_the_kernel_refuses() {
    for (core, code, valid) in [
        (Core::Skylake, 0x1c6, 0x7f_ff17),
        (Core::IceLake, 0x1c6, 0x7f_ff17),
        (Core::GoldenCove, 0x1c6, 0x7f_ff1f),
        (Core::RedwoodCove, 0x3c6, 0x7f_ff1f),
    ] {
        let events = core.events().into_iter().filter(|event| event.config1 != 0);
        assert_eq!(events.clone().count(), 6, "{}", core.name());
        for event in events {
            assert_eq!((event.code, event.config1 & !valid), (code, 0), "{}", event.name);
        }
    }
}

#[test]
fn a_damaged_line_is_no_event() {
    let good = "l3-miss\tx.y\t0xd1\t0x20\t0x0\t3\tmisses\taddress\tmisses\t-";
    assert!(TableEvent::parse(good).is_ok());
    for (from, to) in [
        ("l3-miss", "l9-miss"),
        ("0xd1", "0x1d1"),
        ("0x20", "20"),
        ("\t3", "\t4"),
        ("misses\ta", "often\ta"),
        ("address", "both"),
        ("\t-", ""),
    ] {
        let line: &'static str = good.replacen(from, to, 1).leak();
        assert!(TableEvent::parse(line).is_err(), "{line}");
    }
}

#[test]
fn a_core_is_known_by_the_name_that_its_driver_gives() {
    let kinds = |tree: &fixture::Tree| tree.pmus().cores().into_iter().map(Core::of).collect::<Vec<_>>();
    assert_eq!(kinds(&fixture::hsw()), [Some(Core::Haswell)]);
    assert_eq!(kinds(&fixture::skl()), [Some(Core::Skylake)]);
    assert_eq!(kinds(&fixture::adl()), [Some(Core::GoldenCove), Some(Core::Gracemont)]);
    assert_eq!(kinds(&fixture::mtl()), [Some(Core::RedwoodCove), Some(Core::Crestmont)]);
    assert_eq!(kinds(&fixture::gnr()), [Some(Core::RedwoodCove)]);
    assert_eq!(kinds(&fixture::zen4()), [None]);
}
