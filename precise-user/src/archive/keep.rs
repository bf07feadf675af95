//! Writes captures to an archive: chooses their names, and writes the file that lists them.

use std::fmt;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use chrono::DateTime;
use schemars::JsonSchema;
use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::store::{Existing, Store};
use super::{ArchivePlace, Label};
use crate::error::{ExitClass, Failure};
use precise_capture::{CaptureFile as _, ReadLimits};
use precise_model::Capture;
use precise_views as views;

/// Format of the time in names; names therefore sort by time.
pub(super) const TIME: &str = "%Y%m%dT%H%M%SZ";
/// What a name has in place of the time of a capture that does not know it: an import from a pipe.
/// The start of the hash of its contents follows, by which such captures differ. Such names sort
/// before all times.
const UNKNOWN_TIME: &str = "0_unknown_";

/// Limits for reading a capture that is archived while a run goes on: 13 MB of rows.
const ROLLING: ReadLimits = ReadLimits { rows: 1 << 16, bytes: 64 << 20 };

precise_model::catalogue! {
    /// The role of a capture in a pair of a precise and a plain one.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum PairSide: &'static str {
        /// All events of the capture are precise.
        Precise => "precise",
        /// Some events of the capture are precise, others are not.
        Both => "both",
        /// No event of the capture is precise.
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

    /// Returns the word of a name for this role.
    pub const fn word(self) -> &'static str {
        self.entry()
    }
}

/// The captures that were archived together.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Archive {
    /// The label that they were archived under.
    pub label: String,
    /// The place that the label stands for, as `precise diff` takes it.
    pub place: String,
    /// Host that the captures were made on. If they come from several hosts, the host of the first
    /// one.
    pub host: String,
    /// Start of the first capture, in nanoseconds since the Unix epoch; 0 if it is not known.
    pub start_unix_ns: u64,
    /// The archived captures.
    pub captures: Vec<Archived>,
}

/// A capture in an archive.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Archived {
    /// Name of the capture's file below the label.
    pub name: String,
    /// Role of the capture: precise, plain, or both.
    pub kind: PairSide,
    /// Names of the events in the capture.
    pub events: Vec<String>,
    /// Number of samples of all events.
    pub samples: u64,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// The command line that made the capture.
    pub command: Vec<String>,
}

/// The name of a capture in an archive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CaptureName {
    pub text: String,
    pub time: String,
    pub host: String,
    pub kind: PairSide,
}

impl CaptureName {
    fn of(capture: &Capture, bytes: &[u8], kind: PairSide) -> Self {
        let time = time(capture, bytes);
        let host = host(capture);
        Self { text: format!("{time}-{host}-{}.parquet", kind.word()), time, host, kind }
    }

    /// Splits a name into its parts; `None` if the name does not have the format of an archived
    /// capture.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let stem = text.strip_suffix(".parquet")?;
        let (time, rest) = stem.split_once('-')?;
        let (host, word) = rest.rsplit_once('-')?;
        let kind = PairSide::ALL.into_iter().find(|kind| kind.word() == word)?;
        if !time.starts_with(UNKNOWN_TIME) {
            chrono::NaiveDateTime::parse_from_str(time, TIME).ok()?;
        }
        Some(Self { text: text.to_owned(), time: time.to_owned(), host: host.to_owned(), kind })
    }
}

fn time(capture: &Capture, bytes: &[u8]) -> String {
    if capture.meta.start_unix_ns == 0 {
        let hash: String = Sha256::digest(bytes).iter().take(4).map(|byte| format!("{byte:02x}")).collect();
        return format!("{UNKNOWN_TIME}{hash}");
    }
    let ns = i64::try_from(capture.meta.start_unix_ns).unwrap_or_default();
    DateTime::from_timestamp_nanos(ns).format(TIME).to_string()
}

/// Returns the host as a part of a name. It must be made safe because a capture file can contain
/// any text.
fn host(capture: &Capture) -> String {
    let safe = |c: char| if c.is_ascii_alphanumeric() || c == '.' || c == '-' { c } else { '_' };
    let name: String = capture.meta.machine.host.chars().take(64).map(safe).collect();
    let name = name.trim_matches(['.', '-']).to_owned();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// Archives captures under a label, then writes the file that lists them, and returns that list.
/// Existing files are never replaced.
///
/// # Errors
///
/// Returns an error if a file is not a capture, if two captures have the same name, or if the place
/// cannot be written. Files that were already written stay, but no file lists them.
pub fn keep(place: &ArchivePlace, label: &Label, files: &[PathBuf]) -> Result<Archive, Failure> {
    write(place, &Labelling::Given(label), files, &ReadLimits::default(), Existing::Refuse)
}

/// Archives a capture of a run that goes on, in little memory: its epochs are joined if they do not
/// fit, which the file that lists it does not show. The label is made for each host and day,
/// `PREFIX-HOST-20261124`, so that it stands for one host, and never for too many captures. `again`
/// says that an earlier attempt may have written a part; what exists then is accepted.
///
/// # Errors
///
/// Returns an error as [`keep`] does.
pub fn keep_rolling(
    place: &ArchivePlace,
    prefix: &Label,
    file: &Path,
    again: bool,
) -> Result<Archive, Failure> {
    let existing = if again { Existing::Accept } else { Existing::Refuse };
    write(place, &Labelling::ByDay(prefix), &[file.to_owned()], &ROLLING, existing)
}

/// How the label is chosen.
enum Labelling<'a> {
    Given(&'a Label),
    /// This, the host and the day.
    ByDay(&'a Label),
}

impl Labelling<'_> {
    fn label(&self, host: &str, time: &str) -> Result<Label, Failure> {
        match self {
            Self::Given(label) => Ok((*label).clone()),
            Self::ByDay(prefix) => {
                let day = time.split('T').next().unwrap_or_default();
                let label = Label::parse(&format!("{}-{host}-{day}", prefix.as_str()));
                label.map_err(|error| Failure::new(ExitClass::Usage, error))
            }
        }
    }
}

fn write(
    place: &ArchivePlace,
    labelling: &Labelling<'_>,
    files: &[PathBuf],
    limits: &ReadLimits,
    existing: Existing,
) -> Result<Archive, Failure> {
    let mut captures: Vec<(Archived, Bytes)> = Vec::new();
    let mut first = None;
    for path in files {
        let unreadable = |error: &dyn fmt::Display| Failure::new(ExitClass::BadFile, error.to_string());
        // The bytes that are checked to be a capture are the same bytes that are archived.
        let bytes = std::fs::read(path)
            .map(Bytes::from)
            .map_err(|error| unreadable(&format!("cannot read {}: {error}", path.display())))?;
        let shown = path.display().to_string();
        let capture =
            Capture::read_bytes(bytes.clone(), &shown, limits).map_err(|error| unreadable(&error))?;
        let kind = PairSide::of(&capture);
        let name = CaptureName::of(&capture, &bytes, kind);
        let named = (name.host, name.time, capture.meta.start_unix_ns);
        let name = name.text;
        if captures.iter().any(|(other, _)| other.name == name) {
            return Err(Failure::new(
                ExitClass::Usage,
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
        first.get_or_insert(named);
    }
    let Some((host, time, start_unix_ns)) = first else {
        return Err(
            Failure::new(ExitClass::Usage, "there are no captures to archive").advise("Name them with -i.")
        );
    };
    let label = labelling.label(&host, &time)?;
    let place = place.below(label.as_str());
    let store = Store::open(&place)?;
    let mut kept = Vec::new();
    for (archived, bytes) in captures {
        store.put(&archived.name, bytes, existing)?;
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
        .map_err(|error| Failure::new(ExitClass::Failed, format!("cannot write the list: {error}")))?;
    store.put(&format!("{time}-{host}.json"), list.into(), existing)?;
    Ok(archive)
}
