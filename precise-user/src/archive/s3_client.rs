//! The HTTP client of [`object_store`], which is the one that pushes profiles too. The crate would
//! bring its own with HTTP/2, which it advises against and by default does not use, for 2 more
//! packages and a fiftieth of the binary.

use std::error::Error;
use std::io;
use std::time::Duration;

use async_trait::async_trait;
use http_body_util::BodyExt as _;
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpResponseBody,
    HttpService,
};
use object_store::{ClientConfigKey, ClientOptions};
use reqwest::{Body, Client, Request, Url};

use crate::web;

/// Makes the clients of one store.
#[derive(Debug)]
pub(super) struct S3Connector {
    /// Timeout for a connection. The store's own service of credentials gets less.
    pub connect: Duration,
    /// Timeout for one request, including the body of its answer.
    pub request: Duration,
}

#[derive(Debug)]
struct S3Client(Client);

impl HttpConnector for S3Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let plain =
            options.get_config_value(&ClientConfigKey::AllowHttp).is_some_and(|value| value == "true");
        let connect = options.get_config_value(&ClientConfigKey::ConnectTimeout);
        let connect = connect.and_then(|value| value.strip_suffix('s')?.parse().ok());
        let client = web::client(!plain)
            .connect_timeout(connect.map_or(self.connect, Duration::from_secs))
            .timeout(self.request)
            .https_only(!plain)
            .build()
            .map_err(|error| object_store::Error::Generic { store: "S3", source: Box::new(error) })?;
        Ok(HttpClient::new(S3Client(client)))
    }
}

#[async_trait]
impl HttpService for S3Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string())
            .map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
        let mut request = Request::new(parts.method, url);
        *request.headers_mut() = parts.headers;
        let whole = body.as_bytes().cloned();
        *request.body_mut() = Some(whole.map_or_else(|| Body::wrap(body), Body::from));
        let mut answer = self.0.execute(request).await.map_err(failed)?;
        let (status, headers) = (answer.status(), std::mem::take(answer.headers_mut()));
        let mut response = HttpResponse::new(HttpResponseBody::new(Body::from(answer).map_err(failed)));
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

/// Returns the error, with the kind that says whether the request may be repeated.
fn failed(error: reqwest::Error) -> HttpError {
    let kind = if error.is_timeout() {
        HttpErrorKind::Timeout
    } else if error.is_connect() {
        HttpErrorKind::Connect
    } else if error.is_decode() {
        HttpErrorKind::Decode
    } else if broke_off(&error) {
        HttpErrorKind::Interrupted
    } else {
        HttpErrorKind::Request
    };
    // The address is a part of what the crate says around it.
    HttpError::new(kind, error.without_url())
}

/// Returns whether the connection broke while bytes went over it.
fn broke_off(error: &reqwest::Error) -> bool {
    let mut next = error.source();
    while let Some(error) = next {
        if error.is::<io::Error>() {
            return true;
        }
        next = error.source();
    }
    false
}
