//! Facts of this machine.
use crate::error::{Class, Failure};
use std::path::PathBuf;
/// Path.
pub fn path(p: &str) -> PathBuf { PathBuf::from(p) }
/// Sysctl.
pub fn sysctl(name: &str) -> Option<String> {
    std::fs::read_to_string(path(&format!("/proc/sys/{}", name.replace('.', "/")))).ok().map(|s| s.trim().to_owned())
}
/// Possible CPUs.
pub fn possible_cpus() -> Result<usize, Failure> {
    aya::util::nr_cpus().map_err(|(f, e)| Failure::new(Class::Failed, format!("{f}: {e}")))
}
/// Kernel version.
pub fn kernel_version() -> Result<(u32, u32), Failure> {
    let s = std::fs::read_to_string(path("/proc/sys/kernel/osrelease")).unwrap_or_default();
    let mut i = s.split('.').map(|p| p.parse().unwrap_or(0));
    Ok((i.next().unwrap_or(0), i.next().unwrap_or(0)))
}
/// Online CPUs.
pub fn online_cpus() -> Result<Vec<u32>, Failure> {
    aya::util::online_cpus().map_err(|(f, e)| Failure::new(Class::Failed, format!("{f}: {e}")))
}
