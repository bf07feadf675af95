//! Which service a sample belongs to, by the owner of its cgroup; and which cluster a capture does,
//! by its label.

use precise_model::{EventInfo, PmuKind, Vendor};

use crate::hour::FleetDay;

/// What a capture knows about the owner of a cgroup.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct OwnerTexts<'a> {
    pub cgroup: Option<&'a str>,
    pub unit: Option<&'a str>,
    pub container: Option<&'a str>,
    pub pod: Option<&'a str>,
    pub namespace: Option<&'a str>,
}

impl OwnerTexts<'_> {
    /// Returns the name of the service; empty if the sample has no cgroup. It is the same on all
    /// nodes that run the service.
    pub fn service(self) -> String {
        let Self { cgroup, unit, container, pod, namespace } = self;
        match (pod, namespace) {
            (Some(pod), Some(namespace)) => format!("{namespace}/{}", workload(pod)),
            (Some(pod), None) => workload(pod).to_owned(),
            _ => container.or(unit).or(cgroup).unwrap_or_default().to_owned(),
        }
    }
}

/// Returns the name of the workload that made a pod: of a Deployment `web-7d9f8b6c5-x2x4z`, of a
/// DaemonSet or a Job `web-x2x4z`, of a StatefulSet `web-0`. A name that is none of these stays.
fn workload(pod: &str) -> &str {
    // The alphabet of generated names: k8s.io/apimachinery/pkg/util/rand.
    let made = |part: &str| part.bytes().all(|byte| b"bcdfghjklmnpqrstvwxz2456789".contains(&byte));
    let number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    let Some((rest, last)) = pod.rsplit_once('-') else { return pod };
    if last.len() == 5 && made(last) {
        return match rest.rsplit_once('-') {
            // The hash of a template, or the time of a CronJob.
            Some((name, hash)) if (8..=10).contains(&hash.len()) && (made(hash) || number(hash)) => name,
            _ => rest,
        };
    }
    if last.len() <= 4 && number(last) { rest } else { pod }
}

/// Returns the cluster of a capture: its label, without the host and the day that labels of rolling
/// captures end with. Empty if there is no label.
pub(crate) fn cluster(label: &str, host: &str) -> String {
    // As labels are made of hosts, whose names may contain anything.
    let plain = |c: char| c.is_ascii_alphanumeric() || ".-".contains(c);
    let host: String = host.chars().take(64).map(|c| if plain(c) { c } else { '_' }).collect();
    let host = match host.trim_matches(['.', '-']) {
        "" => "unknown",
        host => host,
    };
    let rolling = || {
        FleetDay::at_end(label)?;
        let (rest, _) = label.rsplit_once('-')?;
        rest.strip_suffix(host)?.strip_suffix('-')
    };
    rolling().unwrap_or(label).to_owned()
}

/// Returns what took the samples of an event. Samples of different kinds are never added up, even
/// if their events have the same name.
pub(crate) fn kind(event: &EventInfo) -> String {
    let mut kind = match &event.pmu {
        PmuKind::Software => "software",
        PmuKind::Core(core) => match core.vendor {
            Vendor::Intel => "intel",
            Vendor::Amd => "amd",
            Vendor::Other => "core",
        },
        PmuKind::IbsOp => "ibs-op",
        PmuKind::IbsFetch => "ibs-fetch",
        PmuKind::Other => "other",
    }
    .to_owned();
    if let Some(core) = event.pmu.core() {
        kind += &format!(",{core}");
    }
    if let Some(cycles) = event.hardware_filter.min_latency {
        kind += &format!(",ldlat={cycles}");
    }
    if event.hardware_filter.l3_miss_only {
        kind += ",l3missonly";
    }
    // The weights of a frequency are those of samples with different periods.
    if event.frequency.is_some() {
        kind += ",frequency";
    }
    kind
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_have_workloads() {
        for (pod, name) in [
            ("web-7d9f8b6c5-x2x4z", "web"),
            ("web-front-7d9f8b6c5d-x2x4z", "web-front"),
            ("agent-x2x4z", "agent"),
            ("db-0", "db"),
            ("backup-29384756-x2x4z", "backup"),
            ("kube-proxy", "kube-proxy"),
            ("etcd-node-1.example", "etcd-node-1.example"),
            ("plain", "plain"),
        ] {
            assert_eq!(workload(pod), name);
        }
        let owner = OwnerTexts { cgroup: Some("/a"), unit: Some("u.service"), ..OwnerTexts::default() };
        assert_eq!(owner.service(), "u.service");
        let pod = OwnerTexts { pod: Some("web-x2x4z"), namespace: Some("shop"), ..owner };
        assert_eq!(pod.service(), "shop/web");
        assert_eq!(OwnerTexts { container: Some("redis"), ..owner }.service(), "redis");
        assert_eq!(
            (OwnerTexts { unit: None, ..owner }.service(), OwnerTexts::default().service()),
            ("/a".into(), String::new())
        );
    }

    #[test]
    fn labels_have_clusters() {
        for (label, host, name) in [
            ("prod-eu-node-1-20261124", "node-1", "prod-eu"),
            ("prod-a_b-20261124", "a/b", "prod"),
            ("deploy-41", "node-1", "deploy-41"),
            ("deploy-20261124", "node-1", "deploy-20261124"),
            ("", "node-1", ""),
        ] {
            assert_eq!(cluster(label, host), name);
        }
    }
}
