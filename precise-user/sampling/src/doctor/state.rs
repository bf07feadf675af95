//! The state of a machine, as input of the checks.

use schemars::JsonSchema;
use serde::Serialize;

use super::{ReaderConfinement, Surroundings};
use crate::{
    machine::{MachineInfo, Root},
    pmu::Pmus,
    rights::Rights,
};

/// The state of a machine, read from its files.
#[derive(Clone, Debug, PartialEq, Default, Serialize, JsonSchema)]
pub struct MachineState {
    /// CPU, kernel and limits.
    #[serde(flatten)]
    pub machine: MachineInfo,
    /// Whether the kernel shows its type information (/sys/kernel/btf/vmlinux).
    pub btf: bool,
    /// The rights of this process.
    #[serde(flatten)]
    pub rights: Rights,
    /// The process that reads files for names; `None` if it was not tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub naming: Option<ReaderConfinement>,
    /// The surroundings of the PMU.
    pub around: Surroundings,
    /// The names of the PMUs.
    #[serde(rename = "pmu_names")]
    pub names: Vec<String>,
    /// The PMUs themselves; `precise list --json` prints their contents.
    #[serde(skip)]
    pub pmus: Pmus,
}

impl MachineState {
    /// Reads the state. Never fails: the machine and the PMUs list what could not be read.
    pub fn read(root: &Root) -> Self {
        let pmus = Pmus::read(root);
        let machine = MachineInfo::read(root);
        Self {
            around: Surroundings::read(root, &machine.machine.kernel),
            machine,
            btf: root.path("/sys/kernel/btf/vmlinux").exists(),
            rights: Rights::read(root),
            naming: None,
            names: pmus.pmus.iter().map(|pmu| pmu.name.clone()).collect(),
            pmus,
        }
    }

    /// Returns whether this process may sample everything and load programs; `None` if that is
    /// unknown.
    pub fn may_sample(&self) -> Option<bool> {
        self.rights.capabilities.map(|_| self.rights.refusal().is_none())
    }
}
