#![cfg(feature = "s3")]

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use precise_model::Capture;
use precise_model::testing::CaptureBuilder;
use precise_sampling::serve::PushAnswer;

use super::answer::HttpAnswer;
use super::{PushHeaders, PushKind, PushTarget, backend, collector, pyroscope};
use crate::export::wire::WireMessage;

/// 1 January 2026, 00:00 UTC.
const NOW_NS: u64 = 1_767_225_600_000_000_000;

#[test]
fn targets_are_parsed_or_said_to_be_wrong() {
    let url = |text: &str| PushTarget::parse(text).map(|target| target.url());
    let ok = |text: &str| url(text).unwrap();
    assert_eq!(ok("otlp=http://collector:4318"), "http://collector:4318/v1development/profiles");
    assert_eq!(ok("otlp=https://[::1]/"), "https://[::1]/v1development/profiles");
    assert_eq!(ok("otlp=http://[::1]:80/a/b"), "http://[::1]:80/a/b");
    assert_eq!(ok("pyroscope=http://p"), "http://p/ingest");
    assert_eq!(ok("pyroscope=http://p/base/ingest"), "http://p/base/ingest");
    let shown = PushTarget::parse("otlp=https://c:4318").unwrap();
    assert_eq!((shown.to_string().as_str(), shown.is_encrypted()), ("otlp=https://c:4318", true));
    for (text, what) in [
        ("", "kinds are otlp and pyroscope"),
        ("http://c", "kinds are otlp and pyroscope"),
        ("zipkin=http://c", "'zipkin'"),
        ("otlp", "nothing follows"),
        ("otlp=", "nothing follows"),
        ("otlp=collector:4318", "http:// or https://"),
        ("otlp=grpc://c", "http:// or https://"),
        ("otlp=http://", "needs a host"),
        ("otlp=http:///x", "needs a host"),
        ("otlp=http://c:port", "number as its port"),
        ("otlp=http://c:70000", "number as its port"),
        ("otlp=http://user:secret@c", "--push-headers"),
        ("otlp=http://c/?token=secret", "--push-headers"),
        ("otlp=http://c/#x", "--push-headers"),
        ("otlp=http://c/a b", "ASCII"),
        ("otlp=http://c/ü", "ASCII"),
    ] {
        let said = url(text).unwrap_err();
        assert!(said.contains(what) && !said.contains("secret"), "{text}: {said}");
    }
}

#[test]
fn header_fields_come_from_the_file_and_from_the_environment() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("headers");
    let read = |kind, text: &str, mode, variables: &[(&str, &str)]| {
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        let variable = |name: &str| {
            variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let headers = PushHeaders::read(kind, Some(&path), variable).map_err(|failure| failure.what)?;
        assert!(!format!("{headers:?}").contains("SECRET"));
        Ok::<_, String>(headers.fields().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>())
    };
    let text = "# a token\n\nAuthorization: Bearer SECRET\nX-Scope-OrgID:  tenant \n";
    let fields = ["Authorization: Bearer SECRET", "X-Scope-OrgID: tenant"];
    assert_eq!(read(PushKind::Pyroscope, text, 0o600, &[]).unwrap(), fields);
    let general = ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=other,api-key=a%20b%zz");
    // The environment is for OTLP only, and the file takes precedence.
    assert_eq!(read(PushKind::Pyroscope, text, 0o600, &[general]).unwrap(), fields);
    let both = [&fields[..], &["api-key: a b%zz"]].concat();
    assert_eq!(read(PushKind::Otlp, text, 0o400, &[general]).unwrap(), both);
    let special = ("OTEL_EXPORTER_OTLP_PROFILES_HEADERS", "a=b");
    assert_eq!(read(PushKind::Otlp, "", 0o600, &[general, special]).unwrap(), ["a: b"]);
    for (text, what) in [
        ("SECRET", ":1: a header field is written NAME: VALUE"),
        ("\n: SECRET", ":2: the name"),
        ("a b: SECRET", ":1: the name"),
        ("a: SECRET\u{7}", "the value of a must be"),
        ("a: SECRÉT", "the value of a must be"),
        ("Host: SECRET", "precise sets the field Host itself"),
    ] {
        let said = read(PushKind::Otlp, text, 0o600, &[]).unwrap_err();
        assert!(said.contains(what) && !said.contains("SECR"), "{said}");
    }
    assert!(read(PushKind::Otlp, text, 0o644, &[]).unwrap_err().contains("(mode 644): set the mode to 600"));
    assert!(read(PushKind::Otlp, &"a: b\n".repeat(65), 0o600, &[]).unwrap_err().contains("more than 64"));
    assert!(read(PushKind::Otlp, &"#".repeat(70_000), 0o600, &[]).unwrap_err().contains("64 KiB"));
    let missing = PushHeaders::read(PushKind::Otlp, Some(&folder.path().join("none")), |_| None);
    assert!(missing.unwrap_err().what.contains("cannot read the header fields"));
}

#[test]
fn answers_of_a_collector_mean_what_the_protocol_says() {
    let answer = |status, retry_after: Option<&str>, body: &[u8]| {
        let retry_after = retry_after.map(str::to_owned);
        HttpAnswer { status, retry_after, is_protobuf: true, body: body.to_vec() }.of_collector(NOW_NS)
    };
    let later = |seconds: Option<u64>, why: &str| PushAnswer::Later {
        after: seconds.map(Duration::from_secs),
        why: why.to_owned(),
    };
    let taken = |refused, said: &str| PushAnswer::Taken { refused, said: said.to_owned() };
    assert_eq!(answer(200, None, b""), taken(0, ""));
    assert_eq!(answer(429, Some("7"), b""), later(Some(7), "status 429"));
    assert_eq!(answer(503, Some("Thu, 01 Jan 2026 00:01:30 GMT"), b""), later(Some(90), "status 503"));
    assert_eq!(answer(503, Some("Wed, 31 Dec 2025 00:00:00 GMT"), b""), later(Some(0), "status 503"));
    assert_eq!(answer(502, Some("soon"), b""), later(None, "status 502"));
    assert_eq!(answer(500, Some("7"), b""), PushAnswer::Refused { why: "status 500".into() });
    assert_eq!(answer(301, None, b""), PushAnswer::Refused { why: "status 301".into() });

    let mut partial = WireMessage::default();
    partial.number(1, 2);
    partial.text(2, "no \u{1b}[2J room\nfor more");
    let mut response = WireMessage::default();
    response.message(1, &partial);
    assert_eq!(answer(200, None, response.as_bytes()), taken(2, "no \u{fffd}[2J room"));
    // A negative number, and bytes that are no message.
    let mut partial = WireMessage::default();
    partial.number(1, u64::MAX);
    let mut response = WireMessage::default();
    response.message(1, &partial);
    assert_eq!(answer(200, None, response.as_bytes()), taken(0, ""));
    assert_eq!(answer(200, None, &[0xff; 40]), taken(0, ""));
    let mut status = WireMessage::default();
    status.number(1, 3);
    status.text(2, "profile too large");
    let never = PushAnswer::Refused { why: "status 400: profile too large".into() };
    assert_eq!(answer(400, None, status.as_bytes()), never);
}

#[test]
fn answers_of_pyroscope() {
    let answer = |status, body: &str| {
        let body = body.as_bytes().to_vec();
        HttpAnswer { status, body, ..HttpAnswer::default() }.of_pyroscope(NOW_NS)
    };
    assert_eq!(answer(200, "ok"), PushAnswer::Taken { refused: 0, said: String::new() });
    let why = "status 500: it broke".to_owned();
    assert_eq!(answer(500, "it broke\n"), PushAnswer::Later { after: None, why });
    assert_eq!(answer(422, ""), PushAnswer::Refused { why: "status 422".into() });
}

fn capture() -> Capture {
    let mut builder = CaptureBuilder::new();
    builder.meta().machine.host = "node 1".into();
    let mut faults = builder.meta().events[0].clone();
    faults.name = "page-faults".into();
    builder.meta().events.push(faults);
    for at in 0..130u64 {
        let cell =
            builder.cell().event((at % 2) as u16).samples(1000 - at).cgroup(at, &format!("/a/c{at}.service"));
        cell.code(0x1000, "/bin/app", "f", "a.c", 1).latency(3);
    }
    builder.build()
}

#[test]
fn every_sample_is_in_one_request() {
    let capture = capture();
    let all: u64 = capture.rows.iter().map(|row| row.measures.count).sum();
    let one = collector::message(&capture, None).unwrap();
    assert_eq!((one.samples, one.profiles), (all, 3 * 130));
    assert_eq!(collector::message(&CaptureBuilder::new().build(), None), None);

    let messages = pyroscope::messages(&capture, None);
    assert_eq!(messages.iter().map(|message| message.samples).sum::<u64>(), all);
    // A hundred services with one event each, and all others with both.
    assert_eq!(messages.len(), 102);
    assert_eq!(
        messages[0].query,
        "name=c0%7Bhost%3Dnode_1%2Cevent%3Dcycles%7D&from=1700000000&until=1700000001&format=pprof&spyName=precise"
    );
    assert!(messages[101].query.starts_with("name=others%7B"), "{}", messages[101].query);
    let messages = pyroscope::messages(&capture, Some("shop"));
    let samples: Vec<_> = messages.iter().map(|message| message.samples).collect();
    assert_eq!((samples.len(), samples.iter().sum()), (2, all));
}

/// A request as the server got it.
#[derive(Debug, Default)]
struct Received {
    head: String,
    fields: BTreeMap<String, String>,
    body: Vec<u8>,
}

fn receive(stream: &mut TcpStream) -> Received {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let end = bytes.windows(4).position(|window| window == b"\r\n\r\n");
        if let Some(end) = end {
            let text = String::from_utf8(bytes[..end].to_vec()).unwrap();
            let (head, fields) = text.split_once("\r\n").unwrap();
            let field = |line: &str| {
                let (name, value) = line.split_once(": ").unwrap();
                (name.to_ascii_lowercase(), value.to_owned())
            };
            let fields: BTreeMap<_, _> = fields.lines().map(field).collect();
            let length: usize = fields["content-length"].parse().unwrap();
            if bytes.len() == end + 4 + length {
                return Received { head: head.to_owned(), fields, body: bytes[end + 4..].to_vec() };
            }
        }
        let read = stream.read(&mut chunk).unwrap();
        assert!(read > 0, "the client closed the connection");
        bytes.extend_from_slice(&chunk[..read]);
    }
}

/// Starts a server that answers each request with the next answer; an empty one closes the
/// connection. Returns its address, and what it receives.
fn server(answers: Vec<Vec<u8>>) -> (String, mpsc::Receiver<Received>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (tell, received) = mpsc::channel();
    std::thread::spawn(move || {
        for answer in answers {
            let (mut stream, _) = listener.accept().unwrap();
            tell.send(receive(&mut stream)).unwrap();
            let _gone = stream.write_all(&answer);
        }
    });
    (format!("http://{address}"), received)
}

fn answer(head: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    [format!("HTTP/1.1 {head}\r\nContent-Length: {length}\r\n\r\n").as_bytes(), body].concat()
}

#[test]
fn requests_are_what_the_backends_expect() {
    let mut partial = WireMessage::default();
    partial.number(1, 1);
    let mut response = WireMessage::default();
    response.message(1, &partial);
    let protobuf = "200 OK\r\nContent-Type: application/x-protobuf";
    let answers = vec![
        answer(protobuf, response.as_bytes()),
        answer("503 Busy\r\nRetry-After: 3\r\nContent-Type: text/plain", b"later"),
        answer("302 Found\r\nLocation: http://127.0.0.1:1/", b""),
        Vec::new(),
        answer("200 OK", &vec![b'x'; 1 << 20]),
    ];
    let (url, received) = server(answers);
    let capture = capture();
    let headers =
        PushHeaders::read(PushKind::Otlp, None, |_| Some("Authorization=Bearer%20xyz".to_owned())).unwrap();
    let target = PushTarget::parse(&format!("otlp={url}")).unwrap();
    let mut otlp = backend(&target, &headers, None).unwrap();
    let message = otlp.encode(&capture).remove(0);
    assert_eq!(otlp.send(&message), PushAnswer::Taken { refused: 1, said: String::new() });
    let request = received.recv().unwrap();
    assert_eq!(request.head, "POST /v1development/profiles HTTP/1.1");
    let field = |name: &str| request.fields[name].as_str();
    assert_eq!(field("content-type"), "application/x-protobuf");
    assert_eq!((field("content-encoding"), field("authorization")), ("gzip", "Bearer xyz"));
    assert!(field("user-agent").starts_with("precise/"));
    assert_eq!(request.body, message.body);

    let after = Some(Duration::from_secs(3));
    assert_eq!(otlp.send(&message), PushAnswer::Later { after, why: "status 503: later".into() });
    assert_eq!(otlp.send(&message), PushAnswer::Refused { why: "status 302".into() });
    assert!(
        matches!(otlp.send(&message), PushAnswer::Later { after: None, why } if why.starts_with("the connection broke"))
    );

    let target = PushTarget::parse(&format!("pyroscope={url}")).unwrap();
    let mut pyroscope = backend(&target, &PushHeaders::default(), Some("shop")).unwrap();
    let message = pyroscope.encode(&capture).remove(0);
    assert_eq!(pyroscope.send(&message), PushAnswer::Taken { refused: 0, said: String::new() });
    let request = received.iter().nth(3).unwrap();
    assert_eq!(request.head, format!("POST /ingest?{} HTTP/1.1", message.query));
    assert!(message.query.starts_with("name=shop%7B"));
    assert!(!request.fields.contains_key("authorization"));
    assert_eq!(request.body, message.body);
}

#[test]
fn a_place_where_nobody_listens_is_said_in_time() {
    // A port that was free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let target = PushTarget::parse(&format!("otlp=http://{address}")).unwrap();
    let mut otlp = backend(&target, &PushHeaders::default(), None).unwrap();
    let message = otlp.encode(&capture()).remove(0);
    let begin = Instant::now();
    assert!(
        matches!(otlp.send(&message), PushAnswer::Later { after: None, why } if why.starts_with("cannot connect"))
    );
    assert!(begin.elapsed() < Duration::from_secs(5));
}
