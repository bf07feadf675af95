//! The binaries and sources on this machine, for the views that read code.

use std::env;
use std::path::{Path, PathBuf};

use clap::Args;
use precise::code::types::TypedCode;
use precise::code::{FunctionId, Instruction};
use precise::debuginfod;
use precise::error::{ExitClass, Failure};
use precise::model::{Reason, text};
use precise::symbols::SymbolOptions;
use precise::symbols::listing::{Listings, MAX_SOURCES, SourceFiles};
use precise::views::code::Code;

use super::output::say;

/// The flag that says where to look for binaries.
#[derive(Debug, Args)]
pub struct BinaryArguments {
    /// Look for binaries below FOLDER instead of /
    #[arg(long, value_name = "FOLDER", help_heading = "Input", hide_short_help = true)]
    symfs: Option<PathBuf>,
}

impl BinaryArguments {
    /// Returns access to the binaries, and to the servers of debug information that the environment
    /// names. No file is read, and no server is asked yet.
    pub fn files(&self) -> Result<LocalFiles, Failure> {
        self.here().asking_servers()
    }

    /// Returns access to the binaries of this machine. No file is read yet.
    fn here(&self) -> LocalFiles {
        LocalFiles::below(self.symfs.as_deref().unwrap_or(Path::new("/")))
    }
}

/// The flags that say where to look for binaries and sources.
#[derive(Debug, Args)]
pub struct CodeArguments {
    #[command(flatten)]
    binaries: BinaryArguments,
    /// Show lines of source files below FOLDER [default: the current folder]
    ///
    /// Use it if the sources of the profiled programs are elsewhere. The programs name their source
    /// files, and could name any file of this machine, so that files outside of FOLDER are not
    /// read. May be given several times. If the current folder is /, there is no default.
    #[arg(long, value_name = "FOLDER", help_heading = "Input", hide_short_help = true)]
    source: Vec<PathBuf>,
}

impl CodeArguments {
    /// Returns access to the binaries and sources, and to the servers of debug information that the
    /// environment names. No file is read, and no server is asked yet.
    pub fn files(&self) -> Result<LocalFiles, Failure> {
        self.files_here()?.asking_servers()
    }

    /// Returns access to the binaries and sources of this machine. No file is read yet.
    pub fn files_here(&self) -> Result<LocalFiles, Failure> {
        let mut files = self.binaries.here();
        if !self.source.is_empty() {
            files.sources = SourceFiles::default();
            files.named = true;
        }
        for folder in &self.source {
            files.sources.add(folder).map_err(|error| {
                let what = format!("cannot open the folder {} (--source): {error}", folder.display());
                Failure::new(ExitClass::Usage, what)
            })?;
        }
        Ok(files)
    }
}

/// Access to binaries and sources.
#[derive(Debug)]
pub struct LocalFiles {
    listings: Listings,
    sources: SourceFiles,
    /// Whether the user named the folders of the sources.
    named: bool,
}

impl LocalFiles {
    /// Returns access to the binaries of this machine, and to the sources below the current folder.
    /// No file is read yet.
    pub fn here() -> Self {
        Self::below(Path::new("/"))
    }

    /// Returns access to the binaries below a folder, and to the sources below the current folder.
    fn below(folder: &Path) -> Self {
        let mut sources = SourceFiles::default();
        // Below `/` is every file of the machine. If the current folder was deleted, there are no
        // sources in it; `say_unread` says which flag helps.
        if let Some(current) = env::current_dir().ok().filter(|current| current != Path::new("/")) {
            let _deleted = sources.add(&current);
        }
        Self { listings: Listings::new(&SymbolOptions::default(), folder), sources, named: false }
    }

    /// Returns access that also asks the servers of debug information that the environment names.
    fn asking_servers(mut self) -> Result<Self, Failure> {
        if let Some(servers) = debuginfod::servers(|name| env::var(name).ok(), say)? {
            self.listings.ask(servers);
        }
        Ok(self)
    }

    /// Says on standard error which binaries and source files a view asked for that were not read,
    /// and how to see the lines.
    pub fn say_unread(&mut self) {
        for trouble in self.listings.take_troubles() {
            say(&text::sanitize(&trouble));
        }
        let files = |count| format!("{count} source {}", if count == 1 { "file" } else { "files" });
        if let Some(outside) = self.sources.outside() {
            let folder = outside.folder.as_deref().map_or_else(
                || "FOLDER".to_owned(),
                |folder| text::quoted(&text::sanitize(&folder.to_string_lossy())),
            );
            let (read, flags) = match (self.named, self.sources.is_empty()) {
                (true, _) => ("the folders of --source", format!("add --source {folder}")),
                (false, false) => ("the current folder", format!("use --source . --source {folder}")),
                (false, true) => ("folders that --source names", format!("use --source {folder}")),
            };
            let files = files(outside.files);
            say(&format!(
                "the lines of {files} are not shown, because precise reads only files below {read}; to show them, {flags}"
            ));
        }
        let beyond = self.sources.beyond_limit();
        if beyond > 0 {
            let files = files(beyond);
            say(&format!(
                "the lines of {files} are not shown, because all sources together may take at most {} MiB of memory; to show them, ask for fewer functions",
                MAX_SOURCES >> 20
            ));
        }
    }
}

impl Code for LocalFiles {
    fn instructions(&mut self, function: &FunctionId) -> Result<Vec<Instruction>, Reason> {
        self.listings.read(function)
    }

    fn source(&mut self, file: &str, line: u32) -> Option<String> {
        self.sources.line(file, line)
    }

    fn types(&mut self, function: &FunctionId, wanted: &[u64]) -> Result<TypedCode, Reason> {
        self.listings.types(function, wanted)
    }
}
