//! Rows as whole call chains, from the sampled function to the outermost caller, for call graphs
//! and flame graphs.

use precise_model::stack::Chain;
use precise_model::values::Value;
use precise_model::{Capture, CodeLocation, Name, Reason, Row};

/// A function in a call chain. Functions of the same name in two files are different functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChainFunction {
    /// The name of the function.
    pub name: Name,
    /// The module (file) of the function.
    pub module: Name,
    /// Whether the function is kernel code.
    pub kernel: bool,
    /// Whether the function was inlined into its caller.
    pub inlined: bool,
}

impl ChainFunction {
    /// Returns the name as a result shows it.
    pub fn value(self, capture: &Capture) -> Value {
        value(capture, self.name)
    }

    /// Returns the module as a result shows it.
    pub fn module_value(self, capture: &Capture) -> Value {
        value(capture, self.module)
    }

    /// Returns the same function without the mark of inlining.
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

/// The call chain of a row.
pub(crate) struct Frames {
    /// The functions from the sampled one outwards; inlined functions have frames of their own.
    /// Only the sampled function if there is no chain.
    pub functions: Vec<ChainFunction>,
    /// Why there is no chain; `None` if there is one.
    pub missing: Option<Reason>,
    /// See [`precise_model::stack::Stack::elsewhere`].
    pub elsewhere: bool,
    /// See [`precise_model::stack::Stack::cut`].
    pub cut: bool,
}

/// Returns the call chain of a row.
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
    // If the register does not hold a frame pointer, the kernel follows memory that is not a stack.
    // A hundred unknown frames tell no more than one.
    if matches!(function.name, Name::Known(_)) || functions.last() != Some(&function) {
        functions.push(function);
    }
    for (at, frame) in location.inlined_into.iter().enumerate() {
        let inlined = at + 1 < location.inlined_into.len();
        functions.push(ChainFunction { name: Name::Known(frame.function), module, kernel, inlined });
    }
}
