//! Who fills the table: the cgroup or process with the most rows, if the table was full.

use precise_common::ledger::Counter;
use precise_model::{Capture, Dimension, Meta, Name, Projection, Row, RowPart};
use rustc_hash::FxHashMap;

use crate::render::number::percent;

/// Returns the parts of rows that tell who fills the table; none if the table was never full.
pub(crate) fn reads(meta: &Meta) -> Projection {
    match meta.events.iter().any(|event| event.ledger.counter(Counter::TableFull) > 0) {
        true => Projection::of(&[RowPart::Cgroup, RowPart::Process]),
        false => Projection::NOTHING,
    }
}

/// Returns a sentence on the cgroup or process with the most rows of an event. `None` if the table
/// of the event was never full, if there is only one, or if the name is not known.
pub(crate) fn who_fills_the_table(capture: &Capture, event: usize) -> Option<String> {
    if capture.meta.events.get(event)?.ledger.counter(Counter::TableFull) == 0 {
        return None;
    }
    let has = |dimension| capture.meta.dimensions.contains(&dimension);
    let (by_cgroup, by_name) = (has(Dimension::Cgroup), has(Dimension::Process));
    let of = |row: &Row| match (by_cgroup, by_name) {
        (true, _) => (row.cgroup, 0),
        (false, true) => (row.process, 0),
        (false, false) => (row.process, row.pid),
    };
    let what = if by_cgroup { "cgroup" } else { "process" };
    let mut rows: FxHashMap<(Name, u32), u64> = FxHashMap::default();
    let mut all = 0u64;
    for row in capture.rows.iter().filter(|row| usize::from(row.event) == event) {
        *rows.entry(of(row)).or_default() += 1;
        all += 1;
    }
    if rows.len() == 1 {
        return None;
    }
    let (&(name, pid), &most) = rows.iter().max_by_key(|((name, pid), rows)| (**rows, *name, *pid))?;
    let name = match (name, pid) {
        (Name::Known(id), _) => capture.names.get(id).to_owned(),
        (Name::Unknown(_), 1..) => pid.to_string(),
        (Name::Unknown(_), 0) => return None,
    };
    let share = percent(most as f64 / all as f64);
    Some(format!("The {what} {name} fills most of the table: {share} of the rows are its own."))
}

#[cfg(test)]
mod tests {
    use precise_model::testing::CaptureBuilder;

    use super::*;

    fn capture(full: u64, dimensions: &[Dimension]) -> Capture {
        let mut made = CaptureBuilder::new();
        for at in 0..8u64 {
            let (id, path, comm) = if at < 6 { (1, "/tenant", "noisy") } else { (2, "/quiet", "calm") };
            let cell = made.cell().cgroup(id, path).process(id as u32, comm);
            cell.code(0x1000 + at, "program", "function", "", 0).samples(1);
        }
        let mut capture = made.build();
        capture.meta.dimensions = dimensions.to_vec();
        capture.meta.events[0].ledger.counters.set(Counter::TableFull, full);
        capture
    }

    #[test]
    fn the_one_with_the_most_rows_is_named() {
        use Dimension::{Cgroup, Ip, Process};
        let who = |dimensions: &[Dimension]| who_fills_the_table(&capture(5, dimensions), 0).unwrap();
        let of_cgroups = who(&[Ip, Cgroup, Process]);
        assert_eq!(of_cgroups, "The cgroup /tenant fills most of the table: 75.0% of the rows are its own.");
        assert!(who(&[Ip, Process]).starts_with("The process noisy fills most"));
        assert_eq!(who_fills_the_table(&capture(0, &[Ip, Cgroup]), 0), None);
        assert_eq!(who_fills_the_table(&capture(5, &[Ip]), 7), None);
        let mut of_one = capture(5, &[Ip, Process]);
        of_one.rows.retain(|row| row.pid == 1);
        assert_eq!(who_fills_the_table(&of_one, 0), None);
    }
}
