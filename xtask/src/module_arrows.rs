//! Which modules of a crate use which others, as the paths in its source say.
//!
//! A module here is one at the root of a crate, with all modules below it. Tests are left out: they
//! may use any module.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// The names that each name uses.
pub type Arrows = BTreeMap<String, BTreeSet<String>>;

/// The name of a crate's root file among its modules.
pub const ROOT: &str = "(root)";

/// Returns the modules in the folder of a crate's source, each with the other modules that it
/// names, and the root file (`lib.rs`, `main.rs`) as [`ROOT`]. What the root re-exports is named in
/// the module that it comes from.
pub fn modules(source: &Path) -> Arrows {
    let files = files(source);
    let top = |file: &SourceFile| file.path.first().cloned();
    let known: BTreeSet<String> = files.iter().filter_map(top).collect();
    let root: String = files.iter().filter(|file| file.path.is_empty()).map(|file| &*file.code).collect();
    let mut root = Root::of(&root, &known);
    for file in files.iter().filter(|file| !file.path.is_empty()) {
        root.names.extend(file.exported_macros().map(|name| (name, file.path[0].clone())));
    }
    let mut arrows = Arrows::from([(ROOT.to_owned(), root.uses.clone())]);
    for file in files.iter().filter(|file| !file.path.is_empty()) {
        let to = arrows.entry(file.path[0].clone()).or_default();
        to.extend(file.names_at_the_root().iter().flat_map(|name| root.modules_of(name)));
        to.remove(&file.path[0]);
    }
    arrows
}

/// Returns a path from a name back to itself, if there is one.
pub fn circle(arrows: &Arrows) -> Option<Vec<String>> {
    fn walk<'a>(arrows: &'a Arrows, path: &mut Vec<&'a str>, done: &mut BTreeSet<&'a str>) -> bool {
        let Some(last) = path.last().copied() else { return false };
        for next in arrows.get(last).into_iter().flatten() {
            let start = path.iter().position(|name| name == next);
            path.push(next);
            if let Some(start) = start {
                path.drain(..start);
                return true;
            }
            if !done.contains(next.as_str()) && walk(arrows, path, done) {
                return true;
            }
            path.pop();
        }
        done.insert(last);
        false
    }
    let mut done = BTreeSet::new();
    arrows.keys().find_map(|name| {
        let mut path = vec![name.as_str()];
        walk(arrows, &mut path, &mut done).then(|| path.into_iter().map(str::to_owned).collect())
    })
}

/// A source file without its tests and comments.
struct SourceFile {
    /// The module of the file, from the root of the crate; empty for a root file.
    path: Vec<String>,
    code: String,
}

impl SourceFile {
    /// Returns the names at the root of the crate that the file uses: the first names after
    /// `crate::`, and after as many `super::` as lead to the root.
    fn names_at_the_root(&self) -> Vec<String> {
        let to_the_root = "super::".repeat(self.path.len());
        let mut names = Vec::new();
        for prefix in ["crate::", &to_the_root] {
            for (at, _) in self.code.match_indices(prefix) {
                let (before, behind) = (&self.code[..at], &self.code[at + prefix.len()..]);
                if !before.ends_with(is_of_a_word) && !behind.starts_with("super::") {
                    names.extend(heads(behind));
                }
            }
        }
        names
    }

    /// Returns the macros that the file puts at the root of the crate.
    fn exported_macros(&self) -> impl Iterator<Item = String> {
        self.code.split("#[macro_export]\nmacro_rules! ").skip(1).filter_map(word)
    }
}

/// Returns the files of a crate, except its tests.
fn files(source: &Path) -> Vec<SourceFile> {
    let mut files = Vec::new();
    let mut folders = vec![source.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            let below = path.strip_prefix(source).unwrap();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") && !is_test(below) {
                let mut module: Vec<String> =
                    below.with_extension("").iter().map(|part| part.to_string_lossy().into_owned()).collect();
                if module.last().is_some_and(|name| name == "mod")
                    || ["lib", "main"].map(|root| vec![root.to_owned()]).contains(&module)
                {
                    module.pop();
                }
                files.push(SourceFile { path: module, code: code(&fs::read_to_string(&path).unwrap()) });
            }
        }
    }
    files
}

/// Returns whether a file is a test.
fn is_test(path: &Path) -> bool {
    path.components().any(|part| {
        let part = part.as_os_str().to_string_lossy();
        let name = part.trim_end_matches(".rs");
        ["tests", "testing", "fixture"].contains(&name) || name.ends_with("_tests")
    })
}

/// Returns the lines of a file that are neither comments nor belong to an item of
/// `#[cfg(test)]`. The end of an item is recognized by the indentation that rustfmt gives it.
fn code(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut code = String::new();
    while let Some(line) = lines.next() {
        let Some(indent) = line.strip_suffix("#[cfg(test)]") else {
            code += line;
            code.push('\n');
            continue;
        };
        let (attribute, end) = (format!("{indent}#["), format!("{indent}}}"));
        let mut in_block = false;
        for line in lines.by_ref().skip_while(|line| line.starts_with(&attribute)) {
            in_block |= line.ends_with('{');
            if line.starts_with(&end) || !in_block && line.ends_with([';', ',', '}']) {
                break;
            }
        }
    }
    code
}

/// What the modules of a crate can name in its root.
struct Root {
    /// The modules, and the names that the root takes from them.
    names: BTreeMap<String, String>,
    /// The modules of which the root takes all names.
    globs: BTreeSet<String>,
    /// The items that the root defines.
    own: BTreeSet<String>,
    /// The modules that these items use.
    uses: BTreeSet<String>,
}

impl Root {
    fn of(code: &str, modules: &BTreeSet<String>) -> Self {
        let names = modules.iter().map(|module| (module.clone(), module.clone())).collect();
        let mut root = Self { names, globs: BTreeSet::new(), own: BTreeSet::new(), uses: BTreeSet::new() };
        let mut rest = String::new();
        for statement in code.split_inclusive(';') {
            let Some((before, import)) = statement.rsplit_once("pub use ") else {
                rest += statement;
                continue;
            };
            rest += before;
            let Some((module, taken)) = import.split_once("::") else { continue };
            if !modules.contains(module) {
                continue;
            }
            for name in taken.split([',', '{', '}', ';']).map(str::trim).filter(|name| !name.is_empty()) {
                match name.rsplit([':', ' ']).next().unwrap_or_default() {
                    "*" => _ = root.globs.insert(module.to_owned()),
                    name => _ = root.names.insert(name.to_owned(), module.to_owned()),
                }
            }
        }
        let words: Vec<&str> = rest.split(|c| !is_of_a_word(c)).filter(|word| !word.is_empty()).collect();
        let kinds = ["fn", "struct", "enum", "union", "trait", "type", "const", "static", "macro_rules"];
        root.own.extend(words.windows(2).filter(|two| kinds.contains(&two[0])).map(|two| two[1].to_owned()));
        for module in modules {
            let named = rest.match_indices(&format!("{module}::")).any(|(at, _)| {
                let before = &rest[..at];
                !before.ends_with(is_of_a_word) && (!before.ends_with(':') || before.ends_with("crate::"))
            });
            if named {
                root.uses.insert(module.clone());
            }
        }
        root
    }

    /// Returns the modules that a name at the root can come from.
    fn modules_of(&self, name: &str) -> Vec<String> {
        match self.names.get(name) {
            Some(module) => vec![module.clone()],
            None if self.own.contains(name) => vec![ROOT.to_owned()],
            None => self.globs.iter().cloned().collect(),
        }
    }
}

/// Returns the first name of a path, or of each path in a group up to its closing brace.
fn heads(path: &str) -> Vec<String> {
    let Some(group) = path.strip_prefix('{') else { return word(path).into_iter().collect() };
    let (mut depth, mut start, mut heads) = (0, true, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => start = true,
            c if start && !c.is_whitespace() => {
                heads.extend(word(&group[at..]));
                start = false;
            }
            _ => {}
        }
    }
    heads
}

fn word(text: &str) -> Option<String> {
    let end = text.find(|c| !is_of_a_word(c)).unwrap_or(text.len());
    (end > 0).then(|| text[..end].to_owned())
}

fn is_of_a_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    /// Writes the files of a crate, and returns the arrows between its modules.
    fn arrows(files: &[(&str, &str)]) -> Arrows {
        let source = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = source.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        modules(source.path())
    }

    #[test]
    fn an_arrow_is_found_however_it_is_written() {
        let text = "//! crate::doc\nuse crate::{\n    a::{self, b},\n    c,\n};\nuse crate::d::e;\n\
                    #[cfg(test)]\nmod tests;\n\nfn f() { crate::g::h() }\n\
                    #[cfg(test)]\n#[path = \"x\"]\nmod inline {\n    use crate::i;\n}\nuse crate::j;\n";
        let file = SourceFile { path: vec!["x".into()], code: code(text) };
        assert_eq!(
            file.names_at_the_root().into_iter().collect::<BTreeSet<_>>(),
            set(&["a", "c", "d", "g", "j"])
        );
    }

    #[test]
    fn what_the_root_re_exports_is_of_its_module() {
        let arrows = arrows(&[
            (
                "lib.rs",
                "mod a;\nmod b;\nmod c;\npub use a::{deep::A, B as Renamed};\npub use b::*;\nfn own() {}\n",
            ),
            ("a.rs", "#[macro_export]\nmacro_rules! exported {\n}\n"),
            ("b.rs", "use crate::A;\n"),
            ("c/mod.rs", "use super::Renamed;\n"),
            ("c/below.rs", "use super::super::Anything;\nuse super::b;\n"),
            ("d.rs", "crate::exported! {}\n"),
            ("e.rs", "use super::own;\n"),
        ]);
        for (module, uses) in
            [("a", &[][..]), ("b", &["a"]), ("c", &["a", "b"]), ("d", &["a"]), ("e", &[ROOT])]
        {
            assert_eq!(arrows[module], set(uses), "{module}");
        }
    }

    #[test]
    fn a_circle_is_found_wherever_it_passes() {
        let found = |files: &[(&str, &str)]| circle(&arrows(files)).map(|names| names.join(" -> "));
        let one_way = [("lib.rs", "mod a;\nmod b;\n"), ("a.rs", "use crate::b::B;\n"), ("b.rs", "")];
        assert_eq!(found(&one_way), None);

        let direct = [("a.rs", "use crate::b::B;\n"), ("b/mod.rs", ""), ("b/below.rs", "use crate::a::A;\n")];
        assert_eq!(found(&direct).as_deref(), Some("a -> b -> a"));

        let through_a_name =
            [("lib.rs", "pub use a::A;\n"), ("a.rs", "use crate::b::B;\n"), ("b.rs", "use super::A;\n")];
        assert_eq!(found(&through_a_name).as_deref(), Some("a -> b -> a"));

        let through_the_root = [("lib.rs", "static ALL: &[A] = &[a::A];\n"), ("a.rs", "use crate::ALL;\n")];
        assert_eq!(found(&through_the_root).as_deref(), Some("(root) -> a -> (root)"));

        let of_a_test =
            [("a.rs", "use crate::b::B;\n"), ("b/mod.rs", ""), ("b/tests.rs", "use crate::a::A;\n")];
        assert_eq!(found(&of_a_test), None);
    }
}
