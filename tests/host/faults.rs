//! A program that faults known pages in a known function, on a known line: every number must be
//! exact.

use std::path::Path;

use anyhow::Result;
use precise_common::ledger::Counter;
use precise_tests::{
    program::{BASE, FUNCTION, Held, LINE, PAGE, faults},
    run::{FAULTS, Live, Recorded, precise, record_faults, undisturbed},
};

/// A prime, so that no two numbers of a test are equal by accident.
const PAGES: u64 = 1009;
const HALF: u64 = 504;

struct Workload {
    folder: tempfile::TempDir,
    program: String,
}

impl Workload {
    fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        let program = faults(folder.path(), "faulting")?.display().to_string();
        Ok(Self { folder, program })
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn record(&self, more: &[&str]) -> Result<Recorded> {
        record_faults(self.path(), more, &[&self.program, &PAGES.to_string()])
    }
}

fn first_half() -> String {
    format!("{BASE:#x}..{:#x}", BASE + HALF * PAGE)
}

/// Checks that the samples seen are aggregated or rejected, and that the rows have all aggregated
/// ones.
fn assert_closed(recorded: &Recorded) {
    let ledger = recorded.ledger();
    assert_eq!(ledger.unaccounted(), 0, "{ledger:?}");
    assert_eq!(recorded.rows().count(), ledger.counter(Counter::Aggregated), "{ledger:?}");
    assert_eq!(ledger.counter(Counter::Seen), ledger.event_count, "{ledger:?}");
    assert_eq!(ledger.counter(Counter::TableFull), 0, "{ledger:?}");
}

#[test]
fn every_page_is_one_sample_at_its_place() -> Result<()> {
    let workload = Workload::new()?;
    for read_path in ["direct", "probe"] {
        let recorded = workload.record(&["--read-path", read_path])?;
        let rows = recorded.rows().of(FUNCTION);
        assert_eq!(rows.count(), PAGES, "{read_path}");
        let source = format!("{}.c", workload.program);
        assert_eq!(rows.all(|row| (row.source.clone(), row.line)), [(source, LINE)].into(), "{read_path}");
        assert_eq!(rows.all(|row| row.ip).len(), 1, "one store touches all pages");
        let pages = (0..PAGES).map(|page| Some(BASE + page * PAGE)).collect();
        assert_eq!(rows.all(|row| row.address), pages, "{read_path}");
        assert_eq!(rows.all(|row| row.process.clone()), ["faulting".to_owned()].into());
        assert!(rows.0.iter().all(|row| row.count == 1 && !row.kernel), "{read_path}");
        assert_closed(&recorded);
    }
    Ok(())
}

/// First touches of 300 small pages and of 5 large ones, each one fault.
const TWO_SIZES: &str = r#"#define _GNU_SOURCE
#include <sys/mman.h>
static void touch(char *from, long count, long size)
{
    for (long i = 0; i < count; i++)
        ((volatile char *)from)[i * size] = 1;
}
int main(void)
{
    long small = 4096, large = 2 << 20;
    char *at = mmap((void *)0x500000000000, 8 * large, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    madvise(at, 2 * large, MADV_NOHUGEPAGE);
    madvise(at + 2 * large, 5 * large, MADV_HUGEPAGE);
    touch(at, 300, small);
    touch(at + 2 * large, 5, large);
    return 0;
}
"#;

#[test]
fn pages_are_told_apart_by_their_size() -> Result<()> {
    let sizes = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled")?;
    if sizes.contains("[never]") {
        precise_tests::skip("transparent huge pages are switched off on this machine");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let program = precise_tests::program::c(folder.path(), "sizes", TWO_SIZES)?.display().to_string();
    let file = folder.path().join("faults.parquet");
    let path = file.display().to_string();
    undisturbed(|| {
        // A fault is counted as minor when it has been handled: the page then exists and has its
        // size.
        let arguments =
            ["record", "-e", "minor-faults", "-c", "1", "--by", "page-size", "-o", &path, "--filter"];
        let range = "addr in 0x500000000000..0x500001000000";
        let arguments = arguments.into_iter().chain([range, "--", &program]);
        let recorded = Recorded::of(precise(arguments)?.expect(0)?, &file)?;
        assert_eq!(recorded.rows().count(), 305);
        let report = ["report", "-i", &path, "-x|", "--by", "page-size", "-s", "key:page-size"];
        let printed = precise(report)?.expect(0)?.stdout;
        let sizes = printed.lines().skip(1).filter_map(|line| {
            let mut fields = line.split('|').skip(1);
            Some(format!("{} {}", fields.next()?, fields.next()?))
        });
        assert_eq!(sizes.collect::<Vec<_>>(), ["4 KiB 300", "2 MiB 5"], "{printed}");
        Ok(())
    })
}

#[test]
fn the_report_says_the_same_as_the_rows() -> Result<()> {
    let workload = Workload::new()?;
    workload.record(&[])?;
    let file = workload.path().join("faults.parquet").display().to_string();
    let ended = precise(["report", "-i", &file, "--json", "--by", "function,line"])?.expect(0)?;
    let report: serde_json::Value = serde_json::from_str(&ended.stdout)?;
    let first = &report["events"][0]["groups"][0];
    assert_eq!(first["values"][0]["text"], FUNCTION);
    assert_eq!(first["values"][1]["text"], format!("{}.c:{LINE}", workload.program));
    assert_eq!(first["measures"]["count"], PAGES);
    Ok(())
}

#[test]
fn an_address_range_is_exactly_that_half() -> Result<()> {
    let workload = Workload::new()?;
    for read_path in ["direct", "probe"] {
        let recorded = workload.record(&["--addr", &first_half(), "--read-path", read_path])?;
        let rows = recorded.rows();
        assert_eq!((rows.count(), rows.of(FUNCTION).count()), (HALF, HALF), "{read_path}");
        let ledger = recorded.ledger();
        let [(clause, rejected)] = ledger.rejected.as_slice() else {
            anyhow::bail!("one clause expected: {:?}", ledger.rejected)
        };
        assert!(clause.contains("addr") && clause.contains("0x500000000000"), "{clause}");
        // The other half, and the faults of the loader and the C library.
        assert_eq!(*rejected, ledger.counter(Counter::Seen) - HALF);
        assert!(*rejected >= PAGES - HALF);
        assert_closed(&recorded);
    }
    Ok(())
}

#[test]
fn filters_in_the_kernel_are_the_ones_that_were_written() -> Result<()> {
    let workload = Workload::new()?;
    let half = first_half();
    let (begin, end) = (BASE, BASE + PAGES * PAGE);
    let last = end - PAGE;
    // All of them filter for the program's own pages.
    let own = format!("addr in {begin:#x}..{end:#x}");
    let cases = [
        (format!("{own} && addr not in {half}"), PAGES - HALF),
        (format!("{own} && !(addr in {half})"), PAGES - HALF),
        (format!("addr in {half} || addr == {last:#x}"), HALF + 1),
        (format!("addr in {{{half}, {last:#x}}}"), HALF + 1),
        (format!("addr in {{{begin:#x}, {last:#x}}}"), 2),
        (format!("addr == {begin:#x}, user"), 1),
        (format!("addr == {begin:#x} && kernel"), 0),
        (format!("addr >= {last:#x} && addr <= {last:#x}"), 1),
        (format!("({own}) && (addr < {:#x} || addr > {:#x})", begin + PAGE, last - PAGE), 2),
        // Bits 12 and 13 of the address: three of four pages.
        (format!("{own} && addr & 0x3000"), PAGES - PAGES.div_ceil(4)),
        (format!("{own} && comm == faulting"), PAGES),
        (format!("{own} && comm != faulting"), 0),
        (format!("{own} && comm in {{nobody, \"faulting\"}}"), PAGES),
        (format!("{own} && uid == 0 && gid == 0"), PAGES),
        (format!("{own} && cpu in 0..65536"), PAGES),
        (format!("{own} && cpu >= 65536"), 0),
    ];
    for (filter, expected) in cases {
        let recorded = workload.record(&["--filter", &filter])?;
        assert_eq!(recorded.rows().count(), expected, "{filter}");
        assert_eq!(recorded.rows().of(FUNCTION).count(), expected, "{filter}");
        assert_closed(&recorded);
    }
    Ok(())
}

#[test]
fn flags_filter_like_expressions() -> Result<()> {
    let workload = Workload::new()?;
    let own = format!("{BASE:#x}..{:#x}", BASE + PAGES * PAGE);
    for (flags, expected) in [
        (vec!["--comm", "faulting"], PAGES),
        (vec!["--comm", "somebody"], 0),
        (vec!["-U"], PAGES),
        (vec!["-K"], 0),
        (vec!["--addr", "0..0x1000"], PAGES),
    ] {
        let recorded = workload.record(&[&["--addr", &own], flags.as_slice()].concat())?;
        assert_eq!(recorded.rows().count(), expected, "{flags:?}");
        assert_closed(&recorded);
    }
    Ok(())
}

#[test]
fn user_and_kernel_are_told_apart() -> Result<()> {
    let workload = Workload::new()?;
    let all = workload.record(&[])?;
    let user = workload.record(&["-U"])?;
    let kernel = workload.record(&["-K"])?;
    assert!(user.rows().0.iter().all(|row| !row.kernel));
    assert!(kernel.rows().0.iter().all(|row| row.kernel));
    assert_eq!(user.rows().of(FUNCTION).count(), PAGES);
    // For exec, the kernel clears the end of the data segment in the new process, which also
    // faults.
    assert!(kernel.rows().count() > 0 && all.rows().all(|row| row.kernel).len() == 2);
    [&all, &user, &kernel].into_iter().for_each(assert_closed);
    Ok(())
}

#[test]
fn a_code_range_around_the_store_keeps_its_samples() -> Result<()> {
    // Linked to a fixed address, so that the store has the same address in each run.
    let folder = tempfile::tempdir()?;
    let source = precise_tests::program::faults(folder.path(), "moving")?.with_extension("c");
    let program = folder.path().join("fixed");
    let status = std::process::Command::new("gcc")
        .args(["-O2", "-g", "-no-pie", "-o"])
        .args([&program, &source])
        .status()?;
    anyhow::ensure!(status.success());
    let (program, pages) = (program.display().to_string(), PAGES.to_string());
    let ip = record_faults(folder.path(), &[], &[&program, &pages])?.rows().of(FUNCTION).all(|row| row.ip);
    let ip = *ip.first().expect("the function was sampled");

    let range = format!("{ip:#x}..{:#x}", ip + 1);
    for option in
        [vec!["--code".to_owned(), range.clone()], vec!["--filter".into(), format!("ip in {range}")]]
    {
        let options: Vec<&str> = option.iter().map(String::as_str).collect();
        let inside = record_faults(folder.path(), &options, &[&program, &pages])?;
        assert_eq!((inside.rows().count(), inside.rows().of(FUNCTION).count()), (PAGES, PAGES), "{option:?}");
        assert_closed(&inside);
    }
    let outside =
        record_faults(folder.path(), &["--filter", &format!("ip not in {range}")], &[&program, &pages])?;
    assert_eq!(outside.rows().of(FUNCTION).count(), 0);
    assert_eq!(outside.ledger().rejected_total(), PAGES);
    Ok(())
}

#[test]
fn a_cpu_filter_keeps_what_ran_there() -> Result<()> {
    let workload = Workload::new()?;
    let cpus = precise::machine::MachineInfo::read(&precise::machine::Root::default()).online;
    let pages = PAGES.to_string();
    for cpu in &cpus {
        let cpu_text = cpu.to_string();
        let pinned = ["taskset", "-c", &cpu_text, &workload.program, &pages];
        for other in &cpus {
            let filter = format!("cpu == {other}");
            let recorded = record_faults(workload.path(), &["--filter", &filter], &pinned)?;
            let rows = recorded.rows();
            assert_eq!(rows.of(FUNCTION).count(), if cpu == other { PAGES } else { 0 }, "{cpu} {filter}");
            assert!(rows.0.iter().all(|row| row.cpu.map(u32::from) == Some(*other)), "{cpu} {filter}");
        }
    }
    Ok(())
}

#[test]
fn one_process_of_several() -> Result<()> {
    undisturbed(|| {
        let workload = Workload::new()?;
        let start = |pages: u64| Held::start(Path::new(&workload.program), pages);
        for by_filter in [true, false] {
            let (wanted, other) = (start(PAGES)?, start(HALF)?);
            let (pid, filter) = (wanted.id(), format!("pid == {}", wanted.id()));
            let target = if by_filter { ["--filter".into(), filter] } else { ["-p".into(), pid.to_string()] };
            let target = [target[0].as_str(), target[1].as_str()];
            let live = Live::start(workload.path(), &[FAULTS, &target, &["--duration", "60s"]].concat())?;
            wanted.go()?;
            other.go()?;
            let recorded = live.interrupt()?;
            assert_eq!(recorded.rows().all(|row| row.pid), [pid].into(), "{target:?}");
            assert_eq!(recorded.rows().of(FUNCTION).count(), PAGES, "{target:?}");
            assert_closed(&recorded);
        }
        Ok(())
    })
}
