//! The result of `precise import` as text.

use crate::imported::ImportedView;
use crate::render::TextOptions;
use crate::render::Tint;
use crate::render::number::{duration, short};
use crate::trust_text::trust_text;
use precise_model::digits::counted;
use precise_model::text::{sanitize, wrap};

/// Width of the labels in the header, in columns.
const INDENT: usize = 12;

/// Formats the origin of an import, its size, and its ledger and verdict.
pub fn import_text(import: &ImportedView, options: &TextOptions) -> String {
    let mut out = options.style.paint(Tint::Heading, &format!("Imported {}", import.origin.format)) + "\n";
    let unknown = |text: &str| if text.is_empty() { "unknown".to_owned() } else { sanitize(text) };
    let machine = &import.machine;
    let mut line = |name: &str, text: String| {
        let text =
            wrap(&text, options.width.saturating_sub(INDENT), 0).replace('\n', &format!("\n{:INDENT$}", ""));
        out += &format!("{name:<INDENT$}{text}\n");
    };
    line("recorder", unknown(&import.origin.recorder));
    line("command", unknown(&import.origin.command.join(" ")));
    let host = match (machine.host.as_str(), machine.kernel.as_str()) {
        ("", "") => "unknown".to_owned(),
        (host, kernel) => format!("{}, Linux {}", unknown(host), unknown(kernel)),
    };
    line("host", host);
    let cpus =
        if machine.cpus > 0 { format!(", {}", counted(machine.cpus.into(), "CPU")) } else { String::new() };
    line("cpu", unknown(&machine.cpu) + &cpus);
    line("grouped by", import.dimensions.join(", "));
    line(
        "contents",
        format!(
            "{} over {}, in {}; {}B read",
            counted(import.samples, "sample"),
            duration(import.duration_ns),
            counted(import.rows, "row"),
            short(import.bytes),
        ),
    );
    out.push('\n');
    out + &trust_text(&import.trust, options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::imported::ImportedView;
    use crate::trust::trust;
    use precise_model::Origin;
    use precise_model::testing::CaptureBuilder;

    #[test]
    fn an_import_says_where_it_is_from() {
        let mut builder = CaptureBuilder::new();
        builder.cell().samples(100);
        let mut capture = builder.build();
        capture.meta.origin = Some(Origin::default());
        capture.meta.events[0].ledger.event_count = 0;
        let view = ImportedView {
            origin: Origin {
                format: "perf.data".into(),
                recorder: "perf 6.8.12".into(),
                command: vec!["perf".into(), "c2c".into(), "record".into()],
                cpuid: "AuthenticAMD,25,17,1".into(),
                ..Origin::default()
            },
            machine: capture.meta.machine.clone(),
            start_unix_ns: 0,
            duration_ns: 1_000_000_000,
            dimensions: vec!["ip".into(), "source".into()],
            samples: 100,
            rows: 1,
            epochs: 1,
            bytes: 4096,
            trust: trust(&capture),
        };
        let text = import_text(&view, &TextOptions::default());
        let expected = "\
Imported perf.data
recorder    perf 6.8.12
command     perf c2c record
host        testhost, Linux 6.12.0
cpu         Test CPU, 2 CPUs
grouped by  ip, source
";
        assert!(text.starts_with(expected), "{text}");
        assert!(text.contains("coverage unknown"), "{text}");
    }
}
