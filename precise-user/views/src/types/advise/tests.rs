//! Tests of the advice with planted layouts.

use precise_code::types::{Field, Kind, TypeLayout};

use super::{Language, LayoutAdvice, VisitKey, Visits};

/// `struct Order { long a; char cold[56]; long b; char rest[56]; long seq; }`
fn order() -> TypeLayout {
    let field =
        |name: &str, ty: &str, offset, size| Field { name: name.into(), type_name: ty.into(), offset, size };
    let members = vec![
        field("a", "long", 0, 8),
        field("cold", "char[56]", 8, 56),
        field("b", "struct point*", 64, 8),
        field("rest", "char[56]", 72, 56),
        field("seq", "long", 128, 8),
    ];
    let fields = members.clone();
    TypeLayout {
        name: "Order".into(),
        kind: Kind::Struct,
        size: 136,
        alignment: 8,
        fields,
        members,
        cut: false,
    }
}

/// Visits of one thread that reads `a` and `b` of each object together.
fn visits(layout: &TypeLayout, language: Language) -> Visits {
    let mut visits = Visits::default();
    for object in 0..50 {
        for offset in [0, 64] {
            let key = VisitKey { pid: 7, base: 0x1_0000 + object * 192, epoch: 0, tid: 1 };
            visits.add(layout, offset, (3, false), Some(key), language);
        }
    }
    visits
}

fn names(advice: &LayoutAdvice) -> Vec<(&str, u64)> {
    advice.members.iter().map(|member| (member.name.as_str(), member.offset)).collect()
}

#[test]
fn members_that_are_used_together_get_one_line() {
    let layout = order();
    let advice = visits(&layout, Language::C).advice(&layout).unwrap();
    assert_eq!(advice.refused, None);
    assert_eq!(names(&advice)[..2], [("a", 0), ("b", 8)]);
    assert_eq!((advice.visits, advice.objects, advice.by_affinity), (50, 50, true));
    let mean = |lines: super::MeanLines| (lines.value, lines.low, lines.high);
    assert_eq!(mean(advice.lines_now), (2.0, 2.0, 2.0));
    assert_eq!(mean(advice.lines_advised), (1.0, 1.0, 1.0));
    assert_eq!(mean(advice.saved), (1.0, 1.0, 1.0));
    // The order needs no more room.
    assert_eq!(advice.size, 136);
    assert!(advice.definition.starts_with("struct Order {\n    long a;"), "{}", advice.definition);
    assert!(advice.definition.contains("\n    struct point* b; "), "{}", advice.definition);
    assert!(advice.definition.contains("\n    char cold[56]; "), "{}", advice.definition);
}

#[test]
fn affinity_decides_among_members_of_the_same_heat() {
    let layout = order();
    let mut visits = visits(&layout, Language::C);
    // `seq` is as hot as `b`, and never used with `a`.
    for object in 0..50 {
        let key = VisitKey { pid: 7, base: 0x9_0000 + object * 192, epoch: 0, tid: 1 };
        visits.add(&layout, 128, (4, false), Some(key), Language::C);
        visits.add(&layout, 80, (4, false), Some(key), Language::C);
    }
    let advice = visits.advice(&layout).unwrap();
    let order: Vec<&str> = advice.members.iter().map(|member| member.name.as_str()).collect();
    let line = |name| advice.members.iter().find(|member| member.name == name).unwrap().offset / 64;
    assert_eq!(line("a"), line("b"), "{order:?}");
    assert_eq!(line("rest"), line("seq"), "{order:?}");
}

#[test]
fn what_one_thread_writes_and_another_uses_is_alone() {
    let layout = order();
    let mut visits = visits(&layout, Language::Rust);
    for (tid, writes) in [(1, true), (2, false)] {
        let key = VisitKey { pid: 7, base: 0x1_0000, epoch: 0, tid };
        visits.add(&layout, 128, (100, writes), Some(key), Language::Rust);
    }
    let advice = visits.advice(&layout).unwrap();
    let seq = advice.members.last().unwrap();
    assert_eq!((seq.name.as_str(), seq.write_shared, seq.offset % 64), ("seq", true, 0));
    let others = advice.members.iter().filter(|member| member.name != "seq");
    assert!(
        others
            .clone()
            .all(|member| !member.write_shared
                && (member.offset + member.size).div_ceil(64) <= seq.offset / 64)
    );
    assert_eq!(advice.size % 64, 0);
    assert!(
        advice.definition.starts_with("#[repr(C, align(64))]\nstruct Order {\n"),
        "{}",
        advice.definition
    );
    assert!(advice.definition.contains("cold: [char; 56],"), "{}", advice.definition);
    // Two threads that only read do not share by writing.
    let mut visits = super::tests::visits(&layout, Language::C);
    for tid in [1, 2] {
        let key = VisitKey { pid: 7, base: 0x1_0000, epoch: 0, tid };
        visits.add(&layout, 128, (100, false), Some(key), Language::C);
    }
    assert!(visits.advice(&layout).unwrap().members.iter().all(|member| !member.write_shared));
}

/// Adds uses of members by a thread, in the objects of `visits`.
fn add(visits: &mut Visits, tid: u32, uses: &[(u64, u64, bool)]) {
    for object in 0..50 {
        let key = VisitKey { pid: 7, base: 0x1_0000 + object * 192, epoch: 0, tid };
        for (offset, samples, writes) in uses {
            visits.add(&order(), *offset, (*samples, *writes), Some(key), Language::C);
        }
    }
}

#[test]
fn what_one_thread_writes_is_apart_from_what_another_uses() {
    let layout = order();
    let mut visits = visits(&layout, Language::C);
    // Another thread writes `seq` and reads `rest`, the latter more often than `b` is used.
    add(&mut visits, 2, &[(128, 1, true), (80, 5, false)]);
    add(&mut visits, 1, &[(0, 10, false)]);
    let advice = visits.advice(&layout).unwrap();
    assert!(advice.apart && advice.members.iter().all(|member| !member.write_shared));
    let line = |name| advice.members.iter().find(|member| member.name == name).unwrap().offset / 64;
    assert_eq!((line("a"), line("b"), line("seq"), line("rest")), (0, 0, 1, 1));
    assert_eq!(advice.size % 64, 0);
    for member in ["_Alignas(64) long a;", "_Alignas(64) char rest[56];"] {
        assert!(advice.definition.contains(member), "{}", advice.definition);
    }
}

#[test]
fn an_object_whose_lines_are_apart_begins_at_a_line() {
    let layout = order();
    let mut visits = Visits::default();
    // The members of one thread fill a line, so that those of the other begin the next one anyway.
    add(&mut visits, 1, &[(0, 9, false), (8, 9, false)]);
    add(&mut visits, 2, &[(64, 1, true)]);
    let advice = visits.advice(&layout).unwrap();
    assert_eq!(names(&advice)[..3], [("a", 0), ("cold", 8), ("b", 64)]);
    assert!(advice.apart && advice.size.is_multiple_of(64), "{}", advice.definition);
    assert!(advice.definition.contains("_Alignas(64) long a;"), "{}", advice.definition);
}

#[test]
fn a_few_writes_before_another_thread_uses_an_object_keep_nothing_apart() {
    let layout = order();
    let mut visits = visits(&layout, Language::C);
    add(&mut visits, 1, &[(0, 100, false), (64, 100, false)]);
    add(&mut visits, 2, &[(0, 1, true), (64, 1, true)]);
    let advice = visits.advice(&layout).unwrap();
    assert!(!advice.apart && advice.members.iter().all(|member| !member.write_shared));
    assert_eq!((names(&advice)[..2].to_vec(), advice.size), (vec![("a", 0), ("b", 8)], 136));
}

#[test]
fn alignment_is_kept_and_each_member_has_its_bytes() {
    let layout = order();
    let advice = visits(&layout, Language::Cpp).advice(&layout).unwrap();
    let mut places: Vec<(u64, u64)> = advice.members.iter().map(|m| (m.offset, m.size)).collect();
    places.sort_unstable();
    assert_eq!(places.len(), layout.members.len());
    assert!(places.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0), "{places:?}");
    for member in advice.members.iter().filter(|member| member.size == 8) {
        assert_eq!(member.offset % 8, 0, "{}", member.name);
    }
}

#[test]
fn a_fixed_order_is_refused_with_the_reason() {
    let layout = TypeLayout { members: Vec::new(), ..order() };
    let advice = visits(&layout, Language::Cpp).advice(&layout).unwrap();
    assert!(advice.refused.unwrap().starts_with("The order of the members of Order is not free"));
    assert_eq!(advice.definition, "");
    // Without addresses, no visit is known.
    let layout = order();
    let mut visits = Visits::default();
    visits.add(&layout, 0, (3, false), None, Language::C);
    assert!(visits.advice(&layout).unwrap().refused.unwrap().contains("--granule 1"));
}

/// The members of a struct, with their types as debug information names them.
fn declared(name: &str, types: &[(&str, u64)], language: Language) -> String {
    let (mut offset, mut members) = (0, Vec::new());
    for (number, (ty, size)) in types.iter().enumerate() {
        members.push(Field { name: format!("m{number}"), type_name: (*ty).into(), offset, size: *size });
        offset += size;
    }
    let fields = members.clone();
    let layout = TypeLayout {
        name: name.into(),
        kind: Kind::Struct,
        size: offset,
        alignment: 8,
        fields,
        members,
        cut: false,
    };
    let mut visits = Visits::default();
    let key = VisitKey { pid: 7, base: 0x1_0000, epoch: 0, tid: 1 };
    visits.add(&layout, 0, (3, false), Some(key), language);
    visits.advice(&layout).unwrap().definition
}

#[test]
fn paths_of_rust_are_those_of_its_module() {
    let definition = declared(
        "book::live::Order<u32>",
        &[
            ("alloc::vec::Vec<book::live::Fill, alloc::alloc::Global>", 24),
            ("core::option::Option<alloc::boxed::Box<book::Level, alloc::alloc::Global>>", 8),
            (
                "std::collections::hash::map::HashMap<alloc::string::String, u64, std::hash::random::RandomState>",
                48,
            ),
            ("core::sync::atomic::AtomicU64", 8),
            ("alloc::sync::Arc<std::sync::poison::mutex::Mutex<u64>, alloc::alloc::Global>", 8),
            ("&str", 16),
            ("*mut other::Thing", 8),
            ("u8[3][4]", 16),
            ("book::live::{closure_env#0}", 8),
        ],
        Language::Rust,
    );
    for line in [
        "// book::live::Order<u32>: put its parameters back",
        "struct Order<'a> {",
        "m0: Vec<Fill>,",
        "m1: Option<Box<crate::Level>>,",
        "m2: std::collections::HashMap<String, u64>,",
        "m3: std::sync::atomic::AtomicU64,",
        "m4: std::sync::Arc<std::sync::Mutex<u64>>,",
        "m5: &'a str,",
        "m6: *mut other::Thing,",
        "m7: [[u8; 3]; 4],",
        "m8: [u64; 1],",
    ] {
        assert!(definition.contains(line), "{line} is not in {definition}");
    }
}

#[test]
fn what_has_no_name_is_declared_as_before() {
    let types = [
        ("struct order*", 8),
        ("function*", 8),
        ("enum", 4),
        ("struct[3]", 12),
        ("unsigned char", 1),
        ("union", 7),
    ];
    let definition = declared("order", &types, Language::C);
    for line in ["struct order* m0;", "unsigned long m1[1];", "unsigned int m2[1];", "unsigned int m3[3];"] {
        assert!(definition.contains(line), "{line} is not in {definition}");
    }
    assert_eq!(definition.matches(", declare it as before").count(), 4, "{definition}");
}
