//! The HTTP/1 server: it serves one page, on a thread of its own, and trusts no client.
//!
//! The thread that reads the tables is never involved, so requests can neither delay it nor count
//! as its cost. There is no limit of requests per second: all users of a machine share its loopback
//! address, so such a limit would let any of them lock out the scraper, and a request costs no more
//! than sending a page that is already made.

use std::{
    convert::Infallible,
    io,
    net::{SocketAddr, TcpListener},
    sync::{Arc, mpsc},
    thread::JoinHandle,
    time::{Duration, Instant},
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{ALLOW, CONTENT_TYPE, HeaderValue, VARY},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::TcpStream,
    runtime::Runtime,
    sync::oneshot,
    task::yield_now,
    time::{sleep, timeout},
};

use super::{
    connections::{Bounds, ConnectionPlace, Connections},
    format::PageFormat,
    hosts::{HostRule, Hosts},
    page::Page,
    traffic::Closed,
};
use crate::error::{Remedy, SamplingError};
use crate::rights;

/// The maximum size of a request's head and body in bytes; hyper requires at least 8 KiB.
const REQUEST_BYTES: usize = 8 << 10;
/// The pause after a connection could not be accepted for lack of file descriptors.
const PAUSE: Duration = Duration::from_millis(200);

const WELCOME: &str = "precise: the metrics are at /metrics\n";
const METHODS: &str = "only GET and HEAD are supported\n";
const ONE_HOST: &str = "a request must name one host: the Host field is missing, repeated or invalid\n";
const UNKNOWN_HOST: &str = "precise does not know this host name as its own, which protects it from DNS \
    rebinding: use an IP address or localhost, or let precise serve accept the name\n";

/// A listening socket.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    hosts: HostRule,
    /// The address. If port 0 was requested, it has the port that the kernel chose.
    pub address: SocketAddr,
}

/// Listens at an address, for requests to IP addresses, `localhost` and these hosts. Must be called
/// before privileges are dropped, because a port below 1024 needs one.
///
/// # Errors
///
/// Returns an error if the address does not belong to this machine, or is in use.
pub fn listen(address: SocketAddr, hosts: Hosts) -> Result<Listening, SamplingError> {
    let bind = || {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Listening { listener, hosts: hosts.rule(address.ip()), address })
    };
    bind().map_err(|error: io::Error| {
        SamplingError::failed(format!("cannot listen on {address}"), error).remedy(Remedy::OtherAddress)
    })
}

/// The thread that answers requests, until this is dropped. Connections that are open then are
/// closed.
#[derive(Debug)]
pub(super) struct Server {
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Drop for Server {
    fn drop(&mut self) {
        // The thread may have died; `is_finished` tells.
        let _dead = self.stop.take().map(|stop| stop.send(()));
        let _dead = self.thread.take().map(JoinHandle::join);
    }
}

impl Server {
    /// Starts to answer requests with the page.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread or its event loop cannot be started.
    pub fn start(listening: Listening, page: Arc<Page>) -> Result<Self, SamplingError> {
        Self::within(listening, page, Bounds::default())
    }

    fn within(listening: Listening, page: Arc<Page>, bounds: Bounds) -> Result<Self, SamplingError> {
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let Listening { listener, hosts, address: _ } = listening;
        let body = move || {
            let (runtime, listener) = match prepare(listener) {
                Ok(prepared) => prepared,
                Err(error) => {
                    // Only a thread that died does not wait for this.
                    let _dead = tell.send(Err(error));
                    return;
                }
            };
            let connections = Connections::new(bounds, page.traffic());
            let answering = Arc::new(Answering { page, hosts, connections, bounds });
            let _dead = tell.send(Ok(()));
            runtime.block_on(async {
                tokio::select! {
                    _ = stopped => {}
                    () = answering.accept_all(listener) => {}
                }
            });
        };
        let failed =
            |error: io::Error| SamplingError::failed("cannot start the thread that answers requests", error);
        let thread = std::thread::Builder::new().name("serve".into()).spawn(body).map_err(failed)?;
        let begun = told.recv().unwrap_or_else(|_| Err(io::Error::other("it died")));
        begun.map_err(failed)?;
        Ok(Self { stop: Some(stop), thread: Some(thread) })
    }

    /// Returns whether the thread has ended, which it never should.
    pub fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

/// Prepares the thread that answers requests. It reads what anyone sends, so it has no
/// capabilities.
fn prepare(listener: TcpListener) -> io::Result<(Runtime, tokio::net::TcpListener)> {
    rights::drop_all().map_err(io::Error::other)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _within = runtime.enter();
        tokio::net::TcpListener::from_std(listener)?
    };
    Ok((runtime, listener))
}

/// What connections share.
#[derive(Debug)]
struct Answering {
    page: Arc<Page>,
    hosts: HostRule,
    connections: Arc<Connections>,
    bounds: Bounds,
}

impl Answering {
    /// Accepts connections until the future is dropped.
    async fn accept_all(self: &Arc<Self>, listener: tokio::net::TcpListener) {
        loop {
            match listener.accept().await {
                Ok((stream, from)) => self.accept(stream, from),
                Err(_) => {
                    self.page.traffic().closed(Closed::NotAccepted);
                    sleep(PAUSE).await;
                }
            }
            // The new connection reads what it has received before further ones can displace it as
            // an idle one.
            yield_now().await;
        }
    }

    fn accept(self: &Arc<Self>, stream: TcpStream, from: SocketAddr) {
        let Some(place) = self.connections.admit(from.ip(), Instant::now()) else { return };
        let number = place.number();
        let task = tokio::spawn(self.clone().connection(stream, place));
        self.connections.started(number, task.abort_handle());
    }

    async fn connection(self: Arc<Self>, stream: TcpStream, place: ConnectionPlace) {
        let service = service_fn(|request: Request<Incoming>| {
            let answer = self.answer(&request, &place);
            self.page.traffic().answered(answer.status());
            async { Ok::<_, Infallible>(answer) }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.bounds.head)
            .max_buf_size(REQUEST_BYTES)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        let closed = match timeout(self.bounds.whole, connection).await {
            Err(_) => Closed::Deadline,
            Ok(Err(error)) if error.is_timeout() => Closed::Deadline,
            Ok(Err(error)) if error.is_parse() => Closed::Invalid,
            // The answer was sent, or the client closed the connection.
            Ok(_) => return,
        };
        self.page.traffic().closed(closed);
    }

    fn answer(&self, request: &Request<Incoming>, place: &ConnectionPlace) -> Response<Full<Bytes>> {
        let plain = |status, text: &'static str| answer(status, TEXT, Bytes::from_static(text.as_bytes()));
        let (headers, method, target) = (request.headers(), request.method(), request.uri());
        match self.hosts.refuses(request.version(), target, headers) {
            None => {}
            Some(status @ StatusCode::MISDIRECTED_REQUEST) => return plain(status, UNKNOWN_HOST),
            Some(status) => return plain(status, ONE_HOST),
        }
        let path = target.path();
        if path != "/" && path != "/metrics" {
            return plain(StatusCode::NOT_FOUND, WELCOME);
        }
        if method != Method::GET && method != Method::HEAD {
            let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, METHODS);
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refusal;
        }
        if path == "/" {
            return plain(StatusCode::OK, WELCOME);
        }
        let format = PageFormat::accepted(headers);
        match self.page.text(format) {
            Ok(text) => {
                place.answers(&text, Instant::now());
                let mut page = answer(StatusCode::OK, format.content_type(), text);
                page.headers_mut().insert(VARY, HeaderValue::from_static("accept"));
                page
            }
            Err(error) => {
                let why = format!("cannot make the page: {error}\n");
                answer(StatusCode::INTERNAL_SERVER_ERROR, TEXT, why.into())
            }
        }
    }
}

const TEXT: &str = "text/plain; charset=utf-8";

fn answer(status: StatusCode, kind: &'static str, body: Bytes) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
