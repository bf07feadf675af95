//! Types of compiled programs, and of programs whose debug information was damaged.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::*;
use crate::reader::copy::copy;
use crate::reader::elf::Headers;
use crate::reader::protocol::CodeOwner;

const LIST: &str = r#"
struct point { int x; int y; };
struct node { struct node *next; struct point at[2]; union { long whole; double real; } u; };
struct node table[4];
long walk(struct node *n) {
    long sum = 0;
    for (; n; n = n->next)
        sum += n->at[1].y + n->u.whole;
    return sum;
}
int first(void) { return table[0].at[0].y; }
int main(void) { return (int)walk(table) + first(); }
"#;

/// Compiles a program and returns its path.
pub(in crate::reader) fn compiled(folder: &Path, source: &str) -> PathBuf {
    compiled_with(folder, source, &[])
}

fn compiled_with(folder: &Path, source: &str, more: &[&str]) -> PathBuf {
    let [text, program] = ["a.c", "a"].map(|name| folder.join(name));
    std::fs::write(&text, source).unwrap();
    let flags = ["-O2", "-g", "-fno-inline", "-fno-ipa-icf"];
    let mut gcc = Command::new("gcc");
    gcc.args(flags).args(more).arg(&text).arg("-o").arg(&program).current_dir(folder);
    assert!(gcc.status().unwrap().success());
    program
}

/// Returns the address of a function of a program, and its size in bytes.
pub(in crate::reader) fn symbol(path: &Path, name: &str) -> (u64, u64) {
    let symbols = Command::new("nm").args(["-S", "--defined-only"]).arg(path).output().unwrap();
    let symbols = String::from_utf8(symbols.stdout).unwrap();
    let line = symbols.lines().find(|line| line.ends_with(&format!(" {name}"))).unwrap();
    let number = |text: &str| u64::from_str_radix(text, 16).unwrap();
    let fields: Vec<&str> = line.split_whitespace().collect();
    (number(fields[0]), number(fields[1]))
}

/// A function of a program: its address and its bytes.
fn function(path: &Path, name: &str) -> (u64, Vec<u8>) {
    let (start, size) = symbol(path, name);
    let file = File::open(path).unwrap();
    let offset = Headers::read(&file).unwrap().unwrap().offset_of_vaddr(start).unwrap();
    let mut bytes = vec![0; size as usize];
    file.read_exact_at(&mut bytes, offset).unwrap();
    (start, bytes)
}

/// Returns the types of all instructions of a function.
fn typed(path: &Path, name: &str) -> TypedCode {
    match asked(path, name, Split::Unknown) {
        FoundTypes::Code(code) => code,
        FoundTypes::Split(name) => panic!("split off to {name}"),
    }
}

fn asked(path: &Path, name: &str, split: Split<'_>) -> FoundTypes {
    asked_with(path, name, split, None)
}

fn asked_with(path: &Path, name: &str, split: Split<'_>, supplement: Option<&Path>) -> FoundTypes {
    let (start, bytes) = function(path, name);
    let wanted: Vec<u64> = decode(&bytes, start).iter().map(|i| i.offset).collect();
    let mut program = Program::of(&copied(path)).unwrap();
    let supplement = supplement.map(copied);
    program.supplement(supplement.as_ref().map(|copy| (1, copy))).unwrap();
    program
        .types(split, &FunctionCode { start, of: CodeOwner::Program, bytes: &bytes, wanted: &wanted })
        .unwrap()
}

fn copied(path: &Path) -> File {
    copy(&File::open(path).unwrap(), true).unwrap().file
}

/// Returns the fields that a function accesses, with the names of their types.
fn fields(code: &TypedCode) -> Vec<String> {
    let accesses = code.instructions.iter().flat_map(|instruction| &instruction.accesses);
    let mut fields: Vec<String> = accesses
        .filter_map(|access| access.object.ok())
        .map(|object| {
            let layout = &code.layouts[object.layout as usize];
            let field = layout.field_at(object.offset).map_or("", |field| &field.name);
            format!("{}.{field}+{}", layout.name, object.offset)
        })
        .collect();
    fields.sort();
    fields.dedup();
    fields
}

#[test]
fn fields_of_a_compiled_program_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = compiled(folder.path(), LIST);
    let walk = typed(&path, "walk");
    assert_eq!(fields(&walk), ["node.at+20", "node.next+0", "node.u+24"]);
    let layout = walk.layouts.iter().find(|layout| layout.name == "node").unwrap();
    assert_eq!((layout.size, layout.alignment), (32, 8));
    let first = typed(&path, "first");
    assert_eq!(fields(&first), ["node.at+12"]);
    assert_eq!((&*first.globals[0].name, first.globals[0].size), ("table", 128));
}

/// What two programs have in common, dwz(1) puts into a third file, to which both refer.
#[test]
fn what_is_in_a_supplementary_file_is_read_from_it() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["a", "b"].map(|name| {
        let home = folder.path().join(name);
        std::fs::create_dir(&home).unwrap();
        compiled(&home, LIST)
    });
    let common = folder.path().join("common.debug");
    let dwz = Command::new("dwz").arg("-m").arg(&common).args(&paths).status();
    assert!(dwz.expect("dwz, which `cargo xtask setup` installs").success());
    for path in &paths {
        let FoundTypes::Code(walk) = asked_with(path, "walk", Split::Unknown, Some(&common)) else {
            panic!("nothing was split off")
        };
        assert_eq!(fields(&walk), ["node.at+20", "node.next+0", "node.u+24"]);
        // Without the file, nothing is invented.
        assert!(!fields(&typed(path, "walk")).contains(&"node.at+20".to_owned()));
    }
}

#[test]
fn bit_fields_that_share_bytes_have_one_short_name() {
    let flags = r#"
        struct flags { unsigned a:1, b:1; short s; unsigned c:4, d:5, e:6, f:1; };
        void set(struct flags *all) { all->s = 1; all->b = 1; all->e = 2; }
        int main(void) { struct flags all[2]; set(all); set(all + 1); return all[0].s + all[1].s; }
    "#;
    let folder = tempfile::tempdir().unwrap();
    let path = compiled(folder.path(), flags);
    let set = typed(&path, "set");
    let layout = set.layouts.iter().find(|layout| layout.name == "flags").unwrap();
    let names: Vec<_> = layout.fields.iter().map(|field| field.name.as_str()).collect();
    assert_eq!(names, ["a:1,b:1", "s", "c:4 to f:1"]);
}

#[test]
fn compressed_sections_are_read() {
    for way in ["zlib", "zstd"] {
        let folder = tempfile::tempdir().unwrap();
        // Short sections stay as they are.
        let longer: String = (0..200).map(|n| format!("struct s{n} {{ int i{n}; }} v{n};\n")).collect();
        let path = compiled(folder.path(), &format!("{LIST}{longer}"));
        let option = format!("--compress-debug-sections={way}");
        assert!(Command::new("objcopy").arg(option).arg(&path).status().unwrap().success());
        let sections = Command::new("readelf").arg("-SW").arg(&path).output().unwrap();
        let sections = String::from_utf8(sections.stdout).unwrap();
        let info = sections.lines().find(|line| line.contains(".debug_info")).unwrap();
        assert!(info.contains(" C "), "{info}");
        assert_eq!(fields(&typed(&path, "walk")), ["node.at+20", "node.next+0", "node.u+24"], "{way}");
    }
}

/// With these, a compiler describes each type once for all object files, and refers to it by a
/// signature. DWARF 4 has a section for them.
#[test]
fn types_with_units_of_their_own_are_found() {
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let folder = tempfile::tempdir().unwrap();
        let path = compiled_with(folder.path(), LIST, &["-fdebug-types-section", version]);
        assert_eq!(fields(&typed(&path, "walk")), ["node.at+20", "node.next+0", "node.u+24"], "{version}");
        assert_eq!(fields(&typed(&path, "first")), ["node.at+12"], "{version}");
    }
}

#[test]
fn what_was_split_off_is_read_from_its_file() {
    for version in ["-gdwarf-5", "-gdwarf-4"] {
        let folder = tempfile::tempdir().unwrap();
        let path = compiled_with(folder.path(), LIST, &["-gsplit-dwarf", version]);
        let FoundTypes::Split(name) = asked(&path, "walk", Split::Unknown) else {
            panic!("the debug information is not here")
        };
        let part = folder.path().join(&name);
        let package = folder.path().join("a.dwp");
        assert!(
            Command::new("llvm-dwp-22")
                .arg("-e")
                .arg(&path)
                .arg("-o")
                .arg(&package)
                .status()
                .unwrap()
                .success()
        );
        for file in [part, package] {
            let copy = copied(&file);
            let FoundTypes::Code(walk) = asked(&path, "walk", Split::Found(7, &copy)) else {
                panic!("found")
            };
            assert_eq!(fields(&walk), ["node.at+20", "node.next+0", "node.u+24"], "{version} {file:?}");
            let FoundTypes::Code(first) = asked(&path, "first", Split::Found(7, &copy)) else {
                panic!("found")
            };
            assert_eq!(fields(&first), ["node.at+12"], "{version} {file:?}");
        }
        // Without the file, or with that of another program.
        let other = copied(Path::new("/bin/true"));
        for split in [Split::Missing, Split::Found(8, &other)] {
            let FoundTypes::Code(walk) = asked(&path, "walk", split) else { panic!("nothing to look for") };
            assert!(fields(&walk).is_empty() && !walk.instructions.is_empty());
        }
    }
}

#[test]
fn damaged_debug_information_ends_no_worker() {
    let folder = tempfile::tempdir().unwrap();
    let path = compiled(folder.path(), LIST);
    let (start, bytes) = function(&path, "walk");
    let wanted: Vec<u64> = decode(&bytes, start).iter().map(|i| i.offset).collect();
    let whole = std::fs::read(&path).unwrap();
    let file = File::open(&path).unwrap();
    let mut header = [0; 64];
    let got = crate::reader::elf::read_up_to(&file, &mut header, 0).unwrap();
    let sections = crate::reader::sections::Sections::read(&file, &header, got).unwrap();
    let damaged = folder.path().join("damaged");
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut next = || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        usize::try_from(random >> 1).unwrap()
    };
    for name in [".debug_info", ".debug_abbrev", ".debug_loclists", ".debug_rnglists", ".debug_str"] {
        let Some(section) = sections.named(name) else { continue };
        let (from, size) = (section.offset as usize, section.size as usize);
        for _ in 0..60 {
            let mut content = whole.clone();
            for _ in 0..1 + next() % 4 {
                content[from + next() % size] = next().to_le_bytes()[0];
            }
            std::fs::write(&damaged, &content).unwrap();
            let copied = copy(&File::open(&damaged).unwrap(), true).unwrap().file;
            let Ok(mut program) = Program::of(&copied) else { continue };
            let code = FunctionCode { start, of: CodeOwner::Program, bytes: &bytes, wanted: &wanted };
            let answer = program.types(Split::Missing, &code).unwrap();
            assert!(matches!(answer, FoundTypes::Code(code) if code.instructions.len() == wanted.len()));
        }
    }
}
