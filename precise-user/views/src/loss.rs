//! Lost samples that a reader must know of before the tables.

use precise_model::digits::percent;
use precise_model::{Counted, Ledger};
use schemars::JsonSchema;
use serde::Serialize;

/// A share of lost samples above this is a line above the tables.
const REMARKABLE: f64 = 0.01;

/// Samples of an event that were taken and lost, if they are more than 1 %.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Loss {
    /// Number of samples that were lost.
    pub samples: u64,
    /// Fraction of the samples taken that this is.
    pub share: f64,
    /// The most frequent cause.
    pub cause: String,
}

impl Loss {
    /// Returns the loss of an event; `None` if it is 1 % or less.
    pub(crate) fn of(ledger: &Ledger) -> Option<Self> {
        let (samples, taken) = (ledger.lost_total(), ledger.taken_total());
        let share = samples as f64 / taken.max(1) as f64;
        let (cause, _) = ledger.losses().max_by_key(|(_, count)| *count)?;
        (share > REMARKABLE).then(|| Self { samples, share, cause: words(cause) })
    }

    /// Returns the line above the tables.
    pub(crate) fn sentence(&self) -> String {
        format!(
            "{} of the samples were lost ({}): the tables show the other {}.",
            percent(self.share),
            self.cause,
            percent(1.0 - self.share)
        )
    }
}

fn words(cause: Counted<'_>) -> String {
    match cause {
        Counted::Counter(counter) => counter.info().meaning.to_owned(),
        Counted::Discarded(reason) => reason.to_owned(),
        other => other.meaning(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::TextOptions;
    use crate::report::ReportOptions;
    use crate::summary::{summary, text::summary_text};
    use precise_common::ledger::Counter;
    use precise_model::testing::CaptureBuilder;

    #[test]
    fn more_than_a_percent_is_said_above_the_tables() {
        let mut made = CaptureBuilder::new();
        made.cell().samples(430).code(0x1000, "/bin/app", "parse", "", 0);
        let mut capture = made.build();
        let ledger = &mut capture.meta.events[0].ledger;
        ledger.counters.set(Counter::Seen, 1000);
        ledger.counters.set(Counter::TableFull, 570);
        let result = summary(&capture, &ReportOptions::default()).unwrap();
        let text = summary_text(&result, &TextOptions::default());
        let (line, table) = (text.find("57.0% of the samples were lost"), text.find("parse"));
        assert!(line.is_some() && line < table, "{text}");
        let json = serde_json::to_value(&result).unwrap();
        assert_eq!(json["trust"]["events"][0]["loss"]["samples"], 570);
    }

    #[test]
    fn a_percent_or_less_is_not() {
        let mut ledger = Ledger { counters: [(Counter::Seen, 1000)].into(), ..Ledger::default() };
        assert_eq!(Loss::of(&ledger), None);
        ledger.counters.set(Counter::TableFull, 10);
        assert_eq!(Loss::of(&ledger), None);
        ledger.lost = 1;
        assert!(
            Loss::of(&ledger).is_some_and(|loss| loss.samples == 11 && loss.cause.contains("no free cell"))
        );
    }
}
