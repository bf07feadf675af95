use proptest::prelude::*;

use super::*;

#[test]
fn cpu_lists_of_the_kernel_are_read() {
    assert_eq!(parse_cpu_list("0-3,7\n"), Ok(vec![0, 1, 2, 3, 7]));
    assert_eq!(parse_cpu_list(""), Ok(vec![]));
    assert_eq!(parse_cpu_list("5"), Ok(vec![5]));
    assert_eq!(parse_cpu_list("3,1-2,2"), Ok(vec![1, 2, 3]));
}

#[test]
fn damaged_cpu_lists_are_refused_and_do_not_eat_memory() {
    for text in ["0-", "-3", "a", "3-1", "0-4294967295", "1:2/4", "99999999999"] {
        assert!(parse_cpu_list(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn a_cpu_list_survives_being_written(cpus in proptest::collection::btree_set(0u32..2000, 0..50)) {
        let cpus: Vec<u32> = cpus.into_iter().collect();
        prop_assert_eq!(parse_cpu_list(&format_cpu_list(&cpus)), Ok(cpus));
    }

    #[test]
    fn no_text_is_too_odd(text in ".*") {
        let _ = parse_cpu_list(&text);
        let _ = KernelVersion::parse(&text);
        let _ = CpuId::parse(&text);
    }
}

#[test]
fn kernel_releases_compare_by_version() {
    let version = |text| KernelVersion::parse(text).unwrap();
    assert_eq!(version("6.1.0-28-amd64"), KernelVersion { major: 6, minor: 1, patch: 0 });
    assert_eq!(version("6.18.44-fc-v595").to_string(), "6.18.44");
    assert_eq!(version("7.2-rc1"), KernelVersion { major: 7, minor: 2, patch: 0 });
    assert!(version("6.12.1") > version("6.2.99"));
    assert!(
        version("6.2.0").at_least(6, 2)
            && !version("6.1.192").at_least(6, 2)
            && version("7.0.0").at_least(6, 2)
    );
    assert_eq!(KernelVersion::parse("linux"), None);
}

#[test]
fn the_first_cpu_describes_all() {
    let cpuinfo = "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 33\nmodel name\t: A CPU\n\
         stepping\t: 2\nflags\t\t: lm ibs\n\nprocessor\t: 1\nvendor_id\t: GenuineIntel\nflags: hypervisor";
    let cpu = CpuId::parse(cpuinfo);
    assert_eq!((cpu.vendor, cpu.family, cpu.model, cpu.stepping), (Vendor::Amd, 25, 33, 2));
    assert!(cpu.long_mode && !cpu.hypervisor && cpu.ibs_without_hitm());
    assert!(!CpuId { model: 0x11, ..cpu }.ibs_without_hitm());
    assert!(CpuId::flags(cpuinfo).eq(["lm", "ibs"]));
}
