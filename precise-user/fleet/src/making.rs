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
use crate::fold::{Fold, RowKey};
use crate::hash::digits;
use crate::hour::FleetHour;
use crate::listing::RawFile;
use crate::manifest::{FleetManifest, FleetPeriod, MOST_NAMED, ManifestPart, NamedInput, NamedReason};
use crate::part::{FleetPick, read_part};
use crate::raw::{LARGEST, RawCapture, RefusedInput, TakenSamples, take};
use crate::tables::{FleetTable, INPUTS};
use crate::together::{TOGETHER, together};

/// The bytes of one request for a capture.
const PIECE: u64 = 8 << 20;
/// The most bytes of captures that are fetched at the same time; a larger one is fetched alone.
const FETCHED: u64 = 32 << 20;
/// How often a compactor begins again because another one was faster.
const ATTEMPTS: u32 = 16;
/// What part names are hashed with, to be changed if the same captures become other bytes.
const FORMAT: &str = "precise fleet 3";

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

/// Brings the tables of an hour up to date with these captures, which are sorted by name.
pub(crate) fn compact_hour(
    bucket: &Arc<dyn FleetBucket>,
    hour: FleetHour,
    files: &[&RawFile],
    memory: u64,
) -> Result<Made, FleetError> {
    let period = FleetPeriod::Hour(hour);
    for _ in 0..ATTEMPTS {
        let newest = FleetManifest::newest(bucket, period)?;
        let known = newest.as_ref().map_or_else(|| Ok(Known::default()), |of| Known::read(bucket, of))?;
        let fresh = files.iter().copied().filter(|file| !known.files.contains(&key(file)));
        let fresh: Vec<&RawFile> = fresh.collect();
        if fresh.is_empty() {
            return Ok(Made { manifest: newest, ..Made::default() });
        }
        let mut making = Making::new(bucket, hour, memory, known.hashes);
        let mut rest = &fresh[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(at_once(&**bucket, rest));
            let bytes = together(&**bucket, now, |file| fetch(bucket, file))?;
            now.iter().zip(bytes).try_for_each(|(file, bytes)| making.add(file, bytes))?;
            rest = later;
        }
        let Some((made, samples, inputs)) = making.finish()? else {
            return Ok(Made { manifest: newest, ..Made::default() });
        };
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

/// The captures that an hour's tables have already.
#[derive(Default)]
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
}

/// The parts of an hour that are being made.
struct Making<'a> {
    bucket: &'a Arc<dyn FleetBucket>,
    hour: FleetHour,
    memory: u64,
    hashes: BTreeSet<String>,
    fold: Fold,
    /// The inputs of the rows in `fold`.
    lines: Vec<InputLine>,
    made: Made,
    samples: u64,
    inputs: u64,
    /// Whether a capture has epochs in the hour, or something is said about one.
    any: bool,
}

impl<'a> Making<'a> {
    fn new(bucket: &'a Arc<dyn FleetBucket>, hour: FleetHour, memory: u64, hashes: BTreeSet<String>) -> Self {
        let (fold, lines, made) = (Fold::new(), Vec::new(), Made::default());
        Self { bucket, hour, memory, hashes, fold, lines, made, samples: 0, inputs: 0, any: false }
    }

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
        let result = match fetched {
            Fetched::Removed => return Ok(()),
            Fetched::TooLarge => {
                let what = format!("it has {} bytes, and at most {LARGEST} are read", object.bytes);
                Err(RefusedInput { reason: NamedReason::TooLarge, what })
            }
            Fetched::Bytes(bytes) => {
                line.hash = digits(&bytes);
                self.made.read += 1;
                self.made.read_bytes += object.bytes;
                if self.hashes.insert(line.hash.clone()) {
                    let before = self.fold.rows.len();
                    let raw = RawCapture { name: &object.name, bytes, modified_ns: object.modified_ns };
                    let taken = take(&mut self.fold, self.hour, &raw);
                    self.made.rows_read += (self.fold.rows.len() - before) as u64;
                    taken
                } else {
                    let what = "another capture has the same contents".to_owned();
                    Err(RefusedInput { reason: NamedReason::Duplicate, what })
                }
            }
        };
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
        self.lines.push(line);
        self.make_room()
    }

    /// Writes the parts of what was read if it takes too much memory.
    fn make_room(&mut self) -> Result<(), FleetError> {
        self.made.held = self.made.held.max(self.fold.bytes().1);
        if self.fold.is_full(self.memory) { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), FleetError> {
        let mut fold = std::mem::replace(&mut self.fold, Fold::new());
        let lines = std::mem::take(&mut self.lines);
        let hash =
            of_inputs(lines.iter().map(|line| format!("{}\0{}\0{}", line.name, line.bytes, line.hash)));
        self.samples = lines.iter().fold(self.samples, |sum, line| sum.saturating_add(line.samples));
        self.inputs += lines.len() as u64;
        fold.rank();
        fold.add_up();
        let mut symbols: Vec<_> = std::mem::take(&mut fold.symbols).into_iter().collect();
        symbols.sort_unstable_by_key(|(id, _)| *id);
        let of_rows = fold.rows.iter().map(|(key, _)| RowKey::of(*key).function);
        let of_instructions = fold.places.items.iter().map(|of| of.function);
        let used: FxHashSet<u64> = of_rows.chain(of_instructions).collect();
        symbols.retain(|(id, _)| used.contains(id));
        let hour = self.hour;
        let encoded = [
            encode::rows(FleetTable::Hour, &fold, &fold.rows, hour)?,
            encode::latencies(FleetTable::Latency, &fold, hour)?,
            encode::instructions(FleetTable::Instruction, &fold, hour)?,
            encode::ledger(FleetTable::Ledger, &fold, hour)?,
            encode::symbols(&symbols)?,
            encode::inputs(&lines)?,
        ];
        for part in encoded.into_iter().flatten() {
            let name = part.table.of_hour(hour, &hash);
            self.made.parts.push(write(self.bucket, name, part)?);
        }
        Ok(())
    }

    /// Returns what was made, its samples and its inputs; `None` if no capture has anything to do
    /// with the hour.
    fn finish(mut self) -> Result<Option<(Made, u64, u64)>, FleetError> {
        if !self.any {
            return Ok(None);
        }
        if !self.lines.is_empty() {
            self.flush()?;
        }
        Ok(Some((self.made, self.samples, self.inputs)))
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
