//! The protocol answers whatever comes, and every answer fits and is valid.

use std::fs;
use std::io::Cursor;
use std::path::Path;

use boon::{Compiler, Schemas};
use precise_capture::CaptureFile as _;
use precise_code::{FunctionId, Instruction};
use precise_model::Reason;
use precise_model::testing::{CaptureBuilder, L1, RAM_WALK};
use precise_views::registry::VIEWS;
use proptest::prelude::*;
use tempfile::TempDir;

use super::fit::fit;
use super::protocol::{LONGEST_LINE, ToolSession};
use super::*;
use crate::text::schema::derived;

struct NoCode;

impl Code for NoCode {
    fn instructions(&mut self, _: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        Err(Reason::FileMissing)
    }

    fn source(&mut self, _: &str, _: u32) -> Option<String> {
        None
    }
}

/// A program without flags and without a machine: it "records" a synthetic capture.
pub(super) struct TestHost;

impl ToolHost for TestHost {
    fn schema(&self, kind: &str) -> Option<Value> {
        derived(kind)
    }

    fn narrowing(&self) -> Vec<ToolArgument> {
        vec![ToolArgument { name: "comm".into(), help: "Use only these".into(), several: true }]
    }

    fn narrow(&self, capture: Capture, values: &BTreeMap<String, Vec<String>>) -> Result<Capture, Failure> {
        match values.get("comm") {
            Some(_) => Err(Failure::new(ExitClass::Usage, "the test narrows nothing")),
            None => Ok(capture),
        }
    }

    fn code(&self) -> Result<Box<dyn Code>, Failure> {
        Ok(Box::new(NoCode))
    }

    fn record(&self, request: &RecordRequest) -> Result<(), Failure> {
        walks(3, "f")
            .write(&request.output)
            .map_err(|error| Failure::new(ExitClass::Failed, error.to_string()))
    }
}

/// Returns a capture of many functions whose loads need page walks.
fn walks(functions: u32, name: &str) -> Capture {
    let mut builder = CaptureBuilder::new();
    builder.meta().events[0].name = "loads".into();
    for at in 0..functions {
        for (source, samples, latency) in [(L1, 300, 5), (RAM_WALK, 200, 400)] {
            let cell = builder.cell().samples(samples).latency(latency).process(7, "app\u{1b}[31m\u{202e}");
            let cell = cell.cgroup(1, "/web").code(
                0x1000 + 64 * u64::from(at),
                "/bin/app",
                &format!("{name}{at}"),
                "",
                0,
            );
            cell.data(0x10_0000 + 0x1000 * u64::from(at), "[heap]", "").page_size(4096).data_src(source);
        }
    }
    builder.build()
}

fn session(records: bool) -> (TempDir, ToolSession<TestHost>) {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("deploy-1")).unwrap();
    walks(5, "old").write(&folder.path().join("deploy-1/before.parquet")).unwrap();
    walks(120, "größe_").write(&folder.path().join("a.parquet")).unwrap();
    walks(40, &"long\u{1f600}".repeat(100)).write(&folder.path().join("b.parquet")).unwrap();
    fs::write(folder.path().join("broken.parquet"), "no capture").unwrap();
    std::os::unix::fs::symlink("/etc/passwd", folder.path().join("link.parquet")).unwrap();
    let server = ToolServer::open(folder.path(), None, records, TestHost).unwrap();
    (folder, ToolSession::new(server))
}

pub(super) fn ask(session: &mut ToolSession<TestHost>, request: &Value) -> Value {
    let line = session.answer(request.to_string().as_bytes()).expect("an answer");
    assert!(!line.contains('\n') && !line.chars().any(precise_model::text::is_unsafe), "{line}");
    serde_json::from_str(&line).unwrap()
}

/// Calls a tool, and checks what every answer keeps: size, and both schemas.
pub(super) fn call(session: &mut ToolSession<TestHost>, tool: &str, arguments: Value) -> Value {
    let params = json!({ "name": tool, "arguments": arguments });
    let answer =
        ask(session, &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
    let text = answer["result"]["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{answer:#}"));
    assert!(text.len() <= LARGEST_ANSWER, "{tool}: {} bytes", text.len());
    assert!(!text.chars().any(precise_model::text::is_unsafe), "{text}");
    let document: Value = serde_json::from_str(text).unwrap();
    valid("mcp", &document);
    let inner = &document["answer"];
    if !inner.is_null() {
        valid(inner["kind"].as_str().unwrap(), inner);
    }
    assert_eq!(answer["result"]["isError"], json!(document.get("error").is_some()), "{document:#}");
    document
}

fn valid(kind: &str, document: &Value) {
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    compiler.add_resource(kind, derived(kind).unwrap()).unwrap();
    let compiled = compiler.compile(kind, &mut schemas).unwrap();
    schemas.validate(document, compiled).unwrap_or_else(|error| panic!("{kind}: {error:#}\n{document:#}"));
}

fn code_of(session: &mut ToolSession<TestHost>, line: &str) -> Option<i64> {
    let answer: Value = serde_json::from_str(&session.answer(line.as_bytes())?).unwrap();
    answer["error"]["code"].as_i64()
}

#[test]
fn versions_are_negotiated() {
    let (_folder, mut session) = session(false);
    for (asked, granted) in [
        ("2025-06-18", "2025-06-18"),
        ("2025-03-26", "2025-03-26"),
        ("2024-11-05", "2024-11-05"),
        ("1999-01-01", "2025-06-18"),
    ] {
        let params = json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        let answer = ask(
            &mut session,
            &json!({ "jsonrpc": "2.0", "id": "a", "method": "initialize", "params": params }),
        );
        assert_eq!((&answer["id"], &answer["result"]["protocolVersion"]), (&json!("a"), &json!(granted)));
        let text = answer["result"]["instructions"].as_str().unwrap();
        assert!(text.contains("never instructions"), "{text}");
        // Only one version has batches.
        let batch =
            r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","method":"notifications/x"}]"#;
        let answer: Value = serde_json::from_str(&session.answer(batch.as_bytes()).unwrap()).unwrap();
        assert_eq!(answer.as_array().map(Vec::len), (granted == "2025-03-26").then_some(1), "{answer}");
    }
    let silent = session.answer(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    assert_eq!(silent, None);
}

#[test]
fn what_is_no_request_gets_an_error() {
    let (_folder, mut session) = session(false);
    for (line, code) in [
        ("{", -32700),
        ("\u{0}", -32700),
        ("7", -32600),
        ("[]", -32600),
        ("{}", -32600),
        (r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"resources/list"}"#, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"ping","params":[]}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize"}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{}}"#, -32602),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"nothing"}}"#, -32602),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"explain","arguments":[]}}"#,
            -32602,
        ),
    ] {
        assert_eq!(code_of(&mut session, line), Some(code), "{line}");
    }
    assert_eq!(session.answer(b"  \n"), None);
    assert_eq!(session.answer(br#"{"jsonrpc":"2.0","id":1,"result":{}}"#), None);
}

#[test]
fn a_line_that_is_too_long_is_refused_and_the_next_one_answered() {
    let (_folder, mut session) = session(false);
    let mut input = vec![b'x'; 3 * LONGEST_LINE];
    input.extend(b"\n{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"ping\"}\n");
    let mut output = Vec::new();
    session.run(Cursor::new(input), &mut output).unwrap();
    let text = String::from_utf8(output).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines[0]["error"]["code"], -32600);
    assert_eq!(lines[1], json!({ "jsonrpc": "2.0", "id": 5, "result": {} }));
}

#[test]
fn tools_are_the_views() {
    let (_folder, mut session) = session(false);
    let answer = ask(&mut session, &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let tools = answer["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), VIEWS.len() + 1);
    for tool in tools {
        let schema = tool["inputSchema"].clone();
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.add_resource("x", schema).unwrap();
        compiler.compile("x", &mut schemas).unwrap();
        assert_eq!(tool["annotations"]["readOnlyHint"], true);
    }
    assert!(next::successors_are_views());
}

#[test]
fn every_view_answers_within_its_size_and_by_its_schema() {
    let (_folder, mut session) = session(false);
    let mut answered = 0;
    for capture in ["a.parquet", "b.parquet", "deploy-1/before.parquet"] {
        for view in VIEWS {
            let about = view.description();
            let mut arguments = json!({ "capture": capture });
            if about.captures.two() {
                arguments["base"] = json!("deploy-1/before.parquet");
            }
            for option in about.options.iter().filter(|option| option.required.is_some()) {
                arguments[option.name] = json!(option.required);
            }
            let answer = call(&mut session, about.name, arguments);
            let Some(answer) = Some(answer).filter(|answer| answer.get("error").is_none()) else { continue };
            answered += 1;
            assert!(!answer["answer"].is_null(), "{}: {answer:#}", about.name);
            assert_eq!(answer["verdict"][0]["closes"], true, "{answer:#}");
            assert!(about.name == "annotate" || answer["next"][0]["tool"].is_string(), "{answer:#}");
        }
    }
    assert!(answered > 25, "{answered}");
}

#[test]
fn many_rows_are_cut_and_counted() {
    let (_folder, mut session) = session(false);
    let answer =
        call(&mut session, "report", json!({ "capture": "a.parquet", "by": "function", "limit": 500 }));
    let cut = answer["left_out"]["lists"].as_array().unwrap();
    let rows = cut.iter().find(|list| list["of"] == 120).unwrap_or_else(|| panic!("{answer:#}"));
    let list = answer["answer"].pointer(rows["list"].as_str().unwrap()).unwrap();
    assert_eq!(json!(list.as_array().unwrap().len()), rows["shown"]);
    assert!(rows["shown"].as_u64() >= Some(3), "{answer:#}");
    let interval = &answer["intervals"][0];
    let number = answer["answer"].pointer(interval["of"].as_str().unwrap()).unwrap();
    assert_eq!((&number["value"], &number["low"]), (&interval["value"], &interval["low"]), "{answer:#}");
}

#[test]
fn captures_are_listed_and_only_these_are_read() {
    let (folder, mut session) = session(false);
    let answer = call(&mut session, "captures", json!({}));
    let listed = answer["answer"]["captures"].as_array().unwrap();
    let names: Vec<_> = listed.iter().filter_map(|capture| capture["capture"].as_str()).collect();
    assert_eq!(names.len(), 4, "{answer:#}");
    assert!(!names.contains(&"link.parquet"), "{names:?}");
    let broken = listed.iter().find(|capture| capture["capture"] == "broken.parquet").unwrap();
    assert!(broken["problem"].is_string(), "{broken}");
    assert_eq!(answer["next"][0]["tool"], "explain");
    let outside = folder.path().join("a.parquet").display().to_string();
    for name in ["../a.parquet", "deploy-1/../a.parquet", "link.parquet", outside.as_str(), "-", ""] {
        let answer = call(&mut session, "explain", json!({ "capture": name }));
        assert!(answer["error"].as_str().unwrap().starts_with("there is no capture"), "{answer:#}");
        assert_eq!(answer["next"][0]["tool"], "captures");
    }
}

#[test]
fn wrong_arguments_are_errors_with_a_way_out() {
    let (_folder, mut session) = session(false);
    for (tool, arguments, says) in [
        ("report", json!({ "by": "fucntion" }), "Did you mean `function`"),
        ("report", json!({ "limit": -1 }), "whole number"),
        ("report", json!({ "colour": "red" }), "takes capture"),
        ("diff", json!({}), "name the earlier one as `base`"),
        ("heatmap", json!({ "axis": "x" }), "axis is one of auto"),
        ("annotate", json!({ "lines": true, "all": true, "capture": "a.parquet" }), "exclude each other"),
        ("explain", json!({ "comm": ["x"], "capture": "a.parquet" }), "the test narrows nothing"),
        ("captures", json!({ "skip": "x" }), "number of captures"),
        ("record", json!({}), "only reads"),
    ] {
        let answer = call(&mut session, tool, arguments);
        assert!(answer["error"].as_str().unwrap().contains(says), "{answer:#}");
    }
}

#[test]
fn recordings_are_bounded() {
    let (folder, mut session) = session(true);
    for (arguments, says) in [
        (json!({ "seconds": 61 }), "from 1 to 60"),
        (json!({ "seconds": "5" }), "from 1 to 60"),
        (json!({ "pids": [0] }), "numbers of processes"),
        (json!({ "command": "sh" }), "record takes"),
        (json!({ "overhead": "off" }), "record takes"),
    ] {
        let answer = call(&mut session, "record", arguments);
        assert!(answer["error"].as_str().unwrap().contains(says), "{answer:#}");
    }
    let answer = call(&mut session, "record", json!({ "events": "loads", "seconds": 1 }));
    assert_eq!((&answer["tool"], &answer["answer"]["kind"]), (&json!("record"), &json!("explain")));
    assert!(folder.path().join(answer["captures"][0].as_str().unwrap()).exists());
    let spent = record::request(&Map::new(), folder.path(), LONGEST_TOGETHER).unwrap_err();
    assert!(spent.what.contains("has recorded for 1800 s"), "{spent}");
}

#[test]
fn places_that_cannot_be_asked_say_why() {
    let refused = |place: &str, records| {
        ToolServer::open(Path::new(place), None, records, TestHost)
            .err()
            .map(|failure| failure.to_string())
            .unwrap()
    };
    assert!(refused("http://node1:7732/metrics", false).contains("without a path"));
    assert!(refused("http://node1:7732", true).contains("is not a folder"));
    assert!(refused("gs://bucket", false).contains("s3://BUCKET/PREFIX"));
    assert!(refused("/no/such/folder", false).contains("cannot open /no/such/folder"));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.parquet");
    walks(1, "f").write(&file).unwrap();
    assert!(refused(&file.display().to_string(), true).contains("is not a folder"));
    let mut server = ToolServer::open(&file, None, false, TestHost).unwrap();
    let answer = server.call("explain", &Map::new()).unwrap();
    assert!(!answer.is_error && answer.text.contains("x.parquet"), "{}", answer.text);
}

fn any_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,40}".prop_map(Value::from),
        prop_oneof![Just("explain"), Just("2.0"), Just("tools/call"), Just("report"), Just("b.parquet")]
            .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        let key = prop_oneof![
            Just("method"),
            Just("id"),
            Just("params"),
            Just("name"),
            Just("arguments"),
            Just("by")
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..5).prop_map(Value::from),
            prop::collection::btree_map(key, inner, 0..6)
                .prop_map(|map| map
                    .into_iter()
                    .map(|(key, value)| (key.to_owned(), value))
                    .collect::<Map<_, _>>())
                .prop_map(Value::Object),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_lines_never_panic(lines in prop::collection::vec(any::<u8>(), 0..400)) {
        let (_folder, mut session) = empty_session();
        let mut output = Vec::new();
        session.run(Cursor::new(lines), &mut output).unwrap();
        for line in String::from_utf8(output).unwrap().lines() {
            let answer: Value = serde_json::from_str(line).unwrap();
            prop_assert_eq!(&answer["jsonrpc"], &json!("2.0"));
        }
    }

    #[test]
    fn random_requests_never_panic(mut request in any_json(), arguments in any_json()) {
        let (_folder, mut session) = empty_session();
        if let Value::Object(fields) = &mut request {
            fields.insert("jsonrpc".into(), json!("2.0"));
        }
        session.answer(request.to_string().as_bytes());
        for tool in ["explain", "report", "diff", "captures", "record"] {
            let params = json!({ "name": tool, "arguments": arguments });
            let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
            prop_assert!(session.answer(call.to_string().as_bytes()).is_some());
        }
    }

    #[test]
    fn what_fits_is_small_and_keeps_its_shape(
        rows in prop::collection::vec((".{0,300}", any::<u64>()), 0..200),
        bytes in 100_usize..4000,
    ) {
        let schema = json!({
            "type": "object",
            "properties": { "kind": { "const": "x" }, "rows": { "type": "array", "items": { "$ref": "#/$defs/Row" } } },
            "$defs": { "Row": { "type": "object", "properties": {
                "name": { "type": ["string", "null"] }, "pair": { "type": "array", "minItems": 2 },
            } } },
        });
        let rows: Vec<Value> = rows.iter().map(|(name, n)| json!({ "name": name, "pair": [n, n] })).collect();
        let document = json!({ "kind": "x", "rows": rows });
        let (fitting, left_out) = fit(&document, &schema, bytes).unwrap();
        let size = precise_model::safe_json::compact(&fitting).unwrap().len();
        prop_assert!(size <= bytes, "{} of {}", size, bytes);
        let kept = fitting["rows"].as_array().unwrap();
        prop_assert!(kept.iter().all(|row| row["pair"].as_array().unwrap().len() == 2));
        match left_out.lists.first() {
            Some(list) => prop_assert_eq!((list.shown, list.of), (kept.len() as u64, rows.len() as u64)),
            None => prop_assert_eq!(kept.len(), rows.len()),
        }
    }
}

pub(super) fn empty_session() -> (TempDir, ToolSession<TestHost>) {
    let folder = tempfile::tempdir().unwrap();
    let server = ToolServer::open(folder.path(), None, false, TestHost).unwrap();
    (folder, ToolSession::new(server))
}
