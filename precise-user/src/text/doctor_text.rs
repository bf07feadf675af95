//! Diagnoses and self-tests as text.

use crate::self_test::SelfTestReport;
use precise_model::text::{sanitize, width, wrap};
use precise_sampling::doctor::{Check, CheckStatus, Diagnosis};
use precise_views::render::{Style, TextOptions, Tint};

/// Width of the gap between two columns.
const GAP: usize = 2;

/// Formats a diagnosis: the verdict, then one line per check.
pub fn diagnosis_text(diagnosis: &Diagnosis, options: &TextOptions) -> String {
    wrap(&sanitize(&diagnosis.verdict), options.width, 0) + "\n\n" + &checks_text(&diagnosis.checks, options)
}

/// Formats the commands that fix what was found, each after its reason. The text is a script to
/// read before it is run.
pub fn fixes_text(diagnosis: &Diagnosis, options: &TextOptions) -> String {
    let comment = |text: &str| {
        let room = options.width.saturating_sub(2);
        wrap(&sanitize(text), room, 0).lines().map(|line| format!("# {line}\n")).collect::<String>()
    };
    let mut out = comment(&diagnosis.verdict);
    let mut any = false;
    for check in &diagnosis.checks {
        if let Some(command) = &check.fix {
            any = true;
            out += "\n";
            out += &comment(&format!("{}: {}: {}", check.name, check.found, check.reason));
            out += &format!("{command}\n");
        }
    }
    if !any {
        out += "# None of the findings has a command that would fix it.\n";
    }
    out
}

/// Formats a self-test: the verdict, the machine, and the checks of each preset.
pub fn self_test_text(report: &SelfTestReport, options: &TextOptions) -> String {
    let mut out = wrap(&sanitize(&report.verdict), options.width, 0) + "\n\n";
    out += &format!("{} on this machine:\n", report.producer);
    out += &checks_text(&report.diagnosis.checks, options);
    for result in report.results.iter().filter(|result| result.offered()) {
        out.push('\n');
        out += &options.style.paint(Tint::Heading, &format!("{}: {}", result.preset, result.work));
        out.push('\n');
        out += &checks_text(&result.checks, options);
        for finding in &result.findings {
            out += "  ";
            out += &wrap(&format!("* {}", sanitize(finding)), options.width.saturating_sub(2), 4);
            out.push('\n');
        }
    }
    out + &not_offered(report, options)
}

/// Formats each reason once, after the presets that it makes unavailable.
fn not_offered(report: &SelfTestReport, options: &TextOptions) -> String {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for result in report.results.iter().filter(|result| !result.offered()) {
        let reason = result.checks.first().map_or("", |check| &check.reason);
        match reasons.iter_mut().find(|(known, _)| *known == reason) {
            Some((_, presets)) => presets.push(result.preset),
            None => reasons.push((reason, vec![result.preset])),
        }
    }
    let mut out = String::new();
    for (reason, presets) in reasons {
        let text = format!("Not available here: {}: {}.", presets.join(", "), sanitize(reason));
        out += "\n";
        out += &wrap(&text, options.width, 2);
        out += "\n";
    }
    out
}

/// Formats checks: name, result and finding. The reason is on a line of its own if it does not fit.
pub(super) fn checks_text(checks: &[Check], options: &TextOptions) -> String {
    let widest = |text: fn(&Check) -> &str| checks.iter().map(|check| width(text(check))).max().unwrap_or(0);
    let names = widest(|check| &check.name);
    let states = widest(|check| check.status.words());
    let mut out = String::new();
    for check in checks {
        let indent = 2 + names + GAP + states + GAP;
        let state = check.status.words();
        let mut line = format!("  {:<names$}  ", check.name);
        line += &paint(options.style, check.status, state);
        line.extend(std::iter::repeat_n(' ', states - width(state) + GAP));
        let words = match (check.found.as_str(), check.reason.as_str()) {
            (found, "") => found.to_owned(),
            ("", reason) => reason.to_owned(),
            (found, reason) => format!("{found}: {reason}"),
        };
        let room = options.width.saturating_sub(indent).max(20);
        for (number, part) in wrap(&sanitize(&words), room, 0).lines().enumerate() {
            if number > 0 {
                line.push('\n');
                line.extend(std::iter::repeat_n(' ', indent));
            }
            line += part;
        }
        out += line.trim_end();
        out.push('\n');
    }
    out
}

fn paint(style: Style, status: CheckStatus, text: &str) -> String {
    let tint = match status {
        CheckStatus::Passed => Tint::Good,
        CheckStatus::Failed => Tint::Bad,
        CheckStatus::NotOffered => Tint::Dim,
        CheckStatus::NotDecided => Tint::Warning,
    };
    style.paint(tint, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checks_stand_in_columns_and_long_reasons_wrap() {
        let checks = [
            Check::new("BTF", CheckStatus::Passed, "/sys/kernel/btf/vmlinux", ""),
            Check::new(
                "PMU",
                CheckStatus::NotOffered,
                "none",
                "this virtual machine has no CPU PMU: its host keeps it",
            ),
        ];
        let diagnosis = Diagnosis { verdict: "Fine.".to_owned(), checks: checks.to_vec(), class: None };
        let options = TextOptions { width: 60, ..TextOptions::default() };
        assert_eq!(
            diagnosis_text(&diagnosis, &options),
            "Fine.\n\n\
             \x20 BTF  passed         /sys/kernel/btf/vmlinux\n\
             \x20 PMU  not available  none: this virtual machine has no CPU\n\
             \x20                     PMU: its host keeps it\n"
        );
    }
}
