//! The numbers of the page's tables by column and panel of its pictures, so that the tables follow
//! a selection in a picture.

use rustc_hash::FxHashMap;
use serde::Serialize;

use crate::grouping::Grouping;
use crate::heatmap::placed::PagePlaces;
use crate::report::{Report, ReportEvent};
use precise_model::Capture;
use precise_model::keys::Sort;
use precise_model::values::RawValue;

/// The largest number of cells of all tables: about 3 MB of the page. A table that needs more does
/// not follow.
const MOST_CELLS: usize = 200_000;

/// The tables that follow.
#[derive(Serialize)]
pub(super) struct Following<'a> {
    #[serde(skip)]
    capture: &'a Capture,
    #[serde(skip)]
    placed: PagePlaces,
    #[serde(skip)]
    cells: usize,
    /// For each panel: the flag that makes a command show only its samples.
    flags: Vec<Option<String>>,
    tables: Vec<Followed>,
}

/// A table. Its cells are lists of column, panel, samples and weight, one after the other.
#[derive(Serialize)]
struct Followed {
    /// The cells of each row of the table.
    rows: Vec<Vec<u64>>,
    /// The cells of all samples of the event, also of those in no row.
    all: Vec<u64>,
}

/// Samples and weight, by column and panel.
type Cells = FxHashMap<(u16, u16), (u64, f64)>;

impl<'a> Following<'a> {
    /// Returns an empty list; `None` if the page has no pictures.
    pub fn new(capture: &'a Capture) -> Option<Self> {
        let mut placed = crate::heatmap::placed::placed(capture)?;
        let flags = std::mem::take(&mut placed.flags);
        Some(Self { capture, placed, cells: 0, flags, tables: Vec::new() })
    }

    /// Adds the table of an event, and returns its number; `None` if it has too many cells.
    pub fn add(&mut self, report: &Report, event: usize, section: &ReportEvent) -> Option<usize> {
        let Self { capture, placed, .. } = self;
        let grouping =
            Grouping { capture, event, by: &report.by, sort: Sort::Samples, limit: None, min_samples: 0 };
        let weighing = grouping.weighing();
        let list = &section.groups.list;
        let mut known: FxHashMap<Vec<RawValue>, Option<usize>> = FxHashMap::default();
        let mut rows = vec![Cells::default(); list.len()];
        let mut all = Cells::default();
        for (row, place) in capture.rows.iter().zip(&placed.of) {
            let Some(place) = place.filter(|_| usize::from(row.event) == event) else { continue };
            let add = |cells: &mut Cells| {
                let cell = cells.entry(place).or_default();
                cell.0 += row.measures.count;
                cell.1 += weighing.samples(row).weight.sum;
            };
            add(&mut all);
            let key = grouping.key(row);
            let of = match known.get(&key) {
                Some(of) => *of,
                None => {
                    let values = grouping.values(&key);
                    let of = list.iter().position(|group| group.values == values);
                    known.insert(key, of);
                    of
                }
            };
            if let Some(cells) = of.and_then(|of| rows.get_mut(of)) {
                add(cells);
            }
        }
        let cells = all.len() + rows.iter().map(FxHashMap::len).sum::<usize>();
        if self.cells + cells > MOST_CELLS {
            return None;
        }
        self.cells += cells;
        self.tables.push(Followed { rows: rows.into_iter().map(flat).collect(), all: flat(all) });
        Some(self.tables.len() - 1)
    }
}

fn flat(cells: Cells) -> Vec<u64> {
    let mut cells: Vec<_> = cells.into_iter().collect();
    cells.sort_unstable_by_key(|(place, _)| *place);
    let words = cells.into_iter().map(|((column, panel), (samples, weight))| {
        [column.into(), panel.into(), samples, weight.round() as u64]
    });
    words.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::Following;
    use crate::report::{ReportOptions, report};
    use precise_model::keys::Key;
    use precise_model::testing::CaptureBuilder;

    #[test]
    fn the_cells_of_a_table_add_up_to_its_rows() {
        let mut builder = CaptureBuilder::new();
        for epoch in 0..4_u32 {
            for (pid, name) in [(1, "a"), (2, "b"), (3, "c")] {
                let samples = u64::from(pid * 10 + epoch);
                let cell = builder.cell().samples(samples).latency(100).epoch(epoch).process(pid, name);
                cell.cgroup(1, "/one");
            }
        }
        let capture = builder.build();
        let options = ReportOptions { by: vec![Key::Process], limit: Some(2), ..ReportOptions::default() };
        let report = report(&capture, &options).unwrap();
        let mut following = Following::new(&capture).unwrap();
        assert_eq!(following.add(&report, 0, &report.events[0]), Some(0));
        let sum = |cells: &[u64]| {
            cells.chunks(4).map(|cell| (cell[2], cell[3])).fold((0, 0), |a, b| (a.0 + b.0, a.1 + b.1))
        };
        let table = &following.tables[0];
        // The most samples first: c, b.
        assert_eq!(table.rows.iter().map(|cells| sum(cells)).collect::<Vec<_>>(), [(126, 126), (86, 86)]);
        assert_eq!((sum(&table.all), table.all.len()), ((258, 258), 4 * 4));
    }
}
