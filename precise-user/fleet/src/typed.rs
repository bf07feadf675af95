//! Types of the objects that the samples of a fleet access.
//!
//! A type is a function of the instruction, and the tables have instructions. So the types come
//! from the debug information that the one who asks has, through [`FleetTypes`], and captures and
//! tables that exist get types when their debug information is found.

use std::collections::{BTreeMap, BTreeSet};

use precise_model::accesses::{MAX_FUNCTIONS, NO_ACCESS, NO_CODE, NO_FUNCTION, NOT_LOOKED_AT, SEVERAL};
use precise_model::sampled::SampledAccess;
use rustc_hash::FxHashMap;

use crate::keys::{InstructionOp, SampledInstruction};
use crate::names::FunctionName;

/// A function in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetFunction {
    /// The name of its symbol.
    pub name: String,
    /// The path of the file, on the nodes.
    pub module: String,
    /// The build id of the file, hex; empty if it has none.
    pub build_id: String,
    /// The offset of the function in the file.
    pub start: u64,
}

/// An access of an instruction to memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FleetAccess {
    /// Whether the instruction reads the bytes.
    pub reads: bool,
    /// Whether the instruction writes the bytes.
    pub writes: bool,
    /// The type and the field, or the reason why they are not known, in a few words.
    pub found: Result<(String, String), String>,
}

/// Reads the debug information of programs.
pub trait FleetTypes {
    /// Returns the accesses to memory of some instructions of a function, which are given by their
    /// distances from its start, in ascending order.
    ///
    /// # Errors
    ///
    /// Returns the reason in a few words if the code is not available.
    fn accesses(
        &mut self,
        function: &FleetFunction,
        wanted: &[u64],
    ) -> Result<Vec<(u64, Vec<FleetAccess>)>, String>;
}

/// No debug information, for questions that are not about types.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoFleetTypes;

impl FleetTypes for NoFleetTypes {
    fn accesses(
        &mut self,
        _function: &FleetFunction,
        _wanted: &[u64],
    ) -> Result<Vec<(u64, Vec<FleetAccess>)>, String> {
        Err(NO_CODE.to_owned())
    }
}

/// What is known of the object that an instruction accesses.
type Found = Result<(String, String), String>;

/// The sampled instructions of a function by their distances from its start, with what the samples
/// did.
type SampledOffsets = BTreeMap<u64, BTreeSet<InstructionOp>>;

/// The types of the objects that instructions access.
pub(crate) struct InstructionTypes(FxHashMap<SampledInstruction, Found>);

impl InstructionTypes {
    /// Reads the types of instructions, which are given with their weights.
    pub fn read(
        instructions: impl Iterator<Item = (SampledInstruction, u64)>,
        names: &FxHashMap<u64, FunctionName>,
        types: &mut dyn FleetTypes,
    ) -> Self {
        let mut found = FxHashMap::default();
        let mut functions: BTreeMap<(u64, u64), (u64, SampledOffsets)> = BTreeMap::new();
        for (instruction, weight) in instructions {
            let SampledInstruction { function, place, op } = instruction;
            match place {
                Some((start, offset)) => {
                    let (sum, offsets) = functions.entry((function, start)).or_default();
                    *sum = sum.saturating_add(weight);
                    offsets.entry(offset).or_default().insert(op);
                }
                None => drop(found.insert(instruction, Err(NO_FUNCTION.to_owned()))),
            }
        }
        let mut functions: Vec<_> = functions.into_iter().collect();
        functions.sort_by(|(id_a, (a, _)), (id_b, (b, _))| b.cmp(a).then_with(|| id_a.cmp(id_b)));
        for (number, ((id, start), (_, offsets))) in functions.into_iter().enumerate() {
            let function = names.get(&id).and_then(|name| in_file(name, start));
            let wanted: Vec<u64> = offsets.keys().copied().collect();
            let accesses = match function {
                _ if number >= MAX_FUNCTIONS => Err(NOT_LOOKED_AT.to_owned()),
                None => Err(NO_FUNCTION.to_owned()),
                Some(function) => types.accesses(&function, &wanted),
            };
            let accesses = accesses.map(|all| all.into_iter().collect::<FxHashMap<_, _>>());
            for (offset, op) in
                offsets.into_iter().flat_map(|(at, ops)| ops.into_iter().map(move |op| (at, op)))
            {
                let what = match &accesses {
                    Err(why) => Err(why.clone()),
                    Ok(all) => chosen(all.get(&offset).map_or(&[][..], Vec::as_slice), op),
                };
                found.insert(SampledInstruction { function: id, place: Some((start, offset)), op }, what);
            }
        }
        Self(found)
    }

    /// Returns what is known of the object that an instruction accesses; in brackets why it is not.
    pub fn texts(&self, instruction: &SampledInstruction) -> TypeTexts {
        let why = match self.0.get(instruction) {
            Some(Ok((ty, field))) => {
                return TypeTexts { ty: ty.clone(), field: field.clone(), is_typed: true, is_access: true };
            }
            Some(Err(why)) => why,
            None => NO_FUNCTION,
        };
        let text = format!("[{why}]");
        TypeTexts { ty: text.clone(), field: text, is_typed: false, is_access: why != NO_ACCESS }
    }
}

/// What is known of the object that an instruction accesses, as texts.
pub(crate) struct TypeTexts {
    pub ty: String,
    pub field: String,
    pub is_typed: bool,
    /// Whether the instruction accesses memory, as far as is known.
    pub is_access: bool,
}

impl TypeTexts {
    /// Returns the field, as it stands beside its type: the type itself if it has no fields.
    pub fn part(self) -> String {
        if self.field.is_empty() { self.ty } else { self.field }
    }

    /// Returns the field with its type.
    pub fn whole(&self) -> String {
        match (self.is_typed, &*self.field) {
            (false, _) | (_, "") => self.ty.clone(),
            (true, field) => format!("{}.{field}", self.ty),
        }
    }
}

/// Returns the function, if its name is known, with its start in the file.
fn in_file(of: &FunctionName, start: u64) -> Option<FleetFunction> {
    let (name, module) = (of.name.clone(), of.module.clone().filter(|_| of.known)?);
    Some(FleetFunction { name, module, build_id: of.build_id.clone(), start })
}

/// Returns what is known of the access of an instruction that samples are about.
fn chosen(accesses: &[FleetAccess], op: InstructionOp) -> Found {
    let of = match op {
        InstructionOp::Fetch => SampledAccess::Nothing,
        op => SampledAccess::among(accesses, Some(op.word()), |access| (access.reads, access.writes)),
    };
    match of {
        SampledAccess::Nothing => Err(NO_ACCESS.to_owned()),
        SampledAccess::Several => Err(SEVERAL.to_owned()),
        SampledAccess::One(at) => {
            accesses.get(at).map_or(Err(NO_ACCESS.to_owned()), |access| access.found.clone())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(reads: bool, writes: bool, field: &str) -> FleetAccess {
        FleetAccess { reads, writes, found: Ok(("Order".to_owned(), field.to_owned())) }
    }

    #[test]
    fn the_access_that_the_sample_is_about_is_chosen() {
        use InstructionOp::{Fetch, Load, Store, Unknown};
        let copy = [access(true, false, "from"), access(false, true, "to")];
        let field = |accesses: &[FleetAccess], op| chosen(accesses, op).map(|(_, field)| field);
        assert_eq!((field(&copy, Load), field(&copy, Store)), (Ok("from".into()), Ok("to".into())));
        assert_eq!(
            (field(&copy, Unknown), field(&copy, Fetch)),
            (Err(SEVERAL.into()), Err(NO_ACCESS.into()))
        );
        // Hardware calls some loads stores, as the views of one capture know.
        assert_eq!((field(&copy[..1], Store), field(&[], Load)), (Ok("from".into()), Err(NO_ACCESS.into())));
    }
}
