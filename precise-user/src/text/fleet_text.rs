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
    let new = |periods: &[CompactedPeriod]| periods.iter().filter(|period| period.read > 0).count();
    let old = |periods: &[CompactedPeriod]| (periods.len() - new(periods)) as u64;
    let head = if periods.is_empty() {
        format!(
            "Nothing to compact in {place}: {}, and no hour of them is over",
            counted(done.captures, "capture")
        )
    } else {
        format!(
            "Compacted {place}: {} and {}; up to date: {} and {}",
            counted(new(&done.hours) as u64, "hour"),
            counted(new(&done.days) as u64, "day"),
            counted(old(&done.hours), "hour"),
            counted(old(&done.days), "day"),
        )
    };
    let mut out = sentence(&head);
    if new(&periods) > 0 {
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
        for period in periods.iter().filter(|period| period.read > 0) {
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
    if done.named_total > 0 {
        out += "\n";
        out += &sentence(&format!(
            "Named: {} ({} not in the tables)",
            counted(done.named_total, "capture"),
            thousands(done.refused)
        ));
        for input in &done.named {
            let what = format!("{}: {}: {}", input.name, input.reason.word(), input.what);
            out += "  ";
            out += &(wrap(&sanitize(&what), options.width.saturating_sub(2), 4) + "\n");
        }
        let more = done.named_total.saturating_sub(done.named.len() as u64);
        if more > 0 {
            out += &format!("  … and {} more, in the table `inputs`\n", thousands(more));
        }
    }
    out
}
