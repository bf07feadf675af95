//! Tests with two known distributions over known code.

use crate::ViewError;
use crate::code::Code;
use crate::render::TextOptions;
use crate::skid::csv::skid_csv;
use crate::skid::text::skid_text;
use crate::skid::{Skid, SkidOptions, SkidPair, skid};
use crate::testing::shown;
use precise_code::testing::assemble;
use precise_code::{FunctionId, Instruction, SourceLine};
use precise_model::testing::CaptureBuilder;
use precise_model::{Capture, CoreEvent, Dimension, PmuKind, Reason, Vendor};

/// Ten instructions of different lengths, two per source line, starting with line 10.
struct Known;

impl Code for Known {
    fn instructions(&mut self, function: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        if function.name != "work" {
            return Err(Reason::FileMissing);
        }
        // Offsets 0, 1, 4, 5, 8, 9, 12, 13: instructions with an even index have 1 byte, the others
        // 3.
        let mut code = assemble(&"nop\n mov %rax,%rbx\n".repeat(4));
        for (line, pair) in (10..).zip(code.chunks_mut(2)) {
            let place = SourceLine { function: "work".into(), file: "/src/w.c".into(), line };
            pair.iter_mut().for_each(|instruction| instruction.frames = vec![place.clone()]);
        }
        Ok(code)
    }

    fn source(&mut self, _: &str, line: u32) -> Option<String> {
        Some(format!("line {line}"))
    }
}

/// Builds a capture from (address, samples) pairs: of `cycles` with precision, and of `cycles
/// (imprecise)`.
fn capture(precise: &[(u64, u64)], plain: &[(u64, u64)]) -> Capture {
    let mut builder = CaptureBuilder::new();
    let mut other = builder.meta().events[0].clone();
    (other.name, other.encoding) = ("cycles (imprecise)".into(), "cycles".into());
    other.pmu = PmuKind::Core(CoreEvent { vendor: Vendor::Intel, ..CoreEvent::default() });
    other.verdict.precise = false;
    other.period = Some(1009);
    builder.meta().events.push(other);
    for (event, list) in [(0, precise), (1, plain)] {
        for (ip, count) in list {
            let (module, function) = match ip >> 12 {
                1 => ("/bin/w", "work"),
                2 => ("/bin/w", "other"),
                _ => ("[kernel]", "interrupted"),
            };
            builder.cell().event(event).samples(*count).code(*ip, module, function, "", 0);
        }
    }
    builder.build()
}

fn run(capture: &Capture) -> Skid {
    skid(capture, &SkidOptions::default(), &mut Known).unwrap()
}

fn pair(skid: &Skid) -> &SkidPair {
    &skid.pairs[0]
}

/// All plain samples of the instruction at +1 (line 10) appear three instructions later, at +8
/// (line 12). Those at +13 stay.
pub(crate) fn three_late() -> Capture {
    capture(&[(0x1001, 600), (0x100d, 400)], &[(0x1008, 1200), (0x100d, 800)])
}

#[test]
fn everything_three_instructions_late() {
    let skid = run(&three_late());
    let pair = pair(&skid);
    assert_eq!(pair.samples, [1000, 2000]);
    let lines: Vec<_> =
        pair.wrong_lines.iter().map(|l| (l.place.as_ref().unwrap().line, l.excess.value)).collect();
    assert_eq!(lines, [(10, -0.6), (12, 0.6)]);
    let wrong = pair.wrong_line.unwrap();
    assert!(wrong.value == 0.6 && wrong.low > 0.55 && wrong.high < 0.65, "{wrong:?}");
    assert_eq!((pair.wrong_function.unwrap().value, pair.wrong_functions.len()), (0.0, 0));
    let work = &pair.functions[0];
    let instructions = work.instructions.as_ref().unwrap();
    assert!((instructions.shift.value - 1.8).abs() < 1e-9 && (instructions.least - 1.8).abs() < 1e-9);
    let bands: Vec<_> = instructions.bands.iter().map(|b| (b.from, b.to, b.share.value)).collect();
    assert_eq!(bands, [(Some(0), Some(0), 0.4), (Some(1), Some(3), 0.6)]);
    let lines = work.lines.as_ref().unwrap();
    assert!((lines.shift.value - 1.2).abs() < 1e-9, "two lines, for six of ten: {lines:?}");
    assert!(lines.by_chance < 0.1);
}

#[test]
fn no_skid_is_no_finding() {
    let same = [(0x1001, 600), (0x100d, 390), (0x2003, 10)];
    let skid = run(&capture(&same, &same));
    assert_eq!(pair(&skid).wrong_line.unwrap().value, 0.0);
    assert!(pair(&skid).wrong_lines.is_empty() && pair(&skid).wrong_functions.is_empty());
    assert_eq!(pair(&skid).functions[0].instructions.as_ref().unwrap().least, 0.0);
    assert!(skid_text(&skid, &TextOptions::default()).contains("No line's share differs significantly"));
}

#[test]
fn who_leaves_the_function_is_a_share_of_its_own() {
    // A fifth of the plain samples moves to the kernel, a tenth to another function without code.
    let skid = run(&capture(&[(0x1001, 1000)], &[(0x1001, 700), (0x2003, 100), (0xf000, 200)]));
    let pair = pair(&skid);
    assert!((pair.wrong_function.unwrap().value - 0.3).abs() < 1e-9);
    assert!((pair.into_kernel.unwrap().value - 0.2).abs() < 1e-9);
    let functions: Vec<_> = pair.wrong_functions.iter().map(|f| &*f.function).collect();
    assert_eq!(functions, ["work", "interrupted", "other"]);
    // Within the function, nothing moved.
    assert_eq!(pair.functions[0].instructions.as_ref().unwrap().least, 0.0);
    let interrupted = pair.functions.iter().find(|f| f.function == "interrupted").unwrap();
    assert!(interrupted.too_few.is_some() && interrupted.instructions.is_none());
}

#[test]
fn text_and_lines_of_values() {
    let skid = run(&three_late());
    let text = skid_text(&skid, &TextOptions::default());
    shown("skid.md", "skid", &text);
    assert!(text.lines().all(|line| precise_model::text::width(line) <= 80), "{text}");
    let csv = skid_csv(&skid, ",");
    let fields: Vec<usize> = csv.lines().map(|line| line.split(',').count()).collect();
    assert!(fields.len() > 5 && fields.iter().all(|n| *n == fields[0]), "{csv}");
}

#[test]
fn what_cannot_be_compared_is_said() {
    let mut capture = three_late();
    let options = SkidOptions { min_samples: 1001, ..SkidOptions::default() };
    let few = skid(&capture, &options, &mut Known).unwrap();
    assert_eq!((pair(&few).too_few, pair(&few).wrong_lines.len()), (Some(1001), 0));
    let said = |capture: &Capture| skid(capture, &options, &mut Known).unwrap_err();
    capture.meta.events[1].unit = "ns".into();
    assert!(said(&capture).to_string().contains("count different things"), "{}", said(&capture));
    capture.meta.events[0].verdict.precise = false;
    let error = said(&capture);
    assert!(
        matches!(error, ViewError::NotPaired { .. }) && error.to_string().contains("precise record -e skid")
    );
    capture.meta.dimensions = vec![Dimension::Cpu];
    assert!(said(&capture).to_string().contains("--by ip,cpu"));
}
