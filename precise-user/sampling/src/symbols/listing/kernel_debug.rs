//! The debug information of the running kernel, if there is some: the variables of its functions,
//! which BTF does not have.

use std::fs::File;
use std::path::Path;
use std::rc::Rc;

use crate::reader::Reader;
use crate::reader::elf::{Headers, PF_X, by_build_id};
use crate::reader::protocol::CodeOwner;
use crate::symbols::files::{OpenFiles, Separate};
use crate::symbols::kernel::{KERNEL, KernelSymbols};
use crate::symbols::opening::open_in_root;
use crate::symbols::vmlinux;

/// The symbol at which the code of a kernel begins.
const START: &str = "_text";

/// The debug information of a kernel, and how its addresses become those in memory.
#[derive(Debug)]
pub(super) struct KernelDebug {
    pub file: Rc<Separate>,
    pub of: CodeOwner,
}

impl KernelDebug {
    /// Looks for the debug information of the kernel that runs below `root`: by build id, where
    /// distributions put the image, and at the server. Only a file with its build id is used.
    pub fn find(
        reader: &mut Reader,
        open: &mut OpenFiles,
        symbols: &mut KernelSymbols,
        root: &Path,
    ) -> Option<Self> {
        let id = symbols.build_id(KERNEL)?;
        let right = |_: &mut Reader, _: &File, elf: &Headers| elf.build_id() == Some(id) && elf.described;
        let name = by_build_id(&id, ".debug");
        let by_id = name.and_then(|name| open.separate(reader, None, &name, right));
        let by_place = || {
            vmlinux::installed(root).into_iter().chain(vmlinux::built(root)).find_map(|place| {
                let file = open_in_root(root, &place).ok()?;
                open.separate_of(reader, file, &root.join(place), right)
            })
        };
        let file = by_id.or_else(by_place).or_else(|| open.served(reader, &id, KERNEL))?;
        let code = file.elf.segments.iter().find(|segment| segment.flags & PF_X != 0)?;
        let slide = symbols.address_of(START)?.wrapping_sub(code.vaddr);
        Some(Self { file, of: CodeOwner::Kernel(slide) })
    }
}
