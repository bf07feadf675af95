//! Large recordings of perf, made from a real one (`perf mem record`): its samples are repeated,
//! later each time, with data addresses that move by a cache line, so that they do not all fall
//! into the same cells.

use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use anyhow::{Context as _, Result};

/// The number of different cache lines that the address of one sample becomes.
const LINES: u64 = 16;
/// The size of a cache line.
const LINE: u64 = 64;
/// The first address of a file in which all are different.
const FIRST: u64 = 0x7000_0000_0000;
/// The record types `PERF_RECORD_EXIT`, `PERF_RECORD_SAMPLE` and `PERF_RECORD_FINISHED_ROUND`.
const EXIT: u32 = 4;
const SAMPLE: u32 = 9;
const ROUND: u32 = 68;
/// Positions of words in a sample of this recording, which has ip, tid, time, address.
const TIME: usize = 8 + 2 * 8;
const ADDRESS: usize = 8 + 3 * 8;
/// The position of the records' size in the header of a file.
const DATA: usize = 40;
const FEATURES: std::ops::Range<usize> = 72..104;
/// `HEADER_SAMPLE_TIME`: the times of the first and the last sample.
const SAMPLE_TIME: usize = 21;

/// How large a recording is.
#[derive(Clone, Copy, Debug)]
pub enum Size {
    /// At least this number of bytes.
    Bytes(u64),
    /// At least this number of samples.
    Samples(u64),
}

/// The data addresses of a recording.
#[derive(Clone, Copy, Debug)]
pub enum Addresses {
    /// Those of the real recording, and some cache lines beside each of them.
    Real,
    /// This number of different ones, one after the other, and then again. No two samples of a
    /// short time fall into the same cell.
    Distinct(u64),
}

/// Writes a recording of this size. Returns the number of samples.
///
/// # Errors
///
/// Returns an error if the file cannot be written.
pub fn write(path: &Path, size: Size, addresses: Addresses) -> Result<u64> {
    let from = Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings/intel-cfl-mem-rcppthread/perf.data");
    let recording = std::fs::read(&from).with_context(|| from.display().to_string())?;
    let word = |at: usize| -> Result<u64> {
        Ok(u64::from_le_bytes(recording.get(at..at + 8).context("a short file")?.try_into()?))
    };
    let (begin, length) = (word(DATA)? as usize, word(DATA + 8)? as usize);
    let records = recording.get(begin..begin + length).context("records outside of the file")?;
    let (mut beside, mut samples, mut rest) = (Vec::new(), Vec::new(), records);
    while let [a, b, c, d, _, _, low, high, ..] = *rest {
        let (kind, bytes) = (u32::from_le_bytes([a, b, c, d]), usize::from(u16::from_le_bytes([low, high])));
        let (record, more) = rest.split_at_checked(bytes.max(8)).context("a short record")?;
        rest = more;
        match kind {
            SAMPLE => samples.push(record.to_vec()),
            // Samples go on, so processes do.
            ROUND | EXIT => {}
            _ => beside.extend_from_slice(record),
        }
    }
    let time = |sample: &Vec<u8>| u64::from_le_bytes(sample[TIME..TIME + 8].try_into().unwrap_or_default());
    let span = samples.iter().map(time).max().unwrap_or(0) - samples.iter().map(time).min().unwrap_or(0) + 1;
    let each: u64 = samples.iter().map(|sample| sample.len() as u64).sum::<u64>() + 8;
    let times = match size {
        Size::Bytes(bytes) => bytes / each + 1,
        Size::Samples(wanted) => wanted.div_ceil(samples.len().max(1) as u64),
    };
    let grown = beside.len() as u64 + times * each;

    let mut out = BufWriter::new(File::create(path)?);
    let mut head = recording[..begin].to_vec();
    head[DATA + 8..DATA + 16].copy_from_slice(&grown.to_le_bytes());
    out.write_all(&head)?;
    out.write_all(&beside)?;
    let mut numbers = 0u64..;
    for turn in 0..times {
        for sample in &samples {
            let mut sample = sample.clone();
            let add = |sample: &mut [u8], at: usize, more: u64| {
                let word = u64::from_le_bytes(sample[at..at + 8].try_into().unwrap_or_default());
                sample[at..at + 8].copy_from_slice(&word.wrapping_add(more).to_le_bytes());
            };
            add(&mut sample, TIME, turn * span);
            match (addresses, numbers.next()) {
                (Addresses::Distinct(all), Some(number)) => {
                    let address = FIRST + number % all.max(1) * LINE;
                    sample[ADDRESS..ADDRESS + 8].copy_from_slice(&address.to_le_bytes());
                }
                _ => add(&mut sample, ADDRESS, turn % LINES * LINE),
            }
            out.write_all(&sample)?;
        }
        out.write_all(&[ROUND as u8, 0, 0, 0, 0, 0, 8, 0])?;
    }
    // The table of sections after the records contains positions in the file.
    let bits = &recording[FEATURES];
    let present = (0..bits.len() * 8).filter(|bit| bits[bit / 8] >> (bit % 8) & 1 == 1);
    let mut tail = recording[begin + length..].to_vec();
    for (index, feature) in present.enumerate() {
        let place = word(begin + length + index * 16)?;
        let moved = place + grown - length as u64;
        tail[index * 16..][..8].copy_from_slice(&moved.to_le_bytes());
        if feature == SAMPLE_TIME {
            let last = place as usize + 8;
            let later = word(last)? + (times - 1) * span;
            tail[last - begin - length..][..8].copy_from_slice(&later.to_le_bytes());
        }
    }
    out.write_all(&tail)?;
    out.flush()?;
    Ok(times * samples.len() as u64)
}
