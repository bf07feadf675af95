//! Property tests: every filter that parses is printed as text that parses again, nothing panics,
//! and the slots mean the same as the text.

use precise_common::config::MAX_SLOTS;
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use super::eval::{SampleFacts, expr_passes, slots_pass};
use super::tests::{Cgroups, LEGACY};
use super::*;

/// Tests each named value on every word with one, two or three bits: cases that random words may
/// miss.
#[test]
fn named_values_on_sparse_words() {
    let bits: Vec<u64> = (0..46).map(|bit| 1 << bit).chain([0]).collect();
    let mut words = Vec::new();
    for a in &bits {
        words.extend(bits.iter().flat_map(|b| [0, 1 << 33, 15 << 33].map(|number| a | b | number)));
    }
    for term in Term::ALL {
        let TermKind::Class(values) = term.kind() else { continue };
        for (value, options) in
            values.iter().flat_map(|value| [(value, CompilerOptions::default()), (value, LEGACY)])
        {
            let expr = parse(&format!("{} == {}", term.name(), value.name())).unwrap();
            let opposite = parse(&format!("{} != {}", term.name(), value.name())).unwrap();
            let filters = [expr.clone(), opposite].map(|expr| compile(&expr, options, &NoCgroups).unwrap());
            for word in &words {
                let sample =
                    SampleFacts { data_src: *word, outcome: *word, ip: word << 20, ..SampleFacts::default() };
                let wanted = expr_passes(&expr, &sample, options, &NoCgroups).unwrap();
                let got = filters.each_ref().map(|filter| slots_pass(&filter.slots, &sample).is_ok());
                assert_eq!(got, [wanted, !wanted], "{expr} {word:#x}");
            }
        }
    }
}

/// Tests pairs of tests of one number, merged if possible, on every number that they can tell
/// apart.
#[test]
fn pairs_of_tests_on_one_number() {
    let tests = [
        "addr & 1",
        "addr & 3",
        "addr & 4",
        "!(addr & 1)",
        "!(addr & 3)",
        "!(addr & 6)",
        "addr < 3",
        "addr > 5",
        "addr in {1, 3, 5, 7}",
        "addr not in {0, 2..4}",
        "addr == 2",
        "addr in {0, 2, 4, 63}",
        "addr in {0, 2, 4, 64}",
        "addr in {64..128, 192..256, 4096..4160}",
        "addr in {64..128, 192..256, 4160..4224}",
    ];
    for (a, b) in tests.iter().flat_map(|a| tests.iter().map(move |b| (a, b))) {
        for text in [format!("{a} && {b}"), format!("{a} || {b}"), format!("cpu == 1 || ({a} && {b})")] {
            let expr = parse(&text).unwrap();
            let filter = compile(&expr, CompilerOptions::default(), &NoCgroups);
            for address in (0..300).chain(4000..4300) {
                let sample = SampleFacts { address, ..SampleFacts::default() };
                let wanted = expr_passes(&expr, &sample, CompilerOptions::default(), &NoCgroups).unwrap();
                let got = filter.as_ref().is_ok_and(|filter| slots_pass(&filter.slots, &sample).is_ok());
                assert_eq!(got, wanted, "{text} {address} {filter:?}");
            }
        }
    }
}

/// The property below does not cover filters that are refused, so most must not be refused.
#[test]
fn most_random_filters_compile() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut several, mut good) = (0, 0);
    for _ in 0..1000 {
        let expr = expr().new_tree(&mut runner).unwrap().current();
        if let Ok(filter) = compile(&expr, LEGACY, &Cgroups) {
            good += 1;
            several += usize::from(filter.slots.len() > 2);
        }
    }
    assert!(good > 600 && several > 300, "{good} {several}");
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 0u64..12, 1 => Just(4096), 1 => Just(2 << 20), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn item() -> impl Strategy<Value = NumberItem> {
    prop_oneof![
        3 => number().prop_map(NumberItem::One),
        2 => (number(), 1..8u64).prop_map(|(low, n)| match low.checked_add(n) {
            Some(end) => NumberItem::Range(low, end),
            None => NumberItem::From(low),
        }),
        1 => number().prop_map(NumberItem::From),
    ]
}

fn test_of(term: Term) -> BoxedStrategy<TermTest> {
    match term.kind() {
        TermKind::Number { .. } => prop_oneof![
            (
                prop::sample::select(vec![Order::Less, Order::AtMost, Order::Greater, Order::AtLeast]),
                number()
            )
                .prop_map(move |(order, bound)| TermTest::Bound(term, order, bound)),
            number().prop_map(move |mask| TermTest::Bits(term, mask)),
            (any::<bool>(), prop::collection::vec(item(), 1..5))
                .prop_map(move |(negated, items)| TermTest::Number { term, negated, items }),
        ]
        .boxed(),
        TermKind::Class(values) => (any::<bool>(), prop::collection::vec(prop::sample::select(values), 1..4))
            .prop_map(move |(negated, values)| TermTest::Class { term, negated, values })
            .boxed(),
        TermKind::Text => {
            let known = if term == Term::Comm {
                vec!["a", "b", "c c", "\"\\'"]
            } else {
                vec!["/a", "/a/b", "/a/c", "/v1"]
            };
            (any::<bool>(), prop::collection::vec(prop::sample::select(known), 1..3))
                .prop_map(move |(negated, values)| TermTest::Text {
                    term,
                    negated,
                    values: values.into_iter().map(str::to_owned).collect(),
                })
                .boxed()
        }
    }
}

fn expr() -> impl Strategy<Value = Expr> {
    let test = prop::sample::select(Term::ALL.to_vec()).prop_flat_map(test_of).prop_map(Expr::Test);
    test.prop_recursive(3, 12, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| Expr::all(parts).unwrap()),
            prop::collection::vec(inner.clone(), 2..4).prop_map(|parts| Expr::any(parts).unwrap()),
            inner.prop_map(|inner| Expr::Not(Box::new(inner))),
        ]
    })
}

fn sample() -> impl Strategy<Value = SampleFacts> {
    let small = || prop_oneof![3 => 0u32..14, 1 => any::<u32>()];
    let word = prop_oneof![any::<u64>(), any::<u64>().prop_map(|word| word & !(0xf << 33)), Just(0)];
    let path = prop::sample::select(vec![vec![1], vec![1, 10], vec![1, 10, 11], vec![1, 10, 12, 40], vec![]]);
    let comm = prop::sample::select(vec!["a", "b", "c c", "\"\\'", "other"]);
    let ids = (small(), small(), small(), small(), small(), small());
    (number(), number(), number(), number(), word, path, comm, ids).prop_map(
        |(
            ip,
            address,
            phys_address,
            page_size,
            data_src,
            ancestors,
            name,
            (latency, pid, tid, cpu, uid, gid),
        )| {
            let mut comm = [0; 16];
            comm[..name.len()].copy_from_slice(name.as_bytes());
            let cgroup = ancestors.last().copied().unwrap_or(0);
            SampleFacts {
                ip,
                address,
                latency,
                data_src,
                outcome: data_src.rotate_left(13),
                pid,
                tid,
                cpu,
                uid,
                gid,
                cgroup,
                ancestors,
                watched: Vec::new(),
                comm,
                phys_address,
                page_size,
            }
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_text_panics(text in any::<String>()) {
        let _ = parse(&text).map_err(|error| error.to_string());
        let _ = parse::range(&text).map_err(|error| error.to_string());
    }

    #[test]
    fn no_text_of_the_grammar_s_pieces_panics(pieces in prop::collection::vec(prop::sample::select(vec![
        "(", ")", "{", "}", "!", "not ", " in ", "&&", "||", ",", "&", "==", "!=", "<",
        "..", "-", "\"", "'", "\\",
        "latency", " mem_lvl ", "comm", "cgroup", "cpu", "mem_hops", "l1", "4K", "0x", "18446744073709551615",
        "kernel",
        "é", " ", "mem_op", "load", "mode",
    ]), 0..24)) {
        if let Ok(expr) = parse(&pieces.concat()) {
            let again = parse(&expr.to_string());
            prop_assert_eq!(again.as_ref(), Ok(&expr));
            let _ = compile(&expr, LEGACY, &Cgroups);
        }
    }

    #[test]
    fn canonical_text_parses_to_the_same(expr in expr()) {
        let text = expr.to_string();
        let again = parse(&text).map_err(|error| TestCaseError::fail(error.to_string()))?;
        prop_assert_eq!(&again, &expr);
        prop_assert_eq!(again.to_string(), text);
    }

    #[test]
    fn negations_inside_mean_the_same(expr in expr(), sample in sample()) {
        let inside = expr.negations_inside();
        prop_assert_eq!(
            expr_passes(&expr, &sample, LEGACY, &Cgroups),
            expr_passes(&inside, &sample, LEGACY, &Cgroups)
        );
    }

    /// Proves that the compiler is correct, and that filters that it calls impossible are.
    #[test]
    fn slots_mean_what_the_text_says(
        expr in expr(),
        samples in prop::collection::vec(sample(), 1..40),
        legacy_levels in any::<bool>(),
    ) {
        let options = CompilerOptions { legacy_levels };
        let filter = compile(&expr, options, &Cgroups);
        for sample in &samples {
            let wanted = expr_passes(&expr, sample, options, &Cgroups).map_err(TestCaseError::fail)?;
            match &filter {
                Ok(filter) => {
                    prop_assert!(filter.slots.len() <= MAX_SLOTS);
                    let got = slots_pass(&filter.slots, sample);
                    prop_assert_eq!(got.is_ok(), wanted, "{} {:?} {:?}", expr, filter.slots, sample);
                    if let Err(clause) = got {
                        // The charged counter belongs to a conjunct that the sample fails.
                        let text = &filter.clauses[clause as usize];
                        let conjunct = parse(text).map_err(|error| TestCaseError::fail(error.to_string()))?;
                        let passes = expr_passes(&conjunct, sample, options, &Cgroups);
                        prop_assert_eq!(passes, Ok(false), "{}", text);
                    }
                }
                Err(CompileError::Never(_)) => prop_assert!(!wanted, "{} {:?}", expr, sample),
                Err(CompileError::TooComplex { .. }) => {}
                Err(other) => return Err(TestCaseError::fail(other.to_string())),
            }
        }
    }
}
