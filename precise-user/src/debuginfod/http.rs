//! One request to a server of debug information, with bounds.

use std::fs::File;
use std::io::Write as _;
use std::time::{Duration, Instant};

use reqwest::redirect::{Action, Attempt, Policy};
use reqwest::{Client, StatusCode, Url};
use tokio::runtime::Runtime;

use super::DebuginfodSettings;
use super::files::{DebugSource, SourceError};
use crate::error::{ExitClass, Failure};
use crate::web::{self, CERTIFICATES, describe, innermost};

/// Maximum number of redirects.
const MAX_REDIRECTS: usize = 3;

/// A server.
pub(super) struct HttpSource {
    client: Client,
    runtime: Runtime,
    url: Url,
    shown: String,
    longest: Duration,
    largest: u64,
}

impl HttpSource {
    /// Prepares the client of a server.
    ///
    /// # Errors
    ///
    /// Returns an error if its address is not valid, or if the machine has no certificates of
    /// authorities, which HTTPS needs.
    pub fn new(server: &str, settings: &DebuginfodSettings) -> Result<Self, Failure> {
        let invalid = |shown: &str, what: String| {
            let what = format!("cannot ask {shown} of DEBUGINFOD_URLS: {what}");
            Failure::new(ExitClass::Usage, what)
        };
        let url = Url::parse(server).map_err(|error| invalid("a server", error.to_string()))?;
        let shown = shown(&url);
        let builder = web::client(url.scheme() == "https")
            .read_timeout(settings.timeout)
            .timeout(settings.longest)
            .redirect(Policy::custom(redirected));
        let client =
            builder.build().map_err(|error| invalid(&shown, innermost(&error)).advise(CERTIFICATES))?;
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(|error| {
                Failure::new(ExitClass::Failed, format!("cannot start the client for {shown}: {error}"))
            })?;
        Ok(Self { client, runtime, url, shown, longest: settings.longest, largest: settings.largest })
    }

    async fn receive(
        &self,
        url: Url,
        file: &mut File,
        tell: &dyn Fn(Option<u64>),
    ) -> Result<bool, SourceError> {
        let begun = Instant::now();
        let late = || "no answer in time (DEBUGINFOD_TIMEOUT, DEBUGINFOD_MAXTIME)".to_owned();
        let down = |error: &reqwest::Error| SourceError::Down(describe(error, late));
        let mut response = self.client.get(url).send().await.map_err(|error| down(&error))?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::NOT_FOUND => return Ok(false),
            other if other.is_server_error() || other == StatusCode::TOO_MANY_REQUESTS => {
                return Err(SourceError::Down(format!("it answers {other}")));
            }
            other => return Err(SourceError::File(format!("it answers {other}"))),
        }
        let too_large = || {
            SourceError::File(format!(
                "the file has more than {} MB (DEBUGINFOD_MAXSIZE)",
                self.largest.div_ceil(1 << 20)
            ))
        };
        let size = response.content_length();
        if size.is_some_and(|size| size > self.largest) {
            return Err(too_large());
        }
        tell(size);
        let mut got = 0_u64;
        while let Some(chunk) = response.chunk().await.map_err(|error| down(&error))? {
            got = got.saturating_add(chunk.len() as u64);
            if got > self.largest {
                return Err(too_large());
            }
            if begun.elapsed() > self.longest {
                let seconds = self.longest.as_secs();
                return Err(SourceError::Down(format!("it took more than {seconds} s (DEBUGINFOD_MAXTIME)")));
            }
            let written = file.write_all(&chunk);
            written.map_err(|error| SourceError::File(format!("cannot write the file: {error}")))?;
        }
        if got == 0 {
            return Err(SourceError::File("the file is empty".to_owned()));
        }
        Ok(true)
    }
}

impl DebugSource for HttpSource {
    fn fetch(&self, id: &str, file: &mut File, tell: &dyn Fn(Option<u64>)) -> Result<bool, SourceError> {
        let mut url = self.url.clone();
        let folder = self.url.path().trim_end_matches('/');
        url.set_path(&format!("{folder}/buildid/{id}/debuginfo"));
        self.runtime.block_on(self.receive(url, file, tell))
    }

    fn shown(&self) -> &str {
        &self.shown
    }
}

/// Follows a few redirects, and none that gives up encryption.
fn redirected(attempt: Attempt<'_>) -> Action {
    let before = attempt.previous();
    let encrypted = before.last().is_some_and(|url| url.scheme() == "https");
    if before.len() > MAX_REDIRECTS || (encrypted && attempt.url().scheme() != "https") {
        attempt.stop()
    } else {
        attempt.follow()
    }
}

/// Returns an address without its user and password.
fn shown(url: &Url) -> String {
    let mut shown = url.clone();
    // Fails only for addresses that have neither.
    let _without = shown.set_username("").and_then(|()| shown.set_password(None));
    shown.to_string()
}
