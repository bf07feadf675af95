//! One request to a backend.

use std::time::Duration;

use bytes::Bytes;
use reqwest::Url;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::answer::HttpAnswer;
use super::{PushHeaders, PushTarget};
use crate::error::{ExitClass, Failure};
use crate::web::{CERTIFICATES, WebClient};

/// Timeout for a request, including its answer: what OpenTelemetry's exporters use.
const REQUEST: Duration = Duration::from_secs(10);
/// How much of an answer is read.
const ANSWER: usize = 64 << 10;

/// The client of one backend.
pub(super) struct PushClient {
    client: WebClient,
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
        let client = WebClient::new(target.is_encrypted(), REQUEST, ANSWER)
            .map_err(|error| invalid(&error).advise(CERTIFICATES))?;
        Ok(Self { client, url, headers: fields })
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
        let answer = self.client.ask(|client| client.post(url).headers(headers).body(body))?;
        Ok(HttpAnswer {
            status: answer.status,
            retry_after: answer.retry_after,
            is_protobuf: answer.content_type.starts_with("application/x-protobuf"),
            body: answer.body,
        })
    }
}
