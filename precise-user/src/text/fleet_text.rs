//! The results of `precise fleet` as text.

use precise_fleet::{Compacted, CompactedPeriod};
use precise_model::digits::{bytes, counted, thousands};
use precise_model::text::{Cut, sanitize, wrap};
use precise_views::render::TextOptions;
use precise_views::render::number::short;
use precise_views::render::table::{Table, TableColumn};

/// Formats what a compactor did.
pub fn compacted_text(done: &Compacted, place: &str, memory: u64, options: &TextOptions) -> String {
    let sentence = |text: &str| wrap(text, options.width, 2) + "\n";
    let place = sanitize(place);
    let periods = [&done.hours[..], &done.days[..]].concat();
    let new = |periods: &[CompactedPeriod]| periods.iter().filter(|period| period.read > 0).count() as u64;
    let head = if periods.is_empty() {
        format!(
            "Nothing to compact in {place}: {}, and none of an hour that is over",
            counted(done.captures, "capture")
        )
    } else {
        format!(
            "{place}: {} and {} changed, of {} and {} that were looked at",
            counted(new(&done.hours), "hour"),
            counted(new(&done.days), "day"),
            thousands(done.hours.len() as u64),
            thousands(done.days.len() as u64)
        )
    };
    let mut out = sentence(&head);
    if !periods.is_empty() {
        let columns = [
            TableColumn::text("Period (UTC)", Cut::End),
            TableColumn::number("Read"),
            TableColumn::number("Rows read"),
            TableColumn::number("Rows"),
            TableColumn::number("Bytes/row"),
            TableColumn::number("Bytes"),
            TableColumn::number("Samples"),
        ];
        let mut table = Table::new(columns.to_vec());
        for period in &periods {
            let each = period.row_bytes as f64 / period.rows as f64;
            table.row(vec![
                period.period.clone(),
                thousands(period.read),
                thousands(period.rows_read),
                thousands(period.rows),
                if period.rows > 0 { format!("{each:.1}") } else { "–".to_owned() },
                short(period.bytes),
                thousands(period.samples),
            ]);
        }
        out += "\n";
        out += &table.render(options.table_width(), options.style);
        out += "\n";
        out += &sentence(&format!(
            "Read: captures of an hour, hours of a day. Bytes: of all tables. Held in memory: at most {} \
             of rows (limit: {})",
            bytes(done.held_bytes),
            bytes(memory)
        ));
    }
    let named = periods.iter().map(|period| period.named).sum::<u64>();
    if named > 0 {
        out += "\n";
        out += &sentence(&format!(
            "{} to know about; {} of them not in the tables:",
            counted(named, "capture"),
            thousands(done.refused)
        ));
        for input in &done.named {
            let what = format!("{}: {}: {}", input.name, input.reason.word(), input.what);
            out += "  ";
            out += &(wrap(&sanitize(&what), options.width.saturating_sub(2), 4) + "\n");
        }
        let more = named - (done.named.len() as u64).min(named);
        if more > 0 {
            out += &format!("  … and {} more, in the table `inputs`\n", thousands(more));
        }
    }
    out
}
