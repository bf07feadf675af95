use proptest::prelude::*;

use super::*;
use precise_model::RateChange;
use precise_model::testing::CaptureBuilder;

fn condition(text: &str) -> Condition {
    parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn why(text: &str) -> String {
    parse(text).unwrap_err().to_string()
}

#[test]
fn conditions_are_read_and_printed() {
    for text in [
        "p99(latency) by cgroup > +10%",
        "p99.9(latency) > +20 cycles",
        "p50(latency) by function,process < -5%",
        "mean(latency) > 500 cycles",
        "share by function > +2pp",
        "share(level == RAM hit) by cgroup > +7%",
        "share(kernel == kernel) > 30%",
        "count > +10%",
        "rate by function < -0.5%",
    ] {
        assert_eq!(condition(text).to_string(), text);
    }
    let other = condition("P99(latency)by dso,sym>+1_0 %");
    assert_eq!(other.to_string(), "p99(latency) by module,function > +10%");
    assert_eq!(condition("share(level==\"RAM hit\")>5%"), condition("share( mem ==  RAM hit ) > 5.0 %"));
}

#[test]
fn what_is_no_condition_is_shown_with_its_place() {
    assert_eq!(
        why("p99(latency) by cgrup > +10%").lines().take(3).skip(1).collect::<Vec<_>>(),
        ["  p99(latency) by cgrup > +10%", "                  ^"]
    );
    for (text, part, column) in [
        ("", "expected a metric", 0),
        ("p99 > +10%", "expected `(`", 4),
        ("p99(cycles) > +10%", "expected `latency`", 4),
        ("p100(latency) > +10%", "`100` is not a valid percentile", 0),
        ("p0(latency) > +10%", "`0` is not a valid percentile", 0),
        ("p99.1234(latency) > +10%", "`99.1234` is not a valid percentile", 0),
        ("max(latency) > +10%", "`max` is not a metric", 0),
        ("share > +10%", "the share of what?", 6),
        ("share(level) > +10%", "expected `==`", 11),
        ("share(level ==) > +10%", "expected a value", 14),
        ("share(level == RAM hit > +10%", "expected `)`", 29),
        ("rate +10%", "expected > or <", 5),
        ("rate >= +10%", "write the condition with > or <", 5),
        ("rate > ", "expected a bound", 7),
        ("rate > +10", "the bound needs a unit", 10),
        ("rate > 10%", "is 10% a change or a value?", 7),
        ("rate > +10 cycles", "a bound of count", 11),
        ("p50(latency) > 10%", "is 10% a change or a value?", 15),
        ("p50(latency) > +2pp", "a bound of p50(latency) cannot be in `pp`", 17),
        ("rate > +0%", "nothing changed at all", 7),
        ("rate < -100%", "no value can fall by 100%", 7),
        ("share by sym > 100%", "no share can exceed 100%", 15),
        ("share by sym > +100pp", "no share can change by 100 percentage points", 15),
        ("rate > +10%, share by sym > +2pp", "unexpected text after the condition", 11),
        ("größe > +10%", "`größe` is not a metric", 0),
    ] {
        let error = parse(text).expect_err(text);
        let message = error.message.replace("a bound of rate", "a bound of count");
        assert!(message.contains(part), "{text}: {error}");
        assert_eq!(error.column, column, "{error}");
    }
}

/// Samples of two cgroups, `n` latencies each; those of the second are `factor` times as long.
pub(crate) fn capture(n: u64, factor: f64) -> Capture {
    let mut builder = CaptureBuilder::new();
    for (id, cgroup, scale) in [(1, "/web", 1.0), (2, "/batch", factor)] {
        for step in 0..50_u32 {
            let cycles = (scale * f64::from(100 + 8 * step)) as u32;
            builder.cell().samples(n / 50).latency(cycles).cgroup(id, cgroup).code(1, "app", "f", "a.c", 1);
        }
    }
    builder.cell().samples(20).latency(100).cgroup(3, "/small");
    builder.build()
}

fn verdict(base: &Capture, new: &Capture, text: &str) -> (ConditionVerdict, String) {
    let check = check(base, new, &[condition(text)]).unwrap_or_else(|error| panic!("{error}"));
    (check.verdict, check.conditions[0].sentence.clone())
}

#[test]
fn a_known_change_fails_and_none_passes() {
    let (base, slow) = (capture(20_000, 1.0), capture(20_000, 1.5));
    let check = check(&base, &slow, &[condition("p99(latency) by cgroup > +10%")]).unwrap();
    let judgement = &check.conditions[0];
    assert_eq!((check.verdict, judgement.left_out.groups), (ConditionVerdict::Fail, 1));
    let groups: Vec<_> = judgement.groups.iter().map(|g| (g.values[0].text(), g.verdict)).collect();
    assert_eq!(groups, [("/batch".into(), ConditionVerdict::Fail), ("/web".into(), ConditionVerdict::Pass)]);
    let change = judgement.groups[0].change.unwrap();
    assert!(change.low > 0.45 && change.high.unwrap() < 0.55, "{change:?}");
    assert!(
        judgement.sentence.starts_with(
            "p99(latency) by cgroup > +10% fails on cycles for 1 of 2 groups; worst: /batch: from "
        ),
        "{}",
        judgement.sentence
    );
    for text in [
        "p99(latency) by cgroup > +10%",
        "p50(latency) < -10%",
        "mean(latency) > +5%",
        "mean(latency) > 400 cycles",
        "share by cgroup > +2pp",
        "share(cgroup == /batch) > +5%",
        "count > +5%",
        "rate by cgroup > +10%",
    ] {
        let (verdict, sentence) = verdict(&base, &base, text);
        assert_eq!(verdict, ConditionVerdict::Pass, "{sentence}");
    }
    assert_eq!(verdict(&base, &slow, "mean(latency) > +10 cycles").0, ConditionVerdict::Fail);
    assert_eq!(verdict(&slow, &base, "mean(latency) < -10 cycles").0, ConditionVerdict::Fail);
    assert_eq!(verdict(&base, &slow, "p50(latency) > 300 cycles").0, ConditionVerdict::Fail);
    assert_eq!(verdict(&base, &slow, "count > +5%").0, ConditionVerdict::Pass);
}

#[test]
fn few_samples_do_not_tell() {
    let (small, tiny) = (capture(200, 1.0), capture(50, 1.0));
    let (result, sentence) = verdict(&small, &small, "p99(latency) > +1%");
    assert_eq!(result, ConditionVerdict::CannotTell, "{sentence}");
    let (result, sentence) = verdict(&small, &small, "mean(latency) > +2%");
    assert_eq!(result, ConditionVerdict::CannotTell);
    assert!(sentence.contains("times as many samples would be enough"), "{sentence}");
    let (result, sentence) = verdict(&tiny, &tiny, "mean(latency) by cgroup > +10%");
    assert_eq!(result, ConditionVerdict::CannotTell);
    assert!(sentence.contains("no group has 100 samples with a latency in both"), "{sentence}");
    let few = {
        let mut b = CaptureBuilder::new();
        b.cell().samples(20).latency(100);
        b.build()
    };
    let (_, sentence) = verdict(&few, &few, "mean(latency) > +10%");
    assert!(sentence.contains("both captures need at least 100 samples (they have 20 and 20)"), "{sentence}");
}

/// A pass requires that half of the samples were judged: a large group must not pass a hundred
/// small ones.
#[test]
fn a_pass_speaks_for_half_of_the_samples() {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(2000).latency(100).code(1, "app", "large", "a.c", 1);
    for i in 0..100 {
        builder.cell().samples(50).latency(100).code(2 + i, "app", &format!("f{i}"), "a.c", 1);
    }
    let capture = builder.build();
    let (result, sentence) = verdict(&capture, &capture, "mean(latency) by function > +10%");
    assert_eq!(result, ConditionVerdict::CannotTell);
    assert!(sentence.contains("less than half of all samples, and 100 groups"), "{sentence}");
}

#[test]
fn what_cannot_be_asked_is_a_sentence() {
    let base = capture(2000, 1.0);
    let error = |change: &dyn Fn(&mut Capture), text: &str| {
        let mut new = base.clone();
        change(&mut new);
        check(&base, &new, &[condition(text)]).unwrap_err().to_string()
    };
    let other = error(&|c| c.meta.events[0].encoding = "cpu/event=0x3c/p".into(), "count > +1%");
    assert!(other.contains("sampled differently: the encoding is"), "{other}");
    let other = error(&|c| c.meta.dimensions.retain(|d| *d != Dimension::Latency), "p50(latency) > +1%");
    assert!(other.starts_with("of NEW: `precise check` needs the dimension latency"), "{other}");
    let other = error(&|_| {}, "share(cgroup == /wbe) > +1%");
    assert_eq!(
        other,
        "`share(cgroup == /wbe) > +1%` cannot be evaluated: no sample has the cgroup \"/wbe\". Values in these captures: /batch, /web, /small."
    );
    let frequency = |c: &Capture| {
        let mut c = c.clone();
        (c.meta.events[0].period, c.meta.events[0].frequency) = (None, Some(997));
        c
    };
    let both = frequency(&base);
    let other = check(&both, &both, &[condition("rate > +1%")]).unwrap_err().to_string();
    assert!(other.contains("Record with a fixed period (`-c`)."), "{other}");
    let mut filtered = base.clone();
    precise_model::testing::slow_loads(&mut filtered.meta.events[0], 30);
    let other = check(&filtered, &filtered, &[condition("count > +1%")]).unwrap_err().to_string();
    assert!(other.contains("the hardware filtered the samples"), "{other}");
}

#[test]
fn an_event_without_latencies_does_not_leave_the_others_undecided() {
    let two = |stores: bool| {
        let mut builder = CaptureBuilder::new();
        let mut event = builder.meta().events[0].clone();
        event.name = "stores".into();
        builder.meta().events.push(event);
        if stores {
            builder.cell().event(1).samples(5000);
        } else {
            builder.cell().event(0).samples(5000).latency(100);
            builder.cell().event(1).samples(5000);
        }
        builder.build()
    };
    let text = "mean(latency) > +10%";
    let check = check(&two(false), &two(false), &[condition(text)]).unwrap();
    assert_eq!((check.verdict, check.conditions.len()), (ConditionVerdict::Pass, 1));
    assert!(
        check.notes.iter().any(|note| note.contains("No sample of stores has a latency")),
        "{:?}",
        check.notes
    );
    // If no event has latencies, none is left out.
    assert_eq!(verdict(&two(true), &two(true), text).0, ConditionVerdict::CannotTell);
}

/// Three of four events are in /batch; the governor decides how many samples that gives.
fn governed(period: u64) -> Capture {
    let mut builder = CaptureBuilder::new();
    for (id, cgroup, events, period) in [(1, "/web", 1_000_000, 1000), (2, "/batch", 3_000_000, period)] {
        let mut cell = builder.cell().samples(events / period).latency(100).cgroup(id, cgroup);
        cell.row().measures.period_sum = events;
    }
    let at = |period| RateChange { period: Some(period), ..RateChange::default() };
    let event = &mut builder.meta().events[0];
    (event.period, event.rates) = (None, vec![at(1000), at(period)]);
    builder.build()
}

#[test]
fn where_the_governor_changed_the_period_shares_are_of_events() {
    let (base, new) = (governed(3000), governed(1000));
    let check = |text: &str| check(&base, &new, &[condition(text)]);
    for text in ["share by cgroup > +5pp", "share(cgroup == /batch) > +5pp"] {
        let check = check(text).unwrap();
        assert_eq!(check.verdict, ConditionVerdict::Pass, "{}", check.conditions[0].sentence);
        let change = check.conditions[0].groups[0].change.unwrap();
        assert!(change.value.unwrap().abs() < 1e-9, "{change:?}");
    }
    let other = check("count > +10%").unwrap_err().to_string();
    assert!(other.contains("--overhead changed the period of cycles during the run"), "{other}");
    let same = check("p50(latency) > +1%").unwrap();
    assert_eq!(same.verdict, ConditionVerdict::Pass, "{}", same.conditions[0].sentence);
    // A fixed period samples the same events.
    let fixed = super::check(&capture(2000, 1.0), &new, &[condition("share by cgroup > +2pp")]).unwrap();
    assert_eq!(fixed.verdict, ConditionVerdict::Fail, "a half, and three quarters");
}

/// 6,000 random samples of one latency distribution, in ten groups.
fn drawn(seed: u64) -> Capture {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut next = move || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    };
    let mut builder = CaptureBuilder::new();
    for _ in 0..6_000 {
        let cycles = 80.0 - 300.0 * (1.0 - next()).ln();
        let group = (10.0 * next()) as u64;
        builder.cell().samples(1).latency(cycles as u32).cgroup(group, &format!("/g{group}"));
    }
    builder.build()
}

/// The bound is so small that nothing passes, so every false alarm shows. The stated rate is 2.5 of
/// 100 for all groups together.
#[test]
fn alarms_of_all_groups_together_are_as_rare_as_stated() {
    let tight =
        [condition("p90(latency) by cgroup > +0.000001%"), condition("share by cgroup > +0.000001pp")];
    let wide = [condition("p50(latency) by cgroup > +40%"), condition("share by cgroup > +4pp")];
    let (mut false_alarms, mut passed) = (0, 0);
    for seed in 0..40 {
        let (base, new) = (drawn(2 * seed), drawn(2 * seed + 1));
        false_alarms += u64::from(check(&base, &new, &tight).unwrap().verdict == ConditionVerdict::Fail);
        passed += u64::from(check(&base, &new, &wide).unwrap().verdict == ConditionVerdict::Pass);
    }
    // The stated rate is one of 40; more than 5 would happen once in 1,500 such tests.
    assert!(false_alarms <= 5, "{false_alarms} of 40");
    assert!(passed >= 36, "{passed} of 40 passed");
}

proptest! {
    #[test]
    fn no_text_is_too_much(text in "\\PC{0,40}") {
        let _either = parse(&text);
    }

    #[test]
    fn what_is_printed_is_read(n in 1u32..99_999, by in prop::bool::ANY, sign in prop::bool::ANY) {
        let by = if by { " by function" } else { "" };
        let sign = if sign { "+" } else { "-" };
        let text = format!("p{}.{:03}(latency){by} > {sign}{n} cycles", n / 1000, n % 1000);
        let read = condition(&text);
        prop_assert_eq!(&condition(&read.to_string()), &read);
    }
}
