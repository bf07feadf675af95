//! The six bpf(2) commands that a run needs: create a map, write constants to one, load type
//! information, load a program, attach it to a tracepoint, and ask about a program.
//!
//! aya's loader has them too, but it parses the running kernel's type information each time it
//! loads an object, which took a quarter of the time of a short run, and asks the kernel for
//! features that every supported kernel has (docs/journal/0007-loader.md).

use std::{
    ffi::{CStr, CString, c_int, c_long},
    io,
    os::fd::{AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd},
};

use aya_obj::{
    Function, Map,
    generated::{bpf_attr, bpf_cmd, bpf_insn, bpf_prog_info, bpf_prog_type},
};

/// The size of the verifier's log, in bytes. Pages that the kernel does not write take no memory.
const LOG: usize = 16 << 20;

/// Calls bpf(2).
fn bpf(command: bpf_cmd, attr: &mut bpf_attr) -> io::Result<c_long> {
    // SAFETY: `attr` is a whole bpf_attr. The callers fill in what the command reads, and keep what
    // it points to alive during the call.
    let result =
        unsafe { libc::syscall(libc::SYS_bpf, command as c_int, &raw mut *attr, size_of::<bpf_attr>()) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(result) }
}

/// Calls bpf(2) for a command that returns a new descriptor. The kernel opens each with
/// `O_CLOEXEC`.
fn descriptor(command: bpf_cmd, attr: &mut bpf_attr) -> io::Result<OwnedFd> {
    let fd = bpf(command, attr)?;
    // SAFETY: the kernel has just opened this descriptor, and nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd as c_int) })
}

/// Returns an attribute whose bytes are all 0, which every command takes for its defaults.
fn zeroed() -> bpf_attr {
    // SAFETY: a bpf_attr is a union of structures of integers.
    unsafe { std::mem::zeroed() }
}

/// Copies the start of a name. The kernel wants a NUL after it, and takes letters, digits, `_` and
/// `.`.
fn write_name(to: &mut [libc::c_char], name: &str) {
    let room = to.len() - 1;
    for (to, from) in to[..room].iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
}

/// Creates the map that an object describes.
pub(super) fn create_map(name: &str, map: &Map) -> io::Result<OwnedFd> {
    let mut attr = zeroed();
    // SAFETY: all fields of the union are integers, and this is the one that the command reads.
    let of_map = unsafe { &mut attr.__bindgen_anon_1 };
    of_map.map_type = map.map_type();
    of_map.key_size = map.key_size();
    of_map.value_size = map.value_size();
    of_map.max_entries = map.max_entries();
    of_map.map_flags = map.map_flags();
    write_name(&mut of_map.map_name, name);
    descriptor(bpf_cmd::BPF_MAP_CREATE, &mut attr)
}

/// Writes the content of a data section to its map. The shipped object has no data sections.
pub(super) fn fill(map: BorrowedFd<'_>, data: &[u8]) -> io::Result<()> {
    let first = 0_u32;
    let mut attr = zeroed();
    // SAFETY: all fields of the union are integers, and this is the one that the command reads.
    let of_element = unsafe { &mut attr.__bindgen_anon_2 };
    of_element.map_fd = map.as_raw_fd() as u32;
    of_element.key = &raw const first as u64;
    of_element.__bindgen_anon_1.value = data.as_ptr() as u64;
    bpf(bpf_cmd::BPF_MAP_UPDATE_ELEM, &mut attr).map(drop)
}

/// Loads the type information of an object, with which the kernel names functions and quotes the
/// source.
pub(super) fn load_types(btf: &[u8]) -> io::Result<OwnedFd> {
    let mut attr = zeroed();
    // SAFETY: all fields of the union are integers, and this is the one that the command reads.
    let of_types = unsafe { &mut attr.__bindgen_anon_7 };
    of_types.btf = btf.as_ptr() as u64;
    of_types.btf_size = btf.len() as u32;
    descriptor(bpf_cmd::BPF_BTF_LOAD, &mut attr)
}

/// What [`load_program`] loads.
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramCode<'a> {
    /// The program's name; the kernel keeps 15 bytes of it.
    pub name: &'a str,
    /// What the program is attached to.
    pub kind: bpf_prog_type,
    /// The license, which decides which helpers the program may call.
    pub license: &'a CStr,
    /// The instructions with all that they call.
    pub function: &'a Function,
    /// The type information that the function's lines refer to.
    pub types: Option<BorrowedFd<'a>>,
}

/// Why a program was not loaded.
#[derive(Debug, thiserror::Error)]
#[error("BPF_PROG_LOAD failed")]
pub(super) struct Refused {
    /// The error of bpf(2).
    #[source]
    pub error: io::Error,
    /// What the verifier printed; empty if the kernel did not get that far.
    pub log: String,
}

/// Loads a program. If that fails, asks the verifier why.
pub(super) fn load_program(code: &ProgramCode<'_>) -> Result<OwnedFd, Refused> {
    load(code, &mut []).or_else(|error| {
        // Neither a missing right nor an interruption is the verifier's decision.
        if matches!(error.raw_os_error(), Some(libc::EPERM | libc::EAGAIN)) {
            return Err(Refused { error, log: String::new() });
        }
        let mut log = vec![0; LOG];
        load(code, &mut log).map_err(|again| {
            let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
            // The log has been cut if it is longer than its room, which does not explain the
            // refusal.
            let error = if again.raw_os_error() == Some(libc::ENOSPC) { error } else { again };
            Refused { error, log: String::from_utf8_lossy(&log[..end]).into_owned() }
        })
    })
}

fn load(code: &ProgramCode<'_>, log: &mut [u8]) -> io::Result<OwnedFd> {
    /// `BPF_LOG_LEVEL1`: each instruction, with the registers where they change.
    const EACH_INSTRUCTION: u32 = 1;
    let instructions: &[bpf_insn] = &code.function.instructions;
    let (functions, lines) =
        (code.function.func_info.func_info_bytes(), code.function.line_info.line_info_bytes());
    let mut attr = zeroed();
    // SAFETY: all fields of the union are integers, and this is the one that the command reads.
    let of_program = unsafe { &mut attr.__bindgen_anon_3 };
    of_program.prog_type = code.kind as u32;
    of_program.insns = instructions.as_ptr() as u64;
    of_program.insn_cnt = instructions.len() as u32;
    of_program.license = code.license.as_ptr() as u64;
    write_name(&mut of_program.prog_name, code.name);
    if let Some(types) = code.types {
        of_program.prog_btf_fd = types.as_raw_fd() as u32;
        if code.function.func_info_rec_size > 0 {
            of_program.func_info = functions.as_ptr() as u64;
            of_program.func_info_cnt = code.function.func_info.len() as u32;
            of_program.func_info_rec_size = code.function.func_info_rec_size as u32;
        }
        if code.function.line_info_rec_size > 0 {
            of_program.line_info = lines.as_ptr() as u64;
            of_program.line_info_cnt = code.function.line_info.len() as u32;
            of_program.line_info_rec_size = code.function.line_info_rec_size as u32;
        }
    }
    if !log.is_empty() {
        of_program.log_level = EACH_INSTRUCTION;
        of_program.log_buf = log.as_mut_ptr() as u64;
        of_program.log_size = log.len() as u32;
    }
    descriptor(bpf_cmd::BPF_PROG_LOAD, &mut attr)
}

/// Makes a program run at a tracepoint of the kernel, as long as the returned descriptor is open.
pub(super) fn attach_to_tracepoint(program: BorrowedFd<'_>, name: &str) -> io::Result<OwnedFd> {
    let name = CString::new(name)?;
    let mut attr = zeroed();
    attr.raw_tracepoint.name = name.as_ptr() as u64;
    attr.raw_tracepoint.prog_fd = program.as_raw_fd() as u32;
    descriptor(bpf_cmd::BPF_RAW_TRACEPOINT_OPEN, &mut attr)
}

/// Returns what the kernel knows about a loaded program.
pub(super) fn program_info(program: BorrowedFd<'_>) -> io::Result<bpf_prog_info> {
    // SAFETY: a bpf_prog_info is a structure of integers.
    let mut info: bpf_prog_info = unsafe { std::mem::zeroed() };
    let mut attr = zeroed();
    attr.info.bpf_fd = program.as_raw_fd() as u32;
    attr.info.info = &raw mut info as u64;
    attr.info.info_len = size_of::<bpf_prog_info>() as u32;
    bpf(bpf_cmd::BPF_OBJ_GET_INFO_BY_FD, &mut attr)?;
    Ok(info)
}
