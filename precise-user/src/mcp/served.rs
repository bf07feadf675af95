//! A running `precise serve` as a place: its last minutes are a capture each time that they are
//! fetched. What it answers is not trusted: time, bytes and the number of captures are bounded.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use chrono::DateTime;
use precise_capture::{CaptureFile as _, ReadLimits};
use precise_model::Capture;
use precise_model::text::sanitize;
use precise_sampling::serve::Token;
use reqwest::Url;
use reqwest::header::{AUTHORIZATION, HeaderValue};

use super::fit::shorten;
use crate::archive::StoredFile;
use crate::error::{ExitClass, Failure};
use crate::web::{CERTIFICATES, WebAnswer, WebClient};

/// Timeout for a capture: the service makes it when it is asked.
const REQUEST: Duration = Duration::from_secs(30);
/// The largest capture that is fetched, in bytes, and the most bytes of all that are kept.
const LARGEST: usize = 64 << 20;
/// The number of captures that are kept: an agent asks several questions about one, and compares.
const KEPT: usize = 8;
/// How long the newest capture stands for what the machine does now.
const NOW: Duration = Duration::from_secs(60);

/// The captures of a running service.
pub(super) struct ServedCaptures {
    client: WebClient,
    url: Url,
    token: Option<HeaderValue>,
    /// When the newest capture was fetched.
    fetched: Option<Instant>,
    /// The newest one first.
    kept: VecDeque<(StoredFile, Bytes)>,
}

impl ServedCaptures {
    /// Opens a service by its address. This sends no request yet.
    ///
    /// # Errors
    ///
    /// Returns an error if the address is not that of a service, or if the token would be sent so
    /// that others can read it.
    pub(super) fn open(address: &str, token: Option<&Token>) -> Result<Self, Failure> {
        let usage = |what: String| Failure::new(ExitClass::Usage, what);
        let shown = shorten(&sanitize(address), 120);
        let mut url = Url::parse(address).map_err(|error| usage(format!("{shown}: {error}")))?;
        let is_plain = url.username().is_empty() && url.password().is_none();
        if !is_plain || url.query().is_some() || url.fragment().is_some() || url.path() != "/" {
            let what = format!("{shown} must be the address of a `precise serve`, without a path or a user");
            return Err(usage(what)
                .advise("Write http://127.0.0.1:7732; the token belongs in the file of --token-file."));
        }
        let is_encrypted = url.scheme() == "https";
        let host = url.host_str().unwrap_or_default().trim_matches(['[', ']']);
        let is_here = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if token.is_some() && !is_encrypted && !is_here {
            let what = format!("the token would go to {shown} so that others can read it");
            return Err(usage(what).advise("Use https://, or ssh to the machine and 127.0.0.1."));
        }
        let token = token.map(|token| HeaderValue::from_str(&token.bearer())).transpose();
        let mut token = token.map_err(|_| usage("the token is not valid in a request".to_owned()))?;
        token.iter_mut().for_each(|token| token.set_sensitive(true));
        url.set_path("/capture");
        let client = WebClient::new(is_encrypted, REQUEST, LARGEST)
            .map_err(|error| usage(format!("cannot ask {shown}: {error}")).advise(CERTIFICATES))?;
        Ok(Self { client, url, token, fetched: None, kept: VecDeque::new() })
    }

    /// Returns the address.
    pub(super) fn place(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Lets the next list have what the machine does then.
    pub(super) fn look_again(&mut self) {
        self.fetched = None;
    }

    /// Returns the captures, newest first. Fetches one if the newest is too old.
    ///
    /// # Errors
    ///
    /// Returns an error if there is none.
    pub(super) fn list(&mut self) -> Result<Vec<StoredFile>, Failure> {
        if self.fetched.is_none_or(|at| at.elapsed() > NOW) {
            let bytes = self.fetch()?;
            self.fetched = Some(Instant::now());
            self.keep(bytes);
        }
        Ok(self.kept.iter().map(|(file, _)| file.clone()).collect())
    }

    /// Reads a capture.
    ///
    /// # Errors
    ///
    /// Returns an error if it is no longer kept, or damaged.
    pub(super) fn read(&self, file: &StoredFile) -> Result<Capture, Failure> {
        let kept = self.kept.iter().find(|(kept, _)| kept == file);
        let (_, bytes) = kept.ok_or_else(|| {
            Failure::new(ExitClass::BadFile, format!("{} is no longer kept", file.name))
                .advise("The tool `captures` lists those that are.")
        })?;
        let label = format!("{}/{}", self.place(), file.name);
        Capture::read_bytes(bytes.clone(), &label, &ReadLimits::default())
            .map_err(|error| Failure::new(ExitClass::BadFile, error.to_string()))
    }

    fn keep(&mut self, bytes: Bytes) {
        // The service sends a capture again for some seconds.
        if self.kept.front().is_some_and(|(_, newest)| *newest == bytes) {
            return;
        }
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = i64::try_from(since.as_nanos()).unwrap_or_default();
        let name = DateTime::from_timestamp_nanos(now).format("live-%Y%m%dT%H%M%S%.3fZ").to_string();
        let length = bytes.len() as u64;
        let (kind, host, start_ns) = (None, None, None);
        let file = StoredFile { name, bytes: length, modified_ns: now, kind, host, start_ns };
        self.kept.push_front((file, bytes));
        let all = |kept: &VecDeque<(StoredFile, Bytes)>| kept.iter().map(|(_, of)| of.len()).sum::<usize>();
        while self.kept.len() > KEPT || (all(&self.kept) > LARGEST && self.kept.len() > 1) {
            self.kept.pop_back();
        }
    }

    fn fetch(&self) -> Result<Bytes, Failure> {
        let failed = |class: ExitClass, what: &str| Failure::new(class, format!("{}: {what}", self.place()));
        let request = |client: &reqwest::Client| {
            let request = client.get(self.url.clone());
            match &self.token {
                Some(token) => request.header(AUTHORIZATION, token.clone()),
                None => request,
            }
        };
        let answer = self.client.ask(request).map_err(|error| {
            failed(ExitClass::Failed, &error)
                .advise("Check the address, and that `precise serve` runs there.")
        })?;
        let WebAnswer { status, body, is_whole, .. } = answer;
        match status {
            200 if is_whole => Ok(body.into()),
            200 if body.len() == LARGEST => {
                Err(failed(ExitClass::BadFile, &format!("its capture has more than {LARGEST} bytes")))
            }
            200 => Err(failed(ExitClass::Failed, "the connection broke within the capture")),
            401 => Err(failed(ExitClass::Permission, "it answers only requests with its token")
                .advise("Name the file of the token with --token-file.")),
            404 => Err(failed(
                ExitClass::Unsupported,
                "there are no captures: it is not a `precise serve`, or an old one",
            )
            .advise("Start `precise serve` of this version there, or name a folder of captures.")),
            _ => {
                let text = String::from_utf8_lossy(&body);
                let said = shorten(&sanitize(text.lines().next().unwrap_or_default()), 200);
                Err(failed(ExitClass::Failed, &format!("status {status}: {said}")))
            }
        }
    }
}
