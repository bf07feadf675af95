//! The kill switch: a file that ends every run on the node.

use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
};

use crate::error::{ErrorClass, Remedy, SamplingError};

/// The file whose existence ends every run on this node, and keeps new ones from starting. `/run`
/// belongs to root: nobody else can put it there. What is in it does not matter, nor what kind of
/// file it is.
pub const NODE: &str = "/run/precise/stop";

/// The files that end a run when they are there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KillSwitch(Vec<PathBuf>);

impl Default for KillSwitch {
    /// The node's own.
    fn default() -> Self {
        Self(vec![NODE.into()])
    }
}

impl KillSwitch {
    /// The node's own and, where it is given, another one. The node's own always holds: whoever
    /// stops all runs must not have to ask how each was started.
    pub fn and(also: Option<PathBuf>) -> Self {
        let mut files = Self::default();
        files.0.extend(also);
        files
    }

    /// Why runs must end, in words; `None` as long as they need not.
    ///
    /// A file that cannot be looked at is taken as one that is there: who may not see the switch
    /// must not be beyond it.
    pub fn thrown(&self) -> Option<String> {
        self.0.iter().find_map(|file| thrown(file))
    }

    /// Refuses to begin.
    ///
    /// # Errors
    ///
    /// When the switch is thrown.
    pub fn allow(&self) -> Result<(), SamplingError> {
        self.thrown().map_or(Ok(()), |why| Err(refused(&why)))
    }
}

/// What a run ends with that the kill switch keeps from beginning; `why` is what
/// [`KillSwitch::thrown`] said.
pub fn refused(why: &str) -> SamplingError {
    SamplingError::new(ErrorClass::Stopped, format!("sampling is switched off on this machine: {why}"))
        .remedy(Remedy::AskWhoStopsIt)
}

/// What a run ends with that the kill switch has ended; `why` is what [`KillSwitch::thrown`] said.
pub fn ended(why: &str) -> SamplingError {
    SamplingError::new(ErrorClass::Stopped, format!("stopped early: {why}"))
}

fn thrown(file: &Path) -> Option<String> {
    let name = file.display();
    // Not followed: a link to nowhere is a file that somebody put there.
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
        // Longer than any name can be: it cannot be checked.
        assert!(thrown(&folder.path().join("x".repeat(300))).unwrap().contains("cannot be checked"));
    }
}
