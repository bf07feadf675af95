//! Examples of how filters parse and compile, and of filters that are refused.

use precise_common::config::{Config, compare, operand};
use precise_common::data_src::{DataSource, MemoryLevel};

use super::eval::{SampleFacts, slots_pass};
use super::flags::Mode;
use super::*;

/// `/a` is a cgroup of level 1, `/a/b` and `/a/c` are below it; `/v1` is of a v1 hierarchy.
pub(super) struct Cgroups;

impl Resolver for Cgroups {
    fn cgroup(&self, path: &str) -> Result<CgroupMatch, String> {
        match path {
            "/a" => Ok(CgroupMatch::Subtree { id: 10, level: 1 }),
            "/a/b" => Ok(CgroupMatch::Subtree { id: 11, level: 2 }),
            "/a/c" => Ok(CgroupMatch::Subtree { id: 12, level: 2 }),
            "/v1" => Ok(CgroupMatch::Ids(vec![11, 40, 41])),
            _ => Err("no such directory".to_owned()),
        }
    }
}

pub(super) const LEGACY: CompilerOptions = CompilerOptions { legacy_levels: true };

fn compiled(text: &str) -> Compiled {
    compile(&parse(text).unwrap(), CompilerOptions::default(), &Cgroups).unwrap()
}

fn refused(text: &str) -> String {
    compile(&parse(text).unwrap(), CompilerOptions::default(), &Cgroups).unwrap_err().to_string()
}

#[test]
fn terms_and_values_of_perf() {
    for (text, canonical) in [
        ("mem_op == load, mem_lvl != l1", "mem_op == load && mem_lvl != l1"),
        ("weight > 0x10", "latency > 16"),
        ("mem_snoop & hitm", "mem_snoop == hitm"),
        ("mem_dtlb = fault || mem_tlb == walk", "mem_dtlb == fault || mem_dtlb == walk"),
        ("mem_remote == 1 && mem_lock == 0", "mem_remote == remote && mem_lock == unlocked"),
        ("mem_hops==hops0,mem_blk==by_addr", "mem_hops == 1 && mem_blk == addr"),
        ("data_page_size == 2097152", "data_pgsz == 2M"),
        ("addr in 4K..0x3_000", "addr in 0x1000..0x3000"),
        ("ip in {1, 0x20 .. , 5..7}", "ip in {0x1, 0x20.., 0x5..0x7}"),
        ("cpu not in {1,2}", "cpu not in {1, 2}"),
        ("not (kernel && comm == nginx)", r#"!(kernel && comm == "nginx")"#),
        ("user", "user"),
        ("mode != user", "mode != user"),
        (r#"comm == 'Web "C'"#, r#"comm == "Web \"C""#),
        (r"cgroup == /sys/dev-x\x2d.slice", r#"cgroup == "/sys/dev-x\\x2d.slice""#),
        ("cgroup in {/a, /b}", r#"cgroup in {"/a", "/b"}"#),
        ("addr & 0x20 == 0".split(" ==").next().unwrap(), "addr & 0x20"),
        // As in perf, `,` is an AND that binds loosest.
        ("pid == 1 || pid == 2, kernel", "(pid == 1 || pid == 2) && kernel"),
        ("pid == 1 || pid == 2 && kernel", "pid == 1 || (pid == 2 && kernel)"),
        ("pid == 1 && (pid == 2 && kernel)", "pid == 1 && pid == 2 && kernel"),
    ] {
        assert_eq!(parse(text).map(|expr| expr.to_string()), Ok(canonical.to_owned()), "{text}");
    }
}

#[test]
fn errors_say_where_and_what() {
    let error = parse("mem_op == load, mem_lvll == l2").unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown term `mem_lvll`\n  mem_op == load, mem_lvll == l2\n                  ^\n  \
         did you mean `mem_lvl`?"
    );
    for (text, column, words) in [
        ("", 0, "empty"),
        ("kernel &&", 9, "ends where a comparison"),
        ("mem_op == laod", 10, "did you mean `load`"),
        ("mem_lvl > l1", 8, "no order"),
        ("mem_lvl == 9", 11, "valid values: l1"),
        ("latency 5", 8, "expected a comparison operator"),
        ("latency == 5x", 11, "not a number"),
        ("latency == 99999999999999999999", 11, "64 bits"),
        ("addr in 9..9", 8, "empty"),
        ("addr in 1..=9", 11, "not included"),
        ("addr in 1-9", 9, "lo..hi"),
        ("addr == {1}", 8, "a set must follow `in`"),
        ("addr in {1", 10, "`{` in column 9"),
        ("(kernel", 7, "`(` in column 1"),
        ("kernel)", 6, "no matching `(`"),
        ("kernel & user", 7, "for AND write `&&`"),
        ("kernel | user", 7, "for OR write `||`"),
        ("comm == \"x", 8, "never closed"),
        ("comm == a-very-long-name", 8, "a-very-long-nam\""),
        ("ins_lat > 5", 0, "weight1"),
        ("cpu not 3", 8, "expected `in`"),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.to_string().contains(words), "{text}: {error}");
        assert_eq!(error.column, column, "{text}: {error}");
    }
    let deep = "(".repeat(100_000);
    assert!(parse(&deep).unwrap_err().message.contains("levels"));
    assert!(parse(&format!("{}kernel", "!".repeat(40))).unwrap_err().message.contains("levels"));
}

#[test]
fn one_slot_where_one_is_enough() {
    for (text, slots) in [
        ("mem_lvl in {l1, l2, ram}", 1),
        ("mem_lvl == l1 || mem_lvl == l2", 1),
        ("mem_lvl not in {l1, l2}", 1),
        ("mem_dtlb in {walk, l2_miss, fault}", 1),
        ("mem_op == load || mem_op == store", 1),
        ("mem_hops in {hops0, hops2}", 1),
        ("cpu in {0, 1, 2, 3}", 1),
        ("cpu in {0, 2, 4, 6, 8, 10, 12}", 2),
        ("addr in {0x1000..0x2000, 0x2000..0x3000}", 1),
        ("pid != 7", 1),
        ("pid in {7, 9, 1000}", 3),
        ("latency >= 10 && latency < 20", 2),
        ("(latency >= 10 && latency < 20) || kernel", 2),
        ("mem_snoop in {hitm, fwd}", 2),
        ("kernel", 1),
        ("comm in {a, b}", 2),
        ("!(comm == a || cpu == 3)", 2),
    ] {
        let filter = compiled(text);
        assert_eq!(filter.slots.len(), slots, "{text}: {:?}", filter.slots);
    }
}

#[test]
fn each_conjunct_has_one_counter() {
    let filter = compiled("mem_op == load, (pid == 1 && cpu == 1) || comm == x, !(user || mem_lvl == l1)");
    assert_eq!(
        filter.clauses,
        ["mem_op == load", "(pid == 1 && cpu == 1) || comm == \"x\"", "mode != user", "mem_lvl != l1"]
    );
    let numbers: Vec<_> = filter.slots.iter().map(|slot| (slot.clause, slot.ends_clause)).collect();
    assert_eq!(numbers, [(0, 1), (1, 0), (1, 1), (1, 0), (1, 1), (2, 1), (3, 1)]);
    assert_eq!(filter.needs, OptionalFields { data_src: true, ..OptionalFields::default() });
    let mut config = Config::EMPTY;
    filter.install(&mut config);
    assert_eq!((config.slots[6], config.slots[7].operand), (filter.slots[6], operand::NONE));
}

#[test]
fn nonsense_is_refused_in_words() {
    for (text, words) in [
        ("latency > 10 && latency < 5", "`latency > 10` and `latency < 5` cannot both be true"),
        ("mem_lvl == l1, cpu == 3, mem_lvl == l2", "`mem_lvl == l1` and `mem_lvl == l2`"),
        ("latency > 0xffffffff", "`latency > 4294967295` is never true"),
        ("pid < 0", "never true"),
        ("comm == a && comm == b", "cannot both be true"),
        ("cgroup == /a/b && cgroup == /a/c", "cannot both be true"),
        ("kernel && user", "cannot both be true"),
        ("addr & 0", "never true"),
        (
            "kernel && (user || pid == 1), pid == 2",
            "`kernel`, `user || pid == 1`, `pid == 2` cannot all be true at once",
        ),
        ("cgroup == /nowhere", "cgroup `/nowhere`: no such directory"),
    ] {
        let error = refused(text);
        assert!(error.contains(words), "{text}: {error}");
    }
    for text in ["cpu >= 0", "kernel || user", "cpu < 5 || cpu > 3", "mem_op == load || mem_op != load"] {
        let filter = compiled(text);
        assert!(filter.slots.is_empty() && filter.warnings[0].contains("always true"), "{text}: {filter:?}");
    }
    let list: Vec<_> = (0..40).map(|n| (n * 1000).to_string()).collect();
    let error = refused(&format!("pid in {{{}}}", list.join(", ")));
    assert!(error.contains("needs 40 comparisons; the limit is 16"), "{error}");
    let product: Vec<_> = (0..12).map(|n| format!("(pid == {n} && cpu == {n} && comm == x{n})")).collect();
    assert!(refused(&product.join(" || ")).contains("more than"));
}

#[test]
fn an_event_must_record_what_is_tested() {
    let faults = EventFields {
        name: "page-faults",
        fields: OptionalFields { address: true, ..OptionalFields::default() },
    };
    let all = OptionalFields { address: true, latency: true, data_src: true, ..OptionalFields::default() };
    let loads = EventFields { name: "loads", fields: all };
    let expr = parse("addr > 5 && (kernel || weight > 10)").unwrap();
    assert_eq!(check(&expr, &loads, &[]), Ok(()));
    assert_eq!(
        check(&expr, &faults, &[faults, loads]).unwrap_err().to_string(),
        "`latency > 10` needs the access latency, but `page-faults` does not record it; `loads` does"
    );
    let expr = parse("mem_hops == 1").unwrap();
    assert!(
        check(&expr, &faults, &[]).unwrap_err().to_string().ends_with("but `page-faults` does not record it")
    );
    assert_eq!(check(&parse("comm == x && kernel && cpu == 1").unwrap(), &faults, &[]), Ok(()));
}

#[test]
fn flags_become_one_filter() {
    assert_eq!(FilterFlags::default().expr(), None);
    let flags = FilterFlags {
        mode: Some(Mode::User),
        latency_min: Some(10),
        latency_max: Some(99),
        data_addresses: vec![parse::range("0x1000..0x2000").unwrap()],
        comms: vec!["a".to_owned(), "b".to_owned()],
        cgroups: vec!["/a".to_owned(), "/v1".to_owned()],
        ..FilterFlags::default()
    };
    let expr = flags.with_filter("pid == 1 || tid == 2").unwrap().expr().unwrap();
    let text = "user && latency in 10..100 && addr in 0x1000..0x2000 && \
                comm in {\"a\", \"b\"} && cgroup in {\"/a\", \"/v1\"} && (pid == 1 || tid == 2)";
    assert_eq!(expr.to_string(), text);
    assert_eq!(parse(text), Ok(expr));
    let crossed =
        FilterFlags { latency_min: Some(9), latency_max: Some(3), ..FilterFlags::default() }.expr().unwrap();
    assert!(compile(&crossed, CompilerOptions::default(), &NoCgroups).is_err());
    for text in ["", "0x10-0x20", "5..2", "1..2 3"] {
        assert!(parse::range(text).is_err(), "{text}");
    }
}

/// The filter uses the same names for levels as the views, for every word that a driver writes.
#[test]
fn levels_are_those_of_the_views() {
    let names = [
        (MemoryLevel::L1, "l1"),
        (MemoryLevel::L2, "l2"),
        (MemoryLevel::L3, "l3"),
        (MemoryLevel::Ram, "ram"),
        (MemoryLevel::Na, "na"),
    ];
    let legacy =
        [0, 0x21, 0x8, 0xa, 0xc, 0x10, 0x20, 0x40, 0x44, 0x80, 0x100, 0x200, 0x400, 0x440, 0x800, 0x1000];
    for word in legacy.iter().flat_map(|lvl| (0..16).map(move |number| 2 | lvl << 5 | number << 33)) {
        let decoded = DataSource::decode(word);
        let sample = SampleFacts { data_src: word, ..SampleFacts::default() };
        for (level, name) in names {
            let filter = compile(&parse(&format!("mem_lvl == {name}")).unwrap(), LEGACY, &NoCgroups).unwrap();
            assert_eq!(
                slots_pass(&filter.slots, &sample).is_ok(),
                decoded.level == level,
                "{name} {word:#x}"
            );
        }
        let filter = compile(&parse("mem_remote == remote").unwrap(), LEGACY, &NoCgroups).unwrap();
        assert_eq!(slots_pass(&filter.slots, &sample).is_ok(), decoded.remote, "{word:#x}");
    }
}

#[test]
fn a_slot_has_no_compare_that_the_program_lacks() {
    for slot in &compiled("mem_lvl == l1, addr & 1, pid != 4, comm != x").slots {
        assert!(slot.compare & !compare::NOT <= compare::IN_SET);
    }
}
