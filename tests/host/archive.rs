//! Captures in an object store, with a real server of the S3 protocol (moto's) and the binary.

use precise::capture::CaptureFile as _;
use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use precise::model::testing::CaptureBuilder;
use precise_tests::run::{Ended, command};
use precise_tests::s3_server::{S3Server, precise_at};

/// Writes a capture with loads of one function, `cycles` each.
fn capture(folder: &Path, name: &str, second: u64, cycles: u32, precise: bool) -> Result<PathBuf> {
    let mut builder = CaptureBuilder::new();
    builder.meta().start_unix_ns = 1_700_000_000_000_000_000 + second * 1_000_000_000;
    builder.meta().events[0].verdict.precise = precise;
    for step in 0..100 {
        builder.cell().samples(50).latency(cycles + step).code(1, "app", "lookup", "a.c", 1);
    }
    let path = folder.join(name);
    builder.build().write(&path)?;
    Ok(path)
}

#[test]
fn deploys_are_archived_and_compared_in_an_object_store() -> Result<()> {
    let (server, folder) = (S3Server::start()?, tempfile::tempdir()?);
    for (label, second, cycles) in [("deploy-41", 0, 200), ("deploy-42", 60, 300)] {
        let precise = capture(folder.path(), "precise.parquet", second, cycles, true)?.display().to_string();
        let plain = capture(folder.path(), "plain.parquet", second, cycles, false)?.display().to_string();
        let place = "s3://profiles/node";
        let arguments = ["archive", "--label", label, "-i", &precise, "-i", &plain, place];
        let ended = server.precise(&arguments)?.expect(0)?;
        ensure!(ended.stdout.contains(&format!("Archived in s3://profiles/node/{label}")), "{ended:?}");
        let ended = server.precise(&arguments)?.expect(1)?;
        ensure!(ended.stderr.contains("exists already and is never replaced"), "{ended:?}");
    }
    let (base, new) = ("s3://profiles/node/deploy-41", "s3://profiles/node/deploy-42");
    let report = server.precise(&["report", "-i", base, "--require", "precise,samples>=5000"])?.expect(0)?;
    ensure!(report.stdout.contains("lookup"), "{report:?}");
    let object = format!("{base}/20231114T221320Z-testhost-plain.parquet");
    server.precise(&["report", "-i", &object, "--require", "precise"])?.expect(68)?;

    let diff = server.precise(&["diff", base, new])?.expect(0)?;
    ensure!(diff.stdout.contains("NEW is slower"), "{diff:?}");
    let condition = ["--fail-on", "p99(latency) > +10%"];
    let check = |base, new| server.precise(&[&["check", "--baseline", base, new], &condition[..]].concat());
    let ended = check(base, new)?.expect(71)?;
    ensure!(ended.stderr.contains("p99(latency) > +10% fails on cycles: from"), "{ended:?}");
    check(base, base)?.expect(0)?;

    let ended = server.precise(&["report", "-i", "s3://profiles/node/deploy-43"])?.expect(67)?;
    ensure!(ended.stderr.contains("s3://profiles/node/deploy-43 has no archived captures"), "{ended:?}");
    let ended = server.precise(&["report", "-i", "s3://profiles/x.parquet"])?.expect(67)?;
    ensure!(ended.stderr.contains("s3://profiles/x.parquet does not exist"), "{ended:?}");
    let ended = server.precise(&["report", "-i", "s3://nobody/x.parquet"])?.expect(67)?;
    ensure!(ended.stderr.contains("does not exist"), "{ended:?}");
    let ended = server.precise(&["report", "-i", "s3://nobody/deploy-41"])?.expect(67)?;
    ensure!(ended.stderr.contains("bucket nobody does not exist"), "{ended:?}");
    Ok(())
}

/// Starts a server that gives every request the same answer. Returns its endpoint.
fn refusing(status: &str, body: &str) -> Result<String> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let endpoint = format!("http://{}", listener.local_addr()?);
    let answer =
        format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut request = [0; 4096];
            // A client that closed the connection has failed elsewhere.
            let _gone = stream.read(&mut request).and_then(|_| stream.write_all(answer.as_bytes()));
        }
    });
    Ok(endpoint)
}

#[test]
fn what_a_store_refuses_is_a_sentence_with_its_reason() -> Result<()> {
    let error = |code, message| format!("<Error><Code>{code}</Code><Message>{message}</Message></Error>");
    let report = ["report", "-i", "s3://bucket/deploy-41"];
    let denied = refusing("403 Forbidden", &error("AccessDenied", "no \u{1b}[31mentry"))?;
    let ended = precise_at(&denied, &report)?.expect(65)?;
    ensure!(
        ended
            .stderr
            .contains("the store denies access to s3://bucket/deploy-41: AccessDenied: no \u{fffd}[31mentry"),
        "{ended:?}"
    );
    let elsewhere =
        refusing("400 Bad Request", &error("AuthorizationHeaderMalformed", "expecting eu-west-1"))?;
    let ended = precise_at(&elsewhere, &report)?.expect(1)?;
    ensure!(ended.stderr.contains("AuthorizationHeaderMalformed: expecting eu-west-1"), "{ended:?}");
    let no_address = precise_at("store:9000", &report)?.expect(2)?;
    ensure!(no_address.stderr.contains("AWS_ENDPOINT_URL is not the address of a store"), "{no_address:?}");
    let mut stray = command(report)?;
    stray.env("AWS_ACCESS_KEY_ID", "key\n");
    let ended = Ended::from(stray.output()?).expect(2)?;
    ensure!(ended.stderr.contains("AWS_ACCESS_KEY_ID contains an invalid character"), "{ended:?}");
    Ok(())
}

#[test]
fn a_store_that_does_not_answer_is_a_sentence_within_a_bounded_time() -> Result<()> {
    // A port on which no program listens.
    let taken = TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port();
    drop(taken);
    let begin = Instant::now();
    let ended =
        precise_at(&format!("http://127.0.0.1:{port}"), &["report", "-i", "s3://b/x.parquet"])?.expect(1)?;
    ensure!(ended.stderr.contains("cannot reach s3://b/x.parquet"), "{ended:?}");
    ensure!(ended.stderr.contains("Check AWS_ENDPOINT_URL"), "{ended:?}");
    ensure!(begin.elapsed() < Duration::from_secs(60), "{:?}", begin.elapsed());
    Ok(())
}
