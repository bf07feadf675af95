//! A client of debuginfod(8): debug information that this machine does not have, by build id.
//!
//! Nothing is fetched unless the environment names servers (`DEBUGINFOD_URLS`), as for elfutils'
//! own client, whose variables and cache are used. An answer is bounded in bytes and time, and
//! whether it is the right file is decided by the process that reads it.
//!
//! | file | what |
//! | --- | --- |
//! | `settings` | what the environment says |
//! | `cache` | the folder of what was fetched |
//! | `http` | one GET, with bounds |

mod cache;
#[cfg(feature = "s3")]
mod http;
mod settings;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::fs::File;

use precise_model::text::sanitize;
use precise_records::record::BuildId;
use precise_sampling::symbols::DebugServer;

use crate::error::Failure;
use cache::DebugCache;
pub use settings::DebuginfodSettings;

/// Maximum number of files that one run fetches.
const MAX_FETCHED: usize = 256;

/// Opens the servers that the environment names; `None` if it names none. Nothing is sent yet.
/// `tell` is called with a sentence when a file begins to come.
///
/// # Errors
///
/// Returns an error if a variable is not valid, or if the HTTP client cannot be made, or was not
/// built in.
pub fn servers(
    variable: impl Fn(&str) -> Option<String>,
    tell: fn(&str),
) -> Result<Option<Box<dyn DebugServer>>, Failure> {
    let Some(settings) = DebuginfodSettings::of(variable)? else { return Ok(None) };
    open(settings, tell).map(Some)
}

#[cfg(feature = "s3")]
fn open(settings: DebuginfodSettings, tell: fn(&str)) -> Result<Box<dyn DebugServer>, Failure> {
    let sources = settings.servers.iter().map(|server| http::HttpSource::new(server, &settings));
    let sources = sources.collect::<Result<Vec<_>, _>>()?;
    Ok(Box::new(DebugFiles::new(sources, settings, tell)))
}

#[cfg(not(feature = "s3"))]
fn open(_settings: DebuginfodSettings, _tell: fn(&str)) -> Result<Box<dyn DebugServer>, Failure> {
    let what = "cannot ask the servers of DEBUGINFOD_URLS: this precise was built without the feature `s3`";
    Err(Failure::new(crate::error::ExitClass::Unsupported, what)
        .advise("Build precise with its default features, which have an HTTP client; or unset DEBUGINFOD_URLS."))
}

/// Where files come from.
trait DebugSource: Send {
    /// Writes the debug information of a build id to `file`. `tell` is called with its size, if
    /// that is known, when it begins to come. Returns whether the source has it.
    ///
    /// # Errors
    ///
    /// Returns why it could not be fetched.
    fn fetch(&self, id: &str, file: &mut File, tell: &dyn Fn(Option<u64>)) -> Result<bool, SourceError>;
    /// Returns the address of the source, without a password.
    fn shown(&self) -> &str;
}

/// Why a file could not be fetched.
#[derive(Debug)]
enum SourceError {
    /// It is not asked again.
    Down(String),
    /// This file cannot be had.
    File(String),
}

/// The files of sources, by build id.
struct DebugFiles<S> {
    sources: Vec<S>,
    /// The sources that are not asked any more, by their place in `sources`.
    down: BTreeSet<usize>,
    cache: DebugCache,
    /// What no source has.
    missing: BTreeSet<String>,
    fetched: usize,
    tell: fn(&str),
}

impl<S: DebugSource> DebugFiles<S> {
    fn new(sources: Vec<S>, settings: DebuginfodSettings, tell: fn(&str)) -> Self {
        let cache = DebugCache::new(settings.cache);
        Self { sources, down: BTreeSet::new(), cache, missing: BTreeSet::new(), fetched: 0, tell }
    }

    fn fetch(&mut self, id: &str) -> Result<Option<File>, String> {
        if self.fetched >= MAX_FETCHED {
            return Err(format!("one run fetches the debug information of {MAX_FETCHED} files at most"));
        }
        let mut troubles = Vec::new();
        for (at, source) in self.sources.iter().enumerate() {
            if self.down.contains(&at) {
                continue;
            }
            let mut entry = self.cache.create(id)?;
            let from = sanitize(source.shown());
            let begins = |size: Option<u64>| {
                let size = size.map_or_else(String::new, |bytes| format!(", {} MB", bytes.div_ceil(1 << 20)));
                (self.tell)(&format!("fetching the debug information of build id {id} from {from}{size}"));
            };
            let why = match source.fetch(id, entry.file(), &begins) {
                Ok(true) => {
                    self.fetched += 1;
                    return entry.keep().map(Some);
                }
                Ok(false) => continue,
                Err(SourceError::File(why)) => why,
                Err(SourceError::Down(why)) => {
                    self.down.insert(at);
                    format!("{why}; it is not asked again")
                }
            };
            troubles.push(format!("cannot fetch debug information from {from}: {}", sanitize(&why)));
        }
        if troubles.is_empty() { Ok(None) } else { Err(troubles.join("; ")) }
    }
}

impl<S: DebugSource> DebugServer for DebugFiles<S> {
    fn debug_info(&mut self, id: &BuildId) -> Result<Option<File>, String> {
        let id = id.hex();
        if self.missing.contains(&id) {
            return Ok(None);
        }
        if let Some(known) = self.cache.find(&id) {
            return Ok(Some(known));
        }
        let found = self.fetch(&id);
        if !matches!(found, Ok(Some(_))) {
            self.missing.insert(id);
        }
        found
    }

    fn refuse(&mut self, id: &BuildId) {
        self.cache.remove(&id.hex());
        self.missing.insert(id.hex());
    }
}

impl<S> fmt::Debug for DebugFiles<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DebugFiles({} servers)", self.sources.len())
    }
}
