//! What it costs to read what the program has counted.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd as _, AsRawFd as _, FromRawFd as _, OwnedFd};
use std::os::unix::fs::FileExt as _;
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use precise::kernel::table::{self, CellTable};
use precise_common::cell::{Cell, CellKey};
use precise_common::ledger::{WORDS, lease};

use super::growth::Growth;
use super::part::Part;
use super::question::Question;
use super::setting::Setting;
use super::tool::Tool;

const CELLS: usize = 8192;
const CPUS: usize = 128;
const SIMULATED: [u64; 3] = [8, 64, 512];
/// Cells of each partition; their number is a power of two.
const GROWING: [u64; 3] = [1_024, 8_192, 65_536];
const FEW_CPUS: usize = 8;
const CELL_BYTES: usize = size_of::<Cell>();

/// Returns the parts of this chapter.
///
/// # Errors
///
/// Returns no error.
#[expect(clippy::unnecessary_wraps, reason = "chapters have one type")]
pub fn parts(_setting: &Rc<Setting>) -> Result<Vec<Part>> {
    let note = "The tables are simulated: as large as on such a machine, each cell used, in memory that \
                precise reads as it reads the kernel's. A hash map with as many entries of the same size is \
                read and emptied by BPF_MAP_LOOKUP_AND_DELETE_BATCH, a partition at a time.";
    let drained = Question::new("Reading and clearing 128 CPUs × 8,192 cells", "ms", note)
        .with(Tool::Precise, Vec::new(), |_| drain(CPUS, CELLS))
        .with(Tool::HashMap, Vec::new(), |_| empty(CPUS * CELLS));
    let growth = Growth::new("The same, by CPUs", "ms", "", "CPUs", &SIMULATED)
        .with("precise", |at| drain(SIMULATED[at] as usize, CELLS));
    let cells = Growth::new("The same of 8 CPUs, by cells", "ms", "", "cells", &GROWING)
        .with("precise", |at| drain(FEW_CPUS, GROWING[at] as usize));
    Ok(vec![Part::Question(drained), Part::Growth(growth), Part::Growth(cells)])
}

/// Returns bytes in memory that can be mapped, as a BPF map's can.
fn memory(bytes: usize) -> Result<File> {
    // SAFETY: the name is a C string; the result is checked before it is used.
    let descriptor = unsafe { libc::memfd_create(c"table".as_ptr(), libc::MFD_CLOEXEC) };
    ensure!(descriptor >= 0, "memfd_create: {}", io::Error::last_os_error());
    // SAFETY: a descriptor that nobody else owns.
    let file = File::from(unsafe { OwnedFd::from_raw_fd(descriptor) });
    file.set_len(bytes as u64)?;
    Ok(file)
}

fn key(number: u64) -> CellKey {
    CellKey { ip: 0x40_0000 + number * 4, address: number << 6, process: number % 64, ..CellKey::default() }
}

fn bytes(number: u64) -> [u8; CELL_BYTES] {
    let cell = Cell { key: key(number), count: 1, period_sum: 1, ..Cell::default() };
    // SAFETY: a cell consists of words without padding, which its crate asserts.
    unsafe { std::mem::transmute(cell) }
}

/// Returns the milliseconds of one flip of a full table, whose pages are mapped already.
fn drain(cpus: usize, cells: usize) -> Result<f64> {
    let table = memory(2 * cpus * cells * CELL_BYTES)?;
    let ledger = memory(cpus * WORDS * 8)?;
    let partition: Vec<u8> = (0..cells as u64).flat_map(bytes).collect();
    let fill = |half: usize| -> Result<()> {
        for cpu in 0..cpus {
            table.write_all_at(&partition, (lease::place_of(cpu, half) * partition.len()) as u64)?;
        }
        Ok(())
    };
    // Only CPUs that exist can be waited for.
    let partitions = vec![0; cpus];
    let mut mapped = CellTable::map(table.as_fd(), ledger.as_fd(), None, partitions, cpus, cells)?;
    let mut took = Duration::ZERO;
    for turn in 0..3 {
        fill(turn % 2)?;
        let mut samples = 0u64;
        let begin = Instant::now();
        table::flip([(&mut mapped, false)])?;
        mapped.take(|_, cell| samples += u64::from(cell.count));
        took = begin.elapsed();
        ensure!(samples == (cpus * cells) as u64, "{samples} samples were read");
    }
    Ok(took.as_secs_f64() * 1e3)
}

/// A hash map of the kernel.
struct Hash(OwnedFd);

/// The members of `bpf_attr` for commands of batches (include/uapi/linux/bpf.h).
#[repr(C)]
#[derive(Default)]
struct Batch {
    in_batch: u64,
    out_batch: u64,
    keys: u64,
    values: u64,
    count: u32,
    map: u32,
    elem_flags: u64,
    flags: u64,
}

impl Hash {
    const CREATE: libc::c_long = 0;
    const LOOKUP_AND_DELETE: libc::c_long = 25;
    const UPDATE: libc::c_long = 26;
    const KEY: usize = size_of::<CellKey>();
    const VALUE: usize = CELL_BYTES - Self::KEY;

    fn new(entries: usize) -> Result<Self> {
        // The first members of `bpf_attr` here: type (BPF_MAP_TYPE_HASH), sizes, entries.
        let attributes = [1u32, Self::KEY as u32, Self::VALUE as u32, entries as u32];
        // SAFETY: the kernel reads as many bytes as it is told.
        let map = unsafe {
            libc::syscall(libc::SYS_bpf, Self::CREATE, attributes.as_ptr(), size_of_val(&attributes))
        };
        ensure!(map >= 0, "a hash map of {entries} entries: {}", io::Error::last_os_error());
        // SAFETY: a descriptor that nobody else owns.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(map as i32) }))
    }

    fn batch(&self, command: libc::c_long, batch: &mut Batch) -> io::Result<()> {
        batch.map = self.0.as_raw_fd().cast_unsigned();
        let at: *mut Batch = batch;
        // SAFETY: the pointers in it are to buffers of `count` keys and values.
        let result = unsafe { libc::syscall(libc::SYS_bpf, command, at, size_of::<Batch>()) };
        if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

/// Returns the milliseconds for reading and emptying a hash map in batches.
fn empty(entries: usize) -> Result<f64> {
    let hash = Hash::new(entries)?;
    let (mut keys, mut values) = (Vec::new(), Vec::new());
    for cell in (0..entries as u64).map(bytes) {
        let (key, value) = cell.split_at(Hash::KEY);
        keys.extend_from_slice(key);
        values.extend_from_slice(value);
    }
    let mut batch = Batch {
        keys: keys.as_ptr() as u64,
        values: values.as_ptr() as u64,
        count: entries as u32,
        ..Batch::default()
    };
    hash.batch(Hash::UPDATE, &mut batch).context("entries cannot be added")?;
    let (mut read, mut position, mut first) = (0u64, [0u8; 64], true);
    let (mut keys, mut values) = (vec![0u8; CELLS * Hash::KEY], vec![0u8; CELLS * Hash::VALUE]);
    let begin = Instant::now();
    loop {
        let mut batch = Batch {
            in_batch: if first { 0 } else { position.as_ptr() as u64 },
            out_batch: position.as_mut_ptr() as u64,
            keys: keys.as_mut_ptr() as u64,
            values: values.as_mut_ptr() as u64,
            count: CELLS as u32,
            ..Batch::default()
        };
        let result = hash.batch(Hash::LOOKUP_AND_DELETE, &mut batch);
        let got = batch.count as usize;
        // What precise does with each cell: look at its count.
        read += values.chunks(Hash::VALUE).take(got).map(|value| u64::from(value[0])).sum::<u64>();
        first = false;
        match result {
            Err(error) if error.raw_os_error() == Some(libc::ENOENT) => break,
            other => other.context("entries cannot be read")?,
        }
    }
    let took = begin.elapsed();
    ensure!(read == entries as u64, "{read} of {entries} entries were read");
    Ok(took.as_secs_f64() * 1e3)
}
