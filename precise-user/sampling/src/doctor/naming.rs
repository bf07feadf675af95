//! Whether names can be looked up here: whether the process that reads the files of others starts,
//! and how it is confined.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Check, CheckStatus};
use crate::reader::{Confinement, Reader};

/// The process that reads the files of others, as this machine confines it.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub struct ReaderConfinement {
    /// How it is confined, beyond what is required: no capability, seccomp, limits. `None` if it
    /// does not start.
    pub confinement: Option<Confinement>,
    /// Why it does not start.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// The version of the kernel's Landlock interface; `None` if the kernel has none or has it
    /// switched off.
    pub landlock_abi: Option<u32>,
}

impl ReaderConfinement {
    /// Starts the process and ends it again.
    pub fn try_here() -> Self {
        let confined = Reader::start()
            .map_err(|error| error.with_causes())
            .and_then(|mut reader| reader.confinement().map_err(|trouble| trouble.to_string()));
        let (confinement, refusal) = match confined {
            Ok(confinement) => (Some(confinement), None),
            Err(refusal) => (None, Some(refusal)),
        };
        Self { confinement, refusal, landlock_abi: landlock_abi() }
    }

    /// Returns the check.
    pub(super) fn check(&self) -> Check {
        const NAME: &str = "names";
        let Some(confinement) = self.confinement else {
            let why = self.refusal.as_deref().unwrap_or("the reason is unknown");
            let why =
                format!("addresses get no names, because the process that reads files does not start: {why}");
            return Check::new(NAME, CheckStatus::Failed, "none", why);
        };
        let Confinement { own_user, empty_root, own_network, landlock } = confinement;
        let landlock_words =
            self.landlock_abi.map_or_else(|| "Landlock".to_owned(), |abi| format!("Landlock {abi}"));
        let (mut has, mut lacks) = (vec!["seccomp".to_owned()], Vec::new());
        for (is, what) in [
            (own_user, "a user of its own"),
            (empty_root, "an empty root folder"),
            (own_network, "a network of its own"),
            (landlock, &landlock_words),
        ] {
            if is { has.push(what.to_owned()) } else { lacks.push(what.to_owned()) }
        }
        let reason = match &lacks[..] {
            [] => String::new(),
            lacks => format!(
                "files of others are read without {}, which the kernel or this container does not allow",
                lacks.join(", ")
            ),
        };
        let found = format!("read in a process without rights, with {}", has.join(", "));
        Check::new(NAME, CheckStatus::Passed, found, reason)
    }
}

/// Returns the version of the kernel's Landlock interface (landlock_create_ruleset(2)).
fn landlock_abi() -> Option<u32> {
    const VERSION: libc::c_uint = 1;
    // SAFETY: with this flag the call takes no attributes, and returns a number.
    let abi = unsafe {
        libc::syscall(libc::SYS_landlock_create_ruleset, std::ptr::null::<libc::c_void>(), 0usize, VERSION)
    };
    u32::try_from(abi).ok().filter(|abi| *abi > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_does_not_allow_is_named() {
        let all = Confinement { own_user: true, empty_root: true, own_network: true, landlock: true };
        let of = |confinement, landlock_abi| {
            ReaderConfinement { confinement: Some(confinement), refusal: None, landlock_abi }.check()
        };
        let check = of(all, Some(6));
        assert_eq!((check.status, check.reason.as_str()), (CheckStatus::Passed, ""));
        assert!(
            check.found.ends_with(
                "seccomp, a user of its own, an empty root folder, a network of its own, Landlock 6"
            )
        );
        let check = of(Confinement { own_user: false, landlock: false, ..all }, None);
        assert!(check.reason.contains("without a user of its own, Landlock,"), "{}", check.reason);
        assert!(!check.found.contains("Landlock"), "{}", check.found);
    }

    #[test]
    fn without_the_process_there_are_no_names() {
        let refusal = Some("cannot execute /proc/self/exe".to_owned());
        let check = ReaderConfinement { refusal, ..ReaderConfinement::default() }.check();
        assert_eq!(check.status, CheckStatus::Failed);
        assert!(check.reason.ends_with("does not start: cannot execute /proc/self/exe"), "{}", check.reason);
    }
}
