//! The messages about an imported file.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    path::PathBuf,
};

use precise_common::ledger::Counter;

use super::{ImportOptions, bad_file};
use crate::error::{ErrorClass, SamplingError};
use crate::symbols::kernel_images::KernelImages;
use precise_model::EventInfo;
use precise_model::digits::{counted, thousands};
use precise_records::perf_data::{Features, ReadLoss, RecordingReader};

/// Counts of irregularities in the file.
#[derive(Debug, Default)]
pub(super) struct Odd {
    /// Samples whose id belongs to no event.
    pub of_no_event: u64,
    /// Samples of events that were not requested.
    pub left_out: u64,
    /// Samples without a time.
    pub without_time: u64,
    /// Records whose contents do not match their type.
    pub damaged_records: u64,
    /// Records that were not in the order of time.
    pub late: u64,
    /// Parts of the kernel that were left out to limit memory.
    pub kernel_parts: u64,
    /// Samples of a group's members that were left out to limit memory.
    pub members_left_out: u64,
    /// Epochs that ended early because they had too many cells.
    pub epochs_cut: u64,
    /// Whether the last epoch is longer than requested.
    pub epochs_too_long: bool,
}

/// Judges whether the samples have the precision that the event promised.
pub(super) fn judge(info: &mut EventInfo) {
    let (seen, exact) = (info.ledger.counter(Counter::Aggregated), info.ledger.counter(Counter::Exact));
    if info.marks_exact && info.verdict.precise && seen > 0 && exact == 0 {
        info.verdict.precise = false;
        info.verdict
            .findings
            .push("the hardware marked no sample as exact, whatever level the kernel granted".to_owned());
    }
}

/// Returns a description of what was sampled.
pub(super) fn target(features: &Features) -> String {
    match features.command.as_slice() {
        [] => "an unknown target (the file does not name it)".to_owned(),
        command => format!("`{}`", command.join(" ")),
    }
}

/// Returns the notes that apply to the whole file.
pub(super) fn notes(reader: &RecordingReader, odd: &Odd, loss: Option<&ReadLoss>) -> Vec<String> {
    let mut notes = vec![
        "this capture was imported: a perf.data file does not hold the event's own count, so coverage \
         is unknown; samples that a filter of the recording dropped are unknown unless the ledger lists \
         them"
            .to_owned(),
    ];
    if let Some(loss) = loss {
        notes.push(format!(
            "the file could not be read to its end: {loss}. The samples after that are missing"
        ));
    }
    if !reader.is_finished() {
        notes.push(
            "perf did not exit normally: the file does not describe the machine, and build ids are missing"
                .to_owned(),
        );
    }
    if reader.features().clock.is_none() {
        notes.push(match reader.modified_ns() {
            Some(_) => {
                "the file does not hold the time of day (perf record -k stores it), so the recording is \
                 assumed to end when the file was last written"
            }
            None => "the time of the recording is unknown (perf record -k stores it), so times count from 1970",
        }.to_owned());
    }
    if reader.trace_bytes() > 0 {
        notes.push(format!(
            "{} bytes of hardware traces (Intel PT, Arm SPE, …) were not read; `perf script --itrace` \
             decodes them",
            thousands(reader.trace_bytes())
        ));
    }
    let counted = [
        (odd.of_no_event, "samples belong to no event of the file and were left out"),
        (odd.left_out, "samples belong to events that -e did not select and were left out"),
        (
            odd.without_time,
            "samples have no time, so they were matched with processes in the order of the file",
        ),
        (odd.damaged_records + reader.damaged(), "records were damaged and skipped"),
        (odd.late, "records came too late to be sorted by time, so some names may be wrong"),
        (odd.members_left_out, "samples of group members were left out to limit memory"),
        (odd.kernel_parts, "mappings of the kernel were left out to limit memory: they have no names"),
        (reader.features().unreadable.into(), "parts of the file's header cannot be read"),
        (odd.epochs_cut, "epochs were cut short, because they had more cells than the memory limit allows"),
    ];
    notes.extend(
        counted
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", thousands(count))),
    );
    if odd.epochs_too_long {
        notes.push(
            "the file has more epochs than a capture may have, so the last one is longer; longer epochs \
             would all be equal"
                .to_owned(),
        );
    }
    notes
}

/// Returns the note about cells that two images of one process could explain.
pub(super) fn ambiguous(samples: u64) -> String {
    format!(
        "{} could belong to two programs of the same process; the newer program is assumed",
        counted(samples, "sample")
    )
}

/// The note about call chains that the file has and the capture does not keep.
pub(super) const CHAINS_LEFT_OUT: &str = "the samples have call chains, which this capture leaves out, as \
     requested; an import by all keys has them";

/// Returns the error for an import without any event left.
pub(super) fn nothing_chosen(
    options: &ImportOptions,
    names: &[String],
    loss: Option<ReadLoss>,
) -> SamplingError {
    match (loss, names) {
        (Some(loss), []) => bad_file(options, loss),
        (None, []) => bad_file(options, "the file has no events"),
        (_, names) if options.events.is_empty() => {
            bad_file(options, format!("the events of the file have no samples: {}", names.join(", ")))
        }
        (_, names) => SamplingError::new(
            ErrorClass::Invalid,
            format!(
                "{} has no event {}; it has {}",
                options.input.display(),
                options.events.join(", "),
                names.join(", ")
            ),
        ),
    }
}

/// Returns this machine's kernel symbols if the recording is of the running kernel: it has the same
/// host name, and the same address for its first symbol, which changes at each boot.
pub(super) fn own_kallsyms(images: &KernelImages, this_host: bool) -> Option<PathBuf> {
    /// The bytes of the file to search. The first symbol is on one of the first lines, on old
    /// kernels after the per-CPU variables.
    const SEARCHED: u64 = 4 << 20;
    let (symbol, address) = images.first_symbol().filter(|_| this_host)?;
    let path = PathBuf::from("/proc/kallsyms");
    let lines = BufReader::new(File::open(&path).ok()?.take(SEARCHED)).lines();
    let found = lines.map_while(Result::ok).find_map(|line| {
        let (at, rest) = line.split_once(' ')?;
        (rest.split(' ').nth(1) == Some(symbol)).then(|| u64::from_str_radix(at, 16).ok())?
    });
    (found == Some(address) && address != 0).then_some(path)
}
