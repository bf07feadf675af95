//! Assembles code for tests. Not part of the public interface.

use std::process::Command;

use super::{Instruction, disassembly::disassemble};

/// Assembles a text in AT&T syntax and returns the instructions, from address 0x1000 on.
#[allow(clippy::unwrap_used, clippy::panic, reason = "a test may end at once")]
pub fn assemble(text: &str) -> Vec<Instruction> {
    let folder = tempfile::tempdir().unwrap();
    let [source, object, code] = ["a.s", "a.o", "a.bin"].map(|name| folder.path().join(name));
    std::fs::write(&source, format!("{text}\n")).unwrap();
    assert!(Command::new("as").arg(&source).arg("-o").arg(&object).status().unwrap().success());
    let mut copy = Command::new("objcopy");
    copy.args(["-O", "binary", "-j", ".text"]).args([&object, &code]);
    assert!(copy.status().unwrap().success());
    disassemble(&std::fs::read(&code).unwrap(), 0x1000)
}
