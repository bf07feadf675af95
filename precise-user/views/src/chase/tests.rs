//! Tests with a list and an array whose samples are known.

use crate::chase::text::chase_text;
use crate::chase::{Chase, ChaseOptions, LoadBound, WaitKind, chase};
use crate::code::Code;
use crate::mem::tests::{L1, RAM};
use crate::render::TextOptions;
use precise_code::testing::assemble;
use precise_code::{Dependence, FunctionId, Instruction};
use precise_model::testing::CaptureBuilder;
use precise_model::{Capture, Dimension, Fields, Reason};

/// Code of two functions. `walk` follows a list: it loads the value at +0 and the next pointer at
/// +4. `sum` adds up an array; its load is at +2, after an instruction of 2 bytes.
pub(crate) struct Assembled;

impl Code for Assembled {
    fn instructions(&mut self, function: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        match &*function.name {
            "walk" => Ok(assemble("1: add 8(%rdi),%rax\n mov (%rdi),%rdi\n test %rdi,%rdi\n jne 1b\n ret")),
            "sum" => {
                Ok(assemble("xor %eax,%eax\n 1: add (%rdi,%rax,8),%rdx\n inc %rax\n cmp %rsi,%rax\n jne 1b"))
            }
            _ => Err(Reason::FileMissing),
        }
    }

    fn source(&mut self, _: &str, _: u32) -> Option<String> {
        None
    }
}

/// Samples with these latencies of the loads of the value, the next pointer and the array element;
/// 100 samples each.
pub(crate) fn capture([value, next, element]: [u32; 3]) -> Capture {
    let mut builder = CaptureBuilder::new();
    let mut load = |ip, function: &str, latency, source| {
        builder.cell().samples(100).latency(latency).code(ip, "/bin/w", function, "", 0).data_src(source);
    };
    load(0x1000, "walk", value, RAM);
    load(0x1004, "walk", next, L1);
    load(0x2002, "sum", element, L1);
    // Samples at an instruction that loads nothing, and in code that is not available.
    load(0x1007, "walk", 5, L1);
    load(0x3000, "gone", 5, L1);
    builder.build()
}

fn run(capture: &Capture) -> Chase {
    chase(capture, &ChaseOptions::default(), &mut Assembled).unwrap()
}

#[test]
fn the_latency_of_a_list_is_the_list_s() {
    let chase = run(&capture([800, 100, 100]));
    let event = &chase.events[0];
    assert_eq!((event.samples, event.loads, event.verdict), (500, 300, Some(LoadBound::Latency)));
    assert_eq!((event.without.no_load, event.without.no_code), (100, 100));
    let kinds: Vec<_> =
        event.kinds.iter().map(|k| (k.kind, k.measured.samples, k.latency_share.unwrap().value)).collect();
    assert_eq!(
        kinds,
        [(WaitKind::Chase, 100, 0.1), (WaitKind::BehindChase, 100, 0.8), (WaitKind::Independent, 100, 0.1)]
    );
    let site = &event.sites[0];
    assert_eq!((&*site.function, site.at.offset, &site.waits_for), ("walk", 0, &Dependence::BehindChase));
    assert_eq!(
        site.address_from[0].instruction.split_whitespace().collect::<Vec<_>>(),
        ["mov", "(%rdi),%rdi"]
    );
    assert_eq!(site.measured.average, Some(800.0));
    assert_eq!(site.beside.get(&WaitKind::Chase), Some(&1));
    assert_eq!(event.under_way.unwrap().value, 0.0);
    let text = chase_text(&chase, &TextOptions::default());
    assert!(
        text.split_whitespace().collect::<Vec<_>>().join(" ").contains("sampled loads belongs to"),
        "{text}"
    );
    assert!(text.contains("  Kind              Load"), "{text}");
    let slow_array = run(&capture([10, 10, 900]));
    assert_eq!(slow_array.events[0].verdict, Some(LoadBound::Bandwidth));
    let neither = run(&capture([50, 50, 100]));
    assert_eq!(neither.events[0].verdict, Some(LoadBound::Undecided));
}

#[test]
fn too_few_samples_rank_nothing_and_other_events_are_refused() {
    let options = ChaseOptions { min_samples: 301, ..ChaseOptions::default() };
    let mut capture = capture([800, 100, 100]);
    let few = chase(&capture, &options, &mut Assembled).unwrap();
    let event = &few.events[0];
    assert_eq!((event.too_few, event.verdict, event.sites.len()), (Some(301), None, 0));
    capture.meta.events[0].fields = Fields::default();
    let error = chase(&capture, &options, &mut Assembled).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("`precise record -e loads`"), "{text}");
    capture.meta.dimensions = vec![Dimension::Address];
    let error = chase(&capture, &options, &mut Assembled).unwrap_err().to_string();
    assert!(error.contains("--by ip,address"), "{error}");
}
