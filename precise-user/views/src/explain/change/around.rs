//! A cgroup or process in a part of the run, compared with itself in the rest of the run.

use super::series::{AccessKind, ColumnSums, Timeline, User};
use super::when::When;
use crate::explain::{FindingUnit, Number, thresholds};
use precise_model::CompactSort as _;
use precise_model::digits::{percent_to, thousands};

/// A user in a part of the run, and in the rest.
pub struct UserInPart<'a> {
    name: &'a str,
    inside: ColumnSums,
    outside: ColumnSums,
    inside_seconds: f64,
    outside_seconds: f64,
    when: String,
}

/// What changed: a number with its threshold, and sentences.
pub struct Said {
    /// The number; `None` if the user has samples in one of the two parts only.
    pub number: Option<Number>,
    pub threshold: f64,
    /// The rest of the sentence that starts with the number.
    pub says: String,
    /// The change in a few words, without the time.
    pub short: String,
}

impl<'a> UserInPart<'a> {
    /// Returns a user of a timeline in a part of the run.
    pub fn of(line: &Timeline, user: &'a User, when: &When) -> Self {
        let all = 0..user.cells.len();
        let rest = when.rest();
        Self {
            name: &user.name,
            inside: user.sum(all.clone().filter(|at| when.contains(*at))),
            outside: user.sum(all.filter(|at| rest.contains(*at))),
            inside_seconds: line.length(when),
            outside_seconds: line.length(&rest),
            when: line.words(when),
        }
    }

    fn rates(&self) -> (f64, f64) {
        let rate = |cell: &ColumnSums, seconds: f64| cell.weight / seconds.max(1e-9);
        (rate(&self.inside, self.inside_seconds), rate(&self.outside, self.outside_seconds))
    }

    /// Returns whether the user was more active.
    pub fn rises(&self) -> bool {
        let (inside, outside) = self.rates();
        inside > thresholds::CHANGE * outside
    }

    /// Returns what the others are told of a user that was more active.
    pub fn ran(&self) -> String {
        let (inside, outside) = self.rates();
        let ran = match outside {
            0.0 => format!("{} ran in the same time only", self.name),
            usual => {
                format!("{} took {:.1} times its usual samples in the same time", self.name, inside / usual)
            }
        };
        match self.inside.share(AccessKind::Memory) {
            Some(far) => format!("{ran}: {} of its accesses went to memory.", percent_to(far, 0)),
            None => ran + ".",
        }
    }

    /// Returns what changed if the user was slower.
    pub fn slower(&self) -> Option<Said> {
        self.slower_mostly().or_else(|| self.far_latency())
    }

    /// Returns what changed if a percentile is longer, or slow accesses are more frequent.
    pub fn slower_mostly(&self) -> Option<Said> {
        self.percentile().or_else(|| self.kind())
    }

    fn percentile(&self) -> Option<Said> {
        let (name, when) = (self.name, &self.when);
        [(0.99, "99th percentile"), (0.5, "median")].into_iter().find_map(|(fraction, percentile)| {
            let inside = self.inside.latencies.percentile(fraction)?;
            let outside = self.outside.latencies.percentile(fraction)?;
            let cycles = format!(
                "{} core cycles instead of {}",
                thousands(inside.cycles.round() as u64),
                thousands(outside.cycles.round() as u64)
            );
            let number = Number::counted(FindingUnit::Times, inside.cycles / outside.cycles.max(1.0));
            let is_longer = inside.cycles - outside.cycles >= thresholds::CHANGE_OF_CYCLES;
            (is_longer && number.value >= thresholds::CHANGE_OF_LATENCY).then(|| Said {
                number: Some(number),
                threshold: thresholds::CHANGE_OF_LATENCY,
                says: format!(
                    "the usual {percentile} of the latency: {when} the {percentile} of {name} was {cycles}"
                ),
                short: format!("the {percentile} of {name} was {cycles}"),
            })
        })
    }

    /// Returns the change of a percentile that is not chance: the intervals of the two percentiles
    /// are apart by the threshold.
    pub fn surely_slower(&self) -> Option<Said> {
        let apart = [0.99, 0.5].into_iter().any(|fraction| {
            let both =
                self.inside.latencies.percentile(fraction).zip(self.outside.latencies.percentile(fraction));
            both.is_some_and(|(inside, outside)| {
                inside.interval[0] as f64 >= thresholds::CHANGE_OF_LATENCY * outside.interval[1] as f64
            })
        });
        apart.then(|| self.percentile()).flatten()
    }

    /// Returns the kinds of slow accesses that became more frequent, and their shares in the part
    /// of the run and in the rest; those that rose most come first.
    fn risen(&self) -> Vec<(AccessKind, f64, f64)> {
        let shares = |kind| self.inside.share(kind).zip(self.outside.share(kind));
        let all = AccessKind::ALL.into_iter().filter_map(|kind| {
            let (inside, outside) = shares(kind)?;
            (inside - outside >= kind.threshold()).then_some((kind, inside, outside))
        });
        let mut risen: Vec<_> = all.collect();
        risen.compact_sort_by(|a, b| (b.1 - b.2).total_cmp(&(a.1 - a.2)));
        risen
    }

    fn kind(&self) -> Option<Said> {
        let (kind, inside, outside) = self.risen().into_iter().next()?;
        let (name, when, did) = (self.name, &self.when, kind.did());
        let instead = percent_to(outside, 1);
        Some(Said {
            number: Some(Number::counted(FindingUnit::Share, inside)),
            threshold: outside + kind.threshold(),
            says: format!("of the accesses of {name} {when} {did}, instead of {instead}"),
            short: format!("{} of the accesses of {name} {did}, instead of {instead}", percent_to(inside, 1)),
        })
    }

    /// Returns a sentence about each kind of slow accesses that became more frequent and that
    /// `says` does not name.
    pub fn kinds(&self, says: &str) -> Vec<String> {
        let named = |kind: AccessKind| says.contains(&format!(" {},", kind.did()));
        let sentence = |(kind, inside, outside): (AccessKind, f64, f64)| {
            let (inside, outside) = (percent_to(inside, 1), percent_to(outside, 1));
            format!("{inside} of these accesses {}, instead of {outside}.", kind.did())
        };
        self.risen().into_iter().filter(|(kind, ..)| !named(*kind)).map(sentence).collect()
    }

    /// Returns what changed if accesses to memory take longer.
    pub fn far_latency(&self) -> Option<Said> {
        let (inside, outside) = self.inside.far_latency().zip(self.outside.far_latency())?;
        let number = Number::counted(FindingUnit::Times, inside / outside.max(1.0));
        let (name, when) = (self.name, &self.when);
        let cycles = format!(
            "{} core cycles on average instead of {}",
            thousands(inside.round() as u64),
            thousands(outside.round() as u64)
        );
        (number.value >= thresholds::CHANGE_OF_LATENCY).then(|| Said {
            number: Some(number),
            threshold: thresholds::CHANGE_OF_LATENCY,
            says: format!("the usual latency of memory: {when} an access of {name} to memory took {cycles}"),
            short: format!("an access of {name} to memory took {cycles}"),
        })
    }

    /// Returns what changed if the user was more or less active.
    pub fn rate(&self) -> Option<Said> {
        let (name, when) = (self.name, &self.when);
        let (inside, outside) = self.rates();
        let per_second = |rate: f64| thousands(rate.round() as u64);
        let said = |number: Option<f64>, says: String, short: String| Said {
            number: number.map(|times| Number::counted(FindingUnit::Times, times)),
            threshold: thresholds::CHANGE,
            says,
            short,
        };
        if outside == 0.0 {
            let short = format!("{name} ran in the same time only");
            return (inside > 0.0).then(|| said(None, format!("{name} has samples only {when}"), short));
        }
        if inside == 0.0 {
            let says =
                format!("{name} has no samples {when}, and {} a second otherwise", per_second(outside));
            return Some(said(None, says, format!("{name} has no samples in the same time")));
        }
        let times = inside / outside;
        if times < thresholds::CHANGE && times > thresholds::CHANGE.recip() {
            return None;
        }
        let rates = format!("{} samples a second instead of {}", per_second(inside), per_second(outside));
        let short = format!("{name} had {rates}");
        Some(said(Some(times), format!("the usual rate: {when} {name} had {rates}"), short))
    }
}
