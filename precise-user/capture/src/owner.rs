//! The owner of new files under sudo: the user who called it.
//!
//! A new file of root belongs to the user who called sudo (`SUDO_UID`, `SUDO_GID`) if that user
//! could have created it in its folder: the folder is the user's, or everybody may write to it. In
//! any other folder, such as /etc, it stays root's. Only the descriptor of a file that this process
//! has just created is given away, never a file that a name leads to, so no link and no existing
//! file can take its place.

use std::fs::{self, File};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

const OTHERS_WRITE: u32 = 0o002;

/// A user and a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Owner {
    uid: u32,
    gid: u32,
}

impl Owner {
    /// Returns the user who called sudo, if this process is root because of it.
    fn of_sudo() -> Option<Self> {
        // SAFETY: always succeeds, and has no preconditions.
        let root = unsafe { libc::geteuid() } == 0;
        let id = |name: &str| std::env::var(name).ok();
        if root { Self::parse(&id("SUDO_UID")?, &id("SUDO_GID")?) } else { None }
    }

    fn parse(uid: &str, gid: &str) -> Option<Self> {
        let (uid, gid) = (uid.parse().ok()?, gid.parse().ok()?);
        // The largest number means "no change" (chown(2)).
        (uid != 0 && uid != u32::MAX && gid != u32::MAX).then_some(Self { uid, gid })
    }

    /// Returns whether the user may create files in a folder.
    fn may_create_in(self, folder: &fs::Metadata) -> bool {
        folder.uid() == self.uid || folder.mode() & OTHERS_WRITE != 0
    }
}

/// Gives a new file in `folder` to the user who called sudo. If the file system does not let it (a
/// network file system without root's rights), it keeps its owner.
pub(super) fn give_to_caller(file: &File, folder: &Path) {
    let Some(owner) = Owner::of_sudo() else { return };
    if fs::metadata(folder).is_ok_and(|folder| owner.may_create_in(&folder)) {
        let _refused = std::os::unix::fs::fchown(file, Some(owner.uid), Some(owner.gid));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test may end at once")]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_another_user_is_the_caller() {
        assert_eq!(Owner::parse("1000", "100"), Some(Owner { uid: 1000, gid: 100 }));
        for (uid, gid) in [("0", "0"), ("-1", "1"), ("4294967295", "1"), ("1", "4294967295"), ("a", "1")] {
            assert_eq!(Owner::parse(uid, gid), None, "{uid} {gid}");
        }
    }

    #[test]
    fn a_folder_of_others_is_not_the_callers() {
        let folder = tempfile::tempdir().unwrap();
        let with_mode = |mode| {
            fs::set_permissions(folder.path(), fs::Permissions::from_mode(mode)).unwrap();
            fs::metadata(folder.path()).unwrap()
        };
        let own = with_mode(0o700);
        let me = Owner { uid: own.uid(), gid: 1 };
        let other = Owner { uid: own.uid().wrapping_add(1), gid: 1 };
        assert!(me.may_create_in(&own) && !other.may_create_in(&own));
        assert!(!other.may_create_in(&with_mode(0o775)));
        assert!(other.may_create_in(&with_mode(0o1777)));
    }
}
