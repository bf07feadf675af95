//! Export to pprof's profile.proto, gzip-compressed as `go tool pprof` and other readers expect.
//!
//! Messages and field numbers: <https://github.com/google/pprof/blob/main/proto/profile.proto>.

use std::io::Write as _;

use flate2::{Compression, write::GzEncoder};
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
use super::wire::WireMessage;

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
    let mut places: FxHashMap<Key, usize> = FxHashMap::default();
    let mut samples: Vec<(Key, [u64; 3])> = Vec::new();
    for row in rows {
        let key = (maker.chain(row), maker.labels(row));
        let place = *places.entry(key).or_insert_with_key(|key| {
            samples.push((key.clone(), [0; 3]));
            samples.len() - 1
        });
        let measures = [row.measures.count, row.measures.period_sum, row.measures.latency_sum];
        let sums = samples.get_mut(place).into_iter().flat_map(|(_, sums)| sums);
        for (sum, more) in sums.zip(measures) {
            *sum = sum.saturating_add(more);
        }
    }
    let mut profile = WireMessage::default();
    for kind in &types {
        profile.message(1, kind);
    }
    for ((locations, labels), sums) in &samples {
        let values: Vec<u64> = sums.iter().take(types.len()).map(|sum| signed(*sum)).collect();
        let mut sample = WireMessage::default();
        sample.packed(1, locations);
        sample.packed(2, &values);
        for (key, text) in labels {
            let mut label = WireMessage::default();
            label.number(1, *key);
            label.number(2, *text);
            sample.message(3, &label);
        }
        profile.message(2, &sample);
    }
    let mut comment = vec![maker.string(&format!("precise: {} of {}", info.name, capture.meta.target))];
    if let Some(event) = trust {
        comment.push(maker.string(&format!("Verdict: {}", event.summary)));
        comment.extend(event.findings.iter().map(|finding| maker.string(finding)));
    }
    comment.push(maker.string(&format!("Command: {}", capture.meta.command.join(" "))));
    let (period, first) = (maker.value_type(unit, "count"), maker.string(first));
    profile.append(&maker.tables);
    for text in &maker.strings {
        profile.bytes(6, text.as_bytes());
    }
    profile.number(9, signed(capture.meta.start_unix_ns));
    profile.number(10, signed(duration(&capture.meta.epochs)));
    profile.message(11, &period);
    profile.number(12, signed(info.period.unwrap_or(0)));
    profile.packed(13, &comment);
    profile.number(14, first);
    gzip(profile.as_bytes())
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
type Key = (Vec<u64>, Vec<(u64, u64)>);

/// Limits a number to what pprof's signed type can hold.
fn signed(value: u64) -> u64 {
    value.min(i64::MAX as u64)
}

/// The tables of a profile under construction. Ids start at 1; string 0 is the empty one.
struct Maker<'a> {
    capture: &'a Capture,
    strings: Vec<String>,
    string_ids: FxHashMap<String, u64>,
    function_ids: FxHashMap<(u64, u64), u64>,
    mapping_ids: FxHashMap<(Name, NameId), u64>,
    location_ids: FxHashMap<CodeLocation, u64>,
    /// The encoded mappings, locations and functions: fields of the profile.
    tables: WireMessage,
    by_code: FxHashMap<u32, u64>,
    words: [u64; 3],
}

impl<'a> Maker<'a> {
    fn new(capture: &'a Capture) -> Self {
        let mut maker = Self {
            capture,
            strings: Vec::new(),
            string_ids: FxHashMap::default(),
            function_ids: FxHashMap::default(),
            mapping_ids: FxHashMap::default(),
            location_ids: FxHashMap::default(),
            tables: WireMessage::default(),
            by_code: FxHashMap::default(),
            words: [0; 3],
        };
        maker.string("");
        maker.words = ["cgroup", "comm", "level"].map(|word| maker.string(word));
        maker
    }

    /// Returns the index of a text, without control characters: readers print names as they are.
    fn string(&mut self, text: &str) -> u64 {
        let text = sanitize(text);
        if let Some(id) = self.string_ids.get(&text) {
            return *id;
        }
        let id = self.strings.len() as u64;
        self.strings.push(text.clone());
        self.string_ids.insert(text, id);
        id
    }

    fn value_type(&mut self, kind: &str, unit: &str) -> WireMessage {
        let mut value = WireMessage::default();
        value.number(1, self.string(kind));
        value.number(2, self.string(unit));
        value
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

    fn labels(&mut self, row: &Row) -> Vec<(u64, u64)> {
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
        let mut location = WireMessage::default();
        let id = self.location_ids.len() as u64 + 1;
        location.number(1, id);
        location.number(2, self.mapping(&key));
        location.number(3, address);
        location.message(4, &self.line(&key, key.function, key.source, key.line));
        for frame in &key.inlined_into {
            let (function, source) = (Name::Known(frame.function), Name::Known(frame.source));
            location.message(4, &self.line(&key, function, source, frame.line));
        }
        self.tables.message(4, &location);
        self.location_ids.insert(key, id);
        id
    }

    fn line(&mut self, place: &CodeLocation, function: Name, source: Name, line: u32) -> WireMessage {
        let names = &self.capture.names;
        let name = frame_name(names, place, function);
        let file = match source {
            Name::Known(id) => names.get(id),
            Name::Unknown(_) => "",
        };
        let key = (self.string(&name), self.string(file));
        let next = self.function_ids.len() as u64 + 1;
        let id = *self.function_ids.entry(key).or_insert(next);
        if id == next {
            let mut function = WireMessage::default();
            function.number(1, id);
            function.number(2, key.0);
            function.number(3, key.0);
            function.number(4, key.1);
            self.tables.message(5, &function);
        }
        let mut at = WireMessage::default();
        at.number(1, id);
        at.number(2, line.into());
        at
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
        let id = self.mapping_ids.len() as u64 + 1;
        let mut mapping = WireMessage::default();
        mapping.number(1, id);
        mapping.number(3, u64::MAX);
        mapping.number(5, filename);
        mapping.number(6, build_id);
        // It has functions, file names, lines and inlined frames: readers need not look for any.
        (7..=10).for_each(|has| mapping.number(has, 1));
        self.tables.message(3, &mapping);
        self.mapping_ids.insert(key, id);
        id
    }
}
