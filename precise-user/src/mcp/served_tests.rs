//! A running service as a place, whatever it answers.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::thread::{self, JoinHandle};

use precise_capture::CaptureFile as _;
use precise_model::testing::CaptureBuilder;
use precise_sampling::serve::Token;

use super::captures::PlaceCaptures;
use super::*;

const SECRET: &str = "correct-horse-battery";

/// Starts a service that answers one request after the other. Returns its address, and what was
/// asked.
fn service(answers: Vec<Vec<u8>>) -> (String, JoinHandle<Vec<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let asked = thread::spawn(move || {
        let answered = answers.into_iter().map(|answer| {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut request, mut byte) = (Vec::new(), [0]);
            while !request.ends_with(b"\r\n\r\n") && stream.read(&mut byte).unwrap() > 0 {
                request.push(byte[0]);
            }
            stream.write_all(&answer).unwrap();
            String::from_utf8(request).unwrap()
        });
        answered.collect()
    });
    (address, asked)
}

fn answer(status: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

fn capture(samples: u64) -> Vec<u8> {
    let mut builder = CaptureBuilder::new();
    builder.cell().samples(samples);
    builder.build().to_bytes().unwrap().to_vec()
}

fn token() -> Token {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("token");
    fs::write(&path, SECRET).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
    Token::read(&path).unwrap()
}

fn open(address: &str, token: Option<&Token>) -> Result<PlaceCaptures, Failure> {
    PlaceCaptures::open(Path::new(address), token)
}

fn samples(captures: &mut PlaceCaptures, name: Option<&str>) -> u64 {
    let file = captures.find(name).unwrap();
    let read = captures.take(&file, "", Ok).unwrap();
    read.rows.iter().map(|row| row.measures.count).sum()
}

#[test]
fn each_look_is_a_capture() {
    let answers = [5, 5, 7].map(|of| answer("200 OK", &capture(of)));
    let (address, asked) = service(answers.to_vec());
    let mut captures = open(&address, Some(&token())).unwrap();
    assert_eq!((captures.place(), captures.folder()), (address, None));
    // Questions without a name are about the same capture, and so is the same answer again.
    assert_eq!([samples(&mut captures, None), samples(&mut captures, None)], [5, 5]);
    let first = captures.describe(0).unwrap().captures;
    assert_eq!(first.len(), 1);
    let both = captures.describe(0).unwrap().captures;
    assert_eq!(both.len(), 2);
    assert!(both[0].events[0].samples == 7 && both[0].problem.is_none(), "{both:?}");
    assert_eq!(both[1], first[0]);
    assert_eq!([samples(&mut captures, None), samples(&mut captures, Some(&first[0].capture))], [7, 5]);
    assert!(captures.find(Some("live-other")).is_err());
    for request in asked.join().unwrap() {
        assert!(request.starts_with("GET /capture HTTP/1.1\r\n"), "{request}");
        assert!(
            request.to_ascii_lowercase().contains(&format!("authorization: bearer {SECRET}")),
            "{request}"
        );
    }
}

#[test]
fn only_the_newest_are_kept() {
    let (address, _asked) = service((1..=20).map(|of| answer("200 OK", &capture(of))).collect());
    let mut captures = open(&address, None).unwrap();
    let first = captures.describe(0).unwrap().captures.remove(0).capture;
    let mut total = 0;
    for _ in 1..20 {
        total = captures.describe(0).unwrap().total;
    }
    assert_eq!(total, 8);
    assert!(captures.find(Some(&first)).is_err());
}

#[test]
fn what_is_no_capture_is_said() {
    let whole = capture(3);
    let mut cut = answer("200 OK", &whole);
    cut.truncate(cut.len() - 9);
    for (answer, says) in [
        (answer("401 Unauthorized", b""), "--token-file"),
        (answer("404 Not Found", b"no"), "is not a `precise serve`, or an old one"),
        (
            answer("503 Service Unavailable", b"the first epoch\x1b[2J has not ended yet\nmore"),
            "epoch\u{fffd}[2J has not",
        ),
        (answer("302 Found", b""), "status 302"),
        (cut, "broke within the capture"),
        (b"SSH-2.0-x\r\n".to_vec(), "the connection broke"),
    ] {
        let (address, asked) = service(vec![answer]);
        let error = open(&address, None).unwrap().find(None).unwrap_err();
        assert!(error.to_string().contains(says), "{says}: {error}");
        asked.join().unwrap();
    }
    let (address, asked) = service(vec![answer("200 OK", b"nothing")]);
    let mut captures = open(&address, None).unwrap();
    let described = captures.describe(0).unwrap().captures.remove(0);
    assert!(described.problem.unwrap().contains("is not a capture"), "a page");
    asked.join().unwrap();
    // Nobody listens.
    let error = open(&address, None).unwrap().find(None).unwrap_err();
    assert!(error.to_string().contains("cannot connect"), "{error}");
}

#[test]
fn a_token_does_not_cross_the_network_in_the_clear() {
    let refused = |address: &str, token: Option<&Token>| open(address, token).err().map(|error| error.what);
    let token = token();
    assert!(refused("http://10.0.0.7:7732", Some(&token)).unwrap().contains("others can read it"));
    assert!(refused("http://node7:7732", Some(&token)).is_some());
    for fine in ["http://[::1]:7732", "http://localhost:7732", "http://127.0.0.2:7732/"] {
        assert_eq!(refused(fine, Some(&token)), None, "{fine}");
    }
    assert_eq!(refused("http://node7:7732", None), None);
    for wrong in ["http://me:secret@node7", "http://node7/x", "http://node7/?a=b", "http://", "https://[1"] {
        assert!(refused(wrong, None).is_some(), "{wrong}");
    }
    assert!(refused("/tmp", Some(&token)).unwrap().contains("needs no token"));
}
