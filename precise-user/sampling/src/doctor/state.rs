//! What is read of a machine.

use schemars::JsonSchema;
use serde::Serialize;

use super::Surroundings;
use crate::{
    machine::{MachineInfo, Root},
    pmu::Pmus,
    rights::Rights,
};

/// A machine as its files show it.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct State {
    /// CPU, kernel, limits.
    #[serde(flatten)]
    pub machine: MachineInfo,
    /// Whether the kernel shows its types (/sys/kernel/btf/vmlinux).
    pub btf: bool,
    /// What this process may do.
    #[serde(flatten)]
    pub rights: Rights,
    /// What is around the PMU.
    pub around: Surroundings,
    /// Names of the PMUs.
    #[serde(rename = "pmu_names")]
    pub names: Vec<String>,
    /// The PMUs themselves; `precise list --json` prints what they have.
    #[serde(skip)]
    pub pmus: Pmus,
}

impl State {
    /// Reads it. Never fails: what could not be read is said.
    pub fn read(root: &Root) -> Self {
        let pmus = Pmus::read(root);
        let machine = MachineInfo::read(root);
        Self {
            around: Surroundings::read(root, &machine.machine.kernel),
            machine,
            btf: root.path("/sys/kernel/btf/vmlinux").exists(),
            rights: Rights::read(root),
            names: pmus.pmus.iter().map(|pmu| pmu.name.clone()).collect(),
            pmus,
        }
    }

    /// Whether this process may sample everything and load programs; `None` where nothing says so.
    pub fn may_sample(&self) -> Option<bool> {
        self.rights.capabilities.map(|_| self.rights.refusal().is_none())
    }
}
