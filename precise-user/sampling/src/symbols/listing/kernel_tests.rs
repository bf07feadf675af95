//! Types of a kernel that is made of a small program, by BTF and by debug information.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Command;

use precise_code::FunctionId;

use super::Listings;
use crate::reader::elf::{Headers, PF_X, build_id_in};
use crate::symbols::SymbolOptions;
use crate::symbols::kernel::KERNEL;

const KERNEL_CODE: &str = "\
struct item { long key; struct item *next; char name[16]; int count; };
struct table { struct item *first; long size; struct { int a; int b : 3; }; };
typedef struct { long x, y; } pair;

__attribute__((noinline)) struct item *find(struct table *t, long key)
{
    struct item *i;
    for (i = t->first; i && i->key != key; i = i->next)
        ;
    return i;
}
__attribute__((noinline)) int bump(long key, pair two, struct table *t)
{
    struct item *i = find(t, key + two.y);
    t->a = 1;
    return i ? i->count++ : -1;
}
void _start(void)
{
    struct table t = { 0 };
    bump(1, (pair){ 2, 3 }, &t);
}
";

/// A kernel with no other debug information than BTF, made of a small program: its file stands for
/// the kernel's memory.
fn made_kernel() -> (tempfile::TempDir, Vec<FunctionId>) {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    for folder in ["proc", "sys/kernel/btf"] {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    std::fs::write(at("code.c"), KERNEL_CODE).unwrap();
    let run = |command: &mut Command| assert!(command.status().unwrap().success(), "{command:?}");
    let core = at("proc/kcore");
    let flags = [
        "-O2",
        "-gbtf",
        "-static",
        "-nostdlib",
        "-fno-ipa-sra",
        "-fno-ipa-ra",
        "-fcf-protection=branch",
        "-o",
    ];
    run(Command::new("gcc").args(flags).arg(&core).arg(at("code.c")));
    let btf = Command::new("objcopy")
        .args(["-O", "binary", "--only-section=.BTF", "--set-section-flags", ".BTF=alloc"])
        .arg(&core)
        .arg(at("sys/kernel/btf/vmlinux"))
        .status();
    assert!(btf.unwrap().success());
    let nm = Command::new("nm").arg("-n").arg(&core).output().unwrap();
    std::fs::write(at("proc/kallsyms"), &nm.stdout).unwrap();
    let id = |name: &str| {
        let text = String::from_utf8_lossy(&nm.stdout).into_owned();
        let line = text.lines().find(|line| line.ends_with(&format!(" {name}"))).unwrap();
        let start = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
        let (module, name, build_id) = (KERNEL.to_owned(), name.to_owned(), String::new());
        FunctionId { module, build_id, name, start, kernel: true }
    };
    let functions = vec![id("find"), id("bump")];
    (root, functions)
}

/// Returns the fields that the code of a function accesses, or why they are not known.
fn fields(listings: &mut Listings, function: &FunctionId) -> Vec<String> {
    let code = listings.read(function).unwrap();
    let wanted: Vec<u64> = code.iter().filter(|i| i.accessed.is_some()).map(|i| i.offset).collect();
    let answer = listings.types(function, &wanted).unwrap();
    let mut fields: Vec<String> = Vec::new();
    for access in answer.instructions.iter().flat_map(|instruction| &instruction.accesses) {
        fields.push(match access.object {
            Ok(object) => {
                let layout = &answer.layouts[object.layout as usize];
                let field = layout.field_at(object.offset).map_or("", |field| &field.name);
                let global = object.global.map(|global| &answer.globals[global as usize].name);
                let global = global.map_or_else(String::new, |name| format!(" of {name}"));
                format!("{}.{field}{global}", layout.name)
            }
            Err(why) => why.words().to_owned(),
        });
    }
    fields.sort();
    fields.dedup();
    fields
}

#[test]
fn kernel_code_has_types_by_btf_alone() {
    let (root, functions) = made_kernel();
    let options = SymbolOptions { root: root.path().to_owned(), ..SymbolOptions::default() };
    let mut listings = Listings::new(&options, Path::new("/"));
    assert_eq!(fields(&mut listings, &functions[0]), ["item.key", "item.next", "table.first"]);
    assert_eq!(fields(&mut listings, &functions[1]), ["item.count", "table.a"]);
    assert_eq!(listings.take_troubles(), [""; 0]);

    // Without BTF, the reason is said.
    std::fs::remove_file(root.path().join("sys/kernel/btf/vmlinux")).unwrap();
    let mut listings = Listings::new(&options, Path::new("/"));
    assert_eq!(fields(&mut listings, &functions[0]), ["no debug information"]);
    let troubles = listings.take_troubles();
    assert!(troubles[0].starts_with("kernel code has no types: cannot read"), "{troubles:?}");
}

/// A kernel of two files: one defines the variables that the other uses.
const DEFINES: &str = "\
struct item { long key; struct item *next; int count; };
struct item items[8];
struct item *head = items;
__attribute__((section(\"percpu\"))) struct item spare;
";
const USES: &str = "\
struct item { long key; struct item *next; int count; };
extern struct item items[8];
extern struct item *head;
extern __attribute__((section(\"percpu\"))) struct item spare;

void first(void) {}
__attribute__((noinline)) long key_of(unsigned long number)
{
    return items[number].key;
}
__attribute__((noinline)) int sum(void)
{
    int all = 0;
    for (struct item *i = head; i; i = i->next)
        all += i->count;
    return all;
}
__attribute__((noinline)) long of_cpu(void)
{
    long key;
    asm volatile(\"movq %%gs:%1,%0\" : \"=r\"(key) : \"m\"(spare.key));
    return key;
}
int _start(void) { return sum() + key_of(3) + of_cpu(); }
";

/// Links the kernel of [`USES`] to an address.
fn linked(folder: &Path, address: u64) -> PathBuf {
    for (name, text) in [("uses.c", USES), ("defines.c", DEFINES)] {
        std::fs::write(folder.join(name), text).unwrap();
    }
    let image = folder.join(format!("image-{address:x}"));
    let mut gcc = Command::new("gcc");
    gcc.args(["-O2", "-g", "-mcmodel=kernel", "-fno-pic", "-no-pie", "-static", "-nostdlib"]);
    gcc.arg("-fno-toplevel-reorder");
    gcc.arg(format!("-Wl,-Ttext-segment={address:#x},--build-id=0x0123456789abcdef0123"));
    // Until Linux 6.14, the variables of each CPU were linked near 0, and stayed there.
    gcc.arg("-Wl,--section-start=percpu=0x1000");
    gcc.arg("-Wl,--defsym=__per_cpu_start=0x1000,--defsym=__per_cpu_end=0x2000");
    gcc.args(["uses.c", "defines.c", "-o"]).arg(&image).current_dir(folder);
    assert!(gcc.status().unwrap().success(), "{gcc:?}");
    image
}

/// The kernel was moved at its start (KASLR), which is the same as linking it elsewhere. What the
/// table of symbols names is declared by the unit that uses it.
#[test]
fn kernel_code_has_types_by_its_debug_information() {
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    for folder in ["proc/sys/kernel", "sys/kernel", "lib/modules/6.1.0-made"] {
        std::fs::create_dir_all(at(folder)).unwrap();
    }
    let [described, running] =
        [0xffff_ffff_8100_0000, 0xffff_ffff_8340_0000].map(|address| linked(root.path(), address));
    let vmlinux = at("lib/modules/6.1.0-made/vmlinux");
    std::fs::copy(&described, &vmlinux).unwrap();
    std::fs::copy(&running, at("proc/kcore")).unwrap();
    std::fs::write(at("proc/sys/kernel/osrelease"), "6.1.0-made\n").unwrap();
    let notes = Command::new("objcopy")
        .args(["-O", "binary", "--only-section=.note.gnu.build-id"])
        .arg(&running)
        .arg(at("sys/kernel/notes"))
        .status();
    assert!(notes.unwrap().success());
    let build_id = build_id_in(&std::fs::read(at("sys/kernel/notes")).unwrap()).unwrap().hex();
    let nm = Command::new("nm").arg("-n").arg(&running).output().unwrap();
    let headers = Headers::read(&File::open(&running).unwrap()).unwrap().unwrap();
    let code = headers.segments.iter().find(|segment| segment.flags & PF_X != 0).unwrap();
    let symbols = format!("{:016x} T _text\n{}", code.vaddr, String::from_utf8(nm.stdout).unwrap());
    std::fs::write(at("proc/kallsyms"), &symbols).unwrap();
    let id = |name: &str| {
        let line = symbols.lines().find(|line| line.ends_with(&format!(" T {name}"))).unwrap();
        let start = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
        let (module, name, build_id) = (KERNEL.to_owned(), name.to_owned(), build_id.clone());
        FunctionId { module, build_id, name, start, kernel: true }
    };
    let options = SymbolOptions { root: root.path().to_owned(), ..SymbolOptions::default() };
    let mut listings = Listings::new(&options, Path::new("/"));
    assert_eq!(fields(&mut listings, &id("key_of")), ["item.key of items"]);
    let of_sum = ["item*. of head", "item.count", "item.next"];
    assert_eq!(fields(&mut listings, &id("sum")), of_sum);
    assert_eq!(fields(&mut listings, &id("of_cpu")), ["item.key"]);
    assert_eq!(listings.take_troubles(), [""; 0]);

    // That of another build is not used.
    let mut other = std::fs::read(&vmlinux).unwrap();
    let id_at = other.windows(4).position(|bytes| bytes == [0x01, 0x23, 0x45, 0x67]).unwrap();
    other[id_at] = 0xff;
    std::fs::write(&vmlinux, other).unwrap();
    let mut listings = Listings::new(&options, Path::new("/"));
    assert_eq!(fields(&mut listings, &id("sum")), ["no debug information"]);
}
