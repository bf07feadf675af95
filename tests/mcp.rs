//! Agents: a scripted client solves the five runbooks by calls of tools alone, and the session of
//! docs/mcp.md is what the server answers.

use std::collections::VecDeque;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use precise::capture::CaptureFile as _;
use precise::model::testing::{CaptureBuilder, L1, L3_HITM, RAM, RAM_WALK, ibs_op};
use precise::model::{Capture, CpuId, Node, Outcome, PmuKind, TaggedOf, Vendor};
use precise_common::ibs::OutcomeBits as Bits;
use precise_tests::agent_client::AgentClient;
use precise_tests::fleet_place::write_tables;
use precise_tests::run::precise;
use serde_json::{Value, json};

const STORE: u64 = 0x508_0144;
/// Calls that a client makes before it gives up.
const CALLS: usize = 12;

/// Loads of a service on two nodes: functions with their samples by data source.
fn service(start_s: u64, loads: &[(&str, u64, u64, u32)]) -> CaptureBuilder {
    let mut builder = CaptureBuilder::new();
    let meta = builder.meta();
    meta.start_unix_ns = start_s * 1_000_000_000;
    meta.events[0].name = "loads".into();
    ibs_op(&mut meta.events[0]);
    meta.machine.nodes = vec![Node { id: 0, cpus: vec![0] }, Node { id: 1, cpus: vec![1] }];
    for (at, (function, source, samples, latency)) in (0u64..).zip(loads) {
        for thread in [0u16, 1] {
            let cell = builder.cell().samples(*samples).latency(*latency).cpu(thread).page_size(4096);
            let cell = cell.process(100, "shop").cgroup(1, "/shop");
            let cell = cell.code(0x1000 + 0x100 * at, "/bin/shop", function, "/src/shop.c", 10 + at as u32);
            let address = 0x10_0000 + 0x1000 * at + 0x10_0000 * u64::from(thread);
            cell.data(address, "[heap]", "").data_src(*source);
        }
    }
    builder
}

const HEALTHY: [(&str, u64, u64, u32); 4] =
    [("parse", L1, 500, 5), ("sum", L1, 500, 5), ("send", L1, 450, 5), ("lookup", RAM, 30, 300)];

/// Two threads add to different counters of one line.
fn false_sharing() -> Capture {
    let mut builder = service(1_700_000_000, &HEALTHY);
    for (thread, offset) in [(0u16, 0), (1, 8)] {
        for (source, samples) in [(L3_HITM, 300), (STORE, 150)] {
            let cell = builder.cell().samples(samples).latency(200).cpu(thread).cgroup(1, "/shop");
            let cell = cell.process(100, "shop").thread(200 + u32::from(thread), "worker");
            let cell = cell.code(0x9000, "/bin/shop", "count", "", 0);
            cell.data(0x7000_0000 + offset, "/bin/shop", "counters").data_src(source);
        }
    }
    builder.build()
}

/// Half of the accesses of one function need a page walk.
fn tlb_storm() -> Capture {
    let storm = [("parse", L1, 500, 5), ("sum", L1, 400, 5), ("lookup", RAM_WALK, 800, 400)];
    service(1_700_000_000, &storm).build()
}

/// The function `parse` waits for its instructions.
fn front_end_stall() -> Capture {
    let mut builder = CaptureBuilder::new();
    let meta = builder.meta();
    meta.machine.cpu_id = Some(CpuId { vendor: Vendor::Amd, family: 0x19, model: 0x11, ..CpuId::default() });
    let event = &mut meta.events[0];
    (event.name, event.pmu, event.tagged) = ("fetch".into(), PmuKind::IbsFetch, Some(TaggedOf::Fetch));
    let good = Bits::COMPLETED | Bits::PHYSICAL_VALID;
    for (function, bits, samples, latency) in [
        ("sum", good, 600, 5),
        ("parse", good | Bits::IC_MISS, 300, 60),
        ("parse", Bits::PHYSICAL_VALID, 100, 20),
    ] {
        let ip = 0x1000 + u64::from(latency);
        let mut cell =
            builder.cell().samples(samples).latency(latency).code(ip, "/bin/shop", function, "", 0);
        cell.row().outcome = Some(Outcome::Fetch(bits));
    }
    builder.build()
}

/// From 20 to 45 s, `/cron` streams through memory, and evicts the lines of `/shop`.
fn noisy_neighbour() -> Capture {
    let mut builder = CaptureBuilder::new();
    let meta = builder.meta();
    meta.events[0].name = "loads".into();
    ibs_op(&mut meta.events[0]);
    for epoch in 0..60u32 {
        let noisy = (20..45).contains(&epoch);
        for (service, path) in ["/shop", "/api", "/db", "/cron"].into_iter().enumerate() {
            let (near, far) = match (path, noisy) {
                ("/cron", true) => (20, 380),
                ("/cron", false) => (6, 2),
                ("/shop", true) => (260, 120),
                _ => (360, 20),
            };
            // Chance: every second has a few more or less.
            let varied = |samples: u64| samples + u64::from(epoch * 7 + service as u32 * 3) % 11;
            for (source, samples, latency) in [(L1, near, 5), (RAM, far, 280)] {
                let cell = builder.cell().epoch(epoch).samples(varied(samples)).latency(latency + epoch % 5);
                let cell = cell.process(100 + service as u32, &path[1..]).cgroup(service as u64 + 1, path);
                let place = 0x1000 * (service as u64 + 1) + 64 * u64::from(epoch % 6);
                let cell = cell.code(place, &path[1..], &format!("{}_{}", &path[1..], epoch % 6), "", 0);
                cell.data(0x10_0000 + 0x1000 * place, "[heap]", "").data_src(source).cpu(service as u16 % 2);
            }
        }
    }
    builder.build()
}

/// An answer, and the call that led to it.
struct Answered {
    tool: String,
    document: Value,
}

/// Asks what there is, then follows what each answer says to ask next. The client knows no view.
fn investigate(folder: &Path) -> Result<Vec<Answered>> {
    follow(folder, "captures", json!({}))
}

/// Calls a tool, then follows what each answer says to ask next.
fn follow(folder: &Path, first: &str, arguments: Value) -> Result<Vec<Answered>> {
    let mut client = AgentClient::start(folder, &["."])?;
    let tools = client.request("tools/list", &json!({}))?;
    let names: Vec<&str> =
        tools["tools"].as_array().into_iter().flatten().filter_map(|t| t["name"].as_str()).collect();
    let mut wanted = VecDeque::from([(first.to_owned(), arguments)]);
    let (mut asked, mut answers) = (Vec::new(), Vec::new());
    while let Some(call) = wanted.pop_front() {
        if asked.contains(&call) || asked.len() == CALLS {
            continue;
        }
        let (tool, arguments) = call.clone();
        asked.push(call);
        ensure!(names.contains(&tool.as_str()), "{tool} is not a tool");
        let document = client.call(&tool, &arguments)?;
        for next in document["next"].as_array().into_iter().flatten() {
            let tool = next["tool"].as_str().context("no tool")?;
            wanted.push_back((tool.to_owned(), next["arguments"].clone()));
        }
        answers.push(Answered { tool, document });
    }
    client.end()?;
    Ok(answers)
}

/// Returns the answer of a tool that the client was led to.
fn of<'a>(answers: &'a [Answered], tool: &str) -> Result<&'a Value> {
    let found =
        answers.iter().find(|answered| answered.tool == tool && !answered.document["answer"].is_null());
    let tools: Vec<_> = answers.iter().map(|answered| answered.tool.as_str()).collect();
    Ok(&found.with_context(|| format!("nothing led to {tool}: {tools:?}"))?.document)
}

/// Checks that the most important finding has this topic, an interval, and names the culprit.
fn found(answers: &[Answered], topic: &str, culprits: &[&str]) -> Result<()> {
    let document = of(answers, "explain")?;
    let findings = document["answer"]["findings"].as_array().context("no findings")?;
    let finding = findings.iter().find(|finding| finding["topic"] == topic);
    let finding = finding.with_context(|| format!("no {topic}: {document:#}"))?;
    let said = finding.to_string();
    ensure!(culprits.iter().all(|culprit| said.contains(culprit)), "{topic}: {finding:#}");
    ensure!(document["verdict"][0]["closes"] == true, "{document:#}");
    Ok(())
}

fn folder_of(captures: &[(&str, Capture)]) -> Result<tempfile::TempDir> {
    let folder = tempfile::tempdir()?;
    for (name, capture) in captures {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().context("a folder")?)?;
        capture.write(&path)?;
    }
    Ok(folder)
}

#[test]
fn an_agent_solves_false_sharing() -> Result<()> {
    let folder = folder_of(&[("shop.parquet", false_sharing())])?;
    let answers = investigate(folder.path())?;
    found(&answers, "false-sharing", &["counters", "count"])?;
    let lines = of(&answers, "c2c")?;
    let line = &lines["answer"]["lines"][0];
    ensure!(line["variables"][0] == "counters" && line["verdict"] == "false-sharing", "{lines:#}");
    ensure!(lines["intervals"][0]["low"].is_number(), "{lines:#}");
    Ok(())
}

#[test]
fn an_agent_solves_cold_misses_after_a_deploy() -> Result<()> {
    let after = [("parse", L1, 500, 5), ("sum", L1, 500, 5), ("send", L1, 450, 5), ("lookup", RAM, 900, 300)];
    let folder = folder_of(&[
        ("deploy-41/20231114T221320Z-testhost-precise.parquet", service(1_700_000_000, &HEALTHY).build()),
        ("deploy-42/20231115T221320Z-testhost-precise.parquet", service(1_700_086_400, &after).build()),
    ])?;
    let answers = investigate(folder.path())?;
    found(&answers, "waiting", &["RAM", "lookup"])?;
    let diff = of(&answers, "diff")?;
    let rows =
        diff["answer"].pointer("/events/0/rows/0").or_else(|| diff["answer"].pointer("/events/0/entries/0"));
    ensure!(rows.context(diff.to_string())?.to_string().contains("lookup"), "{diff:#}");
    let captures = diff["captures"].to_string();
    ensure!(captures.find("deploy-41") < captures.find("deploy-42"), "{captures}");
    Ok(())
}

#[test]
fn an_agent_solves_a_noisy_neighbour() -> Result<()> {
    let folder = folder_of(&[("node.parquet", noisy_neighbour())])?;
    let answers = investigate(folder.path())?;
    found(&answers, "change", &["/shop", "/cron took"])?;
    ensure!(of(&answers, "latency")?["intervals"][0]["low"].is_number(), "no intervals");
    // Whose loads go to memory: the neighbour is among them, with its share.
    let levels = answers.iter().filter(|answered| answered.tool == "report");
    let said: Vec<String> = levels.map(|answered| answered.document["answer"].to_string()).collect();
    ensure!(said.iter().any(|said| said.contains("/cron") && said.contains("RAM")), "{said:?}");
    Ok(())
}

#[test]
fn an_agent_solves_a_tlb_storm() -> Result<()> {
    let folder = folder_of(&[("shop.parquet", tlb_storm())])?;
    let answers = investigate(folder.path())?;
    found(&answers, "page-walks", &["lookup"])?;
    let walks = of(&answers, "tlb")?;
    ensure!(walks["answer"].to_string().contains("lookup"), "{walks:#}");
    Ok(())
}

#[test]
fn an_agent_solves_a_front_end_stall() -> Result<()> {
    let folder = folder_of(&[("shop.parquet", front_end_stall())])?;
    let answers = investigate(folder.path())?;
    found(&answers, "front-end", &["parse"])?;
    let fetch = of(&answers, "fetch")?;
    ensure!(fetch["answer"]["sections"][0]["groups"][0].to_string().contains("parse"), "{fetch:#}");
    Ok(())
}

/// A day of 24 nodes. One of them is silent, and programs lost functions since the day before. The
/// agent knows neither the services nor the days that have tables.
#[test]
fn an_agent_asks_all_nodes_what_changed() -> Result<()> {
    let folder = tempfile::tempdir()?;
    write_tables(folder.path())?;
    let listed = investigate(folder.path())?;
    ensure!(listed.iter().any(|answered| answered.tool == "fleet_report"), "the list leads to no tables");
    let lost = follow(folder.path(), "fleet_report", json!({ "time": "2026-12-24" }))?;
    let first = &lost.first().context("no answer")?.document;
    ensure!(first["error"].to_string().contains("the newest are of 2026-11-26"), "{first:#}");
    ensure!(of(&lost, "fleet_report")?["answer"]["from"] == "2026-11-26T00", "{first:#}");
    let answers = follow(folder.path(), "fleet_report", json!({ "time": "2026-11-25" }))?;
    let services = of(&answers, "fleet_report")?;
    ensure!(services["answer"]["nodes"]["silent"] == 1, "{services:#}");
    let verdict = &services["verdict"][0];
    ensure!(verdict["closes"] == true && verdict["precise"] == true, "{verdict:#}");
    let doubts = verdict["doubts"].to_string();
    ensure!(doubts.contains("1 of 24 nodes did not report, the first prod/node-00011."), "{doubts}");
    ensure!(services["intervals"][0]["low"].is_number(), "{services:#}");
    // Services did not change; functions of one did.
    let changed = answers.iter().filter(|answered| answered.tool == "fleet_diff").find(|answered| {
        let group = &answered.document["answer"]["events"][0]["groups"][0];
        group["changed"] == true && group["values"][0].as_str().is_some_and(|name| name.starts_with("web"))
    });
    ensure!(changed.is_some(), "nothing led to the functions that changed");
    let waits = of(&answers, "fleet_latency")?;
    ensure!(waits["answer"]["events"][0]["groups"][0]["p50"]["cycles"].is_number(), "{waits:#}");
    let typed = answers.iter().find(|answered| answered.tool == "fleet_types").context("no types")?;
    ensure!(typed.document.to_string().contains("fleet_"), "{:#}", typed.document);
    Ok(())
}

/// On real recordings, an agent gets an answer or a reason from every tool, and finds nothing that
/// is not there.
#[test]
fn an_agent_asks_about_real_recordings() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for name in ["amd-epyc9254-c2c-seqlock", "intel-cfl-mem-rcppthread", "na-hsw-addr", "pipe-zstd-na"] {
        let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings").join(name).join("perf.data");
        let output = folder.path().join(format!("{name}.parquet"));
        precise([Path::new("import"), &data, Path::new("-q"), Path::new("-o"), &output])?.expect(0)?;
    }
    let mut client = AgentClient::start(folder.path(), &["."])?;
    let tools = client.request("tools/list", &json!({}))?;
    let (mut answered, mut refused) = (0, 0);
    for capture in fs::read_dir(folder.path())? {
        let capture = capture?.file_name().to_string_lossy().into_owned();
        for tool in tools["tools"].as_array().context("no tools")? {
            let mut arguments = json!({ "capture": capture });
            for required in tool["inputSchema"]["required"].as_array().into_iter().flatten() {
                let value = if required == "base" { json!(capture) } else { json!(["count > +10%"]) };
                arguments[required.as_str().context("a name")?] = value;
            }
            let name = tool["name"].as_str().context("a name")?;
            let document = client.call(name, if name == "captures" { &Value::Null } else { &arguments })?;
            match document["error"].as_str() {
                None => answered += 1,
                Some(_) => refused += 1,
            }
        }
    }
    client.end()?;
    ensure!(answered > 25 && refused > 10, "{answered} answers, {refused} refusals");
    Ok(())
}

/// The session of docs/mcp.md: each line that begins with `> ` is sent, and what follows is the
/// text of the answer, indented, where a line `…` stands for any lines.
#[test]
fn the_session_of_the_page_is_what_the_server_answers() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("../docs/mcp.md"))?;
    let folder = tempfile::tempdir()?;
    let data = root.join("recordings/amd-epyc9254-c2c-seqlock/perf.data");
    fs::create_dir(folder.path().join("captures"))?;
    let output = folder.path().join("captures/seqlock.parquet");
    precise([Path::new("import"), &data, Path::new("-q"), Path::new("-o"), &output])?.expect(0)?;
    let (_, fence) = page.split_once("<!-- session -->\n\n```\n").context("the page has no session")?;
    let (fence, _) = fence.split_once("\n```\n").context("the session has no end")?;
    let mut client = AgentClient::start(folder.path(), &["captures"])?;
    let mut compared = 0;
    for call in fence.split("> ").skip(1) {
        let (line, shown) = call.split_once('\n').context("a line and its answer")?;
        let answer = client.line(line)?;
        let text = answer["result"]["content"][0]["text"].as_str().context(answer.to_string())?;
        let text = format!("{:#}", serde_json::from_str::<Value>(text)?);
        let mut rest = text.as_str();
        for part in shown.trim_end().split("\n…\n") {
            let part = part.trim_start_matches("…\n").trim_end_matches("\n…");
            let (_, after) =
                rest.split_once(part).with_context(|| format!("docs/mcp.md shows\n{part}\nin\n{text}"))?;
            rest = after;
        }
        compared += 1;
    }
    ensure!(compared > 2, "only {compared} calls are shown");
    client.end()
}
