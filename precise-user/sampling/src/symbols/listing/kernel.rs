//! The code of the running kernel as it is in memory, with its alternatives and static calls
//! patched in.

use std::{fs::File, os::unix::fs::FileExt as _, path::Path};

use super::MAX_FUNCTION;
use crate::reader::elf::Headers;
use crate::symbols::kernel::KernelSymbols;
use precise_code::{FunctionId, Instruction, decode};
use precise_model::Reason;

/// The memory of the running kernel.
#[derive(Debug)]
pub(super) struct KernelCode {
    core: File,
    headers: Headers,
}

impl KernelCode {
    /// Opens the memory of the kernel that runs below `root`.
    pub fn open(root: &Path) -> Result<Self, Reason> {
        let core = File::open(root.join("proc/kcore")).map_err(|_| Reason::KernelHidden)?;
        let headers = Headers::read(&core).ok().flatten().ok_or(Reason::KernelHidden)?;
        Ok(Self { core, headers })
    }

    /// Returns the bytes of a function of a capture.
    pub fn read(&self, symbols: &mut KernelSymbols, function: &FunctionId) -> Result<Vec<u8>, Reason> {
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
        self.bytes(symbols, function.start)
    }

    /// Returns the instructions of the function that begins at an address, without their texts.
    pub fn function(&self, symbols: &mut KernelSymbols, start: u64) -> Result<Vec<Instruction>, Reason> {
        Ok(decode(&self.bytes(symbols, start)?, start))
    }

    fn bytes(&self, symbols: &mut KernelSymbols, start: u64) -> Result<Vec<u8>, Reason> {
        let size = symbols.function_size(start)?.min(MAX_FUNCTION);
        let offset = self.headers.offset_of_vaddr(start).ok_or(Reason::KernelHidden)?;
        let mut code = vec![0; usize::try_from(size).unwrap_or(0)];
        self.core.read_exact_at(&mut code, offset).map_err(|_| Reason::KernelHidden)?;
        Ok(code)
    }
}
