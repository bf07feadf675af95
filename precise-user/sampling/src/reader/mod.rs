//! The reader: a process without rights that reads the files of others.
//!
//! The profiled programs choose the bytes of the files that are mapped: programs, debug
//! information, perf maps. Code that parses such bytes must be expected to crash, to hang, to fill
//! the memory, or to be taken over. So it runs in a process of its own, which can read the
//! descriptors that it is given, compute, and answer, and nothing else.
//!
//! There are three processes:
//!
//! * The process that samples opens files, because only it may. It hands descriptors to the reader
//!   and reads bounded answers ([`Reader`]). It parses no byte of these files.
//! * The *nursery* is this program, executed again ([`run_if_reader`]). It gives up every right
//!   (`confine.rs`), reads nothing of others, and forks workers.
//! * A *worker* answers the requests (`worker.rs`). If it dies, takes too long or grows too large,
//!   the nursery forks another one, and only the file that was read loses its names.
//!
//! The nursery exists because a run gives up its own rights after its start. It could not confine
//! a second worker as well as the first. A nursery that is killed is replaced (`keeper.rs`): the
//! new one can give up all rights too, but what takes rights is missing, and a note says so.

mod confine;
mod copy;
mod demangle;
mod dwarf;
pub mod elf;
mod handle;
mod jit;
mod keeper;
mod limit;
mod nursery;
mod paths;
pub mod protocol;
mod sections;
mod symbols;
pub mod unwind;
mod wire;
mod worker;

pub use confine::Confinement;
pub use handle::{MAX_AHEAD, Reader, ReaderUse, SentAhead, Trouble, cpu_ns};
pub use nursery::run_if_reader;
pub use protocol::{CodeOwner, FoundTypes, FunctionCode, Split};
pub(crate) use symbols::convert;

/// Reads bytes as an ELF file, as a perf map and as a name, with everything that the reader does
/// itself and not through the symbolization library. For fuzzing: the reader is where bytes of
/// others end.
pub fn read_anything(bytes: &[u8]) -> std::io::Result<()> {
    use std::io::Write as _;

    let memory = rustix::fs::memfd_create(c"anything", rustix::fs::MemfdFlags::CLOEXEC)?;
    let mut file = std::fs::File::from(memory);
    file.write_all(bytes)?;
    let headers = elf::Headers::read(&file)?;
    for lines in [false, true] {
        // What is not sound is refused with a sentence.
        let copied = copy::copy(&file, lines);
        debug_assert!(headers.is_some() || copied.is_err());
        if let Ok(copied) = copied {
            elf::Headers::read(&copied.file)?;
        }
    }
    let addresses: Vec<u64> = (0..64).map(|shift| 1 << shift).collect();
    if let Ok(info) = unwind::read(&file, true) {
        let checked = info.check();
        debug_assert_eq!(checked, Ok(()));
    }
    jit::OpenPerfMaps::default().find(1, &file, &addresses);
    let name = String::from_utf8_lossy(bytes);
    debug_assert!(demangle::demangle(&name).len() <= protocol::MAX_TEXT);
    Ok(())
}

#[cfg(test)]
mod tests;
