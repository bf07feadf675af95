//! How long a run that is over waits for names.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How long after the end of a run samples are still named. The rest keep the reason
/// [`precise_model::Reason::NotInTime`].
const NAMES: Duration = Duration::from_secs(3);
/// How long after the end of a run it waits for the naming thread, which may be stuck in one file.
/// A run ends within 5 s: the last second is for writing.
const THREAD: Duration = Duration::from_secs(4);

/// The time by which a run must end. Clones share it. It is not set while the run may go on.
#[derive(Clone, Debug, Default)]
pub struct Deadline(Arc<OnceLock<Instant>>);

impl Deadline {
    /// Ends the run now. Only the first call counts.
    pub fn begin(&self) {
        self.begin_at(Instant::now());
    }

    /// Ends the run at a time, which may be in the past. Only the first call counts.
    pub(crate) fn begin_at(&self, end: Instant) {
        let _begun_before = self.0.set(end);
    }

    /// Returns whether no more names are to be looked up.
    pub fn names_are_over(&self) -> bool {
        self.passed(NAMES)
    }

    /// Returns whether the run no longer waits for the naming thread.
    pub fn is_over(&self) -> bool {
        self.passed(THREAD)
    }

    fn passed(&self, since: Duration) -> bool {
        self.0.get().is_some_and(|end| end.elapsed() >= since)
    }
}
