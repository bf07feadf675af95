//! Groups the rows of a capture by cache line.

use std::collections::{BTreeMap, BTreeSet};

use precise_common::data_src::DataSource;
use precise_common::hitm::Hitm;
use rustc_hash::{FxHashMap, FxHashSet};

use super::fields;
use super::result::{Classes, ProcessPair, SharedAccess, SharedBytes, SharedLine, WidthFrom};
use super::verdict::{self, SharingVerdict, Touch};
use crate::cache_line::LINE;
use crate::code::{Code, function_of};
use crate::stats::{Samples, Weight};
use crate::typing::{AccessedField, AccessedFields};
use crate::weighing::Weighing;
use precise_model::keys::Key;
use precise_model::values::RawValue;
use precise_model::{Capture, CodeLocation, CompactSort as _, DataLocation, LocationId, Name, Row};

/// Prefixes of the names of memory regions that are always shared between processes. For other
/// files, the capture does not tell whether a mapping is shared or private.
const SHARED: [&str; 4] = ["/dev/shm/", "/memfd:", "/dev/zero", "/SYSV"];

/// Identifies a cache line. Two addresses with the same identity are on the same line.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Identity {
    /// A line in the memory of one process (its pid), or of the kernel (0), and the line's number.
    Of(u32, u64),
    /// A line in shared memory: the name of the region, and the line's number in it.
    Shared(u32, u64),
}

/// The properties that distinguish accesses to a line; accesses that agree in all of them are
/// merged.
#[derive(PartialEq, Eq, Hash, PartialOrd, Ord, Clone)]
struct AccessKey {
    offset: u32,
    width: Option<u32>,
    from: WidthFrom,
    writes: bool,
    op: &'static str,
    function: String,
    line: String,
    process: String,
    pid: u32,
    cgroup: String,
}

/// The samples of merged accesses.
#[derive(Default)]
struct Seen {
    samples: u64,
    hitm: u64,
    threads: BTreeSet<u32>,
    cpus: BTreeSet<u16>,
    /// Name of the variable, and the offset in it.
    variable: Option<(String, u64)>,
    field: Option<AccessedField>,
}

#[derive(Default)]
struct LineSamples {
    address: u64,
    data: Option<LocationId>,
    variables: BTreeSet<String>,
    hitm: Classes,
    weight: Samples,
    hitm_latency: Weight,
    loads: u64,
    stores: u64,
    cpus: BTreeSet<u16>,
    threads: BTreeSet<(u32, u32)>,
    accesses: BTreeMap<AccessKey, Seen>,
    touches: BTreeMap<(u64, u32, Option<u32>, bool), u64>,
}

/// The cache lines of a capture: which of them have HITM loads.
///
/// A capture may have millions of lines, of which few are contended, and what is told of a line
/// takes kilobytes. So lines are only counted first, and looked at afterwards.
pub(crate) struct CacheLines<'a> {
    capture: &'a Capture,
    /// For each event: whether its data sources come from AMD's driver, and how its rows weigh.
    events: Vec<(bool, Weighing)>,
    /// The lines with HITM loads, those with most of them first.
    contended: Vec<(Identity, Contended)>,
    /// The number of the other lines.
    pub quiet: usize,
}

/// The HITM loads of a line.
#[derive(Clone, Copy, Default)]
struct Contended {
    address: u64,
    hitm: u64,
    weight: Samples,
}

/// Lines with HITM loads that are not looked at.
#[derive(Clone, Copy, Default)]
pub(crate) struct Rest {
    pub lines: usize,
    pub hitm: u64,
    pub weight: Samples,
}

impl<'a> CacheLines<'a> {
    /// Counts the lines of a capture.
    pub fn of(capture: &'a Capture) -> Self {
        let events = capture.meta.events.iter().enumerate();
        let events: Vec<_> =
            events.map(|(i, info)| (super::is_amd(capture, info), Weighing::of(capture, i))).collect();
        let mut contended: FxHashMap<Identity, Contended> = FxHashMap::default();
        let mut quiet: FxHashSet<Identity> = FxHashSet::default();
        for (row, _, data, (amd, weighing)) in accesses(capture, &events) {
            let identity = identity(capture, row, data);
            if Hitm::of(row.data_src, amd).is_some() {
                let line = contended.entry(identity).or_default();
                line.address = data.runtime_address / LINE * LINE;
                line.hitm = line.hitm.saturating_add(row.measures.count);
                line.weight.add(weighing.samples(row));
            } else {
                quiet.insert(identity);
            }
        }
        let quiet = quiet.iter().filter(|identity| !contended.contains_key(identity)).count();
        let mut contended: Vec<_> = contended.into_iter().collect();
        contended.sort_by(|(a, x), (b, y)| {
            y.weight.order(&x.weight).then(x.address.cmp(&y.address)).then(a.cmp(b))
        });
        Self { capture, events, contended, quiet }
    }

    /// Returns the number of HITM loads, and the loads with their weights.
    pub fn hitm(&self) -> (u64, Samples) {
        let hitm = self.contended.iter().fold(0u64, |sum, (_, line)| sum.saturating_add(line.hitm));
        (hitm, self.contended.iter().map(|(_, line)| line.weight).sum())
    }

    /// Looks at the lines with most HITM loads, at most this many, and returns them in this order,
    /// and the rest of those with HITM loads.
    pub fn look(&self, most: usize, code: &mut dyn Code) -> (Vec<SharedLine>, Rest) {
        let (looked_at, others) = self.contended.split_at(most.min(self.contended.len()));
        let mut rest = Rest { lines: others.len(), ..Rest::default() };
        for (_, line) in others {
            rest.hitm = rest.hitm.saturating_add(line.hitm);
            rest.weight.add(line.weight);
        }
        let places: FxHashMap<Identity, usize> =
            looked_at.iter().enumerate().map(|(place, (identity, _))| (*identity, place)).collect();
        let mut found: Vec<LineSamples> = looked_at.iter().map(|_| LineSamples::default()).collect();
        let of_lines = accesses(self.capture, &self.events)
            .filter(|(row, _, data, _)| places.contains_key(&identity(self.capture, row, data)));
        let locations: FxHashSet<LocationId> = of_lines.filter_map(|(row, ..)| row.code).collect();
        let fields = AccessedFields::at(self.capture, &locations, code);
        let mut read = FromCode { widths: Widths { known: FxHashMap::default(), code }, fields };
        for (row, id, data, event) in accesses(self.capture, &self.events) {
            let place = places.get(&identity(self.capture, row, data));
            if let Some(line) = place.and_then(|place| found.get_mut(*place)) {
                add(self.capture, line, row, (id, data), event, &mut read);
            }
        }
        (found.into_iter().map(|found| line(self.capture, found)).collect(), rest)
    }
}

/// Returns the rows with a data address, each with its location and how its event is read.
fn accesses<'a>(
    capture: &'a Capture,
    events: &[(bool, Weighing)],
) -> impl Iterator<Item = (&'a Row, LocationId, &'a DataLocation, (bool, Weighing))> {
    capture.rows.iter().filter_map(|row| {
        let id = row.data?;
        let data = capture.data.get(id as usize).filter(|data| data.runtime_address != 0)?;
        Some((row, id, data, *events.get(usize::from(row.event))?))
    })
}

fn identity(capture: &Capture, row: &Row, data: &DataLocation) -> Identity {
    let address = data.runtime_address;
    if let Name::Known(region) = data.region
        && SHARED.iter().any(|shared| capture.names.get(region).starts_with(shared))
    {
        return Identity::Shared(region.0, data.file_offset / LINE);
    }
    let process = if address >> 63 != 0 { 0 } else { row.pid };
    Identity::Of(process, address / LINE)
}

fn add(
    capture: &Capture,
    found: &mut LineSamples,
    row: &Row,
    (id, data): (LocationId, &DataLocation),
    (amd, weighing): (bool, Weighing),
    read: &mut FromCode,
) {
    let source = row.data_source();
    let count = row.measures.count;
    let offset = (data.runtime_address % LINE) as u32;
    if found.data.is_none() {
        (found.address, found.data) = (data.runtime_address - u64::from(offset), Some(id));
    }
    // A locked instruction reads and writes, but Intel samples it as a load.
    let writes = source.op & DataSource::STORE != 0 || source.locked == Some(true);
    let hitm = Hitm::of(row.data_src, amd);
    if let Some(class) = hitm {
        found.hitm.add(class, count);
        found.weight.add(weighing.samples(row));
        found.hitm_latency.add(weighing.latency(row));
    }
    for (bit, counter) in [(DataSource::LOAD, &mut found.loads), (DataSource::STORE, &mut found.stores)] {
        if source.op & bit != 0 {
            *counter = counter.saturating_add(count);
        }
    }
    found.cpus.extend(row.cpu);
    if row.tid != 0 {
        found.threads.insert((row.pid, row.tid));
    }
    let variable = match data.variable {
        Name::Known(name) => Some((capture.names.get(name).to_owned(), data.variable_offset)),
        Name::Unknown(_) => None,
    };
    found.variables.extend(variable.iter().map(|(name, _)| name.clone()));
    let (width, from) = match row.width {
        Some(width) => (Some(u32::from(width)), WidthFrom::Hardware),
        None => match row.code.and_then(|code| read.widths.of(capture, code)) {
            Some(width) => (Some(width), WidthFrom::Instruction),
            None => (None, WidthFrom::Assumed),
        },
    };
    let actor = match (row.tid, row.cpu) {
        (0, cpu) => u64::from(row.pid) << 32 | u64::from(cpu.unwrap_or(0)),
        (tid, _) => tid.into(),
    };
    let samples = found.touches.entry((actor, offset, width, writes)).or_default();
    *samples = samples.saturating_add(count);
    let text = |key| RawValue::of(capture, row, key).value(capture, key).text();
    let key = AccessKey {
        offset,
        width,
        from,
        writes,
        op: source.op_name(),
        function: text(Key::Function),
        line: text(Key::Line),
        process: text(Key::Process),
        pid: row.pid,
        cgroup: text(Key::Cgroup),
    };
    let access = found.accesses.entry(key).or_default();
    access.samples = access.samples.saturating_add(count);
    access.hitm = access.hitm.saturating_add(if hitm.is_some() { count } else { 0 });
    access.threads.extend(Some(row.tid).filter(|tid| *tid != 0));
    access.cpus.extend(row.cpu);
    access.variable = variable;
    if access.field.is_none() {
        access.field = read.fields.of(capture, row).cloned();
    }
}

fn line(capture: &Capture, found: LineSamples) -> SharedLine {
    let touches: Vec<Touch> = found
        .touches
        .iter()
        .map(|((actor, offset, width, writes), samples)| Touch {
            actor: *actor,
            offset: *offset,
            width: *width,
            writes: *writes,
            samples: *samples,
        })
        .collect();
    let accesses: Vec<SharedAccess> = found
        .accesses
        .into_iter()
        .map(|(key, seen)| SharedAccess {
            offset: key.offset,
            width: key.width,
            width_from: key.from,
            op: key.op,
            writes: key.writes,
            samples: seen.samples,
            hitm: seen.hitm,
            function: key.function,
            line: key.line,
            process: key.process,
            pid: key.pid,
            cgroup: key.cgroup,
            threads: seen.threads,
            cpus: seen.cpus,
            variable: seen.variable,
            field: seen.field,
        })
        .collect();
    let verdict = verdict::judge(&touches, capture.meta.address_granule);
    let fields = used_bytes(&touches, &accesses);
    let region = found.data.and_then(|id| capture.data.get(id as usize)).map(|data| match data.region {
        Name::Known(name) => capture.names.get(name).to_owned(),
        Name::Unknown(reason) => format!("[{}]", reason.words()),
    });
    let machine = &capture.meta.machine;
    let LineSamples { weight, hitm_latency, .. } = found;
    let mut line = SharedLine {
        address: found.address,
        region: region.unwrap_or_default(),
        variables: found.variables.into_iter().collect(),
        verdict,
        share: weight.share_of(weight),
        hitm_average: (weight.count > 0 && hitm_latency.sum > 0.0)
            .then(|| hitm_latency.sum / weight.weight.sum),
        weight,
        hitm: found.hitm,
        loads: found.loads,
        stores: found.stores,
        nodes: found.cpus.iter().filter_map(|cpu| machine.node_of((*cpu).into())).collect(),
        cpus: found.cpus,
        threads: found.threads,
        accesses,
        fields,
        advice: Vec::new(),
        pairs: Vec::new(),
    };
    line.advice = advice(&line);
    line.advice.extend(fields::advice(&line));
    line.pairs = of_line(&line);
    line
}

/// Returns the bytes that are used; overlapping accesses are joined.
fn used_bytes(touches: &[Touch], accesses: &[SharedAccess]) -> Vec<SharedBytes> {
    let mut sorted: Vec<&Touch> = touches.iter().collect();
    sorted.compact_sort_by_key(|touch| touch.offset);
    let mut fields: Vec<(SharedBytes, BTreeSet<u64>, BTreeSet<u64>)> = Vec::new();
    for touch in sorted {
        let end = touch.offset.saturating_add(touch.width.unwrap_or(1));
        match fields.last_mut() {
            Some((field, ..)) if touch.offset < field.offset.saturating_add(field.bytes) => {
                field.bytes = field.bytes.max(end - field.offset);
            }
            _ => {
                let variable =
                    accesses.iter().find(|a| a.offset == touch.offset).and_then(|a| a.variable.clone());
                let field = SharedBytes {
                    offset: touch.offset,
                    bytes: end - touch.offset,
                    variable,
                    users: 0,
                    writers: 0,
                };
                fields.push((field, BTreeSet::new(), BTreeSet::new()));
            }
        }
        if let Some((_, users, writers)) = fields.last_mut() {
            users.insert(touch.actor);
            if touch.writes {
                writers.insert(touch.actor);
            }
        }
    }
    let counted = fields.into_iter().map(|(field, users, writers)| SharedBytes {
        users: users.len(),
        writers: writers.len(),
        ..field
    });
    counted.collect()
}

/// Returns the advice for a line, one sentence each.
fn advice(line: &SharedLine) -> Vec<String> {
    let list = |keep: &dyn Fn(&SharedBytes) -> bool| {
        let fields = line.fields.iter().filter(|field| keep(field));
        let mut named: Vec<_> = fields.map(named).collect();
        if named.len() > 6 {
            let more = named.len() - 6;
            named.truncate(6);
            named.push(format!("{more} more"));
        }
        named.join(", ")
    };
    const ALIGN: &str = "align each to a multiple of 64 bytes (alignas(64), #[repr(align(64))]), or 128 \
                         on CPUs that fetch lines in pairs";
    match line.verdict {
        SharingVerdict::FalseSharing => vec![format!(
            "Different threads use different bytes: {}. Move them to separate cache lines: {ALIGN}.",
            list(&|_| true)
        )],
        SharingVerdict::TrueSharing => vec![format!(
            "Threads use the same bytes: {}. Padding does not help. Write less often, keep one copy per \
             thread or CPU and sum the copies when reading, or keep the threads on cores that share a \
             cache.",
            list(&|_| true)
        )],
        SharingVerdict::Both => {
            let (shared, own) = (list(&|field| field.users > 1), list(&|field| field.users <= 1));
            vec![match own.is_empty() {
                true => format!(
                    "Threads share {shared}, and writes of one of these slow accesses to the others. Move \
                     them to separate lines ({ALIGN}), and write them less often."
                ),
                false => format!(
                    "Threads share {shared}, which also slows accesses to {own}. Move the latter to \
                     separate lines ({ALIGN}), and write the shared bytes less often."
                ),
            }]
        }
        SharingVerdict::OneThread => vec![
            "Only one thread was sampled on this line: it moved between CPUs and the line followed, or \
             the other users of the line were not sampled. Pin the thread, or sample for longer."
                .to_owned(),
        ],
        SharingVerdict::NoWriter => vec![
            "Loads found the line modified, but no store to it was sampled. Sample for longer, or \
             sample all processes (-a)."
                .to_owned(),
        ],
        SharingVerdict::TooFew => vec![format!(
            "Fewer than {} samples: sample for longer, or more often.",
            verdict::MIN_LINE_SAMPLES
        )],
        SharingVerdict::WidthNotKnown => vec![
            "Whether the accesses overlap depends on their widths, which neither the hardware nor the \
             binary reported. Run this command where the binary is, or use --symfs."
                .to_owned(),
        ],
        SharingVerdict::NotRecorded => vec![
            "The addresses are too coarse to decide. Record with -e c2c, or import, with \
             --granule 1."
                .to_owned(),
        ],
    }
}

fn named(field: &SharedBytes) -> String {
    let last = field.offset + field.bytes - 1;
    let bytes = match field.bytes {
        1 => format!("byte {}", field.offset),
        _ => format!("bytes {}-{last}", field.offset),
    };
    match &field.variable {
        Some((name, 0)) => format!("{name} ({bytes})"),
        Some((name, offset)) => format!("{name}+{offset} ({bytes})"),
        None => bytes,
    }
}

/// Returns each reader with HITM loads on this line, paired with each process that writes the line.
fn of_line(line: &SharedLine) -> Vec<ProcessPair> {
    let who = |access: &SharedAccess| (access.cgroup.clone(), format!("{} ({})", access.process, access.pid));
    let writers: BTreeSet<_> = line.accesses.iter().filter(|access| access.writes).map(who).collect();
    let mut readers: BTreeMap<_, u64> = BTreeMap::new();
    for access in line.accesses.iter().filter(|access| access.hitm > 0) {
        let hitm = readers.entry(who(access)).or_default();
        *hitm = hitm.saturating_add(access.hitm);
    }
    let mut pairs = Vec::new();
    for ((reader_cgroup, reader), hitm) in readers {
        pairs.extend(writers.iter().map(|(writer_cgroup, writer)| ProcessPair {
            reader_cgroup: reader_cgroup.clone(),
            reader: reader.clone(),
            writer_cgroup: writer_cgroup.clone(),
            writer: writer.clone(),
            hitm,
        }));
    }
    pairs
}

/// Returns the reader and writer pairs of all lines, those with most HITM loads first.
pub(crate) fn pairs(lines: &[SharedLine]) -> Vec<ProcessPair> {
    let mut sums: BTreeMap<ProcessPair, u64> = BTreeMap::new();
    for pair in lines.iter().flat_map(|line| &line.pairs) {
        let sum = sums.entry(ProcessPair { hitm: 0, ..pair.clone() }).or_default();
        *sum = sum.saturating_add(pair.hitm);
    }
    let mut pairs: Vec<_> = sums.into_iter().map(|(pair, hitm)| ProcessPair { hitm, ..pair }).collect();
    pairs.compact_sort_by_key(|pair| std::cmp::Reverse(pair.hitm));
    pairs
}

/// What the code of the accesses says about them.
struct FromCode<'a> {
    widths: Widths<'a>,
    fields: AccessedFields,
}

/// Looks up the width of an access from the operand of its instruction.
struct Widths<'a> {
    known: FxHashMap<LocationId, Option<u32>>,
    code: &'a mut dyn Code,
}

impl Widths<'_> {
    fn of(&mut self, capture: &Capture, id: LocationId) -> Option<u32> {
        if let Some(width) = self.known.get(&id) {
            return *width;
        }
        let location = capture.code.get(id as usize)?;
        let Some(function) = function_of(capture, location) else {
            self.known.insert(id, None);
            return None;
        };
        let listing = self.code.instructions(&function).unwrap_or_default();
        // Each function is read only once, so all of its sampled locations are looked up now.
        for (other, at) in capture.code.iter().enumerate() {
            let same = |at: &CodeLocation| function_of(capture, at).as_ref() == Some(&function);
            let quick = at.module == location.module && at.build_id == location.build_id;
            if quick && same(at) {
                let found = listing.iter().find(|instruction| instruction.offset == at.function_offset);
                self.known.insert(other as LocationId, found.and_then(|found| found.accessed));
            }
        }
        self.known.get(&id).copied().flatten()
    }
}
