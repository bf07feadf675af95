//! Converts machine code to text.

use iced_x86::{
    Decoder, DecoderOptions, FlowControl, Formatter, GasFormatter, Mnemonic, OpKind, SymbolResolver,
    SymbolResult,
};

use super::{Branch, BranchKind, Instruction};

/// Writes branch targets in the function itself as offsets, which match the offsets of the listing.
struct Offsets {
    start: u64,
    end: u64,
}

impl SymbolResolver for Offsets {
    fn symbol(
        &mut self,
        instruction: &iced_x86::Instruction,
        operand: u32,
        _: Option<u32>,
        address: u64,
        _: u32,
    ) -> Option<SymbolResult<'_>> {
        let branch = matches!(instruction.op_kind(operand), OpKind::NearBranch64 | OpKind::NearBranch32);
        (branch && (self.start..self.end).contains(&address))
            .then(|| SymbolResult::with_string(address, format!("+{:#x}", address - self.start)))
    }
}

/// Disassembles 64-bit code that begins at `start`. Bytes that are not an instruction become
/// `(bad)` with a length of one byte.
pub fn disassemble(code: &[u8], start: u64) -> Vec<Instruction> {
    let end = start.saturating_add(code.len() as u64);
    let mut formatter = GasFormatter::with_options(Some(Box::new(Offsets { start, end })), None);
    let options = formatter.options_mut();
    options.set_uppercase_hex(false);
    options.set_hex_prefix("0x");
    options.set_branch_leading_zeros(false);
    options.set_space_after_operand_separator(false);
    options.set_first_operand_char_index(8);
    options.set_rip_relative_addresses(true);
    let mut instructions = decode(code, start);
    for instruction in &mut instructions {
        formatter.format(&instruction.decoded, &mut instruction.text);
    }
    instructions
}

/// Decodes 64-bit code that begins at `start`, as [`disassemble`] does, but without texts, which
/// take longer than all else.
pub fn decode(code: &[u8], start: u64) -> Vec<Instruction> {
    let decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let instruction = |decoded: iced_x86::Instruction| Instruction {
        offset: decoded.ip().wrapping_sub(start),
        address: decoded.ip(),
        length: decoded.len() as u32,
        text: String::new(),
        accessed: accessed(&decoded),
        branch: branch(&decoded),
        frames: Vec::new(),
        decoded,
    };
    decoder.into_iter().map(instruction).collect()
}

fn accessed(instruction: &iced_x86::Instruction) -> Option<u32> {
    // Each iteration of a string instruction is a separate access, and is sampled as one.
    let size = u32::try_from(instruction.memory_size().size()).ok()?;
    (size > 0 && instruction.mnemonic() != iced_x86::Mnemonic::Lea).then_some(size)
}

/// Returns the kind of branch that an instruction is; `None` if it is not a branch.
fn branch(instruction: &iced_x86::Instruction) -> Option<Branch> {
    let kind = match (instruction.flow_control(), instruction.mnemonic()) {
        (FlowControl::Next | FlowControl::Exception, _) => return None,
        // The library counts these as calls and returns.
        (
            _,
            Mnemonic::Syscall
            | Mnemonic::Sysenter
            | Mnemonic::Sysret
            | Mnemonic::Sysretq
            | Mnemonic::Sysexit
            | Mnemonic::Sysexitq
            | Mnemonic::Iret
            | Mnemonic::Iretd
            | Mnemonic::Iretq,
        ) => BranchKind::System,
        (FlowControl::ConditionalBranch, _) => BranchKind::Conditional,
        (FlowControl::UnconditionalBranch, _) => BranchKind::Jump,
        (FlowControl::IndirectBranch, _) => BranchKind::IndirectJump,
        (FlowControl::Call, _) => BranchKind::Call,
        (FlowControl::IndirectCall, _) => BranchKind::IndirectCall,
        (FlowControl::Return, _) => BranchKind::Return,
        (FlowControl::Interrupt | FlowControl::XbeginXabortXend, _) => BranchKind::System,
    };
    let direct =
        matches!(instruction.op0_kind(), OpKind::NearBranch16 | OpKind::NearBranch32 | OpKind::NearBranch64);
    Some(Branch { kind, target: direct.then(|| instruction.near_branch_target()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_branches_by_their_bytes() {
        let of =
            |bytes: &[u8]| disassemble(bytes, 0x1000)[0].branch.map(|branch| (branch.kind, branch.target));
        assert_eq!(of(&[0x75, 0x10]), Some((BranchKind::Conditional, Some(0x1012))));
        assert_eq!(of(&[0xeb, 0xfe]), Some((BranchKind::Jump, Some(0x1000))));
        assert_eq!(of(&[0xff, 0xe0]), Some((BranchKind::IndirectJump, None)));
        assert_eq!(of(&[0xe8, 0, 0, 0, 0]), Some((BranchKind::Call, Some(0x1005))));
        assert_eq!(of(&[0xff, 0xd0]), Some((BranchKind::IndirectCall, None)));
        assert_eq!(of(&[0xc3]), Some((BranchKind::Return, None)));
        assert_eq!(of(&[0x0f, 0x05]), Some((BranchKind::System, None)));
        assert_eq!(of(&[0x48, 0x0f, 0x07]), Some((BranchKind::System, None)));
        assert_eq!(of(&[0xe2, 0xfe]), Some((BranchKind::Conditional, Some(0x1000))), "loop");
        assert_eq!(of(&[0x90]), None);
        assert_eq!(of(&[0x0f, 0x0b]), None, "ud2");
    }
}
