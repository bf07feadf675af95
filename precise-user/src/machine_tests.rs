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
    let cpu = CpuId::parse(
        "processor\t: 0\nvendor_id\t: AuthenticAMD\ncpu family\t: 25\nmodel\t\t: 33\nmodel name\t: A CPU\n\
         stepping\t: 2\nflags\t\t: lm ibs\n\nprocessor\t: 1\nvendor_id\t: GenuineIntel\nflags: hypervisor",
    );
    assert_eq!((cpu.vendor, cpu.family, cpu.model, cpu.stepping), (Vendor::Amd, 25, 33, 2));
    assert!(cpu.long_mode && !cpu.hypervisor && cpu.ibs_without_hitm());
    assert!(!CpuId { model: 0x11, ..cpu }.ibs_without_hitm());
}

#[test]
fn a_tree_without_anything_is_a_list_of_problems() {
    let folder = tempfile::tempdir().unwrap();
    let info = MachineInfo::read(&Root(folder.path().to_owned()));
    assert_eq!(info.machine, Machine::default());
    assert_eq!(info.problems.len(), 11, "{:#?}", info.problems);
}

#[test]
fn this_machine_is_read() {
    let info = MachineInfo::read(&Root::default());
    assert!(
        info.machine.cpus > 0 && !info.machine.kernel.is_empty() && !info.machine.arch.is_empty(),
        "{info:?}"
    );
    assert!(info.possible.len() >= info.online.len());
    assert!(info.kernel.is_some() && info.sysctls.perf_event_paranoid.is_some());
}

#[test]
fn nodes_are_those_of_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    // Two sockets and a CXL expander, as their kernel lists them.
    for (node, cpus) in [(0, "0-3,8-11\n"), (1, "4-7,12-15\n"), (10, "\n")] {
        write(&format!("sys/devices/system/node/node{node}/cpulist"), cpus);
    }
    write("sys/devices/system/node/possible", "0-10\n");
    let machine = MachineInfo::read(&Root(folder.path().to_owned())).machine;
    assert_eq!(machine.nodes.iter().map(|node| node.id).collect::<Vec<_>>(), [0, 1, 10]);
    assert_eq!((machine.node_of(9), machine.node_of(4), machine.node_of(16)), (Some(0), Some(1), None));
    let none = MachineInfo::read(&Root("/does/not/exist".into())).machine;
    assert_eq!((none.nodes.len(), none.node_of(0)), (0, None));
}
