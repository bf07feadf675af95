//! `precise serve`: the scraped numbers are correct, and a scraper can read them.

use std::{
    io::Write as _,
    net::TcpStream,
    path::Path,
    process::{Command, Stdio},
    sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, ensure};
use precise_tests::{
    cgroup::Cgroup,
    clock::{self, Clock},
    kill_on_drop::KillOnDrop,
    load::{Load, spin},
    program,
    run::{precise, undisturbed, until_undisturbed},
    say,
    serving::{FAULTS, Page, Serving},
};

const PAGES: u64 = 1009;

fn serving(more: &[&str]) -> Result<Serving> {
    Serving::start(&[FAULTS, more].concat())
}

/// Returns the sum over all series of a metric whose labels contain this text.
fn sum(page: &Page, metric: &str, labels: &str) -> f64 {
    page.all(metric).iter().filter(|(found, _)| found.contains(labels)).map(|(_, value)| value).sum()
}

/// Checks a number. A page that shows that events were missed proves nothing.
fn exactly(page: &Page, found: f64, wanted: u64) -> Result<()> {
    if found != wanted as f64 {
        page.undisturbed("page-faults")?;
    }
    ensure!(found == wanted as f64, "{found}, not {wanted}:\n{}", page.0);
    Ok(())
}

#[test]
fn what_is_served_is_what_happened() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let faults = program::faults(folder.path(), "serve-faults")?;
        let serving = serving(&["--by", "cgroup,process"])?;
        let (one, two) = (Cgroup::new("serve-one")?, Cgroup::new("serve-two")?);
        one.run(&faults, [PAGES.to_string()])?;
        let page = serving.later()?;
        for metric in ["precise_samples_total", "precise_events_total"] {
            let found = page.all(metric);
            ensure!(found.len() == 1, "{found:?}");
            let (labels, value) = found.first_key_value().context("a series")?;
            ensure!(labels.starts_with("event=\"page-faults\",cgroup=\""), "{labels}");
            ensure!(labels.contains("serve-one") && labels.ends_with("process=\"serve-faults\""), "{labels}");
            exactly(&page, *value, PAGES)?;
        }

        // The counters continue from there, and never decrease.
        one.run(&faults, [(3 * PAGES).to_string()])?;
        two.run(&faults, [PAGES.to_string()])?;
        let page = serving.later()?;
        let samples = |cgroup: &str| sum(&page, "precise_samples_total", cgroup);
        exactly(&page, samples("serve-one"), 4 * PAGES)?;
        exactly(&page, samples("serve-two"), PAGES)?;

        // The ledger on the page closes.
        let of = |metric: &str| page.value(&format!("{metric}{{event=\"page-faults\"}}"));
        let fate = |name: &str| sum(&page, "precise_ledger_samples_total", &format!("fate=\"{name}\""));
        ensure!(fate("aggregated") == (5 * PAGES) as f64, "{}", page.0);
        ensure!(fate("rejected") == sum(&page, "precise_rejected_samples_total", ""), "{}", page.0);
        let seen = of("precise_seen_events_total").context("what was seen")?;
        ensure!(sum(&page, "precise_ledger_samples_total", "") == seen, "{}", page.0);
        ensure!(of("precise_unaccounted_samples") == Some(0.0), "{}", page.0);
        let resident = page.value("process_resident_memory_bytes").context("its memory")?;
        ensure!((4e6..1e9).contains(&resident), "{resident}");

        let ended = serving.end(libc::SIGTERM)?.expect(0)?;
        ensure!(
            ended.stderr.contains("serving page-faults of all processes at http://127.0.0.1:"),
            "{ended:#?}"
        );
        Ok(())
    })
}

#[test]
fn more_series_than_there_is_room_for_are_one() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let faults = program::faults(folder.path(), "faults")?;
        let serving = serving(&["--series", "2"])?;
        for number in 0..5 {
            Cgroup::new(&format!("serve-many-{number}"))?.run(&faults, [PAGES.to_string()])?;
            serving.later()?;
        }
        let page = serving.later()?;
        let found = page.all("precise_samples_total");
        ensure!(found.len() == 3, "{found:?}");
        exactly(&page, sum(&page, "precise_samples_total", "cgroup=\"(others)\""), 3 * PAGES)?;
        exactly(&page, sum(&page, "precise_samples_total", ""), 5 * PAGES)?;
        exactly(&page, sum(&page, "precise_overflow_samples_total", ""), 3 * PAGES)?;
        ensure!(page.value("precise_series") == Some(2.0), "{}", page.0);
        Ok(())
    })
}

/// Clears a terminal, reverses text, ends a line, ends a label, and is a label.
const PROCESS: &str = "\"} 1\n\\\u{202e}a{b=\"";
const CGROUP: &str = "\u{1b}[2J\"} 7\u{9b} precise_epochs_total 1\\";

/// Reads a page strictly according to the specification, and prints samples by labels as JSON.
const STRICT: &str = r#"
import json, sys
from prometheus_client.openmetrics.parser import text_string_to_metric_families
found, families = [], 0
for family in text_string_to_metric_families(sys.stdin.read()):
    families += 1
    for sample in family.samples:
        if sample.name == "precise_samples_total":
            found.append([sample.labels, sample.value])
print(json.dumps({"families": families, "samples": found}))
"#;

#[test]
fn names_are_labels_and_nothing_else() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let plain = program::faults(folder.path(), "plain")?;
        let hostile = folder.path().join(PROCESS);
        std::fs::rename(plain, &hostile)?;
        let serving = serving(&["--by", "cgroup,process"])?;
        Cgroup::new(CGROUP)?.run(&hostile, [PAGES.to_string()])?;
        let page = serving.later()?;
        let bad = page.0.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
        ensure!(bad.is_none(), "{bad:?} in {}", page.0);

        let read = with_input(program::python()?.as_path(), &["-c", STRICT], &page.0)?;
        let read: serde_json::Value = serde_json::from_str(&read)?;
        let samples = read["samples"].as_array().context("samples")?;
        ensure!(samples.len() == 1, "{read}");
        exactly(&page, samples[0][1].as_f64().context("a number")?, PAGES)?;
        let safe = |name: &str| name.replace(['\n', '\u{1b}', '\u{9b}', '\u{202e}'], "\u{fffd}");
        let labels = &samples[0][0];
        ensure!(labels["process"] == safe(PROCESS), "{labels}");
        ensure!(labels["cgroup"].as_str().is_some_and(|path| path.ends_with(&safe(CGROUP))), "{labels}");
        ensure!(read["families"].as_u64() >= Some(20), "{read}");
        Ok(())
    })
}

fn with_input(program: &Path, arguments: &[&str], input: &str) -> Result<String> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("input");
    std::fs::write(&file, input)?;
    let output =
        Command::new(program).args(arguments).stdin(Stdio::from(std::fs::File::open(file)?)).output()?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8(output.stdout)?)
}

/// A Prometheus that scrapes five times a second, which is ended when this is dropped.
struct Prometheus {
    _child: KillOnDrop,
    address: String,
}

impl Prometheus {
    fn start(folder: &Path, target: &str) -> Result<Self> {
        // A port that is free at the moment.
        let address = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let config = folder.join("prometheus.yml");
        std::fs::write(
            &config,
            format!(
                "global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}\n\
                 scrape_configs:\n- job_name: precise\n  static_configs: [{{targets: ['{target}']}}]\n"
            ),
        )?;
        let child = Command::new(program::prometheus()?)
            .arg(format!("--config.file={}", config.display()))
            .arg(format!("--storage.tsdb.path={}", folder.join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdout(Stdio::null())
            .stderr(std::fs::File::create(folder.join("prometheus.log"))?)
            .spawn()?;
        Ok(Self { _child: child.into(), address })
    }

    /// Returns the one value of a query, if it has one yet.
    fn query(&self, query: &str) -> Result<Option<f64>> {
        const ASK: &str = "import sys, urllib.request, urllib.parse\n\
             query = urllib.parse.urlencode({'query': sys.argv[2]})\n\
             try: print(urllib.request.urlopen(f'http://{sys.argv[1]}/api/v1/query?{query}').read().decode())\n\
             except OSError: print('{}')";
        let answer = with_input(program::python()?.as_path(), &["-c", ASK, &self.address, query], "")?;
        let answer: serde_json::Value = serde_json::from_str(&answer)?;
        let value = answer["data"]["result"][0]["value"][1].as_str();
        Ok(value.and_then(|value| value.parse().ok()))
    }

    fn until(&self, query: &str, wanted: f64) -> Result<()> {
        let begin = Instant::now();
        loop {
            let value = self.query(query)?;
            if value == Some(wanted) {
                return Ok(());
            }
            ensure!(begin.elapsed() < Duration::from_secs(60), "{query} is {value:?}, not {wanted}");
            std::thread::sleep(Duration::from_millis(200));
        }
    }
}

#[test]
fn prometheus_scrapes_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let faults = program::faults(folder.path(), "faults")?;
    let serving = serving(&["--by", "cgroup,process"])?;
    let prometheus = Prometheus::start(folder.path(), &serving.address.to_string())?;
    prometheus.until("up{job=\"precise\"}", 1.0)?;
    let cgroup = Cgroup::new("serve-prometheus")?;
    let query =
        "precise_samples_total{event=\"page-faults\",cgroup=~\".*serve-prometheus\",process=\"faults\"}";
    let mut before = 0.0;
    for _ in 0..2 {
        cgroup.run(&faults, [PAGES.to_string()])?;
        // Prometheus itself makes tens of thousands of faults, of which the program sometimes
        // misses some. This test checks only whether the numbers arrive.
        let served = sum(&serving.later()?, "precise_samples_total", "serve-prometheus");
        ensure!(served > before && served <= before + PAGES as f64, "{served} after {before}");
        prometheus.until(query, served)?;
        before = served;
    }
    // Prometheus has the types and names from the page.
    prometheus.until("sum(precise_ledger_samples_total{fate=\"aggregated\"})", before)?;
    prometheus.until("precise_build_info", 1.0)?;
    let took = prometheus.query("scrape_duration_seconds")?.context("how long a scrape takes")?;
    say(&format!("a scrape took Prometheus {took} s"));
    Ok(())
}

/// perf 6.1 crashes while another event requests build ids (docs/journal/0005-build-ids.md).
/// `precise serve` runs all the time, so it must not request them.
#[test]
fn an_older_perf_lives_beside_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let serving = serving(&[])?;
    let output = Command::new("perf")
        .args(["record", "-N", "-e", "page-faults", "-c", "1", "-o"])
        .arg(folder.path().join("perf.data"))
        .arg("true")
        .output()
        .context("perf cannot be started")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serving.end(libc::SIGINT)?.expect(0)?;
    Ok(())
}

#[test]
fn it_ends_with_what_ends_it() -> Result<()> {
    let folder = tempfile::tempdir()?;
    // The kill switch.
    let stop = folder.path().join("stop");
    let mut killed = serving(&["--stop-file", stop.to_str().context("a path")?])?;
    std::fs::write(&stop, "")?;
    let thrown = Clock::start();
    let ended = killed.wait()?.expect(70)?;
    ensure!(thrown.elapsed() < Duration::from_secs(5), "{:?}", thrown.elapsed());
    ensure!(ended.stderr.contains("the kill switch"), "{ended:#?}");
    // A command: serve exits with its code.
    let arguments = ["serve", "--listen", "127.0.0.1:0", "-e", "page-faults", "--", "sh", "-c", "exit 7"];
    precise(arguments)?.expect(7)?;
    // A duration.
    let arguments = ["serve", "--listen", "127.0.0.1:0", "-e", "page-faults", "--duration", "300ms"];
    precise(arguments)?.expect(0)?;
    Ok(())
}

#[test]
fn what_cannot_be_served_is_said() -> Result<()> {
    let serving = serving(&[])?;
    let taken = serving.address.to_string();
    let ended = precise(["serve", "-e", "page-faults", "--listen", &taken])?.expect(1)?;
    ensure!(ended.stderr.contains("cannot listen on 127.0.0.1:"), "{ended:#?}");
    for (arguments, says) in [
        (&["--by", "address"][..], "address cannot be a label: it has no bounded number of values"),
        (&["--by", "level"], "samples of page-faults have no memory levels"),
        (&["--series", "100K"], "--series must be at most 16K"),
        (&["--listen", "localhost"], "invalid socket address"),
        (&["--listen", "0.0.0.0:0"], "other machines can reach 0.0.0.0:0, so it needs TLS and a token"),
        (&["--tls-cert", "x"], "--tls-key"),
        (&["--archive", "/tmp/x"], "--captures"),
        (&["--allow-host", "http://node1"], "--allow-host: `http://node1` is not the name of a host"),
    ] {
        let ended = precise([&["serve", "-e", "page-faults"], arguments].concat())?.expect(2)?;
        ensure!(ended.stderr.contains(says), "{arguments:?}: {ended:#?}");
    }
    Ok(())
}

/// The time of one measurement of [`requests_change_nothing_that_is_sampled`].
const MEASURED: Duration = Duration::from_millis(2500);
/// The requests that are more than any scraper sends.
const FLOOD: u64 = 500;

/// What a run sampled, between two pages.
#[derive(Debug)]
struct Rate {
    /// Samples that reached the program, per second.
    samples: f64,
    epochs: f64,
    changes: f64,
    /// The frequency or the period, whichever the run has.
    asked: f64,
    requests: f64,
}

/// Measures what `serving` samples while `meanwhile` goes on.
fn rate(serving: &Serving, meanwhile: impl FnOnce() -> Result<()>) -> Result<Rate> {
    let begin = serving.later()?;
    meanwhile()?;
    let end = serving.later()?;
    let grown = |metric: &str| sum(&end, metric, "") - sum(&begin, metric, "");
    let since = |metric: &str| {
        let [begin, end] = [&begin, &end].map(|page| page.value(metric));
        Ok::<_, anyhow::Error>(end.context("a value")? - begin.context("a value")?)
    };
    let seconds = since("precise_last_epoch_timestamp_seconds")?;
    Ok(Rate {
        samples: grown("precise_ledger_samples_total") / seconds,
        epochs: since("precise_epochs_total")? / seconds,
        changes: grown("precise_rate_changes_total"),
        asked: sum(&end, "precise_frequency_hertz", "") + sum(&end, "precise_period_events", ""),
        requests: grown("precise_requests_total"),
    })
}

/// Sends requests from four threads, as fast as they are answered, for [`MEASURED`] and until
/// [`FLOOD`] of them are answered.
fn flood(serving: &Serving) -> Result<u64> {
    let (stop, sent) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    // In a flood, some connections make room for others.
                    let answer = serving.ask("GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n");
                    sent.fetch_add(u64::from(answer.is_ok()), Relaxed);
                }
            });
        }
        let begin = Instant::now();
        while begin.elapsed() < MEASURED
            || (sent.load(Relaxed) <= FLOOD && begin.elapsed() < Duration::from_secs(60))
        {
            std::thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Relaxed);
    });
    Ok(sent.into_inner())
}

/// Scrapes, and checks how long it took. The connections are handled in turn, so one scrape of
/// three may take longer.
fn quick_scrape(serving: &Serving) -> Result<Page> {
    let mut took = Vec::new();
    for _ in 0..3 {
        let begin = Clock::start();
        let page = serving.scrape()?;
        if begin.elapsed() < Duration::from_secs(1) {
            return Ok(page);
        }
        took.push(begin.elapsed());
    }
    anyhow::bail!("scrapes took {took:?}")
}

#[test]
fn requests_change_nothing_that_is_sampled() -> Result<()> {
    let serving = Serving::start(&[
        "-e",
        "cpu-clock",
        "-F",
        "199",
        "--overhead",
        "4%",
        "--epoch",
        "200ms",
        "--by",
        "none",
    ])?;
    // The timers of idle CPUs take no samples, so all of them are busy, all the time.
    let cpus: Vec<u32> = (0..std::thread::available_parallelism()?.get() as u32).collect();
    let _load = Load::on(&cpus, spin);
    until_undisturbed(|| {
        let quiet = rate(&serving, || {
            std::thread::sleep(MEASURED);
            Ok(())
        })?;
        let mut answered = 0;
        let flooded = rate(&serving, || {
            answered = flood(&serving)?;
            Ok(())
        })?;
        let said = format!("{answered} requests: {quiet:?} without, {flooded:?} with them");
        say(&said);
        ensure!(flooded.requests >= answered as f64 && answered > FLOOD, "{said}");
        // On a busy machine others come and go between the two. A request that changes what is
        // sampled does so each time.
        let alike = [(quiet.samples, flooded.samples), (quiet.epochs, flooded.epochs)]
            .iter()
            .all(|(quiet, flooded)| (0.8..1.25).contains(&(flooded / quiet)));
        let unchanged = (quiet.changes, flooded.changes) == (0.0, 0.0) && quiet.asked == flooded.asked;
        Ok((!alike || !unchanged).then_some(said))
    })?;

    // More idle connections of one peer than it may have, and requests that do not end.
    let mut idle: Vec<TcpStream> = Vec::new();
    for number in 0..200 {
        let mut stream = serving.connect()?;
        if number % 2 == 0 {
            // The server may have closed it already.
            let _closed = stream.write_all(b"GET /metrics HTTP/1.1\r\nhost:");
        }
        idle.push(stream);
        if number % 50 == 49 {
            quick_scrape(&serving)?;
        }
    }
    // The page of an epoch also keeps the counters of the server.
    let page = serving.later()?;
    let closed = sum(&page, "precise_closed_connections_total", "displaced");
    ensure!(closed >= 100.0, "{}", page.0);

    // A web page's own name for this machine.
    let (head, body) = serving.ask("GET /metrics HTTP/1.1\r\nhost: attacker.example:7732\r\n\r\n")?;
    ensure!(head.starts_with("HTTP/1.1 421 ") && !body.contains("precise_"), "{head}: {body}");
    let page = serving.later()?;
    ensure!(sum(&page, "precise_requests_total", "421") == 1.0, "{}", page.0);
    ensure!(page.value("precise_answering_seconds_total") > Some(0.0), "{}", page.0);

    // Who does not ask for OpenMetrics gets what promtool reads.
    let (head, page) = serving.ask("GET /metrics HTTP/1.0\r\n\r\n")?;
    ensure!(head.contains("text/plain; version=0.0.4"), "{head}");
    let said = with_input(program::promtool()?.as_path(), &["check", "metrics"], &page)?;
    ensure!(said.is_empty(), "{said}");
    Ok(())
}

/// Days of a node whose pods come and go, in seconds: more pods than the filter has room for, but
/// never as many at a time.
#[test]
fn new_cgroups_have_samples_however_many_are_gone() -> Result<()> {
    const AT_A_TIME: usize = 2400;
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let faults = program::faults(folder.path(), "faults")?;
        let pods = Cgroup::new("serve-pods")?;
        let serving = serving(&["-G", &format!("{}/*", pods.path)])?;
        for round in 0..2 {
            let made: Vec<_> =
                (0..AT_A_TIME).map(|pod| pods.child(&format!("{round}-{pod}"))).collect::<Result<_>>()?;
            // Longer than the time between two walks of the tree.
            clock::sleep(Duration::from_millis(1200));
            made.into_iter().try_for_each(Cgroup::remove)?;
            clock::sleep(Duration::from_millis(2400));
        }
        let new = pods.child("new")?;
        clock::sleep(Duration::from_millis(1200));
        new.run(&faults, [PAGES.to_string()])?;
        let page = serving.later()?;
        exactly(&page, sum(&page, "precise_samples_total", "serve-pods/new"), PAGES)?;
        Ok(())
    })
}
