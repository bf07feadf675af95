//! The types of a fleet's samples, from the debug information that this machine has or finds.

use precise::code::FunctionId;
use precise::fleet::{FleetAccess, FleetFunction, FleetTypes};
use precise::model::accesses::NO_CODE;
use precise::views::code::Code as _;
use precise::views::typing::accessed;

use super::code::LocalFiles;

/// Binaries with their debug information: those of this machine, and those of servers.
pub struct LocalTypes<'a>(pub &'a mut LocalFiles);

impl FleetTypes for LocalTypes<'_> {
    fn accesses(
        &mut self,
        function: &FleetFunction,
        wanted: &[u64],
    ) -> Result<Vec<(u64, Vec<FleetAccess>)>, String> {
        let FleetFunction { name, module, build_id, start } = function.clone();
        let id = FunctionId { module, build_id, name, start, kernel: false };
        let code = self.0.types(&id, wanted).map_err(|_| NO_CODE.to_owned())?;
        let of_instruction = code.instructions.iter().map(|instruction| {
            let accesses = instruction.accesses.iter().map(|access| FleetAccess {
                reads: access.reads,
                writes: access.writes,
                found: accessed(access, &code).map_err(str::to_owned),
            });
            (instruction.offset, accesses.collect())
        });
        Ok(of_instruction.collect())
    }
}
