//! The captures of a server: what there is, and those that were read last.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use chrono::{DateTime, SecondsFormat};
use precise_model::Capture;
use precise_model::text::sanitize;
use precise_sampling::serve::Token;
use precise_views::about::Run;
use precise_views::{samples, trust};
use schemars::JsonSchema;
use serde::Serialize;

use super::fit::shorten;
#[cfg(feature = "s3")]
use super::served::ServedCaptures;
use crate::archive::{self, ArchivePlace, StoredFile};
use crate::error::{ExitClass, Failure};

/// Number of captures that stay in memory: a comparison needs two.
const IN_MEMORY: usize = 2;
/// For this long, a list of captures is taken as current. In a bucket, each list is a request for
/// each label.
const CURRENT: Duration = Duration::from_secs(5);
/// Number of captures that the tool `captures` describes at once.
const DESCRIBED: usize = 10;

/// The captures of the place, as the tool `captures` answers.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct CaptureList {
    /// The folder, file or bucket.
    pub place: String,
    /// Number of captures in the place.
    pub total: u64,
    /// Number of newer captures that `skip` left out.
    pub skipped: u64,
    /// The captures, newest first.
    pub captures: Vec<ListedCapture>,
}

/// A capture of the place.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct ListedCapture {
    /// The name that the other tools take.
    pub capture: String,
    /// When the run began, in RFC 3339, in UTC. `None` if that is not known.
    pub start: Option<String>,
    /// Length of the run in nanoseconds. `None` if the file was not read.
    pub duration_ns: Option<u64>,
    /// Host that the capture was made on. `None` if that is not known.
    pub host: Option<String>,
    /// What was sampled, in words. `None` if the file was not read.
    pub target: Option<String>,
    /// Names of the events, with their numbers of samples; empty if the file was not read.
    pub events: Vec<EventCount>,
    /// Whether the samples can be trusted, in a few words: `precise`, `plain`, `both`, and what was
    /// lost. `None` if that is not known before the file is read.
    pub verdict: Option<String>,
    /// Size of the file in bytes.
    pub bytes: u64,
    /// Why the file cannot be used; absent if nothing is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// An event with its number of samples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct EventCount {
    /// Name of the event.
    pub event: String,
    /// Number of its samples.
    pub samples: u64,
}

/// A capture in memory: as a file at one time, prepared in one way.
struct Prepared {
    file: StoredFile,
    way: String,
    capture: Capture,
}

/// Where captures are.
enum CapturePlace {
    /// In a folder or a bucket, also under labels.
    Stored(ArchivePlace),
    /// In one file.
    File(PathBuf),
    /// In the memory of a running service.
    #[cfg(feature = "s3")]
    Served(Box<ServedCaptures>),
}

/// The captures of a place.
pub(super) struct PlaceCaptures {
    place: CapturePlace,
    listed: Option<(Instant, Vec<StoredFile>)>,
    prepared: Vec<Prepared>,
    described: Vec<(StoredFile, ListedCapture)>,
}

impl PlaceCaptures {
    /// Opens a place; `token` is that of a running service.
    ///
    /// # Errors
    ///
    /// Returns an error if the place does not exist or is not one for captures.
    pub(super) fn open(place: &Path, token: Option<&Token>) -> Result<Self, Failure> {
        let text = place.to_string_lossy();
        let place = if text.starts_with("http://") || text.starts_with("https://") {
            served(&text, token)?
        } else {
            if token.is_some() {
                let what = format!("{} needs no token: only a running service does", sanitize(&text));
                return Err(Failure::new(ExitClass::Usage, what).advise("Leave --token-file out."));
            }
            match ArchivePlace::parse(place)? {
                ArchivePlace::Folder(path) => {
                    let kind = path.metadata().map_err(|error| {
                        Failure::new(ExitClass::BadFile, format!("cannot open {}: {error}", path.display()))
                            .advise(
                                "Name a folder of captures, a capture, s3://BUCKET/PREFIX, or the address \
                                 of a running serve.",
                            )
                    })?;
                    match kind.is_dir() {
                        true => CapturePlace::Stored(ArchivePlace::Folder(path)),
                        false => CapturePlace::File(path),
                    }
                }
                bucket => CapturePlace::Stored(bucket),
            }
        };
        Ok(Self { place, listed: None, prepared: Vec::new(), described: Vec::new() })
    }

    /// Returns the place in words.
    pub(super) fn place(&self) -> String {
        let place = match &self.place {
            CapturePlace::Stored(place) => place.to_string(),
            CapturePlace::File(path) => path.display().to_string(),
            #[cfg(feature = "s3")]
            CapturePlace::Served(served) => served.place(),
        };
        shorten(&sanitize(&place), 120)
    }

    /// Returns the folder that new captures go to; `None` if the place is not a folder.
    pub(super) fn folder(&self) -> Option<&Path> {
        match &self.place {
            CapturePlace::Stored(ArchivePlace::Folder(path)) => Some(path),
            _ => None,
        }
    }

    /// Returns the place if tables of a fleet may be in it: a bucket, or a folder that has some.
    pub(super) fn fleet(&self) -> Option<&ArchivePlace> {
        match &self.place {
            CapturePlace::Stored(ArchivePlace::Folder(path)) if !path.join("v1").is_dir() => None,
            CapturePlace::Stored(place) => Some(place),
            _ => None,
        }
    }

    /// Returns the captures, newest first.
    pub(super) fn files(&mut self) -> Result<&[StoredFile], Failure> {
        let current = self.listed.as_ref().is_some_and(|(at, _)| at.elapsed() < CURRENT);
        if !current {
            let files = match &mut self.place {
                CapturePlace::Stored(place) => archive::list(place)?,
                CapturePlace::File(path) => vec![only_file(path)?],
                #[cfg(feature = "s3")]
                CapturePlace::Served(served) => served.list()?,
            };
            self.listed = Some((Instant::now(), files));
        }
        Ok(self.listed.as_ref().map_or(&[], |(_, files)| files.as_slice()))
    }

    /// Forgets the list, so that the next question sees new captures.
    pub(super) fn look_again(&mut self) {
        self.listed = None;
    }

    /// Returns the file of a capture by its name; the newest without a name.
    pub(super) fn find(&mut self, name: Option<&str>) -> Result<StoredFile, Failure> {
        let mut found = self.find_listed(name)?;
        if found.is_none() {
            self.look_again();
            found = self.find_listed(name)?;
        }
        found.ok_or_else(|| match name {
            Some(name) => Failure::new(
                ExitClass::BadFile,
                format!("there is no capture {:?} in this place", shorten(&sanitize(name), 120)),
            )
            .advise("The tool `captures` lists the names."),
            None => Failure::new(ExitClass::BadFile, "there are no captures in this place"),
        })
    }

    fn find_listed(&mut self, name: Option<&str>) -> Result<Option<StoredFile>, Failure> {
        let files = self.files()?;
        Ok(match name {
            Some(name) => files.iter().find(|file| file.name == name).cloned(),
            None => files.first().cloned(),
        })
    }

    /// Takes a capture out of memory, or reads it. `way` names how `prepare` changes it; captures
    /// that were prepared in the same way are not read again.
    pub(super) fn take(
        &mut self,
        file: &StoredFile,
        way: &str,
        prepare: impl FnOnce(Capture) -> Result<Capture, Failure>,
    ) -> Result<Capture, Failure> {
        let found = self.prepared.iter().position(|known| known.file == *file && known.way == way);
        if let Some(at) = found {
            return Ok(self.prepared.remove(at).capture);
        }
        // Before the next one is read, so that no more than these are in memory.
        while self.prepared.len() >= IN_MEMORY {
            self.prepared.remove(0);
        }
        prepare(self.read(file)?)
    }

    /// Puts a capture back into memory.
    pub(super) fn put_back(&mut self, file: StoredFile, way: String, mut capture: Capture) {
        // A view that was not asked for types must not see those of another question.
        capture.types = None;
        self.prepared.push(Prepared { file, way, capture });
        if self.prepared.len() > IN_MEMORY {
            self.prepared.remove(0);
        }
    }

    fn read(&self, file: &StoredFile) -> Result<Capture, Failure> {
        match &self.place {
            CapturePlace::Stored(ArchivePlace::Folder(folder)) => archive::read(&folder.join(&file.name)),
            CapturePlace::Stored(bucket) => {
                archive::read(&PathBuf::from(bucket.below(&file.name).to_string()))
            }
            CapturePlace::File(path) => archive::read(path),
            #[cfg(feature = "s3")]
            CapturePlace::Served(served) => served.read(file),
        }
    }

    /// Describes the captures after the first `skip`, newest first.
    pub(super) fn describe(&mut self, skip: usize) -> Result<CaptureList, Failure> {
        self.look_again();
        #[cfg(feature = "s3")]
        if let CapturePlace::Served(served) = &mut self.place {
            served.look_again();
        }
        let files = self.files()?;
        let total = files.len();
        let wanted: Vec<StoredFile> = files.iter().skip(skip).take(DESCRIBED).cloned().collect();
        let mut captures = Vec::new();
        for file in wanted {
            let known = self.described.iter().find(|(known, _)| *known == file);
            let described = match known {
                Some((_, described)) => described.clone(),
                None => self.describe_one(&file),
            };
            captures.push(described.clone());
            if known.is_none() {
                self.described.push((file, described));
            }
        }
        let surplus = self.described.len().saturating_sub(16 * DESCRIBED);
        self.described.drain(..surplus);
        let skipped = skip.min(total) as u64;
        Ok(CaptureList { place: self.place(), total: total as u64, skipped, captures })
    }

    fn describe_one(&self, file: &StoredFile) -> ListedCapture {
        let mut described = ListedCapture {
            capture: file.name.clone(),
            start: file.start_ns.map(rfc3339),
            duration_ns: None,
            host: file.host.clone(),
            target: None,
            events: Vec::new(),
            verdict: file.kind.map(|kind| kind.word().to_owned()),
            bytes: file.bytes,
            problem: None,
        };
        // To read a capture of a bucket is to fetch all of it; its name says the most of this.
        if matches!(self.place, CapturePlace::Stored(ArchivePlace::Bucket { .. })) {
            return described;
        }
        match self.read(file) {
            Ok(capture) => {
                let run = Run::of(&capture);
                let trust = trust::trust(&capture);
                described.start = run.start;
                described.duration_ns = Some(run.duration_ns);
                described.host = Some(run.host);
                described.target = Some(run.target);
                let events = capture.meta.events.iter().enumerate();
                described.events = events
                    .map(|(at, event)| EventCount {
                        event: event.name.clone(),
                        samples: samples(&capture, at),
                    })
                    .collect();
                let summaries: Vec<String> =
                    trust.events.iter().map(|event| format!("{}: {}", event.event, event.summary)).collect();
                described.verdict = Some(summaries.join("; "));
            }
            Err(failure) => described.problem = Some(failure.what),
        }
        described
    }
}

/// Opens a running service.
#[cfg(feature = "s3")]
fn served(address: &str, token: Option<&Token>) -> Result<CapturePlace, Failure> {
    ServedCaptures::open(address, token).map(|served| CapturePlace::Served(Box::new(served)))
}

/// Returns an error: without its HTTP client, precise cannot ask a service.
#[cfg(not(feature = "s3"))]
fn served(address: &str, _: Option<&Token>) -> Result<CapturePlace, Failure> {
    let address = shorten(&sanitize(address), 120);
    let what = format!("cannot ask {address}: this precise was built without the feature `s3`");
    Err(Failure::new(ExitClass::Unsupported, what)
        .advise("Start `precise serve` with --captures FOLDER, and use that FOLDER as the place."))
}

/// Describes a place that is a file.
fn only_file(path: &Path) -> Result<StoredFile, Failure> {
    let kind = path.metadata().map_err(|error| {
        Failure::new(ExitClass::BadFile, format!("cannot open {}: {error}", path.display()))
    })?;
    let name = path.file_name().map_or_else(|| "capture".into(), |name| name.to_string_lossy());
    let modified = kind.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    Ok(StoredFile {
        name: shorten(&sanitize(&name), 120),
        bytes: kind.len(),
        modified_ns: modified.and_then(|since| i64::try_from(since.as_nanos()).ok()).unwrap_or_default(),
        kind: None,
        host: None,
        start_ns: None,
    })
}

fn rfc3339(unix_ns: i64) -> String {
    DateTime::from_timestamp_nanos(unix_ns).to_rfc3339_opts(SecondsFormat::Secs, true)
}
