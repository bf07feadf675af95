//! Loads an eBPF object: creates its maps, links the program with its functions and maps, and loads
//! it.

use std::{
    collections::HashMap,
    io,
    os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd, RawFd},
};

use aya_obj::{
    Function, Map, Object, ProgramSection,
    btf::BtfFeatures,
    generated::{BPF_DW, BPF_IMM, BPF_LD, BPF_PSEUDO_MAP_FD, BPF_PSEUDO_MAP_VALUE, bpf_insn, bpf_prog_type},
};

use super::{
    bpf::{self, ProgramCode, Refused},
    code,
};

/// All that a program's type information may contain. The oldest supported kernel, 6.1, knows all
/// of it.
const FEATURES: BtfFeatures = BtfFeatures::new(true, true, true, true, true, true, true, true);

/// The size of an array that the object does not fix.
#[derive(Clone, Copy, Debug)]
pub(super) enum ArraySize {
    /// This number of elements, each of the object's size.
    Elements(u32),
    /// Elements that are larger than the object's by a factor.
    Larger { elements: u32, times: u32 },
    /// One element, larger than the object's by this factor. The program has its address as a
    /// constant.
    One(u32),
}

impl ArraySize {
    const fn set(self, map: &mut Map) {
        let (elements, times) = match self {
            Self::Elements(elements) => (elements, 1),
            Self::Larger { elements, times } => (elements, times),
            Self::One(times) => (1, times),
        };
        map.set_max_entries(elements);
        map.set_value_size(map.value_size().saturating_mul(times));
    }
}

/// Why an object was not loaded.
#[derive(Debug, thiserror::Error)]
pub(super) enum ObjectError {
    /// The object is malformed, or lacks what this build expects.
    #[error("the embedded eBPF object lacks {0}")]
    Lacks(String),
    /// The kernel did not create a map.
    #[error("the map {name} cannot be created")]
    Map {
        /// The map's name.
        name: String,
        /// The error of bpf(2).
        #[source]
        error: io::Error,
    },
    /// The kernel did not load the program.
    #[error(transparent)]
    Refused(#[from] Refused),
}

/// A loaded program and its maps. Dropping it closes them, and the kernel frees what no event uses.
#[derive(Debug)]
pub(super) struct Loaded {
    /// The program.
    pub program: OwnedFd,
    maps: HashMap<String, OwnedFd>,
}

impl Loaded {
    /// Loads the program `entry` of `object`. `sizes` are those of the maps whose size the object
    /// does not fix; the maps in `shared` are used in place of maps of the object.
    pub fn load(
        object: &[u8],
        entry: &str,
        sizes: &[(&str, ArraySize)],
        shared: &[(&str, BorrowedFd<'_>)],
    ) -> Result<Self, ObjectError> {
        let lacks = |error: &dyn std::error::Error| ObjectError::Lacks(chain(error));
        let mut object = Object::parse(object).map_err(|error| lacks(&error))?;
        // The kernel needs them for names only, so a kernel that refuses them loads the program.
        let types = object
            .fixup_and_sanitize_btf(&FEATURES)
            .map_err(|error| lacks(&error))?
            .and_then(|types| bpf::load_types(&types.to_bytes()).ok());

        let mut described: Vec<_> = object.maps.drain().collect();
        let mut maps = HashMap::new();
        for (name, map) in &mut described {
            if let Some((_, size)) = sizes.iter().find(|(of, _)| of == name) {
                size.set(map);
            }
            let created = match shared.iter().find(|(of, _)| of == name) {
                Some((_, map)) => map.try_clone_to_owned(),
                None => create(name, map),
            };
            let fd = created.map_err(|error| ObjectError::Map { name: name.clone(), error })?;
            maps.insert(name.clone(), fd);
        }

        let with_fds =
            described.iter().filter_map(|(name, map)| Some((&**name, maps.get(name)?.as_raw_fd(), map)));
        let mut function = link(&mut object, entry, with_fds)?;
        for (name, size) in sizes {
            if let (ArraySize::One(_), Some(map)) = (size, maps.get(*name)) {
                address_element(&mut function.instructions, map.as_raw_fd());
            }
        }
        code::shorten(&mut function).map_err(|error| lacks(&error))?;
        let program = object.programs.get(entry).ok_or_else(|| ObjectError::Lacks(entry.to_owned()))?;
        let code = ProgramCode {
            name: entry,
            kind: kind(&program.section),
            license: &program.license,
            function: &function,
            types: types.as_ref().map(|types| types.as_fd()),
        };
        Ok(Self { program: load(&code)?, maps })
    }

    /// Returns the descriptor of a map, by its name in the object.
    pub fn map(&self, name: &str) -> Option<BorrowedFd<'_>> {
        self.maps.get(name).map(|map| map.as_fd())
    }
}

/// Returns a program of an object, linked with its maps and with the functions that it calls.
pub(super) fn link<'a>(
    object: &mut Object,
    entry: &str,
    maps: impl Iterator<Item = (&'a str, RawFd, &'a Map)>,
) -> Result<Function, ObjectError> {
    let lacks = |error: &dyn std::error::Error| ObjectError::Lacks(chain(error));
    let sections = object.functions.keys().map(|(section, _)| *section).collect();
    object.relocate_maps(maps, &sections).map_err(|error| lacks(&error))?;
    object.relocate_calls(&sections).map_err(|error| lacks(&error))?;
    let program = object.programs.get(entry);
    let function = program.and_then(|program| object.functions.remove(&program.function_key()));
    function.ok_or_else(|| ObjectError::Lacks(entry.to_owned()))
}

/// Makes the program load the address of a map's only element where it would load the map's own.
fn address_element(code: &mut [bpf_insn], map: RawFd) {
    const LOAD: u8 = (BPF_LD | BPF_IMM | BPF_DW) as u8;
    for instruction in code {
        if instruction.code == LOAD
            && u32::from(instruction.src_reg()) == BPF_PSEUDO_MAP_FD
            && instruction.imm == map
        {
            instruction.set_src_reg(BPF_PSEUDO_MAP_VALUE as u8);
        }
    }
}

/// Returns the kernel's type of the programs in a section.
const fn kind(section: &ProgramSection) -> bpf_prog_type {
    match section {
        ProgramSection::RawTracePoint => bpf_prog_type::BPF_PROG_TYPE_RAW_TRACEPOINT,
        _ => bpf_prog_type::BPF_PROG_TYPE_PERF_EVENT,
    }
}

/// Creates a map. That of a data section gets the section's content.
fn create(name: &str, map: &Map) -> io::Result<OwnedFd> {
    let fd = bpf::create_map(name, map)?;
    if !map.data().is_empty() {
        bpf::fill(fd.as_fd(), map.data())?;
    }
    Ok(fd)
}

/// Loads a program, retrying on `EAGAIN` as libbpf does. The verifier gives up with `EAGAIN` if a
/// signal arrives, such as SIGCHLD when a child ends.
fn load(code: &ProgramCode<'_>) -> Result<OwnedFd, Refused> {
    const ATTEMPTS: usize = 20;
    for _ in 1..ATTEMPTS {
        match bpf::load_program(code) {
            Err(refused) if refused.error.raw_os_error() == Some(libc::EAGAIN) => {}
            result => return result,
        }
    }
    bpf::load_program(code)
}

/// Returns an error and its causes as one line.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}
