//! Writes a struct in the language of the code that uses it.

use super::AdvisedMember;
use super::packing::Packed;
use crate::cache_line::LINE;
use precise_model::text::sanitize;

/// A language.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Language {
    C,
    Cpp,
    Rust,
}

impl Language {
    /// Returns the language of a source file.
    pub fn of(file: &str) -> Self {
        match file.rsplit('.').next() {
            Some("rs") => Self::Rust,
            Some("cc" | "cpp" | "cxx" | "hpp" | "hh" | "C") => Self::Cpp,
            _ => Self::C,
        }
    }

    /// Returns a type as the language writes it in the module of the type `of`, from a name with
    /// the keyword of C; `None` if debug information does not name it, as for pointers to
    /// functions.
    pub fn type_name(self, name: &str, of: &str) -> Option<String> {
        if !is_named(name) {
            return None;
        }
        let plain =
            || ["struct ", "union ", "enum "].iter().fold(name.to_owned(), |n, word| n.replace(word, ""));
        Some(match self {
            Self::C => name.to_owned(),
            Self::Cpp => plain(),
            Self::Rust => rust_type(&in_module(&plain(), of)),
        })
    }

    /// Returns the declaration of a member of a struct of `whole` bytes.
    fn member(self, member: &AdvisedMember, whole: u64) -> String {
        let name = &member.name;
        let ty = if member.declared_before { self.bytes(member, whole) } else { member.type_name.clone() };
        match self {
            Self::Rust => format!("{name}: {ty},"),
            // The brackets of an array follow the name.
            Self::C | Self::Cpp => match ty.find('[') {
                Some(at) => format!("{} {name}{};", &ty[..at], &ty[at..]),
                None => format!("{ty} {name};"),
            },
        }
    }

    /// Returns a type with the bytes of a member, in place of one without a name.
    fn bytes(self, member: &AdvisedMember, whole: u64) -> String {
        // At least as aligned as the member, because its size is a multiple of its alignment, and
        // no more than where it is and the size of the struct allow.
        let fits = |unit: &u64| [member.size, member.offset, whole].iter().all(|n| n.is_multiple_of(*unit));
        let unit = [8, 4, 2].into_iter().find(fits).unwrap_or(1);
        let count = member.size / unit;
        let word = match (self, unit) {
            (Self::Rust, _) => return format!("[u{}; {count}]", unit * 8),
            (_, 8) => "unsigned long",
            (_, 4) => "unsigned int",
            (_, 2) => "unsigned short",
            _ => "unsigned char",
        };
        format!("{word}[{count}]")
    }
}

/// Returns whether debug information names a type, so that it can be declared by its name.
fn is_named(name: &str) -> bool {
    let element = |array: &str| -> Option<usize> {
        let element = array.strip_suffix(']')?.trim_end_matches(|c: char| c.is_ascii_digit());
        element.strip_suffix('[').map(str::len)
    };
    // What a pointer points to, and the element of an array.
    let mut of = name;
    while let Some(end) = of.strip_suffix(['*', '&']).map(str::len).or_else(|| element(of)) {
        of = of.get(..end).unwrap_or_default();
    }
    // Types without a name, closures, names that were cut, and the traits of closures, whose
    // parameters only the compiler may write in this form.
    let unnamed = ["", "struct", "union", "enum", "function"];
    !unnamed.contains(&of)
        && !["{", "…", "(anonymous", "::function::Fn"].iter().any(|part| name.contains(part))
}

/// The paths of the standard library that debug information has, and that a program cannot use. In
/// the first column is the start of a path, in the second what it is instead.
const PATHS: [(&str, &str); 16] = [
    ("alloc::vec::Vec", "Vec"),
    ("alloc::string::String", "String"),
    ("alloc::boxed::Box", "Box"),
    ("core::option::Option", "Option"),
    ("core::result::Result", "Result"),
    ("alloc::collections::btree::map::", "std::collections::"),
    ("alloc::collections::btree::set::", "std::collections::"),
    ("alloc::collections::vec_deque::", "std::collections::"),
    ("alloc::collections::binary_heap::", "std::collections::"),
    ("std::collections::hash::map::", "std::collections::"),
    ("std::collections::hash::set::", "std::collections::"),
    ("std::sync::poison::mutex::", "std::sync::"),
    ("std::sync::poison::rwlock::", "std::sync::"),
    ("std::sync::poison::condvar::", "std::sync::"),
    ("alloc::", "std::"),
    ("core::", "std::"),
];
/// The parameters of types of the standard library that programs leave out.
const LEFT_OUT: [&str; 2] = [", alloc::alloc::Global", ", std::hash::random::RandomState"];

/// Returns a type of Rust as the module of the type `of` names it: debug information has the whole
/// path of each type.
fn in_module(name: &str, of: &str) -> String {
    let name = LEFT_OUT.iter().fold(name.to_owned(), |name, left_out| name.replace(left_out, ""));
    let of = of.split('<').next().unwrap_or_default();
    let module = of.rsplit_once("::").map_or("", |(module, _)| module);
    let own_crate = of.split("::").next().unwrap_or_default();
    let path = |path: &str| {
        if let Some((from, to)) = PATHS.iter().find(|(from, _)| path.starts_with(from)) {
            return format!("{to}{}", path.strip_prefix(from).unwrap_or_default());
        }
        let within = |outer: &str| path.strip_prefix(outer)?.strip_prefix("::").map(str::to_owned);
        let own = within(module).filter(|_| !module.is_empty());
        own.or_else(|| within(own_crate).map(|rest| format!("crate::{rest}")))
            .unwrap_or_else(|| path.to_owned())
    };
    let (mut out, mut rest) = (String::new(), name.as_str());
    while !rest.is_empty() {
        let is_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
        let end = rest.find(|c| !is_path(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        out += &path(word);
        let next = behind.find(is_path).unwrap_or(behind.len());
        let (other, behind) = behind.split_at(next);
        out += other;
        rest = behind;
    }
    out
}

/// Returns an array as Rust writes it, and a reference with a lifetime: debug information has
/// `u8[4]` and `&str`.
fn rust_type(name: &str) -> String {
    if let Some(to) = name.strip_prefix('&').filter(|to| !to.starts_with('\'')) {
        return format!("&'a {to}");
    }
    match name.strip_suffix(']').and_then(|inner| inner.rsplit_once('[')) {
        Some((element, count)) if !name.starts_with('[') && count.parse::<u64>().is_ok() => {
            format!("[{}; {count}]", rust_type(element))
        }
        _ => name.to_owned(),
    }
}

/// Returns the definition of a struct, with a comment for each member.
pub(super) fn definition(
    name: &str,
    members: &[AdvisedMember],
    packed: &Packed,
    language: Language,
) -> String {
    let (size, apart) = (packed.size, !packed.apart.is_empty());
    let all: u64 = members.iter().fold(0_u64, |sum, member| sum.saturating_add(member.samples));
    // Of a generic type, this is one instance.
    let plain = name.split('<').next().unwrap_or(name);
    let instance =
        if plain == name { String::new() } else { format!("// {name}: put its parameters back\n") };
    let name = match language {
        Language::C => plain.to_owned(),
        Language::Cpp | Language::Rust => plain.rsplit("::").next().unwrap_or(plain).to_owned(),
    };
    // References have a lifetime, which debug information does not know.
    let borrows = language == Language::Rust
        && members.iter().any(|member| !member.declared_before && member.type_name.contains("&'a "));
    let lifetime = if borrows { "<'a>" } else { "" };
    let mut out = instance;
    out += &match (language, apart) {
        (Language::Rust, true) => format!("#[repr(C, align({LINE}))]\nstruct {name}{lifetime} {{\n"),
        (Language::Rust, false) => format!("#[repr(C)]\nstruct {name}{lifetime} {{\n"),
        _ => format!("struct {name} {{\n"),
    };
    let mut end = 0;
    for member in members {
        let text = language.member(member, size);
        let text = match (language, packed.apart.contains(&member.offset)) {
            (Language::C, true) => format!("_Alignas({LINE}) {text}"),
            (Language::Cpp, true) => format!("alignas({LINE}) {text}"),
            (Language::Rust, true) if member.offset > end => {
                let padding = member.offset - end;
                out += &format!("    _line{}: [u8; {padding}],\n", member.offset / LINE);
                text
            }
            _ => text,
        };
        let mut comment = format!("line {}", member.offset / LINE);
        if member.declared_before {
            comment += ", declare it as before";
        }
        if member.write_shared {
            comment += ", one thread writes it and another uses it";
        } else if member.samples > 0 {
            comment += &format!(", {:.1}%", member.samples as f64 / all.max(1) as f64 * 100.0);
        }
        out += &format!("    {text:<32} // {comment}\n");
        end = member.offset.saturating_add(member.size);
    }
    out += if language == Language::Rust { "}" } else { "};" };
    out += &format!(" // {size} bytes\n");
    sanitize_lines(&out)
}

/// Makes names from binaries safe, and keeps the lines.
fn sanitize_lines(text: &str) -> String {
    text.lines().map(|line| format!("{}\n", sanitize(line))).collect()
}
