//! Clients of HTTP, and one request with bounds: time and bytes of the answer. Redirects are not
//! followed.

use std::time::Duration;

use precise_model::text::sanitize;
use reqwest::header::{CONTENT_TYPE, HeaderName, RETRY_AFTER};
use reqwest::{Client, ClientBuilder, RequestBuilder, redirect};
use tokio::runtime::Runtime;

/// Timeout for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// The advice where a client cannot be made.
pub(crate) const CERTIFICATES: &str = "HTTPS needs the certificates of ca-certificates, or SSL_CERT_FILE.";

/// A client whose requests have bounds.
pub(crate) struct WebClient {
    client: Client,
    runtime: Runtime,
    time: Duration,
    most: usize,
}

/// An answer, which is not trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct WebAnswer {
    pub status: u16,
    /// The field Content-Type; empty if there is none.
    pub content_type: String,
    /// The field Retry-After.
    pub retry_after: Option<String>,
    /// The first bytes of the body.
    pub body: Vec<u8>,
    /// Whether the body ends there.
    pub is_whole: bool,
}

impl WebClient {
    /// Makes a client. A request takes at most `time`, with its answer, of whose body at most
    /// `most` bytes are read.
    ///
    /// # Errors
    ///
    /// Returns a sentence if it cannot be made: HTTPS needs the certificates of the machine.
    pub fn new(is_encrypted: bool, time: Duration, most: usize) -> Result<Self, String> {
        // Between two requests nobody looks after a connection, so none is kept.
        let builder =
            client(is_encrypted).timeout(time).pool_max_idle_per_host(0).redirect(redirect::Policy::none());
        let client = builder.build().map_err(|error| innermost(&error))?;
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| format!("the client does not start: {error}"))?;
        Ok(Self { client, runtime, time, most })
    }

    /// Sends a request.
    ///
    /// # Errors
    ///
    /// Returns a sentence if there is no answer in time.
    pub fn ask(&self, request: impl FnOnce(&Client) -> RequestBuilder) -> Result<WebAnswer, String> {
        self.runtime.block_on(async {
            let sent = request(&self.client).send().await;
            let late = || format!("no answer within {} s", self.time.as_secs());
            let mut response = sent.map_err(|error| describe(&error, late))?;
            let text = |name: HeaderName| {
                response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
            };
            let mut answer = WebAnswer {
                status: response.status().as_u16(),
                content_type: text(CONTENT_TYPE).unwrap_or_default(),
                retry_after: text(RETRY_AFTER),
                body: Vec::new(),
                is_whole: false,
            };
            // The status is the answer. A body that is cut says less.
            while let Ok(chunk) = response.chunk().await {
                let Some(chunk) = chunk else {
                    answer.is_whole = true;
                    break;
                };
                let room = self.most - answer.body.len();
                answer.body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
                if chunk.len() > room {
                    break;
                }
            }
            Ok(answer)
        })
    }
}

/// Returns why there is no answer; `late` says that it did not come in time.
pub(crate) fn describe(error: &reqwest::Error, late: impl FnOnce() -> String) -> String {
    if error.is_timeout() {
        return late();
    }
    let what = if error.is_connect() { "cannot connect" } else { "the connection broke" };
    format!("{what}: {}", innermost(error))
}

/// Returns what all clients have in common.
pub(crate) fn client(is_encrypted: bool) -> ClientBuilder {
    // An error means that another provider was installed before, which is just as good.
    let _installed = rustls::crypto::ring::default_provider().install_default();
    let builder =
        Client::builder().connect_timeout(CONNECT).user_agent(concat!("precise/", env!("CARGO_PKG_VERSION")));
    // Without TLS, the authorities of the machine are not needed.
    if is_encrypted { builder } else { builder.tls_certs_only([]) }
}

/// Returns the innermost cause of an error, because the outer errors of the client repeat the
/// address.
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(cause) = inner.source() {
        inner = cause;
    }
    sanitize(&inner.to_string())
}
