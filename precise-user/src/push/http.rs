//! One request to a backend, with bounds.

use std::time::Duration;

use bytes::Bytes;
use precise_model::text::sanitize;
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{Client, Url, redirect};
use tokio::runtime::Runtime;

use super::answer::HttpAnswer;
use super::{PushHeaders, PushTarget};
use crate::error::{ExitClass, Failure};

/// Timeout for a connection.
const CONNECT: Duration = Duration::from_secs(5);
/// Timeout for a request, including its answer: what OpenTelemetry's exporters use.
const REQUEST: Duration = Duration::from_secs(10);
/// How much of an answer is read.
const ANSWER: usize = 64 << 10;

/// The client of one backend.
pub(super) struct PushClient {
    client: Client,
    runtime: Runtime,
    url: Url,
    headers: HeaderMap,
}

impl PushClient {
    /// Prepares the client.
    ///
    /// # Errors
    ///
    /// Returns an error if the address or a header field is not valid, or if the machine has no
    /// certificates of authorities, which HTTPS needs.
    pub fn new(target: &PushTarget, headers: &PushHeaders) -> Result<Self, Failure> {
        let usage = |what: String| Failure::new(ExitClass::Usage, what);
        let invalid = |what: &str| usage(format!("cannot push to {target}: {what}"));
        // An error means that another provider was installed before, which is just as good.
        let _installed = rustls::crypto::ring::default_provider().install_default();
        let url = Url::parse(&target.url()).map_err(|error| invalid(&error.to_string()))?;
        let mut fields = HeaderMap::new();
        for (name, value) in headers.fields() {
            let named = HeaderName::from_bytes(name.as_bytes())
                .map_err(|_| invalid(&format!("{name:?} is not the name of a header field")))?;
            let mut value = HeaderValue::from_str(value)
                .map_err(|_| invalid(&format!("the value of the header field {name} is not valid")))?;
            value.set_sensitive(true);
            fields.append(named, value);
        }
        // Between two pushes nobody looks after a connection, so none is kept.
        let builder = Client::builder()
            .connect_timeout(CONNECT)
            .timeout(REQUEST)
            .pool_max_idle_per_host(0)
            .redirect(redirect::Policy::none())
            .user_agent(concat!("precise/", env!("CARGO_PKG_VERSION")));
        // Without TLS, the authorities of the machine are not needed.
        let builder = if target.is_encrypted() { builder } else { builder.tls_certs_only([]) };
        let client = builder.build().map_err(|error| {
            invalid(&innermost(&error))
                .advise("HTTPS needs the certificates of ca-certificates, or SSL_CERT_FILE.")
        })?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
                Failure::new(ExitClass::Failed, format!("cannot start the client for {target}: {error}"))
            })?;
        Ok(Self { client, runtime, url, headers: fields })
    }

    /// Sends a request. `query` is added to the address.
    ///
    /// # Errors
    ///
    /// Returns a sentence if there is no answer in time.
    pub fn post(
        &self,
        query: &str,
        body: Bytes,
        fields: &[(&'static str, &'static str)],
    ) -> Result<HttpAnswer, String> {
        let mut url = self.url.clone();
        url.set_query(Some(query).filter(|query| !query.is_empty()));
        let mut headers = self.headers.clone();
        for (name, value) in fields {
            headers.insert(*name, HeaderValue::from_static(value));
        }
        self.runtime.block_on(async {
            let sent = self.client.post(url).headers(headers).body(body).send().await;
            let mut response = sent.map_err(|error| describe(&error))?;
            let text = |name: HeaderName| {
                response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned)
            };
            let content = text(CONTENT_TYPE).unwrap_or_default();
            let mut answer = HttpAnswer {
                status: response.status().as_u16(),
                retry_after: text(RETRY_AFTER),
                is_protobuf: content.starts_with("application/x-protobuf"),
                body: Vec::new(),
            };
            // The status is the answer. A body that is cut says less.
            while answer.body.len() < ANSWER
                && let Ok(Some(chunk)) = response.chunk().await
            {
                let room = ANSWER - answer.body.len();
                answer.body.extend_from_slice(chunk.get(..room).unwrap_or(&chunk));
            }
            Ok(answer)
        })
    }
}

/// Returns why there is no answer.
fn describe(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return format!("no answer within {} s", REQUEST.as_secs());
    }
    let what = if error.is_connect() { "cannot connect" } else { "the connection broke" };
    format!("{what}: {}", innermost(error))
}

/// Returns the innermost cause of an error, because the outer errors of the client repeat the
/// address.
fn innermost(error: &dyn std::error::Error) -> String {
    let mut inner = error;
    while let Some(cause) = inner.source() {
        inner = cause;
    }
    sanitize(&inner.to_string())
}
