//! Tests of names: processes that exec, fork, exit early or lose their binary still have their
//! names.

use std::{
    collections::BTreeMap,
    fs,
    path::Path,
    process::Command,
    thread::sleep,
    time::{Duration, Instant},
};

use anyhow::{Result, ensure};
use precise_common::ledger::Counter;
use precise_tests::{
    program::{self, FUNCTION, Held, LINE, faults},
    resident::children,
    run::{EVERYWHERE, FAULTS, Live, Recorded, precise, record_faults, undisturbed},
};

const FIRST: u64 = 1009;
const SECOND: u64 = 503;

/// Faults its own pages, then executes another program: `become PAGES PROGRAM ARGUMENT`.
const BECOME: &str = r#"#define _GNU_SOURCE
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

__attribute__((noinline)) void touch_before(volatile char *p, long pages)
{
    long i;
    for (i = 0; i < pages; i++)
        p[i * 4096] = 1;
}

int main(int argc, char **argv)
{
    long pages = atol(argv[1]);
    char *p = mmap((void *)0x500000000000, pages * 4096, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    madvise(p, pages * 4096, MADV_NOHUGEPAGE);
    touch_before(p, pages);
    execl(argv[2], argv[2], argv[3], (char *)0);
    return 5;
}
"#;

#[test]
fn a_process_that_becomes_another_program() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let before = program::c(folder.path(), "before", BECOME)?;
        let after = faults(folder.path(), "after")?;
        let arguments = [FIRST.to_string(), after.display().to_string(), SECOND.to_string()];
        let check = |rows: precise_tests::rows::Rows| {
            let (old, new) = (rows.of("touch_before"), rows.of(FUNCTION));
            assert_eq!((old.count(), new.count()), (FIRST, SECOND));
            assert_eq!(old.all(|row| row.process.clone()), ["before".to_owned()].into());
            assert_eq!(new.all(|row| row.process.clone()), ["after".to_owned()].into());
            assert_eq!(old.all(|row| row.module.clone()), [before.display().to_string()].into());
            assert_eq!(new.all(|row| row.module.clone()), [after.display().to_string()].into());
            // The process id never changes.
            assert_eq!(old.all(|row| row.pid), new.all(|row| row.pid));
        };
        let program = before.display().to_string();
        let command = [&program, &arguments[0], &arguments[1], &arguments[2]].map(String::as_str);
        check(record_faults(folder.path(), &[], &command)?.rows());

        // The same in a run over the whole machine, with both programs within one epoch.
        let live = Live::start(folder.path(), &[FAULTS, EVERYWHERE, &["--epoch", "10s"]].concat())?;
        ensure!(Command::new(&before).args(&arguments).status()?.success());
        check(live.interrupt()?.rows());
        Ok(())
    })
}

#[test]
fn a_process_that_lives_for_20_milliseconds() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let source = program::FAULTS.replace("return 0;", "usleep(20000);\n    return 0;");
        let brief = program::c(folder.path(), "brief", &source)?;
        // The table is read long after the process has exited.
        let live = Live::start(folder.path(), &[FAULTS, EVERYWHERE, &["--epoch", "10s"]].concat())?;
        for _ in 0..5 {
            ensure!(Command::new(&brief).arg(FIRST.to_string()).status()?.success());
        }
        let recorded = live.interrupt()?;
        let rows = recorded.rows().of(FUNCTION);
        let unnamed = recorded.rows().only(|row| row.function.starts_with('['));
        assert_eq!(
            rows.count(),
            5 * FIRST,
            "{:?} {:?}",
            recorded.ledger(),
            unnamed.all(|row| (row.function.clone(), row.process.clone()))
        );
        assert_eq!(rows.all(|row| row.pid).len(), 5);
        assert_eq!(rows.all(|row| (row.process.clone(), row.line)), [("brief".to_owned(), LINE)].into());
        Ok(())
    })
}

/// The process that starts the readers of files is killed in the middle of a run of root: programs
/// that start later have their names, and the capture says what happened, and which protections
/// the new readers lack.
#[test]
fn names_go_on_after_the_starter_of_readers_is_killed() -> Result<()> {
    undisturbed(|| {
        let folder = tempfile::tempdir()?;
        let live = Live::start(folder.path(), &[FAULTS, EVERYWHERE, &["--epoch", "200ms"]].concat())?;
        let named = |name: &str| -> Result<()> {
            let program = faults(folder.path(), name)?;
            ensure!(Command::new(&program).arg(FIRST.to_string()).status()?.success());
            Ok(())
        };
        named("earlier")?;
        let readers = children(live.pid());
        ensure!(readers.len() == 1, "{readers:?}");
        // SAFETY: a child of the run, which the run waits for only when it ends.
        ensure!(unsafe { libc::kill(readers[0].cast_signed(), libc::SIGKILL) } == 0);
        named("later")?;
        // It is replaced when the next epoch is named.
        let asked = Instant::now();
        let mut again = children(live.pid());
        while again == readers && asked.elapsed() < Duration::from_secs(5) {
            sleep(Duration::from_millis(20));
            again = children(live.pid());
        }
        let recorded = live.interrupt()?;
        ensure!(again.len() == 1 && again != readers, "{readers:?}, then {again:?}");
        for name in ["earlier", "later"] {
            let rows = recorded.rows().only(|row| row.process == name);
            assert_eq!(
                rows.of(FUNCTION).count(),
                FIRST,
                "{name}: {:?}",
                rows.all(|row| row.function.clone())
            );
            assert_eq!(rows.all(|row| row.line), [LINE].into(), "{name}");
        }
        let notes = &recorded.capture.meta.notes;
        assert!(notes.iter().any(|note| note.ends_with("was killed, and was started again")), "{notes:?}");
        // A run of root can give a reader its own user id only before it drops its rights.
        assert!(notes.iter().any(|note| note.contains("they have no user id of their own")), "{notes:?}");
        Ok(())
    })
}

#[test]
fn a_report_of_another_day_says_the_same() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = faults(folder.path(), "deleted")?;
    record_faults(folder.path(), &[], &[&program.display().to_string(), &FIRST.to_string()])?;
    let file = folder.path().join("faults.parquet").display().to_string();
    let report = || precise(["report", "-i", &file, "--json", "--by", "function,line,module,process"]);
    let before = report()?.expect(0)?;
    std::fs::remove_file(&program)?;
    std::fs::remove_file(program.with_extension("c"))?;
    let after = report()?.expect(0)?;
    assert!(before.stdout.contains(FUNCTION) && before.stdout.contains("deleted.c:10"));
    assert_eq!(before.stdout, after.stdout);
    Ok(())
}

/// As perf and /proc show it: an upgrade that removed the file of a running program is a finding.
#[test]
fn a_module_says_that_its_file_was_deleted() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = faults(folder.path(), "upgraded")?;
    let running = Held::start(&program, FIRST)?;
    std::fs::remove_file(&program)?;
    let target = ["-p", &running.id().to_string(), "--duration", "60s"];
    let live = Live::start(folder.path(), &[FAULTS, &target].concat())?;
    running.go()?;
    let recorded = live.interrupt()?;
    let rows = recorded.rows().of(FUNCTION);
    assert_eq!(rows.count(), FIRST);
    assert_eq!(rows.all(|row| row.module.clone()), [format!("{} (deleted)", program.display())].into());
    Ok(())
}

#[test]
fn children_are_followed() -> Result<()> {
    const FORKS: u64 = 3;
    let folder = tempfile::tempdir()?;
    let source = program::FAULTS.replace("#include <unistd.h>", "#include <unistd.h>\n#include <sys/wait.h>").replace(
        "touch_pages(p, pages);",
        "for (int i = 0; i < 3; i++)\n        if (fork() == 0) {\n            touch_pages(p, pages);\n            _exit(0);\n        }\n    \
         while (wait(0) > 0)\n        ;",
    );
    let program = program::c(folder.path(), "family", &source)?.display().to_string();
    let recorded = record_faults(folder.path(), &[], &[&program, &FIRST.to_string()])?;
    let rows = recorded.rows().of(FUNCTION);
    assert_eq!(rows.count(), FORKS * FIRST);
    for pid in rows.all(|row| row.pid) {
        assert_eq!(rows.only(|row| row.pid == pid).count(), FIRST);
    }
    assert_eq!(rows.all(|row| row.pid).len() as u64, FORKS);
    assert_eq!(rows.all(|row| row.process.clone()), ["family".to_owned()].into());
    let ledger = recorded.ledger();
    assert_eq!((ledger.unaccounted(), ledger.counter(Counter::Seen)), (0, ledger.event_count));
    Ok(())
}

#[test]
fn a_thread_that_renames_itself_does_not_rename_its_process() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let source = r#"#define _GNU_SOURCE
#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
__attribute__((noinline)) void touch_pages(volatile char *p, long pages)
{
    for (long i = 0; i < pages; i++)
        p[i * 4096] = 1;
}
static long pages;
static void *work(void *p)
{
    prctl(PR_SET_NAME, "worker");
    touch_pages(p, pages);
    return 0;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    pages = atol(argv[1]);
    char *p = mmap(0, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, pages * 4096, MADV_NOHUGEPAGE);
    pthread_create(&thread, 0, work, p);
    return pthread_join(thread, 0);
}
"#;
    let program = program::c(folder.path(), "threads", source)?.display().to_string();
    let rows = record_faults(folder.path(), &[], &[&program, &FIRST.to_string()])?.rows().of(FUNCTION);
    assert_eq!(rows.count(), FIRST);
    assert_eq!(rows.all(|row| row.process.clone()), ["threads".to_owned()].into());
    // The filter uses the thread's name, like perf's.
    let filtered = record_faults(folder.path(), &["--comm", "worker"], &[&program, &FIRST.to_string()])?;
    assert_eq!(filtered.rows().of(FUNCTION).count(), FIRST);
    Ok(())
}

/// Threads with names: `names PAGES` starts one that is called "first" for the first half of its
/// pages and "second" for the rest; that one starts another, which keeps the inherited name. `names
/// PAGES hold` waits like [`Held`] when both live.
const NAMED: &str = r#"#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
__attribute__((noinline)) void touch_pages(volatile char *p, long pages)
{
    for (long i = 0; i < pages; i++)
        p[i * 4096] = 1;
}
static long pages;
static pthread_barrier_t ready, told;
static char *some(void)
{
    char *p = mmap(0, pages * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, pages * 4096, MADV_NOHUGEPAGE);
    return p;
}
static void *inherits(void *p)
{
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&told);
    touch_pages(p, pages);
    return 0;
}
static void *renames(void *p)
{
    pthread_t thread;
    prctl(PR_SET_NAME, "first: a b");
    pthread_create(&thread, 0, inherits, some());
    pthread_barrier_wait(&ready);
    pthread_barrier_wait(&told);
    touch_pages(p, pages / 2);
    /* Longer than an epoch. */
    usleep(400000);
    prctl(PR_SET_NAME, "second");
    touch_pages(p + pages / 2 * 4096, pages - pages / 2);
    pthread_join(thread, 0);
    return 0;
}
int main(int argc, char **argv)
{
    pthread_t thread;
    pages = atol(argv[1]);
    pthread_barrier_init(&ready, 0, 3);
    pthread_barrier_init(&told, 0, 3);
    pthread_create(&thread, 0, renames, some());
    pthread_barrier_wait(&ready);
    if (argc > 2)
        getchar();
    pthread_barrier_wait(&told);
    return pthread_join(thread, 0);
}
"#;

/// Returns the number of pages that each thread name has touched.
fn by_thread(rows: &precise_tests::rows::Rows) -> BTreeMap<String, u64> {
    let mut pages = BTreeMap::new();
    for row in &rows.of(FUNCTION).0 {
        *pages.entry(row.thread.clone()).or_default() += row.count;
    }
    pages
}

fn named(first: u64, second: u64) -> BTreeMap<String, u64> {
    [("first: a b".to_owned(), first), ("second".to_owned(), second)].into()
}

#[test]
fn a_thread_has_its_name_and_the_one_that_it_takes_later() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let program = program::c(folder.path(), "names", NAMED)?.display().to_string();
    let file = folder.path().join("x.parquet").display().to_string();
    let arguments = ["record", "-e", "page-faults", "-c", "1", "--by", "ip,process,thread", "-o", &file];
    let command = ["--", &program, &FIRST.to_string()];
    let ended = precise([&arguments[..], &command].concat())?.expect(0)?;
    let rows = Recorded::of(ended, Path::new(&file))?.rows();
    // The thread that was started has the name that its parent had then.
    ensure!(by_thread(&rows) == named(FIRST / 2 + FIRST, FIRST - FIRST / 2), "{:?}", by_thread(&rows));
    assert_eq!(rows.of(FUNCTION).all(|row| row.process.clone()), ["names".to_owned()].into());
    Ok(())
}

#[test]
fn a_thread_that_lived_before_the_run_has_its_name() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let held = Held::start(&program::c(folder.path(), "names", NAMED)?, FIRST)?;
    let pid = held.id().to_string();
    let tasks = format!("/proc/{pid}/task");
    let is_named = |task: &fs::DirEntry| {
        fs::read_to_string(task.path().join("comm")).is_ok_and(|name| name == "first: a b\n")
    };
    while fs::read_dir(&tasks)?.flatten().filter(is_named).count() < 2 {
        std::thread::sleep(Duration::from_millis(5));
    }
    let arguments = ["record", "-e", "page-faults", "-c", "1", "--by", "ip,process,thread,cpu", "-p", &pid];
    let live = Live::start(folder.path(), &arguments)?;
    held.go()?;
    let recorded = live.interrupt()?;
    let rows = recorded.rows();
    ensure!(by_thread(&rows) == named(FIRST / 2 + FIRST, FIRST - FIRST / 2), "{:?}", by_thread(&rows));

    let file = folder.path().join("live.parquet").display().to_string();
    for (view, says) in [
        (&["threads"][..], " second "),
        (&["report", "--by", "thread"], "first: a b"),
        (&["report", "--by", "tid"], " (second)"),
    ] {
        let shown = precise([view, &["-i", &file]].concat())?.expect(0)?.stdout;
        ensure!(shown.contains(says), "{view:?}: {shown}");
    }
    Ok(())
}

fn functions(folder: &Path, program: &Path) -> Result<precise_tests::rows::Rows> {
    Ok(record_faults(folder, &[], &[&program.display().to_string()])?.rows())
}

#[test]
fn rust_functions_are_demangled() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let source = r#"
mod shop {
    pub struct Shelf<T>(pub Vec<T>);
    impl<T: Copy> Shelf<T> {
        #[inline(never)]
        pub fn fill(&mut self, with: T) {
            for page in 0..503 {
                // One page after the other, which nothing else has touched.
                unsafe { self.0.as_mut_ptr().byte_add(page * 4096).write_volatile(with) };
            }
        }
    }
}
unsafe extern "C" {
    fn mmap(at: *mut u8, length: usize, protection: i32, flags: i32, file: i32, offset: i64) -> *mut u8;
    fn madvise(at: *mut u8, length: usize, advice: i32) -> i32;
}
fn main() {
    let length = 503 * 4096;
    let pages = unsafe { mmap(std::ptr::null_mut(), length, 3, 0x22, -1, 0) };
    // MADV_NOHUGEPAGE
    unsafe { madvise(pages, length, 15) };
    let mut shelf = shop::Shelf(unsafe { Vec::from_raw_parts(pages.cast::<u32>(), 0, length / 4) });
    shelf.fill(7);
    std::mem::forget(shelf);
}
"#;
    let program = program::rust(folder.path(), "rusty", source)?;
    let rows = functions(folder.path(), &program)?;
    // The store itself belongs to the library and is inlined into the method.
    let inlined = |name: &str| name.contains("shop::Shelf<") && name.ends_with("::fill");
    let fill = rows.only(|row| inlined(&row.function) || row.inlined_into.iter().any(|name| inlined(name)));
    assert_eq!(
        fill.count(),
        SECOND,
        "{:?}",
        rows.all(|row| (row.function.clone(), row.inlined_into.clone()))
    );
    let stores = fill.all(|row| row.function.clone());
    assert!(stores.iter().any(|name| name.contains("write_volatile")), "{stores:?}");
    Ok(())
}

#[test]
fn cpp_functions_are_demangled() -> Result<()> {
    if !program::exists("g++") {
        precise_tests::skip("no g++ here: only Rust's names are tested");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let source = r#"#include <sys/mman.h>
namespace shop {
template <typename T> struct Shelf {
    volatile char *pages;
    __attribute__((noinline)) void fill(T with) const {
        for (int page = 0; page < 503; page++)
            pages[page * 4096] = with;
    }
};
}
int main() {
    void *p = mmap(0, 503 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    madvise(p, 503 * 4096, MADV_NOHUGEPAGE);
    shop::Shelf<char>{(volatile char *)p}.fill(1);
}
"#;
    let program = program::cpp(folder.path(), "cxx", source)?;
    let rows = functions(folder.path(), &program)?;
    let fill = rows.only(|row| row.function.starts_with("shop::Shelf<char>::fill(char)"));
    assert_eq!(fill.count(), SECOND, "{:?}", rows.all(|row| row.function.clone()));
    Ok(())
}
