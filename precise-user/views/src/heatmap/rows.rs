//! The vertical axis, and the position of each row of the capture on it.

use precise_common::latency;
use rustc_hash::FxHashMap;

use super::{DEFAULT_ROWS, HeatmapError, YAxis};
use precise_model::digits::thousands;
use precise_model::keys::Key;
use precise_model::values::RawValue;
use precise_model::{Capture, CompactSort as _, DataLocation, Name, NameId, Names, Reason, Row};

/// The largest number of address ranges on the axis.
const MAX_RANGES: usize = 5;
/// The largest gap within an address range, in bytes. Addresses of one region that are further
/// apart belong to different ranges.
const GAP: u64 = 16 << 20;

/// The vertical axis: the meaning of the rows of a heatmap, the lowest first.
#[derive(Clone, Debug, PartialEq)]
pub enum Axis {
    /// Latency in core cycles: row `i` holds the samples from `edges[i]` up to, but not including,
    /// `edges[i + 1]`.
    Latency {
        /// The edges of the rows, ascending; one more than the number of rows.
        edges: Vec<u64>,
    },
    /// Data addresses: the ranges one above the other, each with a linear scale.
    Address {
        /// The ranges, the lowest on the axis first; the one with the most samples is the highest.
        ranges: Vec<AddressRange>,
    },
    /// Functions; the one with the most samples is the highest.
    Function {
        /// The names of the functions. They come from the capture, so a renderer must expect any
        /// text.
        names: Vec<String>,
    },
    /// Values of a group key; the one with the most samples is the highest.
    Values {
        /// The key.
        key: Key,
        /// The values. They come from binaries, so a renderer must expect any text.
        names: Vec<String>,
    },
}

impl Axis {
    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        match self {
            Self::Latency { edges } => edges.len().saturating_sub(1),
            Self::Address { ranges } => ranges.iter().map(|r| r.rows).sum(),
            Self::Function { names } | Self::Values { names, .. } => names.len(),
        }
    }

    /// Returns the quantity on the axis, in words and with its unit.
    pub const fn label(&self) -> &'static str {
        match self {
            Self::Latency { .. } => "latency (core cycles)",
            Self::Address { .. } => "data address",
            Self::Function { .. } => "function",
            Self::Values { key, .. } => key.name(),
        }
    }
}

/// A range of addresses on the axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AddressRange {
    /// The variable or region. The name comes from the capture, so a renderer must expect any text.
    pub name: String,
    /// The origin that `start` is relative to.
    pub base: RangeBase,
    /// The address of the first byte of the lowest row.
    pub start: u64,
    /// The number of bytes per row, a power of two.
    pub row_bytes: u64,
    /// The number of rows.
    pub rows: usize,
    /// The number of samples in the range.
    pub samples: u64,
}

/// The origin that the addresses of a range are relative to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RangeBase {
    /// The start of the variable, which is the same in every process.
    Variable,
    /// The start of the mapped file, which is the same in every process.
    File,
    /// Zero: the addresses are runtime addresses.
    Memory,
}

/// The axis, and the position of each row of the capture on it.
pub(crate) struct PlacedRows {
    pub(crate) axis: Axis,
    pub(crate) rest: Vec<String>,
    /// The heatmap row of each row of the capture.
    pub(crate) row_of: Vec<usize>,
}

/// Builds the requested axis.
pub(crate) fn place(
    capture: &Capture,
    rows: &[&Row],
    y: YAxis,
    most: Option<usize>,
    functions: usize,
    of: &str,
) -> Result<PlacedRows, HeatmapError> {
    let has_latency = rows.iter().any(|r| r.latency_bucket.is_some());
    let has_address = rows.iter().any(|r| location(capture, r).is_some());
    let has_code = rows.iter().any(|r| r.code.is_some());
    let missing = |what, why| Err(HeatmapError::NoValues { of: of.to_owned(), what, why });
    let lines = most.unwrap_or(DEFAULT_ROWS).max(1);
    match y {
        YAxis::Latency if !has_latency => {
            missing("a latency", "record an event that has one, and group by latency")
        }
        YAxis::Address if !has_address => {
            missing("a data address", "record an event that has one, and group by address")
        }
        YAxis::Function if !has_code => missing("an instruction address", "record or import with --by ip"),
        YAxis::Type | YAxis::Field if !has_code => {
            missing("an instruction address", "record or import with --by ip")
        }
        YAxis::Latency => Ok(by_latency(rows, lines)),
        YAxis::Address => Ok(by_address(capture, rows, lines)),
        YAxis::Type => Ok(by_key(capture, rows, Key::Type, most.unwrap_or(functions).max(1))),
        YAxis::Field => Ok(by_key(capture, rows, Key::Field, most.unwrap_or(functions).max(1))),
        YAxis::Auto if has_latency => Ok(by_latency(rows, lines)),
        YAxis::Auto if has_address => Ok(by_address(capture, rows, lines)),
        YAxis::Auto | YAxis::Function => Ok(by_function(capture, rows, most.unwrap_or(functions).max(1))),
    }
}

/// Adds the rows for samples that have no place on the axis. Such a row exists only if it has
/// samples.
fn with_rest(axis: Axis, places: &[RowPlace], names: [String; 2]) -> PlacedRows {
    let base = axis.rows();
    let has_others = places.contains(&RowPlace::Others);
    let has_none = places.contains(&RowPlace::None);
    let none_row = base + usize::from(has_others);
    let row_of = places
        .iter()
        .map(|place| match place {
            RowPlace::Row(row) => *row,
            RowPlace::Others => base,
            RowPlace::None => none_row,
        })
        .collect();
    let [others, none] = names;
    let rest = [has_others.then_some(others), has_none.then_some(none)].into_iter().flatten().collect();
    PlacedRows { axis, rest, row_of }
}

/// The position of a row of the capture.
#[derive(Clone, Copy, PartialEq, Eq)]
enum RowPlace {
    Row(usize),
    Others,
    None,
}

fn by_latency(rows: &[&Row], most: usize) -> PlacedRows {
    let bucket = |row: &&Row| row.latency_bucket.map(|b| u32::from(b).min(latency::BUCKETS - 1));
    let first = rows.iter().filter_map(bucket).min().unwrap_or(0);
    let last = rows.iter().filter_map(bucket).max().unwrap_or(0);
    // A few buckets alone would show no context, so the axis covers at least an octave.
    let pad = if last - first < 8 && most >= 16 { 4 } else { 0 };
    let edges = edges(first.saturating_sub(pad), (last + pad).min(latency::BUCKETS - 1), most);
    let places: Vec<RowPlace> = rows
        .iter()
        .map(|row| match bucket(row) {
            Some(b) => RowPlace::Row(edges.partition_point(|&e| e <= latency::lower(b)).saturating_sub(1)),
            None => RowPlace::None,
        })
        .collect();
    with_rest(Axis::Latency { edges }, &places, [String::new(), "no latency".to_owned()])
}

/// Returns the edges of the rows for buckets `first..=last`, in core cycles. They are as fine as
/// `most` allows, and they always split powers of two into equal numbers of rows, so that the axis
/// looks the same from one capture to the next.
pub(crate) fn edges(first: u32, last: u32, most: usize) -> Vec<u64> {
    let mut edges = Vec::new();
    for coarse in 0..9 {
        let kept = |b: u32| is_edge(latency::lower(b), coarse);
        let from = (0..=first).rev().find(|&b| kept(b)).unwrap_or(0);
        let to = (last + 1..latency::BUCKETS).find(|&b| kept(b)).unwrap_or(latency::BUCKETS);
        edges = (from..to).filter(|&b| b == from || kept(b)).map(latency::lower).collect();
        edges.push(latency::lower(to));
        if edges.len() - 1 <= most {
            return edges;
        }
    }
    match (edges.first(), edges.last()) {
        (Some(&from), Some(&to)) if most < edges.len() - 1 => vec![from, to],
        _ => edges,
    }
}

/// Returns whether a row starts at `cycles` if 2^`coarse` eighths of an octave share a row.
fn is_edge(cycles: u64, coarse: u32) -> bool {
    if cycles == 0 {
        return true;
    }
    let octave = cycles.ilog2();
    let eighth = ((cycles - (1 << octave)) * 8) >> octave;
    (u64::from(octave) * 8 + eighth).is_multiple_of(1 << coarse)
}

fn by_function(capture: &Capture, rows: &[&Row], most: usize) -> PlacedRows {
    #[derive(Clone, Copy, PartialEq, Eq, Hash)]
    enum FunctionKey {
        Function(NameId, Name),
        NoName(Name, Reason),
        NotRecorded(bool),
    }
    let key = |row: &Row| match row.code.and_then(|id| capture.code.get(id as usize)) {
        Some(code) => match code.function {
            Name::Known(function) => FunctionKey::Function(function, code.module),
            Name::Unknown(reason) => FunctionKey::NoName(code.module, reason),
        },
        None => FunctionKey::NotRecorded(row.kernel),
    };
    let mut groups: FxHashMap<FunctionKey, u64> = FxHashMap::default();
    for row in rows {
        let samples = groups.entry(key(row)).or_default();
        *samples = samples.saturating_add(row.measures.count);
    }
    let mut order: Vec<(FunctionKey, u64)> = groups.into_iter().collect();
    let names = &capture.names;
    // The numbers of names depend on what else was read.
    let told = |key: FunctionKey| match key {
        FunctionKey::Function(function, module) => (0, names.get(function), text(names, module)),
        FunctionKey::NoName(module, reason) => (1, text(names, module), reason.words()),
        FunctionKey::NotRecorded(kernel) => (2, if kernel { "kernel" } else { "user" }, ""),
    };
    order.compact_sort_by(|a, b| b.1.cmp(&a.1).then_with(|| told(a.0).cmp(&told(b.0))));
    let shown = if order.len() > most { most } else { order.len() };
    let same_name = |function: NameId| {
        order
            .iter()
            .take(shown)
            .filter(|(k, _)| matches!(k, FunctionKey::Function(f, _) if *f == function))
            .count()
            > 1
    };
    let mut labels: Vec<String> = order
        .iter()
        .take(shown)
        .map(|(key, _)| match *key {
            FunctionKey::Function(f, module) if same_name(f) => {
                format!("{} [{}]", names.get(f), text(names, module))
            }
            FunctionKey::Function(f, _) => names.get(f).to_owned(),
            FunctionKey::NoName(module @ Name::Known(_), reason) => {
                format!("{} ({})", text(names, module), reason.words())
            }
            FunctionKey::NoName(Name::Unknown(_), reason) => format!("({})", reason.words()),
            FunctionKey::NotRecorded(true) => "kernel (function not recorded)".to_owned(),
            FunctionKey::NotRecorded(false) => "user (function not recorded)".to_owned(),
        })
        .collect();
    labels.reverse();
    let others = other(order.len() - shown);
    let place: FxHashMap<FunctionKey, usize> =
        order.iter().take(shown).enumerate().map(|(i, (k, _))| (*k, i)).collect();
    let places: Vec<RowPlace> = rows
        .iter()
        .map(|row| place.get(&key(row)).map_or(RowPlace::Others, |i| RowPlace::Row(shown - 1 - i)))
        .collect();
    with_rest(Axis::Function { names: labels }, &places, [others, String::new()])
}

/// Returns the name of the row for the values that have none of their own.
fn other(left_out: usize) -> String {
    match left_out {
        1 => "1 other".to_owned(),
        n => format!("{} others", thousands(n as u64)),
    }
}

fn by_key(capture: &Capture, rows: &[&Row], key: Key, most: usize) -> PlacedRows {
    let of = |row: &Row| RawValue::of(capture, row, key);
    let mut groups: FxHashMap<RawValue, u64> = FxHashMap::default();
    for row in rows {
        let samples = groups.entry(of(row)).or_default();
        *samples = samples.saturating_add(row.measures.count);
    }
    let mut order: Vec<(RawValue, u64)> = groups.into_iter().collect();
    order.sort_by(|(key_a, a), (key_b, b)| b.cmp(a).then_with(|| key_a.compare(key_b, capture)));
    let left_out = order.len().saturating_sub(most);
    order.truncate(most);
    order.reverse();
    let names = order.iter().map(|(value, _)| value.value(capture, key).text()).collect();
    let place: FxHashMap<RawValue, usize> =
        order.iter().enumerate().map(|(i, (value, _))| (*value, i)).collect();
    let places: Vec<RowPlace> =
        rows.iter().map(|row| place.get(&of(row)).map_or(RowPlace::Others, |i| RowPlace::Row(*i))).collect();
    with_rest(Axis::Values { key, names }, &places, [other(left_out), String::new()])
}

fn text(names: &Names, name: Name) -> &str {
    match name {
        Name::Known(id) => names.get(id),
        Name::Unknown(reason) => reason.words(),
    }
}

fn location<'a>(capture: &'a Capture, row: &Row) -> Option<&'a DataLocation> {
    row.data.and_then(|id| capture.data.get(id as usize))
}

/// The object that an address is an offset into.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Home {
    base: RangeBase,
    region: Name,
    variable: Option<NameId>,
}

/// Returns the object that contains an address, and the offset in it.
fn spot(names: &Names, data: &DataLocation, variables: bool) -> (Home, u64) {
    if variables && let Name::Known(variable) = data.variable {
        let place = Home { base: RangeBase::Variable, region: data.region, variable: Some(variable) };
        return (place, data.variable_offset);
    }
    match data.region {
        Name::Known(id) if names.get(id).starts_with('/') => {
            (Home { base: RangeBase::File, region: data.region, variable: None }, data.file_offset)
        }
        region => (Home { base: RangeBase::Memory, region, variable: None }, data.runtime_address),
    }
}

/// A range of memory without a large gap.
struct Cluster {
    place: Home,
    first: u64,
    last: u64,
    samples: u64,
}

/// Returns the clusters of all addresses, most samples first.
fn clusters(capture: &Capture, rows: &[&Row], variables: bool) -> Vec<Cluster> {
    let mut spots: Vec<(Home, u64, u64)> = rows
        .iter()
        .filter_map(|row| location(capture, row).map(|data| (spot(&capture.names, data, variables), row)))
        .map(|((place, offset), row)| (place, offset, row.measures.count))
        .collect();
    spots.compact_sort();
    let mut found: Vec<Cluster> = Vec::new();
    for (place, offset, samples) in spots {
        match found.last_mut() {
            Some(c) if c.place == place && offset - c.last <= GAP => {
                c.last = offset;
                c.samples = c.samples.saturating_add(samples);
            }
            _ => found.push(Cluster { place, first: offset, last: offset, samples }),
        }
    }
    // The numbers of names depend on what else was read.
    let names = &capture.names;
    let told = |c: &Cluster| {
        let Home { base, region, variable } = c.place;
        (base, text(names, region), variable.map(|id| names.get(id)), c.first)
    };
    found.compact_sort_by(|a, b| b.samples.cmp(&a.samples).then_with(|| told(a).cmp(&told(b))));
    found
}

fn by_address(capture: &Capture, rows: &[&Row], most: usize) -> PlacedRows {
    let ranges_most = MAX_RANGES.min(most);
    let held = |c: &[Cluster]| c.iter().take(ranges_most).fold(0u64, |sum, c| sum.saturating_add(c.samples));
    let (fine, coarse) = (clusters(capture, rows, true), clusters(capture, rows, false));
    // Variables tell more than regions, if a few of them hold enough of the samples.
    let variables = held(&fine) >= held(&coarse) / 2;
    let mut chosen = if variables { fine } else { coarse };
    let outside = chosen.len().saturating_sub(ranges_most);
    chosen.truncate(ranges_most);
    chosen.reverse();
    let granule = capture.meta.address_granule.clamp(1, 1 << 30).next_power_of_two();
    let share = (most / chosen.len().max(1)).max(1);
    let mut base = 0;
    let mut bases = Vec::new();
    let ranges: Vec<AddressRange> = chosen
        .iter()
        .map(|c| {
            let (start, row_bytes) = row_size(c.first, c.last, granule, share);
            let rows = ((c.last - start) / row_bytes + 1) as usize;
            bases.push(base);
            base += rows;
            let name = match (c.place.variable, c.place.region) {
                (Some(variable), _) => capture.names.get(variable).to_owned(),
                (None, Name::Known(region)) => capture.names.get(region).to_owned(),
                (None, Name::Unknown(reason)) => format!("memory ({})", reason.words()),
            };
            AddressRange { name, base: c.place.base, start, row_bytes, rows, samples: c.samples }
        })
        .collect();
    let places: Vec<RowPlace> = rows
        .iter()
        .map(|row| {
            let Some(data) = location(capture, row) else { return RowPlace::None };
            let (place, offset) = spot(&capture.names, data, variables);
            let range = chosen.iter().position(|c| c.place == place && (c.first..=c.last).contains(&offset));
            range.map_or(RowPlace::Others, |i| {
                RowPlace::Row(bases[i] + ((offset - ranges[i].start) / ranges[i].row_bytes) as usize)
            })
        })
        .collect();
    let others = match outside {
        1 => "1 other range".to_owned(),
        n => format!("{n} other ranges"),
    };
    with_rest(Axis::Address { ranges }, &places, [others, "no address".to_owned()])
}

/// Returns the start of the lowest row and the bytes per row for which `first..=last` takes at most
/// `most` rows.
fn row_size(first: u64, last: u64, granule: u64, most: usize) -> (u64, u64) {
    let mut bytes = granule;
    loop {
        let start = first - first % bytes;
        if (last - start) / bytes < most as u64 || bytes >= 1 << 62 {
            return (start, bytes);
        }
        bytes *= 2;
    }
}
