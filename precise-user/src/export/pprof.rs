//! Export to pprof's profile.proto, gzip-compressed as `go tool pprof` and other readers expect.
//!
//! Messages and field numbers: <https://github.com/google/pprof/blob/main/proto/profile.proto>.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
use prost::Message;
use rustc_hash::FxHashMap;

use precise_model::Chain;
use precise_model::text::sanitize;
use precise_model::words::Served;
use precise_model::{Capture, CodeLocation, EventInfo, Name, NameId, Row};
use precise_views::about::duration;
use precise_views::flame::FrameWidth;
use precise_views::trust::{self, EventTrust};
use precise_views::{ViewError, event_of};

use super::frame_name::{frame_address, frame_name, module_name};

/// Options for the export to pprof.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct PprofOptions {
    /// The measure that readers show first. Every profile contains all measures.
    pub weight: FrameWidth,
    /// Name of the event; `None` for the first event with samples.
    pub event: Option<String>,
}

/// Returns a profile of one event: samples, the events that they stand for, and latencies if there
/// are any. Labels: cgroup, comm, level. Without call chains, a sample's stack is its own
/// instruction, with the functions that it is inlined into.
///
/// # Errors
///
/// Returns an error if the capture has no such event.
pub fn pprof(capture: &Capture, options: &PprofOptions) -> Result<Vec<u8>, ViewError> {
    let (index, info) = event_of(capture, options.event.as_deref())?;
    let rows: Vec<&Row> = capture.rows.iter().filter(|row| usize::from(row.event) == index).collect();
    let trust = trust::trust(capture).events.into_iter().nth(index);
    Ok(pprof_of(capture, info, &rows, trust.as_ref(), options.weight))
}

/// Returns a profile of some rows of one event, as [`pprof`] does of all.
pub fn pprof_of(
    capture: &Capture,
    info: &EventInfo,
    rows: &[&Row],
    trust: Option<&EventTrust>,
    weight: FrameWidth,
) -> Vec<u8> {
    let mut maker = Maker::new(capture);
    // The first mapping is the main program (profile.proto).
    if let Some(place) = program(capture, rows) {
        maker.mapping(place);
    }
    let unit = if info.unit.is_empty() { "events" } else { info.unit.as_str() };
    let mut types = vec![maker.value_type("samples", "count"), maker.value_type(unit, "count")];
    if info.fields.latency {
        types.push(maker.value_type("latency", "cycles"));
    }
    let first = match weight {
        FrameWidth::Latency if info.fields.latency => "latency",
        _ if info.governed() => unit,
        _ => "samples",
    };
    let mut samples: FxHashMap<Key, [u64; 3]> = FxHashMap::default();
    let mut order = Vec::new();
    for row in rows {
        let key = (maker.chain(row), maker.labels(row));
        let sum = samples.entry(key.clone()).or_insert_with(|| {
            order.push(key);
            [0; 3]
        });
        let measures = [row.measures.count, row.measures.period_sum, row.measures.latency_sum];
        for (sum, more) in sum.iter_mut().zip(measures) {
            *sum = sum.saturating_add(more);
        }
    }
    let kinds = types.len();
    let sample = |key: Key| PprofSample {
        value: samples[&key].iter().take(kinds).map(|value| number(*value)).collect(),
        location_id: key.0,
        label: key.1.into_iter().map(|(key, str)| PprofLabel { key, str }).collect(),
    };
    let sample = order.into_iter().map(sample).collect();
    let mut comment = vec![maker.string(&format!("precise: {} of {}", info.name, capture.meta.target))];
    if let Some(event) = trust {
        comment.push(maker.string(&format!("Verdict: {}", event.summary)));
        comment.extend(event.findings.iter().map(|finding| maker.string(finding)));
    }
    comment.push(maker.string(&format!("Command: {}", capture.meta.command.join(" "))));
    let profile = Profile {
        sample_type: types,
        sample,
        time_nanos: number(capture.meta.start_unix_ns),
        duration_nanos: number(duration(&capture.meta.epochs)),
        period_type: Some(maker.value_type(unit, "count")),
        period: number(info.period.unwrap_or(0)),
        comment,
        default_sample_type: maker.string(first),
        mapping: maker.mappings,
        location: maker.locations,
        function: maker.functions,
        string_table: maker.strings,
    };
    gzip(&profile.encode_to_vec())
}

/// Compresses bytes.
pub fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packed = GzEncoder::new(Vec::new(), Compression::default());
    // Writing to memory cannot fail.
    let _infallible = packed.write_all(bytes);
    packed.finish().unwrap_or_default()
}

/// Returns a place in the program that has most samples; `None` if all samples are in libraries or
/// in the kernel.
fn program<'a>(capture: &'a Capture, rows: &[&Row]) -> Option<&'a CodeLocation> {
    let mut found: FxHashMap<NameId, (Likeness, u64, &CodeLocation)> = FxHashMap::default();
    for row in rows {
        let callers = match row.stack {
            Chain::Known(id) => capture.stacks.get(id as usize).map(|stack| stack.callers.as_slice()),
            Chain::Unknown(_) => None,
        };
        let comm = match row.process {
            Name::Known(id) => capture.names.get(id),
            Name::Unknown(_) => "",
        };
        for code in row.code.iter().chain(callers.unwrap_or_default()) {
            let Some(place) = capture.code.get(*code as usize) else { continue };
            let Name::Known(module) = place.module else { continue };
            let Some(likeness) = Likeness::of(capture.names.get(module), comm) else { continue };
            let known = found.entry(module).or_insert((likeness, 0, place));
            known.0 = known.0.max(likeness);
            known.1 = known.1.saturating_add(row.measures.count);
        }
    }
    let best = found
        .into_iter()
        .max_by_key(|(module, (likeness, samples, _))| (*likeness, *samples, std::cmp::Reverse(*module)));
    best.map(|(_, (_, _, place))| place)
}

/// How likely a file is the program of a process, least likely first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Likeness {
    /// It is not a library.
    File,
    /// Its name begins with that of the process: python3.11 of python3.
    Begin,
    /// It has the name of the process.
    Name,
}

impl Likeness {
    fn of(module: &str, comm: &str) -> Option<Self> {
        /// The kernel cuts names of processes to 15 bytes (`TASK_COMM_LEN`).
        const COMM: usize = 15;
        let file = module.starts_with('/').then(|| module.rsplit('/').next().unwrap_or_default())?;
        let cut = file.as_bytes().get(..COMM).unwrap_or(file.as_bytes());
        match () {
            () if cut == comm.as_bytes() => Some(Self::Name),
            () if !comm.is_empty() && file.starts_with(comm) => Some(Self::Begin),
            () if file.ends_with(".so") || file.contains(".so.") => None,
            () => Some(Self::File),
        }
    }
}

/// Identifies a sample: its locations, from the sampled one outwards, and its labels.
type Key = (Vec<u64>, Vec<(i64, i64)>);

/// Converts a number to pprof's signed type.
fn number(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

/// The tables of a profile under construction. Ids start at 1; string 0 is the empty one.
struct Maker<'a> {
    capture: &'a Capture,
    strings: Vec<String>,
    string_ids: FxHashMap<String, i64>,
    functions: Vec<PprofFunction>,
    function_ids: FxHashMap<(i64, i64), u64>,
    mappings: Vec<PprofMapping>,
    mapping_ids: FxHashMap<(Name, NameId), u64>,
    locations: Vec<Location>,
    location_ids: FxHashMap<CodeLocation, u64>,
    by_code: FxHashMap<u32, u64>,
    words: [i64; 3],
}

impl<'a> Maker<'a> {
    fn new(capture: &'a Capture) -> Self {
        let mut maker = Self {
            capture,
            strings: Vec::new(),
            string_ids: FxHashMap::default(),
            functions: Vec::new(),
            function_ids: FxHashMap::default(),
            mappings: Vec::new(),
            mapping_ids: FxHashMap::default(),
            locations: Vec::new(),
            location_ids: FxHashMap::default(),
            by_code: FxHashMap::default(),
            words: [0; 3],
        };
        maker.string("");
        maker.words = ["cgroup", "comm", "level"].map(|word| maker.string(word));
        maker
    }

    /// Returns the index of a text, without control characters: readers print names as they are.
    fn string(&mut self, text: &str) -> i64 {
        let text = sanitize(text);
        if let Some(id) = self.string_ids.get(&text) {
            return *id;
        }
        let id = self.strings.len() as i64;
        self.strings.push(text.clone());
        self.string_ids.insert(text, id);
        id
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> PprofValueType {
        PprofValueType { r#type: self.string(kind), unit: self.string(unit) }
    }

    /// Returns the locations of the sampled instruction and its callers.
    fn chain(&mut self, row: &Row) -> Vec<u64> {
        let stack = match row.stack {
            Chain::Known(id) => self.capture.stacks.get(id as usize),
            Chain::Unknown(_) => None,
        };
        let callers = stack.into_iter().flat_map(|stack| stack.callers.iter().copied());
        row.code.into_iter().chain(callers).filter_map(|code| self.location(code)).collect()
    }

    fn labels(&mut self, row: &Row) -> Vec<(i64, i64)> {
        let [cgroup, comm, level] = self.words;
        let mut labels = Vec::new();
        for (key, name) in [(cgroup, row.cgroup), (comm, row.process)] {
            if let Name::Known(id) = name {
                labels.push((key, self.string(self.capture.names.get(id))));
            }
        }
        if let Some(served) = Served::of(row.data_source()) {
            labels.push((level, self.string(&served.to_string())));
        }
        labels
    }

    fn location(&mut self, code: u32) -> Option<u64> {
        if let Some(id) = self.by_code.get(&code) {
            return Some(*id);
        }
        let found = self.capture.code.get(code as usize)?;
        // The same place in a file is one location, wherever processes have mapped the file.
        let address = frame_address(found);
        let key = CodeLocation { runtime_address: address, ..found.clone() };
        let id = match self.location_ids.get(&key) {
            Some(id) => *id,
            None => self.add(key, address),
        };
        self.by_code.insert(code, id);
        Some(id)
    }

    fn add(&mut self, key: CodeLocation, address: u64) -> u64 {
        let mapping_id = self.mapping(&key);
        let mut line = vec![self.line(&key, key.function, key.source, key.line)];
        for frame in &key.inlined_into {
            let (function, source) = (Name::Known(frame.function), Name::Known(frame.source));
            line.push(self.line(&key, function, source, frame.line));
        }
        let id = self.locations.len() as u64 + 1;
        self.locations.push(Location { id, mapping_id, address, line });
        self.location_ids.insert(key, id);
        id
    }

    fn line(&mut self, place: &CodeLocation, function: Name, source: Name, line: u32) -> PprofLine {
        let names = &self.capture.names;
        let name = frame_name(names, place, function);
        let file = match source {
            Name::Known(id) => names.get(id),
            Name::Unknown(_) => "",
        };
        let key = (self.string(&name), self.string(file));
        let next = self.functions.len() as u64 + 1;
        let id = *self.function_ids.entry(key).or_insert(next);
        if id == next {
            self.functions.push(PprofFunction { id, name: key.0, system_name: key.0, filename: key.1 });
        }
        PprofLine { function_id: id, line: line.into() }
    }

    /// Returns the mapping of a place's file. The file counts as mapped from its start, so that
    /// addresses are offsets in the file.
    fn mapping(&mut self, place: &CodeLocation) -> u64 {
        let key = (place.module, place.build_id);
        if let Some(id) = self.mapping_ids.get(&key) {
            return *id;
        }
        let names = &self.capture.names;
        let filename = self.string(&module_name(names, place));
        let build_id = self.string(names.get(place.build_id));
        let id = self.mappings.len() as u64 + 1;
        self.mappings.push(PprofMapping {
            id,
            memory_limit: u64::MAX,
            filename,
            build_id,
            // Tells readers that they need not look up symbols.
            has_functions: true,
            has_filenames: true,
            has_line_numbers: true,
            has_inline_frames: true,
        });
        self.mapping_ids.insert(key, id);
        id
    }
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Profile {
    #[prost(message, repeated, tag = "1")]
    pub sample_type: Vec<PprofValueType>,
    #[prost(message, repeated, tag = "2")]
    pub sample: Vec<PprofSample>,
    #[prost(message, repeated, tag = "3")]
    pub mapping: Vec<PprofMapping>,
    #[prost(message, repeated, tag = "4")]
    pub location: Vec<Location>,
    #[prost(message, repeated, tag = "5")]
    pub function: Vec<PprofFunction>,
    #[prost(string, repeated, tag = "6")]
    pub string_table: Vec<String>,
    #[prost(int64, tag = "9")]
    pub time_nanos: i64,
    #[prost(int64, tag = "10")]
    pub duration_nanos: i64,
    #[prost(message, optional, tag = "11")]
    pub period_type: Option<PprofValueType>,
    #[prost(int64, tag = "12")]
    pub period: i64,
    #[prost(int64, repeated, tag = "13")]
    pub comment: Vec<i64>,
    #[prost(int64, tag = "14")]
    pub default_sample_type: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct PprofValueType {
    #[prost(int64, tag = "1")]
    pub r#type: i64,
    #[prost(int64, tag = "2")]
    pub unit: i64,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct PprofSample {
    #[prost(uint64, repeated, tag = "1")]
    pub location_id: Vec<u64>,
    #[prost(int64, repeated, tag = "2")]
    pub value: Vec<i64>,
    #[prost(message, repeated, tag = "3")]
    pub label: Vec<PprofLabel>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct PprofLabel {
    #[prost(int64, tag = "1")]
    pub key: i64,
    #[prost(int64, tag = "2")]
    pub str: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct PprofMapping {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "3")]
    pub memory_limit: u64,
    #[prost(int64, tag = "5")]
    pub filename: i64,
    #[prost(int64, tag = "6")]
    pub build_id: i64,
    #[prost(bool, tag = "7")]
    pub has_functions: bool,
    #[prost(bool, tag = "8")]
    pub has_filenames: bool,
    #[prost(bool, tag = "9")]
    pub has_line_numbers: bool,
    #[prost(bool, tag = "10")]
    pub has_inline_frames: bool,
}

#[derive(Clone, PartialEq, Eq, Message)]
pub(super) struct Location {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(uint64, tag = "2")]
    pub mapping_id: u64,
    #[prost(uint64, tag = "3")]
    pub address: u64,
    #[prost(message, repeated, tag = "4")]
    pub line: Vec<PprofLine>,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct PprofLine {
    #[prost(uint64, tag = "1")]
    pub function_id: u64,
    #[prost(int64, tag = "2")]
    pub line: i64,
}

#[derive(Clone, Copy, PartialEq, Eq, Message)]
pub(super) struct PprofFunction {
    #[prost(uint64, tag = "1")]
    pub id: u64,
    #[prost(int64, tag = "2")]
    pub name: i64,
    #[prost(int64, tag = "3")]
    pub system_name: i64,
    #[prost(int64, tag = "4")]
    pub filename: i64,
}
