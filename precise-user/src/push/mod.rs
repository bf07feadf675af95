//! Backends that take the profiles of `serve`: any collector of OpenTelemetry (OTLP/HTTP), and
//! Pyroscope's `/ingest`. A run hands each of them the samples of an interval as a capture.
//!
//! | file | what |
//! | --- | --- |
//! | `target` | `KIND=URL`: where profiles go |
//! | `headers` | what a request carries so that it is let in: from a file or the environment |
//! | `http` | one POST, with bounds: time, bytes of the answer; no redirects |
//! | `answer` | what an answer means: taken, later, never |
//! | `collector`, `pyroscope` | the two kinds of backends |

#[cfg(feature = "s3")]
mod answer;
#[cfg(feature = "s3")]
mod collector;
mod headers;
#[cfg(feature = "s3")]
mod http;
#[cfg(feature = "s3")]
mod pyroscope;
mod target;
#[cfg(test)]
mod tests;

pub use headers::PushHeaders;
pub use target::{PushKind, PushTarget};

use crate::error::Failure;
use precise_sampling::serve::PushBackend;

/// Opens a backend. This sends nothing yet. `service` is the name of the service of all samples;
/// without it, each cgroup is a service.
///
/// # Errors
///
/// Returns an error if the client cannot be made, or was not built in.
#[cfg(feature = "s3")]
pub fn backend(
    target: &PushTarget,
    headers: &PushHeaders,
    service: Option<&str>,
) -> Result<Box<dyn PushBackend>, Failure> {
    let client = http::PushClient::new(target, headers)?;
    let service = service.map(str::to_owned);
    Ok(match target.kind {
        PushKind::Otlp => Box::new(collector::Collector { client, service }),
        PushKind::Pyroscope => Box::new(pyroscope::Pyroscope { client, service }),
    })
}

/// Returns an error: without its HTTP client, precise cannot push.
///
/// # Errors
///
/// Always.
#[cfg(not(feature = "s3"))]
pub fn backend(
    target: &PushTarget,
    _headers: &PushHeaders,
    _service: Option<&str>,
) -> Result<Box<dyn PushBackend>, Failure> {
    let what = format!("cannot push to {target}: this precise was built without the feature `s3`");
    Err(Failure::new(crate::error::ExitClass::Unsupported, what)
        .advise("Build precise with its default features, which have an HTTP client."))
}

/// Returns the time, in nanoseconds since the Unix epoch.
#[cfg(feature = "s3")]
fn unix_ns() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}
