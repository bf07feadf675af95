//! The HTTP/1 server: it serves one page to a few clients at a time and trusts none of them.

use std::{convert::Infallible, net::SocketAddr, sync::Arc, time::Duration};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::{sleep, timeout},
};

use super::page::{self, Page};
use crate::error::{ErrorClass, Remedy, SamplingError};

/// The maximum number of simultaneous connections; further ones wait.
const CONNECTIONS: usize = 8;
/// The time limit of a connection, from start to last byte. A slower scraper has given up by then.
const PATIENCE: Duration = Duration::from_secs(15);
/// The time limit for the head of a request.
const HEAD: Duration = Duration::from_secs(5);
/// The maximum size of a request's head and body in bytes; hyper requires at least 8 KiB.
const REQUEST_BYTES: usize = 8 << 10;
/// The pause after a connection could not be accepted for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(200);

const WELCOME: &str = "precise: the metrics are at /metrics\n";

/// A listening socket.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    /// The address. If port 0 was requested, it has the port that the kernel chose.
    pub address: SocketAddr,
}

/// Listens at an address. Must be called within a runtime, and before privileges are dropped,
/// because a port below 1024 needs one.
///
/// # Errors
///
/// Returns an error if the address does not belong to this machine, or is in use.
pub async fn listen(address: SocketAddr) -> Result<Listening, SamplingError> {
    let bound = async {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Listening { listener, address })
    };
    bound.await.map_err(|error: std::io::Error| {
        SamplingError::new(ErrorClass::Failed, format!("cannot listen on {address}"))
            .because(error)
            .remedy(Remedy::OtherAddress)
    })
}

/// Answers requests until the future is dropped.
pub(super) async fn answer_all(listening: Listening, page: Arc<Page>) {
    let room = Arc::new(Semaphore::new(CONNECTIONS));
    loop {
        // The semaphore is never closed.
        let Ok(permit) = room.clone().acquire_owned().await else { return };
        match listening.listener.accept().await {
            Ok((stream, _)) => {
                let page = page.clone();
                tokio::spawn(async move {
                    // A client that is too slow, or sends an invalid request, gets no answer.
                    let _gone = timeout(PATIENCE, connection(stream, page)).await;
                    drop(permit);
                });
            }
            Err(_) => sleep(PAUSE).await,
        }
    }
}

async fn connection(stream: TcpStream, page: Arc<Page>) -> hyper::Result<()> {
    let service = service_fn(move |request: Request<Incoming>| {
        let answer = answer(request.method(), request.uri().path(), &page);
        async { Ok::<_, Infallible>(answer) }
    });
    http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD)
        .max_buf_size(REQUEST_BYTES)
        .keep_alive(false)
        .serve_connection(TokioIo::new(stream), service)
        .await
}

fn answer(method: &Method, path: &str, page: &Arc<Page>) -> Response<Full<Bytes>> {
    const TEXT: &str = "text/plain; charset=utf-8";
    let (status, kind, body) = match (path, method) {
        ("/" | "/metrics", method) if *method != Method::GET && *method != Method::HEAD => {
            (StatusCode::METHOD_NOT_ALLOWED, TEXT, Bytes::from_static(b"only GET and HEAD are supported\n"))
        }
        ("/", _) => (StatusCode::OK, TEXT, Bytes::from_static(WELCOME.as_bytes())),
        ("/metrics", _) => match Page::text(page) {
            Ok(text) => (StatusCode::OK, page::CONTENT_TYPE, Bytes::copy_from_slice(text.as_bytes())),
            Err(error) => {
                let why = format!("cannot make the page: {error}\n");
                (StatusCode::INTERNAL_SERVER_ERROR, TEXT, Bytes::from(why))
            }
        },
        _ => (StatusCode::NOT_FOUND, TEXT, Bytes::from_static(WELCOME.as_bytes())),
    };
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    if status == StatusCode::METHOD_NOT_ALLOWED {
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
    }
    response
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;
    use crate::serve::Totals;
    use crate::serve::status::Status;
    use crate::serve::totals::Shared;
    use precise_model::Machine;

    async fn served() -> SocketAddr {
        let listening = listen(([127, 0, 0, 1], 0).into()).await.unwrap();
        let address = listening.address;
        let totals = Totals::new(&[], 10, Machine::default());
        tokio::spawn(answer_all(listening, Arc::new(Page::new(Shared::new(totals), Status::default()))));
        address
    }

    async fn said(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request).await.unwrap();
        let mut answer = Vec::new();
        let _reset = timeout(Duration::from_secs(20), stream.read_to_end(&mut answer)).await.unwrap();
        String::from_utf8(answer).unwrap()
    }

    #[tokio::test]
    async fn what_is_answered() {
        let address = served().await;
        let page = said(address, b"GET /metrics HTTP/1.1\r\nhost: x\r\n\r\n").await;
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n"), "{page}");
        assert!(page.contains("content-type: application/openmetrics-text; version=1.0.0;"), "{page}");
        assert!(page.ends_with("# EOF\n"), "{page}");
        let head = said(address, b"HEAD /metrics HTTP/1.0\r\n\r\n").await;
        assert!(head.contains("200 OK") && !head.contains("# EOF"), "{head}");
        assert!(said(address, b"GET / HTTP/1.0\r\n\r\n").await.ends_with(WELCOME));
        assert!(said(address, b"GET /etc/passwd HTTP/1.0\r\n\r\n").await.contains("404"));
        let post = said(address, b"POST /metrics HTTP/1.0\r\ncontent-length: 0\r\n\r\n").await;
        assert!(post.contains("405") && post.contains("allow: GET, HEAD"), "{post}");
    }

    #[tokio::test]
    async fn nonsense_and_long_heads_end_the_connection_and_nothing_else() {
        let address = served().await;
        let long = [b"GET /metrics HTTP/1.1\r\nx: ".to_vec(), vec![b'a'; 64 << 10]].concat();
        for nonsense in [&b"\x16\x03\x01\x00\xff\xff\r\n\r\n"[..], b"GET\r\n\r\n", &long] {
            let said = said(address, nonsense).await;
            assert!(said.is_empty() || said.starts_with("HTTP/1.1 4"), "{said}");
        }
        assert!(said(address, b"GET /metrics HTTP/1.0\r\n\r\n").await.ends_with("# EOF\n"));
    }

    #[tokio::test]
    async fn who_says_nothing_keeps_nobody_waiting_for_long() {
        let address = served().await;
        let mut silent = Vec::new();
        for _ in 0..CONNECTIONS {
            silent.push(TcpStream::connect(address).await.unwrap());
        }
        // This client waits behind a full set of connections, each of which may use the whole time
        // for its head.
        let page = said(address, b"GET /metrics HTTP/1.0\r\n\r\n").await;
        assert!(page.ends_with("# EOF\n"), "{page}");
    }

    #[tokio::test]
    async fn an_address_that_is_taken_is_said() {
        let address = served().await;
        let failure = listen(address).await.unwrap_err();
        assert!(failure.with_causes().contains(&address.to_string()), "{failure:?}");
        assert_eq!(failure.way_out(), Some(Remedy::OtherAddress), "{failure:?}");
    }
}
