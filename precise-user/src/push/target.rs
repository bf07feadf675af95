//! Where profiles go.

use std::fmt;

precise_model::catalogue! {
    /// The kind of a backend: its word, and the path that a URL without a path gets.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum PushKind: (&'static str, &'static str) {
        /// A collector of OpenTelemetry, or whatever takes its protocol over HTTP.
        Otlp => ("otlp", "/v1development/profiles"),
        /// Grafana Pyroscope.
        Pyroscope => ("pyroscope", "/ingest"),
    }
}

impl PushKind {
    /// Returns the word for it in flags, metrics and messages.
    pub const fn word(self) -> &'static str {
        self.entry().0
    }

    /// Parses `KIND=REST`.
    ///
    /// # Errors
    ///
    /// Returns a sentence if `KIND` is unknown or `REST` is empty.
    pub fn split(text: &str) -> Result<(Self, &str), String> {
        let (word, rest) = text.split_once('=').unwrap_or((text, ""));
        let kind = Self::ALL.into_iter().find(|kind| kind.word() == word);
        match kind {
            Some(kind) if !rest.is_empty() => Ok((kind, rest)),
            Some(kind) => Err(format!("nothing follows '{}='", kind.word())),
            None => Err(format!("'{word}' is not a kind of backend; the kinds are otlp and pyroscope")),
        }
    }
}

/// A backend: its kind and its address.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PushTarget {
    /// Its kind.
    pub kind: PushKind,
    /// The URL as the user wrote it. It has no secrets, because messages and metrics show it.
    shown: String,
}

impl PushTarget {
    /// Parses `KIND=URL`, where the URL has a scheme (`http` or `https`), a host, and perhaps a
    /// port and a path.
    ///
    /// # Errors
    ///
    /// Returns a sentence that says what is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (kind, url) = PushKind::split(text)?;
        let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
        let Some(rest) = rest else {
            return Err("the address must begin with http:// or https://".to_owned());
        };
        if !url.chars().all(|c| c.is_ascii_graphic()) {
            return Err("the address must be of ASCII letters, digits and signs".to_owned());
        }
        if rest.contains(['@', '?', '#']) {
            return Err(
                "the address must have no user, query or fragment, because metrics show it; a token belongs \
                 in the file of --push-headers"
                    .to_owned(),
            );
        }
        let (authority, _) = rest.split_once('/').unwrap_or((rest, ""));
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => (host, Some(port)),
            _ => (authority, None),
        };
        if host.is_empty() || port.is_some_and(|port| port.parse::<u16>().is_err()) {
            return Err(
                "the address needs a host, and a number as its port: http://collector:4318".to_owned()
            );
        }
        Ok(Self { kind, shown: url.to_owned() })
    }

    /// Returns the URL of requests. One without a path gets that of its kind.
    pub fn url(&self) -> String {
        let start = self.shown.find("://").map_or(0, |at| at + 3);
        let (before, path) = self.shown.split_at(start);
        match path.split_once('/') {
            Some((_, path)) if !path.is_empty() => self.shown.clone(),
            Some((authority, _)) => format!("{before}{authority}{}", self.kind.entry().1),
            None => format!("{before}{path}{}", self.kind.entry().1),
        }
    }

    /// Returns whether requests are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.shown.starts_with("https://")
    }
}

impl fmt::Display for PushTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.kind.word(), self.shown)
    }
}
