//! Texts that rows have, by number.

use std::convert::Infallible;

use precise_capture::FlatValues;
use precise_model::CompactSort as _;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::fold::NodeKey;

/// Texts by number; 0 is null.
#[derive(Default)]
pub(crate) struct Texts {
    numbers: FxHashMap<String, u32>,
    items: Vec<String>,
}

impl Texts {
    pub fn number(&mut self, text: Option<&str>) -> u32 {
        let Some(text) = text else { return 0 };
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        self.items.push(text.to_owned());
        let number = self.items.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        number
    }

    pub fn text(&self, number: u32) -> Option<&String> {
        self.items.get((number as usize).checked_sub(1)?)
    }
}

/// What is known of the texts of a column by their places in a row group, looked up when they are
/// met.
#[derive(Default)]
pub(crate) struct Met<T>(Vec<Option<T>>);

impl<T: Clone> Met<T> {
    /// Returns the place of a row's text; that of null is the first one.
    fn place(&mut self, of: &FlatValues, row: usize) -> Option<&mut Option<T>> {
        let place = of.number(row).map_or(0, |key| key as usize + 1);
        if place >= self.0.len() {
            self.0.resize((of.texts().len() + 1).max(place + 1), None);
        }
        self.0.get_mut(place)
    }
}

impl<T: Copy> Met<T> {
    /// Returns what is found of a row's text.
    pub fn number(&mut self, of: &FlatValues, row: usize, find: impl FnOnce(Option<&str>) -> T) -> T {
        let Ok(found) = self.found(of, row, |text| Ok::<_, Infallible>(find(text)));
        found
    }

    /// Returns what is found of a row's text, or why it is not found.
    pub fn found<E>(
        &mut self,
        of: &FlatValues,
        row: usize,
        find: impl FnOnce(Option<&str>) -> Result<T, E>,
    ) -> Result<T, E> {
        match self.place(of, row) {
            Some(Some(known)) => Ok(*known),
            Some(met) => Ok(*met.insert(find(of.text(row))?)),
            None => find(of.text(row)),
        }
    }
}

impl<K: Clone + PartialEq, V: Copy> Met<(K, V)> {
    /// Returns what is found of a row's text together with what else it depends on, or why it is
    /// not found. Of each text, only what was found last is known: most others follow from it.
    pub fn with<E>(
        &mut self,
        of: &FlatValues,
        row: usize,
        also: K,
        find: impl FnOnce() -> Result<V, E>,
    ) -> Result<V, E> {
        match self.place(of, row) {
            Some(Some((known, value))) if *known == also => Ok(*value),
            Some(met) => Ok(met.insert((also, find()?)).1),
            None => find(),
        }
    }
}

/// The number of a node, with the place of its cluster: the nodes of one name are seldom those of
/// two clusters.
pub(crate) type InCluster = (Option<u64>, u32);

impl Met<InCluster> {
    /// Returns the number of a row's node.
    pub fn node(&mut self, nodes: &mut MetNodes, of: [&FlatValues; 2], row: usize) -> u32 {
        let find = |cluster: &str, node: &str| Ok::<_, Infallible>(nodes.number(cluster, node));
        let Ok(number) = self.in_cluster(of, row, find);
        number
    }

    /// Returns the number that is found for a row's cluster and node.
    pub fn in_cluster<E>(
        &mut self,
        [cluster, node]: [&FlatValues; 2],
        row: usize,
        find: impl FnOnce(&str, &str) -> Result<u32, E>,
    ) -> Result<u32, E> {
        self.with(node, row, cluster.number(row), || {
            find(cluster.text(row).unwrap_or_default(), node.text(row).unwrap_or_default())
        })
    }
}

/// The nodes that were met, by number.
#[derive(Debug, Default)]
pub(crate) struct MetNodes {
    numbers: FxHashMap<String, FxHashMap<String, u32>>,
    pub items: Vec<NodeKey>,
    /// The place of the node that is likely to be met next.
    next: usize,
}

impl MetNodes {
    pub fn number(&mut self, cluster: &str, node: &str) -> u32 {
        // Each part has its nodes in the same order, so a node is met after the one before it.
        let next = if self.next < self.items.len() { self.next } else { 0 };
        if self.items.get(next).is_some_and(|known| known.node == node && known.cluster == cluster) {
            self.next = next + 1;
            return next as u32;
        }
        if let Some(number) = self.numbers.get(node).and_then(|of| of.get(cluster)) {
            self.next = *number as usize + 1;
            return *number;
        }
        let number = self.items.len() as u32;
        self.next = self.items.len() + 1;
        self.numbers.entry(node.to_owned()).or_default().insert(cluster.to_owned(), number);
        self.items.push(NodeKey { node: node.to_owned(), cluster: cluster.to_owned() });
        number
    }

    /// Returns the first nodes as texts, by name.
    pub fn shown(&self, numbers: &FxHashSet<u32>, most: usize) -> Vec<(String, u32)> {
        let mut keys: Vec<_> =
            numbers.iter().filter_map(|number| Some((self.items.get(*number as usize)?, *number))).collect();
        keys.compact_sort();
        let show = |(NodeKey { node, cluster }, number): (&NodeKey, u32)| {
            let text = if cluster.is_empty() { node.clone() } else { format!("{cluster}/{node}") };
            (text, number)
        };
        keys.into_iter().take(most).map(show).collect()
    }
}
