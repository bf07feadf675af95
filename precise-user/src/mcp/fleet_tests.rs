//! The tools over a fleet: they are there if there are tables, and every answer leads on.

use std::fs;

use precise_fleet::testing::{FleetTruth, MadeFleet};
use precise_fleet::{CompactOptions, FleetHour, compact};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::ToolServer;
use super::protocol::ToolSession;
use super::tests::{TestHost, ask, call};
use crate::archive::{ArchivePlace, fleet_bucket};

/// Returns a server over the captures of some nodes in five hours of two days, and their tables.
fn session() -> (TempDir, ToolSession<TestHost>) {
    let folder = tempfile::tempdir().unwrap();
    let made = MadeFleet { nodes: 8, rows: 200, ..MadeFleet::small() };
    let mut truth = FleetTruth::new();
    for (node, hour) in (0..made.nodes).flat_map(|node| (0..5).map(move |hour| (node, hour))) {
        let capture = made.capture(node, hour, &mut truth).unwrap();
        let path = folder.path().join(&capture.name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, &capture.bytes).unwrap();
    }
    let place = ArchivePlace::parse(folder.path()).unwrap();
    let now_ns = FleetHour(made.first.0 + 96).start_ns();
    let options = CompactOptions { hour: None, since_ns: 0, now_ns, memory: 64 << 20 };
    compact(&fleet_bucket(&place).unwrap(), &options, |_| {}).unwrap();
    let server = ToolServer::open(folder.path(), None, false, TestHost).unwrap();
    (folder, ToolSession::new(server))
}

const DAY: &str = "2026-11-24";

#[test]
fn a_place_with_tables_has_the_tools_of_a_fleet() {
    let (_folder, mut session) = session();
    let answer = ask(&mut session, &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" }));
    let tools = answer["result"]["tools"].as_array().unwrap();
    let own: Vec<&Value> =
        tools.iter().filter(|tool| tool["name"].as_str().unwrap().starts_with("fleet_")).collect();
    assert_eq!(own.len(), 4);
    for tool in own {
        let schema = tool["inputSchema"].clone();
        let (mut compiler, mut schemas) = (boon::Compiler::new(), boon::Schemas::new());
        compiler.add_resource("x", schema.clone()).unwrap();
        let compiled = compiler.compile("x", &mut schemas).unwrap();
        let of_diff = tool["name"] == "fleet_diff";
        let arguments = if of_diff {
            json!({ "before": DAY, "after": DAY, "by": "service" })
        } else {
            json!({ "time": DAY, "hours": 3, "by": "service", "limit": 5 })
        };
        assert!(schemas.validate(&arguments, compiled).is_ok(), "{schema:#}");
        assert!(schemas.validate(&json!({ "hours": 0 }), compiled).is_err(), "{schema:#}");
        assert_eq!(schema["required"], if of_diff { json!(["before", "after"]) } else { json!([]) });
    }
    let (_folder, mut empty) = super::tests::empty_session();
    let answer = call(&mut empty, "fleet_report", json!({}));
    assert!(answer["error"].as_str().unwrap().contains("has no tables of a fleet"), "{answer:#}");
}

#[test]
fn every_question_to_a_fleet_is_answered_and_leads_on() {
    let (_folder, mut session) = session();
    let mut wanted = vec![("fleet_report".to_owned(), json!({}))];
    let mut asked = Vec::new();
    while let Some(question) = wanted.pop() {
        if asked.contains(&question) || asked.len() > 60 {
            continue;
        }
        let (tool, arguments) = question.clone();
        asked.push(question);
        let answer = call(&mut session, &tool, arguments.clone());
        let error = answer["error"].as_str().unwrap_or_default();
        if error.is_empty() {
            let verdict = &answer["verdict"][0];
            assert!(verdict["event"].as_str().unwrap().starts_with("loads ("), "{answer:#}");
            assert_eq!(verdict["closes"], true, "{answer:#}");
        } else {
            // Of the day before the first, there is nothing to compare with.
            assert!(error.contains("there are no tables of"), "{tool} {arguments}: {answer:#}");
        }
        let next = answer["next"].as_array().unwrap();
        assert!(!next.is_empty(), "{answer:#}");
        wanted.extend(
            next.iter().map(|next| (next["tool"].as_str().unwrap().to_owned(), next["arguments"].clone())),
        );
    }
    let tools: std::collections::BTreeSet<&str> = asked.iter().map(|(tool, _)| tool.as_str()).collect();
    assert_eq!(tools.len(), 4, "{asked:?}");
}

#[test]
fn keys_times_and_limits_are_those_of_the_command() {
    let (_folder, mut session) = session();
    for by in ["service", "function,module", "level", "node", "cluster", "hour", "type", "type,field"] {
        let answer = call(&mut session, "fleet_report", json!({ "time": DAY, "by": by, "limit": 3 }));
        let groups = &answer["answer"]["events"][0]["groups"];
        assert!((1..=3).contains(&groups.as_array().unwrap().len()), "{by}: {answer:#}");
    }
    let answer = call(&mut session, "fleet_latency", json!({ "time": DAY, "by": "none" }));
    assert!(answer["answer"]["events"][0]["all"]["p99"]["cycles"].is_number(), "{answer:#}");
    for (tool, arguments, says) in [
        ("fleet_report", json!({ "time": "yesterday" }), "is not a time"),
        ("fleet_report", json!({ "time": DAY, "hours": 3 }), "exclude each other"),
        ("fleet_report", json!({ "hours": 0 }), "from 1 to 8784"),
        ("fleet_report", json!({ "limit": "many" }), "expected u32"),
        ("fleet_report", json!({ "before": DAY }), "takes by, event, hours"),
        ("fleet_report", json!({ "by": "pid" }), "is not a group key"),
        ("fleet_latency", json!({ "by": "node" }), "not kept by node"),
        ("fleet_types", json!({ "by": "service" }), "neither type nor field"),
        ("fleet_types", json!({ "by": "type,node", "time": DAY }), "types are not kept by node"),
        ("fleet_diff", json!({ "before": DAY }), "needs after"),
        ("fleet_diff", json!({ "before": DAY, "after": DAY, "by": "hour" }), "never the same"),
        ("fleet_report", json!({ "time": DAY, "service": "shop/none" }), "no sample of the service"),
        ("fleet_report", json!({ "time": "2026-12-24" }), "the newest are of 2026-11-25"),
    ] {
        let answer = call(&mut session, tool, arguments);
        let error = answer["error"].as_str().unwrap_or_else(|| panic!("{says}: {answer:#}"));
        assert!(error.contains(says) && answer["next"][0]["tool"].is_string(), "{answer:#}");
    }
}
