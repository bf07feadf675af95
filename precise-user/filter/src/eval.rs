//! Two evaluators of filters in plain Rust: one runs the slots like the BPF program, the other
//! evaluates the expression as written.
//!
//! The two share no code on purpose. If they agree on every sample, the compiler is correct.

use precise_common::config::{Slot, compare, operand, watched};
use precise_common::data_src::{DataSource, Level, bits};
use precise_common::mode;

use super::ast::{Expr, Order, Test};
use super::lower::{CgroupMatch, Options, Resolver};
use super::term::Term;

/// The facts of a sample that a filter can test.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SampleFacts {
    /// Instruction address.
    pub ip: u64,
    /// Data address; 0 if there is none.
    pub address: u64,
    /// Access latency in core cycles; 0 if there is none.
    pub latency: u32,
    /// `perf_mem_data_src`; 0 if there is none.
    pub data_src: u64,
    /// `precise_common::ibs::Outcome`; 0 if there is none.
    pub outcome: u64,
    /// Process id.
    pub pid: u32,
    /// Thread id.
    pub tid: u32,
    /// CPU number.
    pub cpu: u32,
    /// User id.
    pub uid: u32,
    /// Group id.
    pub gid: u32,
    /// Cgroup id, as in the map key.
    pub cgroup: u64,
    /// Ids of the task's v2 cgroup and its ancestors, from the root, which is level 0, down to its
    /// own.
    pub ancestors: Vec<u64>,
    /// Ids of the cgroups that the run watches.
    pub watched: Vec<u64>,
    /// Process name, padded with zeros.
    pub comm: [u8; 16],
    /// Physical data address; 0 if there is none.
    pub phys_address: u64,
    /// Size of the data's page in bytes; 0 if it is not known.
    pub page_size: u64,
}

/// Runs the slots like the BPF program.
///
/// # Errors
///
/// Returns the first clause that the sample fails.
pub fn slots_pass(slots: &[Slot], sample: &SampleFacts) -> Result<(), u32> {
    let mut clause_holds = false;
    for slot in slots.iter().filter(|slot| slot.operand != operand::NONE) {
        clause_holds = clause_holds || slot_holds(slot, sample);
        if slot.ends_clause != 0 {
            if !clause_holds {
                return Err(slot.clause);
            }
            clause_holds = false;
        }
    }
    Ok(())
}

fn slot_holds(slot: &Slot, sample: &SampleFacts) -> bool {
    let (low, high) = (slot.low, slot.high);
    let holds = match slot.operand {
        operand::CGROUP_SUBTREE => sample.ancestors.get(high as usize).copied().unwrap_or(0) == low,
        operand::CGROUP_WATCHED => is_watched(sample, watched::first(high), watched::last(high)),
        operand::COMM => u128::from_le_bytes(sample.comm) == u128::from(low) | u128::from(high) << 64,
        other => {
            let value = match other {
                operand::IP => sample.ip,
                operand::ADDRESS => sample.address,
                operand::LATENCY => u64::from(sample.latency),
                operand::DATA_SRC => sample.data_src,
                operand::PID => u64::from(sample.pid),
                operand::TID => u64::from(sample.tid),
                operand::CPU => u64::from(sample.cpu),
                operand::KERNEL => u64::from(mode::in_kernel(sample.ip)),
                operand::PHYS_ADDRESS => sample.phys_address,
                operand::PAGE_SIZE => sample.page_size,
                operand::UID => u64::from(sample.uid),
                operand::GID => u64::from(sample.gid),
                operand::OUTCOME => sample.outcome,
                _ => sample.cgroup,
            };
            match slot.compare & !compare::NOT {
                compare::RANGE => low <= value && value <= high,
                compare::ANY_BIT => value & low != 0,
                compare::MASKED => value & low == high,
                _ => high >> ((value >> (low & 63)) & 63) & 1 != 0,
            }
        }
    };
    holds != (slot.compare & compare::NOT != 0)
}

fn is_watched(sample: &SampleFacts, first: u64, last: u64) -> bool {
    (first..=last).any(|level| {
        let id = usize::try_from(level).ok().and_then(|level| sample.ancestors.get(level));
        id.is_some_and(|id| sample.watched.contains(id))
    })
}

/// Evaluates the expression as written.
///
/// # Errors
///
/// Returns an error that names the cgroup that is not known, and why.
pub fn expr_passes(
    expr: &Expr,
    sample: &SampleFacts,
    options: Options,
    resolver: &dyn Resolver,
) -> Result<bool, String> {
    let recurse = |part: &Expr| expr_passes(part, sample, options, resolver);
    Ok(match expr {
        Expr::All(parts) => {
            let mut all = true;
            for part in parts {
                all &= recurse(part)?;
            }
            all
        }
        Expr::Any(parts) => {
            let mut any = false;
            for part in parts {
                any |= recurse(part)?;
            }
            any
        }
        Expr::Not(inner) => !recurse(inner)?,
        Expr::Test(Test::Bound(term, order, bound)) => {
            let value = number(*term, sample);
            match order {
                Order::Less => value < *bound,
                Order::AtMost => value <= *bound,
                Order::Greater => value > *bound,
                Order::AtLeast => value >= *bound,
            }
        }
        Expr::Test(Test::Bits(term, mask)) => number(*term, sample) & mask != 0,
        Expr::Test(Test::Number { term, negated, items }) => {
            let value = number(*term, sample);
            let holds = items.iter().any(|item| {
                let (low, high) = item.bounds();
                (low..=high).contains(&value)
            });
            holds != *negated
        }
        Expr::Test(Test::Class { term, negated, values }) => {
            let holds = values.iter().any(|value| class(*term, value.name(), sample, options));
            holds != *negated
        }
        Expr::Test(Test::Text { term, negated, values }) => {
            let mut any = false;
            for value in values {
                any |= match term {
                    Term::Comm => {
                        let end = sample.comm.iter().position(|byte| *byte == 0).unwrap_or(sample.comm.len());
                        &sample.comm[..end] == value.as_bytes()
                    }
                    _ => match resolver.cgroup(value)? {
                        CgroupMatch::Subtree { id, level } => {
                            sample.ancestors.get(level as usize) == Some(&id)
                        }
                        CgroupMatch::Watched { first, last } => {
                            is_watched(sample, u64::from(first), u64::from(last))
                        }
                        CgroupMatch::Ids(ids) => ids.contains(&sample.cgroup),
                    },
                };
            }
            any != *negated
        }
    })
}

fn number(term: Term, sample: &SampleFacts) -> u64 {
    match term {
        Term::Ip => sample.ip,
        Term::Address => sample.address,
        Term::PhysAddress => sample.phys_address,
        Term::Latency => u64::from(sample.latency),
        Term::PageSize => sample.page_size,
        Term::Pid => u64::from(sample.pid),
        Term::Tid => u64::from(sample.tid),
        Term::Cpu => u64::from(sample.cpu),
        Term::Uid => u64::from(sample.uid),
        Term::Gid => u64::from(sample.gid),
        Term::Hops => u64::from(DataSource::decode(sample.data_src).hops),
        _ => 0,
    }
}

/// Returns whether a named value holds, by the kernel's `PERF_MEM_*` bits.
fn class(term: Term, name: &str, sample: &SampleFacts, options: Options) -> bool {
    let field = |field: (u32, u32)| (sample.data_src >> field.0) & ((1 << field.1) - 1);
    let (snoop, snoopx, blk, lock) =
        (field(bits::SNOOP), field(bits::SNOOPX), field(bits::BLK), field(bits::LOCK));
    let dtlb = field(bits::DTLB);
    let (hit, miss, first, second) = (dtlb & 2 != 0, dtlb & 4 != 0, dtlb & 8 != 0, dtlb & 16 != 0);
    let (walk, fault) = (dtlb & 32 != 0, dtlb & 64 != 0);
    match (term, name) {
        (Term::Op, "load") => field(bits::OP) & 2 != 0,
        (Term::Op, "store") => field(bits::OP) & 4 != 0,
        (Term::Op, "pfetch") => field(bits::OP) & 8 != 0,
        (Term::Op, "exec") => field(bits::OP) & 16 != 0,
        (Term::Op, "na") => field(bits::OP) & !1 == 0,
        (Term::Snoop, "none") => snoop & 2 != 0,
        (Term::Snoop, "hit") => snoop & 4 != 0,
        (Term::Snoop, "miss") => snoop & 8 != 0,
        (Term::Snoop, "hitm") => snoop & 16 != 0,
        (Term::Snoop, "fwd") => snoopx & 1 != 0,
        (Term::Snoop, "peer") => snoopx & 2 != 0,
        (Term::Snoop, "na") => snoop & !1 == 0 && snoopx == 0,
        (Term::Tlb, "l1_hit") => hit && first && !second,
        (Term::Tlb, "l2_hit") => hit && second && !first,
        (Term::Tlb, "any_hit") => hit,
        (Term::Tlb, "l1_miss") => miss || walk || (hit && second && !first),
        (Term::Tlb, "l2_miss") => walk || (miss && (second || !first)),
        (Term::Tlb, "any_miss") => miss || walk,
        (Term::Tlb, "walk") => walk,
        (Term::Tlb, "fault") => fault,
        (Term::Tlb, "na") => dtlb & !1 == 0,
        (Term::Lock, "locked") => lock & 2 != 0,
        (Term::Lock, "unlocked") => lock == 0,
        (Term::Lock, "na") => lock == 1,
        (Term::Block, "data") => blk & 2 != 0,
        (Term::Block, "addr") => blk & 4 != 0,
        (Term::Block, "na") => blk & 6 == 0,
        (Term::Access, name) => access(name, sample.outcome),
        (Term::Ccx, name) => ccx(name, sample.outcome),
        (Term::Branch, name) => branch(name, sample.outcome),
        (Term::Fetch, name) => fetch(name, sample.outcome),
        (Term::Mode, "kernel") => (sample.ip as i64) < 0,
        (Term::Mode, "user") => (sample.ip as i64) >= 0,
        (Term::Remote, "remote") => remote(sample.data_src, options),
        (Term::Remote, "local") => !remote(sample.data_src, options),
        (Term::Level, name) => levels(sample.data_src, options).contains(&name),
        _ => false,
    }
}

/// Uses the bits of IbsOpData from bit 34 on, which an outcome has from bit 26 on.
fn branch(name: &str, outcome: u64) -> bool {
    let bit = |bit: u32| outcome >> (bit - 34 + 26) & 1 != 0;
    let (returns, taken, mispredicted, is_branch) = (bit(34), bit(35), bit(36), bit(37));
    is_branch
        && match name {
            "any" => true,
            "taken" => taken,
            "not_taken" => !taken,
            "mispredicted" => mispredicted,
            "predicted" => !mispredicted,
            "return" => returns,
            _ => false,
        }
}

/// Uses the bits of IbsOpData3, which an outcome has at the same positions.
fn access(name: &str, outcome: u64) -> bool {
    let bit = |bit: u32| outcome >> bit & 1 != 0;
    match name {
        "misaligned" => bit(8),
        "aligned" => !bit(8),
        "write_combining" => bit(13),
        "uncached" => bit(14),
        _ => false,
    }
}

/// Uses the number of the data source.
fn ccx(name: &str, outcome: u64) -> bool {
    let source = precise_common::ibs::Outcome(outcome).source();
    matches!((name, source), ("same_ccx", 1) | ("other_ccx", 2) | ("other_node", 5))
}

/// Uses the bits of IbsFetchCtl, from bit 49 on.
fn fetch(name: &str, outcome: u64) -> bool {
    let bit = |bit: u32| outcome >> (bit - 49) & 1 != 0;
    match name {
        "completed" => bit(50),
        "aborted" => !bit(50),
        "ic_miss" => bit(51),
        "itlb_miss" => bit(55),
        "itlb_walk" => bit(55) && bit(56),
        "l2_miss" => bit(58),
        "oc_miss" => bit(60),
        "l3_miss" => bit(61),
        _ => false,
    }
}

fn remote(word: u64, options: Options) -> bool {
    let legacy = (word & bits::mask(bits::LVL)) >> bits::LVL.0;
    // If L3 or local RAM is set together with a remote level, the near one served the access, as in
    // `DataSource::decode`.
    let by_legacy = legacy & 0xc0 == 0 && legacy & 0xf00 != 0;
    word & bits::mask(bits::REMOTE) != 0 || (options.legacy_levels && !has_number(word) && by_legacy)
}

fn has_number(word: u64) -> bool {
    DataSource::decode(word & bits::mask(bits::LVL_NUM)).level != Level::Na
}

/// Returns the names of the levels in a word: usually one. There are several only for bits that no
/// driver sets together.
fn levels(word: u64, options: Options) -> Vec<&'static str> {
    let number = DataSource::decode(word & bits::mask(bits::LVL_NUM)).level;
    if number != Level::Na {
        return vec![level_name(number)];
    }
    if !options.legacy_levels {
        return vec!["na"];
    }
    let legacy = (word & bits::mask(bits::LVL)) >> bits::LVL.0;
    // Cache levels near the core, levels beyond it, and the two that are not memory. One of each
    // group counts.
    let decoded = |mask: u64| DataSource::decode((legacy & mask) << bits::LVL.0).level;
    let groups = [decoded(0x38), decoded(0xfc0), decoded(0x1000), decoded(0x2000)];
    let told: Vec<_> = groups.into_iter().filter(|level| *level != Level::Na).map(level_name).collect();
    if told.is_empty() { vec!["na"] } else { told }
}

fn level_name(level: Level) -> &'static str {
    match level {
        Level::Na => "na",
        Level::L1 => "l1",
        Level::Lfb => "lfb",
        Level::L2 => "l2",
        Level::L2Mhb => "mhb",
        Level::L3 => "l3",
        Level::L4 => "l4",
        Level::Msc => "msc",
        Level::AnyCache => "any_cache",
        Level::Ram => "ram",
        Level::Pmem => "pmem",
        Level::Cxl => "cxl",
        Level::Io => "io",
        Level::Uncached => "unc",
    }
}
