//! Names of kernel addresses from `/proc/kallsyms`, including modules and BPF programs.
//!
//! This is not left to the symbolization library, which reports no modules, reads the file only
//! once, and names every address: code of a program that is loaded later would get the name of its
//! neighbour.

use std::fs::File;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustc_hash::FxHashMap;

pub use super::kallsyms::KERNEL;
use super::kallsyms::{Kallsyms, NearestSymbol, SymbolKind};
use crate::reader::elf::build_id_in;
use precise_model::Reason;
use precise_records::record::BuildId;

/// Returns whether this process may see kernel addresses: whether /proc/kallsyms shows any. This
/// depends on `kernel.kptr_restrict`, and on CAP_SYSLOG where samples of the kernel need a
/// privilege too (`kallsyms_show_value()`, kernel/kallsyms.c).
pub fn addresses_visible(root: &Path) -> bool {
    /// Number of bytes to read: enough for several hundred symbols. The first ones include per-CPU
    /// variables, whose addresses may be 0.
    const ENOUGH: u64 = 64 << 10;
    let mut text = Vec::new();
    let read =
        File::open(root.join("proc/kallsyms")).and_then(|file| file.take(ENOUGH).read_to_end(&mut text));
    read.is_ok()
        && text.split(|&byte| byte == b'\n').any(|line| {
            let address = line.split(|&byte| byte == b' ').next().unwrap_or_default();
            address.iter().any(|&digit| digit != b'0')
        })
}

/// The shortest time between two reads of the file because of an address that it may not contain
/// yet.
const REREAD: Duration = Duration::from_secs(10);
/// The module name of BPF programs.
const BPF: &str = "bpf";

/// The kernel's symbols, read when first needed.
#[derive(Debug)]
pub struct KernelSymbols {
    root: PathBuf,
    kallsyms: Option<PathBuf>,
    running: bool,
    symbols: Option<Kallsyms>,
    /// The thread that reads the symbols ahead.
    ahead: Option<JoinHandle<Kallsyms>>,
    /// When the file was read to its end.
    read_at: Option<Instant>,
    build_ids: FxHashMap<String, Option<BuildId>>,
}

impl KernelSymbols {
    /// Uses the file `kallsyms`. If it is from the `running` kernel, reads build ids from `sys`
    /// below `root`.
    pub fn new(root: PathBuf, kallsyms: Option<PathBuf>, running: bool) -> Self {
        let build_ids = FxHashMap::default();
        Self { root, kallsyms, running, symbols: None, ahead: None, read_at: None, build_ids }
    }

    /// Starts a thread that reads the symbols up to `address`, unless some have been read already.
    /// The kernel takes up to 70 ms to format them, and meanwhile the reader can work on files.
    pub fn read_ahead(&mut self, address: u64) {
        if self.symbols.is_some() || self.ahead.is_some() || !self.running {
            return;
        }
        let Some(path) = &self.kallsyms else { return };
        // An unreadable file is reported by the next lookup.
        let Ok(mut symbols) = Kallsyms::open(path, self.running) else { return };
        let read = move || {
            symbols.read_ahead(address);
            symbols
        };
        self.ahead = std::thread::Builder::new().name("kallsyms".into()).spawn(read).ok();
    }

    /// Returns the function at `address`.
    pub fn function(&mut self, address: u64) -> Result<NearestSymbol<'_>, Reason> {
        self.find(address, SymbolKind::Code)
    }

    /// Returns the size of the function at `address`: the number of bytes from its start to the
    /// next function.
    pub fn function_size(&mut self, address: u64) -> Result<u64, Reason> {
        let start = address - self.function(address)?.offset;
        let symbols = self.symbols.as_mut().ok_or(Reason::KernelHidden)?;
        symbols.size_at(start).ok().flatten().ok_or(Reason::NoSymbol)
    }

    /// Returns the address of the symbol with a name. This reads the whole file.
    pub fn address_of(&mut self, name: &str) -> Option<u64> {
        // An address that no symbol has makes sure that the file is open.
        let _open = self.find(0, SymbolKind::Data);
        self.symbols.as_mut()?.address_of(name).ok().flatten()
    }

    /// Returns the variable at `address`.
    pub fn variable(&mut self, address: u64) -> Result<NearestSymbol<'_>, Reason> {
        self.find(address, SymbolKind::Data)
    }

    /// Returns the build id of [`KERNEL`] or of a module, by its name in brackets; `None` if
    /// unknown.
    pub fn build_id(&mut self, module: &str) -> Option<BuildId> {
        if !self.running {
            return None;
        }
        if let Some(&known) = self.build_ids.get(module) {
            return known;
        }
        let path = if module == KERNEL {
            self.root.join("sys/kernel/notes")
        } else {
            let name = module.trim_matches(['[', ']']);
            self.root.join("sys/module").join(name).join("notes/.note.gnu.build-id")
        };
        let id = std::fs::read(path).ok().and_then(|notes| build_id_in(&notes));
        self.build_ids.insert(module.to_owned(), id);
        id
    }

    fn find(&mut self, address: u64, kind: SymbolKind) -> Result<NearestSymbol<'_>, Reason> {
        let path = self.kallsyms.clone().ok_or(Reason::FileMissing)?;
        if let Some(ahead) = self.ahead.take() {
            self.symbols = ahead.join().ok();
        }
        if self.symbols.is_none() || self.may_be_stale(address, kind) {
            // An unreadable file and one that contains only zeros mean the same to the user: the
            // addresses are hidden.
            self.symbols = Kallsyms::open(&path, self.running).ok();
            self.read_at = None;
        }
        let symbols = self.symbols.as_mut().ok_or(Reason::KernelHidden)?;
        let found = symbols.find(address, kind).map_err(|_| Reason::KernelHidden)?.is_some();
        if symbols.is_hidden() {
            return Err(Reason::KernelHidden);
        }
        if symbols.is_complete() && self.read_at.is_none() {
            self.read_at = Some(Instant::now());
        }
        if !found {
            return Err(Reason::NoSymbol);
        }
        symbols.find(address, kind).ok().flatten().ok_or(Reason::NoSymbol)
    }

    /// Returns whether a new read could give `address` a better name, because BPF programs come and
    /// go.
    fn may_be_stale(&mut self, address: u64, kind: SymbolKind) -> bool {
        if !self.running || self.read_at.is_none_or(|at| at.elapsed() <= REREAD) {
            return false;
        }
        let found = self.symbols.as_mut().and_then(|symbols| symbols.find(address, kind).ok()).flatten();
        found.is_none_or(|found| found.module.trim_matches(['[', ']']) == BPF)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn symbols_of(root: &Path) -> KernelSymbols {
        KernelSymbols::new(root.to_owned(), Some(root.join("proc/kallsyms")), true)
    }

    fn tree(kallsyms: &str) -> (tempfile::TempDir, KernelSymbols) {
        let root = tempfile::tempdir().expect("a directory");
        std::fs::create_dir(root.path().join("proc")).expect("a directory");
        std::fs::write(root.path().join("proc/kallsyms"), kallsyms).expect("written");
        let symbols = symbols_of(root.path());
        (root, symbols)
    }

    const SOME: &str = "\
ffffffff81000000 t local_alias
ffffffff81000000 T _stext
ffffffff81000100 T schedule
ffffffff82000000 D jiffies
0000000000001000 A percpu
ffffffffc0000000 t mod_fn\t[ext4]
ffffffffc0001000 t bpf_prog_1234_x\t[bpf]
";

    #[test]
    fn functions_variables_and_modules() {
        let (_root, mut kernel) = tree(SOME);
        let name = |name, offset, module| Ok(NearestSymbol { name, offset, module });
        assert_eq!(kernel.function(0xffff_ffff_8100_0010), name("_stext", 0x10, KERNEL));
        assert_eq!(kernel.function(0xffff_ffff_8100_0110), name("schedule", 0x10, KERNEL));
        assert_eq!(kernel.variable(0xffff_ffff_8200_0004), name("jiffies", 4, KERNEL));
        assert_eq!(kernel.function(0xffff_ffff_c000_0004), name("mod_fn", 4, "[ext4]"));
        assert_eq!(kernel.function(0xffff_ffff_c000_1004), name("bpf_prog_1234_x", 4, "[bpf]"));
        assert_eq!(kernel.function(0xffff_ffff_9000_0000), Err(Reason::NoSymbol));
        assert_eq!(kernel.variable(0xffff_8880_0000_0000), Err(Reason::NoSymbol));
    }

    #[test]
    fn what_was_read_ahead_is_found() {
        let (_root, mut kernel) = tree(SOME);
        kernel.read_ahead(0xffff_ffff_8100_0110);
        // A second call changes nothing, whether or not the first one's thread has ended.
        kernel.read_ahead(u64::MAX);
        let name = |name, offset, module| Ok(NearestSymbol { name, offset, module });
        assert_eq!(kernel.function(0xffff_ffff_8100_0010), name("_stext", 0x10, KERNEL));
        assert!(kernel.ahead.is_none());
        kernel.read_ahead(u64::MAX);
        assert!(kernel.ahead.is_none(), "there is nothing to read");
        assert_eq!(kernel.function(0xffff_ffff_c000_0004), name("mod_fn", 4, "[ext4]"));

        let mut none = symbols_of(Path::new("/nonexistent"));
        none.read_ahead(1);
        assert_eq!(none.function(1), Err(Reason::KernelHidden));
    }

    #[test]
    fn hidden_addresses_are_hidden() {
        let (_root, mut kernel) = tree("0000000000000000 T _stext\n0000000000000000 D jiffies\n");
        assert_eq!(kernel.function(0xffff_ffff_8100_0010), Err(Reason::KernelHidden));
        let mut none = symbols_of(Path::new("/nonexistent"));
        assert_eq!(none.variable(1), Err(Reason::KernelHidden));

        let visible = |text: &str| addresses_visible(tree(text).0.path());
        assert!(visible(SOME) && visible("0000000000000000 A percpu\nffffffff81000000 T _stext\n"));
        assert!(!visible("0000000000000000 T _stext\n0000000000000000 D jiffies\n") && !visible(""));
        assert!(!addresses_visible(Path::new("/nonexistent")));
    }

    #[test]
    fn the_running_kernel_where_it_may_be_seen() {
        let text = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
        let line = text.lines().find(|line| line.ends_with(" T schedule")).unwrap_or_default();
        let address = u64::from_str_radix(line.get(..16).unwrap_or("0"), 16).unwrap_or(0);
        if address == 0 {
            return;
        }
        let mut kernel = symbols_of(Path::new("/"));
        let found = kernel.function(address + 1).expect("known");
        assert_eq!((found.name, found.offset, found.module), ("schedule", 1, KERNEL));
        assert!(kernel.build_id(KERNEL).is_some());
    }
}
