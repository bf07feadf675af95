//! Rows that are added up in memory: keys as numbers, and the texts behind them.

use std::collections::{BTreeMap, btree_map, hash_map};
use std::hash::Hash;

use precise_model::Interner;
use rustc_hash::FxHashMap;

use crate::add_up::{BESIDE, KeyPart, Sums, sum_up};
use crate::functions::{NumberedFunctions, SymbolNames};
use crate::keys::{
    BUCKET, CLUSTER, EVENT, FUNCTION, GROUP, INSTRUCTION, InstructionKey, LEVEL, LatencyKey, NODE, RowKey,
    SERVICE, SampledInstruction, TIMED,
};
use crate::ledger::LedgerSums;

/// The most functions.
const MOST_FUNCTIONS: usize = 1 << FUNCTION;

/// There are more services, events, functions, levels, nodes, clusters or instructions than keys
/// have room for.
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
    pub functions: NumberedFunctions,
    /// By node and event.
    pub ledger: BTreeMap<(u32, u32), LedgerSums>,
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
            functions: NumberedFunctions::default(),
            ledger: BTreeMap::new(),
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

    /// Adds a function, and returns its number.
    pub fn symbol(&mut self, names: SymbolNames<'_>) -> Result<u32, Full> {
        let number = self.functions.of_names(names);
        self.numbered(number)
    }

    /// Adds a function that is known by its id alone, and returns its number.
    pub fn function(&mut self, id: u64) -> Result<u32, Full> {
        let number = self.functions.of_id(id);
        self.numbered(number)
    }

    fn numbered(&self, function: u32) -> Result<u32, Full> {
        if self.functions.len() > MOST_FUNCTIONS { Err(Full("functions")) } else { Ok(function) }
    }

    /// Returns about how many bytes all of this takes while it is added up. The room that lists
    /// have to grow is not memory until it is written.
    pub fn bytes(&self) -> u64 {
        let texts = [&self.services, &self.levels, &self.clusters].map(|texts| texts.bytes);
        let texts = texts.into_iter().sum::<usize>()
            + self.nodes.bytes
            + self.events.bytes
            + self.places.bytes
            + self.functions.bytes
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
            || half(self.functions.len(), MOST_FUNCTIONS)
            || [&self.services, &self.levels, &self.clusters].iter().any(|of| half(of.items.len(), of.most))
    }

    /// Adds up the rows of equal keys.
    pub fn add_up(&mut self) {
        self.sum_up(None);
    }

    /// Adds up the rows of equal keys, and numbers all texts by their order, so that the order of
    /// keys is that of texts. Nothing can be added afterwards.
    pub fn finish(&mut self) {
        let (services, service) = self.services.sorted();
        let (events, event) = self.events.sorted();
        let (levels, level) = self.levels.sorted();
        let (nodes, node) = self.nodes.sorted();
        let (clusters, cluster) = self.clusters.sorted();
        let (places, place) = self.places.sorted();
        let function = self.functions.sort();
        let numbers = NewNumbers { service, event, function, level, node, cluster, place };
        self.sum_up(Some(&numbers));
        let new = |places: &[u32], number: u32| places.get(number as usize).copied().unwrap_or(0);
        let ledger = std::mem::take(&mut self.ledger).into_iter();
        let ledger = ledger.map(|((n, e), sums)| ((new(&numbers.node, n), new(&numbers.event, e)), sums));
        self.ledger = ledger.collect();
        (self.services.items, self.events.items, self.levels.items) = (services, events, levels);
        (self.nodes.items, self.clusters.items, self.places.items) = (nodes, clusters, places);
    }

    /// Adds up the rows of equal keys, in whose parts numbers get new ones.
    fn sum_up(&mut self, new: Option<&NewNumbers>) {
        let service = KeyPart::of(self.services.items.len(), new.map(|new| &new.service));
        let event = KeyPart::of(self.events.items.len(), new.map(|new| &new.event));
        let function = KeyPart::of(self.functions.len(), new.map(|new| &new.function));
        let level = KeyPart::of(self.levels.items.len(), new.map(|new| &new.level));
        let node = KeyPart::of(self.nodes.items.len(), new.map(|new| &new.node));
        let cluster = KeyPart::of(self.clusters.items.len(), new.map(|new| &new.cluster));
        let place = KeyPart::of(self.places.items.len(), new.map(|new| &new.place));
        let [group, bucket, timed] = [GROUP, BUCKET, TIMED].map(KeyPart::plain);
        sum_up::<6, RowKey, _>(&mut self.rows, [service, event, function, level, node, timed]);
        let parts = [service, event, function, level, cluster, group, bucket];
        sum_up::<7, LatencyKey, _>(&mut self.latencies, parts);
        sum_up::<5, InstructionKey, _>(&mut self.instructions, [service, event, place, group, timed]);
    }
}

/// The new number of each text, by its old one.
struct NewNumbers {
    service: Vec<u32>,
    event: Vec<u32>,
    function: Vec<u32>,
    level: Vec<u32>,
    node: Vec<u32>,
    cluster: Vec<u32>,
    place: Vec<u32>,
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
