//! Programs that attack the process that looks up their names, run by a user without rights in
//! namespaces of their own: nothing that they contain ends a run, fills its memory or costs the
//! names of others.

use std::ffi::OsStr;
use std::fs::{self, Permissions};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use precise_tests::clock::{self, Clock};
use precise_tests::program::{self, FUNCTION, faults};
use precise_tests::run::{EVERYWHERE, FAULTS, Live, undisturbed};

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

/// A program, the name of its process, and what a note of the capture says about it; `None` if it
/// is read without trouble.
struct Attack {
    program: PathBuf,
    name: &'static str,
    note: Option<&'static str>,
    /// The name of its function.
    function: &'static str,
}

fn attacks(folder: &Path) -> Result<Vec<Attack>> {
    let nested = {
        let (source, assembly) = (folder.join("nested.c"), folder.join("nested.s"));
        fs::write(&source, program::FAULTS)?;
        fs::write(&assembly, NESTED)?;
        let program = folder.join("nested");
        run("gcc", [OsStr::new("-O2"), "-o".as_ref(), program.as_ref(), source.as_ref(), assembly.as_ref()])?;
        program
    };
    // A table of symbols of 4 TiB, in a file that takes no room on the disk.
    let holes = faults(folder, "holes")?;
    let at = section(&holes, ".symtab")?;
    let file = fs::OpenOptions::new().write(true).open(&holes)?;
    file.write_all_at(&(1_u64 << 42).to_le_bytes(), at + 32)?;
    file.set_len(1 << 43)?;
    drop(file);
    // Debug information that claims to have a tebibyte when it is decompressed.
    let bomb = faults(folder, "bomb")?;
    let at = section(&bomb, ".debug_info")?;
    let bytes = fs::read(&bomb)?;
    let word = |at: usize| bytes[at..at + 8].iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte));
    let file = fs::OpenOptions::new().write(true).open(&bomb)?;
    file.write_all_at(&(1_u64 << 11).to_le_bytes(), at + 8)?;
    file.write_all_at(&[1_u64, 1 << 40, 1].map(u64::to_le_bytes).concat(), word(at as usize + 24))?;
    drop(file);
    // The name of a pipe that nobody writes to, where the name of a file with debug information is.
    let linked = faults(folder, "linked")?;
    let (pipe, link) = (folder.join("pipe"), folder.join("link"));
    run("mkfifo", [&pipe])?;
    let mut name = pipe.to_str().context("a path that is text")?.as_bytes().to_vec();
    name.resize((name.len() + 1).next_multiple_of(4), 0);
    fs::write(&link, [&name[..], &[1, 2, 3, 4]].concat())?;
    let section = format!(".gnu_debuglink={}", link.display());
    run("objcopy", [OsStr::new("--add-section"), section.as_ref(), linked.as_ref()])?;

    let attack = |program, name, note, function| Attack { program, name, note, function };
    Ok(vec![
        attack(nested, "nested", Some("the process that read it ran out of memory or stack"), FUNCTION),
        attack(holes, "holes", Some("which is more than 1024 MiB"), "[failed]"),
        attack(bomb, "bomb", Some("decompressed debug information take"), FUNCTION),
        attack(linked, "linked", None, FUNCTION),
    ])
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

/// Runs a program as a user without rights, in namespaces of its own.
fn in_jail(program: &Path) -> Result<()> {
    let jail = [
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--no-new-privs",
        "--bounding-set=-all",
        "unshare",
        "--user",
        "--mount",
        "--pid",
        "--ipc",
        "--net",
        "--fork",
    ];
    let pages = PAGES.to_string();
    run("setpriv", jail.map(OsStr::new).into_iter().chain([program.as_os_str(), pages.as_ref()]))
}

/// Returns the most memory that a process has taken so far, in bytes.
fn peak(pid: u32) -> Result<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status"))?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next());
    Ok(kib.context("no VmHWM")?.parse::<u64>()? << 10)
}

#[test]
fn no_program_costs_more_than_its_own_names() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        fs::set_permissions(folder.path(), Permissions::from_mode(0o755))?;
        let honest = faults(folder.path(), "honest")?;
        let attacks = attacks(folder.path())?;
        let live = Live::start(folder.path(), &[FAULTS, EVERYWHERE, &["--epoch", "500ms"]].concat())?;
        let before = peak(live.pid())?;
        run(honest.to_str().context("text")?, [PAGES.to_string()])?;
        for attack in &attacks {
            in_jail(&attack.program)?;
        }
        // Their epochs are over, and are being named.
        clock::sleep(Duration::from_millis(1500));
        run(honest.to_str().context("text")?, [PAGES.to_string()])?;
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
            assert_eq!(own.of(attack.function).count(), PAGES, "{}: {own:?}", attack.name);
            let path = attack.program.to_str().context("text")?;
            let noted: Vec<_> = notes.iter().filter(|note| note.contains(path)).collect();
            match attack.note {
                Some(what) => assert!(noted.iter().any(|note| note.contains(what)), "{notes:?}"),
                None => assert!(noted.is_empty(), "{noted:?}"),
            }
        }
        Ok(())
    })
}
