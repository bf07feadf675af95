//! Names of many addresses of a large program.

use std::cell::Cell;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;
use std::process::Command;
use std::rc::Rc;

use anyhow::{Context as _, Result, ensure};
use precise::model::digits::thousands;

use super::part::Part;
use super::question::{Question, words};
use super::setting::Setting;
use super::tool::Tool;

/// Functions of the program, in files of [`EACH`]: 94 MB. Every third one ([`ONE_OF`]) is called,
/// and takes one page fault, at an address of its own.
const FUNCTIONS: usize = 300_000;
const EACH: usize = 5_000;
const ONE_OF: usize = 3;
/// Addresses whose types are looked up: one of 50 of the page faults.
const TYPED: u64 = 2_000;

/// Returns the questions of this chapter.
///
/// # Errors
///
/// Returns an error if the program cannot be compiled or recorded.
pub fn parts(setting: &Rc<Setting>) -> Result<Vec<Part>> {
    if !Tool::Perf.is_installed() {
        return Ok(vec![Part::Text(
            "perf is not installed, so there is no recording to name.\n\n".to_owned(),
        )]);
    }
    let program = compile(setting)?;
    setting.run(&words("perf record -q --buildid-mmap -e page-faults:u -c 1 -o symbols.data -- ./large"))?;
    addresses(setting)?;
    let megabytes = fs::metadata(&program)?.len() / 1_000_000;
    let note = "Each address is in another function; function, file, line and inlined functions are looked \
                up. precise imports a recording of perf: it also reads the records, and writes a capture. perf \
                of Debian 12 looks up functions only, and the newer one also lines.";
    let title = format!(
        "{} addresses of a program of {megabytes} MB with debug information",
        thousands((FUNCTIONS / ONE_OF) as u64)
    );
    let question = Question::new(title, "s", note);
    let import = setting.command(Tool::Precise, "import -q -o symbols.parquet symbols.data");
    let report = words("perf report --stdio -s sym -i symbols.data");
    let tool = words("addr2line -f -i -e large @symbols.addresses");
    // All addresses are arguments of one command: a system lets these have 2 MiB.
    let library = words("xargs -s 2000000 -a symbols.addresses blazecli symbolize elf --path large");
    let lines = setting.command(Tool::NewerPerf, "report --stdio -s sym,srcline -i symbols.data");
    let commands = [
        (Tool::Precise, import),
        (Tool::Perf, report),
        (Tool::NewerPerf, lines),
        (Tool::Addr2line, tool),
        (Tool::Blazecli, library),
    ];
    let question = commands.into_iter().fold(question, |question, (tool, command)| {
        let setting = Rc::clone(setting);
        question.with(tool, vec![command], move |commands| {
            let _fresh = fs::remove_file(setting.folder.join("symbols.parquet"));
            setting.seconds(commands)
        })
    });
    Ok(vec![Part::Question(question), Part::Question(types(setting)?)])
}

/// Returns the question about the types of some addresses of the program.
fn types(setting: &Rc<Setting>) -> Result<Question> {
    setting.run(&words("perf record -q -d -e page-faults:u -c 50 -o types.data -- ./large"))?;
    let import = "import -q --granule 1 --by ip,address,process -o types.parquet types.data";
    setting.run(&setting.command(Tool::Precise, import))?;
    let note = "One of 50 of its page faults, each in another function. The type and the field of each, from \
                the debug information. perf of Debian 12 knows no types; a newer one is asked once, because \
                it takes minutes.";
    let question = Question::new(format!("Types of {} of these addresses", thousands(TYPED)), "s", note);
    let command = setting.command(Tool::Precise, "types -i types.parquet");
    let asked = Rc::clone(setting);
    let question = question.with(Tool::Precise, vec![command], move |commands| asked.seconds(commands));
    let command = setting.command(Tool::NewerPerf, "annotate -i types.data --data-type --stdio");
    let (asked, answer) = (Rc::clone(setting), Cell::new(None));
    Ok(question.with(Tool::NewerPerf, vec![command], move |commands| {
        let seconds = answer.get().map_or_else(|| asked.seconds(commands), Ok)?;
        answer.set(Some(seconds));
        Ok(seconds)
    }))
}

/// Writes and compiles the program.
fn compile(setting: &Setting) -> Result<PathBuf> {
    let names: Vec<String> = (0..FUNCTIONS / EACH).map(|file| format!("part{file}")).collect();
    let mut main = String::from("#include <sys/mman.h>\n");
    let mut calls = String::new();
    for (file, name) in names.iter().enumerate() {
        fs::write(setting.folder.join(format!("{name}.c")), part(file, name))?;
        let _ = writeln!(main, "void {name}(char *pages, long *order);");
        let _ = writeln!(calls, "    {name}(pages, order);");
    }
    let _ = write!(
        main,
        "int main(void)\n{{\n    long order[8] = {{ 0 }};\n    char *pages = mmap(0, {FUNCTIONS}L * 4096, 3, \
         MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);\n    madvise(pages, {FUNCTIONS}L * 4096, MADV_NOHUGEPAGE);\n\
         {calls}    return 0;\n}}\n"
    );
    fs::write(setting.folder.join("main.c"), main)?;
    let cpus = std::thread::available_parallelism()?.get();
    let arguments = ["-O1", "-g", "-fno-inline-small-functions", "-fno-inline-functions-called-once", "-c"];
    for together in names.chunks(cpus) {
        let compilers = together.iter().map(|name| {
            let mut gcc = Command::new("gcc");
            gcc.args(arguments).arg(format!("{name}.c")).current_dir(&setting.folder);
            Ok((name, gcc.spawn().context("gcc")?))
        });
        for compiler in compilers.collect::<Result<Vec<_>>>()? {
            let (name, mut compiler) = compiler;
            ensure!(compiler.wait()?.success(), "gcc cannot compile {name}.c: see above");
        }
    }
    let mut gcc = Command::new("gcc");
    gcc.args(["-O1", "-g", "-no-pie", "-o", "large", "main.c"]);
    gcc.args(names.iter().map(|name| format!("{name}.o")));
    let linked = gcc.current_dir(&setting.folder).output()?;
    ensure!(linked.status.success(), "gcc: {}", String::from_utf8_lossy(&linked.stderr));
    Ok(setting.folder.join("large"))
}

/// Returns the source of a file of the program, whose function `name` calls the others.
fn part(file: usize, name: &str) -> String {
    let mut source = String::from(
        "struct order { long id, price, quantity; char *owner; struct order *next; };\n\
         static inline __attribute__((always_inline)) void touch(volatile char *page, struct order *order)\n\
         {\n    *page = 1;\n    order->id++;\n}\n",
    );
    for function in file * EACH..(file + 1) * EACH {
        let _ = writeln!(
            source,
            "void work_{function}(char *pages, struct order *order)\n{{\n    long sum = {function};\n    \
             touch(pages + {function}L * 4096, order);\n    order->price += sum;\n}}"
        );
    }
    let _ = write!(source, "void {name}(char *pages, struct order *order)\n{{\n");
    for function in (file * EACH..(file + 1) * EACH).step_by(ONE_OF) {
        let _ = writeln!(source, "    work_{function}(pages, order);");
    }
    source += "}\n";
    source
}

/// Writes the addresses of the recording in the program into a file. Its code is not moved, so that
/// they are those of its symbols.
fn addresses(setting: &Setting) -> Result<()> {
    let mut script = setting.command_of(&words("perf script -F ip,sym -i symbols.data"))?;
    let said = script.output().context("perf script")?.stdout;
    let said = String::from_utf8_lossy(&said);
    let found: Vec<String> = said
        .lines()
        .filter(|line| line.contains(" work_"))
        .filter_map(|line| line.split_whitespace().next())
        .map(|address| format!("0x{address}"))
        .collect();
    ensure!(found.len() >= FUNCTIONS / ONE_OF * 9 / 10, "perf recorded {} faults", found.len());
    fs::write(setting.folder.join("symbols.addresses"), found.join("\n"))?;
    Ok(())
}
