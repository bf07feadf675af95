//! Reads `/proc/kallsyms`, as far as somebody asks.
//!
//! The kernel formats some 150,000 lines for a whole read, which took longer than all else that a
//! short run did. It lists the symbols of its own image first, by address (`get_symbol_pos()` in
//! kernel/kallsyms.c searches that table by halves), and functions before variables. So for an
//! address of the image, a read ends behind it. What modules and BPF programs have added follows in
//! no order, and takes the whole file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use memchr::memchr;

/// Maximum sizes in bytes. kallsyms contains no sizes, so an address farther than this from a
/// symbol does not belong to it.
const MAX_FUNCTION: u64 = 256 << 10;
const MAX_VARIABLE: u64 = 4 << 20;
/// The module name of code and data that are linked into the kernel.
pub const KERNEL: &str = "[kernel]";

/// Whether a symbol is a function or a variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SymbolKind {
    /// A function.
    Code,
    /// A variable.
    Data,
}

/// One symbol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Symbol {
    address: u64,
    /// Whether the name is local; sorts global names first at the same address.
    local: bool,
    length: u16,
    module: u16,
    name: u32,
}

/// The symbols of one read, as far as it has come.
#[derive(Debug)]
pub struct Kallsyms {
    /// The rest of the file; `None` at its end.
    rest: Option<Unread>,
    code: Vec<Symbol>,
    data: Vec<Symbol>,
    names: Vec<u8>,
    modules: Vec<String>,
    /// The address of the last line.
    last: u64,
    /// Whether all lines so far are of the kernel's image, and in order.
    ordered: bool,
}

/// What of the file was not read, or not parsed.
#[derive(Debug)]
struct Unread {
    file: File,
    /// The start of a line whose end was not read.
    begun: Vec<u8>,
}

/// A symbol at or before an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NearestSymbol<'a> {
    /// The name of the symbol.
    pub name: &'a str,
    /// The offset of the address from the symbol's start, in bytes.
    pub offset: u64,
    /// [`KERNEL`], or a module's name in brackets.
    pub module: &'a str,
}

impl Kallsyms {
    /// Opens a file of lines of the form `address type name`; for modules, `[module]` follows after
    /// a tab. If it is not the `running` kernel's own, reads all of it, because a copy may have any
    /// order.
    ///
    /// # Errors
    ///
    /// Returns the error of opening or reading the file.
    pub fn open(path: &Path, running: bool) -> io::Result<Self> {
        let mut kallsyms = Self {
            rest: Some(Unread { file: File::open(path)?, begun: Vec::new() }),
            code: Vec::new(),
            data: Vec::new(),
            names: Vec::new(),
            modules: vec![KERNEL.to_owned()],
            last: 0,
            ordered: true,
        };
        if !running {
            kallsyms.read_all()?;
        }
        Ok(kallsyms)
    }

    /// Returns whether the file has no function at all: the kernel hides its addresses.
    pub fn is_hidden(&self) -> bool {
        self.rest.is_none() && self.code.is_empty()
    }

    /// Returns whether the whole file was read.
    pub fn is_complete(&self) -> bool {
        self.rest.is_none()
    }

    /// Returns the symbol that `address` belongs to.
    ///
    /// # Errors
    ///
    /// Returns the error of reading the file.
    pub fn find(&mut self, address: u64, kind: SymbolKind) -> io::Result<Option<NearestSymbol<'_>>> {
        self.read_past(address)?;
        if self.symbol(address, kind).is_none() {
            self.read_all()?;
        }
        Ok(self.symbol(address, kind).map(|symbol| NearestSymbol {
            name: self.name(&symbol),
            offset: address - symbol.address,
            module: self.modules.get(usize::from(symbol.module)).map_or(KERNEL, String::as_str),
        }))
    }

    /// Reads the symbols up to `address`. An error is not returned here: the next lookup meets it
    /// again.
    pub fn read_ahead(&mut self, address: u64) {
        let _error = self.read_past(address);
    }

    /// Returns the number of bytes from the start of a function to the next one; `None` if there is
    /// no next one.
    ///
    /// # Errors
    ///
    /// Returns the error of reading the file.
    pub fn size_at(&mut self, start: u64) -> io::Result<Option<u64>> {
        self.read_past(start.saturating_add(MAX_FUNCTION))?;
        match self.code.get(self.code.partition_point(|symbol| symbol.address <= start)) {
            Some(next) => Ok(Some((next.address - start).min(MAX_FUNCTION))),
            None if self.is_complete() => Ok(None),
            None => Ok(Some(MAX_FUNCTION)),
        }
    }

    fn name(&self, symbol: &Symbol) -> &str {
        let begin = symbol.name as usize;
        let name = self.names.get(begin..begin + usize::from(symbol.length)).unwrap_or_default();
        std::str::from_utf8(name).unwrap_or_default()
    }

    /// Returns the address of the first symbol with a name, a variable before a function. This
    /// reads the whole file.
    ///
    /// # Errors
    ///
    /// Returns the error of reading the file.
    pub fn address_of(&mut self, name: &str) -> io::Result<Option<u64>> {
        self.read_all()?;
        let named = |symbol: &&Symbol| self.name(symbol) == name;
        Ok(self.data.iter().chain(&self.code).find(named).map(|symbol| symbol.address))
    }

    fn symbol(&self, address: u64, kind: SymbolKind) -> Option<Symbol> {
        let (symbols, farthest) = match kind {
            SymbolKind::Code => (&self.code, MAX_FUNCTION),
            SymbolKind::Data => (&self.data, MAX_VARIABLE),
        };
        let after = symbols.partition_point(|symbol| symbol.address <= address);
        let at = symbols.get(after.checked_sub(1)?)?.address;
        let first = symbols.partition_point(|symbol| symbol.address < at);
        symbols.get(first).filter(|symbol| address - symbol.address < farthest).copied()
    }

    /// Reads until a line of the kernel's image is behind `address`.
    fn read_past(&mut self, address: u64) -> io::Result<()> {
        while self.rest.is_some() && !(self.ordered && self.last > address) {
            self.read_more()?;
        }
        Ok(())
    }

    fn read_all(&mut self) -> io::Result<()> {
        while self.rest.is_some() {
            self.read_more()?;
        }
        Ok(())
    }

    fn read_more(&mut self) -> io::Result<()> {
        /// The kernel returns a page at most.
        const CHUNK: usize = 4 << 10;
        let Some(mut unread) = self.rest.take() else { return Ok(()) };
        let begun = unread.begun.len();
        unread.begun.resize(begun + CHUNK, 0);
        let read = loop {
            match unread.file.read(&mut unread.begun[begun..]) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                result => break result?,
            }
        };
        unread.begun.truncate(begun + read);
        // At the end of the file, what was begun is a line.
        let end = match unread.begun.iter().rposition(|&byte| byte == b'\n') {
            _ if read == 0 => unread.begun.len(),
            Some(newline) => newline + 1,
            None => 0,
        };
        let mut lines = &unread.begun[..end];
        while !lines.is_empty() {
            let (line, rest) = lines.split_at(memchr(b'\n', lines).unwrap_or(lines.len()));
            self.take_line(line);
            lines = rest.get(1..).unwrap_or_default();
        }
        if read == 0 {
            self.finish();
        } else {
            unread.begun.drain(..end);
            self.rest = Some(unread);
        }
        Ok(())
    }

    /// Takes a line. Malformed ones are skipped.
    fn take_line(&mut self, line: &[u8]) {
        let (mut address, mut digits) = (0u64, 0);
        for &byte in line {
            let digit = match byte {
                b'0'..=b'9' => byte - b'0',
                b'a'..=b'f' => byte - b'a' + 10,
                b'A'..=b'F' => byte - b'A' + 10,
                _ => break,
            };
            address = address << 4 | u64::from(digit);
            digits += 1;
        }
        if !(1..=16).contains(&digits) || address == 0 {
            return;
        }
        let [b' ', kind, b' ', name @ ..] = &line[digits..] else { return };
        let (name, module) = name.split_at(memchr(b'\t', name).unwrap_or(name.len()));
        self.take(address, *kind, name, module.trim_ascii());
    }

    fn take(&mut self, address: u64, kind: u8, name: &[u8], module: &[u8]) {
        self.ordered &= module.is_empty() && address >= self.last;
        self.last = address;
        let symbols = match kind.to_ascii_lowercase() {
            b't' | b'w' => &mut self.code,
            b'd' | b'b' | b'r' | b'v' => &mut self.data,
            _ => return,
        };
        if name.is_empty() {
            return;
        }
        let module = match module {
            [] => 0,
            module => {
                if self.modules.last().is_none_or(|last| last.as_bytes() != module) {
                    self.modules.push(String::from_utf8_lossy(module).into_owned());
                }
                self.modules.len() - 1
            }
        };
        let begin = self.names.len();
        if name.is_ascii() {
            self.names.extend_from_slice(name.trim_ascii_end());
        } else {
            self.names.extend_from_slice(String::from_utf8_lossy(name).as_bytes());
        }
        let symbol = Symbol {
            address,
            local: kind.is_ascii_lowercase(),
            length: u16::try_from(self.names.len() - begin).unwrap_or(u16::MAX),
            module: module as u16,
            name: begin as u32,
        };
        // Aliases follow each other: the first one is the one to be found.
        let alias = |before: &Symbol| before.address == address && before.local && !symbol.local;
        let mut at = symbols.len();
        while at > 0 && symbols.get(at - 1).is_some_and(alias) {
            at -= 1;
        }
        symbols.insert(at, symbol);
    }

    fn finish(&mut self) {
        if !self.ordered {
            self.code.sort_by_key(|symbol| (symbol.address, symbol.local));
            self.data.sort_by_key(|symbol| (symbol.address, symbol.local));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    /// 40,000 functions of 64 bytes, as many variables behind them, and one module before them all.
    fn listing() -> String {
        let mut text = String::from("0000000000001000 A percpu\n");
        for number in 0..40_000u64 {
            let _ = writeln!(text, "{:016x} T f{number}", 0xffff_ffff_8100_0000 + 64 * number);
        }
        for number in 0..40_000u64 {
            let _ = writeln!(text, "{:016x} d v{number}", 0xffff_ffff_8200_0000 + 64 * number);
        }
        text + "ffffffff80000000 t mod_fn\t[ext4]\nffffffff80000100 d mod_data\t[ext4]\n"
    }

    fn open(text: &str, running: bool) -> (tempfile::NamedTempFile, Kallsyms) {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), text).expect("written");
        let kallsyms = Kallsyms::open(file.path(), running).expect("opened");
        (file, kallsyms)
    }

    fn name(kallsyms: &mut Kallsyms, address: u64, kind: SymbolKind) -> Option<String> {
        let found = kallsyms.find(address, kind).expect("read");
        found.map(|found| format!("{}+{:#x} {}", found.name, found.offset, found.module))
    }

    #[test]
    fn a_read_ends_behind_the_address_and_goes_on_from_there() {
        let (_file, mut kallsyms) = open(&listing(), true);
        let code = SymbolKind::Code;
        assert_eq!(name(&mut kallsyms, 0xffff_ffff_8100_0041, code).as_deref(), Some("f1+0x1 [kernel]"));
        assert!(kallsyms.code.len() < 1_000, "{}", kallsyms.code.len());
        assert_eq!(name(&mut kallsyms, 0xffff_ffff_8108_0000, code).as_deref(), Some("f8192+0x0 [kernel]"));
        assert!((8_192..10_000).contains(&kallsyms.code.len()) && !kallsyms.is_complete());
        // A module is anywhere.
        assert_eq!(name(&mut kallsyms, 0xffff_ffff_8000_0004, code).as_deref(), Some("mod_fn+0x4 [ext4]"));
        assert!(kallsyms.is_complete());
        assert_eq!(name(&mut kallsyms, 0xffff_ffff_8100_0041, code).as_deref(), Some("f1+0x1 [kernel]"));
    }

    #[test]
    fn every_order_of_questions_has_the_answers_of_a_whole_read() {
        let text = listing();
        let asked =
            [0xffff_ffff_8000_0101, 0xffff_ffff_8209_0003, 0xffff_ffff_8110_0010, 0x1000, u64::MAX, 0];
        let (_file, mut whole) = open(&text, false);
        for first in asked {
            let (_file, mut kallsyms) = open(&text, true);
            for address in [first].into_iter().chain(asked) {
                for kind in [SymbolKind::Code, SymbolKind::Data] {
                    assert_eq!(
                        name(&mut kallsyms, address, kind),
                        name(&mut whole, address, kind),
                        "{address:x}"
                    );
                }
                let (size, all) = (kallsyms.size_at(address), whole.size_at(address));
                assert_eq!(size.expect("read"), all.expect("read"), "{address:x}");
            }
        }
    }

    #[test]
    fn global_names_are_found_first_and_malformed_lines_are_skipped() {
        let (_file, mut kallsyms) = open(
            "ffffffff81000000 t local\nffffffff81000000 t other\nffffffff81000000 T global\n\
             ffffffff81000000 T alias\n\n \nzz T no\n00000000000000001 T long\nffffffff8100 T\n\
             ffffffff81000008\nffffffff81000010 T last",
            true,
        );
        assert_eq!(
            name(&mut kallsyms, 0xffff_ffff_8100_0000, SymbolKind::Code).as_deref(),
            Some("global+0x0 [kernel]")
        );
        assert_eq!(
            name(&mut kallsyms, 0xffff_ffff_8100_0011, SymbolKind::Code).as_deref(),
            Some("last+0x1 [kernel]")
        );
        assert_eq!(kallsyms.code.len(), 5);
    }
}
