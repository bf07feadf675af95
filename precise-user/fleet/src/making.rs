//! Compaction: the captures of an hour become the parts of its tables.
//!
//! Compactors have no state and do not know of each other. What a part contains follows from the
//! captures that it is named after, so that two compactors write the same part; a manifest is
//! written if no other one of its generation exists. A compactor that ends in the middle leaves
//! parts that no manifest lists, which the next one writes again, or uses.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use rustc_hash::FxHashSet;

use crate::bucket::{FleetBucket, FleetError};
use crate::encode::{self, EncodedPart, InputLine};
use crate::fold::Fold;
use crate::hash::digits;
use crate::hour::FleetHour;
use crate::keys::RowKey;
use crate::listing::RawFile;
use crate::manifest::{FleetManifest, FleetPeriod, MOST_NAMED, ManifestPart, NamedInput, NamedReason};
use crate::part::{FleetPick, read_part};
use crate::raw::{LARGEST, RawCapture, RefusedInput, TakenSamples, take};
use crate::tables::{FleetTable, INPUTS};
use crate::together::{TOGETHER, together};
use precise_model::CompactSort as _;

/// The bytes of one request for a capture.
const PIECE: u64 = 8 << 20;
/// The most bytes of captures that are fetched at the same time; a larger one is fetched alone.
const FETCHED: u64 = 32 << 20;
/// How often a compactor begins again because another one was faster.
const ATTEMPTS: u32 = 16;
/// What part names are hashed with, to be changed if the same captures become other bytes.
const FORMAT: &str = "precise fleet 4";

/// What became of an hour or a day.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct Made {
    pub manifest: Option<FleetManifest>,
    /// Captures, or manifests, that were read now, and their bytes.
    pub read: u64,
    pub read_bytes: u64,
    /// The rows of captures, or of parts, that were added up.
    pub rows_read: u64,
    /// The parts that are new.
    pub parts: Vec<ManifestPart>,
    /// What is said about inputs that were read now.
    pub named: Vec<NamedInput>,
    /// The most bytes of rows that were held.
    pub held: u64,
}

/// What a compactor has in memory from one hour to the next.
#[derive(Debug, Default)]
pub(crate) struct HoursInMemory {
    /// Empty, with room for rows.
    pub fold: Fold,
    /// Captures that were read with the hour before theirs.
    next: Option<HourRows>,
}

/// Brings the tables of an hour up to date with these captures, which are sorted by name. Those
/// that go on into the `next` hour are read for both, if that one is made next.
pub(crate) fn compact_hour(
    bucket: &Arc<dyn FleetBucket>,
    (hour, next_hour): (FleetHour, Option<FleetHour>),
    files: &[&RawFile],
    memory: u64,
    kept: &mut HoursInMemory,
) -> Result<Made, FleetError> {
    let period = FleetPeriod::Hour(hour);
    let mut begun = kept.next.take().filter(|rows| rows.hour == hour);
    for _ in 0..ATTEMPTS {
        let newest = FleetManifest::newest(bucket, period)?;
        let generation = newest.as_ref().map(|newest| newest.generation);
        // Another compactor may have read the same captures since.
        let rows = match begun.take().filter(|rows| rows.after == generation) {
            Some(rows) => rows,
            None => HourRows::start(bucket, hour, newest.as_ref(), std::mem::take(&mut kept.fold))?,
        };
        let fresh: Vec<&RawFile> = files.iter().copied().filter(|file| !rows.known.has(file)).collect();
        if fresh.is_empty() && rows.lines.is_empty() {
            kept.fold = rows.into_room();
            return Ok(Made { manifest: newest, ..Made::default() });
        }
        let along = next_hour.filter(|next| fresh.iter().any(|file| file.is_of(*next)));
        let along = along.map(|next| {
            let newest = FleetManifest::newest(bucket, FleetPeriod::Hour(next))?;
            HourRows::start(bucket, next, newest.as_ref(), std::mem::take(&mut kept.fold))
        });
        let mut making = Making { bucket, memory, rows, along: along.transpose()?, samples: 0, inputs: 0 };
        let mut rest = &fresh[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(at_once(&**bucket, rest));
            let bytes = together(&**bucket, now, |file| fetch(bucket, file))?;
            now.iter().zip(bytes).try_for_each(|(file, bytes)| making.add(file, bytes))?;
            rest = later;
        }
        let (made, samples, inputs) = making.finish(kept)?;
        if inputs == 0 {
            return Ok(Made { manifest: newest, ..Made::default() });
        }
        let manifest = next(newest, period, &made, samples, inputs, Vec::new());
        if manifest.write(bucket, period)? {
            return Ok(Made { manifest: Some(manifest), ..made });
        }
        // Another compactor was faster, and may have read other captures.
    }
    Err(FleetError::Busy { period: hour.to_string() })
}

/// Returns how many of the first captures are fetched at the same time.
fn at_once(bucket: &dyn FleetBucket, files: &[&RawFile]) -> usize {
    let most = if bucket.is_near() { 1 } else { TOGETHER };
    let mut bytes: u64 = 0;
    let fits = files.iter().take(most).take_while(|file| {
        bytes = bytes.saturating_add(file.object.bytes);
        bytes <= FETCHED
    });
    fits.count().max(1)
}

/// A capture that was fetched.
enum Fetched {
    Bytes(Bytes),
    /// It was removed since it was listed.
    Removed,
    TooLarge,
}

/// Fetches a capture, unless it is larger than any that is read.
fn fetch(bucket: &Arc<dyn FleetBucket>, file: &RawFile) -> Result<Fetched, FleetError> {
    let object = &file.object;
    if object.bytes > LARGEST {
        return Ok(Fetched::TooLarge);
    }
    let bytes = whole(bucket, &object.name, object.bytes)?;
    Ok(bytes.map_or(Fetched::Removed, Fetched::Bytes))
}

fn key(file: &RawFile) -> (String, u64) {
    (file.object.name.clone(), file.object.bytes)
}

/// Returns the manifest after `newest` with what was made.
pub(crate) fn next(
    newest: Option<FleetManifest>,
    period: FleetPeriod,
    made: &Made,
    samples: u64,
    inputs: u64,
    of: Vec<String>,
) -> FleetManifest {
    let text = match period {
        FleetPeriod::Hour(hour) => hour.to_string(),
        FleetPeriod::Day(day) => day.to_string(),
    };
    let mut manifest = newest.map_or_else(
        || FleetManifest { period: text, instructions: true, ..FleetManifest::default() },
        |newest| FleetManifest { generation: newest.generation.saturating_add(1), ..newest },
    );
    manifest.parts.extend(made.parts.iter().cloned());
    manifest.inputs = manifest.inputs.saturating_add(inputs);
    manifest.samples = manifest.samples.saturating_add(samples);
    manifest.named_total = manifest.named_total.saturating_add(made.named.len() as u64);
    let room = MOST_NAMED.saturating_sub(manifest.named.len());
    manifest.named.extend(made.named.iter().take(room).cloned());
    manifest.of = of;
    manifest
}

/// The captures that an hour has already.
#[derive(Debug, Default)]
struct Known {
    /// Names and sizes.
    files: BTreeSet<(String, u64)>,
    /// Hashes of contents.
    hashes: BTreeSet<String>,
}

impl Known {
    fn read(bucket: &Arc<dyn FleetBucket>, manifest: &FleetManifest) -> Result<Self, FleetError> {
        let mut known = Self::default();
        let [name, bytes, hash, ..] = INPUTS;
        for part in manifest.of_table(FleetTable::Inputs) {
            read_part(bucket, part, &FleetPick::default(), &[name, bytes, hash], |batch| {
                for row in batch.rows() {
                    if let Some((name, bytes)) = batch.text(0, row).zip(batch.number(1, row)) {
                        known.files.insert((name.to_owned(), bytes));
                    }
                    known.hashes.extend(batch.text(2, row).map(str::to_owned));
                }
            })?;
        }
        Ok(known)
    }

    fn has(&self, file: &RawFile) -> bool {
        self.files.contains(&key(file))
    }
}

/// The rows of an hour, and the captures that they are from.
#[derive(Debug)]
struct HourRows {
    hour: FleetHour,
    /// The generation of the hour's tables whose captures are known.
    after: Option<u32>,
    known: Known,
    fold: Fold,
    /// The inputs of the rows in `fold`.
    lines: Vec<InputLine>,
    made: Made,
    /// Whether a capture has epochs in the hour, or something is said about one.
    any: bool,
}

impl HourRows {
    fn start(
        bucket: &Arc<dyn FleetBucket>,
        hour: FleetHour,
        newest: Option<&FleetManifest>,
        fold: Fold,
    ) -> Result<Self, FleetError> {
        let known = newest.map_or_else(|| Ok(Known::default()), |of| Known::read(bucket, of))?;
        let after = newest.map(|newest| newest.generation);
        Ok(Self { hour, after, known, fold, lines: Vec::new(), made: Made::default(), any: false })
    }

    /// Notes what a capture gave.
    fn note(&mut self, line: &InputLine, result: Result<TakenSamples, RefusedInput>) {
        let mut line = line.clone();
        let said = match result {
            Ok(TakenSamples::Elsewhere) => None,
            Ok(TakenSamples::Samples(samples, late)) => {
                self.any = true;
                line.samples = samples;
                late.map(|what| RefusedInput { reason: NamedReason::Late, what })
            }
            Err(refused) => Some(refused),
        };
        if let Some(RefusedInput { reason, what }) = said {
            self.any = true;
            (line.reason, line.what) = (reason.word(), what.clone());
            self.made.named.push(NamedInput { name: line.name.clone(), reason, what });
        }
        self.known.files.insert((line.name.clone(), line.bytes));
        self.lines.push(line);
    }

    /// Returns the room for rows, which are forgotten.
    fn into_room(mut self) -> Fold {
        self.fold.empty();
        self.fold
    }
}

/// The parts of an hour that are being made.
struct Making<'a> {
    bucket: &'a Arc<dyn FleetBucket>,
    memory: u64,
    rows: HourRows,
    /// The next hour, for which captures are read as well.
    along: Option<HourRows>,
    samples: u64,
    inputs: u64,
}

impl Making<'_> {
    /// Adds a capture.
    fn add(&mut self, file: &RawFile, fetched: Fetched) -> Result<(), FleetError> {
        let object = &file.object;
        let mut line = InputLine {
            name: object.name.clone(),
            bytes: object.bytes,
            hash: String::new(),
            samples: 0,
            reason: "",
            what: String::new(),
        };
        let room = self.memory / 2;
        let wants = |rows: &&mut HourRows| {
            file.is_of(rows.hour) && !rows.known.has(file) && rows.fold.bytes() <= room
        };
        let mut hours: Vec<&mut HourRows> = vec![&mut self.rows];
        hours.extend(self.along.as_mut().filter(wants));
        match fetched {
            Fetched::Removed => return Ok(()),
            Fetched::TooLarge => {
                for rows in hours {
                    let what = format!("it has {} bytes, and at most {LARGEST} are read", object.bytes);
                    rows.note(&line, Err(RefusedInput { reason: NamedReason::TooLarge, what }));
                }
            }
            Fetched::Bytes(bytes) => {
                line.hash = digits(&bytes);
                let mut new = Vec::new();
                for rows in hours {
                    rows.made.read += 1;
                    rows.made.read_bytes += object.bytes;
                    if rows.known.hashes.insert(line.hash.clone()) {
                        new.push(rows);
                    } else {
                        let what = "another capture has the same contents".to_owned();
                        rows.note(&line, Err(RefusedInput { reason: NamedReason::Duplicate, what }));
                    }
                }
                let raw = RawCapture { name: &object.name, bytes, modified_ns: object.modified_ns };
                let before: Vec<usize> = new.iter().map(|rows| rows.fold.rows.len()).collect();
                let folds = new.iter_mut().map(|rows| (rows.hour, &mut rows.fold)).collect();
                let taken = take(folds, &raw);
                for ((rows, taken), before) in new.into_iter().zip(taken).zip(before) {
                    rows.made.rows_read += rows.fold.rows.len().saturating_sub(before) as u64;
                    rows.note(&line, taken);
                }
            }
        }
        self.make_room()
    }

    /// Writes the parts of what was read if it takes too much memory.
    fn make_room(&mut self) -> Result<(), FleetError> {
        let along = self.along.as_ref().map_or(0, |along| along.fold.bytes());
        let held = self.rows.fold.bytes().saturating_add(along);
        self.rows.made.held = self.rows.made.held.max(held);
        if self.rows.fold.is_full(self.memory.saturating_sub(along)) { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), FleetError> {
        let HourRows { hour, fold, lines, made, .. } = &mut self.rows;
        let (hour, mut lines) = (*hour, std::mem::take(lines));
        // Captures that were read with the hour before came first.
        lines.compact_sort_by(|a, b| (&a.name, a.bytes).cmp(&(&b.name, b.bytes)));
        let hash =
            of_inputs(lines.iter().map(|line| format!("{}\0{}\0{}", line.name, line.bytes, line.hash)));
        self.samples = lines.iter().fold(self.samples, |sum, line| sum.saturating_add(line.samples));
        self.inputs += lines.len() as u64;
        fold.finish();
        let mut of_rows: Vec<u32> = fold.rows.iter().map(|(key, _)| RowKey::of(*key).function).collect();
        of_rows.dedup();
        let of_rows = of_rows.into_iter().map(|number| fold.functions.id(number));
        let of_instructions = fold.places.items.iter().map(|of| of.function);
        let used: FxHashSet<u64> = of_rows.chain(of_instructions).collect();
        let symbols: Vec<_> = fold.functions.named().filter(|(id, _)| used.contains(id)).collect();
        let encoded = [
            encode::rows(FleetTable::Hour, fold, &fold.rows, hour)?,
            encode::latencies(FleetTable::Latency, fold, hour)?,
            encode::instructions(FleetTable::Instruction, fold, hour)?,
            encode::ledger(FleetTable::Ledger, fold, hour)?,
            encode::symbols(&symbols)?,
            encode::inputs(&lines)?,
        ];
        fold.empty();
        for part in encoded.into_iter().flatten() {
            let name = part.table.of_hour(hour, &hash);
            made.parts.push(write(self.bucket, name, part)?);
        }
        Ok(())
    }

    /// Writes what is left. Returns what was made, its samples and its inputs, of which there are
    /// none if no capture has anything to do with the hour. What was read of the next hour is kept.
    fn finish(mut self, kept: &mut HoursInMemory) -> Result<(Made, u64, u64), FleetError> {
        if self.rows.any && !self.rows.lines.is_empty() {
            self.flush()?;
        }
        let Self { mut rows, along, samples, inputs, .. } = self;
        kept.next = along;
        let mut made = std::mem::take(&mut rows.made);
        made.named.compact_sort_by(|a, b| a.name.cmp(&b.name));
        kept.fold = rows.into_room();
        Ok((made, samples, inputs))
    }
}

/// Returns the hash that parts of these inputs are named after.
pub(crate) fn of_inputs(inputs: impl Iterator<Item = String>) -> String {
    let all = inputs.fold(FORMAT.to_owned(), |all, input| all + "\n" + &input);
    digits(all.as_bytes())
}

/// Writes a part, unless another compactor did.
pub(crate) fn write(
    bucket: &Arc<dyn FleetBucket>,
    name: String,
    part: EncodedPart,
) -> Result<ManifestPart, FleetError> {
    let EncodedPart { table, tier, bytes, rows, services } = part;
    let size = bytes.len() as u64;
    bucket.create(&name, Bytes::from(bytes))?;
    Ok(ManifestPart { table, tier, name, rows, bytes: size, services })
}

/// Returns an object; `None` if it does not exist.
fn whole(bucket: &Arc<dyn FleetBucket>, name: &str, bytes: u64) -> Result<Option<Bytes>, FleetError> {
    if bytes <= PIECE {
        return bucket.range(name, 0, bytes as usize);
    }
    let mut all = Vec::with_capacity(bytes as usize);
    while (all.len() as u64) < bytes {
        let at = all.len() as u64;
        match bucket.range(name, at, (bytes - at).min(PIECE) as usize)? {
            Some(piece) => all.extend_from_slice(&piece),
            None => return Ok(None),
        }
    }
    Ok(Some(all.into()))
}
