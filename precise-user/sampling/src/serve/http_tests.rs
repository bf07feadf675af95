//! Tests of the server against clients that are wrong, slow, or many.

use std::{
    io::{Read as _, Write as _},
    net::TcpStream,
    path::{Path, PathBuf},
};

use super::*;
use crate::serve::SeriesTotals;
use crate::serve::access::tests::{SECRET, token};
use crate::serve::status::{EventStatus, ServeStatus};
use crate::serve::totals::Shared;
use crate::serve::{Painter, Tls};
use crate::top::{Live, Window};
use precise_model::{Machine, Meta};

/// Limits that a test can wait for.
const SHORT: Bounds = Bounds {
    connections: 16,
    of_one_peer: 8,
    head: Duration::from_millis(300),
    whole: Duration::from_millis(1500),
    older_pages: 64 << 20,
};

struct Served {
    _server: Server,
    address: SocketAddr,
    page: Arc<Page>,
}

fn served(status: ServeStatus, bounds: Bounds) -> Served {
    served_to(AccessPolicy::default(), status, bounds)
}

/// Returns the page for people of a run whose last minutes are empty.
fn front() -> Arc<Front> {
    let window = Window::new(Duration::from_secs(1), Meta::default());
    Arc::new(Front::new(Live::new(window), Painter::new(|_| Ok("<!DOCTYPE html>".to_owned()))))
}

fn served_to(access: AccessPolicy, status: ServeStatus, bounds: Bounds) -> Served {
    let listening = listen(([127, 0, 0, 1], 0).into(), Hosts::default(), access).unwrap();
    let address = listening.address;
    let page = Arc::new(Page::new(
        Shared::new(SeriesTotals::new(&[], 10, Machine::default())),
        status,
        None,
        Arc::default(),
    ));
    let server = Server::within(listening, page.clone(), front(), bounds).unwrap();
    Served { _server: server, address, page }
}

impl Served {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    fn said(&self, request: &[u8]) -> String {
        let mut stream = self.connect();
        // The server may refuse a long request before it is sent.
        let _refused = stream.write_all(request);
        rest(&mut stream)
    }

    fn scrape(&self) -> String {
        let begin = Instant::now();
        let page = self.said(b"GET /metrics HTTP/1.1\r\nhost: localhost\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        assert!(begin.elapsed() < Duration::from_secs(1), "{:?}", begin.elapsed());
        page
    }

    fn closed(&self, why: Closed) -> u64 {
        self.page.traffic().closed_for(why)
    }

    /// Waits until a connection was counted as closed for this reason.
    fn until_closed(&self, why: Closed) {
        let begin = Instant::now();
        while self.closed(why) == 0 {
            assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", self.page.traffic());
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn answered(&self, status: StatusCode) -> u64 {
        self.page.traffic().answers().filter(|(of, _)| *of == status).map(|(_, count)| count).sum()
    }
}

/// Returns what else comes, until the server closes the connection.
fn rest(stream: &mut TcpStream) -> String {
    let mut answer = Vec::new();
    let ended = stream.read_to_end(&mut answer);
    assert!(!ended.is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock), "it is still open");
    String::from_utf8(answer).unwrap()
}

#[test]
fn what_is_answered() {
    let served = served(ServeStatus::default(), Bounds::default());
    let page = served.said(
        b"GET /metrics HTTP/1.1\r\nhost: localhost\r\naccept: application/openmetrics-text;version=1.0.0\r\n\r\n",
    );
    assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
    assert!(page.contains("content-type: application/openmetrics-text; version=1.0.0;"), "{page}");
    assert!(page.ends_with("# EOF\n"), "{page}");
    let plain = served.said(b"GET /metrics HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n");
    assert!(plain.contains("content-type: text/plain; version=0.0.4;"), "{plain}");
    assert!(!plain.contains("# EOF") && plain.contains("# TYPE precise_epochs_total counter\n"), "{plain}");
    let head = served.said(b"HEAD /metrics HTTP/1.0\r\n\r\n");
    assert!(head.contains("200 OK") && !head.contains("# TYPE"), "{head}");
    for path in ["/", "/capture"] {
        let front = served.said(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes());
        let said = "there is no page yet: the first epoch has not ended yet\n";
        assert!(front.contains("503 Service") && front.ends_with(said), "{front}");
    }
    let unknown = served.said(b"GET /etc/passwd HTTP/1.0\r\n\r\n");
    assert!(unknown.contains("404") && unknown.ends_with(NOT_HERE), "{unknown}");
    assert!(served.said(b"GET /healthz HTTP/1.0\r\n\r\n").ends_with("\r\n\r\nok\n"));
    let ready = served.said(b"GET /readyz HTTP/1.0\r\n\r\n");
    assert!(
        ready.contains("503 Service") && ready.ends_with("the first epoch has not ended yet\n"),
        "{ready}"
    );
    let post = served.said(b"POST /metrics HTTP/1.0\r\ncontent-length: 0\r\n\r\n");
    assert!(post.contains("405") && post.contains("allow: GET, HEAD"), "{post}");
    let other = served.said(b"GET /metrics HTTP/1.1\r\nhost: attacker.example\r\n\r\n");
    assert!(other.contains("421 Misdirected Request") && other.ends_with(UNKNOWN_HOST), "{other}");
    let none = served.said(b"GET /metrics HTTP/1.1\r\n\r\n");
    assert!(none.contains("400 Bad Request") && none.ends_with(ONE_HOST), "{none}");
    let counts = [StatusCode::OK, StatusCode::MISDIRECTED_REQUEST].map(|status| served.answered(status));
    assert_eq!(counts, [4, 1]);
}

/// Returns the files of a certificate for `localhost` that is only for tests, and of its key.
fn certificate() -> [PathBuf; 2] {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/serve/testing");
    ["certificate.pem", "key.pem"].map(|name| folder.join(name))
}

#[test]
fn who_has_no_token_learns_nothing() {
    let access = AccessPolicy { token: token(SECRET, 0o600).ok(), tls: None };
    let served = served_to(access, ServeStatus::default(), Bounds::default());
    for path in ["/", "/capture", "/metrics"] {
        let said = served.said(format!("GET {path} HTTP/1.0\r\n\r\n").as_bytes());
        assert!(said.starts_with("HTTP/1.0 401 Unauthorized\r\n") && said.ends_with(NO_TOKEN), "{said}");
        assert!(said.contains("www-authenticate: Basic realm=\"precise\", Bearer\r\n"), "{said}");
        let wrong = format!("GET {path} HTTP/1.0\r\nauthorization: Bearer {SECRET}x\r\n\r\n");
        assert!(served.said(wrong.as_bytes()).contains("401 Unauthorized"), "{path}");
    }
    let right = format!("GET /metrics HTTP/1.0\r\nauthorization: Bearer {SECRET}\r\n\r\n");
    assert!(served.said(right.as_bytes()).contains("precise_epochs_total 0"));
    // The probes of a supervisor need none.
    assert!(served.said(b"GET /healthz HTTP/1.0\r\n\r\n").ends_with("ok\n"));
    assert_eq!(served.answered(StatusCode::UNAUTHORIZED), 6);
}

#[test]
fn tls_is_spoken_where_there_is_a_certificate() {
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName, pem::PemObject as _};
    use tokio_rustls::rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
    let [file, key] = certificate();
    let access = AccessPolicy { tls: Some(Tls::read(&file, &key).unwrap()), token: None };
    let served = served_to(access, ServeStatus::default(), SHORT);
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(&file).unwrap()).unwrap();
    let provider = Arc::new(tokio_rustls::rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let config = config.with_root_certificates(roots).with_no_client_auth();
    let name = ServerName::try_from("localhost").unwrap();
    let client = ClientConnection::new(Arc::new(config), name).unwrap();
    let mut stream = StreamOwned::new(client, served.connect());
    stream.write_all(b"GET /healthz HTTP/1.0\r\n\r\n").unwrap();
    let mut said = String::new();
    stream.read_to_string(&mut said).unwrap();
    assert!(said.ends_with("ok\n"), "{said}");
    // A client without TLS, and one that never greets.
    assert!(!served.said(b"GET /healthz HTTP/1.0\r\n\r\n").contains("ok"));
    served.until_closed(Closed::Invalid);
    let begin = Instant::now();
    assert_eq!(rest(&mut served.connect()), "");
    assert!(begin.elapsed() >= SHORT.head);
    served.until_closed(Closed::Deadline);
}

#[test]
fn a_certificate_that_cannot_be_used_is_said() {
    let [file, key] = certificate();
    for (certificate, key, says) in [
        (Path::new("/no/such/file"), key.as_path(), "cannot read the certificate in /no/such/file"),
        (key.as_path(), key.as_path(), "cannot read the certificate in "),
        (file.as_path(), file.as_path(), "cannot read the key in "),
    ] {
        let said = Tls::read(certificate, key).unwrap_err().with_causes();
        assert!(said.contains(says), "{said}");
    }
}

#[test]
fn nonsense_and_long_heads_end_the_connection_and_nothing_else() {
    let served = served(ServeStatus::default(), Bounds::default());
    let long = [b"GET /metrics HTTP/1.1\r\nx: ".to_vec(), vec![b'a'; 64 << 10]].concat();
    let many = [b"GET /metrics HTTP/1.1\r\n".to_vec(), b"a: b\r\n".repeat(500), b"\r\n".to_vec()].concat();
    for nonsense in [&b"\x16\x03\x01\x00\xff\xff\r\n\r\n"[..], b"GET\r\n\r\n", &long, &many] {
        let said = served.said(nonsense);
        assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
    }
    served.scrape();
    assert_eq!(served.closed(Closed::Invalid), 4);
}

#[test]
fn idle_connections_keep_nobody_waiting() {
    let served = served(ServeStatus::default(), Bounds::default());
    let mut idle = Vec::new();
    for number in 0..200 {
        idle.push(served.connect());
        if number % 40 == 39 {
            served.scrape();
        }
    }
    served.scrape();
    assert!(served.closed(Closed::Displaced) >= 200 - 32, "{:?}", served.page.traffic());
    assert_eq!(served.closed(Closed::Refused), 0);
}

/// Sends a request byte by byte, and never ends.
#[test]
fn a_slow_head_has_a_deadline() {
    let served = served(ServeStatus::default(), SHORT);
    let mut slow = served.connect();
    let begin = Instant::now();
    let mut writer = slow.try_clone().unwrap();
    let sending = std::thread::spawn(move || {
        let sent = b"GET /metrics HTTP/1.1\r\nx: ".iter().chain(std::iter::repeat(&b'a')).map(|byte| {
            std::thread::sleep(Duration::from_millis(20));
            writer.write_all(&[*byte])
        });
        // Ends with an error when the server has closed the connection.
        sent.take(1000).take_while(Result::is_ok).count()
    });
    served.scrape();
    let said = rest(&mut slow);
    assert!(said.is_empty() || said.contains("408"), "{said}");
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert!(sending.join().unwrap() < 1000);
    assert_eq!(served.closed(Closed::Deadline), 1);
}

/// Readers that ask for a page that does not fit into the buffers of the kernel, and never read it.
#[test]
fn who_never_reads_keeps_nobody_waiting() {
    let event = EventStatus { filter: "x".repeat(24 << 20), ..EventStatus::default() };
    // The deadline includes the time that eight such pages take, which is long on a busy machine.
    let bounds = Bounds { whole: Duration::from_secs(4), ..SHORT };
    let served = served(ServeStatus { events: vec![event], ..ServeStatus::default() }, bounds);
    let ask = |_| {
        let mut stream = served.connect();
        stream.write_all(b"GET /metrics HTTP/1.0\r\n\r\n").unwrap();
        stream
    };
    // As many as one peer may have.
    let mut stuck: Vec<TcpStream> = (0..SHORT.of_one_peer).map(ask).collect();
    while served.answered(StatusCode::OK) < SHORT.of_one_peer as u64 {
        std::thread::sleep(Duration::from_millis(5));
    }
    // After a second, the oldest makes room; the others end by their deadline.
    std::thread::sleep(Duration::from_millis(1100));
    assert!(served.said(b"GET /healthz HTTP/1.0\r\n\r\n").ends_with("ok\n"));
    assert_eq!(served.closed(Closed::Displaced), 1);
    let begin = Instant::now();
    while served.closed(Closed::Deadline) < SHORT.of_one_peer as u64 - 1 {
        assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", served.page.traffic());
        std::thread::sleep(Duration::from_millis(5));
    }
    let got = stuck.iter_mut().map(|stream| {
        let mut answer = Vec::new();
        let _reset = stream.read_to_end(&mut answer);
        answer.len()
    });
    assert!(got.max() < Some(24 << 20), "one of them got the whole page");
}

#[test]
fn an_address_that_is_taken_is_said() {
    let served = served(ServeStatus::default(), Bounds::default());
    let failure = listen(served.address, Hosts::default(), AccessPolicy::default()).unwrap_err();
    assert!(failure.with_causes().contains(&served.address.to_string()), "{failure:?}");
    assert_eq!(failure.way_out(), Some(Remedy::OtherAddress), "{failure:?}");
}

#[test]
fn the_end_closes_what_is_open() {
    let Served { _server: server, address, page: _ } = served(ServeStatus::default(), Bounds::default());
    let mut idle = TcpStream::connect(address).unwrap();
    assert!(!server.is_finished());
    drop(server);
    assert_eq!(rest(&mut idle), "");
    assert!(TcpStream::connect(address).is_err(), "nobody listens");
}
