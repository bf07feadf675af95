//! Pushes to a collector of OpenTelemetry: one request for each interval, in binary protobuf over
//! HTTP, compressed.

use precise_model::Capture;
use precise_sampling::serve::{PushAnswer, PushBackend, PushMessage};

use crate::export::otlp::{OtlpOptions, otlp};
use crate::export::pprof::gzip;

/// Returns the request for an interval; `None` if it has no samples.
pub(super) fn message(capture: &Capture, service: Option<&str>) -> Option<PushMessage> {
    let options = OtlpOptions { event: None, service: service.map(str::to_owned) };
    // Only an event that was asked for can be missing.
    let request = otlp(capture, &options).ok().filter(|request| request.samples > 0)?;
    Some(PushMessage {
        query: String::new(),
        body: gzip(&request.bytes).into(),
        profiles: request.profiles,
        samples: request.samples,
    })
}

/// A collector.
pub(super) struct Collector {
    pub client: super::http::PushClient,
    pub service: Option<String>,
}

impl PushBackend for Collector {
    fn encode(&mut self, capture: &Capture) -> Vec<PushMessage> {
        message(capture, self.service.as_deref()).into_iter().collect()
    }

    fn send(&mut self, message: &PushMessage) -> PushAnswer {
        let fields = [("content-type", "application/x-protobuf"), ("content-encoding", "gzip")];
        match self.client.post(&message.query, message.body.clone(), &fields) {
            Ok(answer) => answer.of_collector(super::unix_ns()),
            Err(why) => PushAnswer::Later { after: None, why },
        }
    }
}
