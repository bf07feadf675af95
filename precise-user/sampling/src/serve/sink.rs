//! Where the rows of a served run go: to the series, to the captures, to backends, to the page for
//! people.

use precise_model::{Capture, Row};

use super::captures::Rolling;
use super::push::Pusher;
use super::totals::Shared;
use crate::run::naming::RowSink;
use crate::top::{Live, TopState};

/// All that take the rows of a run.
#[derive(Clone)]
pub(super) struct Sinks {
    pub totals: Shared,
    pub live: Live,
    /// `None` if the run keeps no captures.
    pub rolling: Option<Rolling>,
    /// `None` if nothing is pushed.
    pub pusher: Option<Pusher>,
}

impl Sinks {
    /// Takes the state at the end of an epoch.
    pub fn state(&self, state: TopState) {
        if let Some(rolling) = &self.rolling {
            rolling.state(state.clone());
        }
        if let Some(pusher) = &self.pusher {
            pusher.state(state.clone());
        }
        self.live.with(|window| window.state(state));
    }
}

impl RowSink for Sinks {
    fn take(&mut self, named: &mut Capture, rows: &[Row]) -> bool {
        self.totals.take(named, rows);
        if let Some(rolling) = &self.rolling {
            rolling.take(named, rows);
        }
        if let Some(pusher) = &self.pusher {
            pusher.take(named, rows);
        }
        self.live.with(|window| window.take(named, rows));
        // A run without an end must not accumulate data per epoch.
        named.meta.epochs.clear();
        named.meta.owners.clear();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::{SeriesLabel, SeriesTotals};
    use crate::top::Window;
    use precise_model::testing::CaptureBuilder;
    use precise_model::{Machine, Meta};
    use std::time::Duration;

    #[test]
    fn nothing_of_an_epoch_is_kept() {
        let mut made = CaptureBuilder::new();
        made.cell().samples(3).cgroup(1, "/a");
        let mut named = made.build();
        let rows = std::mem::take(&mut named.rows);
        let totals = SeriesTotals::new(&SeriesLabel::parse_list("cgroup").unwrap(), 2, Machine::default());
        let live = Live::new(Window::new(Duration::from_secs(1), Meta::default()));
        let mut sinks = Sinks { totals: Shared::new(totals), live, rolling: None, pusher: None };
        assert!(sinks.take(&mut named, &rows));
        assert!(named.meta.epochs.is_empty() && named.meta.owners.is_empty());
        assert_eq!(sinks.totals.with(|totals| totals.room()), (1, 2));
    }
}
