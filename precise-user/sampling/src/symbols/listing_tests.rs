use std::process::Command;

use super::*;

const PROGRAM: &str = "\
static inline __attribute__((always_inline)) long twice(long x)
{
    return x * 2 + 1;
}

__attribute__((noinline)) long sum(const long *p, long n)
{
    long s = 0;
    for (long i = 0; i < n; i++)
        s += twice(p[i]);
    return s;
}

int main(int argc, char **argv)
{
    long x[4] = { argc, 2, 3, 4 };
    return sum(x, argc);
}
";

struct Compiled {
    folder: tempfile::TempDir,
    path: PathBuf,
    source: String,
}

fn compile() -> Compiled {
    let folder = tempfile::tempdir().unwrap();
    let source = folder.path().join("sum.c");
    std::fs::write(&source, PROGRAM).unwrap();
    let path = folder.path().join("sum");
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-g", "-o"]).arg(&path).arg(&source);
    assert!(gcc.status().unwrap().success());
    Compiled { folder, path, source: source.to_string_lossy().into_owned() }
}

/// Returns the file offset at which a function begins, from the symbols of the file.
fn start(path: &Path, function: &str) -> u64 {
    let output = Command::new("nm").arg(path).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let line = text.lines().find(|line| line.ends_with(&format!(" {function}"))).unwrap();
    let vaddr = u64::from_str_radix(line.split(' ').next().unwrap(), 16).unwrap();
    let elf = crate::reader::elf::Headers::read(&File::open(path).unwrap()).unwrap().unwrap();
    elf.offset_of_vaddr(vaddr).unwrap()
}

fn id(compiled: &Compiled) -> FunctionId {
    FunctionId {
        module: compiled.path.to_string_lossy().into_owned(),
        build_id: String::new(),
        name: "sum".into(),
        start: start(&compiled.path, "sum"),
        kernel: false,
    }
}

fn listings() -> Listings {
    Listings::new(&SymbolOptions::default(), Path::new("/"))
}

/// The lines of a program without symbols come from its debug package.
#[test]
fn separate_debug_information_has_the_lines() {
    let mut compiled = compile();
    let id = id(&compiled);
    let whole = listings().read(&id).unwrap();
    let debug = compiled.folder.path().join("sum.debug");
    let run = |program: &str, arguments: &[&Path]| {
        assert!(Command::new(program).args(arguments).status().unwrap().success(), "{program}");
    };
    run("objcopy", &[Path::new("--only-keep-debug"), &compiled.path, &debug]);
    run("strip", &[&compiled.path]);
    let link = format!("--add-gnu-debuglink={}", debug.display());
    run("objcopy", &[Path::new(&link), &compiled.path]);
    assert_eq!(listings().read(&id), Err(Reason::NoSymbol));

    let options = SymbolOptions { debug_dirs: vec![compiled.folder.path().to_owned()], ..Default::default() };
    let mut listings = Listings::new(&options, Path::new("/"));
    assert_eq!(listings.read(&id).as_ref(), Ok(&whole));
    assert!(whole[0].frames[0].file.ends_with("sum.c"));

    // Of another build it is not used.
    compiled.path = debug;
    std::fs::write(&compiled.path, [std::fs::read(&compiled.path).unwrap(), vec![0]].concat()).unwrap();
    let mut listings = Listings::new(&options, Path::new("/"));
    assert_eq!(listings.read(&id), Err(Reason::NoSymbol));
    assert_eq!(listings.take_troubles(), [""; 0]);
}

/// Compares with objdump: the same instructions at the same addresses.
#[test]
fn instructions_are_objdump_s() {
    let compiled = compile();
    let instructions = listings().read(&id(&compiled)).unwrap();
    let output = Command::new("objdump")
        .args(["-d", "--no-show-raw-insn", "--disassemble=sum"])
        .arg(&compiled.path)
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let theirs: Vec<(u64, String)> = text
        .lines()
        .filter_map(|line| {
            let (address, rest) = line.split_once(":\t")?;
            let mnemonic = rest.split_whitespace().next()?.to_owned();
            Some((u64::from_str_radix(address.trim(), 16).ok()?, mnemonic))
        })
        .collect();
    let ours: Vec<(u64, String)> = instructions
        .iter()
        .map(|i| (i.address, i.text.split_whitespace().next().unwrap_or_default().to_owned()))
        .collect();
    // objdump pads after the last instruction, and may use other suffixes of mnemonics.
    assert!(ours.len() >= 5 && ours.len() <= theirs.len());
    for (ours, theirs) in ours.iter().zip(&theirs) {
        assert_eq!(ours.0, theirs.0);
        let (short, long) = if ours.1.len() < theirs.1.len() { (ours, theirs) } else { (theirs, ours) };
        assert!(long.1.starts_with(&short.1), "{ours:?} {theirs:?}");
    }
    assert_eq!(instructions[0].offset, 0);
    let jump = instructions.iter().find(|i| i.text.starts_with('j')).unwrap();
    assert!(jump.text.contains("+0x"), "targets are offsets: {}", jump.text);
}

#[test]
fn lines_and_what_was_inlined() {
    let compiled = compile();
    let instructions = listings().read(&id(&compiled)).unwrap();
    let lines: Vec<u32> = instructions.iter().filter_map(|i| Some(i.frames.first()?.line)).collect();
    assert!([3, 8, 10, 11].iter().all(|line| lines.contains(line)), "{lines:?}");
    let inlined = instructions.iter().find(|i| i.frames.len() == 2).unwrap();
    let [innermost, outer] = inlined.frames.as_slice() else { panic!("{inlined:?}") };
    assert_eq!((&*innermost.function, innermost.line, &*innermost.file), ("twice", 3, &*compiled.source));
    assert_eq!((&*outer.function, outer.line), ("sum", 10), "the line of the call");
    let mut sources = SourceFiles::default();
    sources.add(compiled.folder.path()).unwrap();
    assert_eq!(sources.line(&compiled.source, 3).as_deref(), Some("    return x * 2 + 1;"));
}

#[test]
fn what_cannot_be_read_has_a_reason() {
    let compiled = compile();
    let good = id(&compiled);
    let changed = FunctionId { build_id: "00ff".into(), ..good.clone() };
    assert_eq!(listings().read(&changed), Err(Reason::FileChanged));
    let nowhere = FunctionId { start: 1 << 40, ..good.clone() };
    assert_eq!(listings().read(&nowhere), Err(Reason::NoSymbol));
    let hidden = FunctionId { kernel: true, start: 0, module: "[kernel]".into(), ..good.clone() };
    assert_eq!(listings().read(&hidden), Err(Reason::KernelHidden));
    assert!(Command::new("strip").arg(&compiled.path).status().unwrap().success());
    assert_eq!(listings().read(&good), Err(Reason::NoSymbol));
    drop(compiled.folder);
    assert_eq!(listings().read(&good), Err(Reason::FileMissing));
    let text = FunctionId { module: "/proc/self/status".into(), ..good };
    assert!(listings().read(&text).is_err());
}

/// Needs root, for the addresses and the code of the kernel.
#[test]
fn the_running_kernel_s_code() {
    let mut symbols = KernelSymbols::new("/".into(), Some("/proc/kallsyms".into()), true);
    let text = std::fs::read_to_string("/proc/kallsyms").unwrap_or_default();
    let line = text.lines().find(|line| line.ends_with(" T schedule")).unwrap_or_default();
    let start = u64::from_str_radix(line.get(..16).unwrap_or("0"), 16).unwrap_or(0);
    if start == 0 || File::open("/proc/kcore").is_err() {
        println!("skipped: this user may not read the kernel's code (/proc/kallsyms, /proc/kcore)");
        return;
    }
    let schedule = FunctionId {
        module: "[kernel]".into(),
        build_id: symbols.build_id("[kernel]").map(|id| id.hex()).unwrap_or_default(),
        name: "schedule".into(),
        start,
        kernel: true,
    };
    let code = listings().read(&schedule).unwrap();
    assert!(code.len() > 10 && code.iter().any(|i| i.text.starts_with("ret") || i.text.starts_with("jmp")));
    let other = FunctionId { build_id: "00".into(), ..schedule };
    assert_eq!(listings().read(&other), Err(Reason::FileChanged));
}
