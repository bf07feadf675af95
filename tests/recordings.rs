//! Imports real recordings: the capture must have the same samples as perf's output for the same
//! file, one by one.
//!
//! Where the two differ on purpose, docs/import.md gives the reason, and a test here checks the
//! size of the difference.

use precise::capture::CaptureFile as _;
use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context as _, Result, ensure};
use precise::code::{FunctionId, Instruction};
use precise::import::{ImportOptions, import};
use precise::model::Imported;
use precise::model::Reason;
use precise::model::{Capture, Dimension, Name};
use precise::views::c2c::{C2cOptions, c2c};
use precise::views::code::Code;
use precise::views::registry::VIEWS;
use precise::views::render::TextOptions;
use precise::views::view::{Captures, Input, OptionValues};
use precise_common::{
    data_src::{DataSource, MemoryLevel, Snoop, Tlb},
    hitm::Hitm,
    ledger::Counter,
};

fn recording(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("recordings").join(name)
}

/// Returns perf's text for a recording, decompressed if necessary.
fn text(name: &str, file: &str) -> Result<String> {
    let path = recording(name).join(file);
    let bytes = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let bytes = if file.ends_with(".zst") { zstd::decode_all(&bytes[..])? } else { bytes };
    Ok(String::from_utf8(bytes)?)
}

fn imported(name: &str, change: impl FnOnce(&mut ImportOptions)) -> Result<(Imported, Capture)> {
    let folder = tempfile::tempdir()?;
    let output = folder.path().join("x.parquet");
    let mut options = ImportOptions {
        input: recording(name).join("perf.data"),
        output: output.clone(),
        address_granule: 1,
        ..ImportOptions::default()
    };
    change(&mut options);
    let imported = import(&options).map_err(|failure| anyhow::anyhow!("{failure}"))?;
    Ok((imported, Capture::read(&output)?))
}

/// The identity of a sample: event, thread, name of the thread, instruction, file, data address,
/// data source.
type Sample = (String, u32, String, Option<(u64, String)>, u64, u64);
/// The number of samples, the sum of their periods, and the sum of their weights.
type Sums = (u64, u64, u64);

/// Groups the samples of a `perf script` output. The columns are those of the file's first line.
fn by_perf(script: &str, code: bool) -> Result<BTreeMap<Sample, Sums>> {
    let fields: Vec<&str> = script
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("# fields: "))
        .context("no fields")?
        .split(',')
        .collect();
    let mut samples: BTreeMap<Sample, Sums> = BTreeMap::new();
    for line in script.lines().skip(1).filter(|line| line.contains("|OP ")) {
        let sample = one(line, &fields, code).with_context(|| format!("in: {line}"))?;
        let (key, period, weight) = sample;
        let sums = samples.entry(key).or_default();
        *sums = (sums.0 + 1, sums.1 + period, sums.2 + weight);
    }
    Ok(samples)
}

/// Parses a line: `comm pid/tid [cpu] time: period event: addr data_src |OP …|…  weight … ip sym
/// (dso) …`
fn one(line: &str, fields: &[&str], code: bool) -> Result<(Sample, u64, u64)> {
    let (front, back) = line.split_once(" |OP ").context("no data source")?;
    let mut words = front.split_ascii_whitespace().rev();
    let data_src = u64::from_str_radix(words.next().context("no word")?, 16)?;
    let address = u64::from_str_radix(words.next().context("no address")?, 16)?;
    let event = words.next().and_then(|word| word.strip_suffix(':')).context("no event")?;
    let period = words.next().context("no period")?.parse()?;
    let ids = words.find(|word| word.split_once('/').is_some_and(|(pid, _)| pid.parse::<u32>().is_ok()));
    let ids = ids.context("no ids")?;
    let tid = ids.split_once('/').context("no ids")?.1.parse()?;
    let comm = line.split_once(&format!(" {ids} ")).context("no name")?.0.trim().to_owned();
    // After the last word in bars: BLK, and blanks up to the weight. perf truncates the longest
    // text after BLK.
    let (_, rest) = back.rsplit_once("|BLK").context("no end")?;
    let rest = rest.strip_prefix("  N/A").unwrap_or(rest);
    let mut rest = rest.split_ascii_whitespace();
    let mut number = |field: &str| match fields.contains(&field) {
        true => rest.next().and_then(|word| word.parse::<u64>().ok()).context("no number"),
        false => Ok(0),
    };
    let (weight, ..) = (number("weight")?, number("ins_lat")?, number("retire_lat")?);
    let code = match code {
        true => {
            let ip = u64::from_str_radix(rest.next().context("no ip")?, 16)?;
            let module =
                line.rsplit_once('(').and_then(|(_, rest)| rest.split_once(')')).context("no file")?.0;
            Some((ip, module.replace("[kernel.kallsyms]", "[kernel]")))
        }
        false => None,
    };
    Ok(((event.to_owned(), tid, comm, code, address, data_src), period, weight))
}

/// Groups the samples of a capture in the same way.
fn by_precise(capture: &Capture, code: bool) -> BTreeMap<Sample, Sums> {
    let mut samples: BTreeMap<Sample, Sums> = BTreeMap::new();
    for row in &capture.rows {
        let place = row.code.and_then(|id| capture.code.get(id as usize)).map(|location| {
            let module = match location.module {
                Name::Known(id) => capture.names.get(id).to_owned(),
                Name::Unknown(_) => "[unknown]".to_owned(),
            };
            (location.runtime_address, module)
        });
        let address = row.data.map_or(0, |id| capture.data[id as usize].runtime_address);
        let event = capture.meta.events[usize::from(row.event)].name.clone();
        let comm = match row.thread {
            Name::Known(id) => capture.names.get(id).to_owned(),
            // As perf names a thread whose name is not in the recording.
            Name::Unknown(_) => format!(":{}", row.tid),
        };
        let key = (event, row.tid, comm, place.filter(|_| code), address, row.data_src);
        let sums = samples.entry(key).or_default();
        let measures = row.measures;
        *sums = (sums.0 + measures.count, sums.1 + measures.period_sum, sums.2 + measures.latency_sum);
    }
    samples
}

fn everything(options: &mut ImportOptions) {
    use Dimension::{Address, Ip, Latency, Process, Source, Thread};
    options.dimensions = Some(vec![Ip, Address, Process, Thread, Source, Latency]);
}

/// Fails with the first sample that only one of them has.
fn same(perf: &BTreeMap<Sample, Sums>, precise: &BTreeMap<Sample, Sums>) -> Result<()> {
    for (sample, sums) in perf {
        ensure!(
            precise.get(sample) == Some(sums),
            "perf has {sums:?} of {sample:x?}, precise {:?}",
            precise.get(sample)
        );
    }
    ensure!(
        perf.len() == precise.len(),
        "perf has {} kinds of samples, precise {}",
        perf.len(),
        precise.len()
    );
    Ok(())
}

#[test]
fn every_sample_is_as_perf_script_prints_it() -> Result<()> {
    for (name, code, samples) in [
        ("amd-epyc9254-c2c-seqlock", true, 1521),
        ("intel-cfl-mem-rcppthread", true, 698),
        ("intel-skx-google-weightstruct", true, 14),
        // With call chains perf prints the instruction on separate lines, and none if the chain is
        // empty.
        ("na-hsw-addr", false, 99),
    ] {
        let (_, capture) = imported(name, everything)?;
        let (perf, precise) =
            (by_perf(&text(name, "script.perf612.txt.zst")?, code)?, by_precise(&capture, code));
        same(&perf, &precise).with_context(|| name)?;
        let total: u64 = precise.values().map(|(count, ..)| count).sum();
        ensure!(total == samples, "{name}: {total} samples");
    }
    Ok(())
}

/// Returns perf's words for a data source: hit or miss with the level; snoop; translation; lock.
fn perf_words(word: u64) -> [String; 4] {
    let source = DataSource::decode(word);
    let far = match (source.remote, source.hops) {
        (true, 1) => "Remote core, same node ",
        (true, 2) => "Remote node, same socket ",
        _ => "",
    };
    let level = match source.level {
        MemoryLevel::Na => "N/A".to_owned(),
        level => format!("{far}{} {}", level.name(), if source.miss { "miss" } else { "hit" }),
    };
    let lock = source.locked.map_or("N/A", |locked| if locked { "Yes" } else { "No" });
    let snoop = if source.snoop == Snoop::Na { "N/A" } else { source.snoop.name() };
    let tlb = if source.tlb == Tlb::Na { "N/A" } else { source.tlb.name() };
    [level, snoop.to_owned(), tlb.to_owned(), lock.to_owned()]
}

#[test]
fn levels_are_as_perf_mem_report_counts_them() -> Result<()> {
    for name in [
        "amd-epyc9254-c2c-seqlock",
        "intel-cfl-mem-rcppthread",
        "intel-skx-google-weightstruct",
        "na-hsw-addr",
    ] {
        let (_, capture) = imported(name, |_| ())?;
        let mut precise: BTreeMap<(usize, [String; 4]), u64> = BTreeMap::new();
        for row in &capture.rows {
            *precise.entry((usize::from(row.event), perf_words(row.data_src))).or_default() +=
                row.measures.count;
        }
        let mut perf = BTreeMap::new();
        let mut event = 0;
        let report = text(name, "mem_levels.perf612.txt")?;
        for line in report.lines() {
            event += usize::from(line.starts_with("# Samples:"));
            let columns: Vec<&str> =
                line.split("  ").map(str::trim).filter(|column| !column.is_empty()).collect();
            if let [share, samples, level, snoop, tlb, lock] = columns[..]
                && share.ends_with('%')
            {
                let words = [level, snoop, tlb, lock].map(str::to_owned);
                *perf.entry((event - 1, words)).or_default() += samples.parse::<u64>()?;
            }
        }
        ensure!(!perf.is_empty(), "{name}: perf has no table");
        ensure!(perf == precise, "{name}: perf {perf:#?}, precise {precise:#?}");
    }
    Ok(())
}

/// perf counts a sample without a weight as one cycle, so every op that missed nothing contributes
/// to its shares of time. A capture has no latency if the hardware gave none. The sums differ by
/// exactly these samples.
#[test]
fn a_sample_without_a_weight_has_no_latency() -> Result<()> {
    for (name, totals) in [
        ("amd-epyc9254-c2c-seqlock", &[3971][..]),
        ("intel-cfl-mem-rcppthread", &[9922, 494]),
        ("intel-skx-google-weightstruct", &[1725]),
    ] {
        let (imported, capture) = imported(name, |_| ())?;
        let perf: Vec<u64> = text(name, "mem_levels.perf612.txt")?
            .lines()
            .filter_map(|line| line.strip_prefix("# Total weight : ")?.parse().ok())
            .collect();
        ensure!(perf == totals, "{name}: perf has {perf:?}");
        for (event, total) in totals.iter().enumerate() {
            let rows = capture.rows.iter().filter(|row| usize::from(row.event) == event);
            let (sum, without) = rows.fold((0, 0), |(sum, without), row| {
                let none = if row.latency_bucket.is_none() { row.measures.count } else { 0 };
                (sum + row.measures.latency_sum, without + none)
            });
            ensure!(sum + without == *total, "{name}: {sum} cycles, {without} samples without");
            ensure!(
                imported.meta.events[event].ledger.counter(Counter::NoLatency) == without,
                "{name}: the ledger"
            );
        }
    }
    Ok(())
}

#[test]
fn an_address_without_a_data_source_is_no_access() -> Result<()> {
    let (_, capture) = imported("na-hsw-addr", |_| ())?;
    let ledger = &capture.meta.events[0].ledger;
    ensure!(
        ledger.counter(Counter::NoDataSource) == 99 && ledger.counter(Counter::NoAddress) == 8,
        "{ledger:?}"
    );
    ensure!(capture.rows.iter().all(|row| DataSource::is_na(row.data_src)), "a level that nobody gave");
    Ok(())
}

#[test]
fn a_pipe_with_compressed_records_is_read() -> Result<()> {
    let (imported, capture) = imported("pipe-zstd-na", |_| ())?;
    let meta = &capture.meta;
    ensure!(
        imported.kept == [547] && imported.bytes == 108_556,
        "{:?}, {} bytes",
        imported.kept,
        imported.bytes
    );
    ensure!(meta.machine.host == "arthur-des" && meta.machine.cpus == 16, "{:?}", meta.machine);
    ensure!(
        meta.events[0].name == "cycles:P" && meta.events[0].frequency == Some(997),
        "{:?}",
        meta.events[0]
    );
    // With `-k`, perf stores the wall time of its clock: 2025-10-07.
    ensure!(meta.start_unix_ns / 1_000_000_000 > 1_700_000_000, "{}", meta.start_unix_ns);
    let named = capture
        .rows
        .iter()
        .filter(|row| row.code.is_some_and(|id| matches!(capture.code[id as usize].module, Name::Known(_))));
    let named: u64 = named.map(|row| row.measures.count).sum();
    ensure!(named > 500, "{named} of 547 samples are in a known file");
    Ok(())
}

#[test]
fn raw_registers_are_decoded_as_perf_decodes_them() -> Result<()> {
    let dump = text("recon-amd-genoa-ibs-raw", "perf612_dump.txt")?;
    for said in
        ["DataSrc 3=DRAM", "DcMissLat   476", "LdOp 1", "DcL1TlbMiss 0", "IbsDCLinAd:\tffff899f7c3b5784"]
    {
        ensure!(dump.contains(said), "perf does not say {said}");
    }
    let (_, capture) = imported("recon-amd-genoa-ibs-raw", |_| ())?;
    let [row] = capture.rows[..] else { anyhow::bail!("{} rows", capture.rows.len()) };
    let source = row.data_source();
    ensure!(
        (source.op, source.level, source.tlb) == (DataSource::LOAD, MemoryLevel::Ram, Tlb::L1Hit),
        "{source:?}"
    );
    ensure!(row.measures.latency_sum == 476 && row.exact && row.kernel, "{row:?}");
    let data = row.data.map(|id| &capture.data[id as usize]);
    ensure!(data.is_some_and(|data| data.runtime_address == 0xffff_899f_7c3b_5784), "{data:?}");
    Ok(())
}

#[test]
fn an_event_can_be_chosen() -> Result<()> {
    let (chosen, capture) =
        imported("intel-cfl-mem-rcppthread", |options| options.events = vec!["cpu/mem-stores/P".into()])?;
    ensure!(chosen.kept == [494] && capture.meta.events.len() == 1, "{:?}", chosen.kept);
    ensure!(
        capture.meta.notes.iter().any(|note| note.starts_with("204 samples belong to events")),
        "{:?}",
        capture.meta.notes
    );
    let nothing =
        imported("intel-cfl-mem-rcppthread", |options| options.events = vec!["mem-prefetches".into()]);
    let error = nothing.err().context("an event that is not there")?.to_string();
    ensure!(
        error.contains("has no event mem-prefetches") && error.contains("cpu/mem-loads,ldlat=30/P"),
        "{error}"
    );
    Ok(())
}

/// Epochs change neither the counts nor the way in which samples are joined with other records.
#[test]
fn short_epochs_add_up_to_the_same() -> Result<()> {
    let (_, whole) = imported("amd-epyc9254-c2c-seqlock", everything)?;
    let (short, parts) = imported("amd-epyc9254-c2c-seqlock", |options| {
        everything(options);
        options.epoch = Some(std::time::Duration::from_millis(1));
    })?;
    ensure!(short.meta.epochs.len() > 100, "{} epochs", short.meta.epochs.len());
    same(&by_precise(&whole, true), &by_precise(&parts, true))
}

/// The verdict and the ledger show what the file contains, and what it does not.
#[test]
fn the_ledger_of_an_import_closes_and_coverage_is_not_known() -> Result<()> {
    for name in ["amd-epyc9254-c2c-seqlock", "intel-cfl-mem-rcppthread", "pipe-zstd-na"] {
        let (imported, capture) = imported(name, |_| ())?;
        let trust = precise::views::trust::trust(&capture);
        for event in &trust.events {
            ensure!(event.closes && event.coverage.is_none(), "{name}: {}", event.summary);
            ensure!(
                event.precise && event.summary.ends_with("coverage unknown"),
                "{name}: {}",
                event.summary
            );
        }
        ensure!(
            trust == precise::views::trust::trust_of(&imported.meta, &imported.kept),
            "{name}: the two differ"
        );
        let origin = capture.meta.origin.context("no origin")?;
        ensure!(origin.recorder.starts_with("perf ") && !origin.command.is_empty(), "{name}: {origin:?}");
    }
    Ok(())
}

/// The counts equal those of perf c2c's own table of this file, with one intended difference in
/// names. The kernel sets REM_CCE1 for a cache of another core complex of the same node, which perf
/// counts as a remote HITM; here it is `other CCX`.
#[test]
fn lines_are_as_perf_c2c_counts_them() -> Result<()> {
    let (_, capture) = imported("amd-epyc9254-c2c-seqlock", |options| {
        use Dimension::{Address, Ip, Process, Source, Thread};
        options.dimensions = Some(vec![Ip, Address, Process, Thread, Source]);
    })?;
    let options = C2cOptions { min_samples: 0, ..C2cOptions::default() };
    let view = c2c(&capture, &options, &mut NoCode).map_err(|error| anyhow::anyhow!("{error}"))?;
    let perf = text("amd-epyc9254-c2c-seqlock", "c2c_lines.perf612.txt")?;
    // The table of shared lines: index, address, node, PA cnt, Tot Hitm, Total, LclHitm, RmtHitm,
    // records, loads, stores.
    let rows = perf.lines().filter_map(|line| {
        let columns: Vec<&str> = line.split_whitespace().collect();
        let address = columns.get(1)?.strip_prefix("0x")?;
        let number = |index: usize| columns.get(index)?.parse::<u64>().ok();
        Some((
            u64::from_str_radix(address, 16).ok()?,
            [number(5)?, number(6)?, number(7)?, number(9)?, number(10)?],
        ))
    });
    let perf: Vec<_> = rows.collect();
    ensure!(perf.len() == 2, "perf has {perf:x?}");
    let ours = view.lines.iter().map(|line| {
        let (near, far) = (line.hitm.of(Hitm::SameCcx), line.hitm.of(Hitm::OtherCcx));
        (line.address, [line.hitm.total, near, far, line.loads, line.stores])
    });
    let ours: Vec<_> = ours.collect();
    ensure!(ours == perf, "precise has {ours:x?}, perf {perf:x?}");
    Ok(())
}

/// An import cannot be recorded again: perhaps on another machine, by another program, of an event
/// whose name only that program takes. What has to be recorded is said as that.
#[test]
fn nobody_is_told_to_record_an_import_again() -> Result<()> {
    let (mut answered, mut refused) = (0, 0);
    for folder in fs::read_dir(recording(""))? {
        let folder = folder?;
        if !folder.file_type()?.is_dir() {
            continue;
        }
        let name = folder.file_name().to_string_lossy().into_owned();
        for dimensions in [None, Some(vec![Dimension::Ip])] {
            let (_, capture) = imported(&name, |options| options.dimensions.clone_from(&dimensions))?;
            for view in VIEWS.iter().filter(|view| view.description().captures == Captures::One) {
                let mut code = NoCode;
                let values = OptionValues::defaults(view.description().options);
                let text = match view.answer(&mut Input::of(&capture, &mut code), &values) {
                    Ok(answer) => {
                        answered += 1;
                        answer.text(&TextOptions { width: 10_000, ..TextOptions::default() })
                    }
                    Err(none) => {
                        refused += 1;
                        none.to_string()
                    }
                };
                let (all, of_runs) = (
                    text.matches("precise record").count(),
                    text.matches("A run of `precise record -e ").count(),
                );
                ensure!(all == of_runs, "{name} by {dimensions:?}, {}: {text}", view.description().name);
            }
        }
    }
    ensure!(answered > 50 && refused > 50, "{answered} answers, {refused} refusals");
    Ok(())
}

struct NoCode;

impl Code for NoCode {
    fn instructions(&mut self, _: &FunctionId) -> std::result::Result<Vec<Instruction>, Reason> {
        Err(Reason::FileMissing)
    }

    fn source(&mut self, _: &str, _: u32) -> Option<String> {
        None
    }
}
