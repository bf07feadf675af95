//! Tests of `precise c2c` on synthetic captures.

use super::*;
use crate::render::TextOptions;
use crate::testing::shown;
use precise_code::types::{Object, TypedAccess, TypedCode};
use precise_code::{FunctionId, Instruction};
use precise_model::testing::{CaptureBuilder, ibs_op};
use precise_model::{C2C_DIMENSIONS, CodeLocation, Name, Owner, Reason};

/// Data sources: a load that found its line modified in another core complex of the same node; a
/// load that hit; a store.
const HITM: u64 = 2 | (2 | 0x400) << 5 | 0x10 << 19 | 11 << 33 | 1 << 37 | 1 << 43;
const HIT: u64 = 2 | (2 | 8) << 5 | 1 << 19 | 1 << 33;
const STORE: u64 = 4 | (2 | 8) << 5 | 1 << 19 | 1 << 33;

/// Code in which the instruction at offset 0 of each function accesses this many bytes.
struct Binary(Option<u32>);

impl Code for Binary {
    fn instructions(&mut self, _: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        let instruction = |accessed| Instruction {
            offset: 0,
            address: 0,
            length: 4,
            text: String::new(),
            accessed: Some(accessed),
            branch: None,
            frames: Vec::new(),
            decoded: Default::default(),
        };
        self.0.map(|accessed| vec![instruction(accessed)]).ok_or(Reason::FileMissing)
    }

    fn source(&mut self, _: &str, _: u32) -> Option<String> {
        None
    }
}

/// A binary whose functions `match_loop` and `scan` access `seq` and `next` of an order, and whose
/// function `work` accesses `next` of one order or another.
struct Typed;

impl Code for Typed {
    fn instructions(&mut self, function: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        Binary(Some(8)).instructions(function)
    }

    fn source(&mut self, _: &str, _: u32) -> Option<String> {
        None
    }

    fn types(&mut self, function: &FunctionId, wanted: &[u64]) -> Result<TypedCode, Reason> {
        let mut code = crate::types::tests::Orders.types(function, &[0])?;
        let offset = if function.name == "match_loop" { 8 } else { 0 };
        let access = TypedAccess { reads: true, writes: true, ..code.instructions[0].accesses[0] };
        let object = access.object.map(|object| Object { offset, ..object });
        code.instructions[0].accesses = vec![TypedAccess { object, ..access }];
        code.instructions[0].offset = wanted[0];
        Ok(code)
    }
}

/// Both sides of a falsely shared line are named, with the functions that use them.
#[test]
fn fields_name_both_sides_of_a_line() {
    let made = |functions: [&str; 2]| {
        let mut made = Made::new();
        for (thread, offset) in [(1, 8), (2, 0)] {
            made.at(0x10_0000 + offset, "", thread, HITM, 100);
            made.at(0x10_0000 + offset, "", thread, if thread == 1 { STORE } else { HIT }, 50);
        }
        let mut capture = made.0.build();
        let names = functions.map(|name| Name::Known(capture.names.intern(name)));
        let own = capture.code[0].clone();
        capture.code = names.map(|function| CodeLocation { function, ..own.clone() }).to_vec();
        for row in &mut capture.rows {
            row.code = Some(row.tid - 1);
        }
        c2c(&capture, &C2cOptions::default(), &mut Typed).unwrap()
    };
    let view = made(["match_loop", "scan"]);
    let advice = "`Order.id` (written by `match_loop`) and `Order.next` (read by `scan`) share line 0 of \
                  Order: put `id` on a line of its own.";
    assert_eq!(view.lines[0].advice.last().map(String::as_str), Some(advice));
    let view = made(["work", "scan"]);
    let advice = "`Order.next` (written by `work`) and `Order.next` (read by `scan`) of two objects share the \
                  line: align Order to 64 bytes.";
    assert_eq!(view.lines[0].advice.last().map(String::as_str), Some(advice));
}

struct Made(CaptureBuilder);

impl Made {
    fn new() -> Self {
        let mut builder = CaptureBuilder::new();
        builder.meta().events[0].name = "c2c".into();
        ibs_op(&mut builder.meta().events[0]);
        builder.meta().dimensions = C2C_DIMENSIONS.to_vec();
        Self(builder)
    }

    /// Adds samples of a process's thread on the CPU of the same number.
    fn at(&mut self, address: u64, variable: &str, thread: u32, source: u64, samples: u64) {
        let mut cell = self
            .0
            .cell()
            .samples(samples)
            .latency(200)
            .cpu(thread as u16)
            .process(100, "worker")
            .cgroup(u64::from(thread), &format!("/app/{thread}"))
            .code(0x1000, "/bin/w", "work", "/src/w.c", 7)
            .data(address, "/bin/w", variable)
            .data_src(source);
        cell.row().tid = thread;
    }

    fn view(self, width: Option<u32>) -> C2c {
        c2c(&self.0.build(), &C2cOptions::default(), &mut Binary(width)).unwrap()
    }
}

/// One falsely shared line, one truly shared line, and one line without HITM loads.
fn pairs() -> Made {
    let mut made = Made::new();
    for (thread, offset) in [(1, 0), (2, 8)] {
        made.at(0x10_0000 + offset, "counters", thread, HITM, 100);
        made.at(0x10_0000 + offset, "counters", thread, STORE, 50);
        made.at(0x20_0000, "lock", thread, HITM, 30);
        made.at(0x20_0000, "lock", thread, STORE, 20);
        made.at(0x30_0000 + offset, "quiet", thread, HIT, 70);
    }
    made
}

pub fn shared_lines() -> Capture {
    pairs().0.build()
}

#[test]
fn false_true_and_quiet() {
    let view = pairs().view(Some(8));
    assert_eq!((view.hitm, view.quiet_lines, view.lines.len()), (260, 1, 2));
    let [counters, lock] = &view.lines[..] else { panic!("{:?}", view.lines) };
    assert_eq!((counters.verdict, lock.verdict), (SharingVerdict::FalseSharing, SharingVerdict::TrueSharing));
    assert_eq!(
        (counters.hitm.total, counters.loads, counters.stores, counters.threads.len()),
        (200, 200, 100, 2)
    );
    assert_eq!(counters.hitm_average, Some(200.0));
    assert!(
        counters.advice[0].contains("counters (bytes 0-7), counters (bytes 8-15)"),
        "{:?}",
        counters.advice
    );
    assert!(lock.advice[0].contains("Padding does not help"));
    // Each cgroup reads what the other one, and the cgroup itself, wrote.
    let between: Vec<_> =
        view.pairs.iter().map(|p| (p.reader_cgroup.as_str(), p.writer_cgroup.as_str(), p.hitm)).collect();
    assert!(between.contains(&("/app/1", "/app/2", 130)), "{between:?}");
    for text in crate::c2c::text::c2c_text(&view, &TextOptions::default()).lines() {
        assert!(text.chars().count() <= 80, "{text}");
    }
    assert_eq!(crate::c2c::csv::c2c_csv(&view, ",").lines().count(), 1 + 8);
}

#[test]
fn cgroups_have_the_names_of_their_owners() {
    let mut made = pairs();
    made.0.meta().owners =
        vec![Owner { path: "/app/1".into(), name: "shop/web-0/nginx".into(), ..Owner::default() }];
    let view = made.view(Some(8));
    let text = crate::c2c::text::c2c_text(&view, &TextOptions::default());
    let between = text.split_once("Between processes and cgroups").map(|(_, table)| table).unwrap();
    assert!(between.contains("shop/web-0/nginx") && between.contains("/app/2"), "{between}");
    assert!(!between.contains("/app/1"), "{between}");
    assert!(view.pairs.iter().any(|pair| pair.reader_cgroup == "/app/1"), "the path is in the JSON");
}

#[test]
fn the_width_of_the_instruction_decides() {
    let made = || {
        let mut made = Made::new();
        for (thread, offset) in [(1, 0), (2, 4)] {
            made.at(0x10_0000 + offset, "counters", thread, HITM, 60);
            made.at(0x10_0000 + offset, "counters", thread, STORE, 50);
        }
        made
    };
    let verdict = |width| made().view(width).lines[0].verdict;
    assert_eq!(verdict(Some(4)), SharingVerdict::FalseSharing);
    assert_eq!(verdict(Some(8)), SharingVerdict::TrueSharing);
    assert_eq!(verdict(None), SharingVerdict::WidthNotKnown);
    // A width that the hardware reports takes precedence.
    let mut capture = made().0.build();
    capture.rows.iter_mut().for_each(|row| row.width = Some(4));
    let view = c2c(&capture, &C2cOptions::default(), &mut Binary(Some(8))).unwrap();
    assert_eq!(view.lines[0].verdict, SharingVerdict::FalseSharing);
}

#[test]
fn processes_share_what_is_shared_by_name_and_nothing_else() {
    let lines = |region: &str| {
        let mut made = Made::new();
        for process in [100, 200] {
            let mut cell = made.0.cell().samples(60).cpu(0).process(process, "w").data_src(HITM);
            cell = cell.data(0x7000_0000 + u64::from(process) * 0x10000, region, "");
            cell.row().tid = process;
        }
        made.view(None).lines.len()
    };
    assert_eq!(lines("/dev/shm/ring"), 1);
    assert_eq!(lines("[heap]"), 2);
}

#[test]
fn too_few_are_not_ranked_and_nothing_is_said_plainly() {
    let mut few = Made::new();
    few.at(0x1000, "x", 1, HITM, 99);
    let view = few.view(None);
    assert_eq!((view.too_few, view.lines.len()), (Some(100), 1));
    let text = crate::c2c::text::c2c_text(&view, &TextOptions::default());
    assert!(text.contains("Only 99 samples: the rows are in no reliable order"), "{text}");
    let mut none = Made::new();
    none.at(0x1000, "x", 1, HIT, 500);
    let text = crate::c2c::text::c2c_text(&none.view(None), &TextOptions::default());
    shown("c2c.md", "healthy", &text);
}

#[test]
fn what_is_missing_is_named_with_its_command() {
    let mut capture = CaptureBuilder::new().build();
    capture.meta.dimensions = vec![Dimension::Ip, Dimension::Source];
    let error = c2c(&capture, &C2cOptions::default(), &mut Binary(None)).unwrap_err().to_string();
    assert!(error.contains("`precise record -e cycles --by ip,address,thread,cpu,source`"), "{error}");
}
