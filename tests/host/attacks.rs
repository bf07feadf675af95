//! Programs that attack the process that looks up their names, run by a user without rights in
//! namespaces of their own: nothing that they contain ends a run, fills its memory or costs the
//! names of others.

use std::ffi::{CString, OsStr};
use std::fs::{self, Permissions};
use std::io::Read as _;
use std::os::fd::{AsRawFd as _, FromRawFd as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use precise_tests::clock::{self, Clock};
use precise_tests::jail::Jail;
use precise_tests::program::{self, FUNCTION, faults};
use precise_tests::resident::peak;
use precise_tests::run::{EVERYWHERE, FAULTS, Live, precise, undisturbed};

/// Pages that each program touches.
const PAGES: u64 = 211;
/// The most memory that the recorder may take, in bytes.
const MEMORY: u64 = 256 << 20;

/// Debug information in which functions are inlined into each other, a million times, at every
/// address. A reader that descends into them needs that much stack.
const NESTED: &str = r#"
    .section .debug_abbrev,"",@progbits
    .byte 1,0x11,1, 0x11,1, 0x12,7, 0x10,0x17, 0,0
    .byte 2,0x2e,1, 3,8, 0x11,1, 0x12,7, 0,0
    .byte 3,0x1d,1, 0x11,1, 0x12,7, 0,0
    .byte 0
    .section .debug_info,"",@progbits
    .long 2f-1f
1:  .short 4
    .long 0
    .byte 8
    .byte 1
    .quad 0, 0x7fffffffffff
    .long 0
    .byte 2
    .asciz "f"
    .quad 0, 0x7fffffffffff
    .rept 1000000
    .byte 3
    .quad 0, 0x7fffffffffff
    .endr
    .zero 1000002
2:
    .section .debug_line,"",@progbits
    .long 4f-3f
3:  .short 4
    .long 6f-5f
5:  .byte 1,1,1,0xfb,14,13, 0,1,1,1,1,0,0,0,1,0,0,1, 0
    .asciz "x.c"
    .byte 0,0,0,0
6:  .byte 0,9,2
    .quad 0
    .byte 1,2
    .uleb128 0x7fffffffffff
    .byte 0,1,1
4:
    .section .note.GNU-stack,"",@progbits
"#;

/// How long the programs of the jail live after their faults, in microseconds: the files of a jail
/// can be found while one of its processes lives.
const LINGERS: &str = "usleep(700000); return 0;";
/// Begins each line of a file that only root may read.
const SECRET: &str = "only the owner reads line";
/// The build id that a program of the host and one of the jail have.
const BUILD_ID: &str = "0102030405060708090a0b0c0d0e0f1011121314";
/// The function of [`forged`], as long as [`FUNCTION`].
const FORGED: &str = "forge_pages";

/// A program of the jail: the name of its process, and what a note of the capture says about it;
/// `None` if it is read without trouble.
struct Attack {
    name: &'static str,
    note: Option<&'static str>,
    /// The name of its function.
    function: &'static str,
}

/// Returns the source of a program that touches pages and then lives on for a moment.
fn lingering() -> String {
    program::FAULTS.replace("return 0;", LINGERS)
}

/// Makes the programs of the jail. The debug links of one name a file that exists on the host,
/// `secret`, and a pipe.
fn attacks(jail: &Jail, secret: &Path) -> Result<Vec<Attack>> {
    let source = lingering();
    let assembly = jail.folder().join("nested.s");
    fs::write(&assembly, NESTED)?;
    jail.c("nested", &source, &["-g0", assembly.to_str().context("text")?])?;
    // A table of symbols of 4 TiB, in a file that takes no room on the disk.
    let holes = jail.c("holes", &source, &[])?;
    let at = section(&holes, ".symtab")?;
    let file = fs::OpenOptions::new().write(true).open(&holes)?;
    file.write_all_at(&(1_u64 << 42).to_le_bytes(), at + 32)?;
    file.set_len(1 << 43)?;
    drop(file);
    // Debug information that claims to have a tebibyte when it is decompressed.
    let bomb = jail.c("bomb", &source, &[])?;
    let at = section(&bomb, ".debug_info")?;
    let bytes = fs::read(&bomb)?;
    let word = |at: usize| bytes[at..at + 8].iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    let file = fs::OpenOptions::new().write(true).open(&bomb)?;
    file.write_all_at(&(1_u64 << 11).to_le_bytes(), at + 8)?;
    file.write_all_at(&[1_u64, 1 << 40, 1].map(u64::to_le_bytes).concat(), word(at as usize + 24))?;
    drop(file);
    let pipe = jail.folder().join("pipe");
    run("mkfifo", [&pipe])?;
    let linked = jail.c("linked", &source, &[])?;
    link(&linked, ".gnu_debuglink", &pipe)?;
    // A way out by parent folders: more of them than any path has.
    let up = Path::new("/usr/lib/debug").join("../".repeat(20)).join(secret.strip_prefix("/")?);
    let absolute = jail.c("absolute", &source, &[])?;
    link(&absolute, ".gnu_debuglink", secret)?;
    link(&absolute, ".gnu_debugaltlink", &up)?;
    link(&absolute, ".debug_sup", secret)?;
    // A short symbol that demangles to a name of gigabytes: each part has the one before it twice.
    let long = (0..40).fold("_Z1fI1AS_E".to_owned(), |name, depth| {
        let last = if depth == 0 { "S0_".to_owned() } else { format!("S{depth}_") };
        format!("_Z1fI{last}{last}E{}", name.trim_start_matches("_Z1f"))
    });
    jail.c("symbol", &source.replace(FUNCTION, &long), &[])?;

    let attack = |name, note, function| Attack { name, note, function };
    Ok(vec![
        attack("nested", Some("the process that read it ran out of memory or stack"), FUNCTION),
        attack("holes", Some("which is more than 1024 MiB"), "[failed]"),
        attack("bomb", Some("decompressed debug information take"), FUNCTION),
        attack("linked", None, FUNCTION),
        attack("absolute", None, FUNCTION),
        attack("symbol", None, ""),
    ])
}

/// Adds a section that names a file with debug information to a program.
fn link(program: &Path, section: &str, file: &Path) -> Result<()> {
    let mut name = file.to_str().context("a path that is text")?.as_bytes().to_vec();
    let content = match section {
        // The name, at a multiple of four, and a checksum.
        ".gnu_debuglink" => {
            name.resize((name.len() + 1).next_multiple_of(4), 0);
            [&name[..], &[1, 2, 3, 4]].concat()
        }
        // The name and a build id.
        ".gnu_debugaltlink" => [&name[..], &[0; 21]].concat(),
        // Version 5, not supplementary itself, the name, a checksum of one byte.
        _ => [&[5, 0, 0][..], &name, &[0, 1, 7]].concat(),
    };
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("content");
    fs::write(&file, content)?;
    let added = format!("{section}={}", file.display());
    run("objcopy", [OsStr::new("--add-section"), added.as_ref(), program.as_ref()])
}

/// Makes two programs with one path and one build id: one of the host, and one of the jail whose
/// function has another name. Returns the path.
fn forged(jail: &Jail, host: &Path) -> Result<PathBuf> {
    let build_id = format!("-Wl,--build-id=0x{BUILD_ID}");
    let options = ["-static", &build_id];
    let program = program::c_with(&options, host, "twin", program::FAULTS)?;
    let inside = jail.folder().join(host.strip_prefix("/")?);
    fs::create_dir_all(&inside)?;
    program::c_with(&options, &inside, "twin", &lingering().replace(FUNCTION, FORGED))?;
    Ok(program)
}

/// Makes a program of the jail that the host has at the same path, as on a shared volume. Its line
/// table names a file of the host. Returns the path.
fn shared(jail: &Jail, host: &Path, secret: &Path) -> Result<PathBuf> {
    let source = format!("# 1 \"{}\"\n{}", secret.display(), lingering());
    let program = program::c_with(&["-static"], host, "shared", &source)?;
    let inside = jail.folder().join(program.strip_prefix("/")?);
    fs::create_dir_all(inside.parent().context("a folder")?)?;
    fs::hard_link(&program, inside)?;
    Ok(program)
}

/// Notices when somebody opens a file.
struct OpenWatch(fs::File);

impl OpenWatch {
    fn new(file: &Path) -> Result<Self> {
        let name = CString::new(file.as_os_str().as_bytes())?;
        // SAFETY: a call without memory of this process.
        let watch = unsafe { libc::inotify_init1(libc::IN_NONBLOCK | libc::IN_CLOEXEC) };
        ensure!(watch >= 0, "inotify: {}", std::io::Error::last_os_error());
        // SAFETY: the descriptor is new, and nothing else owns it.
        let watch = Self(unsafe { fs::File::from_raw_fd(watch) });
        // SAFETY: the name is a live C string.
        let added = unsafe { libc::inotify_add_watch(watch.0.as_raw_fd(), name.as_ptr(), libc::IN_OPEN) };
        ensure!(added >= 0, "inotify: {}", std::io::Error::last_os_error());
        Ok(watch)
    }

    /// Returns whether the file was opened since the last call.
    fn was_opened(&mut self) -> bool {
        self.0.read(&mut [0; 4096]).is_ok_and(|bytes| bytes > 0)
    }
}

fn run<A: AsRef<OsStr>>(program: &str, arguments: impl IntoIterator<Item = A>) -> Result<()> {
    ensure!(Command::new(program).args(arguments).status()?.success(), "{program} failed");
    Ok(())
}

/// Returns where the header of a section is in a 64-bit ELF file.
fn section(program: &Path, name: &str) -> Result<u64> {
    let bytes = fs::read(program)?;
    let number = |at: usize, size: usize| {
        bytes[at..at + size].iter().rev().fold(0, |sum, &byte| sum << 8 | usize::from(byte))
    };
    let (table, names) = (number(40, 8), number(62, 2));
    let names = number(table + 64 * names + 24, 8);
    (0..number(60, 2))
        .map(|index| table + 64 * index)
        .find(|&at| bytes[names + number(at, 4)..].starts_with(&[name.as_bytes(), b"\0"].concat()))
        .map(|at| at as u64)
        .with_context(|| format!("{} has no section {name}", program.display()))
}

#[test]
fn no_program_costs_more_than_its_own_names() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        let honest = faults(folder.path(), "honest")?;
        let secret = folder.path().join("secret");
        let lines: Vec<String> = (1..=50).map(|line| format!("{SECRET} {line}")).collect();
        fs::write(&secret, lines.join("\n"))?;
        fs::set_permissions(&secret, Permissions::from_mode(0o600))?;
        let jail = Jail::new()?;
        let attacks = attacks(&jail, &secret)?;
        let shared = shared(&jail, folder.path(), &secret)?;
        let twin = forged(&jail, folder.path())?;
        let mut watched = OpenWatch::new(&secret)?;
        let live = Live::start(folder.path(), &[FAULTS, EVERYWHERE, &["--epoch", "500ms"]].concat())?;
        let before = peak(live.pid())?;
        let pages = PAGES.to_string();
        run(honest.to_str().context("text")?, [&pages])?;
        // All at once. The forged names come before those of the host, in one epoch.
        let inside = [&shared, &twin].map(|program| program.display().to_string());
        let all = attacks.iter().map(|attack| format!("/{}", attack.name)).chain(inside);
        let running: Vec<_> = all.map(|program| jail.start(&program, &[&pages])).collect::<Result<_>>()?;
        run(twin.to_str().context("text")?, ["97"])?;
        for mut program in running {
            let status = program.wait()?;
            ensure!(status.success(), "in the jail: {status}");
        }
        // Their epochs are over, and are being named.
        clock::sleep(Duration::from_millis(1500));
        run(honest.to_str().context("text")?, [&pages])?;
        let most = peak(live.pid())?;
        let begun = Clock::start();
        let recorded = live.interrupt()?;
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
        assert!(most < before + MEMORY, "{most} bytes, {before} before");

        let (rows, notes) = (recorded.rows(), &recorded.capture.meta.notes);
        let of = |name: &str| rows.only(|row| row.process == name && row.address.is_some());
        assert_eq!(of("honest").of(FUNCTION).count(), 2 * PAGES);
        for attack in &attacks {
            let own = of(attack.name);
            let named = own.only(|row| row.function.contains(attack.function) && row.function.len() < 8192);
            assert_eq!(named.count(), PAGES, "{}: {own:?}", attack.name);
            let path = format!("/{}", attack.name);
            let noted: Vec<_> = notes.iter().filter(|note| note.contains(&path)).collect();
            match attack.note {
                Some(what) => assert!(noted.iter().any(|note| note.contains(what)), "{notes:?}"),
                None => assert!(noted.is_empty(), "{noted:?}"),
            }
        }
        // Nobody's names are those of a file with the same path and build id.
        let twins = of("twin");
        assert_eq!((twins.of(FUNCTION).count(), twins.of(FORGED).count()), (97, PAGES), "{twins:?}");
        assert!(!watched.was_opened(), "a file that a debug link names was opened");

        // No view shows the file that a line table names.
        let capture = folder.path().join("live.parquet").display().to_string();
        let page = folder.path().join("page.html").display().to_string();
        for view in [&["annotate"][..], &["annotate", "--all", "--json"], &["report", "--html", &page]] {
            let ended = precise([view, &["-i", &capture]].concat())?.expect(0)?;
            let drawn =
                if view.contains(&page.as_str()) { fs::read_to_string(&page)? } else { String::new() };
            assert!(!(ended.stdout + &drawn).contains(SECRET), "{view:?}");
        }
        assert!(!watched.was_opened(), "a file that a line table names was opened");
        Ok(())
    })
}
