//! Tenants that start, map and touch more than anybody needs, as users without rights in jails:
//! they cost bounded memory, nobody else's names, and what is missing has a name.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use precise::run::budget::NamesBudget;
use precise_common::ledger::Counter;
use precise_common::mode::VSYSCALL;
use precise_tests::cgroup::Cgroup;
use precise_tests::clock::{self, Clock};
use precise_tests::jail::{Jail, STARTER};
use precise_tests::kill_on_drop::KillOnDrop;
use precise_tests::program::{self, FUNCTION, faults};
use precise_tests::resident::peak;
use precise_tests::run::{EVERYWHERE, FAULTS, Live, undisturbed};

const PAGES: u64 = 211;
/// The kinds of storms: see the head of tenant.c.
const KINDS: [&str; 8] = ["pages", "brief", "starts", "maps", "libraries", "shrinks", "compiles", "vsyscall"];
const LIBRARY: &str = "void touch_library(volatile char *p, long pages)
{
    long i;
    for (i = 0; i < pages; i++)
        p[i * 4096] = 1;
}
";
/// The function of [`LIBRARY`].
const OF_LIBRARY: &str = "touch_library";

/// A jail with a program for each of [`KINDS`].
struct Tenant {
    jail: Jail,
    /// The offset of [`OF_LIBRARY`] in its file, in hexadecimal.
    offset: String,
}

impl Tenant {
    fn new() -> Result<Self> {
        let jail = Jail::new()?;
        let program = jail.c("tenant", include_str!("tenant.c"), &[])?;
        for kind in KINDS {
            std::fs::hard_link(&program, jail.folder().join(kind))?;
        }
        let library = program::c_with(&["-shared", "-fPIC", "-nostdlib"], jail.folder(), "library", LIBRARY)?;
        let symbols = String::from_utf8(Command::new("nm").arg(library).output()?.stdout)?;
        let line = symbols.lines().find(|line| line.ends_with(OF_LIBRARY)).context("nm lists it")?;
        // The code of a library lies in its file where it is mapped.
        let offset = line.split(' ').next().context("an address")?.to_owned();
        Ok(Self { jail, offset })
    }

    fn start(&self, kind: &str, number: u64) -> Result<Child> {
        self.jail.start(&format!("/{kind}"), &[&number.to_string(), &self.offset])
    }

    fn run(&self, kind: &str, number: u64) -> Result<()> {
        let status = self.start(kind, number)?.wait()?;
        ensure!(status.success(), "{kind}: {status}");
        Ok(())
    }
}

/// Containers, each with a cgroup and a root folder of its own, with a program whose only function
/// has a name of its own. They run until this is dropped.
struct Containers {
    containers: Vec<Container>,
    _parent: Cgroup,
}

struct Container {
    _running: KillOnDrop,
    cgroup: Cgroup,
    _jail: Jail,
    process: String,
    function: String,
    pages: u64,
}

impl Containers {
    /// Starts containers with the program of a tenant, whose function then has other names.
    fn start(tenant: &Tenant, number: u64) -> Result<Self> {
        const NAME: &str = "touch_pages";
        let program = std::fs::read(tenant.jail.folder().join("pages"))?;
        let parent = Cgroup::new("containers")?;
        let start = |index: u64| {
            let (process, function) = (format!("web-{index}"), format!("touch_p{index:04}"));
            let (jail, cgroup, pages) = (Jail::new()?, parent.child(&process)?, 100 + index);
            let file = jail.folder().join(&process);
            std::fs::write(&file, replaced(&program, NAME, &function))?;
            std::fs::set_permissions(&file, Permissions::from_mode(0o755))?;
            let path = format!("/{process}");
            let mut command = cgroup.command(Path::new(STARTER));
            let running =
                command.args(jail.arguments(&path)).arg(pages.to_string()).current_dir("/").spawn()?;
            Ok(Container { _running: running.into(), cgroup, _jail: jail, process, function, pages })
        };
        let containers = (0..number).map(start).collect::<Result<_>>()?;
        Ok(Self { containers, _parent: parent })
    }
}

impl Drop for Containers {
    fn drop(&mut self) {
        for container in &self.containers {
            // A cgroup that is not empty stays, and the next run uses another name.
            let _gone = container.cgroup.kill();
        }
    }
}

/// Returns bytes in which one text is replaced by another one of the same length.
fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let places: Vec<usize> = bytes
        .windows(from.len())
        .enumerate()
        .filter(|(_, at)| *at == from.as_bytes())
        .map(|(at, _)| at)
        .collect();
    for at in places {
        bytes.splice(at..at + from.len(), to.bytes());
    }
    bytes
}

fn run(program: &Path, pages: u64) -> Result<()> {
    let status = Command::new(program).arg(pages.to_string()).status()?;
    ensure!(status.success(), "{}: {status}", program.display());
    Ok(())
}

#[test]
fn storms_cost_bounded_memory_and_nobody_elses_names() -> Result<()> {
    /// Programs that are started, each of which touches three pages.
    const STARTS: u64 = 300;
    /// More files than may be open at a time.
    const LIBRARIES: u64 = 900;
    const CONTAINERS: u64 = 100;
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let honest = faults(folder.path(), "honest")?;
        let tenant = Tenant::new()?;
        let live = Live::start(folder.path(), &[FAULTS, EVERYWHERE, &["--epoch", "4s"]].concat())?;
        let before = peak(live.pid())?;
        run(&honest, PAGES)?;
        tenant.run("starts", STARTS)?;
        let _lives: KillOnDrop = tenant.start("libraries", LIBRARIES)?.into();
        let containers = Containers::start(&tenant, CONTAINERS)?;
        tenant.run("compiles", PAGES)?;
        tenant.run("shrinks", PAGES)?;
        // Long enough that what was mapped so far is known.
        clock::sleep(Duration::from_millis(500));
        tenant.run("maps", 60_000)?;
        clock::sleep(Duration::from_millis(500));
        run(&honest, PAGES)?;
        clock::sleep(Duration::from_secs(1));
        let most = peak(live.pid())?;
        let begun = Clock::start();
        let recorded = live.interrupt()?;
        assert!(begun.elapsed() < Duration::from_secs(8), "{:?}", begun.elapsed());
        // What the run has printed as its limit.
        let most_for_names = NamesBudget::of_this_machine().sum() as u64;
        assert!(most < before + most_for_names, "{most} bytes, {before} before");
        precise_tests::say(&format!("{} KiB before the storms, {} at most", before >> 10, most >> 10));

        let (rows, notes) = (recorded.rows(), &recorded.capture.meta.notes);
        let of = |name: &str| rows.only(|row| row.process == name);
        assert_eq!(of("honest").of(FUNCTION).count(), 2 * PAGES, "{notes:?}");
        // The file of a program of a jail cannot be found when the program has ended.
        assert_eq!(of("brief").count(), 3 * STARTS, "{notes:?}");
        let libraries = of("libraries").of(OF_LIBRARY);
        assert_eq!(libraries.count(), LIBRARIES, "{notes:?}");
        assert_eq!(libraries.all(|row| row.module.clone()).len() as u64, LIBRARIES);
        for Container { cgroup, process, function, pages, .. } in &containers.containers {
            let all = rows.only(|row| row.cgroup == cgroup.path);
            let named = all.of(function).only(|row| row.process == *process);
            assert_eq!((named.count(), all.count()), (*pages, *pages), "{process}: {all:?} {notes:?}");
        }
        // Its own names may be missing, its samples may not.
        assert_eq!((of("compiles").count(), of("shrinks").count()), (PAGES, PAGES), "{notes:?}");
        let storms = |row: &precise_tests::rows::Row| row.process == "maps" || row.process.starts_with('[');
        assert_eq!(rows.only(storms).count(), 7, "{notes:?}");
        Ok(())
    })
}

/// A ring of 256 KiB has room for 2,000 of these records, and the loop comes by every 50 or 100 ms.
#[test]
fn mappings_are_read_before_they_fill_a_ring() -> Result<()> {
    const MAPPINGS: u64 = 20_000;
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let tenant = Tenant::new()?;
        let options = ["record", "-e", "cpu-clock", "-F", "99", "-a", "--duration", "300s"];
        let live = Live::start(folder.path(), &options)?;
        tenant.run("maps", MAPPINGS)?;
        let notes = live.interrupt()?.capture.meta.notes;
        let number = |lost: &str| lost.split(' ').next()?.replace(',', "").parse().ok();
        let lost = notes.iter().find_map(|note| number(note.strip_prefix("the kernel lost ")?));
        let lost: u64 = lost.unwrap_or(0);
        precise_tests::say(&format!("{lost} records lost of {MAPPINGS} mappings in a row"));
        assert!(lost < MAPPINGS / 4, "{notes:?}");
        Ok(())
    })
}

/// The processor runs the vsyscall page in user mode, although its address is in the kernel's half.
#[test]
fn the_vsyscall_page_is_not_the_kernel() -> Result<()> {
    if !std::fs::read_to_string("/proc/self/maps")?.contains("[vsyscall]") {
        precise_tests::skip("this kernel has no vsyscall page");
        return Ok(());
    }
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let tenant = Tenant::new()?;
        // Each call is a page fault, because the kernel emulates what the page would do.
        let options = ["-a", "--duration", "300s", "--filter", "comm == vsyscall, user, ip > 0x800000000000"];
        let live = Live::start(folder.path(), &[FAULTS, &options].concat())?;
        tenant.run("vsyscall", PAGES)?;
        let rows = live.interrupt()?.rows();
        assert_eq!(rows.count(), PAGES, "{rows:?}");
        let of_the_page = rows.only(|row| {
            row.ip == VSYSCALL + 0x400
                && row.module == "[vsyscall]"
                && !row.kernel
                && row.process == "vsyscall"
        });
        assert_eq!(of_the_page.count(), PAGES, "{rows:?}");
        Ok(())
    })
}

#[test]
fn who_fills_the_table_is_named() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let tenant = Tenant::new()?;
    let honest = faults(folder.path(), "honest")?;
    let options = ["-a", "--duration", "300s", "--table-cells", "64", "--filter", "comm in {pages, honest}"];
    let by = ["record", "-e", "page-faults", "-c", "1", "--by", "address,process", "--granule", "4096"];
    let live = Live::start(folder.path(), &[&by[..], &options].concat())?;
    run(&honest, 7)?;
    tenant.run("pages", 100_000)?;
    let recorded = live.interrupt()?;
    let ledger = recorded.ledger();
    assert!(ledger.counter(Counter::TableFull) > 0 && ledger.unaccounted() == 0, "{ledger:?}");
    let text = recorded.ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("The process pages fills most of the table"), "{text}");
    Ok(())
}
