//! The rows that pass a filter.

use std::cell::{Cell, RefCell};

use precise_common::latency::{BUCKETS, lower};
use precise_filter::eval::{SampleFacts, expr_passes};
use precise_filter::pattern::Pattern;
use precise_filter::{CgroupMatch, CompilerOptions, Expr, Resolver, Term, TermTest};
use precise_model::{Capture, Dimension, Name, NameId, Projection, Row};
use rustc_hash::FxHashMap;

use crate::needs;
use crate::view::NoAnswer;

/// The largest number of values of a row for which a test of bits is evaluated one by one.
const MOST_VALUES: u64 = 4096;

/// Keeps the rows that pass the filter. Returns the number of samples that are left out because a
/// name is not known.
pub(super) fn keep(capture: &mut Capture, expr: &Expr) -> Result<u64, NoAnswer> {
    recorded(capture, expr)?;
    let rows = std::mem::take(&mut capture.rows);
    let filter = Filter { capture, cgroups: Cgroups::new(capture, expr)? };
    let (mut kept, mut nameless) = (Vec::new(), 0u64);
    for row in rows {
        match filter.truth(expr, &row)? {
            Truth::Yes => kept.push(row),
            Truth::No => {}
            Truth::Unknown(Doubt::Nameless) => nameless = nameless.saturating_add(row.measures.count),
            Truth::Unknown(Doubt::Cut { text, advice }) => {
                return Err(NoAnswer { advice: Some(advice), ..NoAnswer::usage(text) });
            }
        }
    }
    capture.rows = kept;
    Ok(nameless)
}

/// Returns the parts of rows that a filter tests.
pub(super) fn reads(expr: &Expr) -> Projection {
    let dimensions = super::tests(expr).into_iter().filter_map(|test| dimension(term(test)));
    dimensions.fold(Projection::NOTHING, |all, dimension| all.and(Projection::of_dimension(dimension)))
}

/// Returns the term of a test.
fn term(test: &TermTest) -> Term {
    match test {
        TermTest::Bound(term, ..) | TermTest::Bits(term, _) => *term,
        TermTest::Number { term, .. } | TermTest::Class { term, .. } | TermTest::Text { term, .. } => *term,
    }
}

/// Checks that the capture has what the filter tests.
fn recorded(capture: &Capture, expr: &Expr) -> Result<(), NoAnswer> {
    for test in super::tests(expr) {
        let term = term(test);
        let name = term.name();
        let Some(dimension) = dimension(term) else {
            return Err(NoAnswer::usage(format!(
                "the filter tests {name}, which captures do not keep; only a live run can filter by it"
            )));
        };
        if term == Term::Latency {
            let without = |row: &Row| {
                capture.meta.events.get(usize::from(row.event)).filter(|event| !event.fields.latency)
            };
            if let Some(event) = capture.rows.iter().find_map(without) {
                return Err(NoAnswer::usage(format!(
                    "the filter tests {name}, which samples of {} do not have",
                    event.name
                )));
            }
        } else if !capture.meta.dimensions.contains(&dimension) {
            let refused =
                NoAnswer::usage(format!("the filter tests {name}, which this capture did not record"));
            return Err(match needs::again(capture, dimension) {
                Some(again) => refused.advise(&again.to_string()),
                None => refused,
            });
        }
        if term == Term::Address && capture.meta.promoted_lines.is_some() {
            return Err(NoAnswer::usage(
                "the filter tests addr, but this capture kept the addresses of some cache lines only (c2c)"
                    .to_owned(),
            ));
        }
    }
    Ok(())
}

/// Returns the dimension that keeps a term; `None` if rows never have it.
fn dimension(term: Term) -> Option<Dimension> {
    Some(match term {
        Term::Ip | Term::Mode => Dimension::Ip,
        Term::Address => Dimension::Address,
        Term::Latency => Dimension::Latency,
        Term::Op | Term::Level | Term::Snoop | Term::Tlb | Term::Remote | Term::Lock => Dimension::Source,
        Term::Hops | Term::Block => Dimension::Source,
        Term::Branch | Term::Fetch => Dimension::Outcome,
        Term::PageSize => Dimension::PageSize,
        Term::Pid | Term::Comm => Dimension::Process,
        Term::Tid => Dimension::Thread,
        Term::Cpu => Dimension::Cpu,
        Term::Cgroup => Dimension::Cgroup,
        Term::PhysAddress | Term::Access | Term::Ccx | Term::Uid | Term::Gid => return None,
    })
}

/// Whether the samples of a row pass.
enum Truth {
    /// All of them pass.
    Yes,
    /// None of them passes.
    No,
    /// The row does not tell.
    Unknown(Doubt),
}

/// The reason why a row does not tell whether its samples pass.
enum Doubt {
    /// The tested name is not known.
    Nameless,
    /// The bound of the test is between values of the row.
    Cut {
        /// A sentence with the test and the values.
        text: String,
        /// The bounds that work.
        advice: String,
    },
}

struct Filter<'a> {
    capture: &'a Capture,
    cgroups: Cgroups<'a>,
}

impl Filter<'_> {
    /// Evaluates an expression with three values: a part that decides makes the other parts
    /// irrelevant, also those that are not known.
    fn truth(&self, expr: &Expr, row: &Row) -> Result<Truth, NoAnswer> {
        let parts = |parts: &[Expr], decided: bool| {
            let mut doubt = None;
            for part in parts {
                match (self.truth(part, row)?, decided) {
                    (Truth::Yes, true) => return Ok(Truth::Yes),
                    (Truth::No, false) => return Ok(Truth::No),
                    (Truth::Unknown(why), _) => doubt = doubt.or(Some(why)),
                    _ => {}
                }
            }
            Ok(match (doubt, decided) {
                (Some(why), _) => Truth::Unknown(why),
                (None, true) => Truth::No,
                (None, false) => Truth::Yes,
            })
        };
        match expr {
            Expr::All(all) => parts(all, false),
            Expr::Any(any) => parts(any, true),
            Expr::Not(inner) => Ok(match self.truth(inner, row)? {
                Truth::Yes => Truth::No,
                Truth::No => Truth::Yes,
                unknown => unknown,
            }),
            Expr::Test(test) => self.test(expr, test, row),
        }
    }

    fn test(&self, expr: &Expr, test: &TermTest, row: &Row) -> Result<Truth, NoAnswer> {
        let code = row.code.and_then(|id| self.capture.code.get(id as usize));
        let mut facts = self.facts(row);
        match term(test) {
            Term::Comm if !matches!(row.process, Name::Known(_)) => {
                return Ok(Truth::Unknown(Doubt::Nameless));
            }
            Term::Cgroup => match row.cgroup {
                Name::Known(id) => self.cgroups.path.set(id),
                Name::Unknown(_) => return Ok(Truth::Unknown(Doubt::Nameless)),
            },
            Term::Ip if code.is_none_or(|code| code.runtime_address == 0) => {
                return Ok(Truth::Unknown(Doubt::Nameless));
            }
            Term::Cpu if row.cpu.is_none() => return Ok(Truth::Unknown(Doubt::Nameless)),
            Term::Latency => {
                let (low, high) = latencies(row, self.capture);
                return self.values(expr, test, row, (u64::from(low), u64::from(high)), |facts, value| {
                    facts.latency = u32::try_from(value).unwrap_or(u32::MAX);
                });
            }
            Term::Address => {
                let address = row.data.and_then(|id| self.capture.data.get(id as usize));
                let low = address.map_or(0, |data| data.runtime_address);
                let more = if address.is_some() { self.capture.meta.address_granule.max(1) - 1 } else { 0 };
                let values = (low, low.saturating_add(more));
                return self.values(expr, test, row, values, |facts, value| facts.address = value);
            }
            // Whether it is kernel code is known also if the address is hidden.
            Term::Mode => facts.ip = u64::from(row.kernel) << 63,
            _ => {}
        }
        self.passes(expr, &facts)
    }

    fn passes(&self, expr: &Expr, facts: &SampleFacts) -> Result<Truth, NoAnswer> {
        // IBS fills only the legacy bits of the data source before Linux 6.2.
        let options = CompilerOptions { legacy_levels: true };
        let passes = expr_passes(expr, facts, options, &self.cgroups).map_err(NoAnswer::usage)?;
        Ok(if passes { Truth::Yes } else { Truth::No })
    }

    /// Evaluates a test of a number of which the row knows only the first and the last value.
    fn values(
        &self,
        expr: &Expr,
        test: &TermTest,
        row: &Row,
        (low, high): (u64, u64),
        set: impl Fn(&mut SampleFacts, u64),
    ) -> Result<Truth, NoAnswer> {
        let mut facts = self.facts(row);
        let (mut yes, mut no) = (false, false);
        for value in points(test, low, high) {
            set(&mut facts, value);
            match self.passes(expr, &facts)? {
                Truth::Yes => yes = true,
                _ => no = true,
            }
        }
        Ok(match (yes, no) {
            (true, false) => Truth::Yes,
            (false, true) => Truth::No,
            _ => Truth::Unknown(cut(expr, test, low, high)),
        })
    }

    /// Returns what a row knows of each of its samples.
    fn facts(&self, row: &Row) -> SampleFacts {
        let names = &self.capture.names;
        let code = row.code.and_then(|id| self.capture.code.get(id as usize));
        let mut comm = [0; 16];
        if let Name::Known(name) = row.process {
            for (to, from) in comm.iter_mut().zip(names.get(name).bytes().take(15)) {
                *to = from;
            }
        }
        SampleFacts {
            ip: code.map_or(0, |code| code.runtime_address),
            data_src: row.data_src,
            outcome: row.outcome.map_or(0, precise_model::Outcome::bits),
            pid: row.pid,
            tid: row.tid,
            cpu: row.cpu.map_or(0, u32::from),
            cgroup: match row.cgroup {
                Name::Known(id) => u64::from(id.0),
                Name::Unknown(_) => u64::MAX,
            },
            comm,
            page_size: row.page_size.unwrap_or(0),
            ..SampleFacts::default()
        }
    }
}

/// Returns values from `low` to `high` that between them have all results of the test: it changes
/// only at its own bounds.
fn points(test: &TermTest, low: u64, high: u64) -> Vec<u64> {
    let near = |value: u64| [value.saturating_sub(1), value, value.saturating_add(1)];
    let mut points = vec![low, high];
    match test {
        TermTest::Bound(_, _, bound) => points.extend(near(*bound)),
        TermTest::Number { items, .. } => {
            for item in items {
                let (first, last) = item.bounds();
                points.extend(near(first).into_iter().chain(near(last)));
            }
        }
        // The mask may look at any bit of the values.
        _ => points.extend((low..=high).take(MOST_VALUES as usize)),
    }
    points.retain(|value| (low..=high).contains(value));
    points
}

/// Returns the smallest and the largest latency that a sample of the row can have: by its bucket,
/// and by sum, maximum and number of its latencies.
fn latencies(row: &Row, capture: &Capture) -> (u32, u32) {
    let measures = &row.measures;
    let (first, last) = match row.latency_bucket {
        Some(bucket) if u32::from(bucket) < BUCKETS => {
            (lower(u32::from(bucket)), lower(u32::from(bucket) + 1) - 1)
        }
        // The samples have no latency.
        None if capture.meta.dimensions.contains(&Dimension::Latency) => (0, 0),
        _ => (0, u64::from(u32::MAX)),
    };
    let most = last.min(u64::from(measures.latency_max)).max(first);
    // If all others had the largest latency, one sample would have the rest of the sum.
    let others = measures.count.saturating_sub(1).saturating_mul(most);
    let least = first.max(measures.latency_sum.saturating_sub(others)).min(most);
    let narrow = |value| u32::try_from(value).unwrap_or(u32::MAX);
    (narrow(least), narrow(most))
}

fn cut(expr: &Expr, test: &TermTest, low: u64, high: u64) -> Doubt {
    let (what, advice) = match term(test) {
        Term::Latency => {
            let bucket =
                |cycles: u64| precise_common::latency::bucket(u32::try_from(cycles).unwrap_or(u32::MAX));
            let (below, above) = (lower(bucket(low)), lower(bucket(high) + 1));
            (
                format!("samples of {low} to {high} cycles"),
                format!("A bucket of latencies ends at each of these bounds: {below}, {above}."),
            )
        }
        _ => (
            format!("addresses from {low:#x} to {high:#x}"),
            "Use bounds that are multiples of the capture's granule, or record or import with a smaller --granule."
                .into(),
        ),
    };
    Doubt::Cut {
        text: format!("the capture adds up {what}, so it cannot tell which of them pass `{expr}`"),
        advice,
    }
}

/// The cgroups that the filter names, by the paths of the capture. The id of a cgroup is here the
/// number of its path, so that a cgroup that was created again is still the same.
struct Cgroups<'a> {
    capture: &'a Capture,
    patterns: FxHashMap<String, Pattern>,
    /// The path of the row in question.
    path: Cell<NameId>,
    known: RefCell<FxHashMap<(String, NameId), bool>>,
}

impl<'a> Cgroups<'a> {
    fn new(capture: &'a Capture, expr: &Expr) -> Result<Self, NoAnswer> {
        let mut patterns = FxHashMap::default();
        for test in super::tests(expr) {
            let TermTest::Text { term: Term::Cgroup, values, .. } = test else { continue };
            for value in values {
                let pattern = Pattern::parse(value)
                    .map_err(|why| NoAnswer::usage(format!("{value} does not name a cgroup: {why}")))?;
                patterns.insert(value.clone(), pattern);
            }
        }
        Ok(Self { capture, patterns, path: Cell::default(), known: RefCell::default() })
    }

    /// Returns whether the pattern matches the cgroup or a cgroup that contains it.
    fn holds(&self, value: &str, path: &str) -> bool {
        let Some(pattern) = self.patterns.get(value) else { return false };
        let inside = value.strip_prefix("/sys/fs/cgroup").unwrap_or(value);
        let written = format!("/{}", inside.trim_matches('/'));
        let mut at = path;
        loop {
            let here = if at.is_empty() { "/" } else { at };
            if pattern.holds(here, &written, || self.capture.meta.owner(here)) {
                return true;
            }
            match at.rsplit_once('/') {
                Some((above, _)) if !at.is_empty() => at = above,
                _ => return false,
            }
        }
    }
}

impl Resolver for Cgroups<'_> {
    fn cgroup(&self, value: &str) -> Result<CgroupMatch, String> {
        let id = self.path.get();
        let key = (value.to_owned(), id);
        let known = self.known.borrow().get(&key).copied();
        let holds = known.unwrap_or_else(|| self.holds(value, self.capture.names.get(id)));
        self.known.borrow_mut().insert(key, holds);
        Ok(CgroupMatch::Ids(if holds { vec![u64::from(id.0)] } else { Vec::new() }))
    }
}
