//! Keeping captures: their names, and the file that lists them.

use std::fmt;
use std::path::PathBuf;

use bytes::Bytes;
use chrono::DateTime;
use schemars::JsonSchema;
use serde::Serialize;

use super::store::Store;
use super::{ArchivePlace, Label};
use crate::error::{Class, Failure};
use precise_capture::CaptureFile as _;
use precise_model::Capture;
use precise_views as views;

/// Time in names: sorts as it passes.
const TIME: &str = "%Y%m%dT%H%M%SZ";

precise_model::catalogue! {
    /// Which of a pair a capture is.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum PairSide: &'static str {
        /// All its events are precise.
        Precise => "precise",
        /// It has events of both kinds.
        Both => "both",
        /// None of its events is precise.
        Plain => "plain",
    }
}

impl PairSide {
    fn of(capture: &Capture) -> Self {
        let events = &capture.meta.events;
        match events.iter().filter(|event| event.verdict.precise).count() {
            0 => Self::Plain,
            n if n == events.len() => Self::Precise,
            _ => Self::Both,
        }
    }

    const fn word(self) -> &'static str {
        self.entry()
    }
}

/// What was kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Archive {
    /// The label.
    pub label: String,
    /// The place that it stands for: what `precise diff` takes.
    pub place: String,
    /// Host that the captures were made on; the first's, where they are of several.
    pub host: String,
    /// When the first was begun, nanoseconds since 1970, UTC.
    pub start_unix_ns: u64,
    /// The captures.
    pub captures: Vec<Archived>,
}

/// One capture of an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Archived {
    /// Its name below the label.
    pub name: String,
    /// Which of a pair it is.
    pub kind: PairSide,
    /// Names of its events.
    pub events: Vec<String>,
    /// Samples of all of them.
    pub samples: u64,
    /// Bytes of the file.
    pub bytes: u64,
    /// The command that made it.
    pub command: Vec<String>,
}

/// The name of a capture in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub text: String,
    pub time: String,
    pub host: String,
    pub kind: PairSide,
}

impl Name {
    fn of(capture: &Capture, kind: PairSide) -> Self {
        let time = time(capture);
        let host = host(capture);
        Self { text: format!("{time}-{host}-{}.parquet", kind.word()), time, host, kind }
    }

    /// The parts of a name; `None` where it is none of ours.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let stem = text.strip_suffix(".parquet")?;
        let (time, rest) = stem.split_once('-')?;
        let (host, word) = rest.rsplit_once('-')?;
        let kind = PairSide::ALL.into_iter().find(|kind| kind.word() == word)?;
        chrono::NaiveDateTime::parse_from_str(time, TIME).ok()?;
        Some(Self { text: text.to_owned(), time: time.to_owned(), host: host.to_owned(), kind })
    }
}

fn time(capture: &Capture) -> String {
    let ns = i64::try_from(capture.meta.start_unix_ns).unwrap_or_default();
    DateTime::from_timestamp_nanos(ns).format(TIME).to_string()
}

/// The host as a part of a name: a file may claim any.
fn host(capture: &Capture) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' };
    let name: String = capture.meta.machine.host.chars().take(64).map(safe).collect();
    let name = name.trim_matches(['.', '-']).to_owned();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// Keeps captures under a label, then the file that lists them, and says what was kept. Nothing is
/// ever replaced.
///
/// # Errors
///
/// When a file is no capture, two have the same name, or the place cannot be written. What was
/// written before stays: nothing lists it.
pub fn keep(place: &ArchivePlace, label: &Label, files: &[PathBuf]) -> Result<Archive, Failure> {
    let place = place.below(label.as_str());
    let mut captures: Vec<(Archived, Bytes)> = Vec::new();
    let mut first = None;
    for path in files {
        let unreadable = |error: &dyn fmt::Display| Failure::new(Class::BadFile, error.to_string());
        // Of the very bytes that are kept it is known that they are a capture.
        let bytes = std::fs::read(path)
            .map(Bytes::from)
            .map_err(|error| unreadable(&format!("cannot read {}: {error}", path.display())))?;
        let shown = path.display().to_string();
        let limits = precise_capture::Limits::default();
        let capture =
            Capture::read_bytes(bytes.clone(), &shown, &limits).map_err(|error| unreadable(&error))?;
        let kind = PairSide::of(&capture);
        let name = Name::of(&capture, kind).text;
        if captures.iter().any(|(other, _)| other.name == name) {
            return Err(Failure::new(
                Class::Usage,
                format!(
                    "{shown} would get the same name {name} as another of these captures: they have \
                    the same host, second and kind"
                ),
            )
            .advise("Archive one of them under another label."));
        }
        let count = |index| views::samples(&capture, index);
        captures.push((
            Archived {
                name,
                kind,
                events: capture.meta.events.iter().map(|event| event.name.clone()).collect(),
                samples: (0..capture.meta.events.len()).map(count).fold(0, u64::saturating_add),
                bytes: bytes.len() as u64,
                command: capture.meta.command.clone(),
            },
            bytes,
        ));
        first.get_or_insert((host(&capture), time(&capture), capture.meta.start_unix_ns));
    }
    let Some((host, time, start_unix_ns)) = first else {
        return Err(Failure::new(Class::Usage, "there are no captures to archive").advise(
            "Name them with \
            -i.",
        ));
    };
    let store = Store::open(&place)?;
    let mut kept = Vec::new();
    for (archived, bytes) in captures {
        store.put(&archived.name, bytes)?;
        kept.push(archived);
    }
    let archive = Archive {
        label: label.as_str().to_owned(),
        place: place.to_string(),
        host: host.clone(),
        start_unix_ns,
        captures: kept,
    };
    let list = precise_views::document::document(&archive, None)
        .map_err(|error| Failure::new(Class::Failed, format!("cannot write the list: {error}")))?;
    store.put(&format!("{time}-{host}.json"), list.into())?;
    Ok(archive)
}
