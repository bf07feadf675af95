//! Debug information that this machine does not have.

use std::fmt;
use std::fs::File;

use precise_records::record::BuildId;

/// A server of debug information, or several of them. What it answers is not trusted: the reader
/// looks for the build id in it, and reads the rest.
pub trait DebugServer: fmt::Debug + Send {
    /// Returns the debug information of the file with a build id; `None` if no server has it.
    ///
    /// # Errors
    ///
    /// Returns why it could not be fetched, in a sentence.
    fn debug_info(&mut self, id: &BuildId) -> Result<Option<File>, String>;

    /// Forgets what was returned for a build id: it is the debug information of another file.
    fn refuse(&mut self, id: &BuildId);
}
