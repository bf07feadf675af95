//! The properties of the machine that determine the sizes of buffers and the CPUs of threads. They
//! are read below a root prefix.

use precise_model::CompactSort as _;
use precise_model::parse_cpu_list;
use precise_sampling::machine::Root;

/// CPUs and caches of the machine, as far as they are known.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Topology {
    /// CPUs that are online and that this process may use.
    pub cpus: Vec<u32>,
    /// For each of these CPUs, the CPUs that share its core (hyper-threads), including itself.
    pub siblings: Vec<Vec<u32>>,
    /// Sizes in bytes of the data caches of the first CPU, nearest cache first.
    pub caches: Vec<u64>,
    /// Bytes of memory that are available without swapping.
    pub available: u64,
}

impl Topology {
    /// Reads the topology. Values that cannot be read are empty.
    pub fn read(root: &Root, online: &[u32]) -> Self {
        let allowed = root.read("/proc/self/status").ok().and_then(|status| {
            let line = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
            parse_cpu_list(line).ok()
        });
        let may = |cpu: &u32| allowed.as_ref().is_none_or(|allowed| allowed.contains(cpu));
        let cpus: Vec<u32> = online.iter().copied().filter(may).collect();
        let siblings = cpus
            .iter()
            .map(|cpu| {
                let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
                root.read(&path)
                    .ok()
                    .and_then(|text| parse_cpu_list(&text).ok())
                    .unwrap_or_else(|| vec![*cpu])
            })
            .collect();
        let caches = cpus.first().map_or_else(Vec::new, |cpu| caches(root, *cpu));
        let available = root.read("/proc/meminfo").ok().and_then(|text| {
            let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
            line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
        });
        Self { cpus, siblings, caches, available: available.unwrap_or(0) }
    }

    /// Returns two CPUs on different cores, starting with the first CPU.
    pub fn two_cores(&self) -> Option<[u32; 2]> {
        let (first, siblings) = (*self.cpus.first()?, self.siblings.first()?);
        let other = self.cpus.iter().copied().find(|cpu| !siblings.contains(cpu))?;
        Some([first, other])
    }
}

/// Returns the sizes in bytes of the caches that hold data, by level.
fn caches(root: &Root, cpu: u32) -> Vec<u64> {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
    let mut caches: Vec<(u32, u64)> = Vec::new();
    for index in root.list(&folder).unwrap_or_default() {
        let read = |name: &str| root.read(&format!("{folder}/{index}/{name}")).ok();
        let size = |text: String| text.strip_suffix('K')?.parse::<u64>().ok()?.checked_mul(1024);
        let holds_data = read("type").is_some_and(|kind| kind == "Data" || kind == "Unified");
        if let (true, Some(level), Some(size)) =
            (holds_data, read("level").and_then(|level| level.parse().ok()), read("size").and_then(size))
        {
            caches.push((level, size));
        }
    }
    caches.compact_sort();
    caches.into_iter().map(|(_, size)| size).collect()
}
