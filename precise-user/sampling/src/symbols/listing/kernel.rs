//! The code of the running kernel as it is in memory, with its alternatives and static calls
//! patched in.

use std::{fs::File, os::unix::fs::FileExt as _, path::Path};

use super::MAX_FUNCTION;
use crate::reader::elf::Headers;
use crate::symbols::kernel::KernelSymbols;
use precise_code::FunctionId;
use precise_model::Reason;

/// Returns the bytes of a function of the running kernel.
pub(super) fn read(
    root: &Path,
    symbols: &mut KernelSymbols,
    function: &FunctionId,
) -> Result<Vec<u8>, Reason> {
    if function.start == 0 {
        return Err(Reason::KernelHidden);
    }
    // Addresses and code of another boot or another kernel are different.
    let running = symbols.build_id(&function.module).map(|id| id.hex()).unwrap_or_default();
    if running != function.build_id {
        return Err(Reason::FileChanged);
    }
    let found = symbols.function(function.start)?;
    if found.offset != 0 || found.name != function.name {
        return Err(Reason::FileChanged);
    }
    let size = symbols.function_size(function.start)?.min(MAX_FUNCTION);
    let core = File::open(root.join("proc/kcore")).map_err(|_| Reason::KernelHidden)?;
    let elf = Headers::read(&core).ok().flatten().ok_or(Reason::KernelHidden)?;
    let offset = elf.offset_of_vaddr(function.start).ok_or(Reason::KernelHidden)?;
    let mut code = vec![0; usize::try_from(size).unwrap_or(0)];
    core.read_exact_at(&mut code, offset).map_err(|_| Reason::KernelHidden)?;
    Ok(code)
}
