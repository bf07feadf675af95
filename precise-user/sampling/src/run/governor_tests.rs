use super::*;

/// One look every 50 ms, epochs of one second, one microsecond per sample.
const LOOK: f64 = 50e6;
const EPOCH: f64 = 1e9;
const COST: f64 = 1000.0;
const BUDGET: f64 = 0.01;

/// Returns the cost of each epoch as a share of the budget. `events(look)` is the number of events
/// in the look with that number; the initial period is 1,000.
fn simulate(governor: &mut Governor, epochs: usize, events: impl Fn(usize) -> f64) -> Vec<f64> {
    let looks = (EPOCH / LOOK) as usize;
    let mut costs = Vec::new();
    let mut period = scaled(1000, governor.scale(), false);
    for epoch in 0..epochs {
        let mut whole = Spent::default();
        for look in 0..looks {
            let samples = events(epoch * looks + look) / period as f64;
            let (sampling, reading) = (samples * COST, 0.0005 * LOOK);
            let spent = Spent { elapsed: LOOK, sampling, samples, reading };
            whole.add(&spent);
            if let Some(scale) = governor.look(&spent) {
                period = scaled(1000, scale, false);
            }
        }
        if let Some(scale) = governor.end_epoch() {
            period = scaled(1000, scale, false);
        }
        costs.push(whole.share() / BUDGET);
    }
    costs
}

/// Returns the number of events per look that costs this share of the budget at a period of 1,000.
fn load(of_budget: f64) -> f64 {
    of_budget * BUDGET * LOOK / COST * 1000.0
}

#[test]
fn a_rate_that_jumps_a_hundredfold_is_within_the_budget_in_two_epochs() {
    // The load may jump at any point of an epoch.
    for jump in 40..60 {
        let mut governor = Governor::new(BUDGET, EPOCH, f64::INFINITY);
        let costs = simulate(&mut governor, 20, |look| load(if look < jump { 0.5 } else { 50.0 }));
        let first = jump / 20;
        assert!(costs[..first].iter().all(|cost| *cost < 1.0), "{jump}: {costs:?}");
        assert!(costs[first + 2..].iter().all(|cost| *cost <= 1.0), "{jump}: {costs:?}");
        // The epoch of the jump stays cheap too, because looks are more frequent than epochs.
        assert!(costs[first] + costs[first + 1] < 8.0, "{jump}: {costs:?}");
        assert!(governor.scale() > 50.0 && governor.scale() < 200.0, "{governor:?}");
    }
}

#[test]
fn when_it_is_quiet_again_so_are_periods() {
    let mut governor = Governor::new(BUDGET, EPOCH, f64::INFINITY);
    let costs = simulate(&mut governor, 30, |look| load(if (40..200).contains(&look) { 50.0 } else { 0.5 }));
    assert_eq!(governor.scale(), 1.0, "{costs:?}");
    assert!(costs[10..].iter().all(|cost| *cost <= 1.0), "{costs:?}");
}

#[test]
fn a_burst_within_the_epochs_budget_is_left_alone() {
    let mut governor = Governor::new(BUDGET, EPOCH, f64::INFINITY);
    // One look in twenty costs ten times the budget, which is half of the epoch's budget.
    let costs = simulate(&mut governor, 10, |look| load(if look % 20 == 3 { 9.0 } else { 0.0 }));
    assert_eq!(governor.scale(), 1.0, "{costs:?}");
}

#[test]
fn a_steady_load_at_the_budget_does_not_make_it_swing() {
    let mut governor = Governor::new(BUDGET, EPOCH, f64::INFINITY);
    let mut last = 1.0;
    let mut changes = 0;
    for _ in 0..200 {
        simulate(&mut governor, 1, |_| load(1.1));
        changes += usize::from(governor.scale() != last);
        last = governor.scale();
    }
    assert!(changes <= 2, "{changes} changes");
}

#[test]
fn where_reading_alone_is_too_much_something_is_still_sampled() {
    let mut governor = Governor::new(BUDGET, EPOCH, f64::INFINITY);
    for _ in 0..100 {
        let sampling = load(1.0) / 1000.0 * COST / governor.scale();
        let samples = sampling / COST;
        let spent = Spent { elapsed: LOOK, sampling, samples, reading: 2.0 * BUDGET * LOOK };
        governor.look(&spent);
        governor.end_epoch();
    }
    assert!(governor.scale() < 20.0, "{governor:?}");
}

#[test]
fn where_longer_periods_do_not_help_they_do_not_grow_for_ever() {
    let mut governor = Governor::new(BUDGET, EPOCH, 1000.0);
    for _ in 0..100 {
        governor.look(&Spent { elapsed: LOOK, sampling: LOOK, samples: 1e6, reading: 0.0 });
        governor.end_epoch();
    }
    assert_eq!(governor.scale(), 1000.0);
}

/// A hypervisor takes the CPU for 30 ms, in the one program of 64 that is timed.
#[test]
fn however_dear_samples_seem_some_are_left() {
    for per_second in [2.0, 40.0, 3000.0] {
        let mut governor = Governor::new(BUDGET, EPOCH, f64::INFINITY);
        for look in 1..=200 {
            let samples = per_second * LOOK / EPOCH / governor.scale();
            governor.look(&Spent { elapsed: LOOK, sampling: samples * 30e6, samples, reading: 0.0 });
            if look % 20 == 0 {
                governor.end_epoch();
            }
        }
        let (left, due) = (per_second / governor.scale(), per_second.min(10.0));
        assert!((due..WORTH * due).contains(&left), "{left} of {per_second}");
    }
}

#[test]
fn periods_are_primes_or_sixteen_times_one() {
    assert_eq!(scaled(1000, 1.0, false), 1000);
    assert_eq!(scaled(1000, 2.0, false), 2003);
    assert_eq!(scaled(1, 100.0, false), 101);
    assert_eq!(scaled(1, 1.5, false), 2);
    for scale in [1.5, 7.0, 333.3, 1e6, 1e12] {
        let period = scaled(0x40, scale, true);
        assert!(period.is_multiple_of(16) && (0x90..1 << 31).contains(&period), "{scale}: {period}");
        assert!(is_prime(period / 16), "{scale}: {period}");
        assert!(scaled(1000, scale, false) < 1 << 31);
    }
    // The period that the user requested is never shortened.
    assert_eq!(scaled(1 << 40, 3.0, false), 1 << 40);
    let primes: Vec<u64> = (0..30).filter(|n| is_prime(*n)).collect();
    assert_eq!(primes, [2, 3, 5, 7, 11, 13, 17, 19, 23, 29]);
}
