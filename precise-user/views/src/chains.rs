//! Rows as whole call chains, from the sampled function to the outermost caller: what call graphs
//! and flame graphs are made of.

use precise_model::stack::Chain;
use precise_model::values::Value;
use precise_model::{Capture, CodeLocation, Name, Reason, Row};

/// A function in a chain. The same name in two files is two functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChainFunction {
    /// Its name.
    pub name: Name,
    /// Its file.
    pub module: Name,
    /// Whether it is kernel code.
    pub kernel: bool,
    /// Whether it stands inside of its caller's code.
    pub inlined: bool,
}

impl ChainFunction {
    /// Its name as a result shows it.
    pub fn value(self, capture: &Capture) -> Value {
        value(capture, self.name)
    }

    /// Its file as a result shows it.
    pub fn module_value(self, capture: &Capture) -> Value {
        value(capture, self.module)
    }

    /// The same function, whether or not it was inlined there.
    pub fn itself(self) -> Self {
        Self { inlined: false, ..self }
    }
}

fn value(capture: &Capture, name: Name) -> Value {
    match name {
        Name::Known(id) => Value::Text(capture.names.get(id).to_owned()),
        Name::Unknown(reason) => Value::Unknown(reason),
    }
}

/// What a row's chain is.
pub(crate) struct Frames {
    /// From the sampled function outwards; inlined functions are frames of their own. The sampled
    /// one alone where there is no chain.
    pub functions: Vec<ChainFunction>,
    /// Why there is no chain.
    pub missing: Option<Reason>,
    /// See [`precise_model::stack::Stack::elsewhere`].
    pub elsewhere: bool,
    /// See [`precise_model::stack::Stack::cut`].
    pub cut: bool,
}

/// The chain of a row.
pub(crate) fn frames(capture: &Capture, row: &Row) -> Frames {
    let mut functions = Vec::new();
    let location = |id: u32| capture.code.get(id as usize);
    push(&mut functions, row.code.and_then(location));
    let (missing, stack) = match row.stack {
        Chain::Known(id) => (None, capture.stacks.get(id as usize)),
        Chain::Unknown(reason) => (Some(reason), None),
    };
    for caller in stack.into_iter().flat_map(|stack| &stack.callers) {
        push(&mut functions, location(*caller));
    }
    let flag = |get: fn(&precise_model::stack::Stack) -> bool| stack.is_some_and(get);
    Frames { functions, missing, elsewhere: flag(|stack| stack.elsewhere), cut: flag(|stack| stack.cut) }
}

fn push(functions: &mut Vec<ChainFunction>, location: Option<&CodeLocation>) {
    let Some(location) = location else { return };
    let CodeLocation { module, kernel, .. } = *location;
    let inside = !location.inlined_into.is_empty();
    let function = ChainFunction { name: location.function, module, kernel, inlined: inside };
    // A register that holds no frame pointer sends the kernel through memory that is no stack: a
    // hundred frames of nothing say no more than one.
    if matches!(function.name, Name::Known(_)) || functions.last() != Some(&function) {
        functions.push(function);
    }
    for (at, frame) in location.inlined_into.iter().enumerate() {
        let inlined = at + 1 < location.inlined_into.len();
        functions.push(ChainFunction { name: Name::Known(frame.function), module, kernel, inlined });
    }
}
