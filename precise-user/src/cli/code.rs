//! The binaries and sources on this machine, for the views that read code.

use std::path::{Path, PathBuf};

use clap::Args;
use precise::code::{FunctionId, Instruction};
use precise::model::Reason;
use precise::symbols::SymbolOptions;
use precise::symbols::listing::{Listings, SourceFiles};
use precise::views::code::Code;

/// The flags that say where to look for binaries.
#[derive(Debug, Args)]
pub struct CodeArguments {
    /// Look for binaries below FOLDER instead of /
    #[arg(long, value_name = "FOLDER", help_heading = "Input")]
    symfs: Option<PathBuf>,
}

impl CodeArguments {
    /// Returns access to the binaries and sources. Nothing is read yet.
    pub fn files(&self) -> Files {
        Files::of(self.symfs.as_deref().unwrap_or(Path::new("/")))
    }
}

/// Access to binaries and sources.
#[derive(Debug)]
pub struct Files {
    listings: Listings,
    sources: SourceFiles,
}

impl Files {
    /// Returns access to the files below a folder. Nothing is read yet.
    pub fn of(folder: &Path) -> Self {
        let listings = Listings::new(&SymbolOptions::default(), folder);
        Self { listings, sources: SourceFiles::default() }
    }
}

impl Code for Files {
    fn instructions(&mut self, function: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        self.listings.read(function)
    }

    fn source(&mut self, file: &str, line: u32) -> Option<String> {
        self.sources.line(file, line).map(str::to_owned)
    }
}
