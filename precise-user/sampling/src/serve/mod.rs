//! A live run without an end: samples added up by label for as long as it goes on, and handed out
//! over HTTP in OpenMetrics' text format.
//!
//! The way of a sample is that of a capture ([`precise_capture`]) up to its row. Then, instead of a
//! file, [`Totals`] take it: counters for each combination of labels, of which there are never more
//! than were asked for. A page shows the state at the end of an epoch, and is made once for each,
//! however often it is asked for.
//!
//! Not here: storage, rates, percentiles, alerts. Whoever scrapes does that. No TLS and no
//! passwords either: it listens where it is told to, by default where only this machine can ask.

mod http;
mod label;
pub mod live;
mod metric;
mod page;
mod status;
mod totals;

pub use http::{Listening, listen};
pub use label::{Label, UnfitLabel};
pub use metric::{Metric, MetricKind};
pub use totals::{IDLE, Series, Totals};
