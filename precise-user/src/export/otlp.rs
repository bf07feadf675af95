//! Export to OpenTelemetry's profiles: an `ExportProfilesServiceRequest`, which is encoded like
//! `ProfilesData`. Schema: release 1.10.0 of opentelemetry-proto, whose packages are still called
//! `v1development`.
//!
//! A profile has one value for each sample, so an event is up to three profiles: its samples, the
//! events that they stand for, and their latencies. Their types have the name of the event:
//! backends add up profiles of one type, and samples of different events are never added up.

use rustc_hash::FxHashMap;
use sha2::{Digest as _, Sha256};

use precise_model::words::Served;
use precise_model::{Capture, EventInfo, Machine, Measures, Row};
use precise_views::about::duration;
use precise_views::trust::{Trust, trust};
use precise_views::{ViewError, event_of};

use super::dictionary::{Dictionary, any_text};
use super::service::{ServicePart, service_parts};
use super::wire::WireMessage;

/// Options for the export to OTLP.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct OtlpOptions {
    /// The name of the event; `None` for all events.
    pub event: Option<String>,
    /// The name of the service of all samples; `None` for one name for each cgroup.
    pub service: Option<String>,
}

/// An encoded request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OtlpRequest {
    /// The bytes of the message.
    pub bytes: Vec<u8>,
    /// The number of profiles in it.
    pub profiles: u64,
    /// The number of samples in it. Each is in up to three profiles, and counts once.
    pub samples: u64,
}

/// Returns the profiles of a capture, one resource for each cgroup, that with most samples first.
///
/// # Errors
///
/// Returns an error if the capture has no such event.
pub fn otlp(capture: &Capture, options: &OtlpOptions) -> Result<OtlpRequest, ViewError> {
    let only = match &options.event {
        Some(name) => Some(event_of(capture, Some(name))?.0),
        None => None,
    };
    let mut maker = OtlpMaker {
        dictionary: Dictionary::new(capture),
        capture,
        trust: trust(capture),
        profiles: 0,
        samples: 0,
    };
    let mut request = WireMessage::default();
    for part in service_parts(capture) {
        if let Some(resource) = maker.resource_profiles(&part, only, options) {
            request.message(1, &resource);
        }
    }
    let OtlpMaker { dictionary, profiles, samples, .. } = maker;
    request.message(2, &dictionary.encode());
    Ok(OtlpRequest { bytes: request.into_bytes(), profiles, samples })
}

/// A request under construction.
struct OtlpMaker<'a> {
    dictionary: Dictionary<'a>,
    capture: &'a Capture,
    trust: Trust,
    profiles: u64,
    samples: u64,
}

/// What tells the samples of a profile apart: the stack, and attributes, where 0 is none.
type SampleKey = (u64, [u64; 3]);

/// The value of a sample in a profile.
type ValueOf = fn(&Measures) -> u64;

impl OtlpMaker<'_> {
    /// Returns the `ResourceProfiles` of a part; `None` if it has no samples.
    fn resource_profiles(
        &mut self,
        part: &ServicePart<'_>,
        only: Option<usize>,
        options: &OtlpOptions,
    ) -> Option<WireMessage> {
        let mut scope = WireMessage::default();
        scope.text(1, "precise");
        scope.text(2, env!("CARGO_PKG_VERSION"));
        let mut scope_profiles = WireMessage::default();
        scope_profiles.message(1, &scope);
        let before = self.profiles;
        let events = self.capture.meta.events.iter().enumerate();
        for (index, event) in events.filter(|(index, _)| only.is_none_or(|only| only == *index)) {
            let rows: Vec<&Row> =
                part.rows.iter().filter(|row| usize::from(row.event) == index).copied().collect();
            for profile in self.profiles(index, event, &rows, part.cgroup) {
                scope_profiles.message(2, &profile);
                self.profiles += 1;
            }
        }
        let mut all = WireMessage::default();
        all.message(1, &resource(part, &self.capture.meta.machine, options));
        all.message(2, &scope_profiles);
        (self.profiles > before).then_some(all)
    }

    /// Returns the profiles of an event.
    fn profiles(&mut self, index: usize, event: &EventInfo, rows: &[&Row], cgroup: &str) -> Vec<WireMessage> {
        let mut sums: FxHashMap<SampleKey, Measures> = FxHashMap::default();
        let mut order = Vec::new();
        for row in rows {
            let key = (self.dictionary.stack(row), self.attributes(row));
            let sum = sums.entry(key).or_insert_with(|| {
                order.push(key);
                Measures::default()
            });
            sum.add(&row.measures);
            self.samples = self.samples.saturating_add(row.measures.count);
        }
        let samples: Vec<(SampleKey, Measures)> =
            order.into_iter().filter_map(|key| Some((key, *sums.get(&key)?))).collect();
        let name = plain(&event.name);
        // The unit of a timer is time, that of all other events is the event itself.
        let unit = if event.unit == "ns" { "nanoseconds" } else { "count" };
        let types: [(String, &str, ValueOf); 3] = [
            (format!("{name}_samples"), "count", |sum| sum.count),
            (name.clone(), unit, |sum| sum.period_sum),
            (format!("{name}_latency"), "cycles", |sum| sum.latency_sum),
        ];
        let there = if event.fields.latency { 3 } else { 2 };
        let attributes = self.profile_attributes(index, event);
        let mut profiles = Vec::new();
        for (kind, unit, value) in types.into_iter().take(there) {
            let values = samples.iter().map(|(key, sum)| (key, value(sum))).filter(|(_, value)| *value > 0);
            let samples: Vec<WireMessage> = values.map(|(key, value)| sample(key, value)).collect();
            if !samples.is_empty() {
                let id = self.id(&kind, cgroup);
                profiles.push(self.profile(event, (&kind, unit), &samples, &attributes, &id));
            }
        }
        profiles
    }

    /// Returns a `Profile`.
    fn profile(
        &mut self,
        event: &EventInfo,
        (kind, unit): (&str, &str),
        samples: &[WireMessage],
        attributes: &[u64],
        id: &[u8],
    ) -> WireMessage {
        let meta = &self.capture.meta;
        let period = match &*event.unit {
            "ns" => self.dictionary.value_type("time", "nanoseconds"),
            "" => self.dictionary.value_type("events", "count"),
            unit => self.dictionary.value_type(unit, "count"),
        };
        let mut profile = WireMessage::default();
        profile.message(1, &self.dictionary.value_type(kind, unit));
        samples.iter().for_each(|sample| profile.message(2, sample));
        profile.fixed64(3, meta.start_unix_ns);
        profile.number(4, duration(&meta.epochs));
        profile.message(5, &period);
        profile.number(6, signed(event.period.unwrap_or(0)));
        profile.bytes(7, id);
        profile.packed(11, attributes);
        profile
    }

    /// Returns an id by which a backend can find out that it has a profile already: a request that
    /// is repeated has the same ids.
    fn id(&self, kind: &str, cgroup: &str) -> Vec<u8> {
        let meta = &self.capture.meta;
        let mut hash = Sha256::new();
        hash.update(meta.start_unix_ns.to_le_bytes());
        for text in [&*meta.machine.host, kind, cgroup] {
            hash.update((text.len() as u64).to_le_bytes());
            hash.update(text);
        }
        hash.finalize().iter().take(16).copied().collect()
    }

    /// Returns the attributes of a profile: what its numbers are worth.
    fn profile_attributes(&mut self, index: usize, event: &EventInfo) -> Vec<u64> {
        let dictionary = &mut self.dictionary;
        let mut attributes = vec![
            dictionary.text("precise.event", &event.name),
            dictionary.text("precise.encoding", &event.encoding),
            dictionary.flag("precise.exact", event.verdict.precise),
        ];
        if let Some(trust) = self.trust.events.get(index) {
            attributes.push(dictionary.text("precise.verdict", &trust.summary));
        }
        attributes
    }

    fn attributes(&mut self, row: &Row) -> [u64; 3] {
        let level = Served::of(row.data_source());
        let dictionary = &mut self.dictionary;
        [
            dictionary.name("process.executable.name", row.process),
            dictionary.name("thread.name", row.thread),
            level.map_or(0, |level| dictionary.text("precise.level", &level.to_string())),
        ]
    }
}

/// Returns a `Sample`.
fn sample((stack, attributes): &SampleKey, value: u64) -> WireMessage {
    let known: Vec<u64> = attributes.iter().copied().filter(|attribute| *attribute > 0).collect();
    let mut sample = WireMessage::default();
    sample.number(1, *stack);
    sample.packed(2, &known);
    sample.packed(4, &[signed(value)]);
    sample
}

/// Limits a number to what a signed one can hold.
fn signed(value: u64) -> u64 {
    value.min(i64::MAX as u64)
}

/// Returns the name of an event as a part of a type: of letters, digits, `.`, `-` and `_`.
fn plain(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    name.chars().map(|c| if allowed(c) { c } else { '_' }).collect()
}

/// Returns the `Resource` of a part.
fn resource(part: &ServicePart<'_>, machine: &Machine, options: &OtlpOptions) -> WireMessage {
    let arch = match &*machine.arch {
        "x86_64" => "amd64",
        "aarch64" => "arm64",
        other => other,
    };
    let owner =
        |of: fn(&precise_model::Owner) -> &Option<String>| part.owner.and_then(|owner| of(owner).as_deref());
    let in_pod = owner(|owner| &owner.pod).or(owner(|owner| &owner.pod_uid)).is_some();
    let container = if in_pod { "k8s.container.name" } else { "container.name" };
    let some = |text| Some(text).filter(|text: &&str| !text.is_empty());
    let attributes = [
        ("service.name", Some(options.service.as_deref().unwrap_or(&part.name))),
        ("host.name", some(&machine.host)),
        ("host.arch", some(arch)),
        ("os.type", Some("linux")),
        ("process.linux.cgroup", some(part.cgroup)),
        ("container.id", owner(|owner| &owner.container_id)),
        (container, owner(|owner| &owner.container)),
        ("container.runtime.name", owner(|owner| &owner.runtime)),
        ("k8s.namespace.name", owner(|owner| &owner.namespace)),
        ("k8s.pod.name", owner(|owner| &owner.pod)),
        ("k8s.pod.uid", owner(|owner| &owner.pod_uid)),
    ];
    let mut resource = WireMessage::default();
    for (key, value) in attributes {
        let Some(value) = value else { continue };
        let mut attribute = WireMessage::default();
        attribute.text(1, key);
        attribute.message(2, &any_text(value));
        resource.message(1, &attribute);
    }
    resource
}
