//! Rows of tables added up by group, in bounded memory.

use std::sync::Arc;

use precise_capture::{FlatColumn, FlatValues};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bucket::{FleetBucket, FleetError};
use crate::census::MetNodes;
use crate::fold::{EventKey, cycles};
use crate::hour::FleetHour;
use crate::names::{FunctionName, names};
use crate::part::{FleetBatch, FleetPick, read_part};
use crate::question::{FleetKey, FleetQuestion};
use crate::sources::SpanSources;
use crate::spread::Spread;
use crate::tables::{self, FleetTable};

/// What the rows of a group add up to.
pub(crate) trait Gathered: Default {
    /// The table that the rows are of.
    const TABLE: FleetTable;
    /// The columns that [`Self::add`] reads, from [`FIRST`] on.
    const COLUMNS: &'static [FlatColumn];
    /// Adds a row, of which each sample stands for `scale`.
    fn add(&mut self, row: GatheredRow);
    fn merge(&mut self, other: Self);
    fn weight(&self) -> u64;
    /// About how many bytes it takes.
    fn bytes(&self) -> usize;
}

/// The place of the first column of [`Gathered::COLUMNS`].
const FIRST: usize = 6;

/// A row of a part.
#[derive(Clone, Copy)]
pub(crate) struct GatheredRow {
    pub scale: u64,
    pub group: u32,
    pub count: u64,
    pub weight: u64,
    /// The values of [`Gathered::COLUMNS`].
    pub own: [Option<u64>; 2],
}

/// The group of a row, in numbers; what groups are not made by is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct GroupNumbers {
    function: u64,
    service: u32,
    level: u32,
    place: u32,
    hour: u32,
}

/// What was gathered of the rows that may be added up.
pub(crate) struct GatheredSection<S> {
    pub key: EventKey,
    groups: FxHashMap<GroupNumbers, u32>,
    sums: Vec<(GroupNumbers, S)>,
    /// What was left out, since memory is bounded.
    cut: S,
    pub cut_groups: u64,
    /// At most this much may be missing from any group that is left.
    pub cut_weight: u64,
    nodes: FxHashSet<u32>,
}

/// The rows of a question, added up.
pub(crate) struct Gather<S> {
    by: Vec<FleetKey>,
    memory: usize,
    held: usize,
    first: FleetHour,
    services: Texts,
    levels: Texts,
    nodes: MetNodes,
    pub sections: Vec<GatheredSection<S>>,
    /// The number of rows.
    pub rows: u64,
    /// The number of parts that were read, and their size.
    pub parts: u64,
    pub bytes: u64,
}

/// Texts by number; 0 is null.
#[derive(Default)]
struct Texts {
    numbers: FxHashMap<String, u32>,
    items: Vec<String>,
}

impl Texts {
    fn number(&mut self, text: Option<&str>) -> u32 {
        let Some(text) = text else { return 0 };
        if let Some(number) = self.numbers.get(text) {
            return *number;
        }
        self.items.push(text.to_owned());
        let number = self.items.len() as u32;
        self.numbers.insert(text.to_owned(), number);
        number
    }

    fn text(&self, number: u32) -> Option<&String> {
        self.items.get((number as usize).checked_sub(1)?)
    }
}

/// What is known of the texts of a column by their places in a row group, looked up when they are
/// met.
#[derive(Default)]
struct Met<T>(Vec<Option<T>>);

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

impl Met<u32> {
    /// Returns the number of a row's text.
    fn number(&mut self, of: &FlatValues, row: usize, find: impl FnOnce(Option<&str>) -> u32) -> u32 {
        match self.place(of, row) {
            Some(number) => *number.get_or_insert_with(|| find(of.text(row))),
            None => find(of.text(row)),
        }
    }
}

/// The number of a node, with the place of its cluster: the nodes of one name are seldom those of
/// two clusters.
type InCluster = (Option<u64>, u32);

impl Met<InCluster> {
    /// Returns the number of a row's node.
    fn node(&mut self, nodes: &mut MetNodes, [cluster, node]: [&FlatValues; 2], row: usize) -> u32 {
        let text = |of: &FlatValues| of.text(row).unwrap_or_default().to_owned();
        let mut find = || nodes.number(&text(cluster), &text(node));
        let of = cluster.number(row);
        match self.place(node, row) {
            Some(Some((known, number))) if *known == of => *number,
            Some(met) => met.insert((of, find())).1,
            None => find(),
        }
    }
}

/// The texts of a row group that were met.
#[derive(Default)]
struct MetTexts {
    services: Met<u32>,
    levels: Met<u32>,
    clusters: Met<u32>,
    nodes: Met<InCluster>,
}

/// The places of the columns of keys in a batch.
#[derive(Clone, Copy)]
struct Places {
    function: Option<usize>,
    service: Option<usize>,
    level: Option<usize>,
    cluster: Option<usize>,
    node: Option<usize>,
}

impl<S: Gathered> Gather<S> {
    /// Adds up the rows of a question, of a tier.
    pub fn read(
        bucket: &Arc<dyn FleetBucket>,
        sources: &SpanSources,
        question: &FleetQuestion,
        tier: u8,
    ) -> Result<Self, FleetError> {
        let mut gather = Self {
            by: question.by.clone(),
            memory: usize::try_from(question.memory).unwrap_or(usize::MAX),
            held: 0,
            first: sources.span.first,
            services: Texts::default(),
            levels: Texts::default(),
            nodes: MetNodes::default(),
            sections: Vec::new(),
            rows: 0,
            parts: 0,
            bytes: 0,
        };
        let mut columns = vec![
            tables::EVENT,
            tables::UNIT,
            tables::KIND,
            tables::NODE_GROUP,
            tables::COUNT,
            tables::WEIGHT,
        ];
        columns.extend(S::COLUMNS);
        let mut place = |wanted: bool, column: FlatColumn| {
            wanted.then(|| {
                columns.push(column);
                columns.len() - 1
            })
        };
        // Nodes are counted if a service is asked for: the tables of latencies have none.
        let nodes =
            S::TABLE == FleetTable::Hour && (question.has(FleetKey::Node) || question.service.is_some());
        let function = question.has(FleetKey::Function) || question.has(FleetKey::Module);
        let places = Places {
            function: place(function, tables::FUNCTION),
            service: place(question.has(FleetKey::Service), tables::SERVICE),
            level: place(question.has(FleetKey::Level), tables::LEVEL),
            cluster: place(question.has(FleetKey::Cluster) || nodes, tables::CLUSTER),
            node: place(nodes, tables::NODE),
        };
        let pick = FleetPick { service: question.service.clone(), event: question.event.clone() };
        for source in sources.parts(S::TABLE, tier, question.has(FleetKey::Hour)) {
            let (before, mut met) = (gather.rows, MetTexts::default());
            read_part(bucket, source.part, &pick, &columns, |batch| {
                if batch.is_first() {
                    met = MetTexts::default();
                }
                gather.batch(batch, places, &mut met, (source.hour, source.scale));
            })?;
            if gather.rows > before {
                gather.parts += 1;
                gather.bytes += source.part.bytes;
            }
        }
        gather.sections.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(gather)
    }

    fn batch(
        &mut self,
        batch: &FleetBatch<'_>,
        places: Places,
        met: &mut MetTexts,
        (hour, scale): (FleetHour, u64),
    ) {
        let column = |at: Option<usize>| at.and_then(|at| batch.column(at));
        let (function, service) = (column(places.function), column(places.service));
        let (level, cluster, node) = (column(places.level), column(places.cluster), column(places.node));
        let by_place = self.by.contains(&FleetKey::Node) || self.by.contains(&FleetKey::Cluster);
        let hour = if self.by.contains(&FleetKey::Hour) { hour.0.saturating_sub(self.first.0) } else { 0 };
        let [event, unit, kind, group, count, weight] = [0, 1, 2, 3, 4, 5].map(|at| batch.column(at));
        let own = [0, 1].map(|at| S::COLUMNS.get(at).and_then(|_| batch.column(FIRST + at)));
        let mut last_event = None;
        let mut last_group = None;
        for row in batch.rows() {
            let number = |of: Option<&FlatValues>| of.and_then(|of| of.number(row));
            let keys = [event, unit, kind].map(number);
            let section = match last_event {
                Some((of, section)) if of == keys => section,
                _ => {
                    last_group = None;
                    self.section(batch, row)
                }
            };
            last_event = Some((keys, section));
            let mut numbers = GroupNumbers { hour, ..GroupNumbers::default() };
            numbers.function = number(function).unwrap_or(0);
            if let Some(service) = service {
                numbers.service = met.services.number(service, row, |text| self.services.number(text));
            }
            if let Some(level) = level {
                numbers.level = met.levels.number(level, row, |text| self.levels.number(text));
            }
            let nodes = &mut self.nodes;
            let place = match (cluster, node) {
                (Some(cluster), Some(node)) => Some(met.nodes.node(nodes, [cluster, node], row)),
                (Some(cluster), None) => {
                    let find = |text: Option<&str>| nodes.number(text.unwrap_or_default(), "");
                    Some(met.clusters.number(cluster, row, find))
                }
                (None, _) => None,
            };
            if by_place {
                numbers.place = place.unwrap_or(0);
            }
            let row = GatheredRow {
                scale,
                group: number(group).unwrap_or(0) as u32,
                count: number(count).unwrap_or(0),
                weight: number(weight).unwrap_or(0),
                own: own.map(number),
            };
            self.rows += 1;
            let Some(of) = self.sections.get_mut(section) else { continue };
            if let Some(place) = place.filter(|_| node.is_some()) {
                of.nodes.insert(place);
            }
            let at = match last_group {
                Some((group, at)) if group == numbers => at,
                _ => *of.groups.entry(numbers).or_insert_with(|| {
                    of.sums.push((numbers, S::default()));
                    of.sums.len() as u32 - 1
                }),
            };
            last_group = Some((numbers, at));
            let Some((_, sums)) = of.sums.get_mut(at as usize) else { continue };
            let before = sums.bytes();
            sums.add(row);
            self.held = self.held.saturating_add(sums.bytes().saturating_sub(before));
        }
        self.bound();
    }

    /// Returns the number of nodes with rows; `None` if the table has no nodes.
    pub fn nodes(&self) -> Option<u64> {
        let all: FxHashSet<u32> = self.sections.iter().flat_map(|section| &section.nodes).copied().collect();
        (S::TABLE == FleetTable::Hour).then_some(all.len() as u64)
    }

    fn section(&mut self, batch: &FleetBatch<'_>, row: usize) -> usize {
        let [event, unit, kind] = [0, 1, 2].map(|at| batch.text(at, row).unwrap_or_default().to_owned());
        let key = EventKey { event, unit, kind };
        self.sections.iter().position(|section| section.key == key).unwrap_or_else(|| {
            self.sections.push(GatheredSection {
                key,
                groups: FxHashMap::default(),
                sums: Vec::new(),
                cut: S::default(),
                cut_groups: 0,
                cut_weight: 0,
                nodes: FxHashSet::default(),
            });
            self.sections.len() - 1
        })
    }

    /// Leaves out the smaller half of the groups if all take too much memory.
    fn bound(&mut self) {
        let each = size_of::<(GroupNumbers, S)>() + size_of::<(GroupNumbers, u32)>() * 2;
        let groups = self.sections.iter().map(|section| section.sums.len()).sum::<usize>();
        if groups * each + self.held <= self.memory {
            return;
        }
        self.held = 0;
        for section in &mut self.sections {
            let mut weights: Vec<u64> = section.sums.iter().map(|(_, sums)| sums.weight()).collect();
            let middle = weights.len() / 2;
            let least = match weights.len() {
                0 => continue,
                _ => *weights.select_nth_unstable(middle).1,
            };
            section.groups.clear();
            let mut most = 0;
            for (numbers, sums) in std::mem::take(&mut section.sums) {
                if sums.weight() > least {
                    section.groups.insert(numbers, section.sums.len() as u32);
                    self.held += sums.bytes();
                    section.sums.push((numbers, sums));
                } else {
                    most = most.max(sums.weight());
                    section.cut_groups += 1;
                    section.cut.merge(sums);
                }
            }
            section.cut_weight = section.cut_weight.saturating_add(most);
        }
    }

    /// Returns for each event the sums of all rows, and the groups by their names.
    pub fn named(
        self,
        bucket: &Arc<dyn FleetBucket>,
        sources: &SpanSources,
    ) -> Result<Vec<NamedSection<S>>, FleetError> {
        let mut functions = FxHashMap::default();
        if self.by.contains(&FleetKey::Function) || self.by.contains(&FleetKey::Module) {
            let all = self.sections.iter().flat_map(|section| &section.sums);
            let wanted: FxHashSet<u64> = all.map(|(numbers, _)| numbers.function).collect();
            functions = names(bucket, &sources.symbols(), &wanted)?;
        }
        let Self { by, first, services, levels, nodes, sections, .. } = self;
        let unknown = FunctionName { name: "[not in the symbols]".to_owned(), module: None };
        let values = |numbers: &GroupNumbers| -> Vec<Option<String>> {
            let function = functions.get(&numbers.function).unwrap_or(&unknown);
            let place = nodes.items.get(numbers.place as usize);
            let some = |text: &String| Some(text.clone()).filter(|text| !text.is_empty());
            let value = |key: &FleetKey| match key {
                FleetKey::Service => services.text(numbers.service).cloned(),
                FleetKey::Function => Some(function.name.clone()),
                FleetKey::Module => function.module.clone(),
                FleetKey::Level => levels.text(numbers.level).cloned(),
                FleetKey::Node => place.and_then(|key| some(&key.node)),
                FleetKey::Cluster => place.and_then(|key| some(&key.cluster)),
                FleetKey::Hour => Some(FleetHour(first.0 + numbers.hour).to_string()),
            };
            by.iter().map(value).collect()
        };
        let mut named = Vec::new();
        for section in sections {
            let mut places: FxHashMap<Vec<Option<String>>, usize> = FxHashMap::default();
            let mut groups: Vec<(Vec<Option<String>>, S)> = Vec::new();
            for (numbers, sums) in section.sums {
                let values = values(&numbers);
                match places.get(&values).and_then(|at| groups.get_mut(*at)) {
                    Some((_, total)) => total.merge(sums),
                    None => {
                        places.insert(values.clone(), groups.len());
                        groups.push((values, sums));
                    }
                }
            }
            groups.sort_by(|(a, x), (b, y)| y.weight().cmp(&x.weight()).then_with(|| a.cmp(b)));
            named.push(NamedSection {
                key: section.key,
                groups,
                cut: section.cut,
                cut_groups: section.cut_groups,
                cut_weight: section.cut_weight,
                nodes: section.nodes.len() as u64,
            });
        }
        Ok(named)
    }
}

/// The groups of rows that may be added up.
pub(crate) struct NamedSection<S> {
    pub key: EventKey,
    /// The groups by the values of their keys, those with the most weight first.
    pub groups: Vec<(Vec<Option<String>>, S)>,
    /// What was left out, since memory is bounded.
    pub cut: S,
    pub cut_groups: u64,
    pub cut_weight: u64,
    /// The nodes with rows, if nodes were read.
    pub nodes: u64,
}

/// The sums of rows of samples.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct SampleSums {
    /// The samples that were read.
    pub kept: u64,
    /// The samples that these stand for.
    pub samples: u64,
    pub spread: Spread,
    /// The samples that have a latency, of those that were read, and the sum of their latencies.
    pub timed: u64,
    pub latency: u64,
    pub latency_max: u32,
}

impl SampleSums {
    /// Returns the mean latency; `None` if no sample has one.
    pub fn average(&self) -> Option<f64> {
        (self.timed > 0).then(|| self.latency as f64 / self.timed as f64)
    }
}

impl Gathered for SampleSums {
    const TABLE: FleetTable = FleetTable::Hour;
    const COLUMNS: &'static [FlatColumn] = &[tables::LATENCY_SUM, tables::LATENCY_MAX];

    fn add(&mut self, row: GatheredRow) {
        self.kept = self.kept.saturating_add(row.count);
        self.samples = self.samples.saturating_add(row.count.saturating_mul(row.scale));
        self.spread.add(row.group, row.count, row.weight);
        let [latency, most] = row.own;
        if let Some(latency) = latency {
            self.timed = self.timed.saturating_add(row.count);
            self.latency = self.latency.saturating_add(latency);
            self.latency_max = self.latency_max.max(cycles(most));
        }
    }

    fn merge(&mut self, other: Self) {
        self.kept = self.kept.saturating_add(other.kept);
        self.samples = self.samples.saturating_add(other.samples);
        self.spread.merge(&other.spread);
        self.timed = self.timed.saturating_add(other.timed);
        self.latency = self.latency.saturating_add(other.latency);
        self.latency_max = self.latency_max.max(other.latency_max);
    }

    fn weight(&self) -> u64 {
        self.spread.sum()
    }

    fn bytes(&self) -> usize {
        0
    }
}

/// The sums of rows of latencies.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct LatencySums {
    pub samples: u64,
    pub whole: Spread,
    /// By the number of the bucket, in order.
    pub buckets: Vec<(u8, Spread)>,
}

impl LatencySums {
    fn bucket(&mut self, bucket: u8) -> Option<&mut Spread> {
        let at = match self.buckets.binary_search_by_key(&bucket, |(bucket, _)| *bucket) {
            Ok(at) => at,
            Err(at) => {
                self.buckets.insert(at, (bucket, Spread::default()));
                at
            }
        };
        self.buckets.get_mut(at).map(|(_, spread)| spread)
    }
}

impl Gathered for LatencySums {
    const TABLE: FleetTable = FleetTable::Latency;
    const COLUMNS: &'static [FlatColumn] = &[tables::BUCKET];

    fn add(&mut self, row: GatheredRow) {
        let bucket = row.own[0].filter(|bucket| *bucket < precise_common::latency::BUCKETS.into());
        let Some(bucket) = bucket.and_then(|bucket| u8::try_from(bucket).ok()) else { return };
        self.samples = self.samples.saturating_add(row.count);
        self.whole.add(row.group, row.count, row.weight);
        if let Some(spread) = self.bucket(bucket) {
            spread.add(row.group, row.count, row.weight);
        }
    }

    fn merge(&mut self, other: Self) {
        self.samples = self.samples.saturating_add(other.samples);
        self.whole.merge(&other.whole);
        for (bucket, spread) in other.buckets {
            if let Some(total) = self.bucket(bucket) {
                total.merge(&spread);
            }
        }
    }

    fn weight(&self) -> u64 {
        self.whole.sum()
    }

    fn bytes(&self) -> usize {
        self.buckets.capacity() * size_of::<(u8, Spread)>()
    }
}
