//! Tests with a complete and an empty sample, as text, as JSON, and in the account.

use std::sync::Arc;

use super::stream_account::{account_json, account_text};
use super::stream_json::stream_json;
use super::stream_text::StreamText;
use precise_common::ledger::Counter;
use precise_model::{CodeLocation, DataLocation, EventInfo, Ledger, Name, Names, Reason};
use precise_records::record::sample::{Sample, WeightRecord};
use precise_sampling::kernel::sampler::Delivery;
use precise_sampling::stream::{Account, NamedSample, StreamField};
use precise_views::render::TextOptions;

struct Fixture {
    names: Names,
    code: CodeLocation,
    data: DataLocation,
    sample: Sample,
}

impl Fixture {
    fn new() -> Self {
        let mut names = Names::default();
        let mut name = |text: &str| Name::Known(names.intern(text));
        let code = CodeLocation {
            kernel: false,
            runtime_address: 0x55_0010,
            module: name("/usr/bin/app"),
            build_id: precise_model::NameId(0),
            file_offset: 0x10,
            function: name("look\u{1b}up"),
            function_offset: 0x1c,
            source: name("app.c"),
            line: 10,
            inlined_into: Vec::new(),
        };
        let data = DataLocation {
            runtime_address: 0x7f00,
            region: name("[heap]"),
            file_offset: 0,
            variable: Name::Unknown(Reason::NoSymbol),
            variable_offset: 0,
        };
        let sample = Sample {
            ip: 0x55_0010,
            pid: 4711,
            tid: 4712,
            time: 12_000_003_456,
            address: 0x7f00,
            cpu: 3,
            period: 1009,
            weight: WeightRecord { latency: 200, ..WeightRecord::default() },
            // A load that hit in L3, with HitM.
            data_src: Some(2 | 2 << 5 | 0x10 << 19 | 3 << 33),
            raw: bytes::Bytes::from_static(&[1, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]),
            ..Sample::default()
        };
        Self { names, code, data, sample }
    }

    fn named(&self) -> NamedSample<'_> {
        NamedSample {
            kernel_hidden: false,
            event: "loads",
            registers: None,
            sample: &self.sample,
            exact: true,
            names: &self.names,
            comm: Ok(Arc::from("app")),
            thread: Ok(Arc::from("worker")),
            code: Some(&self.code),
            data: Some(&self.data),
            cgroup: Err(Reason::CgroupGone),
            chain: None,
        }
    }
}

const FIELDS: [StreamField; 9] = [
    StreamField::Time,
    StreamField::Comm,
    StreamField::Latency,
    StreamField::Level,
    StreamField::Snoop,
    StreamField::Address,
    StreamField::Variable,
    StreamField::Cgroup,
    StreamField::Symbol,
];

#[test]
fn text_is_aligned_and_safe() {
    let fixture = Fixture::new();
    let mut text = StreamText::new(&FIELDS);
    let mut empty = fixture.named();
    let nothing = Sample::default();
    (empty.sample, empty.code, empty.data) = (&nothing, None, None);
    empty.comm = Err(Reason::ProcessGone);
    let lines = [text.header(), text.line(&fixture.named()), text.line(&empty)];
    assert_eq!(
        lines.concat(),
        "\
#         TIME  COMM             LATENCY  LEVEL        SNOOP         ADDRESS  VARIABLE                  CGROUP                    SYMBOL
     12.000003  app                  200  L3 hit       HitM           0x7f00  [heap]                    [cgroup gone]             look\u{fffd}up+0x1c
      0.000000  [process gone]         -  -            -                   -  -                         [cgroup gone]             [not recorded]
"
    );
}

#[test]
fn json_has_every_field_and_the_reason_of_what_is_not_known() {
    let fixture = Fixture::new();
    let all: Vec<StreamField> = StreamField::all().collect();
    let line = stream_json(&all, &fixture.named()).unwrap();
    let value: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert!(all.iter().all(|field| value.get(field.name()).is_some()), "{line}");
    assert_eq!(value["time"], 12_000_003_456_u64);
    assert_eq!(value["symbol"], "look\u{1b}up");
    assert_eq!(value["symbol_offset"], 0x1c);
    assert_eq!(value["address"], "0x7f00");
    assert_eq!((&value["level"], &value["snoop"]), (&"L3 hit".into(), &"HitM".into()));
    assert!(value["variable"].is_null() && value.get("variable_offset").is_none());
    assert_eq!(value["variable_unknown"], "no-symbol");
    assert!(value["retire_latency"].is_null());
    assert_eq!(value["raw"], "0x00000001,0x9");
    assert_eq!(line.matches('\n').count(), 1);
}

#[test]
fn the_account_says_where_every_sample_went() {
    let ledger = Ledger {
        counters: [(Counter::Seen, 5049), (Counter::Streamed, 4000), (Counter::PeriodSeen, 5049)].into(),
        rejected: vec![("addr in 0x1000..0x2000".into(), 1049)],
        event_count: 5049,
        ..Ledger::default()
    };
    let account = Account {
        event: EventInfo { name: "page-faults".into(), ledger, ..EventInfo::default() },
        delivery: Delivery { streamed: 4000, read: 673, lost: 3327 },
        written: 673,
        ..Account::default()
    };
    let json = account_json(std::slice::from_ref(&account), 2, &["a note".into()]).unwrap();
    assert_eq!(json.matches('\n').count(), 1);
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!((&value["kind"], &value["complete"]), (&"account".into(), &false.into()));
    let event = &value["events"][0];
    assert_eq!((&event["closes"], &event["complete"]), (&true.into(), &false.into()));
    let rows: Vec<_> = event["rows"].as_array().unwrap().iter().map(|row| row["samples"].as_u64()).collect();
    assert_eq!(rows, [Some(5049), Some(1049), Some(673), Some(3327)]);
    assert_eq!(value["notes"][0], "a note");
    assert_eq!(
        account_text(&[account], 2, &TextOptions { width: 71, ..TextOptions::default() }),
        "\
page-faults: NOT PRECISE; ledger closes; coverage 100.0%
Samples  What      Meaning
  5,049  seen      samples that reached the program
  1,049  rejected  failed the clause: addr in 0x1000..0x2000
    673  written   passed and written
  3,327  lost      passed, but the ring was full
Every sample that the program saw is in one of these rows.
* Samples arrived faster than they were written. Use a larger ring
  (--ring-pages), a narrower filter, fewer fields, or a longer period
  (-c).
"
    );
}
