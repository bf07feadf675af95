//! Whether the samples of an event were chosen by what became of them: then they say nothing of how
//! often it happens.

use precise_filter::{Term, parse};
use precise_model::{EventInfo, EventSelect, PmuKind, Vendor};

/// What must not have chosen the samples.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    /// How an access went.
    Access,
    /// How long it took.
    Latency,
    /// What became of a branch.
    Branch,
    /// What became of a fetch.
    Fetch,
}

/// Why the samples of an event are no picture of all accesses (branches, fetches); `None` where
/// they are.
pub(crate) fn chosen(info: &EventInfo, by: By) -> Option<String> {
    let name = &info.name;
    if info.hardware_filter.l3_miss_only {
        return Some(format!("{name} sampled only accesses that missed the L3 cache."));
    }
    if by == By::Access && is_one_outcome(&info.pmu) {
        return Some(format!("{name} samples only accesses of one kind, not all."));
    }
    let filter = info.ledger.rejected.iter().find(|(clause, _)| chooses(clause, by))?;
    Some(format!("the filter of the run selected the samples by it ({}).", filter.0))
}

/// Whether an event of Intel's counts memory instructions by what became of them: MEM_INST_RETIRED
/// but for all loads and all stores, MEM_LOAD_*_RETIRED (Intel's event lists).
fn is_one_outcome(pmu: &PmuKind) -> bool {
    let PmuKind::Core(core) = pmu else { return false };
    // The codes are Intel's; a file that does not name its CPU may be of one.
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

fn chooses(clause: &str, by: By) -> bool {
    // What AMD's branches are made of: all branches, whatever became of them.
    if clause == "branch == any" {
        return false;
    }
    // A clause that cannot be read may be anything.
    let Ok(expression) = parse(clause) else { return true };
    expression.tests().iter().any(|test| match test.term() {
        Term::Latency => by != By::Branch,
        Term::Level
        | Term::Snoop
        | Term::Tlb
        | Term::Remote
        | Term::Lock
        | Term::Block
        | Term::Access
        | Term::Ccx
        | Term::Hops
        | Term::PageSize => matches!(by, By::Access | By::Latency),
        Term::Branch => by == By::Branch,
        Term::Fetch => by == By::Fetch,
        _ => false,
    })
}
