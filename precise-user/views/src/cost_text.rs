//! What a run cost, in a sentence.

use crate::render::number::percent;
use precise_model::Overhead;
use precise_model::digits::thousands;

/// What it cost, what of that was measured, and what was assumed.
pub fn cost_text(cost: &Overhead) -> String {
    let part = |ppm: u64| percent(ppm as f64 / 1e6);
    let budget = match cost.budget_ppm {
        Some(budget) => format!("of {} allowed", part(budget)),
        None => "nothing governed it".to_owned(),
    };
    let sample = match cost.sample_measured_ns {
        0 => "not measured, as there were few".to_owned(),
        measured => format!("{} ns measured", thousands(measured)),
    };
    format!(
        "it took about {} of the busiest CPU, {} in the worst epoch ({budget}); a sample: {sample}, {} ns assumed for \
         its interrupt; reading the tables took {} of one CPU, with names {}",
        part(cost.busiest_ppm),
        part(cost.worst_epoch_ppm),
        thousands(cost.sample_assumed_ns),
        part(cost.reading_ppm),
        part(cost.process_ppm),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_assumed_is_said() {
        let cost = Overhead {
            budget_ppm: Some(10_000),
            busiest_ppm: 6_100,
            worst_epoch_ppm: 9_400,
            reading_ppm: 1_000,
            process_ppm: 41_000,
            sample_measured_ns: 214,
            sample_assumed_ns: 1_000,
        };
        assert_eq!(
            cost_text(&cost),
            "it took about 0.6% of the busiest CPU, 0.9% in the worst epoch (of 1.0% allowed); a sample: 214 ns measured, \
             1,000 ns assumed for its interrupt; reading the tables took 0.1% of one CPU, with names 4.1%"
        );
        let none = cost_text(&Overhead::default());
        assert!(none.contains("nothing governed it") && none.contains("not measured"), "{none}");
    }
}
