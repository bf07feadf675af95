//! Detects events whose samples were selected by the property that a check counts: such samples do
//! not tell how often it happens.

use precise_filter::{Term, parse};
use precise_model::{EventInfo, EventSelect, PmuKind, Vendor};

/// The property that must not have selected the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SelectedBy {
    /// The outcome of an access.
    Access,
    /// The latency of an access.
    Latency,
    /// The outcome of a branch.
    Branch,
    /// The outcome of a fetch.
    Fetch,
}

/// Returns why the samples of an event do not represent all accesses (branches, fetches); `None` if
/// they do.
pub(crate) fn chosen(info: &EventInfo, by: SelectedBy) -> Option<String> {
    let name = &info.name;
    if info.hardware_filter.l3_miss_only {
        return Some(format!("{name} sampled only accesses that missed the L3 cache."));
    }
    if by == SelectedBy::Access && is_one_outcome(&info.pmu) {
        return Some(format!("{name} samples only accesses of one kind, not all."));
    }
    let filter = info.ledger.rejected.iter().find(|(clause, _)| chooses(clause, by))?;
    Some(format!("the filter of the run selected the samples by it ({}).", filter.0))
}

/// Returns whether an Intel event counts memory instructions of one outcome: MEM_INST_RETIRED
/// except for all loads and all stores, and MEM_LOAD_*_RETIRED (Intel's event lists).
fn is_one_outcome(pmu: &PmuKind) -> bool {
    let PmuKind::Core(core) = pmu else { return false };
    // The codes are Intel's. If a file does not name its CPU, it may be from one of Intel's.
    if core.vendor == Vendor::Amd {
        return false;
    }
    match core.select {
        // On small cores, 5 is loads by latency and 6 stores by latency.
        Some(EventSelect { event: 0xd0, umask }) => ![0x81, 0x82, 0x83, 0x05, 0x06].contains(&umask),
        Some(EventSelect { event, .. }) => (0xd1..=0xd3).contains(&event),
        None => false,
    }
}

fn chooses(clause: &str, by: SelectedBy) -> bool {
    // The filter of AMD's branch events: it keeps all branches, whatever their outcome.
    if clause == "branch == any" {
        return false;
    }
    // A clause that cannot be parsed may select by anything.
    let Ok(expression) = parse(clause) else { return true };
    expression.tests().iter().any(|test| match test.term() {
        Term::Latency => by != SelectedBy::Branch,
        Term::Level
        | Term::Snoop
        | Term::Tlb
        | Term::Remote
        | Term::Lock
        | Term::Block
        | Term::Access
        | Term::Ccx
        | Term::Hops
        | Term::PageSize => matches!(by, SelectedBy::Access | SelectedBy::Latency),
        Term::Branch => by == SelectedBy::Branch,
        Term::Fetch => by == SelectedBy::Fetch,
        _ => false,
    })
}
