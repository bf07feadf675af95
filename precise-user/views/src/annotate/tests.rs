use crate::annotate::text::{Detail, annotate_text};
use crate::annotate::{AnnotateOptions, AnnotatedFunction, Annotation, annotate};
use crate::code::Code;
use crate::render::TextOptions;
use precise_code::types::TypedCode;
use precise_code::{FunctionId, Instruction, SourceLine};
use precise_model::testing::CaptureBuilder;
use precise_model::{Capture, Dimension, Reason};

/// 16 bytes of code: one instruction every 4 bytes, two source lines.
struct Fake {
    code: Result<Vec<Instruction>, Reason>,
    asked: Vec<FunctionId>,
}

impl Fake {
    fn new() -> Self {
        let instruction = |offset: u64, line| Instruction {
            offset,
            address: 0x1000 + offset,
            length: 4,
            text: format!("insn{offset}"),
            accessed: None,
            branch: None,
            frames: vec![SourceLine { function: "work".into(), file: "/src/w.c".into(), line }],
            decoded: Default::default(),
        };
        let code = vec![instruction(0, 10), instruction(4, 11), instruction(8, 11), instruction(12, 12)];
        Self { code: Ok(code), asked: Vec::new() }
    }
}

impl Code for Fake {
    fn instructions(&mut self, function: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        self.asked.push(function.clone());
        self.code.clone()
    }

    fn source(&mut self, file: &str, line: u32) -> Option<String> {
        (file == "/src/w.c").then(|| format!("line {line}"))
    }
}

/// 60 samples at +4, 30 at +8, 10 at +12, and 20 in another function.
fn capture() -> Capture {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(60).latency(40).code(0x1004, "/bin/w", "work", "/src/w.c", 11);
    builder.cell().samples(30).latency(400).code(0x1008, "/bin/w", "work", "/src/w.c", 11);
    builder.cell().samples(10).latency(40).code(0x100c, "/bin/w", "work", "/src/w.c", 12);
    builder.cell().samples(20).latency(40).code(0x2004, "/bin/w", "other", "", 0);
    builder.cell().samples(7).latency(40).code(0x3004, "/bin/w", "", "", 0);
    builder.build()
}

fn run(capture: &Capture, options: &AnnotateOptions, fake: &mut Fake) -> Annotation {
    annotate(capture, options, fake).unwrap()
}

fn first(annotation: &Annotation) -> &AnnotatedFunction {
    &annotation.events[0].functions[0]
}

#[test]
fn samples_stand_at_their_instructions_and_lines() {
    let mut fake = Fake::new();
    let annotation = run(&capture(), &AnnotateOptions::default(), &mut fake);
    let event = &annotation.events[0];
    assert_eq!((event.samples, event.nameless, event.left_out), (127, 7, 0));
    let work = first(&annotation);
    assert_eq!((&*work.name, &*work.module, work.measured.samples), ("work", "/bin/w", 100));
    assert_eq!((fake.asked[0].start, fake.asked[0].kernel), (0, false));
    let samples: Vec<_> = work.instructions.iter().map(|i| (i.offset, i.measured.samples)).collect();
    assert_eq!(samples, [(0, 0), (4, 60), (8, 30), (12, 10)]);
    assert_eq!(work.instructions[1].measured.share.value, 0.6);
    let lines: Vec<_> =
        work.lines.iter().map(|l| (l.place.as_ref().unwrap().line, l.measured.samples)).collect();
    assert_eq!(lines, [(11, 90), (12, 10)]);
    // (60 × 40 + 30 × 400) / 90
    assert_eq!(work.lines[0].measured.average, Some(160.0));
    assert_eq!(work.lines[0].source.as_deref(), Some("line 11"));
}

#[test]
fn what_is_asked_for_is_shown() {
    let options = AnnotateOptions { functions: vec!["oth".into()], min_samples: 1, ..Default::default() };
    let mut fake = Fake::new();
    let annotation = run(&capture(), &options, &mut fake);
    assert_eq!(first(&annotation).name, "other");
    let options = AnnotateOptions { limit: 1, ..Default::default() };
    assert_eq!(run(&capture(), &options, &mut fake).events[0].left_out, 1);
}

#[test]
fn without_the_binary_the_capture_s_own_lines_remain() {
    let mut fake = Fake { code: Err(Reason::FileMissing), asked: Vec::new() };
    let annotation = run(&capture(), &AnnotateOptions::default(), &mut fake);
    let work = first(&annotation);
    assert_eq!(work.no_code, Some(Reason::FileMissing));
    let samples: Vec<_> = work.instructions.iter().map(|i| (i.offset, i.measured.samples)).collect();
    assert_eq!(samples, [(4, 60), (8, 30), (12, 10)]);
    assert_eq!(work.lines.len(), 2);
}

#[test]
fn nothing_is_lost_between_two_instructions() {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(40).code(0x1006, "/bin/w", "work", "/src/w.c", 11);
    let work = run(&builder.build(), &AnnotateOptions::default(), &mut Fake::new());
    let samples: Vec<_> =
        first(&work).instructions.iter().map(|i| (i.offset, i.measured.samples, i.text.is_empty())).collect();
    assert_eq!(samples, [(0, 0, false), (4, 0, false), (6, 40, true), (8, 0, false), (12, 0, false)]);
}

#[test]
fn few_samples_are_not_told_apart_and_no_address_is_an_error() {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(3).code(0x1004, "/bin/w", "work", "/src/w.c", 11);
    let mut capture = builder.build();
    let few = run(&capture, &AnnotateOptions::default(), &mut Fake::new());
    assert!(first(&few).too_few.is_some());
    capture.meta.dimensions = vec![Dimension::Cpu];
    let error = annotate(&capture, &AnnotateOptions::default(), &mut Fake::new()).unwrap_err();
    assert!(error.to_string().contains("--by"), "{error}");
}

/// The field of each access is beside its instruction.
#[test]
fn fields_are_beside_their_instructions() {
    struct Typed(Fake);
    impl Code for Typed {
        fn instructions(&mut self, function: &FunctionId) -> Result<Vec<Instruction>, Reason> {
            self.0.instructions(function)
        }
        fn source(&mut self, file: &str, line: u32) -> Option<String> {
            self.0.source(file, line)
        }
        fn types(&mut self, id: &FunctionId, wanted: &[u64]) -> Result<TypedCode, Reason> {
            crate::types::tests::Orders.types(id, wanted)
        }
    }
    let annotation = annotate(&capture(), &AnnotateOptions::default(), &mut Typed(Fake::new())).unwrap();
    let fields: Vec<_> = first(&annotation).instructions.iter().map(|i| i.field.as_ref()).collect();
    let names: Vec<_> = fields.iter().map(|field| field.map(ToString::to_string)).collect();
    assert_eq!(names, [Some("Order.next".to_owned()), Some("Order.id".to_owned()), None, None]);
    let text = annotate_text(&annotation, Detail::All, &TextOptions::default());
    assert!(text.contains("Field"), "{text}");
    let line = text.lines().find(|line| line.contains("insn4")).unwrap();
    assert!(line.contains("60  ") && line.contains("Order.id"), "{line}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}
