//! What the environment says about servers of debug information, by the variables of
//! debuginfod-find(1).

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::error::{ExitClass, Failure};

/// Maximum number of servers.
const MAX_SERVERS: usize = 16;
/// Timeout without progress, unless `DEBUGINFOD_TIMEOUT` has another one: that of elfutils.
const TIMEOUT: u64 = 90;
/// Timeout for a whole file, unless `DEBUGINFOD_MAXTIME` has another one.
const LONGEST: u64 = 600;
/// Maximum number of bytes of a file, unless `DEBUGINFOD_MAXSIZE` has another one. The reader reads
/// no larger one.
const LARGEST: u64 = 1 << 30;

/// Which servers to ask, and how much they may take.
#[derive(Clone, PartialEq, Eq)]
pub struct DebuginfodSettings {
    /// The addresses of the servers.
    pub servers: Vec<String>,
    /// The folder of what was fetched; `None`: nothing is kept.
    pub cache: Option<PathBuf>,
    /// How long a server may send nothing.
    pub timeout: Duration,
    /// How long a whole file may take.
    pub longest: Duration,
    /// Maximum number of bytes of a file.
    pub largest: u64,
}

impl fmt::Debug for DebuginfodSettings {
    // The address of a server may have a password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DebuginfodSettings({} servers)", self.servers.len())
    }
}

impl DebuginfodSettings {
    /// Returns the settings; `None` if no server is named.
    ///
    /// # Errors
    ///
    /// Returns an error if a variable is not valid.
    pub fn of(variable: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, Failure> {
        let text = |name: &str| variable(name).filter(|text| !text.trim().is_empty());
        let Some(urls) = text("DEBUGINFOD_URLS") else { return Ok(None) };
        // Newer clients have words for signatures between the addresses. The build id is checked
        // instead.
        let words = urls.split_whitespace().filter(|word| !word.starts_with("ima:"));
        let servers: Vec<String> = words.map(|word| word.trim_end_matches('/').to_owned()).collect();
        let usage = |what: String| {
            Failure::new(ExitClass::Usage, what).advise("Correct the variable, or unset DEBUGINFOD_URLS.")
        };
        if let Some(other) =
            servers.iter().find(|server| !server.starts_with("http://") && !server.starts_with("https://"))
        {
            return Err(usage(format!("DEBUGINFOD_URLS has {other:?}, which is no address of HTTP")));
        }
        if servers.len() > MAX_SERVERS {
            return Err(usage(format!(
                "DEBUGINFOD_URLS has {} servers; {MAX_SERVERS} at most are asked",
                servers.len()
            )));
        }
        let number = |name: &str, default: u64| match text(name) {
            None => Ok(default),
            Some(text) => match text.trim().parse() {
                // As elfutils has it, 0 is no limit. There always is one here.
                Ok(0) => Ok(default),
                Ok(number) => Ok(number),
                Err(_) => Err(usage(format!("{name} is {text:?}, which is not a number"))),
            },
        };
        let folder = || text("XDG_CACHE_HOME").or_else(|| text("HOME").map(|home| format!("{home}/.cache")));
        let cache = text("DEBUGINFOD_CACHE_PATH")
            .or_else(|| folder().map(|folder| format!("{folder}/debuginfod_client")));
        Ok((!servers.is_empty()).then_some(Self {
            servers,
            cache: cache.map(PathBuf::from),
            timeout: Duration::from_secs(number("DEBUGINFOD_TIMEOUT", TIMEOUT)?),
            longest: Duration::from_secs(number("DEBUGINFOD_MAXTIME", LONGEST)?),
            largest: number("DEBUGINFOD_MAXSIZE", LARGEST)?.min(LARGEST),
        }))
    }
}
