//! Writes a struct in the language of the code that uses it.

use super::AdvisedMember;
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

    /// Returns a type as the language writes it, from a name with the keyword of C.
    pub fn type_name(self, name: &str) -> String {
        match self {
            Self::C => name.to_owned(),
            Self::Cpp | Self::Rust => ["struct ", "union ", "enum "]
                .iter()
                .fold(name.to_owned(), |name, word| name.replace(word, "")),
        }
    }

    fn member(self, member: &AdvisedMember) -> String {
        let (ty, name) = (&member.type_name, &member.name);
        match self {
            Self::Rust => format!("{name}: {},", rust_type(ty)),
            // The brackets of an array follow the name.
            Self::C | Self::Cpp => match ty.find('[') {
                Some(at) => format!("{} {name}{};", &ty[..at], &ty[at..]),
                None => format!("{ty} {name};"),
            },
        }
    }
}

/// Returns an array as Rust writes it: debug information has `u8[4]`.
fn rust_type(name: &str) -> String {
    match name.strip_suffix(']').and_then(|inner| inner.rsplit_once('[')) {
        Some((element, count)) if !name.starts_with('[') && count.parse::<u64>().is_ok() => {
            format!("[{}; {count}]", rust_type(element))
        }
        _ => name.to_owned(),
    }
}

/// Returns the definition of a struct, with a comment for each member.
pub(super) fn definition(name: &str, members: &[AdvisedMember], size: u64, language: Language) -> String {
    let apart = members.iter().any(|member| member.write_shared);
    let all: u64 = members.iter().fold(0_u64, |sum, member| sum.saturating_add(member.samples));
    let name = match language {
        Language::C => name.to_owned(),
        Language::Cpp | Language::Rust => name.rsplit("::").next().unwrap_or(name).to_owned(),
    };
    let mut out = match (language, apart) {
        (Language::Rust, true) => format!("#[repr(C, align({LINE}))]\nstruct {name} {{\n"),
        (Language::Rust, false) => format!("#[repr(C)]\nstruct {name} {{\n"),
        _ => format!("struct {name} {{\n"),
    };
    let mut end = 0;
    for (number, member) in members.iter().enumerate() {
        let text = language.member(member);
        let text = match (language, member.write_shared || (apart && number == 0)) {
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
