//! Page faults whose samples the program takes at the kernel's tracepoints: they must be those that
//! the kernel's own event counts.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::{AsRawFd as _, FromRawFd as _};

use anyhow::{Context as _, Result, ensure};
use precise::kernel::event::{Encoding, Event, OpenRequest, Rate, Scope, WantedFields};
use precise::kernel::program::{Prepared, ProgramOptions};
use precise::kernel::sampler::Sampler;
use precise::kernel::tracepoints::Tracepoints;
use precise::machine::{MachineInfo, Root};
use precise::pmu::names::{TYPE_SOFTWARE, software};
use precise_common::config::Config;
use precise_common::ledger::Counter;
use precise_tests::load::{self, Fresh};
use precise_tests::run::{Disturbed, command, undisturbed};
use precise_tests::say;

const PAGES: usize = 3000;

/// The kernel writes to pages that are not there.
fn the_kernel_writes() -> Result<()> {
    let mut zero = File::open("/dev/zero")?;
    Ok(Fresh::map(PAGES)?.pages().try_for_each(|page| zero.read_exact(&mut page[..64]))?)
}

/// The kernel reads pages that are not there, some of them with page faults disabled.
fn the_kernel_reads() -> Result<()> {
    // SAFETY: a new descriptor, which the file owns.
    let mut file = unsafe { File::from_raw_fd(libc::memfd_create(c"read".as_ptr(), 0)) };
    ensure!(file.as_raw_fd() >= 0, "memfd_create: {}", std::io::Error::last_os_error());
    Fresh::map(PAGES)?.pages().try_for_each(|page| file.write_all(&page[..64]))?;
    let mut more = Fresh::map(PAGES)?;
    for page in more.pages() {
        // SAFETY: returns at once, because the word is 0 and not 1.
        let waited = unsafe {
            let wait = libc::FUTEX_WAIT | libc::FUTEX_PRIVATE_FLAG;
            libc::syscall(libc::SYS_futex, page.as_ptr(), wait, 1, std::ptr::null::<u8>())
        };
        ensure!(waited == -1, "the word of a fresh page is not 0");
    }
    Ok(())
}

/// A process reads from an address of the kernel, and dies of it.
fn a_process_reads_from_the_kernel() -> Result<()> {
    // SAFETY: the child only reads one word and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        // SAFETY: not at all; the processor refuses it, and the process ends.
        let read = unsafe { std::ptr::without_provenance::<u64>(0xffff_8800_0000_0000).read_volatile() };
        // SAFETY: always returns to nobody.
        unsafe { libc::_exit(i32::from(read == 0)) };
    }
    let mut status = 0;
    // SAFETY: a child of this process and a word of its own.
    let waited = unsafe { libc::waitpid(child, &raw mut status, 0) };
    ensure!(waited == child && libc::WIFSIGNALED(status), "the child ended with status {status}");
    Ok(())
}

fn faults(modifiers: (bool, bool)) -> Result<OpenRequest> {
    let config = software("page-faults").context("no such event")?.config;
    let (exclude_user, exclude_kernel) = modifiers;
    let encoding =
        Encoding { pmu: TYPE_SOFTWARE, config, exclude_user, exclude_kernel, ..Encoding::default() };
    Ok(OpenRequest { encoding, rate: Rate::Period(1), precise: 0, wanted: WantedFields::default() })
}

fn options() -> ProgramOptions {
    ProgramOptions {
        config: Config::EMPTY,
        slots: 16,
        stacks: 0,
        prepared: Prepared::default(),
        read_path: None,
        unwind: None,
        other: None,
    }
}

/// Counts the faults of a load by events, and the samples of it at the tracepoints.
fn compare(modifiers: (bool, bool), load: &dyn Fn() -> Result<()>) -> Result<(u64, u64)> {
    let request = faults(modifiers)?;
    let points = Tracepoints::instead_of(&request).context("this kernel lacks what the program needs")?;
    let scopes: Vec<Scope> = MachineInfo::read(&Root::default()).online.into_iter().map(Scope::Cpu).collect();
    let counts = OpenRequest { rate: Rate::Count, ..request };
    let events = scopes.iter().map(|scope| Event::open(&counts, *scope, None));
    let events = events.collect::<Result<Vec<Event>, _>>()?;
    events.iter().try_for_each(Event::enable)?;
    let mut sampler = Sampler::open_at(points, &request, &scopes, &options(), &[], None)?;
    load::fault(10)?;
    ensure!(sampler.seen() == 0, "the program runs before sampling begins");
    sampler.enable()?;
    // The second look touches no memory that the first has not touched.
    let both = |sampler: &Sampler| -> Result<(u64, u64)> {
        let counted = events.iter().try_fold(0, |sum, event| event.read().map(|read| sum + read.count))?;
        Ok((counted, sampler.seen()))
    };
    both(&sampler)?;
    let before = both(&sampler)?;
    load()?;
    let after = both(&sampler)?;
    sampler.disable()?;
    let ledger = sampler.ledger(&[], Some(1))?;
    ensure!(ledger.event_count == ledger.counter(Counter::PeriodSeen) + ledger.lost, "{ledger:?}");
    ensure!(ledger.unaccounted() == 0, "{ledger:?}");
    let seen = sampler.seen();
    load::fault(10)?;
    ensure!(sampler.seen() == seen, "the program runs after sampling has ended");
    Ok((after.0 - before.0, after.1 - before.1))
}

#[test]
fn a_tracepoint_sees_the_faults_that_the_kernel_counts() -> Result<()> {
    type Load = fn() -> Result<()>;
    let loads: [(&str, Load, usize, [usize; 3]); 4] = [
        ("a program that writes", || load::fault(PAGES), PAGES, [1, 1, 0]),
        ("the kernel writes", the_kernel_writes, PAGES, [1, 0, 1]),
        ("the kernel reads", the_kernel_reads, 2 * PAGES, [1, 0, 1]),
        ("a process reads from the kernel", a_process_reads_from_the_kernel, 1, [1, 1, 0]),
    ];
    let modifiers = [(false, false), (false, true), (true, false)];
    for (name, load, least, parts) in loads {
        for (modifiers, part) in modifiers.into_iter().zip(parts) {
            undisturbed(|| {
                let (counted, seen) = compare(modifiers, &load)?;
                say(&format!("{name}, without (user, kernel) {modifiers:?}: {seen} of {counted} faults"));
                ensure!(counted >= (part * least) as u64, "{name}: only {counted} faults");
                if seen == counted { Ok(()) } else { Err(Disturbed { seen, counted }.into()) }
            })?;
        }
    }
    Ok(())
}

/// What is sampled decides; what comes out is the same.
#[test]
fn only_a_run_of_every_fault_is_at_the_tracepoints() -> Result<()> {
    const NOTE: &str = "each page fault ran the program at a tracepoint";
    let folder = tempfile::tempdir()?;
    for (expected, options) in [
        (true, &["-a", "-c", "1"][..]),
        (true, &["-a", "-c", "1", "-e", "page-faults:u"]),
        (false, &["-a", "-c", "1", "-g"]),
        (false, &["-a", "-c", "1", "--overhead", "5%"]),
        (false, &["-a", "-c", "2"]),
        (false, &["-a", "-c", "1", "-C", "0"]),
        (false, &["-c", "1", "--", "true"]),
    ] {
        let event = if options.contains(&"-e") { &[][..] } else { &["-e", "page-faults"] };
        let common = ["record", "--duration", "300ms", "-o", "faults.parquet"];
        let arguments = [&common[..], event, options].concat();
        let ended = command(arguments)?.current_dir(folder.path()).output()?;
        let said = String::from_utf8_lossy(&ended.stderr);
        ensure!(ended.status.success(), "{options:?}: {said}");
        let report = String::from_utf8_lossy(&ended.stdout).replace("\n  ", " ");
        ensure!(report.contains(NOTE) == expected, "{options:?}: {report}");
        ensure!(!said.contains("not precise"), "{options:?}: {said}");
    }
    Ok(())
}
