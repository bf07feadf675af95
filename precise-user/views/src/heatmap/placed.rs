//! Which column and panel of the page's pictures each row of a capture is in, for tables that
//! follow a selection.

use super::page::options;
use super::panels::{panels, selectors};
use super::{HeatmapError, chosen_events, columns, evened, panel_by};
use precise_model::Capture;

/// The places of the rows of a capture in the pictures of the page.
pub(crate) struct PagePlaces {
    /// For each row of the capture: the column and the panel; `None` if it is not in the pictures.
    pub of: Vec<Option<(u16, u16)>>,
    /// For each panel: the flag that makes a command show only its samples, with a leading blank.
    /// Empty for a panel of all samples, `None` if there is no such flag.
    pub flags: Vec<Option<String>>,
}

/// Returns the places of the rows of a capture; `None` if there are no pictures.
pub(crate) fn placed(capture: &Capture) -> Option<PagePlaces> {
    place(capture).ok()
}

fn place(capture: &Capture) -> Result<PagePlaces, HeatmapError> {
    let options = options();
    let events = chosen_events(capture, &options)?;
    let by = panel_by(capture, &options, &events)?;
    let even = evened(capture);
    let drawn: Vec<usize> = (0..capture.rows.len())
        .filter(|row| {
            capture.rows[*row].measures.count > 0
                && (capture.rows[*row].epoch as usize) < capture.meta.epochs.len()
        })
        .collect();
    let rows: Vec<_> = drawn.iter().map(|row| &even[*row]).collect();
    let most = options.max_panels;
    let (titles, panel_of) = panels(capture, &rows, by, most);
    let flags = selectors(capture, &rows, by, titles.len(), &panel_of);
    let (_, column_of) = columns(capture, options.max_columns);
    let mut of = vec![None; capture.rows.len()];
    for (at, panel) in drawn.into_iter().zip(panel_of) {
        let column = column_of.get(capture.rows[at].epoch as usize);
        of[at] = column.and_then(|column| Some((u16::try_from(*column).ok()?, u16::try_from(panel).ok()?)));
    }
    Ok(PagePlaces { of, flags })
}

#[cfg(test)]
mod tests {
    use super::placed;
    use precise_model::testing::CaptureBuilder;

    #[test]
    fn a_flag_selects_what_a_picture_has_or_there_is_none() {
        let mut builder = CaptureBuilder::new();
        for (id, path, samples) in [
            (1, "/system.slice", 50),
            (2, "/system.slice/web 1.service", 40),
            (3, "/batch.slice", 30),
            (4, "/a", 20),
            (5, "/b", 10),
        ] {
            for epoch in 0..3 {
                builder.cell().samples(samples).latency(300).epoch(epoch).cgroup(id, path);
            }
        }
        let placed = placed(&builder.build()).unwrap();
        // The flag of a cgroup selects those below it too, and "others" has none.
        let flags = [None, Some(" -G '/system.slice/web 1.service'"), Some(" -G /batch.slice"), None];
        assert_eq!(placed.flags.iter().map(Option::as_deref).collect::<Vec<_>>(), flags);
        let columns = |panel| placed.of.iter().flatten().filter(|place| place.1 == panel).count();
        assert_eq!([0, 1, 2, 3].map(columns), [3, 3, 3, 6]);
    }
}
