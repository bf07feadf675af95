//! Serves a live run without an end: adds up samples by label, and serves the totals over HTTP in
//! OpenMetrics' text format, or in that of Prometheus.
//!
//! Samples take the same path as in a capture ([`precise_capture`]) up to their rows. Then they are
//! not written to a file but added to [`SeriesTotals`]: counters for each combination of labels,
//! with a limit on the number of combinations. A page shows the state at the end of an epoch, and
//! is made once per epoch, no matter how often it is requested, by the thread that answers
//! requests.
//!
//! Storage, rates, percentiles and alerts are left to the scraper. There is no TLS and there are no
//! passwords: the server listens at the address it is given, by default one that only this machine
//! can reach.

mod connections;
mod format;
mod hosts;
mod http;
mod label;
pub mod live;
mod metric;
mod page;
mod status;
mod totals;
mod traffic;

pub use hosts::{Hosts, InvalidHost};
pub use http::{Listening, listen};
pub use label::{SeriesLabel, UnfitLabel};
pub use metric::{MetricKind, PageMetric};
pub use totals::{IDLE, Series, SeriesTotals};
