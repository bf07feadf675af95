//! A client of debuginfod(8): debug information that this machine does not have, by build id.
//!
//! Nothing is fetched unless the environment names servers (`DEBUGINFOD_URLS`), as for elfutils'
//! own client, whose variables and cache are used. An answer is bounded in bytes and time, and
//! whether it is the right file is decided by the process that reads it.
//!
//! | file | what |
//! | --- | --- |
//! | `settings` | what the environment says |
//! | `files` | which server is asked, and how often |
//! | `cache` | the folder of what was fetched |
//! | `http` | one GET, with bounds |

#[cfg(feature = "s3")]
mod cache;
#[cfg(feature = "s3")]
mod files;
#[cfg(feature = "s3")]
mod http;
mod settings;
#[cfg(test)]
#[cfg(feature = "s3")]
mod tests;

use precise_sampling::symbols::DebugServer;

use crate::error::Failure;
pub use settings::DebuginfodSettings;

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
    Ok(Box::new(files::DebugFiles::new(sources, settings, tell)))
}

#[cfg(not(feature = "s3"))]
fn open(_settings: DebuginfodSettings, _tell: fn(&str)) -> Result<Box<dyn DebugServer>, Failure> {
    let what = "cannot ask the servers of DEBUGINFOD_URLS: this precise was built without the feature `s3`";
    Err(Failure::new(crate::error::ExitClass::Unsupported, what).advise(
        "Build precise with its default features, which have an HTTP client; or unset DEBUGINFOD_URLS.",
    ))
}
