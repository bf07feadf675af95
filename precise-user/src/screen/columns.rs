//! The columns of numbers of a table of groups.

use precise_model::digits::percent;
use precise_model::keys::Sort;
use precise_views::grouping::{Group, Groups};
use precise_views::render::number::{cycles, share, short};
use precise_views::stats::Percentile;

/// The numbers that the groups of a table have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Columns {
    timed: bool,
    percentiles: bool,
    sort: Sort,
}

impl Columns {
    /// Returns the columns for some groups. `wide` includes percentiles.
    pub fn of(groups: &Groups, sort: Sort, wide: bool) -> Self {
        let timed = groups.list.iter().any(|group| group.latency_share.is_some());
        let percentiles = wide && groups.list.iter().any(|group| group.p50.is_some());
        Self { timed, percentiles, sort }
    }

    pub fn titles(&self) -> Vec<String> {
        let mut titles = vec![self.title("Share", Sort::Samples), "Samples".to_owned()];
        if self.sort == Sort::Period {
            titles.push(self.title("Events", Sort::Period));
        }
        if self.timed {
            titles.extend([self.title("Latency", Sort::Latency), self.title("Avg", Sort::Average)]);
        }
        if self.percentiles {
            titles.extend(["p50", "p99"].map(str::to_owned));
        }
        if self.timed {
            titles.push(self.title("Max", Sort::Maximum));
        }
        titles
    }

    fn title(&self, text: &str, sort: Sort) -> String {
        if self.sort == sort { format!("{text}▼") } else { text.to_owned() }
    }

    pub fn cells(&self, group: &Group) -> Vec<String> {
        let none = || "-".to_owned();
        let mut cells = vec![share(&group.share), short(group.measures.count)];
        if self.sort == Sort::Period {
            cells.push(short(group.measures.period_sum));
        }
        if self.timed {
            cells.push(group.latency_share.map_or_else(none, |share| percent(share.value)));
            cells.push(group.average.map_or_else(none, cycles));
        }
        if self.percentiles {
            let cell = |p: Option<Percentile>| p.map_or_else(none, |p| cycles(p.cycles.round()));
            cells.extend([cell(group.p50), cell(group.p99)]);
        }
        if self.timed {
            cells.push(cycles(f64::from(group.measures.latency_max)));
        }
        cells
    }
}
