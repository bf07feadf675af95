//! The code on this machine, for the views that look at it.

use std::path::{Path, PathBuf};

use clap::Args;
use precise::code::{FunctionId, Instruction};
use precise::model::Reason;
use precise::symbols::SymbolOptions;
use precise::symbols::listing::{Listings, SourceFiles};
use precise::views::code::Code;

/// Where the code is.
#[derive(Debug, Args)]
pub struct CodeArguments {
    /// Look for binaries below FOLDER instead of /
    #[arg(long, value_name = "FOLDER", help_heading = "Input")]
    symfs: Option<PathBuf>,
}

impl CodeArguments {
    /// The code there. Nothing is read yet.
    pub fn files(&self) -> Files {
        Files::of(self.symfs.as_deref().unwrap_or(Path::new("/")))
    }
}

/// Binaries and sources.
#[derive(Debug)]
pub struct Files {
    listings: Listings,
    sources: SourceFiles,
}

impl Files {
    /// Those below a folder. Nothing is read yet.
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
