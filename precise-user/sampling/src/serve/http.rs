//! The HTTP/1 server: it answers on a thread of its own, and trusts no client.
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
    header::{ALLOW, CACHE_CONTROL, CONTENT_TYPE, HeaderValue, VARY, WWW_AUTHENTICATE},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    runtime::Runtime,
    sync::oneshot,
    task::yield_now,
    time::{sleep, timeout},
};

use super::{
    access::AccessPolicy,
    connections::{Bounds, ConnectionPlace, Connections},
    format::PageFormat,
    front::{Front, FrontPart},
    health,
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

const NOT_HERE: &str = "precise has the pages /, /capture, /metrics, /healthz and /readyz\n";
const NO_TOKEN: &str =
    "precise needs its token: as `Authorization: Bearer TOKEN`, or as the password in a browser\n";
const METHODS: &str = "only GET and HEAD are supported\n";
const ONE_HOST: &str = "a request must name one host: the Host field is missing, repeated or invalid\n";
const UNKNOWN_HOST: &str = "precise does not know this host name as its own, which protects it from DNS \
    rebinding: use an IP address or localhost, or let precise serve accept the name\n";

/// A listening socket.
#[derive(Debug)]
pub struct Listening {
    listener: TcpListener,
    hosts: HostRule,
    access: AccessPolicy,
    /// The address. If port 0 was requested, it has the port that the kernel chose.
    pub address: SocketAddr,
}

/// Listens at an address, for requests to IP addresses, `localhost` and these hosts. Must be called
/// before privileges are dropped, because a port below 1024 needs one.
///
/// # Errors
///
/// Returns an error if the address does not belong to this machine, is in use, or needs more than
/// `access` asks for.
pub fn listen(address: SocketAddr, hosts: Hosts, access: AccessPolicy) -> Result<Listening, SamplingError> {
    access.allows(address)?;
    let bind = move || {
        let listener = TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        Ok(Listening { listener, hosts: hosts.rule(address.ip()), access, address })
    };
    bind().map_err(|error: io::Error| {
        SamplingError::failed(format!("cannot listen on {address}"), error).remedy(Remedy::OtherAddress)
    })
}

impl Listening {
    /// Returns the scheme and the address, as a browser takes them.
    pub fn url(&self) -> String {
        let scheme = if self.access.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{}", self.address)
    }
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
    /// Starts to answer requests with the pages for programs and for people.
    ///
    /// # Errors
    ///
    /// Returns an error if the thread or its event loop cannot be started.
    pub fn start(listening: Listening, page: Arc<Page>, front: Arc<Front>) -> Result<Self, SamplingError> {
        Self::within(listening, page, front, Bounds::default())
    }

    fn within(
        listening: Listening,
        page: Arc<Page>,
        front: Arc<Front>,
        bounds: Bounds,
    ) -> Result<Self, SamplingError> {
        let (stop, stopped) = oneshot::channel();
        let (tell, told) = mpsc::channel();
        let Listening { listener, hosts, access, address: _ } = listening;
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
            let answering = Arc::new(Answering { page, front, hosts, access, connections, bounds });
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
    front: Arc<Front>,
    hosts: HostRule,
    access: AccessPolicy,
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
        let served = async {
            match &self.access.tls {
                None => self.clone().requests(stream, place).await,
                Some(tls) => match timeout(self.bounds.head, tls.accept(stream)).await {
                    Ok(Ok(stream)) => self.clone().requests(stream, place).await,
                    Ok(Err(_)) => Some(Closed::Invalid),
                    Err(_) => Some(Closed::Deadline),
                },
            }
        };
        let closed = timeout(self.bounds.whole, served).await.unwrap_or(Some(Closed::Deadline));
        closed.into_iter().for_each(|why| self.page.traffic().closed(why));
    }

    /// Answers the requests of a connection. Returns why it was closed before an answer was sent.
    async fn requests(
        self: Arc<Self>,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        place: ConnectionPlace,
    ) -> Option<Closed> {
        let place = Arc::new(place);
        let service = service_fn(|request: Request<Incoming>| {
            let (answering, place) = (self.clone(), place.clone());
            let route = answering.route(&request);
            async move {
                let answer = match route {
                    Ok(route) => answering.answer(route, &place).await,
                    Err(refusal) => *refusal,
                };
                answering.page.traffic().answered(answer.status());
                Ok::<_, Infallible>(answer)
            }
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(self.bounds.head)
            .max_buf_size(REQUEST_BYTES)
            .keep_alive(false)
            .serve_connection(TokioIo::new(stream), service);
        match connection.await {
            Err(error) if error.is_timeout() => Some(Closed::Deadline),
            Err(error) if error.is_parse() => Some(Closed::Invalid),
            // The answer was sent, or the client closed the connection.
            _ => None,
        }
    }

    /// Returns the route of a request, or the response that refuses it.
    fn route(&self, request: &Request<Incoming>) -> Result<Route, Box<Refusal>> {
        let refuse = |refusal| Err(Box::new(refusal));
        let (headers, method, target) = (request.headers(), request.method(), request.uri());
        match self.hosts.refuses(request.version(), target, headers) {
            None => {}
            Some(status @ StatusCode::MISDIRECTED_REQUEST) => return refuse(plain(status, UNKNOWN_HOST)),
            Some(status) => return refuse(plain(status, ONE_HOST)),
        }
        let route = match target.path() {
            "/" => Route::Front(FrontPart::Page),
            "/capture" => Route::Front(FrontPart::Capture),
            "/metrics" => Route::Metrics(PageFormat::accepted(headers)),
            "/healthz" => Route::Health,
            "/readyz" => Route::Ready,
            _ => return refuse(plain(StatusCode::NOT_FOUND, NOT_HERE)),
        };
        // The probes of a supervisor often cannot send a token.
        let open = matches!(route, Route::Health | Route::Ready);
        if !open && self.access.token.as_ref().is_some_and(|token| !token.is_in(headers)) {
            let mut refusal = plain(StatusCode::UNAUTHORIZED, NO_TOKEN);
            let ask = HeaderValue::from_static("Basic realm=\"precise\", Bearer");
            refusal.headers_mut().insert(WWW_AUTHENTICATE, ask);
            return refuse(refusal);
        }
        if method != Method::GET && method != Method::HEAD {
            let mut refusal = plain(StatusCode::METHOD_NOT_ALLOWED, METHODS);
            refusal.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return refuse(refusal);
        }
        Ok(route)
    }

    async fn answer(&self, route: Route, place: &ConnectionPlace) -> Response<Full<Bytes>> {
        let unavailable =
            |why: &str| answer(StatusCode::SERVICE_UNAVAILABLE, TEXT, format!("{why}\n").into());
        match route {
            Route::Health => match self.page.status(|status| health::unhealthy(status, Instant::now())) {
                None => plain(StatusCode::OK, "ok\n"),
                Some(why) => unavailable(&why),
            },
            Route::Ready => match self.page.status(|status| health::unready(status, Instant::now())) {
                None => plain(StatusCode::OK, "ready\n"),
                Some(why) => unavailable(&why),
            },
            Route::Metrics(format) => self.metrics(format, place),
            Route::Front(part) => match self.front.part(part).await {
                Ok(bytes) => {
                    place.answers(&bytes, Instant::now());
                    let kind = match part {
                        FrontPart::Page => "text/html; charset=utf-8",
                        FrontPart::Capture => "application/vnd.apache.parquet",
                    };
                    let mut page = answer(StatusCode::OK, kind, bytes);
                    page.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
                    page
                }
                Err(why) => unavailable(&format!("there is no page yet: {why}")),
            },
        }
    }

    fn metrics(&self, format: PageFormat, place: &ConnectionPlace) -> Response<Full<Bytes>> {
        match self.page.text(format, self.front.cpu_ns()) {
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

/// The answer to a request that is not answered otherwise.
type Refusal = Response<Full<Bytes>>;

/// What a request asks for.
#[derive(Clone, Copy, Debug)]
enum Route {
    /// The last minutes.
    Front(FrontPart),
    /// The numbers for programs.
    Metrics(PageFormat),
    /// Whether the run goes on.
    Health,
    /// Whether its numbers can be relied on.
    Ready,
}

fn plain(status: StatusCode, text: &'static str) -> Response<Full<Bytes>> {
    answer(status, TEXT, Bytes::from_static(text.as_bytes()))
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
