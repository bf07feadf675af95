//! An agent records: `precise mcp --allow-record`.

use anyhow::{Context as _, Result, ensure};
use precise_tests::agent_client::AgentClient;
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
