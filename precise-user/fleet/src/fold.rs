//! Rows that are added up in memory: keys as numbers, and the texts behind them.

use std::collections::{BTreeMap, btree_map, hash_map};
use std::hash::{BuildHasher as _, Hash};

use hashbrown::HashTable;
use precise_model::Interner;
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::add_up::{BESIDE, Ranks, Sums, bits_below, joined, sum_up};
use crate::ledger::LedgerSums;

/// The bits of the parts of a key. A row has service, event, function, level, node, and whether its
/// samples have a latency; a latency has service, event, function, level, cluster, group, bucket;
/// an instruction has service, event, its own number, group, and whether its samples have a
/// latency.
const SERVICE: u32 = 19;
const EVENT: u32 = 12;
const FUNCTION: u32 = 63;
const LEVEL: u32 = 9;
const NODE: u32 = 24;
const CLUSTER: u32 = 12;
const INSTRUCTION: u32 = 28;

/// There are more services, events, levels, nodes or clusters than keys have room for.
#[derive(Debug)]
pub(crate) struct Full(pub &'static str);

/// Texts, or groups of texts, by number.
#[derive(Debug)]
pub(crate) struct Numbered<T> {
    pub items: Vec<T>,
    places: Interner,
    name: &'static str,
    most: usize,
    /// About how many bytes the texts take.
    pub bytes: usize,
}

impl<T: Eq + Hash + Ord + Clone + Sized> Numbered<T> {
    fn new(name: &'static str, bits: u32) -> Self {
        Self { items: Vec::new(), places: Interner::default(), name, most: 1 << bits, bytes: 0 }
    }

    /// Returns the number of an item, which takes about `bytes`.
    pub fn number(&mut self, item: T, bytes: usize) -> Result<u32, Full> {
        let before = self.items.len();
        let number = self.places.intern(&mut self.items, item);
        if self.items.len() > before {
            self.bytes += bytes + size_of::<T>() + Interner::BYTES;
        }
        if self.items.len() > self.most { Err(Full(self.name)) } else { Ok(number) }
    }

    /// Returns how many bits the numbers take.
    fn bits(&self) -> u32 {
        bits_below(self.items.len())
    }

    /// Returns the items in order, and the place of each number in this order.
    pub fn sorted(&self) -> (Vec<T>, Vec<u32>) {
        let mut numbers: Vec<usize> = (0..self.items.len()).collect();
        numbers.sort_by(|a, b| self.items.get(*a).cmp(&self.items.get(*b)));
        let mut places = vec![0; numbers.len()];
        for (place, number) in numbers.iter().enumerate() {
            if let Some(of) = places.get_mut(*number) {
                *of = place as u32;
            }
        }
        (numbers.iter().filter_map(|number| self.items.get(*number)).cloned().collect(), places)
    }
}

/// What an event's rows may be added up with.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct EventKey {
    pub event: String,
    pub unit: String,
    pub kind: String,
}

/// A node of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct NodeKey {
    pub node: String,
    pub cluster: String,
}

/// Returns the latency of a row in cycles; 0 if it has none.
pub(crate) fn cycles(latency: Option<u64>) -> u32 {
    latency.map_or(0, |latency| u32::try_from(latency).unwrap_or(u32::MAX))
}

/// The key of a row, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowKey {
    pub service: u32,
    pub event: u32,
    pub function: u64,
    pub level: u32,
    pub node: u32,
    pub timed: bool,
}

impl RowKey {
    pub fn pack(self) -> u128 {
        let mut key = u128::from(self.service);
        key = key << EVENT | u128::from(self.event);
        key = key << FUNCTION | u128::from(self.function);
        key = key << LEVEL | u128::from(self.level);
        key = key << NODE | u128::from(self.node);
        key << 1 | u128::from(self.timed)
    }

    /// Returns what a key has beside the node and whether there is a latency, in the same order.
    pub fn without_node(key: u128) -> u128 {
        key >> (NODE + 1)
    }

    /// Returns what [`Self::without_node`] left.
    pub fn of_without_node(key: u128) -> Self {
        Self::of(key << (NODE + 1))
    }

    pub fn of(key: u128) -> Self {
        let take = |from: u32, bits: u32| key >> from & ((1 << bits) - 1);
        Self {
            timed: take(0, 1) == 1,
            node: take(1, NODE) as u32,
            level: take(1 + NODE, LEVEL) as u32,
            function: take(1 + NODE + LEVEL, FUNCTION) as u64,
            event: take(1 + NODE + LEVEL + FUNCTION, EVENT) as u32,
            service: take(1 + NODE + LEVEL + FUNCTION + EVENT, SERVICE) as u32,
        }
    }
}

/// The key of a latency, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LatencyKey {
    pub service: u32,
    pub event: u32,
    pub function: u64,
    pub level: u32,
    pub cluster: u32,
    pub group: u8,
    pub bucket: u8,
}

impl LatencyKey {
    pub fn pack(self) -> u128 {
        let mut key = u128::from(self.service);
        key = key << EVENT | u128::from(self.event);
        key = key << FUNCTION | u128::from(self.function);
        key = key << LEVEL | u128::from(self.level);
        key = key << CLUSTER | u128::from(self.cluster);
        key = key << 5 | u128::from(self.group);
        key << 8 | u128::from(self.bucket)
    }

    pub fn of(key: u128) -> Self {
        let take = |from: u32, bits: u32| key >> from & ((1 << bits) - 1);
        Self {
            bucket: take(0, 8) as u8,
            group: take(8, 5) as u8,
            cluster: take(13, CLUSTER) as u32,
            level: take(13 + CLUSTER, LEVEL) as u32,
            function: take(13 + CLUSTER + LEVEL, FUNCTION) as u64,
            event: take(13 + CLUSTER + LEVEL + FUNCTION, EVENT) as u32,
            service: take(13 + CLUSTER + LEVEL + FUNCTION + EVENT, SERVICE) as u32,
        }
    }
}

/// An instruction that samples are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SampledInstruction {
    /// The id of the function that the file has a symbol of.
    pub function: u64,
    /// The offset of the function in its file, and the distance of the instruction from there;
    /// `None` if the code is in no file.
    pub place: Option<(u64, u64)>,
    pub op: InstructionOp,
}

precise_model::catalogue! {
    /// What a sampled access did, with its word; an empty one is null.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub(crate) enum InstructionOp: &'static str {
        /// It was not reported, or was something else.
        #[default]
        Unknown => "",
        Load => "LOAD",
        Store => "STORE",
        /// The sample is about the bytes of the instruction itself.
        Fetch => "FETCH",
    }
}

impl InstructionOp {
    /// Returns the word of the column.
    pub const fn word(self) -> &'static str {
        self.entry()
    }

    /// Returns what a word says.
    pub fn parse(word: Option<&str>) -> Self {
        Self::ALL.into_iter().find(|op| Some(op.word()) == word).unwrap_or_default()
    }
}

/// The key of the samples of an instruction, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstructionKey {
    pub service: u32,
    pub event: u32,
    pub instruction: u32,
    pub group: u8,
    pub timed: bool,
}

impl InstructionKey {
    pub fn pack(self) -> u128 {
        let mut key = u128::from(self.service);
        key = key << EVENT | u128::from(self.event);
        key = key << INSTRUCTION | u128::from(self.instruction);
        key = key << 5 | u128::from(self.group);
        key << 1 | u128::from(self.timed)
    }

    pub fn of(key: u128) -> Self {
        let take = |from: u32, bits: u32| key >> from & ((1 << bits) - 1);
        Self {
            timed: take(0, 1) == 1,
            group: take(1, 5) as u8,
            instruction: take(6, INSTRUCTION) as u32,
            event: take(6 + INSTRUCTION, EVENT) as u32,
            service: take(6 + INSTRUCTION + EVENT, SERVICE) as u32,
        }
    }
}

/// The names of a function; an empty text is null.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct SymbolTexts {
    pub name: String,
    pub module: String,
    pub build_id: String,
    pub reason: String,
}

/// The names of a function, where they are read; an empty text is null.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub(crate) struct SymbolNames<'a> {
    pub name: &'a str,
    pub module: &'a str,
    pub build_id: &'a str,
    pub reason: &'a str,
}

impl SymbolTexts {
    pub fn names(&self) -> SymbolNames<'_> {
        let Self { name, module, build_id, reason } = self;
        SymbolNames { name, module, build_id, reason }
    }
}

impl SymbolNames<'_> {
    /// Returns the id of the function.
    pub fn id(self) -> u64 {
        let of = if self.build_id.is_empty() { self.module } else { self.build_id };
        let (what, name) =
            if self.name.is_empty() { ("reason", self.reason) } else { ("function", self.name) };
        crate::hash::hash63(&[of, what, name])
    }

    fn to_texts(self) -> SymbolTexts {
        let [name, module, build_id, reason] =
            [self.name, self.module, self.build_id, self.reason].map(str::to_owned);
        SymbolTexts { name, module, build_id, reason }
    }

    fn bytes(self) -> usize {
        let Self { name, module, build_id, reason } = self;
        let texts = name.len() + module.len() + build_id.len() + reason.len();
        size_of::<SymbolTexts>() + 16 + Interner::BYTES + texts
    }
}

/// What is added up so far.
#[derive(Debug)]
pub(crate) struct Fold {
    pub services: Numbered<String>,
    pub events: Numbered<EventKey>,
    pub levels: Numbered<String>,
    pub nodes: Numbered<NodeKey>,
    pub clusters: Numbered<String>,
    /// By the key that [`RowKey::pack`] makes.
    pub rows: Vec<(u128, Sums)>,
    /// Count and weight, by the key that [`LatencyKey::pack`] makes.
    pub latencies: Vec<(u128, [u64; 2])>,
    pub places: Numbered<SampledInstruction>,
    /// By the key that [`InstructionKey::pack`] makes.
    pub instructions: Vec<(u128, Sums)>,
    pub symbols: FxHashMap<u64, SymbolTexts>,
    /// The ids of the functions by the hash of their texts.
    ids: HashTable<u64>,
    /// By node and event.
    pub ledger: BTreeMap<(u32, u32), LedgerSums>,
    symbol_bytes: usize,
}

impl Default for Fold {
    fn default() -> Self {
        Self::new()
    }
}

/// Lengths of the lists of a [`Fold`], to which it can go back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mark(usize, usize, usize);

impl Fold {
    pub fn new() -> Self {
        Self {
            services: Numbered::new("services", SERVICE),
            events: Numbered::new("events", EVENT),
            levels: Numbered::new("data sources", LEVEL),
            nodes: Numbered::new("nodes", NODE),
            clusters: Numbered::new("labels", CLUSTER),
            rows: Vec::new(),
            latencies: Vec::new(),
            places: Numbered::new("instructions", INSTRUCTION),
            instructions: Vec::new(),
            symbols: FxHashMap::default(),
            ids: HashTable::new(),
            ledger: BTreeMap::new(),
            symbol_bytes: 0,
        }
    }

    /// Forgets everything. The lists keep their room, up to 128 bytes for each row of an hour,
    /// which would come from the kernel page by page again.
    pub fn empty(&mut self) {
        let Self { mut rows, mut latencies, mut instructions, .. } = std::mem::take(self);
        rows.clear();
        latencies.clear();
        instructions.clear();
        (self.rows, self.latencies, self.instructions) = (rows, latencies, instructions);
    }

    pub fn event(&mut self, key: EventKey) -> Result<u32, Full> {
        let bytes = key.event.len() + key.unit.len() + key.kind.len();
        self.events.number(key, bytes)
    }

    pub fn node(&mut self, key: NodeKey) -> Result<u32, Full> {
        let bytes = key.node.len() + key.cluster.len();
        self.nodes.number(key, bytes)
    }

    pub fn text(of: &mut Numbered<String>, text: &str) -> Result<u32, Full> {
        of.number(text.to_owned(), text.len())
    }

    /// Adds to the ledger of a node and an event.
    pub fn add_ledger(&mut self, of: (u32, u32), sums: LedgerSums) {
        match self.ledger.entry(of) {
            btree_map::Entry::Occupied(mut entry) => entry.get_mut().add(sums),
            btree_map::Entry::Vacant(entry) => drop(entry.insert(sums)),
        }
    }

    pub fn place(&mut self, of: SampledInstruction) -> Result<u32, Full> {
        self.places.number(of, 0)
    }

    /// Adds a function, and returns its id.
    pub fn symbol(&mut self, names: SymbolNames<'_>) -> u64 {
        // The id takes longer than all else about a row: it is a cryptographic hash, so that nobody
        // can choose the names of a function that has the id of another one.
        let hash = |names: SymbolNames<'_>| FxBuildHasher.hash_one(names);
        let same = |id: &u64| self.symbols.get(id).is_some_and(|known| known.names() == names);
        if let Some(id) = self.ids.find(hash(names), same) {
            return *id;
        }
        let id = names.id();
        match self.symbols.entry(id) {
            hash_map::Entry::Vacant(entry) => {
                self.symbol_bytes += names.bytes();
                entry.insert(names.to_texts());
            }
            // A file may have several paths. The first one in order stays, in whatever order they
            // are met.
            hash_map::Entry::Occupied(mut entry) if names < entry.get().names() => {
                entry.insert(names.to_texts());
            }
            hash_map::Entry::Occupied(_) => return id,
        }
        let again = |id: &u64| self.symbols.get(id).map_or(0, |known| hash(known.names()));
        self.ids.insert_unique(hash(names), id, again);
        id
    }

    /// Returns about how many bytes all of this takes while it is added up. The room that lists
    /// have to grow is not memory until it is written.
    pub fn bytes(&self) -> u64 {
        let texts = [&self.services, &self.levels, &self.clusters].map(|texts| texts.bytes);
        let texts = texts.into_iter().sum::<usize>()
            + self.nodes.bytes
            + self.events.bytes
            + self.places.bytes
            + self.symbol_bytes
            + self.ledger.len() * size_of::<LedgerSums>();
        let [rows, latencies, instructions] =
            [self.rows.len(), self.latencies.len(), self.instructions.len()];
        // One list at a time is added up.
        let beside = rows.max(latencies).max(instructions) * BESIDE;
        let lists =
            (rows + instructions) * size_of::<(u128, Sums)>() + latencies * size_of::<(u128, [u64; 2])>();
        (lists + beside + texts) as u64
    }

    /// Returns whether this must be written: it takes more than `memory` bytes, also after adding
    /// up, or keys have no room for more texts.
    pub fn is_full(&mut self, memory: u64) -> bool {
        if self.bytes() <= memory {
            return self.is_crowded();
        }
        self.add_up();
        // With less room, rows would be added up again all the time.
        self.is_crowded() || self.bytes() > memory / 2
    }

    pub fn mark(&self) -> Mark {
        Mark(self.rows.len(), self.latencies.len(), self.instructions.len())
    }

    /// Forgets the rows since a mark, if [`Self::add_up`] was not called since.
    pub fn forget(&mut self, mark: Mark) {
        self.rows.truncate(mark.0);
        self.latencies.truncate(mark.1);
        self.instructions.truncate(mark.2);
    }

    /// Returns whether one of the numbers is half used up: the next capture may have as many texts.
    fn is_crowded(&self) -> bool {
        let half = |items: usize, most: usize| items >= most / 2;
        half(self.nodes.items.len(), self.nodes.most)
            || half(self.events.items.len(), self.events.most)
            || half(self.places.items.len(), self.places.most)
            || [&self.services, &self.levels, &self.clusters].iter().any(|of| half(of.items.len(), of.most))
    }

    /// Numbers all texts by their order, so that the order of keys is that of texts. Nothing can be
    /// added afterwards.
    pub fn rank(&mut self) {
        let (services, service) = self.services.sorted();
        let (events, event) = self.events.sorted();
        let (levels, level) = self.levels.sorted();
        let (nodes, node) = self.nodes.sorted();
        let (clusters, cluster) = self.clusters.sorted();
        let (places, number) = self.places.sorted();
        let place = |places: &[u32], number: u32| places.get(number as usize).copied().unwrap_or(0);
        for (key, _) in &mut self.rows {
            let RowKey { service: s, event: e, function, level: l, node: n, timed } = RowKey::of(*key);
            let (service, event) = (place(&service, s), place(&event, e));
            let (level, node) = (place(&level, l), place(&node, n));
            *key = RowKey { service, event, function, level, node, timed }.pack();
        }
        for (key, _) in &mut self.latencies {
            let of = LatencyKey::of(*key);
            let (service, event) = (place(&service, of.service), place(&event, of.event));
            let (level, cluster) = (place(&level, of.level), place(&cluster, of.cluster));
            *key = LatencyKey { service, event, level, cluster, ..of }.pack();
        }
        for (key, _) in &mut self.instructions {
            let of = InstructionKey::of(*key);
            let (service, event) = (place(&service, of.service), place(&event, of.event));
            let instruction = place(&number, of.instruction);
            *key = InstructionKey { service, event, instruction, ..of }.pack();
        }
        let ledger = std::mem::take(&mut self.ledger).into_iter();
        self.ledger = ledger.map(|((n, e), sums)| ((place(&node, n), place(&event, e)), sums)).collect();
        (self.services.items, self.events.items, self.levels.items) = (services, events, levels);
        (self.nodes.items, self.clusters.items, self.places.items) = (nodes, clusters, places);
    }

    /// Adds up the rows of equal keys.
    pub fn add_up(&mut self) {
        let (service, event) = (self.services.bits(), self.events.bits());
        let (level, node) = (self.levels.bits(), self.nodes.bits());
        let (cluster, place) = (self.clusters.bits(), self.places.bits());

        let functions = Ranks::of(self.rows.iter().map(|(key, _)| RowKey::of(*key).function));
        let function = functions.bits();
        sum_up(&mut self.rows, service + event + function + level + node + 1, |at, key| {
            let of = RowKey::of(key);
            joined([
                (of.service.into(), service),
                (of.event.into(), event),
                (functions.rank(at), function),
                (of.level.into(), level),
                (of.node.into(), node),
                (of.timed.into(), 1),
            ])
        });
        let functions = Ranks::of(self.latencies.iter().map(|(key, _)| LatencyKey::of(*key).function));
        let function = functions.bits();
        sum_up(&mut self.latencies, service + event + function + level + cluster + 13, |at, key| {
            let of = LatencyKey::of(key);
            joined([
                (of.service.into(), service),
                (of.event.into(), event),
                (functions.rank(at), function),
                (of.level.into(), level),
                (of.cluster.into(), cluster),
                (of.group.into(), 5),
                (of.bucket.into(), 8),
            ])
        });
        sum_up(&mut self.instructions, service + event + place + 6, |_, key| {
            let of = InstructionKey::of(key);
            joined([
                (of.service.into(), service),
                (of.event.into(), event),
                (of.instruction.into(), place),
                (of.group.into(), 5),
                (of.timed.into(), 1),
            ])
        });
    }
}

/// Returns the number of a key, which is found once.
pub(crate) fn once<K: Eq + Hash, V: Copy, E>(
    known: &mut FxHashMap<K, V>,
    key: K,
    find: impl FnOnce() -> Result<V, E>,
) -> Result<V, E> {
    Ok(match known.entry(key) {
        hash_map::Entry::Occupied(entry) => *entry.get(),
        hash_map::Entry::Vacant(entry) => *entry.insert(find()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_packed_and_unpacked() {
        for bits in [0, 1, 0x5555_5555_5555_5555_u64, u64::MAX] {
            let part = |width: u32| (bits & ((1 << width) - 1)) as u32;
            let (service, event, level) = (part(19), part(12), part(9));
            let function = bits >> 1;
            let (node, timed) = (part(24), bits & 1 == 1);
            let row = RowKey { service, event, function, level, node, timed };
            assert_eq!(RowKey::of(row.pack()), row);
            let (cluster, group, bucket) = (part(12), part(5) as u8, part(8) as u8);
            let latency = LatencyKey { service, event, function, level, cluster, group, bucket };
            assert_eq!(LatencyKey::of(latency.pack()), latency);
            let (instruction, timed) = (part(28), bits & 1 == 1);
            let instruction = InstructionKey { service, event, instruction, group: part(5) as u8, timed };
            assert_eq!(InstructionKey::of(instruction.pack()), instruction);
        }
    }

    #[test]
    fn too_many_of_a_kind_are_an_error() {
        let mut levels = Numbered::new("data sources", 3);
        for n in 0..8 {
            assert_eq!(levels.number(n.to_string(), 1).unwrap(), n);
        }
        assert!(levels.number("7".to_owned(), 1).is_ok());
        assert_eq!(levels.number("8".to_owned(), 1).unwrap_err().0, "data sources");
        let (sorted, places) = Numbered { items: vec!["b", "a"], ..Numbered::new("", 3) }.sorted();
        assert_eq!((sorted, places), (vec!["a", "b"], vec![1, 0]));
    }
}
