//! The world that faults happen in: a small disk, programs to sample, and the two runs.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;

use super::live::{Endpoint, Recording};
use super::{Dice, Totals};
use crate::cgroup::Cgroup;
use crate::program;

/// A file system in memory of 24 MiB, which is unmounted when this is dropped.
#[derive(Debug)]
struct Disk(PathBuf);

impl Disk {
    fn mount(folder: &Path) -> Result<Self> {
        fs::create_dir(folder)?;
        run(Command::new("mount").args(["-t", "tmpfs", "-o", "size=24m", "chaos"]).arg(folder))?;
        Ok(Self(folder.to_owned()))
    }
}

impl Drop for Disk {
    fn drop(&mut self) {
        // Lazily: a run that is being killed may still write to it.
        let _left = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

/// The errors and the clock that precise sees, through a library that it is started with.
#[derive(Debug)]
pub struct Control {
    file: File,
    library: PathBuf,
    path: PathBuf,
}

impl Control {
    fn new(folder: &Path) -> Result<Self> {
        let (source, library, path) = (folder.join("shim.c"), folder.join("shim.so"), folder.join("control"));
        fs::write(&source, include_str!("shim.c"))?;
        run(Command::new("gcc")
            .args(["-O1", "-shared", "-fPIC", "-o"])
            .args([&library, &source])
            .arg("-ldl"))?;
        let file = File::options().read(true).write(true).create(true).truncate(true).open(&path)?;
        file.set_len(4096)?;
        Ok(Self { file, library, path })
    }

    /// Lets a command run with it.
    pub fn over(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env("CHAOS_CONTROL", &self.path);
    }

    /// Adds seconds to the clock of the day.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn set_clock(&self, seconds: i64) -> Result<()> {
        Ok(self.file.write_all_at(&seconds.to_ne_bytes(), 0)?)
    }

    /// Lets reads and writes of regular files fail with these errors; 0 lets them succeed.
    ///
    /// # Errors
    ///
    /// Returns an error if the file cannot be written.
    pub fn set_errors(&self, reads: i32, writes: i32) -> Result<()> {
        Ok(self.file.write_all_at(&[reads.to_ne_bytes(), writes.to_ne_bytes()].concat(), 8)?)
    }
}

/// The world of a campaign. What it has started ends when it is dropped.
#[derive(Debug)]
pub struct World {
    disk: Disk,
    control: Control,
    work: PathBuf,
    /// Programs that still run.
    pub background: Vec<Child>,
    /// The recording; `None` between two.
    pub recording: Option<Recording>,
    /// The server; `None` between two.
    pub endpoint: Option<Endpoint>,
    /// Processes that were stopped and are not continued before the runs end.
    pub stopped: Vec<u32>,
    numbers: u64,
    /// Dropped last: a folder with a disk in it cannot be removed.
    folder: TempDir,
}

impl World {
    /// Makes a disk and programs. Starts no run.
    ///
    /// # Errors
    ///
    /// Returns an error if this is not possible, for example without root.
    pub fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        let disk = Disk::mount(&folder.path().join("disk"))?;
        let control = Control::new(folder.path())?;
        let work = program::c(folder.path(), "chaos-work", include_str!("work.c"))?;
        Ok(Self {
            disk,
            control,
            work,
            background: Vec::new(),
            recording: None,
            endpoint: None,
            stopped: Vec::new(),
            numbers: 0,
            folder,
        })
    }

    /// Returns a path in the folder that nothing has used.
    pub fn new_path(&mut self, name: &str) -> PathBuf {
        self.numbers += 1;
        self.folder.path().join(format!("{name}{}", self.numbers))
    }

    /// Returns the small disk.
    pub fn disk(&self) -> &Path {
        &self.disk.0
    }

    /// Returns the errors and the clock that the runs see.
    pub const fn control(&self) -> &Control {
        &self.control
    }

    /// Returns the program to sample.
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// Runs the program to its end.
    ///
    /// # Errors
    ///
    /// Returns an error if it fails.
    pub fn works(&self, how: &str, pages: u64) -> Result<()> {
        run(Command::new(&self.work).arg(how).arg(pages.to_string()))
    }

    /// Runs a copy of the program, of which no reader has read anything, to its end.
    ///
    /// # Errors
    ///
    /// Returns an error if it fails.
    pub fn copy_works(&mut self) -> Result<PathBuf> {
        let copy = self.new_path("c");
        fs::copy(&self.work, &copy)?;
        run(Command::new(&copy).args(["pages", "17"]))?;
        Ok(copy)
    }

    /// Starts the program, or a copy of it; it is waited for when the fault is over.
    ///
    /// # Errors
    ///
    /// Returns an error if it cannot be started.
    pub fn start(&mut self, copy: Option<&Path>, arguments: &[&str]) -> Result<()> {
        let program = copy.unwrap_or(&self.work);
        self.background.push(Command::new(program).args(arguments).stdin(Stdio::null()).spawn()?);
        Ok(())
    }

    /// Starts the runs that are not there, and returns them.
    ///
    /// # Errors
    ///
    /// Returns an error if one does not start.
    pub fn runs(&mut self) -> Result<(&mut Recording, &mut Endpoint)> {
        if self.recording.is_none() {
            self.recording = Some(Recording::start(&self.disk.0, &self.control)?);
        }
        if self.endpoint.is_none() {
            self.endpoint = Some(Endpoint::start(&self.control)?);
        }
        self.recording.as_mut().zip(self.endpoint.as_mut()).context("both were started")
    }

    /// Returns the process id of one of the runs, and starts them if they are not there.
    ///
    /// # Errors
    ///
    /// Returns an error if one does not start.
    pub fn either(&mut self, dice: &mut Dice) -> Result<u32> {
        let (recording, endpoint) = self.runs()?;
        Ok(if dice.below(2) == 0 { recording.pid() } else { endpoint.pid() })
    }

    /// Lets some work be sampled, checks that both runs are well, and judges what has ended.
    /// Returns the number of runs that ended by themselves.
    ///
    /// # Errors
    ///
    /// Returns an error if a run is not as it must be.
    pub fn settle(&mut self, totals: &mut Totals) -> Result<u64> {
        self.runs()?;
        self.works("pages", 40)?;
        self.numbers += 1;
        let cgroup = Cgroup::new(&format!("chaos-{}", self.numbers))?;
        cgroup.run(&self.work, ["pages", "23"])?;
        for child in &mut self.background {
            child.wait()?;
        }
        self.background.clear();
        let mut ended = 0;
        if let Some(recording) = &mut self.recording
            && recording.has_ended()?
        {
            self.recording.take().context("it was there")?.judge(totals)?;
            ended += 1;
        }
        let endpoint = self.endpoint.as_mut().context("it was started")?;
        if endpoint.has_ended()? {
            self.endpoint.take().context("it was there")?.judge(totals)?;
            ended += 1;
        } else {
            endpoint.is_well()?;
            totals.pages += 1;
        }
        Ok(ended)
    }

    /// Continues what was stopped for good.
    pub fn go_on(&mut self) {
        for pid in self.stopped.drain(..) {
            super::fault::signal(pid, libc::SIGCONT);
        }
    }

    /// Ends both runs with a signal, and judges them.
    ///
    /// # Errors
    ///
    /// Returns an error if a run is not as it must be.
    pub fn end(&mut self, totals: &mut Totals) -> Result<()> {
        if let Some(mut recording) = self.recording.take() {
            recording.ask(libc::SIGINT);
            recording.judge(totals)?;
        }
        if let Some(mut endpoint) = self.endpoint.take() {
            endpoint.ask(libc::SIGTERM);
            endpoint.judge(totals)?;
        }
        self.go_on();
        Ok(())
    }
}

/// Runs a command to its end.
pub(super) fn run(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("{command:?}"))?;
    ensure!(
        output.status.success(),
        "{command:?}: {}: {}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(())
}
