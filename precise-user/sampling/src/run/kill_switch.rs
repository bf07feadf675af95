//! The kill switch: a file that ends every run on the node.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use crate::error::{ErrorClass, Remedy, SamplingError};

/// The file that ends every run on this node while it exists, and prevents new runs. Only root can
/// create it, because `/run` belongs to root. Its contents and file type do not matter.
pub const NODE: &str = "/run/precise/stop";

/// The files that end a run while any of them exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KillSwitch(Vec<PathBuf>);

impl Default for KillSwitch {
    /// Only the kill switch of the node.
    fn default() -> Self {
        Self(vec![NODE.into()])
    }
}

impl KillSwitch {
    /// Returns the kill switch of the node plus, if given, another file. The node's file always
    /// applies, so that an administrator can stop all runs without knowing how each was started.
    pub fn and(also: Option<PathBuf>) -> Self {
        let mut files = Self::default();
        files.0.extend(also);
        files
    }

    /// Returns why runs must end, in words; `None` while no file exists.
    ///
    /// A file that cannot be checked counts as existing, so that a process without access to the
    /// file cannot evade the kill switch.
    pub fn thrown(&self) -> Option<String> {
        self.0.iter().find_map(|file| thrown(file))
    }

    /// Checks that a run may start.
    ///
    /// # Errors
    ///
    /// Returns an error if a kill switch file exists or cannot be checked.
    pub fn allow(&self) -> Result<(), SamplingError> {
        self.thrown().map_or(Ok(()), |why| {
            let what = format!("sampling is switched off on this machine: {why}");
            Err(SamplingError::new(ErrorClass::Stopped, what).remedy(Remedy::AskWhoStopsIt))
        })
    }
}

/// Returns the error of a run that the kill switch ended; `why` is the text of
/// [`KillSwitch::thrown`].
pub fn ended(why: &str) -> SamplingError {
    SamplingError::new(ErrorClass::Stopped, format!("stopped early: {why}"))
}

fn thrown(file: &Path) -> Option<String> {
    let name = file.display();
    // Does not follow links: a dangling link also counts as the file.
    match std::fs::symlink_metadata(file) {
        Ok(_) => Some(format!("the kill switch {name} exists")),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => None,
        Err(error) => Some(format!("the kill switch {name} cannot be checked ({error})")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_file_counts_and_the_nodes_own_always_does() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("stop");
        let switch = KillSwitch::and(Some(file.clone()));
        assert_eq!(switch.0, [PathBuf::from(NODE), file.clone()]);
        assert_eq!(thrown(&file), None);
        assert_eq!(thrown(&folder.path().join("no/such/folder")), None);
        std::os::unix::fs::symlink("/no/such/file", &file).unwrap();
        assert_eq!(thrown(&file).unwrap(), format!("the kill switch {} exists", file.display()));
        assert_eq!(thrown(&file.join("below")), None);
        let failure = switch.allow().unwrap_err();
        assert_eq!(failure.class(), ErrorClass::Stopped);
        assert!(failure.with_causes().ends_with("exists"), "{failure}");
        // Longer than any file name can be, so it cannot be checked.
        assert!(thrown(&folder.path().join("x".repeat(300))).unwrap().contains("cannot be checked"));
    }
}
