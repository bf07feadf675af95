//! Compiles an expression to the slots that the BPF program runs.
//!
//! An expression becomes a conjunction of disjunctions of atoms. Atoms of one disjunction with the
//! same operand are merged: `mem_lvl in {l1, l2}` is one compare. Each conjunct that the user wrote
//! has one ledger counter, however many clauses it needs.

use precise_common::config::{Config, FilterSlot, MAX_SLOTS};

use super::ast::Expr;
use super::atom::{Atom, Joined};
use super::error::CompileError;
use super::lower::{CompilerOptions, Expression, Lowering, OptionalFields, Resolver};

/// The limit on the clauses of one conjunct; the compiler gives up beyond it.
const MAX_WORK: usize = 128;
/// The limit on the steps of the search for a sample that passes. Beyond it, the compiler assumes
/// that there is one.
const MAX_STEPS: usize = 20_000;

/// A compiled filter, which the BPF program can run.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Compiled {
    /// The compares, at most [`MAX_SLOTS`]. [`FilterSlot::clause`] is an index into `clauses`; the
    /// clauses of one conjunct share it.
    pub slots: Vec<FilterSlot>,
    /// The conjuncts as text. They are the names of the ledger's counters of rejected samples.
    pub clauses: Vec<String>,
    /// The fields that the event must record for the slots.
    pub needs: OptionalFields,
    /// Warnings for the user: conjuncts that are always true.
    pub warnings: Vec<String>,
}

impl Compiled {
    /// Copies the filter to the configuration of the BPF program.
    pub fn install(&self, config: &mut Config) {
        config.slots = Config::EMPTY.slots;
        for (to, from) in config.slots.iter_mut().zip(&self.slots) {
            *to = *from;
        }
    }
}

/// The fields that an event can record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EventFields<'a> {
    /// The event or preset, as the user would write it.
    pub name: &'a str,
    /// The fields that its samples have.
    pub fields: OptionalFields,
}

/// Checks that `event` records every field that the expression tests.
///
/// # Errors
///
/// Returns an error for the first test of a field that `event` does not record. It names the first
/// of `others` that does.
pub fn check(expr: &Expr, event: &EventFields<'_>, others: &[EventFields<'_>]) -> Result<(), CompileError> {
    for test in expr.tests() {
        let needed = OptionalFields::of_term(test.term());
        if event.fields.have(needed) {
            continue;
        }
        let what = match needed {
            OptionalFields { address: true, .. } => "the data address",
            OptionalFields { latency: true, .. } => "the access latency",
            OptionalFields { phys_address: true, .. } => "the physical address",
            OptionalFields { page_size: true, .. } => "the page size",
            OptionalFields { branch: true, .. } => "the outcome of the branch",
            OptionalFields { fetch: true, .. } => "the outcome of the fetch",
            OptionalFields { access: true, .. } => "the registers of IBS ops (ibs_op)",
            OptionalFields { ccx: true, .. } => {
                "the core complex that served the access (IBS ops of Zen 4 and later)"
            }
            _ => "the data source",
        };
        let other = others.iter().find(|other| other.fields.have(needed)).map(|other| other.name.to_owned());
        return Err(CompileError::NotRecorded {
            test: test.to_string(),
            what,
            event: event.name.to_owned(),
            other,
        });
    }
    Ok(())
}

/// Compiles an expression.
pub fn compile(
    expr: &Expr,
    options: CompilerOptions,
    resolver: &dyn Resolver,
) -> Result<Compiled, CompileError> {
    let lowering = Lowering { options, resolver };
    let conjuncts = match expr.negations_inside() {
        Expr::All(parts) => parts,
        other => vec![other],
    };
    let mut compiled = Compiled::default();
    let mut all: Vec<(String, Vec<Clause>)> = Vec::new();
    let mut needed = 0;
    let mut slots = Vec::new();
    for conjunct in &conjuncts {
        let text = conjunct.to_string();
        let mut clauses = clauses(&lowering.expr(conjunct)?)?;
        without_implied(&mut clauses);
        if clauses.is_empty() {
            compiled.warnings.push(format!("`{text}` is always true, so it filters nothing"));
            continue;
        }
        if !satisfiable(&clauses) {
            return Err(CompileError::Never(format!("`{text}` is never true")));
        }
        // Clause numbers end with the ledger's counters. Beyond them there are too many slots as
        // well, and no filter.
        let number = all.len() as u32;
        for clause in &clauses {
            for compares in emit(clause) {
                needed += compares.len();
                let last = compares.len().saturating_sub(1);
                for (index, (operand, compare, low, high)) in compares.into_iter().enumerate() {
                    let ends_clause = u32::from(index == last);
                    slots.push(FilterSlot { operand, compare, low, high, clause: number, ends_clause });
                }
            }
        }
        all.push((text, clauses));
    }
    contradiction(&all)?;
    if needed > MAX_SLOTS {
        return Err(CompileError::TooComplex { needed, at_least: false, allowed: MAX_SLOTS });
    }
    compiled.needs = slots
        .iter()
        .fold(OptionalFields::default(), |all, slot| all.with(OptionalFields::of_operand(slot.operand)));
    compiled.slots = slots;
    compiled.clauses = all.into_iter().map(|(text, _)| text).collect();
    Ok(compiled)
}

/// A disjunction. No two of its atoms can be merged; none always holds, none never holds. If empty,
/// it never holds.
type Clause = Vec<Atom>;

/// Returns the clauses that must all hold for `node` to hold.
fn clauses(node: &Expression) -> Result<Vec<Clause>, CompileError> {
    match node {
        Expression::Atom(atom) if atom.is_always() => Ok(Vec::new()),
        Expression::Atom(atom) if atom.is_never() => Ok(vec![Vec::new()]),
        Expression::Atom(atom) => Ok(vec![vec![atom.clone()]]),
        Expression::All(parts) => {
            let mut all = Vec::new();
            for part in parts {
                for clause in clauses(part)? {
                    match &clause[..] {
                        [only] => and_alone(&mut all, only.clone()),
                        _ => all.push(clause),
                    }
                }
            }
            bounded(all)
        }
        Expression::Any(parts) => {
            let mut product: Vec<Clause> = vec![Vec::new()];
            for part in parts {
                let factor = clauses(part)?;
                let mut next = Vec::new();
                for left in &product {
                    for right in &factor {
                        next.extend(either(left, right));
                    }
                }
                without_implied(&mut next);
                product = bounded(next)?;
            }
            Ok(product)
        }
    }
}

fn bounded(clauses: Vec<Clause>) -> Result<Vec<Clause>, CompileError> {
    if clauses.len() > MAX_WORK {
        return Err(CompileError::TooComplex { needed: MAX_WORK, at_least: true, allowed: MAX_SLOTS });
    }
    Ok(clauses)
}

/// Adds a clause of one atom, merged with an existing one if possible.
fn and_alone(all: &mut Vec<Clause>, mut atom: Atom) {
    all.retain(|clause| match &clause[..] {
        [other] => match other.and(&atom) {
            Joined::One(both) => {
                atom = both;
                false
            }
            Joined::Two => true,
        },
        _ => true,
    });
    all.push(if atom.is_never() { Vec::new() } else { vec![atom] });
}

/// Returns `left` or `right` as one clause; `None` if that always holds.
fn either(left: &Clause, right: &Clause) -> Option<Clause> {
    let mut clause = left.clone();
    for atom in right {
        let mut atom = atom.clone();
        clause.retain(|other| match other.or(&atom) {
            Joined::One(both) => {
                atom = both;
                false
            }
            Joined::Two => true,
        });
        if atom.is_always() {
            return None;
        }
        clause.push(atom);
    }
    Some(clause)
}

/// Removes each clause that is implied by another one.
fn without_implied(clauses: &mut Vec<Clause>) {
    let implies = |a: &Clause, b: &Clause| {
        a.iter().all(|from| b.iter().any(|to| matches!(from.and(to), Joined::One(both) if both == *from)))
    };
    if clauses.len() > MAX_WORK {
        return;
    }
    let mut index = 0;
    while index < clauses.len() {
        let clause = &clauses[index];
        // Of two clauses that imply each other, the first stays.
        let implied = clauses.iter().enumerate().any(|(other, by)| {
            other != index && implies(by, clause) && (other < index || !implies(clause, by))
        });
        if implied {
            clauses.remove(index);
        } else {
            index += 1;
        }
    }
}

type Compares = Vec<(u32, u32, u64, u64)>;

/// Returns the compares of a clause. It becomes two clauses if a set of numbers needs fewer
/// compares.
fn emit(clause: &Clause) -> Vec<Compares> {
    let plain: Vec<Compares> = clause.iter().map(Atom::compares).collect();
    let total: usize = plain.iter().map(Vec::len).sum();
    let mut best = (total, None);
    for (index, atom) in clause.iter().enumerate() {
        let doubled = 2 + 2 * (total - plain[index].len());
        if doubled < best.0
            && let Some(set) = atom.as_set()
        {
            best = (doubled, Some((index, set)));
        }
    }
    match best.1 {
        None => vec![plain.concat()],
        Some((index, set)) => set
            .into_iter()
            .map(|compare| {
                let others = plain.iter().enumerate().filter(|(other, _)| *other != index);
                let mut compares = vec![compare];
                compares.extend(others.flat_map(|(_, compares)| compares.iter().copied()));
                compares
            })
            .collect(),
    }
}

/// Returns whether a sample can pass all clauses. Returns true if it cannot decide.
fn satisfiable(clauses: &[Clause]) -> bool {
    let mut order: Vec<&Clause> = clauses.iter().collect();
    order.sort_by_key(|clause| clause.len());
    let mut steps = MAX_STEPS;
    choose(&order, &[], &mut steps)
}

fn choose(clauses: &[&Clause], facts: &[Atom], steps: &mut usize) -> bool {
    let Some((first, rest)) = clauses.split_first() else { return true };
    for atom in first.iter() {
        if *steps == 0 {
            return true;
        }
        *steps -= 1;
        let mut fact = atom.clone();
        let mut kept = Vec::new();
        for known in facts {
            match known.and(&fact) {
                Joined::One(both) => fact = both,
                Joined::Two => kept.push(known.clone()),
            }
        }
        if fact.is_never() {
            continue;
        }
        kept.push(fact);
        if choose(rest, &kept, steps) {
            return true;
        }
    }
    false
}

/// Returns an error if the conjuncts cannot all hold. It names two of them if two are enough for
/// the contradiction.
fn contradiction(all: &[(String, Vec<Clause>)]) -> Result<(), CompileError> {
    let together: Vec<Clause> = all.iter().flat_map(|(_, clauses)| clauses.iter().cloned()).collect();
    if satisfiable(&together) {
        return Ok(());
    }
    for (index, (text, clauses)) in all.iter().enumerate() {
        for (earlier, others) in &all[..index] {
            if !satisfiable(&[others.as_slice(), clauses.as_slice()].concat()) {
                return Err(CompileError::Never(format!("`{earlier}` and `{text}` cannot both be true")));
            }
        }
    }
    let texts: Vec<_> = all.iter().map(|(text, _)| format!("`{text}`")).collect();
    Err(CompileError::Never(format!("{} cannot all be true at once", texts.join(", "))))
}
