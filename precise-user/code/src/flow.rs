//! The control flow of one function: which instruction can precede which, and its loops.

use std::ops::ControlFlow;

use iced_x86::FlowControl;
use rustc_hash::FxHashMap;

use super::Instruction;

/// The control flow graph of a function, with its loops.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// The instructions that can directly precede each instruction.
    pub before: Vec<Vec<usize>>,
    /// The instructions that can directly follow each instruction.
    pub after: Vec<Vec<usize>>,
    /// The instructions of each loop, sorted, including those of nested loops.
    loops: Vec<Vec<usize>>,
    /// The innermost loop of each instruction.
    innermost: Vec<Option<usize>>,
}

impl Flow {
    pub fn of(instructions: &[Instruction]) -> Self {
        let mut flow = Self::edges(instructions);
        flow.find_loops();
        flow
    }

    /// Returns the graph without its loops.
    pub fn edges(instructions: &[Instruction]) -> Self {
        let count = instructions.len();
        let places: FxHashMap<u64, usize> =
            instructions.iter().enumerate().map(|(i, instruction)| (instruction.address, i)).collect();
        let mut flow = Self {
            before: vec![Vec::new(); count],
            after: vec![Vec::new(); count],
            loops: Vec::new(),
            innermost: vec![None; count],
        };
        for (i, instruction) in instructions.iter().enumerate() {
            let control = instruction.decoded.flow_control();
            let goes_on = !matches!(
                control,
                FlowControl::UnconditionalBranch
                    | FlowControl::IndirectBranch
                    | FlowControl::Return
                    | FlowControl::Exception
            );
            if goes_on && i + 1 < count {
                flow.edge(i, i + 1);
            }
            if matches!(control, FlowControl::UnconditionalBranch | FlowControl::ConditionalBranch)
                && let Some(to) = places.get(&instruction.decoded.near_branch_target())
            {
                flow.edge(i, *to);
            }
        }
        flow
    }

    fn edge(&mut self, from: usize, to: usize) {
        self.after[from].push(to);
        self.before[to].push(from);
    }

    /// Returns the instructions of the innermost loop around an instruction, sorted; `None` if it
    /// is in no loop.
    pub fn innermost(&self, instruction: usize) -> Option<&[usize]> {
        let innermost = *self.innermost.get(instruction)?;
        innermost.and_then(|number| self.loops.get(number)).map(Vec::as_slice)
    }

    /// Finds the loops. A loop is a strongly connected component. Without its entry instructions,
    /// the components that remain inside it are the nested loops (Bourdoncle, Efficient chaotic
    /// iteration strategies with widenings, 1993).
    fn find_loops(&mut self) {
        let mut rest = vec![(0..self.before.len()).collect::<Vec<_>>()];
        while let Some(part) = rest.pop() {
            for mut members in self.connected(&part) {
                members.sort_unstable();
                let number = self.loops.len();
                let outside = |i: &usize| members.binary_search(i).is_err();
                let entered = |i: &&usize| **i == 0 || self.before[**i].iter().any(outside);
                let mut entries: Vec<usize> = members.iter().filter(entered).copied().collect();
                // The loop is reached only by a jump through a table.
                if entries.is_empty() {
                    entries.extend(members.first());
                }
                for i in &members {
                    self.innermost[*i] = Some(number);
                }
                rest.push(members.iter().filter(|i| !entries.contains(i)).copied().collect());
                self.loops.push(members);
            }
        }
    }

    /// Returns the strongly connected components within `part` that have a cycle (Tarjan's
    /// algorithm without recursion, because a function may have a hundred thousand instructions).
    fn connected(&self, part: &[usize]) -> Vec<Vec<usize>> {
        let mut search = Search {
            flow: self,
            number: part.iter().map(|i| (*i, Visit::default())).collect(),
            next: 1,
            stack: Vec::new(),
            found: Vec::new(),
        };
        for start in part {
            search.from(*start);
        }
        search.found
    }
}

#[derive(Clone, Copy, Default)]
struct Visit {
    /// The position in the order of the search, from 1; 0 if it is not visited yet.
    number: usize,
    /// The lowest number that can be reached.
    low: usize,
    on_stack: bool,
}

struct Search<'a> {
    flow: &'a Flow,
    number: FxHashMap<usize, Visit>,
    next: usize,
    stack: Vec<usize>,
    found: Vec<Vec<usize>>,
}

impl Search<'_> {
    fn visit(&self, i: usize) -> Visit {
        self.number.get(&i).copied().unwrap_or_default()
    }

    fn begin(&mut self, i: usize) {
        self.number.insert(i, Visit { number: self.next, low: self.next, on_stack: true });
        self.next += 1;
        self.stack.push(i);
    }

    fn lower(&mut self, i: usize, low: usize) {
        if let Some(visit) = self.number.get_mut(&i) {
            visit.low = visit.low.min(low);
        }
    }

    fn from(&mut self, start: usize) {
        if self.visit(start).number != 0 {
            return;
        }
        self.begin(start);
        let mut path = vec![(start, 0)];
        while let Some((i, edge)) = path.pop() {
            match self.step(i, edge) {
                ControlFlow::Continue(None) => path.push((i, edge + 1)),
                ControlFlow::Continue(Some(deeper)) => path.extend([(i, edge + 1), (deeper, 0)]),
                ControlFlow::Break(()) => {
                    let low = self.visit(i).low;
                    if let Some((parent, _)) = path.last() {
                        self.lower(*parent, low);
                    }
                }
            }
        }
    }

    /// Follows one edge of `i`. Returns the next instruction to visit, if there is one, or `Break`
    /// when `i` has no more edges.
    fn step(&mut self, i: usize, edge: usize) -> ControlFlow<(), Option<usize>> {
        let Some(&to) = self.flow.after[i].get(edge) else {
            self.close(i);
            return ControlFlow::Break(());
        };
        if !self.number.contains_key(&to) {
            return ControlFlow::Continue(None);
        }
        let visit = self.visit(to);
        if visit.number == 0 {
            self.begin(to);
            return ControlFlow::Continue(Some(to));
        }
        if visit.on_stack {
            self.lower(i, visit.number);
        }
        ControlFlow::Continue(None)
    }

    /// Takes the component of `i` from the stack, if `i` is its first instruction.
    fn close(&mut self, i: usize) {
        let visit = self.visit(i);
        if visit.low != visit.number {
            return;
        }
        let from = self.stack.iter().rposition(|other| *other == i).unwrap_or(self.stack.len());
        let members = self.stack.split_off(from);
        for member in &members {
            if let Some(visit) = self.number.get_mut(member) {
                visit.on_stack = false;
            }
        }
        if members.len() > 1 || self.flow.after[i].contains(&i) {
            self.found.push(members);
        }
    }
}
