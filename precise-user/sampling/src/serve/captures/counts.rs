//! What became of captures: counters for the page.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Why samples are in no complete capture, or why a capture was removed or not uploaded. Each kind
/// of event has its own counters, in [`CapturesTable`].
macro_rules! reasons {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident: $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum $name { $($(#[$each])* $variant,)* }

        impl $name {
            /// All of them, in the order of the page.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// Returns the value of the label.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }
    };
}

reasons! {
    /// Why a capture was not completed.
    Uncaptured {
        /// The disk, or the quota of the user, was full.
        DiskFull: "disk_full",
        /// The file could not be written for another reason.
        WriteError: "write_error",
    }
}

reasons! {
    /// Why a capture was removed.
    Removed {
        /// The folder had more bytes than are kept.
        Bytes: "bytes",
        /// It was older than captures are kept.
        Age: "age",
        /// The disk was full.
        DiskFull: "disk_full",
    }
}

reasons! {
    /// How uploads ended.
    Uploaded {
        /// The capture is in the archive.
        Done: "done",
        /// All attempts failed.
        Failed: "failed",
        /// Too many captures waited, and this was the oldest.
        Skipped: "skipped",
        /// The capture was removed from the folder before.
        Gone: "gone",
    }
}

/// The counters since the start.
#[derive(Debug, Default)]
pub(crate) struct CaptureCounts {
    /// Captures that were completed.
    pub written: AtomicU64,
    /// When the last one was completed, in nanoseconds since the Unix epoch.
    pub last_ns: AtomicU64,
    /// The captures in the folder and their bytes.
    pub kept: AtomicU64,
    pub bytes: AtomicU64,
    /// Attempts to upload after the first one of a capture.
    pub retries: AtomicU64,
    /// Captures that wait to be uploaded.
    pub waiting: AtomicU64,
    failed: [AtomicU64; 2],
    dropped: [AtomicU64; 2],
    removed: [AtomicU64; 3],
    uploads: [AtomicU64; 4],
}

impl CaptureCounts {
    /// Counts a capture that was not completed, and the samples that are in no complete capture.
    pub fn failed(&self, why: Uncaptured, captures: u64, samples: u64) {
        add(&self.failed, why as usize, captures);
        add(&self.dropped, why as usize, samples);
    }

    /// Counts a capture that was removed.
    pub fn removed(&self, why: Removed) {
        add(&self.removed, why as usize, 1);
    }

    /// Counts an upload.
    pub fn uploaded(&self, how: Uploaded) {
        add(&self.uploads, how as usize, 1);
    }

    /// Returns the values of all counters.
    pub fn table(&self) -> CapturesTable {
        let read = |counts: &[AtomicU64]| counts.iter().map(|count| count.load(Relaxed)).collect::<Vec<_>>();
        let named =
            |names: Vec<&'static str>, counts: &[AtomicU64]| names.into_iter().zip(read(counts)).collect();
        CapturesTable {
            written: self.written.load(Relaxed),
            last_ns: self.last_ns.load(Relaxed),
            kept: self.kept.load(Relaxed),
            bytes: self.bytes.load(Relaxed),
            retries: self.retries.load(Relaxed),
            waiting: self.waiting.load(Relaxed),
            failed: named(Uncaptured::ALL.iter().map(|of| of.name()).collect(), &self.failed),
            dropped: named(Uncaptured::ALL.iter().map(|of| of.name()).collect(), &self.dropped),
            removed: named(Removed::ALL.iter().map(|of| of.name()).collect(), &self.removed),
            uploads: named(Uploaded::ALL.iter().map(|of| of.name()).collect(), &self.uploads),
        }
    }
}

fn add(counts: &[AtomicU64], at: usize, more: u64) {
    if let Some(count) = counts.get(at) {
        count.fetch_add(more, Relaxed);
    }
}

/// The values of [`CaptureCounts`], each list by the value of its label.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CapturesTable {
    pub written: u64,
    pub last_ns: u64,
    pub kept: u64,
    pub bytes: u64,
    pub retries: u64,
    pub waiting: u64,
    pub failed: Vec<(&'static str, u64)>,
    pub dropped: Vec<(&'static str, u64)>,
    pub removed: Vec<(&'static str, u64)>,
    pub uploads: Vec<(&'static str, u64)>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_has_a_counter() {
        let counts = CaptureCounts::default();
        for why in Uncaptured::ALL {
            counts.failed(*why, 1, 10);
        }
        Removed::ALL.iter().for_each(|why| counts.removed(*why));
        Uploaded::ALL.iter().for_each(|how| counts.uploaded(*how));
        let table = counts.table();
        assert_eq!(table.failed, [("disk_full", 1), ("write_error", 1)]);
        assert_eq!(table.dropped, [("disk_full", 10), ("write_error", 10)]);
        assert_eq!(table.removed, [("bytes", 1), ("age", 1), ("disk_full", 1)]);
        assert_eq!(table.uploads, [("done", 1), ("failed", 1), ("skipped", 1), ("gone", 1)]);
    }
}
