//! What there is to say of an imported file.

use std::{
    fs::File,
    io::{BufRead as _, BufReader, Read as _},
    path::PathBuf,
};

use precise_common::ledger::Counter;

use super::{ImportOptions, bad_file};
use crate::error::{Class, Failure};
use crate::symbols::kernel_images::KernelImages;
use precise_model::EventInfo;
use precise_model::digits::thousands;
use precise_records::perf_data::{Features, Loss, Reader};

/// What was odd on the way.
#[derive(Debug, Default)]
pub(super) struct Odd {
    /// Samples whose id is of no event.
    pub of_no_event: u64,
    /// Samples of events that were not asked for.
    pub left_out: u64,
    /// Samples without a time.
    pub without_time: u64,
    /// Records that are not what their type says.
    pub damaged_records: u64,
    /// Records out of the order of time.
    pub late: u64,
    /// Ended processes that were forgotten while they may have been needed.
    pub sideband_forgotten: u64,
    /// Epochs that ended early because they had too many cells.
    pub epochs_cut: u64,
    /// The last epoch is longer than it should be.
    pub epochs_too_long: bool,
}

/// Whether the samples were what the event promised.
pub(super) fn judge(info: &mut EventInfo) {
    let (seen, exact) = (info.ledger.counter(Counter::Aggregated), info.ledger.counter(Counter::Exact));
    if info.marks_exact && info.verdict.precise && seen > 0 && exact == 0 {
        info.verdict.precise = false;
        info.verdict
            .findings
            .push("the hardware marked not one sample as exact, whatever the kernel granted".to_owned());
    }
}

/// What was sampled.
pub(super) fn target(features: &Features) -> String {
    match features.command.as_slice() {
        [] => "what perf was told, which the file does not say".to_owned(),
        command => format!("`{}`", command.join(" ")),
    }
}

/// Everything that belongs to no single event.
pub(super) fn notes(reader: &Reader, odd: &Odd, loss: Option<&Loss>) -> Vec<String> {
    let mut notes = vec![
        "imported: what the event itself counted is not in a perf.data, so coverage is not known; nor is what a filter \
         of the recording left out, unless the ledger says it"
            .to_owned(),
    ];
    if let Some(loss) = loss {
        notes.push(format!(
            "the file could not be read to its end: {loss}. What follows there is missing here"
        ));
    }
    if !reader.is_finished() {
        notes.push(
            "perf did not end by itself: the file does not say what machine it is of, and build ids are missing"
                .to_owned(),
        );
    }
    if reader.features().clock.is_none() {
        notes.push(
            "when it was recorded is not known (perf record -k has it): times count from 1970".to_owned(),
        );
    }
    let counted = [
        (odd.of_no_event, "samples belong to no event of the file, and are left out"),
        (odd.left_out, "samples of events that were not asked for are left out"),
        (odd.without_time, "samples have no time: they are joined with processes as they lie in the file"),
        (odd.damaged_records + reader.damaged(), "records are damaged, and were passed over"),
        (odd.late, "records came too late to be put into the order of time: some names may be wrong"),
        (odd.sideband_forgotten, "ended processes were forgotten to bound memory: some names may be missing"),
        (reader.features().unreadable.into(), "parts of the file's own description cannot be read"),
        (odd.epochs_cut, "epochs ended before their time, as they had more cells than memory is meant for"),
    ];
    notes.extend(
        counted
            .into_iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, what)| format!("{} {what}", thousands(count))),
    );
    if odd.epochs_too_long {
        notes.push("there are too many epochs: the last one is longer (--epoch makes all longer)".to_owned());
    }
    notes
}

/// Cells for which two images of one process could be meant.
pub(super) fn ambiguous(samples: u64) -> String {
    format!(
        "{} samples could be of two programs of their process: the newer one is named",
        thousands(samples)
    )
}

/// The capture does not keep what the file has.
pub(super) const CHAINS_LEFT_OUT: &str = "the samples have call chains, which this capture leaves out: a row has room for a \
     call chain or a data address. `precise import --by ip,process,stack` keeps the call chains";

/// No event is left.
pub(super) fn nothing_chosen(options: &ImportOptions, names: &[String], loss: Option<Loss>) -> Failure {
    match (loss, names) {
        (Some(loss), []) => bad_file(options, loss),
        (None, []) => bad_file(options, "it has no events"),
        (_, names) if options.events.is_empty() => {
            bad_file(options, format!("its events have no samples: {}", names.join(", ")))
        }
        (_, names) => Failure::new(
            Class::Usage,
            format!("{} has no event {}", options.input.display(), options.events.join(", ")),
        )
        .advise(format!("It has: {}.", names.join(", "))),
    }
}

/// This machine's symbols, where the recording is of the kernel that runs now: same host, and its first symbol at the same
/// address, which is another one after each boot.
pub(super) fn own_kallsyms(images: &KernelImages, this_host: bool) -> Option<PathBuf> {
    /// The first symbol is one of the first lines, behind those of per-CPU variables on old kernels.
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
