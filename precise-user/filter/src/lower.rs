//! Lowers tests to atoms: the meaning of each term in bits and numbers.

use precise_common::config::{operand, watched};
use precise_common::data_src::MemoryLevel;

use super::ast::{Expr, Order, TermTest};
use super::atom::{Atom, Numbers};
use super::error::CompileError;
use super::term::{Meaning, NamedValue, Term, TermKind, numbers, window};

/// Options of the compiler.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompilerOptions {
    /// Whether the legacy bits of `mem_lvl` decide about `mem_lvl` and `mem_remote` when
    /// `mem_lvl_num` is not given. IBS needs it before Linux 6.2. It costs about two compares for
    /// each test of those two terms.
    pub legacy_levels: bool,
}

/// The cgroups that a cgroup path stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CgroupMatch {
    /// A cgroup of the v2 hierarchy with all cgroups below it.
    Subtree {
        /// The cgroup id: the inode number of its directory.
        id: u64,
        /// The level below the root, which is level 0.
        level: u32,
    },
    /// The cgroups that the run watches on these levels, with all cgroups below them. The run may
    /// watch more of them later.
    Watched {
        /// The first level below the root.
        first: u32,
        /// The last level below the root.
        last: u32,
    },
    /// Cgroups with these ids, as samples have them. For a v1 hierarchy, whose ancestors the kernel
    /// does not report: the cgroup and all that were below it when the run started.
    Ids(Vec<u64>),
}

/// Resolves names to the values that samples have.
pub trait Resolver {
    /// Resolves a cgroup path as the user wrote it. The error is the reason in words why it cannot
    /// be resolved.
    fn cgroup(&self, path: &str) -> Result<CgroupMatch, String>;
}

/// A resolver that cannot resolve any cgroup.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoCgroups;

impl Resolver for NoCgroups {
    fn cgroup(&self, _: &str) -> Result<CgroupMatch, String> {
        Err("cgroups cannot be resolved here".to_owned())
    }
}

/// The fields that a sample has only if the event was opened for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OptionalFields {
    /// Data address: `PERF_SAMPLE_ADDR`.
    pub address: bool,
    /// Access latency: `PERF_SAMPLE_WEIGHT` or `PERF_SAMPLE_WEIGHT_STRUCT`.
    pub latency: bool,
    /// Data source: `PERF_SAMPLE_DATA_SRC`.
    pub data_src: bool,
    /// Physical data address: `PERF_SAMPLE_PHYS_ADDR`.
    pub phys_address: bool,
    /// Size of the data's page: `PERF_SAMPLE_DATA_PAGE_SIZE`.
    pub page_size: bool,
    /// The outcome of the branch, from the hardware's registers.
    pub branch: bool,
    /// The outcome of the instruction fetch, from the hardware's registers.
    pub fetch: bool,
    /// Details of the access beyond the data source, from the op's registers. For slots: anything
    /// from the registers.
    pub access: bool,
    /// The core complex of the access, from the op's registers.
    pub ccx: bool,
}

impl OptionalFields {
    /// Returns the fields that a slot with this operand needs.
    pub fn of_operand(operand: u32) -> Self {
        Self {
            address: operand == operand::ADDRESS,
            latency: operand == operand::LATENCY,
            data_src: operand == operand::DATA_SRC,
            phys_address: operand == operand::PHYS_ADDRESS,
            page_size: operand == operand::PAGE_SIZE,
            access: operand == operand::OUTCOME,
            ..Self::default()
        }
    }

    /// Returns the fields that a test of this term needs.
    pub fn of_term(term: Term) -> Self {
        match (term.kind(), term) {
            (TermKind::Number { operand, .. }, _) => Self::of_operand(operand),
            (TermKind::Class(_), Term::Branch) => Self { branch: true, ..Self::default() },
            (TermKind::Class(_), Term::Fetch) => Self { fetch: true, ..Self::default() },
            (TermKind::Class(_), Term::Access) => Self { access: true, ..Self::default() },
            (TermKind::Class(_), Term::Ccx) => Self { ccx: true, ..Self::default() },
            (TermKind::Class(_), Term::Mode) | (TermKind::Text, _) => Self::default(),
            (TermKind::Class(_), _) => Self::of_operand(operand::DATA_SRC),
        }
    }

    /// Returns the union of the fields.
    pub fn with(self, other: Self) -> Self {
        Self {
            address: self.address || other.address,
            latency: self.latency || other.latency,
            data_src: self.data_src || other.data_src,
            phys_address: self.phys_address || other.phys_address,
            page_size: self.page_size || other.page_size,
            branch: self.branch || other.branch,
            fetch: self.fetch || other.fetch,
            access: self.access || other.access,
            ccx: self.ccx || other.ccx,
        }
    }

    /// Returns whether all fields of `needed` are present.
    pub fn have(self, needed: Self) -> bool {
        self.with(needed) == self
    }
}

/// An expression over atoms. An empty `All` always holds, an empty `Any` never holds.
#[derive(Clone, Debug)]
pub(super) enum Expression {
    All(Vec<Expression>),
    Any(Vec<Expression>),
    Atom(Atom),
}

impl Expression {
    fn opposite(self) -> Self {
        match self {
            Self::All(parts) => Self::Any(parts.into_iter().map(Self::opposite).collect()),
            Self::Any(parts) => Self::All(parts.into_iter().map(Self::opposite).collect()),
            Self::Atom(atom) => Self::Atom(atom.opposite()),
        }
    }
}

pub(super) struct Lowering<'a> {
    pub options: CompilerOptions,
    pub resolver: &'a dyn Resolver,
}

impl Lowering<'_> {
    pub fn expr(&self, expr: &Expr) -> Result<Expression, CompileError> {
        Ok(match expr {
            Expr::All(parts) => {
                Expression::All(parts.iter().map(|part| self.expr(part)).collect::<Result<_, _>>()?)
            }
            Expr::Any(parts) => {
                Expression::Any(parts.iter().map(|part| self.expr(part)).collect::<Result<_, _>>()?)
            }
            Expr::Not(inner) => self.expr(inner)?.opposite(),
            Expr::Test(test) => self.test(test)?,
        })
    }

    fn test(&self, test: &TermTest) -> Result<Expression, CompileError> {
        let (node, negated) = match test {
            TermTest::Bound(term, order, bound) => {
                let range = match order {
                    Order::Less => bound.checked_sub(1).map(|high| (0, high)),
                    Order::AtMost => Some((0, *bound)),
                    Order::Greater => bound.checked_add(1).map(|low| (low, u64::MAX)),
                    Order::AtLeast => Some((*bound, u64::MAX)),
                };
                (number(*term, range.into_iter().collect()), false)
            }
            TermTest::Number { term, negated, items } => {
                (number(*term, items.iter().map(|item| item.bounds()).collect()), *negated)
            }
            TermTest::Bits(term, mask) => (bits(*term, *mask), false),
            TermTest::Class { term: Term::Level, negated, values } => (self.level(values), *negated),
            TermTest::Class { negated, values, .. } => {
                (Expression::Any(values.iter().map(|value| self.class(value)).collect()), *negated)
            }
            TermTest::Text { term: Term::Comm, negated, values } => {
                (Expression::Any(values.iter().map(|name| comm(name)).collect()), *negated)
            }
            TermTest::Text { negated, values, .. } => {
                let cgroups = values.iter().map(|path| self.cgroup(path));
                (Expression::Any(cgroups.collect::<Result<_, _>>()?), *negated)
            }
        };
        Ok(if negated { node.opposite() } else { node })
    }

    fn class(&self, value: &NamedValue) -> Expression {
        match value.meaning {
            Meaning::Window { shift, set } => in_window(shift, set),
            Meaning::NoBit(mask) => {
                Expression::Atom(Atom::Bits { operand: operand::DATA_SRC, mask, negated: true })
            }
            Meaning::Level(_) => self.level(std::slice::from_ref(value)),
            Meaning::Remote(true) => self.remote(),
            Meaning::Remote(false) => self.remote().opposite(),
            Meaning::Outcome { all, none } => {
                let bits =
                    |mask, negated| Expression::Atom(Atom::Bits { operand: operand::OUTCOME, mask, negated });
                let each = (0..u64::BITS).map(|bit| 1 << bit).filter(|bit| all & bit != 0);
                let without = (none != 0).then(|| bits(none, true));
                Expression::All(each.map(|bit| bits(bit, false)).chain(without).collect())
            }
            Meaning::Kernel(kernel) => {
                let kernel = u64::from(kernel);
                let numbers = Numbers::new(vec![(kernel, kernel)], 1);
                Expression::Atom(Atom::Number { operand: operand::KERNEL, max: 1, numbers })
            }
        }
    }

    /// Returns a test for one of these levels. `mem_lvl_num` decides; if it is not given, the
    /// legacy bits decide, which are all that IBS fills before Linux 6.2.
    fn level(&self, values: &[NamedValue]) -> Expression {
        let wanted =
            |level| values.iter().any(|value| matches!(value.meaning, Meaning::Level(l) if l == level));
        let mut by_number = 0;
        for number in 0..16 {
            if wanted(level_of_number(number)) {
                by_number |= level_number(number);
            }
        }
        if !self.options.legacy_levels {
            return in_window(window::LEVEL_REMOTE, by_number);
        }
        // `na` means that neither the number nor a legacy bit is given.
        let by_number = by_number & !level_not_given();
        let near = [
            (MemoryLevel::L1, numbers(1, 0, 0)),
            (MemoryLevel::Lfb, numbers(2, 0, 1)),
            (MemoryLevel::L2, numbers(4, 0, 3)),
        ];
        let far = [
            (MemoryLevel::L3, numbers(1, 0, 0)),
            (MemoryLevel::Ram, numbers(2 | 4 | 8, 0, 1)),
            (MemoryLevel::AnyCache, numbers(16 | 32, 0, 15)),
        ];
        let set =
            |group: &[(MemoryLevel, u64)]| group.iter().filter(|g| wanted(g.0)).fold(0, |set, g| set | g.1);
        let odd = if wanted(MemoryLevel::Io) { 1 << 17 } else { 0 }
            | if wanted(MemoryLevel::Uncached) { 1 << 18 } else { 0 };
        let mut legacy = vec![
            in_window(window::LEGACY_NEAR, set(&near)),
            in_window(window::LEGACY_FAR, set(&far)),
            Expression::Atom(Atom::Bits { operand: operand::DATA_SRC, mask: odd, negated: false }),
        ];
        if wanted(MemoryLevel::Na) {
            legacy.push(Expression::Atom(Atom::Bits {
                operand: operand::DATA_SRC,
                mask: 0x7_ff00,
                negated: true,
            }));
        }
        Expression::Any(vec![
            in_window(window::LEVEL_REMOTE, by_number),
            Expression::All(vec![
                in_window(window::LEVEL_REMOTE, level_not_given()),
                Expression::Any(legacy),
            ]),
        ])
    }

    fn remote(&self) -> Expression {
        let flag = in_window(window::LEVEL_REMOTE, numbers(16, 0, 0));
        if !self.options.legacy_levels {
            return flag;
        }
        let legacy = in_window(window::LEGACY_FAR, numbers(4 | 8 | 16 | 32, 0, 1 | 2));
        Expression::Any(vec![
            flag,
            Expression::All(vec![in_window(window::LEVEL_REMOTE, level_not_given()), legacy]),
        ])
    }

    fn cgroup(&self, path: &str) -> Result<Expression, CompileError> {
        let found = self.resolver.cgroup(path);
        let found = found.map_err(|reason| CompileError::Cgroup { path: path.to_owned(), reason })?;
        Ok(Expression::Atom(match found {
            CgroupMatch::Subtree { id, level } => Atom::Same {
                operand: operand::CGROUP_SUBTREE,
                low: id,
                high: u64::from(level),
                negated: false,
            },
            // All patterns of a run share one set, so that two tests on the same levels are merged.
            CgroupMatch::Watched { first, last } => Atom::Same {
                operand: operand::CGROUP_WATCHED,
                low: 0,
                high: watched::levels(first, last),
                negated: false,
            },
            CgroupMatch::Ids(ids) => Atom::Number {
                operand: operand::CGROUP,
                max: u64::MAX,
                numbers: Numbers::new(ids.iter().map(|id| (*id, *id)).collect(), u64::MAX),
            },
        }))
    }
}

fn in_window(shift: u32, set: u64) -> Expression {
    Expression::Atom(Atom::Window { shift, set })
}

fn number(term: Term, ranges: Vec<(u64, u64)>) -> Expression {
    let TermKind::Number { operand, max } = term.kind() else { return Expression::Any(Vec::new()) };
    let numbers = Numbers::new(ranges, max);
    if term == Term::Hops {
        let holds = |hops| numbers.ranges().iter().any(|(low, high)| *low <= hops && hops <= *high);
        return hops(holds);
    }
    Expression::Atom(Atom::Number { operand, max, numbers })
}

fn bits(term: Term, mask: u64) -> Expression {
    let TermKind::Number { operand, max } = term.kind() else { return Expression::Any(Vec::new()) };
    if term == Term::Hops {
        return hops(|hops| hops & mask != 0);
    }
    Expression::Atom(Atom::Bits { operand, mask: mask & max, negated: false })
}

/// `mem_hops` has three bits; the bits above them in the window do not matter.
fn hops(holds: impl Fn(u64) -> bool) -> Expression {
    let set = (0..64).filter(|n| holds(n & 7)).fold(0, |set, n| set | 1 << n);
    in_window(window::HOPS, set)
}

fn comm(name: &str) -> Expression {
    let mut bytes = [0; 16];
    for (to, from) in bytes.iter_mut().zip(name.bytes()) {
        *to = from;
    }
    let both = u128::from_le_bytes(bytes);
    Expression::Atom(Atom::Same {
        operand: operand::COMM,
        low: both as u64,
        high: (both >> 64) as u64,
        negated: false,
    })
}

/// Returns the numbers of the window whose lower four bits are `mem_lvl_num == number`.
fn level_number(number: u32) -> u64 {
    (1 | 1 << 16 | 1 << 32 | 1 << 48) << number
}

/// Returns the numbers of the window whose `mem_lvl_num` is not given: 0 on older kernels; 7 is not
/// assigned.
fn level_not_given() -> u64 {
    level_number(0) | level_number(7) | level_number(15)
}

fn level_of_number(number: u32) -> MemoryLevel {
    precise_common::data_src::DataSource::decode(u64::from(number) << 33).level
}
