//! Makes rows of cells, in two steps: the first needs the processes as they are now, and asks for
//! the names of addresses; the second waits for these names.

use std::collections::VecDeque;
use std::sync::Arc;

use precise_common::cell::Cell;
use rustc_hash::FxHashMap;

use super::code::CodeBatch;
use super::{Assembler, EpochCells, MIN_ROWS, go_on};
use crate::symbols::{Processes, SentCode, SentData};
use precise_capture::fold;
use precise_model::{Chain, Dimension, LocationId, Measures, Name, Names, Outcome, Reason, Row};

/// What cells refer to. Names of addresses may still be missing.
#[derive(Debug)]
pub(super) struct LocatedCells {
    epoch: u32,
    event: u16,
    /// The code location of each cell, and the generation of the process that has it mapped.
    code: Vec<Option<LocationId>>,
    images: Vec<Option<u64>>,
    data: Vec<Option<LocationId>>,
    stacks: Vec<Chain>,
    /// The names of processes, by process id and generation.
    processes: FxHashMap<(u32, Option<u64>), Result<Arc<str>, Reason>>,
    /// The names of threads, by process id and thread id.
    threads: FxHashMap<(u32, u32), Result<Arc<str>, Reason>>,
    /// The paths of cgroups, by id.
    cgroups: FxHashMap<u64, Result<Arc<str>, Reason>>,
}

/// What each cell refers to: its code, the generation of its process, its data and its call chain.
type LocationsOfCells = (Vec<Option<LocationId>>, Vec<Option<u64>>, Vec<Option<LocationId>>, Vec<Chain>);

/// The cells of one event in one epoch, whose names were asked for.
#[derive(Debug)]
pub(crate) struct BegunRows {
    cells: Vec<(usize, Cell)>,
    located: LocatedCells,
    /// The number of the [`AwaitedNames`] to wait for; 0 if there are none.
    awaits: u64,
}

impl BegunRows {
    /// Returns the number of cells.
    pub fn cells(&self) -> usize {
        self.cells.len()
    }
}

/// Locations that were asked for. Their ids are those that follow the ones of all earlier
/// locations.
#[derive(Debug)]
struct AwaitedNames {
    number: u64,
    code: SentCode,
    data: SentData,
}

/// The locations that were asked for, in the order in which they are added to the tables.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    queue: VecDeque<AwaitedNames>,
    /// The number of the last one that was added.
    last: u64,
    /// The numbers of locations in the queue.
    pub code: usize,
    pub data: usize,
}

impl Assembler {
    /// Returns the rows of one event's cells.
    pub fn rows(&mut self, cells: EpochCells<'_>, processes: &Processes) -> Vec<Row> {
        let located = self.locate(cells, processes);
        self.rows_of(cells.cells, &located)
    }

    /// Asks for the names of one event's cells, for [`Self::finish_rows`]. Waits for them only if
    /// the run groups by call chain: where a chain ends depends on answers.
    pub(crate) fn begin_rows(
        &mut self,
        cells: Vec<(usize, Cell)>,
        of: EpochCells<'_>,
        processes: &Processes,
    ) -> BegunRows {
        let of = EpochCells { cells: &cells, ..of };
        let may_look_up = go_on(self.looks_up, &self.deadline)() && !self.has(Dimension::Stack);
        let (located, awaits) = match self.symbolizer.is_some() && may_look_up {
            true => self.locate_later(of, processes),
            false => (self.locate(of, processes), 0),
        };
        BegunRows { cells, located, awaits }
    }

    /// Returns the rows of cells whose names were asked for. Waits for these and for all that were
    /// asked for before them.
    pub(crate) fn finish_rows(&mut self, begun: &BegunRows) -> Vec<Row> {
        self.receive_names(begun.awaits);
        self.rows_of(&begun.cells, &begun.located)
    }

    /// Waits for all names that were asked for.
    pub(super) fn receive_all_names(&mut self) {
        self.receive_names(self.awaited.last);
    }

    /// Waits for the names that were asked for, up to those with this number.
    fn receive_names(&mut self, last: u64) {
        while let Some(next) = self.awaited.queue.pop_front_if(|next| next.number <= last) {
            self.awaited.code -= next.code.len();
            self.awaited.data -= next.data.len();
            let Some(symbolizer) = &mut self.symbolizer else { return };
            let names = &mut self.named.names;
            let code = symbolizer.receive_code(names, next.code);
            let data = symbolizer.receive_data(names, next.data);
            self.add_code(code);
            self.named.data.extend(data);
        }
    }

    /// Returns what cells refer to, with all names.
    fn locate(&mut self, cells: EpochCells<'_>, processes: &Processes) -> LocatedCells {
        self.receive_all_names();
        let mut batch = CodeBatch::new(processes, cells.window);
        let (code, mut images) = self.locate_code(cells, &mut batch);
        self.resolve(&mut batch);
        let (data, queries) = self.locate_data(cells, processes);
        self.resolve_data(queries);
        let stacks = self.locate_stacks(cells, &mut batch, &code, &mut images);
        self.located(cells, processes, (code, images, data, stacks))
    }

    /// Returns what cells refer to, and the number of the names that are still to be received.
    fn locate_later(&mut self, cells: EpochCells<'_>, processes: &Processes) -> (LocatedCells, u64) {
        let mut batch = CodeBatch::new(processes, cells.window);
        let (code, images) = self.locate_code(cells, &mut batch);
        let (data, queries) = self.locate_data(cells, processes);
        if let Some(symbolizer) = &self.symbolizer {
            let (code, data) = (symbolizer.send_code(batch.queries), symbolizer.send_data(queries));
            self.awaited.last += 1;
            self.awaited.code += code.len();
            self.awaited.data += data.len();
            self.awaited.queue.push_back(AwaitedNames { number: self.awaited.last, code, data });
        }
        let stacks = vec![Chain::NONE; cells.cells.len()];
        (self.located(cells, processes, (code, images, data, stacks)), self.awaited.last)
    }

    fn located(
        &mut self,
        cells: EpochCells<'_>,
        processes: &Processes,
        (code, images, data, stacks): LocationsOfCells,
    ) -> LocatedCells {
        let cgroups = self.cgroup_paths(cells);
        let (mut names, mut threads) = (FxHashMap::default(), FxHashMap::default());
        let late = self.symbolizer.is_none();
        let by_thread = self.has(Dimension::Thread);
        let keys = cells.cells.iter().map(|(_, cell)| &cell.key).zip(&images);
        for (key, generation) in keys.filter(|_| by_thread || self.has(Dimension::Process)) {
            let (pid, tid) = (key.pid(), key.tid());
            names.entry((pid, *generation)).or_insert_with(|| match generation {
                _ if late => Err(Reason::NotInTime),
                Some(generation) => {
                    processes.generation_name(pid, *generation, cells.window).map(|found| found.value)
                }
                None => processes.process_name(pid, cells.window).map(|found| found.value),
            });
            if by_thread && tid != pid {
                threads.entry((pid, tid)).or_insert_with(|| match late {
                    true => Err(Reason::NotInTime),
                    false => processes.thread_name(pid, tid, cells.window),
                });
            }
        }
        let (epoch, event) = (cells.epoch, cells.event);
        LocatedCells { epoch, event, code, images, data, stacks, processes: names, threads, cgroups }
    }

    /// Returns the rows of located cells, whose locations are in the tables.
    fn rows_of(&mut self, cells: &[(usize, Cell)], located: &LocatedCells) -> Vec<Row> {
        let unknown = Name::Unknown(Reason::NotRecorded);
        let name = |names: &mut Names, found: Option<&Result<Arc<str>, Reason>>| match found {
            Some(Ok(name)) => Name::Known(names.intern(name)),
            Some(Err(reason)) => Name::Unknown(*reason),
            None => unknown,
        };
        let mut cgroups: FxHashMap<u64, Name> = FxHashMap::default();
        for (_, cell) in cells {
            let id = cell.key.cgroup;
            cgroups.entry(id).or_insert_with(|| name(&mut self.named.names, located.cgroups.get(&id)));
        }
        let (by_thread, by_cpu) = (self.has(Dimension::Thread), self.has(Dimension::Cpu));
        let by_process = by_thread || self.has(Dimension::Process);
        let mut rows = Vec::new();
        let mut full = MIN_ROWS;
        let mut processes: FxHashMap<(u32, Option<u64>), Name> = FxHashMap::default();
        let mut threads: FxHashMap<(u32, u32), Name> = FxHashMap::default();
        let names = &mut self.named.names;
        for (index, (cpu, cell)) in cells.iter().enumerate() {
            // Cells of many CPUs may be one row.
            if rows.len() >= full {
                fold::add_up(&mut rows);
                full = MIN_ROWS.max(2 * rows.len());
            }
            let key = &cell.key;
            let process = match by_process {
                true => {
                    let id = (key.pid(), located.images[index]);
                    *processes.entry(id).or_insert_with(|| name(names, located.processes.get(&id)))
                }
                false => unknown,
            };
            let thread = match (key.pid(), key.tid()) {
                _ if !by_thread => unknown,
                // The name may be the one before an exec in the same epoch.
                (pid, tid) if tid == pid => process,
                id => *threads.entry(id).or_insert_with(|| name(names, located.threads.get(&id))),
            };
            rows.push(Row {
                epoch: located.epoch,
                event: located.event,
                cpu: if by_cpu { u16::try_from(*cpu).ok() } else { None },
                cgroup_id: key.cgroup,
                cgroup: cgroups.get(&key.cgroup).copied().unwrap_or(unknown),
                pid: key.pid(),
                tid: key.tid(),
                process,
                thread,
                kernel: key.class().kernel(),
                code: located.code[index],
                data: located.data[index],
                stack: located.stacks[index],
                data_src: key.class().data_src(),
                outcome: Outcome::of(key.class()),
                latency_bucket: key.class().latency_bucket().and_then(|bucket| u8::try_from(bucket).ok()),
                exact: key.class().exact(),
                width: key.class().width(),
                page_size: key.class().page_size(),
                measures: Measures {
                    count: cell.count.into(),
                    period_sum: cell.period_sum,
                    latency_sum: cell.latency_sum,
                    latency_max: cell.latency_max,
                },
            });
        }
        let unnamed = rows.iter().filter(|row| self.lacks_names(row)).map(|row| row.measures.count);
        let unnamed = unnamed.fold(0, u64::saturating_add);
        let count = if self.looks_up { &mut self.unnamed } else { &mut self.unnamed_behind };
        *count = count.saturating_add(unnamed);
        // In an order, because the same samples should give the same file.
        fold::add_up(&mut rows);
        rows
    }
}
