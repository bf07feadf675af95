//! The overhead of a run, as text.

use crate::render::number::percent;
use precise_model::Overhead;
use precise_model::digits::thousands;

/// Formats the overhead of a run: the CPU time, the measured cost of a sample, and the assumed cost
/// of its interrupt.
pub fn cost_text(cost: &Overhead) -> String {
    let part = |ppm: u64| percent(ppm as f64 / 1e6);
    let budget = match cost.budget_ppm {
        Some(budget) => format!("limit {}", part(budget)),
        None => "no limit".to_owned(),
    };
    let sample = match cost.sample_measured_ns {
        0 => "too few samples to measure one".to_owned(),
        measured => format!("{} ns per sample measured", thousands(measured)),
    };
    let split = match (cost.naming_ppm, cost.files_ppm) {
        (0, 0) => String::new(),
        (naming, files) => {
            format!(" (tables {}, names {}, files {})", part(cost.reading_ppm), part(naming), part(files))
        }
    };
    let unwinding = cost.unwinding.map(|usage| format!(" For call chains, {usage}.")).unwrap_or_default();
    format!(
        "Overhead: {} of the busiest CPU (peak {}, {budget}), plus {} of one CPU to read tables and look up names{split}. \
         This is an estimate: {sample}, {} ns per interrupt assumed.{unwinding}",
        part(cost.busiest_ppm),
        part(cost.worst_epoch_ppm),
        part(cost.process_ppm),
        thousands(cost.sample_assumed_ns),
    )
}

#[cfg(test)]
mod tests {
    use precise_model::UnwindUse;

    use super::*;

    #[test]
    fn what_is_assumed_is_said() {
        let cost = Overhead {
            budget_ppm: Some(10_000),
            busiest_ppm: 6_100,
            worst_epoch_ppm: 9_400,
            reading_ppm: 1_000,
            process_ppm: 41_000,
            naming_ppm: 28_000,
            files_ppm: 12_000,
            unwinding: None,
            sample_measured_ns: 214,
            sample_assumed_ns: 1_000,
        };
        assert_eq!(
            cost_text(&cost),
            "Overhead: 0.6% of the busiest CPU (peak 0.9%, limit 1.0%), plus 4.1% of one CPU to read tables and look up \
             names (tables 0.1%, names 2.8%, files 1.2%). This is an estimate: 214 ns per sample measured, 1,000 ns per interrupt assumed."
        );
        let usage = UnwindUse { tables: 31, cached: 28, made_ns: 12_300_000, used: 1 << 20, room: 32 << 20 };
        let with_chains = cost_text(&Overhead { unwinding: Some(usage), ..cost });
        assert!(
            with_chains.ends_with(
                " For call chains, unwind tables of 31 files (28 kept by earlier runs) took 12.3 ms and 1 MiB of 32 MiB."
            ),
            "{with_chains}"
        );
        let none = cost_text(&Overhead::default());
        assert!(none.contains("no limit") && none.contains("too few samples to measure"), "{none}");
    }
}
