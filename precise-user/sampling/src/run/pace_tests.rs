use super::*;

/// One look every 50 ms, as in the run loops.
const LOOK: u64 = 50_000_000;

/// Looks at two CPUs for `seconds` seconds; the second CPU takes `samples(look)` samples per look.
fn watch(pace: &mut Pace, seconds: u64, samples: impl Fn(u64) -> u64) -> Option<Runaway> {
    let mut seen = vec![0, 0];
    (1..=seconds * 20).find_map(|look| {
        seen[0] += 1;
        seen[1] += samples(look);
        pace.look(look * LOOK, seen.clone())
    })
}

#[test]
fn an_event_that_takes_a_thousand_times_what_was_asked_is_found_in_three_seconds() {
    // The bug of `cpu-clock -F`: 54 hertz were taken for 54 ns.
    let mut pace = Pace::new(Some(54.0), 0);
    let runaway = watch(&mut pace, 60, |_| 3250).unwrap();
    let expected = Runaway { after_ns: 3_000_000_000, cpu: 1, per_second: 65_000, asked_per_second: 54 };
    assert_eq!(runaway, expected);
}

#[test]
fn what_was_asked_for_is_never_too_much() {
    for hertz in [1.0, 54.0, 4999.0, 100_000.0] {
        let mut pace = Pace::new(Some(hertz), 0);
        // Twice the requested rate does not end a run, nor does a burst of one second.
        assert_eq!(watch(&mut pace, 60, |_| (hertz / 10.0) as u64), None, "{hertz}");
        let mut pace = Pace::new(Some(hertz), 0);
        assert_eq!(watch(&mut pace, 60, |look| if look % 60 < 20 { 5000 } else { 0 }), None, "{hertz}");
    }
}

#[test]
fn a_thousand_a_second_does_no_harm() {
    assert_eq!(watch(&mut Pace::new(Some(1.0), 0), 60, |_| 50), None);
    assert!(watch(&mut Pace::new(Some(1.0), 0), 60, |_| 51).is_some());
}

#[test]
fn where_the_rate_was_changed_each_part_of_a_stretch_has_its_own() {
    // 20,000 per second until now, 20 per second from now on: late samples of the first rate are
    // not an excess.
    let mut pace = Pace::new(Some(20_000.0), 0);
    let seen = |seconds: f64| vec![(20_000.0 * seconds) as u64];
    assert_eq!(pace.look(900_000_000, seen(0.9)), None);
    pace.change(Some(20.0), 900_000_000);
    assert_eq!(pace.look(1_000_000_000, seen(0.9)), None);
    assert_eq!(pace.busy, 0);
    // Samples that continue at the old rate are an excess.
    assert_eq!(pace.look(2_000_000_000, seen(1.9)), None);
    assert_eq!(pace.busy, 1);
    // Lowering the rate again does not hide it, however often.
    for at in (2_050..5_000).step_by(50) {
        pace.change(Some(1.0), at * 1_000_000 - 1);
        if let Some(runaway) = pace.look(at * 1_000_000, seen(at as f64 / 1000.0)) {
            assert_eq!((runaway.per_second, runaway.asked_per_second), (20_000, 1));
            return;
        }
    }
    panic!("nobody found it");
}

#[test]
fn only_a_rate_over_time_can_be_exceeded() {
    let most = |rate, trigger| most_per_second(rate, trigger, false);
    assert_eq!(most(Rate::Period(200_000), Trigger::Timer), Some(5000.0));
    assert_eq!(most(Rate::Frequency(5000), Trigger::Timer), Some(5000.0));
    assert_eq!(most(Rate::Frequency(5000), Trigger::Hardware), Some(5000.0));
    assert_eq!(most(Rate::Frequency(5000), Trigger::Kernel), Some(5000.0));
    assert_eq!(most(Rate::Period(1), Trigger::Kernel), None);
    assert_eq!(most(Rate::Period(1000), Trigger::Hardware), None);
    // If tasks inherit the event, only a timer keeps its rate in all cases.
    assert_eq!(most_per_second(Rate::Frequency(99), Trigger::Hardware, true), None);
    assert_eq!(most_per_second(Rate::Frequency(100), Trigger::Timer, true), Some(100.0));
    assert_eq!(watch(&mut Pace::new(None, 0), 60, |_| 100_000), None);
}
