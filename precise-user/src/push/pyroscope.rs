//! Pushes to Grafana Pyroscope: a request with a profile for pprof for each service and event.

use precise_model::{Capture, Row};
use precise_sampling::serve::{PushAnswer, PushBackend, PushMessage};
use precise_views::about::duration;
use precise_views::flame::FrameWidth;
use precise_views::trust::trust;

use crate::export::pprof::pprof_of;
use crate::export::service::service_parts;

/// The most services of an interval. All further ones, which have fewer samples, are one.
const MOST: usize = 100;
/// Its name.
const OTHERS: &str = "others";

/// Returns the requests for an interval.
pub(super) fn messages(capture: &Capture, service: Option<&str>) -> Vec<PushMessage> {
    // Cgroups of one name are one service.
    let mut services: Vec<(String, Vec<&Row>)> = Vec::new();
    for part in service_parts(capture) {
        let name = service.map_or_else(|| label(&part.name), label);
        let known = services.iter().position(|(known, _)| *known == name);
        let place = known.unwrap_or_else(|| services.len().min(MOST));
        match services.get_mut(place) {
            Some((_, rows)) => rows.extend(part.rows),
            None => services.push((if place < MOST { name } else { OTHERS.to_owned() }, part.rows)),
        }
    }
    let trust = trust(capture);
    let second = |ns: u64| ns / 1_000_000_000;
    let start_ns = capture.meta.start_unix_ns;
    let until = second(start_ns.saturating_add(duration(&capture.meta.epochs))).max(second(start_ns) + 1);
    let mut messages = Vec::new();
    for (name, rows) in services {
        for (index, event) in capture.meta.events.iter().enumerate() {
            let rows: Vec<&Row> =
                rows.iter().filter(|row| usize::from(row.event) == index).copied().collect();
            if rows.is_empty() {
                continue;
            }
            let profile = pprof_of(capture, event, &rows, trust.events.get(index), FrameWidth::default());
            let full =
                format!("{name}{{host={},event={}}}", label(&capture.meta.machine.host), label(&event.name));
            messages.push(PushMessage {
                query: format!(
                    "name={}&from={}&until={until}&format=pprof&spyName=precise",
                    in_query(&full),
                    second(start_ns)
                ),
                body: profile.into(),
                profiles: 1,
                samples: rows.iter().map(|row| row.measures.count).fold(0, u64::saturating_add),
            });
        }
    }
    messages
}

/// Returns a name as a part of Pyroscope's names, which have no quotes.
fn label(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "._-/:".contains(c);
    let name: String = name.chars().map(|c| if allowed(c) { c } else { '_' }).collect();
    if name.is_empty() { "unknown".to_owned() } else { name }
}

/// Returns a text as a value of a URL's query.
fn in_query(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'_' | b'-' | b'/' | b':' => {
                out.push(char::from(byte))
            }
            other => out += &format!("%{other:02X}"),
        }
    }
    out
}

/// A Pyroscope.
pub(super) struct Pyroscope {
    pub client: super::http::PushClient,
    pub service: Option<String>,
}

impl PushBackend for Pyroscope {
    fn encode(&mut self, capture: &Capture) -> Vec<PushMessage> {
        messages(capture, self.service.as_deref())
    }

    fn send(&mut self, message: &PushMessage) -> PushAnswer {
        let fields = [("content-type", "application/octet-stream")];
        match self.client.post(&message.query, message.body.clone(), &fields) {
            Ok(answer) => answer.of_pyroscope(super::unix_ns()),
            Err(why) => PushAnswer::Later { after: None, why },
        }
    }
}
