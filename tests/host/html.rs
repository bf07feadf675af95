//! Opens the page of `precise report --html` in a real browser, at the width of a phone and of a
//! desktop: nothing scrolls sideways, tables sort, the tooltip appears, the console stays empty,
//! and nothing is fetched.

use precise::capture::CaptureFile as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use precise::model::testing::CaptureBuilder;
use precise::model::{Capture, Dimension};
use precise_tests::{run::precise, serving::Serving};
use serde_json::Value;

/// A hostile name, as a profiled program may choose it.
const HOSTILE: &str = "</script><script>document.title='owned'</script><img src=http://192.0.2.1/x onerror=\"document.title='owned'\">\
                       'x\u{1b}[31m\u{202e}cod\u{7f}";

/// Writes a capture of loads of a few functions, cgroups and levels over time, one of each with
/// this name.
fn capture(path: &Path, name: &str) -> Result<()> {
    let mut builder = CaptureBuilder::new();
    let meta = builder.meta();
    meta.events[0].name = "loads".into();
    meta.dimensions.retain(|dimension| *dimension != Dimension::Outcome);
    meta.command = ["precise", "record", "-e", "loads", "--comm", name].map(str::to_owned).to_vec();
    let long = "alloc::collections::btree::map::BTreeMap<alloc::string::String, service::model::Order>::get_or_insert_with";
    for epoch in 0..60u32 {
        for (at, (function, cgroup, source, latency)) in [
            ("parse", "/system.slice/web.service", 0x2_6810_0142, 5),
            (long, "/system.slice/web.service", 0x1a_6820_1042, 300),
            (name, name, 0x1a_5220_1042, 500),
            (
                "send",
                "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1.slice",
                0x3a_6820_1042,
                700,
            ),
        ]
        .into_iter()
        .enumerate()
        {
            let samples = 3 + u64::from(epoch % 7) * (at as u64 + 1);
            let cell = builder.cell().samples(samples).latency(latency + epoch % 5 * 20).epoch(epoch);
            let cell = cell.process(100 + at as u32, "app").cgroup(at as u64 + 1, cgroup).cpu(0);
            let cell =
                cell.code(0x1000 + 64 * at as u64, "/usr/bin/app", function, "/src/app.c", 10 + at as u32);
            cell.data(0x7000_0000 + 4096 * u64::from(epoch), "[heap]", "").data_src(source);
        }
    }
    let mut capture: Capture = builder.build();
    // Epochs of a real run do not begin at round times.
    for (at, epoch) in capture.meta.epochs.iter_mut().enumerate() {
        epoch.start_ns += if at == 0 { 0 } else { 400_001 };
        epoch.end_ns += 400_001;
    }
    Ok(capture.write(path)?)
}

/// Opens the page in a frame of the desired width, because windows have a minimum width, and writes
/// the results as JSON.
const HARNESS: &str = r##"<!DOCTYPE html><meta charset="utf-8"><body><iframe id="f" src="page.html" width="WIDTH" height="900"></iframe>
<pre id="result"></pre><script>
const found = { errors: [] };
const frame = document.getElementById("f");
frame.addEventListener("load", () => {
  const w = frame.contentWindow, d = frame.contentDocument;
  w.addEventListener("error", (e) => found.errors.push(String(e.message)));
  d.addEventListener("securitypolicyviolation", (e) => found.errors.push("policy: " + e.blockedURI));
  found.title = d.title;
  found.width = d.documentElement.clientWidth;
  found.scrolls = d.documentElement.scrollWidth;
  d.querySelectorAll("details").forEach((e) => { e.open = true; });
  found.scrollsOpen = d.documentElement.scrollWidth;
  found.resources = w.performance.getEntriesByType("resource").map((e) => e.name);
  found.scripts = d.querySelectorAll("script").length;
  found.images = d.querySelectorAll("img").length;
  const table = [...d.querySelectorAll("table")].find((t) =>
    [...t.querySelectorAll("th button")].some((b) => b.textContent === "Function"));
  const column = (name) => [...table.querySelectorAll("th")].find((h) => h.textContent === name);
  const read = (at) => [...table.tBodies[0].rows].map((r) => r.cells[at].textContent);
  const samples = column("Samples"), names = column("Function");
  found.before = read(samples.cellIndex);
  samples.querySelector("button").click();
  found.down = read(samples.cellIndex);
  found.sorted = samples.getAttribute("aria-sort");
  samples.querySelector("button").click();
  found.up = read(samples.cellIndex);
  names.querySelector("button").click();
  found.names = read(names.cellIndex);
  found.others = samples.getAttribute("aria-sort");
  const svg = d.querySelector("svg[data-panel]"), box = svg.getBoundingClientRect(), tip = d.getElementById("tip");
  found.hidden = tip.hidden;
  svg.dispatchEvent(new w.PointerEvent("pointermove", { clientX: box.left + box.width / 2, clientY: box.top + box.height / 2 }));
  found.tip = tip.hidden ? "" : tip.textContent;
  const t = tip.getBoundingClientRect();
  found.inside = t.left >= 0 && t.right <= d.documentElement.clientWidth;
  svg.dispatchEvent(new w.PointerEvent("pointerleave"));
  found.gone = tip.hidden;
  svg.dispatchEvent(new w.KeyboardEvent("keydown", { key: "ArrowRight", bubbles: true }));
  found.keys = tip.hidden ? "" : tip.textContent;

  // A selection: by keys, by dragging, by the address; then none.
  const first = d.querySelector("table[data-follows]");
  const rows = () => [...first.tBodies[0].rows].filter((r) => !r.hidden).map((r) =>
    [...r.cells].map((c) => c.textContent));
  found.whole = rows();
  const bar = d.getElementById("selected");
  const told = () => bar.hidden ? "" : bar.querySelector(".what").textContent + " " + bar.querySelector("code").textContent;
  svg.dispatchEvent(new w.KeyboardEvent("keydown", { key: "ArrowRight", shiftKey: true, bubbles: true }));
  found.byKeys = told();
  bar.querySelector("button").click();
  const steps = w.history.length;
  const drag = (type, part) => svg.dispatchEvent(new w.PointerEvent(type, {
    clientX: box.left + box.width * part, clientY: box.top + 5, button: 0, pointerId: 1 }));
  drag("pointerdown", 0.251); drag("pointermove", 0.4); drag("pointermove", 0.499); drag("pointerup", 0.499);
  found.dragged = { told: told(), rows: rows(), hash: w.location.hash, scrolls: d.documentElement.scrollWidth,
    steps: w.history.length - steps };
  bar.querySelector("button").click();
  found.cleared = { told: told(), rows: rows(), hash: w.location.hash };
  // A link from a page whose columns were others, and Back.
  w.location.hash = found.dragged.hash.replace(/=.*,/, "=0s..9.5s,");
  w.dispatchEvent(new w.HashChangeEvent("hashchange"));
  found.shared = told();
  w.history.replaceState(null, "", w.location.pathname);
  w.dispatchEvent(new w.HashChangeEvent("hashchange"));
  found.back = told();
  w.location.hash = found.dragged.hash;
  w.dispatchEvent(new w.HashChangeEvent("hashchange"));
  found.again = told();
  d.body.dispatchEvent(new w.KeyboardEvent("keydown", { key: "Escape", bubbles: true }));
  found.escaped = told();

  // Search.
  const find = d.getElementById("find");
  d.body.dispatchEvent(new w.KeyboardEvent("keydown", { key: "/", bubbles: true, cancelable: true }));
  found.focused = d.activeElement === find;
  find.value = "PARSE";
  find.dispatchEvent(new w.Event("input"));
  const shown = [...d.querySelectorAll("table.sortable tbody tr")].filter((r) => r.getClientRects().length > 0);
  found.matches = shown.map((r) => r.textContent);
  found.said = d.getElementById("found").textContent;
  // The name of a row is seen, however narrow the page.
  const name = shown[0] && shown[0].querySelector("td.text").getBoundingClientRect();
  found.name = name ? [name.left, name.right] : [];
  document.getElementById("result").textContent = "RESULT" + JSON.stringify(found) + "RESULT";
});
</script></body>"##;

struct Browser {
    folder: tempfile::TempDir,
}

impl Browser {
    /// Loads a file. Returns the output for `flags`, and the console messages.
    fn load(&self, file: &Path, flags: &[&str]) -> Result<(String, String)> {
        let profile = tempfile::tempdir()?;
        let output = Command::new("chromium")
            .args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"])
            .args(["--disable-background-networking", "--disable-component-update", "--disable-sync"])
            .args(["--disable-dev-shm-usage", "--hide-scrollbars", "--enable-logging=stderr"])
            .args(["--host-resolver-rules=MAP * ~NOTFOUND", "--allow-file-access-from-files"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .args(flags)
            .arg(format!("file://{}", file.display()))
            .output()
            .context("chromium cannot be started; `cargo xtask setup` installs it")?;
        ensure!(output.status.success(), "chromium: {}", String::from_utf8_lossy(&output.stderr));
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let console = text(&output.stderr);
        let console = console.lines().filter(|line| line.contains("CONSOLE")).collect::<Vec<_>>().join("\n");
        Ok((text(&output.stdout), console))
    }

    /// Returns the results of the harness in a frame of `width` pixels.
    fn look(&self, width: u32) -> Result<Value> {
        let harness = self.folder.path().join(format!("look-{width}.html"));
        fs::write(&harness, HARNESS.replace("WIDTH", &width.to_string()))?;
        result(
            &self.load(&harness, &["--window-size=1400,1000", "--virtual-time-budget=5000", "--dump-dom"])?,
        )
    }
}

/// Returns what a harness wrote, from the document and the messages of the console.
fn result((dom, console): &(String, String)) -> Result<Value> {
    ensure!(console.is_empty(), "the console says: {console}");
    // The text of an element is escaped in the dump.
    let result = dom
        .rsplit_once("<pre id=\"result\">RESULT")
        .and_then(|(_, rest)| rest.split_once("RESULT</pre>"))
        .map(|(json, _)| json.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
        .with_context(|| format!("the harness found nothing: {dom}"))?;
    Ok(serde_json::from_str(&result)?)
}

fn page(name: &str) -> Result<(Browser, PathBuf)> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("loads.parquet");
    capture(&file, name)?;
    let page = folder.path().join("page.html");
    let (input, output) = (file.display().to_string(), page.display().to_string());
    precise(["report", "-i", &input, "--html", &output])?.expect(0)?;
    Ok((Browser { folder }, page))
}

#[test]
fn the_page_works_at_the_width_of_a_phone_and_of_a_desk() -> Result<()> {
    let (browser, page) = page(HOSTILE)?;
    for width in [390, 1400] {
        let found = browser.look(width)?;
        ensure!(found["errors"] == Value::Array(Vec::new()), "{found:#}");
        ensure!(found["resources"] == Value::Array(Vec::new()), "it fetches: {found:#}");
        let [inner, scrolls, open] =
            ["width", "scrolls", "scrollsOpen"].map(|name| found[name].as_u64().unwrap_or(0));
        ensure!(inner > 0 && scrolls <= inner && open <= inner, "scrolls sideways at {width}: {found:#}");
        ensure!(found["title"] == "loads on testhost", "{found:#}");
        // Our script, the numbers of the picture and those of the tables; no element from a hostile
        // name.
        ensure!(found["scripts"] == 3 && found["images"] == 0, "{found:#}");

        let list = |name: &str| -> Vec<String> {
            let list = found[name].as_array().into_iter().flatten();
            list.filter_map(|text| text.as_str().map(str::to_owned)).collect()
        };
        let (down, up, names) = (list("down"), list("up"), list("names"));
        ensure!(down.len() == 4 && found["sorted"] == "descending", "{found:#}");
        ensure!(list("before") == down && up.iter().eq(down.iter().rev()) && up != down, "{found:#}");
        ensure!(
            names.iter().position(|n| n == "parse") < names.iter().position(|n| n == "send"),
            "{found:#}"
        );
        ensure!(found["others"].is_null(), "one column says that it is sorted: {found:#}");

        ensure!(found["hidden"] == true && found["gone"] == true && found["inside"] == true, "{found:#}");
        for tip in ["tip", "keys"] {
            let text = found[tip].as_str().unwrap_or_default();
            ensure!(
                text.contains(" of ") && text.contains(" s to ") && text.contains("cycles"),
                "{tip}: {found:#}"
            );
        }
        selects(&found, width)?;
        searches(&found, width)?;
    }
    // As a user opens it.
    let (dom, console) = browser.load(&page, &["--dump-dom"])?;
    ensure!(console.is_empty() && dom.contains("class=\"js\""), "{console}");
    Ok(())
}

/// A selection in a picture: the tables show its samples only, and the command that is told shows
/// as many.
fn selects(found: &Value, width: u32) -> Result<()> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    ensure!(text(&found["byKeys"]).contains(" --time "), "{found:#}");
    let dragged = &found["dragged"];
    let told = text(&dragged["told"]);
    // A quarter of 60 s, in columns of one second.
    ensure!(told.starts_with("Tables show 15.00 s to 30.00 s of "), "{told}");
    ensure!(told.contains("loads.parquet --time 15.000400001s..30.000400001s"), "{told}");
    let hash = text(&dragged["hash"]);
    ensure!(hash.starts_with("#select=15.000400001s..30.000400001s,"), "{dragged:#}");
    // Dragging on is no further step back.
    ensure!(dragged["steps"] == 1, "{dragged:#}");
    ensure!(dragged["scrolls"].as_u64() <= Some(width.into()), "scrolls sideways: {dragged:#}");
    // The command is of as many samples, and of no other time.
    let command = told.split_once("precise ").map_or("", |(_, command)| command);
    let printed = precise(command.split(' '))?.expect(0)?.stdout.replace('\n', " ");
    let samples = text(&dragged["rows"][0][1]);
    ensure!(printed.contains(&format!(": {samples} of 2,460 samples.")), "{samples}: {printed}");
    ensure!(!printed.contains("widened"), "{printed}");
    // One cgroup is left in the table of cgroups, with all of the samples.
    let rows = |value: &Value| value["rows"].as_array().map_or(0, Vec::len);
    ensure!(rows(dragged) == 1 && text(&dragged["rows"][0][0]).starts_with("100.0%"), "{dragged:#}");
    let whole = found["whole"].as_array().map_or(0, Vec::len);
    ensure!(whole > 1 && found["cleared"]["rows"] == found["whole"], "{found:#}");
    ensure!(found["cleared"]["told"] == "" && found["cleared"]["hash"] == "", "{found:#}");
    ensure!(text(&found["shared"]).starts_with("Tables show 0.00 s to 10.00 s"), "{found:#}");
    ensure!(found["back"] == "" && found["again"] == dragged["told"], "{found:#}");
    ensure!(found["escaped"] == "", "{found:#}");
    Ok(())
}

/// The search leaves the rows with the text, whose names are within the page.
fn searches(found: &Value, width: u32) -> Result<()> {
    let matches = found["matches"].as_array().context("a list")?;
    let all = |text: &Value| text.as_str().is_some_and(|text| text.contains("parse"));
    ensure!(found["focused"] == true && !matches.is_empty() && matches.iter().all(all), "{found:#}");
    let said = found["said"].as_str().unwrap_or_default();
    ensure!(said == format!("{} row{}", matches.len(), if matches.len() == 1 { "" } else { "s" }), "{said}");
    let place = |at: usize| found["name"][at].as_f64().unwrap_or(-1.0);
    ensure!(place(0) >= 0.0 && place(1) <= width.into(), "{found:#}");
    Ok(())
}

/// Loads the live page of `precise serve` in two widths, and writes what is on it as JSON.
const LIVE: &str = r##"<!DOCTYPE html><meta charset="utf-8"><body><iframe src="live.html" width="390" height="900"></iframe>
<iframe src="live.html" width="1400" height="900"></iframe><pre id="result"></pre><script>
addEventListener("load", () => {
  const found = [...document.querySelectorAll("iframe")].map((frame) => {
    const d = frame.contentDocument, root = d.documentElement;
    return { width: root.clientWidth, scrolls: root.scrollWidth, pictures: d.querySelectorAll("figure svg path").length,
      functions: [...d.querySelectorAll("td.text")].map((e) => e.textContent), scripts: d.querySelectorAll("script").length,
      ledger: d.getElementById("trust").nextElementSibling.textContent, hint: d.querySelector(".js-only").offsetParent !== null };
  });
  document.getElementById("result").textContent = "RESULT" + JSON.stringify(found) + "RESULT";
});
</script></body>"##;

#[test]
fn the_live_page_of_serve_is_for_a_phone_and_for_a_desk() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let captures = folder.path().join("captures").display().to_string();
    let serving = Serving::start(&["-e", "cpu-clock", "--epoch", "100ms", "--captures", &captures])?;
    // The first epochs wait for their names, and on an idle machine for a sample.
    serving.page_where("the page shows samples", |_| {
        let answer = serving.ask("GET / HTTP/1.0\r\n\r\n");
        answer.is_ok_and(|(_, html)| html.contains("js-only") && html.contains("<td class=\"text\""))
    })?;
    let (head, html) = serving.ask("GET / HTTP/1.0\r\n\r\n")?;
    ensure!(head.contains("content-type: text/html; charset=utf-8"), "{head}");
    fs::write(folder.path().join("live.html"), html)?;
    let harness = folder.path().join("look.html");
    fs::write(&harness, LIVE)?;
    let browser = Browser { folder };
    let found = result(&browser.load(&harness, &["--virtual-time-budget=3000", "--dump-dom"])?)?;
    for page in found.as_array().context("two pages")? {
        let number = |name: &str| page[name].as_u64().unwrap_or(0);
        ensure!(number("width") > 0 && number("scrolls") <= number("width"), "scrolls sideways: {page:#}");
        ensure!(number("pictures") > 0 && number("scripts") == 0 && page["hint"] == false, "{page:#}");
        ensure!(page["functions"].as_array().is_some_and(|names| !names.is_empty()), "{page:#}");
        ensure!(page["ledger"].as_str().is_some_and(|text| text.contains("cpu-clock:")), "{page:#}");
    }
    Ok(())
}

/// With `PRECISE_SCREENSHOTS=FOLDER`, saves screenshots for a person to look at: a desktop, a
/// phone.
#[test]
fn it_can_be_looked_at() -> Result<()> {
    let (browser, page) = page("lookup")?;
    let kept = std::env::var_os("PRECISE_SCREENSHOTS").map(PathBuf::from);
    let folder = kept.unwrap_or_else(|| browser.folder.path().to_owned());
    let shot = folder.join("desk.png");
    let flag = format!("--screenshot={}", shot.display());
    browser.load(&page, &["--window-size=1280,2400", &flag])?;
    let bytes = fs::read(&shot)?;
    ensure!(bytes.starts_with(b"\x89PNG") && bytes.len() > 20_000, "{} bytes", bytes.len());
    let phone = browser.folder.path().join("phone.html");
    fs::write(
        &phone,
        "<body style=\"margin:0\"><iframe src=\"page.html\" width=\"360\" height=\"3600\" frameborder=\"0\"></iframe>",
    )?;
    let shot = folder.join("phone.png");
    browser.load(&phone, &["--window-size=500,3600", &format!("--screenshot={}", shot.display())])?;
    ensure!(fs::read(&shot)?.len() > 20_000, "an empty picture");
    Ok(())
}
