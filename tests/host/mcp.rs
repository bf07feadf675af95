//! An agent records, with `precise mcp --allow-record`, and asks a running `precise serve`.

use anyhow::{Context as _, Result, ensure};
use precise_tests::agent_client::AgentClient;
use precise_tests::program;
use precise_tests::run::undisturbed;
use precise_tests::serving::{FAULTS, Serving};
use serde_json::json;

#[test]
fn an_agent_records_if_it_is_allowed_to() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut client = AgentClient::start(folder.path(), &["--allow-record", "."])?;
    let asked = json!({ "events": "page-faults", "by": "process,ip", "seconds": 1 });
    let document = client.call("record", &asked)?;
    ensure!(document["error"].is_null(), "{document:#}");
    ensure!(document["verdict"][0]["closes"] == true, "{document:#}");
    let name = document["captures"][0].as_str().context("no capture")?;
    ensure!(folder.path().join(name).exists(), "{document:#}");
    let list = client.call("captures", &json!({}))?;
    ensure!(list["answer"]["captures"][0]["capture"] == name, "{list:#}");
    // What cannot be sampled is said, and leaves nothing.
    let refused = client.call("record", &json!({ "events": "no-such-event", "seconds": 1 }))?;
    ensure!(refused["error"].as_str().is_some_and(|error| error.contains("no-such-event")), "{refused:#}");
    ensure!(std::fs::read_dir(folder.path())?.count() == 1, "a refused recording left a file");
    client.end()
}

#[test]
fn an_agent_does_not_record_if_it_is_not_allowed_to() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let mut client = AgentClient::start(folder.path(), &["."])?;
    let tools = client.request("tools/list", &json!({}))?.to_string();
    ensure!(!tools.contains("\"name\":\"record\""), "{tools}");
    let answer = client.line(
        r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"record","arguments":{}}}"#,
    )?;
    ensure!(answer.to_string().contains("--allow-record"), "{answer}");
    client.end()
}

#[test]
fn an_agent_asks_a_running_serve() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let faults = program::faults(folder.path(), "mcp-faults")?;
        let serving = Serving::start(&[FAULTS, &["--by", "process"]].concat())?;
        let run = std::process::Command::new(&faults).arg("500").status()?;
        ensure!(run.success(), "{run}");
        serving.later()?;
        let mut client = AgentClient::start(folder.path(), &[&format!("http://{}", serving.address)])?;
        let list = client.call("captures", &json!({}))?;
        let capture = &list["answer"]["captures"][0];
        ensure!(capture["events"][0]["event"] == "page-faults", "{list:#}");
        let first = capture["capture"].as_str().context("no name")?.to_owned();
        let report = client.call("report", &json!({ "by": "process" }))?;
        ensure!(report["captures"][0] == first.as_str(), "{report:#}");
        ensure!(report["verdict"][0]["closes"] == true, "{report:#}");
        let text = report["answer"].to_string();
        ensure!(text.contains("mcp-faults") && text.contains("500"), "{text}");
        // What the run has not recorded is said.
        let missing = client.call("report", &json!({ "by": "function" }))?;
        ensure!(missing["error"].is_string(), "{missing:#}");
        let record =
            r#"{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"record","arguments":{}}}"#;
        ensure!(client.line(record)?.to_string().contains("--allow-record"), "it records");
        client.end()
    })
}
