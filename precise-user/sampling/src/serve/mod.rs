//! Serves a live run without an end: adds up samples by label, and serves the totals over HTTP in
//! OpenMetrics' text format, or in that of Prometheus.
//!
//! Samples take the same path as in a capture ([`precise_capture`]) up to their rows. Then they are
//! not written to a file but added to [`SeriesTotals`]: counters for each combination of labels,
//! with a limit on the number of combinations. A page shows the state at the end of an epoch, and
//! is made once per epoch, no matter how often it is requested, by the thread that answers
//! requests.
//!
//! Storage, rates, percentiles and alerts are left to the scraper. By default only this machine can
//! ask; an address that others can reach needs TLS and a token ([`AccessPolicy`]).
//!
//! Beside the series, the run can be kept as [captures](CapturesOptions) of some minutes each, its
//! profiles can be [pushed](PushOptions) to backends, and people see the last minutes on a page
//! ([`Painter`]).

mod access;
mod captures;
mod connections;
mod format;
mod front;
mod health;
mod hosts;
mod http;
mod label;
pub mod live;
mod metric;
mod page;
mod push;
mod sink;
mod so_far;
mod status;
mod tls;
mod totals;
mod traffic;

pub use access::{AccessPolicy, Token};
pub use captures::{CapturesOptions, Retention, Upload};
pub use front::{Painter, WINDOW};
pub use hosts::{Hosts, InvalidHost};
pub use http::{Listening, listen};
pub use label::{SeriesLabel, UnfitLabel};
pub use metric::{MetricKind, PageMetric};
pub use push::{PushAnswer, PushBackend, PushMessage, PushOptions, PushPlace};
pub use tls::Tls;
pub use totals::{IDLE, Series, SeriesTotals};
