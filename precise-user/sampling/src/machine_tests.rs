use super::*;

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
fn a_list_of_cpus_is_read_or_says_why_not() {
    let folder = tempfile::tempdir().unwrap();
    let root = Root(folder.path().to_owned());
    let lists = folder.path().join("sys/devices/system/cpu");
    std::fs::create_dir_all(&lists).unwrap();
    std::fs::write(lists.join("online"), "0-2,5\n").unwrap();
    std::fs::write(lists.join("possible"), "many\n").unwrap();
    assert_eq!(root.cpus(CpuState::Online).unwrap(), [0, 1, 2, 5]);
    let said = root.cpus(CpuState::Possible).unwrap_err();
    assert!(said.starts_with("/sys/devices/system/cpu/possible: "), "{said}");
    let said = root.cpus(CpuState::Present).unwrap_err();
    assert!(said.starts_with("cannot read /sys/devices/system/cpu/present: "), "{said}");
}

#[test]
fn one_cpu_of_many_tells_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("proc")).unwrap();
    let block = |cpu| {
        format!("processor\t: {cpu}\nvendor_id\t: AuthenticAMD\nflags\t: {}lm\n\n", "flag ".repeat(400))
    };
    let all: String = (0..100).map(block).collect();
    std::fs::write(folder.path().join("proc/cpuinfo"), all).unwrap();
    let cpu = MachineInfo::read(&Root(folder.path().to_owned())).cpu;
    assert!(cpu.long_mode && cpu.vendor == precise_model::Vendor::Amd, "{cpu:?}");
}

#[test]
fn nodes_are_those_of_the_machine() {
    let folder = tempfile::tempdir().unwrap();
    let write = |path: &str, text: &str| {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    // Two sockets and a CXL expander, as listed by their kernel.
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

#[test]
fn guests_may_run_where_the_cpu_or_the_kernel_can() {
    let can = |flags: &str, kvm: bool| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(folder.path().join("proc")).unwrap();
        std::fs::write(folder.path().join("proc/cpuinfo"), format!("flags\t: lm {flags} nx\n")).unwrap();
        if kvm {
            std::fs::create_dir_all(folder.path().join("sys/module/kvm")).unwrap();
        }
        MachineInfo::read(&Root(folder.path().to_owned())).can_run_guests
    };
    assert!(can("svm", false) && can("vmx", false) && can("", true));
    assert!(!can("svm_lock", false));
}
