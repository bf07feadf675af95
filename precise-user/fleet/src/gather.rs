//! Rows of tables added up by group, in bounded memory.

use std::sync::Arc;

use precise_capture::{FlatColumn, FlatValues};
use precise_model::Interner;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::bucket::{FleetBucket, FleetError};
use crate::fold::EventKey;
use crate::hour::FleetHour;
use crate::keys::{InstructionOp, SampledInstruction};
use crate::manifest::ManifestPart;
use crate::met::{InCluster, Met, MetNodes, Texts};
use crate::names::{FunctionName, names};
use crate::part::{FleetBatch, FleetPick, read_part};
use crate::question::{AskError, FleetKey, FleetQuestion};
use crate::sources::{PartChoice, SpanSources};
use crate::sums::{Gathered, GatheredRow};
use crate::tables::{self, FleetTable};
use crate::typed::{FleetTypes, InstructionTypes, TypeTexts};

/// The place of the first column of [`Gathered::COLUMNS`].
const FIRST: usize = 6;

/// The group of a row, in numbers; what groups are not made by is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
struct GroupNumbers {
    function: u64,
    service: u32,
    level: u32,
    place: u32,
    /// The number of the instruction, if types are asked for.
    instruction: u32,
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
    instructions: Vec<SampledInstruction>,
    numbers: Interner,
    /// Whether the rows have nodes.
    has_nodes: bool,
    pub sections: Vec<GatheredSection<S>>,
    /// The number of rows.
    pub rows: u64,
    /// The number of parts that were read, and their size.
    pub parts: u64,
    pub bytes: u64,
}

/// The texts of a row group that were met.
#[derive(Default)]
struct MetTexts {
    services: Met<u32>,
    levels: Met<u32>,
    clusters: Met<u32>,
    nodes: Met<InCluster>,
    ops: Met<InstructionOp>,
}

/// The places of the columns of keys in a batch.
#[derive(Clone, Copy)]
struct Places {
    function: Option<usize>,
    service: Option<usize>,
    level: Option<usize>,
    cluster: Option<usize>,
    node: Option<usize>,
    /// Start, offset and op.
    instruction: [Option<usize>; 3],
}

impl Places {
    /// Returns the columns that are read for a question, and the places of those of keys. `nodes`:
    /// whether nodes are among them.
    fn of<S: Gathered>(question: &FleetQuestion, nodes: bool) -> (Vec<FlatColumn>, Self) {
        let types = question.has_types();
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
        let function = question.has(FleetKey::Function) || question.has(FleetKey::Module) || types;
        let places = Self {
            function: place(function, tables::FUNCTION),
            service: place(question.has(FleetKey::Service), tables::SERVICE),
            level: place(question.has(FleetKey::Level), tables::LEVEL),
            cluster: place(question.has(FleetKey::Cluster) || nodes, tables::CLUSTER),
            node: place(nodes, tables::NODE),
            instruction: [tables::FUNCTION_START, tables::FUNCTION_OFFSET, tables::OP]
                .map(|column| place(types, column)),
        };
        (columns, places)
    }
}

impl<S: Gathered> Gather<S> {
    /// Adds up the rows of a question, of a tier.
    pub fn read(
        bucket: &Arc<dyn FleetBucket>,
        sources: &SpanSources,
        question: &FleetQuestion,
        tier: u8,
    ) -> Result<Self, AskError> {
        let wanted = S::parts(question, tier);
        let types = question.has_types();
        if let Some(key) = question.by.iter().find(|key| types && !key.goes_with_types()) {
            return Err(AskError::NotWithTypes(*key));
        }
        let mut gather = Self {
            by: question.by.clone(),
            memory: usize::try_from(question.memory).unwrap_or(usize::MAX),
            held: 0,
            first: sources.span.first,
            services: Texts::default(),
            levels: Texts::default(),
            nodes: MetNodes::default(),
            instructions: Vec::new(),
            numbers: Interner::default(),
            has_nodes: wanted.table == FleetTable::Hour && (wanted.nodes || question.service.is_some()),
            sections: Vec::new(),
            rows: 0,
            parts: 0,
            bytes: 0,
        };
        let pick = FleetPick { service: question.service.clone(), event: question.event.clone() };
        let mut counted_elsewhere = false;
        for source in sources.parts(wanted) {
            let grouped = source.part.table == FleetTable::DayGroup;
            counted_elsewhere |= gather.has_nodes && grouped;
            let (columns, places) = Places::of::<S>(question, gather.has_nodes && !grouped);
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
        if counted_elsewhere {
            let with_nodes = sources.parts(PartChoice { nodes: true, ..wanted });
            for source in with_nodes.iter().filter(|source| source.part.table == FleetTable::Day) {
                gather.count_nodes(bucket, source.part, &pick)?;
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
        let [start, offset, op] = places.instruction.map(column);
        let by_function = self.by.contains(&FleetKey::Function) || self.by.contains(&FleetKey::Module);
        let by_place = self.by.contains(&FleetKey::Node) || self.by.contains(&FleetKey::Cluster);
        let hour = if self.by.contains(&FleetKey::Hour) { hour.0.saturating_sub(self.first.0) } else { 0 };
        let [event, unit, kind, group, count, weight] = [0, 1, 2, 3, 4, 5].map(|at| batch.column(at));
        let [first, second] = [0, 1].map(|at| S::COLUMNS.get(at).and_then(|_| batch.column(FIRST + at)));
        let mut last_event = None;
        let mut last_group = None;
        for row in batch.rows() {
            let number = |of: Option<&FlatValues>| of.and_then(|of| of.number(row));
            let keys = (number(event), number(unit), number(kind));
            let section = match last_event {
                Some((of, section)) if of == keys => section,
                _ => {
                    last_group = None;
                    self.section(batch, row)
                }
            };
            last_event = Some((keys, section));
            let mut numbers = GroupNumbers { hour, ..GroupNumbers::default() };
            let function = number(function).unwrap_or(0);
            if by_function {
                numbers.function = function;
            }
            if let Some(op) = op {
                let op = met.ops.number(op, row, InstructionOp::parse);
                let of = SampledInstruction { function, place: number(start).zip(number(offset)), op };
                numbers.instruction = self.numbers.intern(&mut self.instructions, of);
            }
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
                own: [number(first), number(second)],
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

    /// Notes the nodes with rows of a part whose sums are read from the groups of nodes.
    fn count_nodes(
        &mut self,
        bucket: &Arc<dyn FleetBucket>,
        part: &ManifestPart,
        pick: &FleetPick,
    ) -> Result<(), FleetError> {
        let columns = [tables::EVENT, tables::UNIT, tables::KIND, tables::CLUSTER, tables::NODE];
        let mut met: Met<InCluster> = Met::default();
        read_part(bucket, part, pick, &columns, |batch| {
            if batch.is_first() {
                met = Met::default();
            }
            let [Some(cluster), Some(node)] = [3, 4].map(|at| batch.column(at)) else { return };
            let (mut last, mut last_node) = (None, None);
            for row in batch.rows() {
                let keys = (batch.number(0, row), batch.number(1, row), batch.number(2, row));
                let section = match last {
                    Some((of, section)) if of == keys => section,
                    _ => self.section(batch, row),
                };
                last = Some((keys, section));
                let number = met.node(&mut self.nodes, [cluster, node], row);
                if last_node != Some((section, number)) {
                    last_node = Some((section, number));
                    self.sections.get_mut(section).map(|of| of.nodes.insert(number));
                }
            }
        })
    }

    /// Returns the number of nodes with rows; `None` if the table has no nodes.
    pub fn nodes(&self) -> Option<u64> {
        let all: FxHashSet<u32> = self.sections.iter().flat_map(|section| &section.nodes).copied().collect();
        self.has_nodes.then_some(all.len() as u64)
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
        let mut each = size_of::<(GroupNumbers, S)>() + size_of::<(GroupNumbers, u32)>() * 2;
        if !self.instructions.is_empty() {
            // Each instruction has a group.
            each += size_of::<SampledInstruction>() + Interner::BYTES;
        }
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
        self.forget_instructions();
    }

    /// Forgets the instructions of groups that were left out.
    fn forget_instructions(&mut self) {
        if self.instructions.is_empty() {
            return;
        }
        let all = std::mem::take(&mut self.instructions);
        self.numbers.clear();
        for section in &mut self.sections {
            section.groups.clear();
            for (at, (numbers, _)) in section.sums.iter_mut().enumerate() {
                let of = all.get(numbers.instruction as usize).copied().unwrap_or_default();
                numbers.instruction = self.numbers.intern(&mut self.instructions, of);
                section.groups.insert(*numbers, at as u32);
            }
        }
    }

    /// Returns for each event the sums of all rows, and the groups by their names.
    pub fn named(
        self,
        bucket: &Arc<dyn FleetBucket>,
        sources: &SpanSources,
        types: &mut dyn FleetTypes,
    ) -> Result<Vec<NamedSection<S>>, FleetError> {
        let mut functions = FxHashMap::default();
        let by_type = self.by.iter().any(|key| key.is_of_types());
        if by_type || self.by.contains(&FleetKey::Function) || self.by.contains(&FleetKey::Module) {
            let all = self.sections.iter().flat_map(|section| &section.sums);
            let mut wanted: FxHashSet<u64> = all.map(|(numbers, _)| numbers.function).collect();
            wanted.extend(self.instructions.iter().map(|of| of.function));
            functions = names(bucket, &sources.symbols(), &wanted)?;
        }
        let Self { by, first, services, levels, nodes, instructions, has_nodes, sections, .. } = self;
        let all = sections.iter().flat_map(|section| &section.sums);
        let sampled = all.filter_map(|(numbers, sums)| {
            Some((*instructions.get(numbers.instruction as usize)?, sums.weight()))
        });
        let types = by_type.then(|| InstructionTypes::read(sampled, &functions, types));
        let both = by.contains(&FleetKey::Type);
        let unknown = FunctionName { name: "[not in the symbols]".to_owned(), ..FunctionName::default() };
        let typed = |numbers: &GroupNumbers| {
            let instruction = instructions.get(numbers.instruction as usize);
            types.as_ref().zip(instruction).map(|(types, instruction)| types.texts(instruction))
        };
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
                FleetKey::Type => typed(numbers).map(|texts| texts.ty),
                FleetKey::Field if both => typed(numbers).map(TypeTexts::part),
                FleetKey::Field => typed(numbers).map(|texts| texts.whole()),
            };
            by.iter().map(value).collect()
        };
        let mut named = Vec::new();
        for section in sections {
            let mut places: FxHashMap<Vec<Option<String>>, usize> = FxHashMap::default();
            let mut groups: Vec<(Vec<Option<String>>, S)> = Vec::new();
            let (mut accesses, mut with_type) = (section.cut.clone(), S::default());
            for (numbers, sums) in section.sums {
                if let Some(texts) = typed(&numbers) {
                    if texts.is_typed {
                        with_type.merge(sums.clone());
                    }
                    if texts.is_access {
                        accesses.merge(sums.clone());
                    }
                }
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
                nodes: has_nodes.then_some(section.nodes.len() as u64),
                typed: by_type.then_some((with_type, accesses)),
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
    /// The nodes with rows, if nodes were counted.
    pub nodes: Option<u64>,
    /// What has a type, and what accesses memory, if types were asked for.
    pub typed: Option<(S, S)>,
}
