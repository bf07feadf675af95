//! Call chains of rows, from the sampled function to the outermost caller. Call graphs and flame
//! graphs are made of them.

use precise_model::values::Value;
use precise_model::{Capture, Chain, ChainEnd, CodeLocation, LocationId, Name, Reason};

/// A function in a chain. Functions of the same name in two files are different functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ChainFunction {
    /// Name of the function.
    pub name: Name,
    /// File of the function.
    pub module: Name,
    /// Whether the function is kernel code.
    pub kernel: bool,
    /// Whether the function is inlined into its caller.
    pub inlined: bool,
}

impl ChainFunction {
    /// Returns the function's name as results show it.
    pub fn value(self, capture: &Capture) -> Value {
        value(capture, self.name)
    }

    /// Returns the function's file as results show it.
    pub fn module_value(self, capture: &Capture) -> Value {
        value(capture, self.module)
    }

    /// Returns the function without the mark that it was inlined, so that both forms compare equal.
    pub fn itself(self) -> Self {
        Self { inlined: false, ..self }
    }
}

/// Returns a name as results show it.
pub(crate) fn value(capture: &Capture, name: Name) -> Value {
    match name {
        Name::Known(id) => Value::Text(capture.names.get(id).to_owned()),
        Name::Unknown(reason) => Value::Unknown(reason),
    }
}

/// The call chain of a row.
pub(crate) struct RowFrames {
    /// Functions from the sampled one outwards; inlined functions are frames of their own. Without
    /// a chain, only the sampled function.
    pub functions: Vec<ChainFunction>,
    /// Why there is no chain; `None` if there is one.
    pub missing: Option<Reason>,
    /// Whether the interrupt arrived in another function; see
    /// [`precise_model::Stack::elsewhere`].
    pub elsewhere: bool,
    /// Whether the outermost callers are missing; see [`precise_model::Stack::cut`].
    pub cut: bool,
    /// Why the outermost function has no caller; `None` if there is no chain, or that is not known.
    pub end: Option<ChainEnd>,
}

/// Returns the call chain of rows with this sampled instruction and these callers.
pub(crate) fn frames(capture: &Capture, code: Option<LocationId>, stack: Chain) -> RowFrames {
    let mut functions = Vec::new();
    let location = |id: u32| capture.code.get(id as usize);
    push(&mut functions, code.and_then(location));
    let (missing, stack) = match stack {
        Chain::Known(id) => (None, capture.stacks.get(id as usize)),
        Chain::Unknown(reason) => (Some(reason), None),
    };
    for caller in stack.into_iter().flat_map(|stack| &stack.callers) {
        push(&mut functions, location(*caller));
    }
    let flag = |get: fn(&precise_model::Stack) -> bool| stack.is_some_and(get);
    let (elsewhere, cut) = (flag(|stack| stack.elsewhere), flag(|stack| stack.cut));
    RowFrames { functions, missing, elsewhere, cut, end: stack.and_then(|stack| stack.end) }
}

fn push(functions: &mut Vec<ChainFunction>, location: Option<&CodeLocation>) {
    let Some(location) = location else { return };
    let CodeLocation { module, kernel, .. } = *location;
    let inside = !location.inlined_into.is_empty();
    let function = ChainFunction { name: location.function, module, kernel, inlined: inside };
    // If the frame pointer register holds something else, the kernel follows it through memory that
    // is not a stack. A hundred unknown frames say no more than one.
    if matches!(function.name, Name::Known(_)) || functions.last() != Some(&function) {
        functions.push(function);
    }
    for (at, frame) in location.inlined_into.iter().enumerate() {
        let inlined = at + 1 < location.inlined_into.len();
        functions.push(ChainFunction { name: Name::Known(frame.function), module, kernel, inlined });
    }
}
