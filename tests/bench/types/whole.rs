//! All accesses of a binary through pointers: which of them have a type.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use precise::code::types::Untyped;
use precise::code::{FunctionId, decode};
use precise::reader::elf::Headers;
use precise::symbols::SymbolOptions;
use precise::symbols::listing::Listings;

/// The largest function that is looked at.
const MAX_FUNCTION: u64 = 1 << 20;

/// The accesses of all functions.
#[derive(Debug, Default)]
pub struct AllAccesses {
    pub functions: u64,
    pub typed: u64,
    /// Accesses in code that has variables, by the reason why they have no type.
    pub untyped: BTreeMap<&'static str, u64>,
    /// Accesses in code without variables: assembly, and libraries with line information only.
    pub undescribed: u64,
    /// Accesses to saved registers, fixed addresses and variables of the thread.
    pub apart: u64,
    pub took: Duration,
}

impl AllAccesses {
    /// Returns the number of accesses through pointers in code that has variables.
    pub fn all(&self) -> u64 {
        self.typed + self.untyped.values().sum::<u64>()
    }

    /// Returns the share of these that have a type, in percent.
    pub fn share(&self) -> f64 {
        100.0 * self.typed as f64 / self.all().max(1) as f64
    }
}

/// Asks for the types of all functions of a binary.
pub fn measure(binary: &Path) -> Result<AllAccesses> {
    let file = File::open(binary)?;
    let headers = Headers::read(&file)?.context("it is not an ELF file")?;
    let build_id = headers.build_id().map(|id| id.hex()).unwrap_or_default();
    let module = binary.canonicalize()?.display().to_string();
    let symbols = Command::new("nm").args(["-S", "--defined-only"]).arg(binary).output()?;
    let symbols = String::from_utf8(symbols.stdout)?;
    let mut functions: BTreeMap<u64, (u64, &str)> = BTreeMap::new();
    for line in symbols.lines() {
        if let [start, size, "t" | "T" | "w" | "W", name] = line.split_whitespace().collect::<Vec<_>>()[..] {
            let number = |text| u64::from_str_radix(text, 16);
            functions.insert(number(start)?, (number(size)?, name));
        }
    }
    let mut listings = Listings::new(&SymbolOptions::default(), Path::new("/"));
    let mut found = AllAccesses::default();
    let begun = Instant::now();
    for (start, (size, name)) in functions {
        let Some(offset) = headers.offset_of_vaddr(start).filter(|_| size > 0 && size <= MAX_FUNCTION) else {
            continue;
        };
        let mut code = vec![0; usize::try_from(size)?];
        file.read_exact_at(&mut code, offset)?;
        let wanted: Vec<u64> = decode(&code, start).iter().map(|instruction| instruction.offset).collect();
        let id = FunctionId {
            module: module.clone(),
            build_id: build_id.clone(),
            name: name.to_owned(),
            start: offset,
            kernel: false,
        };
        let Ok(answer) = listings.types(&id, &wanted) else { continue };
        found.functions += 1;
        for access in answer.instructions.iter().flat_map(|instruction| &instruction.accesses) {
            match access.object {
                Ok(_) => found.typed += 1,
                Err(Untyped::NoDebugInfo | Untyped::NoVariables) => found.undescribed += 1,
                Err(Untyped::Stack | Untyped::NoGlobal | Untyped::Segment) => found.apart += 1,
                Err(why) => *found.untyped.entry(why.words()).or_default() += 1,
            }
        }
    }
    found.took = begun.elapsed();
    ensure!(found.typed > 0, "nothing has a type: {:?}", listings.take_troubles());
    Ok(found)
}
