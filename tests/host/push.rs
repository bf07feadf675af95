//! `precise serve --push`: what backends get is what happened, and what they do not get is counted.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use precise_tests::{
    cgroup::Cgroup,
    kill_on_drop::KillOnDrop,
    otlp::{read_request, sums},
    program,
    receiver::{Delivery, Reaction, Receiver},
    run::{precise, undisturbed},
    serving::{FAULTS, Page, Serving},
};

const PAGES: u64 = 1009;

/// Returns the samples in the requests to a collector, by service and function.
fn samples(deliveries: &[Delivery]) -> Result<BTreeMap<(String, String), u64>> {
    let mut all = BTreeMap::new();
    for delivery in deliveries {
        for ((service, kind, stack, _), sum) in sums(&read_request(&delivery.body)?) {
            if kind == "page-faults_samples" {
                *all.entry((service, stack)).or_default() += sum;
            }
        }
    }
    Ok(all)
}

/// Returns the metric of pushes with this result.
fn pushed(page: &Page, metric: &str, result: &str) -> u64 {
    let label = format!("result=\"{result}\"");
    let all = page.all(metric);
    all.iter().filter(|(labels, _)| labels.contains(&label)).map(|(_, value)| *value as u64).sum()
}

fn sum(page: &Page, metric: &str) -> u64 {
    page.all(metric).values().map(|value| *value as u64).sum()
}

/// Checks a number. If events were missed, it proves nothing.
fn exactly(page: &Page, found: u64, wanted: u64) -> Result<()> {
    if found != wanted {
        page.undisturbed("page-faults")?;
    }
    ensure!(found == wanted, "{found}, not {wanted}:\n{}", page.0);
    Ok(())
}

/// Returns the samples in profiles for pprof, as Go's reads them.
fn pprof(folder: &Path, deliveries: &[Delivery]) -> Result<u64> {
    let mut files = Vec::new();
    for (at, delivery) in deliveries.iter().enumerate() {
        let file = folder.join(format!("{at}.pb.gz"));
        std::fs::write(&file, &delivery.body)?;
        files.push(file);
    }
    let output = Command::new("go")
        .args(["tool", "pprof", "-symbolize=none", "-raw"])
        .args(&files)
        .env("HOME", folder)
        .env("PPROF_TMPDIR", folder)
        .env("GOTOOLCHAIN", "local")
        .env("GOPROXY", "off")
        .output()
        .context("go cannot be started; `cargo xtask setup` installs golang-go")?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    // "Samples:", the types, then "VALUE VALUE: LOCATIONS" and labels.
    let (_, list) = text.split_once("Samples:\n").context("no samples")?;
    let (list, _) = list.split_once("Locations\n").context("no locations")?;
    let value = |line: &str| line.split_once(": ")?.0.split_whitespace().next()?.parse::<u64>().ok();
    Ok(list.lines().filter_map(value).sum())
}

#[test]
fn backends_get_what_happened() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let faults = program::faults(folder.path(), "push-faults")?;
        let headers = folder.path().join("headers");
        std::fs::write(&headers, "X-Scope-OrgID: team\n")?;
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        std::fs::set_permissions(&headers, mode)?;
        let (collector, pyroscope) = (Receiver::start([])?, Receiver::start([])?);
        let more = [
            format!("--push=otlp=http://{}", collector.address),
            format!("--push=pyroscope=http://{}", pyroscope.address),
            format!("--push-headers=pyroscope={}", headers.display()),
            "--push-every=1s".to_owned(),
        ];
        let more: Vec<&str> = more.iter().map(String::as_str).collect();
        let variables = [("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Bearer%20secret-token")];
        let serving = Serving::start_with(&[FAULTS, &more].concat(), &variables)?;
        let (one, two) = (Cgroup::new("push-one")?, Cgroup::new("push-two")?);
        one.run(&faults, [PAGES.to_string()])?;
        serving.later()?;
        std::thread::sleep(Duration::from_millis(1200));
        one.run(&faults, [PAGES.to_string()])?;
        two.run(&faults, [(3 * PAGES).to_string()])?;
        let all = 5 * PAGES;
        let page = serving.page_where("all samples were pushed to both", |page| {
            pushed(page, "precise_pushed_samples_total", "sent") >= 2 * all
        });
        // Too few, if some were missed.
        let page = page.or_else(|_| serving.scrape())?;
        for place in
            [format!("otlp=http://{}", collector.address), format!("pyroscope=http://{}", pyroscope.address)]
        {
            let labels = format!("precise_pushed_samples_total{{to=\"{place}\",result=\"sent\"}}");
            exactly(&page, page.value(&labels).unwrap_or(0.0) as u64, all)?;
        }
        exactly(&page, sum(&page, "precise_pushed_samples_total"), 2 * all)?;
        ensure!(sum(&page, "precise_push_waiting_samples") == 0, "{}", page.0);
        ensure!(!page.0.contains("secret-token"), "{}", page.0);
        let ended = serving.end(libc::SIGTERM)?.expect(0)?;
        ensure!(ended.stderr.contains("profiles go to otlp=http://127.0.0.1:"), "{ended:?}");
        ensure!(!ended.stderr.contains("secret-token") && !ended.stderr.contains("not take"), "{ended:?}");

        // More than one interval.
        let deliveries = collector.deliveries();
        ensure!(deliveries.len() >= 2, "{}", deliveries.len());
        let found = samples(&deliveries)?;
        ensure!(found.values().sum::<u64>() == all, "{found:?}");
        for (cgroup, wanted) in [("push-one", 2 * PAGES), ("push-two", 3 * PAGES)] {
            let of = |((service, stack), sum): (&(String, String), &u64)| {
                (service.contains(cgroup) && stack.ends_with("touch_pages")).then_some(*sum)
            };
            ensure!(found.iter().filter_map(of).sum::<u64>() == wanted, "{cgroup}: {found:?}");
        }
        for delivery in &deliveries {
            ensure!(delivery.head == "POST /v1development/profiles HTTP/1.1", "{}", delivery.head);
            ensure!(delivery.fields["authorization"] == "Bearer secret-token", "{:?}", delivery.fields);
        }
        let deliveries = pyroscope.deliveries();
        for delivery in &deliveries {
            ensure!(delivery.head.starts_with("POST /ingest?name="), "{}", delivery.head);
            ensure!(delivery.head.contains("event%3Dpage-faults%7D&from="), "{}", delivery.head);
            ensure!(delivery.fields["x-scope-orgid"] == "team", "{:?}", delivery.fields);
            ensure!(!delivery.fields.contains_key("authorization"), "{:?}", delivery.fields);
        }
        ensure!(pprof(folder.path(), &deliveries)? == all);
        Ok(())
    })
}

const CALLS: &str = r"
#include <sys/mman.h>
#include <unistd.h>
__attribute__((noinline)) void touch_pages(volatile char *p) { for (int i = 0; i < 16; i++) p[i * 4096] = 1; }
__attribute__((noinline)) void called(char *p) {
    touch_pages(p);
    madvise(p, 1 << 16, MADV_DONTNEED);
    usleep(5000);
}
int main(void) {
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
    char *p = mmap((void *)0x500000000000, 1 << 16, PROT_READ | PROT_WRITE, flags, -1, 0);
    for (;;) called(p);
}";

#[test]
fn profiles_have_callers() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let work = program::c_with(&["-fomit-frame-pointer"], folder.path(), "push-calls", CALLS)?;
    let collector = Receiver::start([])?;
    let push = format!("--push=otlp=http://{}", collector.address);
    let serving = Serving::start(&[FAULTS, &["-g", &push, "--push-every=1s"]].concat())?;
    let _work = KillOnDrop::from(Command::new(work).spawn()?);
    let begun = Instant::now();
    // The first samples come before the program is known.
    loop {
        let found = samples(&collector.deliveries())?;
        let whole = |((_, stack), _): (&(String, String), &u64)| stack.ends_with("main;called;touch_pages");
        if found.iter().any(whole) {
            break;
        }
        ensure!(begun.elapsed() < Duration::from_secs(30), "no callers: {found:?}");
        std::thread::sleep(Duration::from_millis(200));
    }
    serving.end(libc::SIGTERM)?.expect(0).map(drop)
}

#[test]
fn what_a_backend_does_not_take_is_counted() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let faults = program::faults(folder.path(), "push-faults")?;
        // Each of the lines is an interval.
        let receiver = Receiver::start([
            Reaction::Answer("503 Busy", "Retry-After: 1"),
            Reaction::Reset,
            Reaction::Take,
            Reaction::TakePart(1),
            Reaction::Answer("400 Bad Request", "Content-Type: text/plain"),
            Reaction::Slow(Duration::from_secs(15)),
            Reaction::Take,
            Reaction::TakePart(100),
        ])?;
        let push = format!("--push=otlp=http://{}", receiver.address);
        let serving = Serving::start(&[FAULTS, &[&push, "--push-every=1s"]].concat())?;
        let cgroup = Cgroup::new("push-losses")?;
        for (at, requests) in [3, 4, 5, 7, 8].into_iter().enumerate() {
            cgroup.run(&faults, [PAGES.to_string()])?;
            let all = (at as u64 + 1) * PAGES;
            let fate = |page: &Page| sum(page, "precise_pushed_samples_total");
            let page = serving.page_where("the interval has a fate", |page| {
                fate(page) >= all && receiver.deliveries().len() >= requests
            });
            let page = page.or_else(|_| serving.scrape())?;
            exactly(&page, fate(&page), all)?;
        }
        let page = serving.scrape()?;
        let of = |result| pushed(&page, "precise_pushed_samples_total", result);
        let found = ["sent", "partial", "refused", "failed", "displaced"].map(of);
        ensure!(found == [2 * PAGES, PAGES, 2 * PAGES, 0, 0], "{found:?}: {}", page.0);
        let requests = ["sent", "partial", "refused", "failed"]
            .map(|how| pushed(&page, "precise_push_requests_total", how));
        ensure!(requests == [2, 1, 2, 0], "{requests:?}: {}", page.0);
        // One of the two profiles; both; both.
        ensure!(sum(&page, "precise_push_refused_profiles_total") == 5, "{}", page.0);
        ensure!(sum(&page, "precise_push_retries_total") == 3, "{}", page.0);
        let ended = serving.end(libc::SIGTERM)?.expect(0)?;
        for sentence in [
            "does not take profiles: status 503: not now",
            "takes profiles again",
            "refused 1 of 2 profiles: no room",
        ] {
            ensure!(ended.stderr.contains(sentence), "{sentence}: {}", ended.stderr);
        }
        // What was taken is there, and an attempt that is repeated has the same bytes.
        let deliveries = receiver.deliveries();
        let taken: Vec<Delivery> =
            deliveries.iter().filter(|delivery| delivery.reaction == Reaction::Take).cloned().collect();
        ensure!(samples(&taken)?.values().sum::<u64>() == 2 * PAGES);
        ensure!(deliveries[0].body == deliveries[1].body && deliveries[1].body == deliveries[2].body);
        ensure!(deliveries[5].body == deliveries[6].body);
        Ok(())
    })
}

#[test]
fn a_dead_backend_costs_nothing_else() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let faults = program::faults(folder.path(), "push-faults")?;
        // Nobody listens at one place, and the other never answers.
        let silent = std::net::TcpListener::bind("127.0.0.1:0")?;
        let dead = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?;
        let places =
            [format!("--push=otlp=http://{dead}"), format!("--push=otlp=http://{}", silent.local_addr()?)];
        let more = [&places[0], &places[1], "--push-every=1s"];
        let serving = Serving::start(&[FAULTS, &more].concat())?;
        let cgroup = Cgroup::new("push-dead")?;
        for _ in 0..4 {
            cgroup.run(&faults, [PAGES.to_string()])?;
            std::thread::sleep(Duration::from_secs(1));
        }
        let page = serving.later()?;
        let found: f64 = page.all("precise_samples_total").values().sum();
        exactly(&page, found as u64, 4 * PAGES)?;
        ensure!(pushed(&page, "precise_pushed_samples_total", "sent") == 0, "{}", page.0);
        let begin = Instant::now();
        let ended = serving.end(libc::SIGTERM)?.expect(0)?;
        ensure!(begin.elapsed() < Duration::from_secs(20), "{:?}", begin.elapsed());
        ensure!(
            ended.stderr.contains(&format!("otlp=http://{dead} does not take profiles: cannot connect")),
            "{ended:?}"
        );
        ensure!(ended.stderr.contains("the run ended before otlp=http://"), "{ended:?}");
        Ok(())
    })
}

/// A server with TLS that takes everything, and prints its port.
const HTTPS: &str = r#"
import http.server, ssl, sys
class Taker(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers["content-length"]))
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()
    def log_message(self, *_):
        pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Taker)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(sys.argv[1], sys.argv[2])
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
"#;

#[test]
fn a_backend_with_tls_must_be_the_right_one() -> Result<()> {
    let testing = concat!(env!("CARGO_MANIFEST_DIR"), "/../precise-user/sampling/src/serve/testing");
    let [certificate, key] = ["certificate.pem", "key.pem"].map(|name| format!("{testing}/{name}"));
    let mut server: KillOnDrop = Command::new(program::python()?)
        .args(["-c", HTTPS, &certificate, &key])
        .stdout(Stdio::piped())
        .spawn()?
        .into();
    let mut port = String::new();
    BufReader::new(server.stdout.take().context("its standard output")?).read_line(&mut port)?;
    let push = format!("--push=otlp=https://localhost:{}", port.trim());
    let folder = tempfile::tempdir()?;
    let faults = program::faults(folder.path(), "push-faults")?;
    let cgroup = Cgroup::new("push-tls")?;
    let trusted = ("SSL_CERT_FILE", certificate.as_str());
    for (variables, said) in [(&[trusted][..], None), (&[], Some("does not take profiles: cannot connect: "))]
    {
        let serving = Serving::start_with(&[FAULTS, &[&push, "--push-every=1s"]].concat(), variables)?;
        cgroup.run(&faults, [PAGES.to_string()])?;
        if said.is_none() {
            serving.page_where("the samples were sent", |page| {
                pushed(page, "precise_pushed_samples_total", "sent") > 0
            })?;
        } else {
            serving.page_where("it was tried twice", |page| sum(page, "precise_push_retries_total") > 0)?;
        }
        let ended = serving.end(libc::SIGTERM)?.expect(0)?;
        ensure!(ended.stderr.contains(said.unwrap_or("profiles go to otlp=https://localhost")), "{ended:?}");
        ensure!(said.is_some() || !ended.stderr.contains("does not take"), "{ended:?}");
    }
    Ok(())
}

#[test]
fn a_place_that_cannot_be_right_is_refused_before_sampling() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let open = folder.path().join("open");
    std::fs::write(&open, "Authorization: secret-token\n")?;
    let open = format!("otlp={}", open.display());
    for (arguments, what) in [
        (&["--push", "http://collector:4318"][..], "the kinds are otlp and pyroscope"),
        (&["--push", "otlp=http://user:secret-token@c"], "a token belongs in the file of --push-headers"),
        (&["--push", "otlp=http://c", "--push", "otlp=http://c"], "is given twice"),
        (&["--push-headers", "otlp=/x"], "--push-headers otlp=FILE needs --push otlp=URL"),
        (&["--push", "otlp=http://c", "--push-headers", &open], "set the mode to 600"),
        (&["--push", "otlp=http://c", "--push-headers", "otlp=/nowhere"], "cannot read the header fields"),
        (&["--push", "otlp=http://c", "--push-every", "0.5s"], "at least 1s"),
        (&["--push", "otlp=http://c", "--push-memory", "1K"], "at least 1M"),
    ] {
        let ended = precise([&["serve", "--check-config"], arguments].concat())?.expect(2)?;
        let secret =
            ended.stderr.contains("secret-token") && !arguments.iter().any(|word| word.contains("secret"));
        ensure!(ended.stderr.contains(what) && !secret, "{arguments:?}: {}", ended.stderr);
    }
    precise(["serve", "--check-config", "--push", "otlp=https://collector.example:4318"])?.expect(0)?;
    Ok(())
}
