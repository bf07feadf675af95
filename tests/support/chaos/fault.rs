//! The faults, and how each is injected.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::thread::sleep;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{Dice, World};
use crate::cgroup::Cgroup;
use crate::resident::children;

/// The file that takes CPU 1 offline and brings it back.
const ONLINE: &str = "/sys/devices/system/cpu/cpu1/online";

/// A kind of fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[expect(missing_docs, reason = "`words` describes each")]
pub enum Fault {
    ReaderKilled,
    ReaderStopped,
    ReaderStoppedForGood,
    ReaderMemory,
    NurseryKilled,
    NurseryStopped,
    RunMemory,
    RunFiles,
    RunStopped,
    DiskFull,
    FileSize,
    ReadErrors,
    WriteErrors,
    Clock,
    FileTruncated,
    FileReplaced,
    FileDeleted,
    FileNoise,
    MapGrows,
    MapHostile,
    Cgroups,
    ForkStorm,
    Cpu,
    RequestPartial,
    RequestSlow,
    RequestNoise,
    RequestFlood,
    EndSignal,
    EndSwitch,
    EndTwice,
    EndKill,
}

use Fault::{
    Cgroups, Clock, Cpu, DiskFull, EndKill, EndSignal, EndSwitch, EndTwice, FileDeleted, FileNoise,
    FileReplaced, FileSize, FileTruncated, ForkStorm, MapGrows, MapHostile, NurseryKilled, NurseryStopped,
    ReadErrors, ReaderKilled, ReaderMemory, ReaderStopped, ReaderStoppedForGood, RequestFlood, RequestNoise,
    RequestPartial, RequestSlow, RunFiles, RunMemory, RunStopped, WriteErrors,
};

/// The faults that go by; the others end the runs.
const PASSING: &[Fault] = &[
    ReaderKilled,
    ReaderStopped,
    ReaderStoppedForGood,
    ReaderMemory,
    NurseryKilled,
    NurseryStopped,
    RunMemory,
    RunFiles,
    RunStopped,
    DiskFull,
    FileSize,
    ReadErrors,
    WriteErrors,
    Clock,
    FileTruncated,
    FileReplaced,
    FileDeleted,
    FileNoise,
    MapGrows,
    MapHostile,
    Cgroups,
    ForkStorm,
    Cpu,
    RequestPartial,
    RequestSlow,
    RequestNoise,
    RequestFlood,
];

impl Fault {
    /// Returns the faults that this machine allows, without those that end the runs.
    pub fn possible() -> Vec<Self> {
        let possible = |fault: &Self| *fault != Cpu || Path::new(ONLINE).exists();
        PASSING.iter().copied().filter(possible).collect()
    }

    /// Returns a fault that ends the runs.
    pub fn end(dice: &mut Dice) -> Self {
        match dice.below(6) {
            0 => EndSwitch,
            1 => EndTwice,
            2 => EndKill,
            _ => EndSignal,
        }
    }

    /// Returns whether a run may end because of the fault, with a documented code.
    pub const fn may_end_a_run(self) -> bool {
        matches!(self, RunMemory | DiskFull | FileSize | WriteErrors)
    }

    /// Returns what the fault is, and what must become of the runs.
    pub const fn words(self) -> (&'static str, &'static str) {
        match self {
            ReaderKilled => ("SIGKILL to the worker that reads files", "a new one reads on"),
            ReaderStopped => ("the worker is stopped for 20 to 600 ms", "its names come later"),
            ReaderStoppedForGood => ("the worker is stopped until the runs end", "they end in time"),
            ReaderMemory => ("the worker gets no more memory (RLIMIT_AS)", "a new one reads on, or a note"),
            NurseryKilled => {
                ("SIGKILL to the process that starts workers", "a new one is started, a note says so")
            }
            NurseryStopped => ("that process is stopped for 20 to 600 ms", "names come later"),
            RunMemory => ("the run gets no more memory for 200 ms (RLIMIT_AS)", "it goes on"),
            RunFiles => ("the run gets no more descriptors for 200 ms (RLIMIT_NOFILE)", "it goes on"),
            RunStopped => ("the run is stopped for 100 to 1,800 ms", "samples are late, and counted"),
            DiskFull => ("the disk of the capture is full for 300 ms", "it goes on, or ends with code 1"),
            FileSize => {
                ("the capture must not grow for 300 ms (RLIMIT_FSIZE)", "it goes on, or ends with code 1")
            }
            ReadErrors => ("every read of a file fails for 100 to 400 ms (EIO)", "it goes on"),
            WriteErrors => {
                ("every write to a file fails for 100 to 400 ms (EIO)", "it goes on, or ends with code 1")
            }
            Clock => ("the clock of the day jumps by up to 10 years", "it goes on"),
            FileTruncated => ("a program is truncated before it is read", "a reason in place of its names"),
            FileReplaced => ("a running program is replaced", "it goes on"),
            FileDeleted => ("a running program is deleted", "it goes on"),
            FileNoise => {
                ("random bytes are written over a program before it is read", "a reason in place of names")
            }
            MapGrows => ("a perf map that grows while it is read", "it goes on"),
            MapHostile => ("noise, a pipe, a folder, a device or a secret file as a perf map", "it goes on"),
            Cgroups => ("1,000 cgroups are made and removed", "it goes on"),
            ForkStorm => ("1,000 processes in a moment", "it goes on"),
            Cpu => ("CPU 1 goes offline for 100 ms", "it goes on"),
            RequestPartial => ("40 requests that do not end", "serve answers others"),
            RequestSlow => ("a request that comes byte by byte", "serve answers others"),
            RequestNoise => ("random bytes as a request", "serve answers others"),
            RequestFlood => ("300 connections that are closed at once", "serve answers others"),
            EndSignal => ("SIGINT, SIGTERM or SIGHUP", "both end in order, with code 0"),
            EndSwitch => ("the kill switch", "record ends with code 70 and a whole capture"),
            EndTwice => ("two signals", "record ends at once"),
            EndKill => ("SIGKILL to the run", "its partial capture can be read"),
        }
    }

    /// Injects the fault. Returns whether it was possible: there may be no reader to kill.
    ///
    /// # Errors
    ///
    /// Returns an error if this machine does not do what the fault needs.
    pub fn inject(self, world: &mut World, dice: &mut Dice) -> Result<bool> {
        world.runs()?;
        match self {
            ReaderKilled | ReaderStopped | ReaderStoppedForGood | ReaderMemory => {
                return self.of_reader(world, dice);
            }
            NurseryKilled | NurseryStopped => return self.of_nursery(world, dice),
            RunMemory | RunFiles | RunStopped | FileSize => self.of_run(world, dice)?,
            DiskFull => {
                world.runs()?.0.may_fail();
                let filler = world.disk().join("filler");
                // Until the disk is full.
                let _full = fs::write(&filler, vec![1; 32 << 20]);
                world.works("pages", 100)?;
                sleep(Duration::from_millis(300));
                fs::remove_file(filler)?;
            }
            ReadErrors => {
                world.control().set_errors(libc::EIO, 0)?;
                world.copy_works()?;
                sleep(dice.pause(100, 400));
                world.control().set_errors(0, 0)?;
            }
            WriteErrors => {
                let error = [libc::EIO, libc::ENOSPC, libc::EDQUOT][dice.below(3) as usize];
                world.runs()?.0.may_fail();
                world.control().set_errors(0, error)?;
                world.works("pages", 100)?;
                sleep(dice.pause(100, 400));
                world.control().set_errors(0, 0)?;
            }
            Clock => {
                let ten_years = 10 * 365 * 86_400;
                world.control().set_clock(dice.below(2 * ten_years) as i64 - ten_years as i64)?;
                sleep(dice.pause(50, 300));
            }
            FileTruncated | FileReplaced | FileDeleted | FileNoise => self.of_file(world, dice)?,
            MapGrows => world.start(None, &["grows", "20"])?,
            MapHostile => {
                let how = ["noise", "pipe", "folder", "device", "secret"][dice.below(5) as usize];
                world.start(None, &[how, "20"])?;
            }
            Cgroups => cgroups(world)?,
            ForkStorm => world.works("storm", 1000)?,
            Cpu => {
                let _offline = Offline::take()?;
                sleep(Duration::from_millis(100));
            }
            RequestPartial | RequestSlow | RequestNoise | RequestFlood => self.of_requests(world, dice)?,
            EndSignal | EndSwitch | EndTwice | EndKill => self.end_runs(world, dice)?,
        }
        Ok(true)
    }

    /// Faults of the worker, which exists once a file was read.
    fn of_reader(self, world: &mut World, dice: &mut Dice) -> Result<bool> {
        let run = world.either(dice)?;
        world.copy_works()?;
        sleep(dice.pause(0, 400));
        let Some(worker) = children(run).into_iter().flat_map(children).next() else { return Ok(false) };
        match self {
            ReaderKilled => signal(worker, libc::SIGKILL),
            ReaderMemory => limit(worker, libc::RLIMIT_AS, Some(1 << 20)),
            ReaderStoppedForGood => {
                signal(worker, libc::SIGSTOP);
                world.stopped.push(worker);
            }
            _ => {
                signal(worker, libc::SIGSTOP);
                world.copy_works()?;
                sleep(dice.pause(20, 600));
                signal(worker, libc::SIGCONT);
            }
        }
        world.copy_works()?;
        Ok(true)
    }

    fn of_nursery(self, world: &mut World, dice: &mut Dice) -> Result<bool> {
        let run = world.either(dice)?;
        let Some(nursery) = children(run).into_iter().next() else { return Ok(false) };
        if self == NurseryKilled {
            signal(nursery, libc::SIGKILL);
        } else {
            signal(nursery, libc::SIGSTOP);
            for worker in children(nursery) {
                signal(worker, libc::SIGKILL);
            }
            world.copy_works()?;
            sleep(dice.pause(20, 600));
            signal(nursery, libc::SIGCONT);
        }
        world.copy_works()?;
        Ok(true)
    }

    fn of_run(self, world: &mut World, dice: &mut Dice) -> Result<()> {
        let run = world.either(dice)?;
        if matches!(self, RunMemory | FileSize) {
            let (recording, endpoint) = world.runs()?;
            recording.may_fail();
            endpoint.may_fail();
        }
        let (what, most) = match self {
            RunStopped => {
                signal(run, libc::SIGSTOP);
                world.copy_works()?;
                sleep(dice.pause(100, 1800));
                signal(run, libc::SIGCONT);
                return Ok(());
            }
            RunMemory => (libc::RLIMIT_AS, mapped(run)?),
            RunFiles => (libc::RLIMIT_NOFILE, 3),
            _ => (libc::RLIMIT_FSIZE, 0),
        };
        limit(run, what, Some(most));
        world.copy_works()?;
        world.works("pages", 300)?;
        sleep(Duration::from_millis(200));
        limit(run, what, None);
        Ok(())
    }

    fn of_file(self, world: &mut World, dice: &mut Dice) -> Result<()> {
        let program = world.new_path("f");
        fs::copy(world.work(), &program)?;
        let length = fs::metadata(&program)?.len();
        match self {
            FileReplaced | FileDeleted => {
                world.start(Some(&program), &["wait", "50"])?;
                sleep(dice.pause(0, 100));
                if self == FileDeleted {
                    fs::remove_file(&program)?;
                } else {
                    let other = world.new_path("o");
                    fs::write(&other, vec![dice.below(256) as u8; dice.below(length) as usize])?;
                    fs::rename(other, &program)?;
                }
            }
            _ => {
                super::world::run(std::process::Command::new(&program).args(["pages", "50"]))?;
                let file = fs::File::options().write(true).open(&program)?;
                if self == FileTruncated {
                    file.set_len(dice.below(length))?;
                } else {
                    for _ in 0..50 {
                        file.write_all_at(&dice.below(u64::MAX).to_ne_bytes(), dice.below(length))?;
                    }
                }
            }
        }
        Ok(())
    }

    fn of_requests(self, world: &mut World, dice: &mut Dice) -> Result<()> {
        const REQUEST: &[u8] = b"GET /metrics HTTP/1.1\r\nhost: localhost\r\nx: ";
        let endpoint = world.runs()?.1;
        // The server may close a connection before it has read everything.
        match self {
            RequestPartial => {
                let mut open = Vec::new();
                for _ in 0..40 {
                    let mut stream = endpoint.connect()?;
                    let _closed = stream.write_all(&REQUEST[..dice.below(REQUEST.len() as u64) as usize]);
                    open.push(stream);
                }
                endpoint.is_well()?;
            }
            RequestSlow => {
                let mut stream = endpoint.connect()?;
                for byte in REQUEST {
                    let _closed = stream.write_all(&[*byte]);
                    sleep(Duration::from_millis(5));
                }
                endpoint.is_well()?;
            }
            RequestNoise => {
                let noise: Vec<u8> = (0..dice.below(100_000)).map(|_| dice.below(256) as u8).collect();
                let _closed = endpoint.connect()?.write_all(&noise);
            }
            _ => {
                for _ in 0..300 {
                    let _closed = endpoint.connect()?.write_all(REQUEST);
                }
            }
        }
        Ok(())
    }

    fn end_runs(self, world: &mut World, dice: &mut Dice) -> Result<()> {
        let (recording, endpoint) = world.runs()?;
        let ending = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP][dice.below(3) as usize];
        match self {
            EndSwitch => recording.throw_switch()?,
            EndTwice => {
                recording.may_end_with(128 + ending);
                recording.ask(ending);
                sleep(dice.pause(0, 30));
                recording.ask(ending);
            }
            EndKill => recording.ask(libc::SIGKILL),
            _ => recording.ask(ending),
        }
        endpoint.ask(ending);
        Ok(())
    }
}

/// Makes 1,000 cgroups, some of them with a process, and removes them.
fn cgroups(world: &World) -> Result<()> {
    let parent = Cgroup::new("chaos-many")?;
    let made: Vec<_> = (0..1000).map(|number| parent.child(&number.to_string())).collect::<Result<_>>()?;
    for cgroup in made.iter().step_by(100) {
        cgroup.run(world.work(), ["pages", "5"])?;
    }
    made.into_iter().try_for_each(Cgroup::remove)
}

/// Sends a signal to a process of the campaign. It may have ended.
pub(super) fn signal(pid: u32, signal: i32) {
    // SAFETY: a run of the campaign, which has not been waited for, or a descendant of one that is
    // alive.
    unsafe { libc::kill(pid.cast_signed(), signal) };
}

/// Sets the soft limit of another process; `None` raises it to the hard limit. The process may have
/// ended.
fn limit(pid: u32, what: libc::__rlimit_resource_t, most: Option<u64>) {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: both structures outlive the calls.
    unsafe {
        if libc::prlimit(pid.cast_signed(), what, std::ptr::null(), &raw mut limit) == 0 {
            limit.rlim_cur = most.map_or(limit.rlim_max, |most| most.min(limit.rlim_max));
            libc::prlimit(pid.cast_signed(), what, &raw const limit, std::ptr::null_mut());
        }
    }
}

/// Returns the size of all mappings of a process in bytes.
fn mapped(pid: u32) -> Result<u64> {
    let pages = fs::read_to_string(format!("/proc/{pid}/statm"))?;
    let pages: u64 = pages.split_whitespace().next().context("statm is empty")?.parse()?;
    Ok(pages * 4096)
}

/// CPU 1 while it is offline; dropped, it is online.
struct Offline;

impl Offline {
    fn take() -> Result<Self> {
        // Restored even if the write fails halfway.
        let offline = Self;
        fs::write(ONLINE, "0")?;
        Ok(offline)
    }
}

impl Drop for Offline {
    fn drop(&mut self) {
        if let Err(error) = fs::write(ONLINE, "1") {
            crate::say(&format!("CPU 1 cannot be brought back: {error}"));
        }
    }
}
