//! The command line's shorthands for filters: each flag is a conjunct like those of `--filter`.

use super::ast::{Expr, Item, Order, Test};
use super::error::ParseError;
use super::parse;
use super::term::Term;

/// Where the sampled code ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the kernel.
    Kernel,
    /// In user space.
    User,
}

/// What flags ask for. An empty list or `None` asks for nothing; several values of one flag are
/// alternatives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Flags {
    /// Kernel or user code only.
    pub mode: Option<Mode>,
    /// Smallest access latency, core cycles.
    pub latency_min: Option<u32>,
    /// Largest access latency, core cycles.
    pub latency_max: Option<u32>,
    /// Processes.
    pub pids: Vec<u32>,
    /// Threads.
    pub tids: Vec<u32>,
    /// User ids.
    pub uids: Vec<u32>,
    /// Ranges of data addresses; see [`parse::range`].
    pub data_addresses: Vec<Item>,
    /// Ranges of instruction addresses; see [`parse::range`].
    pub code_addresses: Vec<Item>,
    /// Process names of at most 15 bytes; see [`check_comm`](super::check_comm).
    pub comms: Vec<String>,
    /// Cgroups, each with all below it.
    pub cgroups: Vec<String>,
    /// The `--filter` expression.
    pub filter: Option<Expr>,
}

impl Flags {
    /// With the expression of `--filter`.
    pub fn with_filter(mut self, text: &str) -> Result<Self, ParseError> {
        self.filter = Some(parse::parse(text)?);
        Ok(self)
    }

    /// All flags in one expression, what is cheap to test first; `None` when none is given.
    pub fn expr(&self) -> Option<Expr> {
        let mode = self.mode.map(|mode| match mode {
            Mode::Kernel => "kernel",
            Mode::User => "user",
        });
        let mode = mode
            .and_then(|name| Term::Mode.class(name))
            .map(|value| Expr::Test(Test::Class { term: Term::Mode, negated: false, values: vec![value] }));
        let flags = [
            mode,
            self.latency(),
            numbers(Term::Address, self.data_addresses.iter().copied()),
            numbers(Term::Ip, self.code_addresses.iter().copied()),
            numbers(Term::Pid, self.pids.iter().map(|id| Item::One(u64::from(*id)))),
            numbers(Term::Tid, self.tids.iter().map(|id| Item::One(u64::from(*id)))),
            numbers(Term::Uid, self.uids.iter().map(|id| Item::One(u64::from(*id)))),
            texts(Term::Comm, &self.comms),
            texts(Term::Cgroup, &self.cgroups),
            self.filter.clone(),
        ];
        Expr::all(flags.into_iter().flatten())
    }

    fn latency(&self) -> Option<Expr> {
        let min = self.latency_min.map(u64::from);
        let max = self.latency_max.map(u64::from);
        match (min, max) {
            (Some(min), Some(max)) if min < max => numbers(Term::Latency, [Item::Range(min, max + 1)]),
            (Some(min), Some(max)) if min == max => numbers(Term::Latency, [Item::One(min)]),
            // Without an order between the two, the compiler says that they exclude each other.
            _ => Expr::all(
                [min.map(|min| (Order::AtLeast, min)), max.map(|max| (Order::AtMost, max))]
                    .into_iter()
                    .flatten()
                    .map(|(order, bound)| Expr::Test(Test::Bound(Term::Latency, order, bound))),
            ),
        }
    }
}

fn numbers(term: Term, items: impl IntoIterator<Item = Item>) -> Option<Expr> {
    let items: Vec<_> = items.into_iter().collect();
    (!items.is_empty()).then_some(Expr::Test(Test::Number { term, negated: false, items }))
}

fn texts(term: Term, values: &[String]) -> Option<Expr> {
    let test = || Expr::Test(Test::Text { term, negated: false, values: values.to_vec() });
    (!values.is_empty()).then(test)
}
