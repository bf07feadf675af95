//! The answer for a function: its accesses, with the layouts that they refer to.

use rustc_hash::FxHashMap;

use super::Access;
use super::described::DescribedTypes;
use super::layout::LayoutReader;
use super::{
    FunctionFacts, GlobalVariable, Object, TypedAccess, TypedCode, TypedInstruction, Untyped, accesses,
};
use crate::Instruction;

/// Returns the types of the accesses of code of which nothing is known, for one reason.
pub fn untyped(instructions: &[Instruction], wanted: &[u64], why: Untyped) -> TypedCode {
    let of = |offset: &u64| {
        let at = instructions.binary_search_by_key(offset, |instruction| instruction.offset).ok();
        let width = at.and_then(|at| instructions.get(at)).and_then(|instruction| instruction.accessed);
        let access = |width| TypedAccess { width, reads: false, writes: false, object: Err(why) };
        match at {
            Some(_) => {
                TypedInstruction { offset: *offset, accesses: width.map(access).into_iter().collect() }
            }
            None => not_decoded(*offset),
        }
    };
    TypedCode { instructions: wanted.iter().map(of).collect(), ..TypedCode::default() }
}

fn not_decoded(offset: u64) -> TypedInstruction {
    let access = TypedAccess { width: 0, reads: false, writes: false, object: Err(Untyped::NotDecoded) };
    TypedInstruction { offset, accesses: vec![access] }
}

/// Returns the types of the accesses of a function. `wanted` are the instructions, by their
/// distance from its start.
pub fn typed(
    instructions: &[Instruction],
    facts: &FunctionFacts,
    table: &mut dyn DescribedTypes,
    wanted: &[u64],
) -> TypedCode {
    let found = match accesses(instructions, facts, table, wanted) {
        Ok(found) => found,
        Err(why) => return untyped(instructions, wanted, why),
    };
    let mut code = TypedCode::default();
    let mut layouts = FxHashMap::default();
    let mut globals = FxHashMap::default();
    for offset in wanted {
        let Some(accesses) = found.get(offset) else {
            code.instructions.push(not_decoded(*offset));
            continue;
        };
        let mut typed = Vec::with_capacity(accesses.len());
        for access in accesses {
            let object = access.place.map(|place| {
                let layout = *layouts.entry(place.ty).or_insert_with(|| {
                    code.layouts.push(LayoutReader(table).layout(place.ty));
                    u32::try_from(code.layouts.len() - 1).unwrap_or(u32::MAX)
                });
                let global = place.global.map(|global| {
                    *globals.entry(global.address).or_insert_with(|| {
                        let name = table.global_name(global.address);
                        let size = table.size_of(global.ty);
                        code.globals.push(GlobalVariable { name, address: global.address, size });
                        u32::try_from(code.globals.len() - 1).unwrap_or(u32::MAX)
                    })
                });
                Object { layout, offset: place.offset, indexed: place.indexed, origin: place.origin, global }
            });
            let Access { width, reads, writes, .. } = *access;
            typed.push(TypedAccess { width, reads, writes, object });
        }
        code.instructions.push(TypedInstruction { offset: *offset, accesses: typed });
    }
    code
}
