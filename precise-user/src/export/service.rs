//! Services: the parts of a run that a backend tells apart by name.

use precise_model::{Capture, CompactSort as _, Name, Owner, Row};
use rustc_hash::FxHashMap;

/// The name of samples whose cgroup is not known, as OpenTelemetry has it.
const UNKNOWN: &str = "unknown_service";
/// The name of samples of the root cgroup, where the kernel's threads are.
const ROOT: &str = "host";

/// The samples of one cgroup.
#[derive(Clone, Debug)]
pub struct ServicePart<'a> {
    /// The name of the service.
    pub name: String,
    /// The path of the cgroup; empty if it is not known.
    pub cgroup: &'a str,
    /// The owner of the cgroup; `None` if it has none, or it is not known.
    pub owner: Option<&'a Owner>,
    /// The rows.
    pub rows: Vec<&'a Row>,
    /// The number of samples in the rows.
    pub samples: u64,
}

/// Returns the parts of a capture, the one with most samples first. Each row is in one part.
pub fn service_parts(capture: &Capture) -> Vec<ServicePart<'_>> {
    let mut places: FxHashMap<&str, usize> = FxHashMap::default();
    let mut parts: Vec<ServicePart<'_>> = Vec::new();
    for row in &capture.rows {
        let cgroup = match row.cgroup {
            Name::Known(id) => capture.names.get(id),
            Name::Unknown(_) => "",
        };
        let place = *places.entry(cgroup).or_insert_with(|| {
            let owner = capture.meta.owner(cgroup);
            let name = service_name(cgroup, owner);
            parts.push(ServicePart { name, cgroup, owner, rows: Vec::new(), samples: 0 });
            parts.len() - 1
        });
        if let Some(part) = parts.get_mut(place) {
            part.rows.push(row);
            part.samples = part.samples.saturating_add(row.measures.count);
        }
    }
    parts.compact_sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| a.cgroup.cmp(b.cgroup)));
    parts
}

/// Returns the name of a service: that of the container, which is the same in all pods of a
/// deployment; else of the unit, without `.service`; else the last part of the cgroup's path.
fn service_name(cgroup: &str, owner: Option<&Owner>) -> String {
    let known = owner.and_then(|owner| {
        let unit = owner.unit.as_deref().map(|unit| unit.strip_suffix(".service").unwrap_or(unit));
        owner.container.as_deref().or(owner.pod.as_deref()).or(unit).filter(|name| !name.is_empty())
    });
    let last = || cgroup.rsplit('/').find(|part| !part.is_empty());
    match (known, last()) {
        (Some(name), _) => name.to_owned(),
        (None, Some(part)) => part.strip_suffix(".service").unwrap_or(part).to_owned(),
        (None, None) if cgroup.is_empty() => UNKNOWN.to_owned(),
        (None, None) => ROOT.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use precise_model::testing::CaptureBuilder;

    #[test]
    fn a_service_is_called_as_people_call_it() {
        let of = |cgroup: &str, owner: Option<Owner>| service_name(cgroup, owner.as_ref());
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(of("", None), UNKNOWN);
        assert_eq!(of("/", None), ROOT);
        assert_eq!(of("/demo/cache.service", None), "cache");
        assert_eq!(of("/a/b/", None), "b");
        let unit = Owner { unit: some("nginx.service"), ..Owner::default() };
        assert_eq!(of("/system.slice/nginx.service", Some(unit.clone())), "nginx");
        let pod = Owner { pod: some("web-7f9c-x2x1q"), ..unit };
        assert_eq!(of("/kubepods/x", Some(pod.clone())), "web-7f9c-x2x1q");
        assert_eq!(of("/kubepods/x", Some(Owner { container: some("app"), ..pod })), "app");
    }

    #[test]
    fn each_row_is_in_one_part() {
        let mut builder = CaptureBuilder::new();
        for (samples, cgroup) in [(3, "/a"), (10, "/b"), (4, "/a"), (1, "/")] {
            builder.cell().samples(samples).cgroup(samples, cgroup);
        }
        builder.cell().samples(2);
        let capture = builder.build();
        let parts = service_parts(&capture);
        let found: Vec<_> = parts.iter().map(|part| (&*part.name, part.samples, part.rows.len())).collect();
        assert_eq!(found, [("b", 10, 1), ("a", 7, 2), (UNKNOWN, 2, 1), (ROOT, 1, 1)]);
    }
}
