//! Reads exported OTLP profiles with OpenTelemetry's own classes: every sum is that of the capture.

use std::path::Path;

use anyhow::{Context as _, Result, ensure};
use precise::capture::CaptureFile as _;
use precise::model::testing::{CaptureBuilder, L1, RAM, REMOTE_RAM};
use precise::model::{Capture, Chain, Fields, Frame, Name, Owner, Row};
use precise_tests::otlp::{StackSums, read_request, sums};
use precise_tests::run::precise;
use serde_json::json;

/// Exports a capture with the binary, and reads what it wrote.
fn exported(folder: &Path, capture: &Capture, more: &[&str]) -> Result<serde_json::Value> {
    let (from, to) = (folder.join("capture.parquet"), folder.join("profiles.otlp"));
    capture.write(&from)?;
    let paths = [&from, &to].map(|path| path.display().to_string());
    let arguments = ["export", "--format", "otlp", "-i", &paths[0], "-o", &paths[1]];
    precise([&arguments, more].concat())?.expect(0)?;
    read_request(&std::fs::read(&to)?)
}

/// Returns the sums of a capture, counted row by row.
fn expected(capture: &Capture, service: impl Fn(&str) -> String) -> StackSums {
    let names = &capture.names;
    let text = |name: Name| match name {
        Name::Known(id) => names.get(id).to_owned(),
        Name::Unknown(_) => String::new(),
    };
    let frames = |code: u32| -> Vec<String> {
        let place = &capture.code[code as usize];
        let name = match (place.function, place.module) {
            (Name::Known(id), _) => names.get(id).to_owned(),
            (Name::Unknown(why), Name::Known(id)) => {
                format!("{} [{}]", names.get(id).rsplit('/').next().unwrap_or_default(), why.words())
            }
            (Name::Unknown(why), Name::Unknown(_)) => format!("[{}]", why.words()),
        };
        let inlined = place.inlined_into.iter().map(|frame| names.get(frame.function).to_owned());
        std::iter::once(name).chain(inlined).collect()
    };
    let stack = |row: &Row| -> String {
        let callers = match row.stack {
            Chain::Known(id) => capture.stacks[id as usize].callers.clone(),
            Chain::Unknown(_) => Vec::new(),
        };
        let mut all: Vec<_> = row.code.into_iter().chain(callers).flat_map(frames).collect();
        all.reverse();
        all.join(";")
    };
    let mut sums = StackSums::new();
    for row in &capture.rows {
        let event = &capture.meta.events[usize::from(row.event)];
        let level = precise::model::words::Served::of(row.data_source());
        let level = level.map_or(String::new(), |level| level.to_string());
        let plain = event.name.replace(['/', '=', ','], "_");
        for (kind, value, there) in [
            (format!("{plain}_samples"), row.measures.count, true),
            (plain.clone(), row.measures.period_sum, true),
            (format!("{plain}_latency"), row.measures.latency_sum, event.fields.latency),
        ] {
            if there && value > 0 {
                let key = (service(&text(row.cgroup)), kind, stack(row), level.clone());
                *sums.entry(key).or_default() += value;
            }
        }
    }
    sums
}

/// Two events, three cgroups, chains, inlined functions, and names that are not known.
fn capture() -> Capture {
    let mut builder = CaptureBuilder::new();
    let mut faults = builder.meta().events[0].clone();
    (faults.name, faults.unit, faults.fields) =
        ("page-faults".into(), "page faults".into(), Fields::default());
    let mut timer = faults.clone();
    (timer.name, timer.unit, timer.period) = ("cpu/event=0x3c,umask=0/".into(), "ns".into(), None);
    builder.meta().events.extend([faults, timer]);
    let owner = |path: &str| Owner { path: path.into(), ..Owner::default() };
    builder.meta().owners = vec![
        Owner { unit: Some("cache.service".into()), ..owner("/demo/cache.service") },
        Owner {
            container: Some("app".into()),
            container_id: Some("ab".repeat(32)),
            pod: Some("shop-1".into()),
            namespace: Some("prod".into()),
            ..owner("/pods/shop-1")
        },
    ];
    for step in 0..300u64 {
        let cgroup = ["/demo/cache.service", "/pods/shop-1", "/", "/a/b"][step as usize / 3 % 4];
        let function = ["lookup", "größe", "", "std::vec<int>::push"][step as usize / 5 % 4];
        let source = [RAM, L1, REMOTE_RAM][step as usize / 7 % 3];
        let callers = [&["serve", "main"][..], &["main"], &[]][step as usize / 2 % 3];
        let cell = builder.cell().event((step % 3) as u16).epoch((step % 7) as u32).samples(1 + step % 11);
        let cell = if step % 3 == 0 { cell.latency(4 + step as u32) } else { cell };
        let cell = cell.process(100 + step as u32 % 5, ["nginx", "php"][step as usize % 2]);
        let cell = cell.cgroup(step / 3 % 4, cgroup).data_src(source);
        cell.code(0x1000 + 8 * (step % 16), "/usr/bin/app", function, "src/a.c", step as u32 % 50)
            .callers(callers);
    }
    // Nothing is known of these.
    builder.cell().samples(13);
    builder.cell().samples(17).code(0xffff_8000_0000_1000, "[kernel]", "do_fault", "", 0);
    let mut capture = builder.build();
    let (function, source) = (capture.names.intern("outer"), capture.names.intern("src/b.c"));
    capture.code[0].inlined_into.push(Frame { function, source, line: 9 });
    capture.code[1].build_id = capture.names.intern("00ff11");
    capture
}

fn service(cgroup: &str) -> String {
    match cgroup {
        "/demo/cache.service" => "cache",
        "/pods/shop-1" => "app",
        "/" => "host",
        "" => "unknown_service",
        _ => "b",
    }
    .to_owned()
}

#[test]
fn opentelemetry_reads_what_was_exported_and_adds_up_to_the_capture() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let capture = capture();
    let request = exported(folder.path(), &capture, &[])?;
    let (theirs, ours) = (sums(&request), expected(&capture, service));
    ensure!(ours.len() > 100, "{}", ours.len());
    assert_eq!(theirs, ours);

    let resources = request["resources"].as_array().context("resources")?;
    let pod = resources.iter().find(|resource| resource["attributes"]["service.name"] == "app");
    assert_eq!(
        pod.context("the pod")?["attributes"],
        json!({
            "service.name": "app", "host.name": "testhost", "host.arch": "amd64", "os.type": "linux",
            "process.linux.cgroup": "/pods/shop-1", "container.id": "ab".repeat(32),
            "k8s.container.name": "app", "k8s.namespace.name": "prod", "k8s.pod.name": "shop-1",
        })
    );
    let profiles =
        resources.iter().flat_map(|resource| resource["profiles"].as_array().cloned().unwrap_or_default());
    for profile in profiles {
        assert_eq!(profile["time"], 1_700_000_000_000_000_000_u64);
        assert_eq!(profile["duration"], 7_000_000_000_u64);
        let about = profile["attributes"].as_object().context("attributes")?;
        ensure!(about["precise.exact"] == true && about.contains_key("precise.verdict"), "{about:?}");
        let (unit, period, number) = match profile["type"].as_str().unwrap_or_default() {
            "cycles_samples" | "cycles" => ("count", ["cycles", "count"], 1000),
            "cycles_latency" => ("cycles", ["cycles", "count"], 1000),
            "page-faults_samples" | "page-faults" => ("count", ["page faults", "count"], 1000),
            "cpu_event_0x3c_umask_0__samples" => ("count", ["time", "nanoseconds"], 0),
            "cpu_event_0x3c_umask_0_" => ("nanoseconds", ["time", "nanoseconds"], 0),
            other => anyhow::bail!("{other}"),
        };
        assert_eq!((&profile["unit"], &profile["period_type"]), (&json!(unit), &json!(period)), "{profile}");
        assert_eq!(profile["period"], number);
    }

    let only = exported(folder.path(), &capture, &["--event", "page-faults"])?;
    let of_event = ours.into_iter().filter(|((_, kind, _, _), _)| kind.starts_with("page-faults")).collect();
    assert_eq!(sums(&only), of_event);
    Ok(())
}

#[test]
fn what_cannot_be_exported_is_said() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("empty.parquet");
    CaptureBuilder::new().build().write(&path)?;
    let file = path.display().to_string();
    let ended = precise(["export", "--format", "otlp", "-i", &file, "-o", "-"])?.expect(69)?;
    ensure!(ended.stderr.contains("no samples") && ended.stdout.is_empty(), "{ended:?}");
    let ended = precise(["export", "--format", "otlp", "-i", &file, "-e", "loads"])?.expect(2)?;
    ensure!(ended.stderr.contains("its events: cycles"), "{ended:?}");
    Ok(())
}
