//! The programs: how they are built, and what they do while they are sampled.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use precise_tests::kill_on_drop::KillOnDrop;

/// The user and group of PostgreSQL's processes, which do not run as root.
const NOBODY: u32 = 65534;
/// The number of requests to the server.
const REQUESTS: u64 = 60_000;
const SQLITE: &str = "
CREATE TABLE orders(id INTEGER PRIMARY KEY, owner INTEGER, price REAL, note TEXT);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 400000)
INSERT INTO orders SELECT i, i % 1000, i * 0.5, 'order ' || i FROM n;
CREATE INDEX by_owner ON orders(owner, price);
SELECT count(*), sum(price) FROM orders WHERE owner IN (SELECT owner FROM orders WHERE id % 97 = 0);
SELECT owner, count(*), max(note) FROM orders GROUP BY owner ORDER BY 3 LIMIT 5;
UPDATE orders SET price = price + 1 WHERE id % 3 = 0;
SELECT count(*) FROM orders a JOIN orders b ON a.id = b.owner;
";
/// One statement on each line, as the single-user mode of PostgreSQL reads them.
const POSTGRES: &str = "\
CREATE TABLE orders(id int PRIMARY KEY, owner int, price float, note text);
INSERT INTO orders SELECT i, i % 1000, i * 0.5, 'order ' || i FROM generate_series(1, 300000) i;
CREATE INDEX by_owner ON orders(owner, price);
ANALYZE orders;
SELECT count(*), sum(price) FROM orders WHERE owner IN (SELECT owner FROM orders WHERE id % 97 = 0);
SELECT owner, count(*), max(note) FROM orders GROUP BY owner ORDER BY 3 LIMIT 5;
UPDATE orders SET price = price + 1 WHERE id % 3 = 0;
SELECT count(*) FROM orders a JOIN orders b ON a.id = b.owner;
";

/// A program that people use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RealProgram {
    Zstd,
    Sqlite,
    Postgres,
    Server,
}

impl RealProgram {
    pub const ALL: [Self; 4] = [Self::Zstd, Self::Sqlite, Self::Postgres, Self::Server];

    pub const fn name(self) -> &'static str {
        match self {
            Self::Zstd => "zstd 1.5.4",
            Self::Sqlite => "SQLite 3.40.1",
            Self::Postgres => "PostgreSQL 15",
            Self::Server => "a server with hyper",
        }
    }

    /// Returns how the program is built, in words.
    pub const fn how(self) -> &'static str {
        match self {
            Self::Zstd => "C, `gcc -O3 -g`",
            Self::Sqlite | Self::Postgres => "C, `gcc -O2 -g`",
            Self::Server => "Rust, release, `debug = true`",
        }
    }

    /// Returns the share of its accesses that had a type when it was measured last, in percent.
    pub const fn pinned(self) -> f64 {
        match self {
            Self::Zstd => 94.2,
            Self::Sqlite => 93.8,
            Self::Postgres => 86.9,
            Self::Server => 78.8,
        }
    }

    /// Builds the program, unless it is built already. Returns its path.
    pub fn build(self, sources: &Path, server: &Path) -> Result<PathBuf> {
        let (folder, binary, steps): (PathBuf, &str, &str) = match self {
            Self::Server => return Ok(server.to_owned()),
            Self::Zstd => (
                sources.join("zstd"),
                "programs/zstd",
                "make -s -C programs zstd CFLAGS='-O3 -g' HAVE_ZLIB=0 HAVE_LZMA=0 HAVE_LZ4=0",
            ),
            Self::Sqlite => (
                sources.join("sqlite"),
                "sqlite3-shell",
                "mkdir -p build && cd build && ../configure -q --disable-tcl --disable-readline && \
                 make -s sqlite3.c shell.c && \
                 gcc -O2 -g -DSQLITE_THREADSAFE=0 -DSQLITE_OMIT_LOAD_EXTENSION shell.c sqlite3.c -lm \
                 -o ../sqlite3-shell",
            ),
            Self::Postgres => (
                sources.join("postgres"),
                "installed/bin/postgres",
                // The headers first: with several jobs, two of them would make the same one.
                "./configure -q --prefix=\"$PWD/installed\" --without-readline --without-zlib --without-icu \
                 CFLAGS='-O2 -g' && make -s -C src/backend generated-headers && \
                 for part in src/port src/common src/timezone src/interfaces/libpq src/fe_utils src/backend \
                 src/bin/initdb; do make -s -j2 -C $part && make -s -C $part install || exit 1; done && \
                 make -s -C src/backend/snowball install && make -s -C src/backend/utils/mb/conversion_procs install && \
                 make -s -C src/pl/plpgsql/src install",
            ),
        };
        let binary = folder.join(binary);
        if !binary.exists() {
            let shell =
                Command::new("sh").args(["-ec", steps]).current_dir(&folder).stdout(Stdio::null()).status();
            let status = shell.with_context(|| format!("{}: are the sources there?", folder.display()))?;
            ensure!(status.success() && binary.exists(), "its build ended with {status}");
        }
        Ok(binary)
    }

    /// Prepares what the program works with, below a folder.
    pub fn prepare(self, binary: &Path, folder: &Path) -> Result<()> {
        match self {
            Self::Zstd => {
                // Its own sources and objects, which have text and code.
                let of = binary.ancestors().nth(2).context("the sources")?;
                let mut tar = Command::new("tar");
                tar.arg("-cf").arg(folder.join("input")).arg("-C").arg(of).arg(".");
                ensure!(succeeds(&mut tar)?, "tar failed");
            }
            Self::Sqlite => std::fs::write(folder.join("input"), SQLITE)?,
            Self::Postgres => {
                std::fs::write(folder.join("input"), POSTGRES)?;
                std::fs::set_permissions(folder, std::fs::Permissions::from_mode(0o755))?;
                let data = folder.join("data");
                let _none_yet = std::fs::remove_dir_all(&data);
                std::fs::create_dir(&data)?;
                std::os::unix::fs::chown(&data, Some(NOBODY), Some(NOBODY))?;
                let initdb = binary.with_file_name("initdb");
                let words = ["--no-locale", "--no-sync", "-E", "UTF8", "-U", "bench", "-D"];
                let mut made = as_nobody();
                ensure!(succeeds(made.arg(initdb).args(words).arg(data))?, "initdb failed");
            }
            Self::Server => {}
        }
        Ok(())
    }

    /// Returns the command whose samples are wanted.
    pub fn command(self, binary: &Path, folder: &Path) -> Vec<String> {
        let [binary, input] = [binary, &folder.join("input")].map(|path| path.display().to_string());
        let shell = |line: String| vec!["sh".to_owned(), "-c".to_owned(), line];
        match self {
            Self::Zstd => {
                let level = |level| format!("{binary} -q -{level} -c {input} | {binary} -q -t");
                shell([1, 3, 9].map(level).join("; "))
            }
            Self::Sqlite => shell(format!("{binary} < {input}")),
            Self::Postgres => shell(format!(
                "exec setpriv --reuid={NOBODY} --regid={NOBODY} --clear-groups {binary} --single -F \
                 -D {}/data postgres < {input}",
                folder.display()
            )),
            Self::Server => vec![binary],
        }
    }

    /// Does what the program waits for, while it is sampled.
    pub fn attend(self, child: &mut Child) -> Result<()> {
        if self != Self::Server {
            return Ok(());
        }
        let mut port = String::new();
        BufReader::new(child.stdout.as_mut().context("its output")?).read_line(&mut port)?;
        let stream = TcpStream::connect(("127.0.0.1", port.trim().parse()?))?;
        stream.set_nodelay(true)?;
        let (mut to, mut from) = (stream.try_clone()?, BufReader::new(stream));
        let (mut line, mut body) = (String::new(), Vec::new());
        for number in 0..REQUESTS {
            to.write_all(format!("GET /{number} HTTP/1.1\r\nHost: bench\r\n\r\n").as_bytes())?;
            let mut length = 0;
            loop {
                line.clear();
                ensure!(from.read_line(&mut line)? > 0, "the server has closed the connection");
                match line.trim_end().split_once(": ") {
                    Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                        length = value.parse()?
                    }
                    None if line.trim_end().is_empty() => break,
                    _ => {}
                }
            }
            body.resize(length, 0);
            from.read_exact(&mut body)?;
        }
        drop(child.stdin.take());
        Ok(())
    }
}

fn as_nobody() -> Command {
    let mut command = Command::new("setpriv");
    command.args([&format!("--reuid={NOBODY}"), &format!("--regid={NOBODY}"), "--clear-groups"]);
    command
}

fn succeeds(command: &mut Command) -> Result<bool> {
    Ok(command.stdout(Stdio::null()).status()?.success())
}

/// Starts precise with a command, and attends to it until both end.
pub fn run(precise: &Path, program: RealProgram, words: &[String]) -> Result<()> {
    let mut command = Command::new(precise);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = KillOnDrop::from(command.spawn()?);
    program.attend(&mut child)?;
    drop(child.stdin.take());
    // What it prints must not fill the pipes.
    let (out, err) = (child.stdout.take(), child.stderr.take());
    let out = std::thread::spawn(move || out.map(|mut out| std::io::copy(&mut out, &mut std::io::sink())));
    let mut said = String::new();
    if let Some(mut err) = err {
        err.read_to_string(&mut said)?;
    }
    let _copied = out.join();
    let status = child.wait()?;
    ensure!(status.success(), "precise {words:?} ended with {status}: {said}");
    Ok(())
}

/// Runs a command to its end, and returns what it printed.
pub fn stdout(tool: &Path, words: &[&str]) -> Result<Vec<u8>> {
    let ran = Command::new(tool).args(words).output()?;
    let said = String::from_utf8_lossy(&ran.stderr);
    ensure!(ran.status.success(), "{} {words:?}: {}: {said}", tool.display(), ran.status);
    Ok(ran.stdout)
}
