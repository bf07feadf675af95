//! The filter flags of the command line: each flag is a conjunct like those of `--filter`.

use super::ast::{Expr, NumberItem, Order, TermTest};
use super::error::ParseError;
use super::parse;
use super::term::Term;

/// The mode in which the sampled code ran.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the kernel.
    Kernel,
    /// In user space.
    User,
}

/// The values of the filter flags. An empty list or `None` does not restrict anything; several
/// values of one flag are alternatives.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FilterFlags {
    /// Only kernel or only user code.
    pub mode: Option<Mode>,
    /// The smallest access latency, in core cycles.
    pub latency_min: Option<u32>,
    /// The largest access latency, in core cycles.
    pub latency_max: Option<u32>,
    /// Process ids.
    pub pids: Vec<u32>,
    /// Thread ids.
    pub tids: Vec<u32>,
    /// User ids.
    pub uids: Vec<u32>,
    /// Ranges of data addresses in the format of [`parse::range`].
    pub data_addresses: Vec<NumberItem>,
    /// Ranges of instruction addresses in the format of [`parse::range`].
    pub code_addresses: Vec<NumberItem>,
    /// Process names of at most 15 bytes, as checked by [`check_comm`](super::check_comm).
    pub comms: Vec<String>,
    /// Cgroups, each including all cgroups below it.
    pub cgroups: Vec<String>,
    /// The `--filter` expression.
    pub filter: Option<Expr>,
}

impl FilterFlags {
    /// Adds the expression of `--filter`.
    pub fn with_filter(mut self, text: &str) -> Result<Self, ParseError> {
        self.filter = Some(parse::parse(text)?);
        Ok(self)
    }

    /// Returns all flags as one expression, with the cheapest tests first; `None` if no flag is
    /// given.
    pub fn expr(&self) -> Option<Expr> {
        let mode = self.mode.map(|mode| match mode {
            Mode::Kernel => "kernel",
            Mode::User => "user",
        });
        let mode = mode.and_then(|name| Term::Mode.class(name)).map(|value| {
            Expr::Test(TermTest::Class { term: Term::Mode, negated: false, values: vec![value] })
        });
        let flags = [
            mode,
            self.latency(),
            numbers(Term::Address, self.data_addresses.iter().copied()),
            numbers(Term::Ip, self.code_addresses.iter().copied()),
            numbers(Term::Pid, self.pids.iter().map(|id| NumberItem::One(u64::from(*id)))),
            numbers(Term::Tid, self.tids.iter().map(|id| NumberItem::One(u64::from(*id)))),
            numbers(Term::Uid, self.uids.iter().map(|id| NumberItem::One(u64::from(*id)))),
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
            (Some(min), Some(max)) if min < max => numbers(Term::Latency, [NumberItem::Range(min, max + 1)]),
            (Some(min), Some(max)) if min == max => numbers(Term::Latency, [NumberItem::One(min)]),
            // Left as two bounds, so that the compiler reports that they exclude each other.
            _ => Expr::all(
                [min.map(|min| (Order::AtLeast, min)), max.map(|max| (Order::AtMost, max))]
                    .into_iter()
                    .flatten()
                    .map(|(order, bound)| Expr::Test(TermTest::Bound(Term::Latency, order, bound))),
            ),
        }
    }
}

fn numbers(term: Term, items: impl IntoIterator<Item = NumberItem>) -> Option<Expr> {
    let items: Vec<_> = items.into_iter().collect();
    (!items.is_empty()).then_some(Expr::Test(TermTest::Number { term, negated: false, items }))
}

fn texts(term: Term, values: &[String]) -> Option<Expr> {
    let test = || Expr::Test(TermTest::Text { term, negated: false, values: values.to_vec() });
    (!values.is_empty()).then(test)
}
