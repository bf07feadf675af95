//! Why a call chain has no further caller.

use precise_common::unwind::End;
use schemars::JsonSchema;
use serde::Serialize;

crate::catalogue! {
    /// Why a call chain that was unwound by tables has no further caller.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, JsonSchema)]
    #[serde(rename_all = "kebab-case")]
    pub enum ChainEnd: (End, &'static str, &'static str) {
        /// The outermost function: the chain is whole.
        Root => (End::Root, "root", "outermost function"),
        /// The task has no user stack: a thread of the kernel. The chain is whole.
        KernelOnly => (End::KernelOnly, "kernel-only", "no user stack"),
        /// The stack could not be read.
        Fault => (End::Fault, "fault", "stack not readable"),
        /// The address belongs to no executable mapping.
        NoRegion => (End::NoRegion, "no-region", "no code at the address"),
        /// The code has no unwind table.
        NoTable => (End::NoTable, "no-table", "no unwind table"),
        /// The rule of the table is of a form that is not evaluated, or of 32-bit code.
        Unsupported => (End::Unsupported, "unsupported", "unsupported unwind rule"),
        /// The chain has more frames than are kept.
        TooDeep => (End::TooDeep, "too-deep", "too many frames"),
        /// The process changed its mappings while the chain was taken.
        Changed => (End::Changed, "changed", "mappings changed meanwhile"),
        /// The process or the file was not known yet.
        NotYet => (End::NotYet, "not-yet", "program not known yet"),
        /// The caller's frame would not lie above the frame: the stack or the table is damaged.
        Stuck => (End::Stuck, "stuck", "frame does not lie above"),
        /// A return address has no call instruction before it: the stack or the table is damaged.
        NoCall => (End::NoCall, "no-call", "return address behind no call"),
        /// The caller's frame lies above the copy of the stack that was taken.
        CopyEnded => (End::CopyEnded, "copy-ended", "stack copy ended"),
        /// The kernel's deferred record of the callers is not in the recording.
        Deferred => (End::Deferred, "deferred", "no record of the callers came"),
    }
}

impl ChainEnd {
    /// Returns the reason that the program or the assembler gave.
    pub fn of(end: End) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.entry().0 == end)
    }

    /// Returns the name in captures and JSON.
    pub const fn as_str(self) -> &'static str {
        self.entry().1
    }

    /// Returns the reason in words, to follow "chain ends:".
    pub const fn words(self) -> &'static str {
        self.entry().2
    }

    /// Returns the reason with this name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|end| end.as_str() == name)
    }

    /// Returns whether no caller is missing.
    pub const fn is_whole(self) -> bool {
        matches!(self, Self::Root | Self::KernelOnly)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_end_of_the_program_has_a_name() {
        for end in End::ALL {
            let named = ChainEnd::of(end).unwrap();
            assert_eq!(ChainEnd::parse(named.as_str()), Some(named));
            assert_eq!(serde_json::to_value(named).unwrap(), named.as_str());
        }
        assert_eq!(ChainEnd::ALL.len(), End::ALL.len());
    }
}
