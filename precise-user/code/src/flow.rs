//! The flow of control in one function: which instruction can come before which, and its loops.

use std::ops::ControlFlow;

use iced_x86::FlowControl;
use rustc_hash::FxHashMap;

use super::Instruction;

/// Who comes before whom, and what goes round.
#[derive(Debug, Default)]
pub(super) struct Flow {
    /// Instructions that can come right before each.
    pub before: Vec<Vec<usize>>,
    after: Vec<Vec<usize>>,
    /// The instructions of each loop, sorted; those of the loops within it too.
    loops: Vec<Vec<usize>>,
    /// The innermost loop of each instruction.
    innermost: Vec<Option<usize>>,
}

impl Flow {
    pub fn of(instructions: &[Instruction]) -> Self {
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
        flow.find_loops();
        flow
    }

    fn edge(&mut self, from: usize, to: usize) {
        self.after[from].push(to);
        self.before[to].push(from);
    }

    /// The innermost loop that an instruction is in: its instructions, sorted.
    pub fn innermost(&self, instruction: usize) -> Option<&[usize]> {
        let innermost = *self.innermost.get(instruction)?;
        innermost.and_then(|number| self.loops.get(number)).map(Vec::as_slice)
    }

    /// Loops are what is strongly connected; without the instructions that a loop is entered by,
    /// what is still strongly connected in it are the loops within (Bourdoncle, Efficient chaotic
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
                // Reached by a jump through a table only.
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

    /// The strongly connected sets within `part` that have a cycle (Tarjan's algorithm, without
    /// recursion: a function may have a hundred thousand instructions).
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
    /// In the order of the search, from 1; 0 when not visited yet.
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

    /// Looks at one edge of `i`: the next instruction to visit, if any; or `i` is done.
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

    /// Takes what is connected with `i` from the stack, if `i` was the first of it.
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
