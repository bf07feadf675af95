//! The programs whose call chains are compared: what Debian ships, without frame pointers.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use precise_tests::{kill_on_drop::KillOnDrop, program::exists};

/// A program that runs for a minute, and faults in many functions.
#[derive(Clone, Copy, Debug)]
pub struct ShippedProgram {
    /// The name in tables.
    pub name: &'static str,
    /// The executable, which must be a program and not a script that starts one.
    executable: &'static str,
    /// Its arguments: `{}` is the file with `source`.
    arguments: &'static [&'static str],
    /// What it runs, and the name of the file.
    source: (&'static str, &'static str),
    /// Whether the source is its standard input.
    from_stdin: bool,
    /// How long it runs before anybody looks.
    warm_up: Duration,
    /// Once how many faults a sample is taken.
    pub period: u64,
}

const fn program(
    name: &'static str,
    executable: &'static str,
    arguments: &'static [&'static str],
    source: (&'static str, &'static str),
) -> ShippedProgram {
    let warm_up = Duration::from_millis(1500);
    ShippedProgram { name, executable, arguments, source, from_stdin: false, warm_up, period: 7 }
}

/// All programs.
pub const PROGRAMS: &[ShippedProgram] = &[
    program("python3", "/usr/bin/python3", &["{}"], ("work.py", PYTHON)),
    program("node", "/usr/bin/node", &["{}"], ("work.js", NODE)),
    program("java", "/usr/bin/java", &["-Xmx256m", "-cp", "{folder}", "Work"], ("Work.java", JAVA)),
    program(
        "java -XX:+PreserveFramePointer",
        "/usr/bin/java",
        &["-XX:+PreserveFramePointer", "-Xmx256m", "-cp", "{folder}", "Work"],
        ("Work.java", JAVA),
    ),
    ShippedProgram {
        warm_up: Duration::from_millis(500),
        ..program("rustc", "rustc", &["-O", "--emit=obj", "-o", "{folder}/work.o", "{}"], ("work.rs", ""))
    },
    ShippedProgram {
        from_stdin: true,
        ..program("postgres", "postgres", &["--single", "-D", "{folder}/data", "postgres"], ("work.sql", SQL))
    },
];

/// Starts a program; `None` if it is not installed.
pub fn start(program: &ShippedProgram, folder: &Path) -> Result<Option<KillOnDrop>> {
    let Some(executable) = executable(program) else { return Ok(None) };
    let (name, text) = program.source;
    let file = folder.join(name);
    fs::write(&file, if program.name == "rustc" { rust() } else { text.to_owned() })?;
    match program.name {
        name if name.starts_with("java") => run(Command::new("javac").arg("-d").arg(folder).arg(&file))?,
        "postgres" => make_database(&executable, folder)?,
        _ => {}
    }
    let text = |argument: &&str| {
        argument.replace("{folder}", &folder.display().to_string()).replace("{}", &file.display().to_string())
    };
    let mut command = match program.name {
        // It refuses to run as root. setpriv(1) executes it, so that the process stays the same.
        "postgres" => as_postgres(&executable),
        _ => Command::new(&executable),
    };
    command.args(program.arguments.iter().map(text)).current_dir(folder);
    command.stdin(if program.from_stdin { Stdio::from(fs::File::open(&file)?) } else { Stdio::null() });
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn();
    let mut running = KillOnDrop::from(child.with_context(|| executable.clone())?);
    std::thread::sleep(program.warm_up);
    ensure!(running.try_wait()?.is_none(), "{} has ended before it was looked at", program.name);
    Ok(Some(running))
}

/// Returns the path of the program itself.
fn executable(program: &ShippedProgram) -> Option<String> {
    match program.name {
        // The one that rustup would start.
        "rustc" => {
            let root = Command::new("rustc").args(["--print", "sysroot"]).output().ok()?;
            Some(format!("{}/bin/rustc", String::from_utf8_lossy(&root.stdout).trim()))
        }
        "postgres" => {
            let folder = Command::new("pg_config").arg("--bindir").output().ok()?;
            let path = format!("{}/postgres", String::from_utf8_lossy(&folder.stdout).trim());
            Path::new(&path).exists().then_some(path)
        }
        name if name.starts_with("java") && !exists("javac") => None,
        _ => Path::new(program.executable).exists().then(|| program.executable.to_owned()),
    }
}

fn as_postgres(program: &str) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", program]);
    command
}

fn make_database(postgres: &str, folder: &Path) -> Result<()> {
    let data = folder.join("data");
    fs::create_dir(&data)?;
    // Those that lead to it, and it itself.
    run(Command::new("chmod").arg("755").arg(folder))?;
    run(Command::new("chown").arg("postgres:postgres").arg(&data))?;
    let initdb = postgres.replace("bin/postgres", "bin/initdb");
    run(as_postgres(&initdb).args(["--no-sync", "--locale=C", "-D"]).arg(&data).current_dir(folder))
}

fn run(command: &mut Command) -> Result<()> {
    let done = command.output().with_context(|| format!("{command:?}"))?;
    ensure!(done.status.success(), "{command:?}: {}", String::from_utf8_lossy(&done.stderr));
    Ok(())
}

const PYTHON: &str = r#"import json, re, zlib, sys
sys.setrecursionlimit(10000)
def tree(depth):
    return {"v": list(range(50)), "c": [tree(depth - 1) for _ in range(3)]} if depth else "leaf" * 100
def walk(node):
    return sum(node["v"]) + sum(map(walk, node["c"])) if isinstance(node, dict) else len(node)
class Item:
    def __init__(self, n): self.name, self.n = "item%d" % n, n
    def __lt__(self, other): return self.n * 7919 % 1000 < other.n * 7919 % 1000
keep = []
while True:
    text = json.dumps(tree(7))
    keep.append([text, tree(6)])
    del keep[:-100]
    walk(json.loads(text))
    words = re.findall(r"[a-z]+|\d+", text)
    sorted(Item(n) for n in range(3000))
    zlib.compress(text.encode() * 3)
    {w: i for i, w in enumerate(words)}
    b"".join(bytes([n % 256]) * 100 for n in range(20000))
"#;

const NODE: &str = r#"function tree(d) { return d ? { v: Array.from({ length: 50 }, (_, i) => i), c: [tree(d - 1), tree(d - 1), tree(d - 1)] } : 'leaf'.repeat(100); }
function walk(n) { return typeof n === 'string' ? n.length : n.v.reduce((a, b) => a + b, 0) + n.c.map(walk).reduce((a, b) => a + b, 0); }
const zlib = require('zlib');
for (;;) {
  const text = JSON.stringify(tree(7));
  walk(JSON.parse(text));
  text.match(/[a-z]+|\d+/g).sort((a, b) => a < b ? -1 : 1);
  zlib.deflateSync(Buffer.from(text));
  new Map(Array.from({ length: 100000 }, (_, i) => ['k' + i, i]));
  Buffer.alloc(1 << 22).fill(1);
}
"#;

const JAVA: &str = r#"import java.util.*;
import java.util.stream.*;
import java.util.zip.*;
public class Work {
    static Object tree(int d) {
        if (d == 0) return "leaf".repeat(100);
        List<Object> all = new ArrayList<>();
        for (int i = 0; i < 4; i++) all.add(tree(d - 1));
        return all;
    }
    static long walk(Object o) { return o instanceof List<?> l ? l.stream().mapToLong(Work::walk).sum() : o.toString().length(); }
    public static void main(String[] args) throws Exception {
        while (true) {
            walk(tree(7));
            IntStream.range(0, 50000).mapToObj(i -> "k" + i).sorted(Comparator.reverseOrder()).collect(Collectors.toList());
            byte[] bytes = new byte[1 << 22];
            new Random(1).nextBytes(bytes);
            Deflater deflater = new Deflater();
            deflater.setInput(bytes);
            deflater.finish();
            deflater.deflate(new byte[1 << 22]);
            deflater.end();
            Thread thread = new Thread(() -> { byte[][] b = new byte[64][]; for (int i = 0; i < 64; i++) b[i] = new byte[1 << 16]; });
            thread.start();
            thread.join();
            java.nio.ByteBuffer.allocateDirect(1 << 20).put(new byte[1 << 20]);
        }
    }
}
"#;

const SQL: &str = "\
create table t as select i, md5(i::text) m, repeat('x', i % 100) r from generate_series(1, 400000) i;
select count(*) from (select m, row_number() over (order by r, m) from t) s;
create index on t (m);
select sum(length(a.r || b.r)) from t a join t b on a.m = b.m;
select m, array_agg(i) from t group by m order by 1 limit 10;
select count(distinct md5(m)) from t;
select string_agg(m, ',') from (select m from t order by i desc limit 100000) s;
create table u as select a.*, regexp_replace(a.m, '[a-f]+', 'z', 'g') z from t a;
create index on u (z);
select count(*) from u a where exists (select 1 from u b where b.z = a.z and b.i <> a.i);
select count(distinct md5(z)) from u;
";

/// Returns a program that takes a while to compile.
fn rust() -> String {
    let one = |n: usize| {
        format!(
            "#[inline(never)] pub fn f{n}(v: &[String]) -> std::collections::BTreeMap<String, Vec<u{}>> {{ \
             let mut m = std::collections::BTreeMap::new(); for s in v.iter().filter(|s| s.len() > {n}) {{ \
             m.entry(s.to_uppercase()).or_insert_with(Vec::new).extend(s.bytes().map(|b| b.into()).rev()); }} \
             println!(\"{{:?}}\", m); m }}\n",
            [8, 16, 32, 64][n % 4],
        )
    };
    let calls: String = (0..1200).map(|n| format!("f{n}(&v); ")).collect();
    let functions: String = (0..1200).map(one).collect();
    format!("{functions}fn main() {{ let v: Vec<String> = std::env::args().collect(); {calls} }}\n")
}
