//! Converts the columns of the file to rows of the model.

use precise_common::latency;

use super::file::Column;
use super::fold::Folding;
use super::known_callers::KnownCallers;
use super::limits::ReadLimits;
use super::read_columns::{GroupReader, OpenColumn};
use super::read_error::Stop;
use super::read_owners::{CgroupColumns, ReadOwners};
use super::read_parts::{CodeColumns, DataColumns, LocationTables, StackColumns, TaskColumns};
use super::read_values::{FlagColumn, NumberColumn};
use super::repeats::Repeats;
use precise_model::{
    Capture, Chain, Joining, Measures, Meta, Name, Outcome, Projection, Reason, Row, RowPart,
};

/// The number of rows that are decoded at one time. Their columns should fit into a core's cache.
const BATCH: usize = 2048;

/// A capture that is being read.
pub(super) struct Rows {
    capture: Capture,
    parts: Projection,
    tables: LocationTables,
    owners: ReadOwners,
    joining: Joining,
    repeats: Repeats,
    folding: Folding,
    /// The number of rows that were read.
    read: u64,
    /// The bytes of the metadata and the owners.
    kept: u64,
    limits: ReadLimits,
}

impl Rows {
    /// Starts a capture, whose metadata takes `kept` bytes. Of its rows, these parts are read.
    pub(super) fn new(meta: Meta, parts: Projection, limits: &ReadLimits, kept: u64) -> Self {
        let joining = Joining::of(&meta, parts != Projection::EVERYTHING);
        Self {
            capture: Capture { meta, ..Capture::default() },
            parts,
            tables: LocationTables::default(),
            owners: ReadOwners::default(),
            joining,
            repeats: Repeats::default(),
            folding: Folding::new(limits.rows),
            read: 0,
            kept,
            limits: *limits,
        }
    }

    /// Returns the number of rows that were read.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    pub(super) fn finish(mut self) -> Capture {
        self.folding.finish(&mut self.capture, self.read);
        self.capture.meta.owners = self.owners.finish();
        self.capture
    }

    /// Adds a row group. The error describes what is wrong with it.
    pub(super) fn add(&mut self, group: &GroupReader<'_>) -> Result<(), Stop> {
        self.tables.callers.make_room(self.limits.callers());
        let mut columns = Columns::open(group, self.parts)?;
        let repeats = self.joining.is_on();
        let (mut left, mut different) = (group.rows(), 0);
        while left > 0 {
            let rows = left.min(BATCH);
            left -= rows;
            if repeats {
                self.add_repeats(&mut columns, rows)?;
                if left == 0 || self.repeats.is_full() {
                    different += self.take_repeats()?;
                }
            } else {
                self.add_rows(&mut columns, rows)?;
            }
        }
        if repeats && different > group.rows() / 2 {
            self.joining.stop();
        }
        Ok(())
    }

    /// Reads the next rows of a row group.
    fn read_columns(&mut self, columns: &mut Columns, rows: usize) -> Result<(), String> {
        let Self { capture, owners, tables, limits, .. } = self;
        self.kept += columns.read(rows, capture, owners, &mut tables.callers, limits)?;
        Ok(())
    }

    /// Adds rows of which most are likely to be equal to others of the row group.
    fn add_repeats(&mut self, columns: &mut Columns, rows: usize) -> Result<(), Stop> {
        self.read_columns(columns, rows)?;
        let [new, alone] = self.repeats.find(&columns.different(), rows);
        let Self { capture, tables, folding, joining, repeats, .. } = self;
        let mut made = |i: &usize| {
            let mut row = columns.row(*i, capture, tables)?;
            row.epoch = folding.epoch(row.epoch);
            Ok(row)
        };
        let new = new.iter().map(&mut made).collect::<Result<Vec<_>, String>>()?;
        let alone = alone.iter().map(made).collect::<Result<Vec<_>, String>>()?;
        repeats.insert(new);
        alone.into_iter().for_each(|row| joining.add(&mut capture.rows, row));
        self.read += rows as u64;
        self.check_kept(0)
    }

    /// Moves the rows that were found so far into the capture. Returns how many different ones
    /// there are.
    fn take_repeats(&mut self) -> Result<usize, Stop> {
        let rows = self.repeats.take();
        for (row, times) in &rows {
            self.joining.add_repeated(&mut self.capture.rows, *row, *times);
        }
        self.make_room().map(|()| rows.len())
    }

    /// Checks that what the rows so far name takes no more than it may. `more` rows were read since
    /// they were counted.
    fn check_kept(&self, more: u64) -> Result<(), Stop> {
        let kept = self.kept.saturating_add(self.tables.bytes);
        let kept = kept.saturating_add(self.capture.names.bytes() as u64);
        if kept > self.limits.kept() {
            let what = format!("what its first {} rows name takes", self.read + more);
            return Err(Stop::Memory { what, bytes: kept, limit: self.limits.kept() });
        }
        Ok(())
    }

    fn make_room(&mut self) -> Result<(), Stop> {
        let before = self.capture.rows.len();
        let fits = self.folding.make_room(&mut self.capture.rows, self.capture.meta.epochs.len());
        if self.capture.rows.len() != before {
            self.joining.forget();
        }
        if fits { Ok(()) } else { Err(Stop::TooLarge) }
    }

    fn add_rows(&mut self, columns: &mut Columns, rows: usize) -> Result<(), Stop> {
        self.read_columns(columns, rows)?;
        let before = self.capture.rows.len();
        if before + rows > self.capture.rows.capacity() {
            // An eighth more than needed, not twice as much as before.
            self.capture.rows.reserve_exact(rows.max(before / 8));
        }
        for i in 0..rows {
            self.check_kept(i as u64)?;
            let mut row = columns.row(i, &mut self.capture, &mut self.tables)?;
            row.epoch = self.folding.epoch(row.epoch);
            self.joining.add(&mut self.capture.rows, row);
        }
        self.read += rows as u64;
        self.make_room()
    }
}

/// The columns of a row group; `None` for parts that are not read.
struct Columns {
    epoch: Option<NumberColumn<u32>>,
    event: NumberColumn<u16>,
    cpu: Option<NumberColumn<u16>>,
    cgroup: Option<CgroupColumns>,
    process: Option<TaskColumns>,
    thread: Option<TaskColumns>,
    kernel: FlagColumn,
    code: Option<CodeColumns>,
    stacks: Option<StackColumns>,
    data: Option<DataColumns>,
    data_src: Option<NumberColumn<u64>>,
    outcome: Option<[NumberColumn<u64>; 2]>,
    bucket: Option<NumberColumn<u8>>,
    exact: FlagColumn,
    width: Option<NumberColumn<u16>>,
    page_size: Option<NumberColumn<u64>>,
    count: NumberColumn<u64>,
    period_sum: NumberColumn<u64>,
    latency_sum: NumberColumn<u64>,
    latency_max: NumberColumn<u32>,
}

/// Opens columns if their part is wanted.
fn part<T>(
    parts: Projection,
    part: RowPart,
    open: impl FnOnce() -> Result<T, Stop>,
) -> Result<Option<T>, Stop> {
    if parts.has(part) { open().map(Some) } else { Ok(None) }
}

impl Columns {
    fn open(group: &GroupReader<'_>, parts: Projection) -> Result<Self, Stop> {
        let process = (Column::Pid, [Column::Process, Column::ProcessReason]);
        let thread = (Column::Tid, [Column::Thread, Column::ThreadReason]);
        Ok(Self {
            epoch: part(parts, RowPart::Epoch, || NumberColumn::open(group, Column::Epoch))?,
            event: NumberColumn::open(group, Column::EventId)?,
            cpu: part(parts, RowPart::Cpu, || NumberColumn::open(group, Column::Cpu))?,
            cgroup: part(parts, RowPart::Cgroup, || CgroupColumns::open(group))?,
            process: part(parts, RowPart::Process, || TaskColumns::open(group, process.0, process.1))?,
            thread: part(parts, RowPart::Thread, || TaskColumns::open(group, thread.0, thread.1))?,
            kernel: FlagColumn::open(group, Column::Kernel)?,
            code: CodeColumns::open(group, parts)?,
            stacks: part(parts, RowPart::Stack, || StackColumns::open(group))?,
            data: part(parts, RowPart::Data, || DataColumns::open(group))?,
            data_src: part(parts, RowPart::Source, || NumberColumn::open(group, Column::DataSrc))?,
            outcome: part(parts, RowPart::Outcome, || {
                let op = NumberColumn::open(group, Column::OpOutcome)?;
                Ok([op, NumberColumn::open(group, Column::FetchOutcome)?])
            })?,
            bucket: part(parts, RowPart::Latency, || NumberColumn::open(group, Column::LatencyBucket))?,
            exact: FlagColumn::open(group, Column::Exact)?,
            width: part(parts, RowPart::Width, || NumberColumn::open(group, Column::AccessBytes))?,
            page_size: part(parts, RowPart::PageSize, || NumberColumn::open(group, Column::PageSize))?,
            count: NumberColumn::open(group, Column::Count)?,
            period_sum: NumberColumn::open(group, Column::PeriodSum)?,
            latency_sum: NumberColumn::open(group, Column::LatencySum)?,
            latency_max: NumberColumn::open(group, Column::LatencyMax)?,
        })
    }

    /// Reads the next rows. Returns the bytes that owners take which were not known before.
    fn read(
        &mut self,
        rows: usize,
        capture: &mut Capture,
        owners: &mut ReadOwners,
        callers: &mut KnownCallers,
        limits: &ReadLimits,
    ) -> Result<u64, String> {
        let names = &mut capture.names;
        self.epoch.as_mut().map_or(Ok(()), |epoch| epoch.read(rows))?;
        self.event.read(rows)?;
        self.cpu.as_mut().map_or(Ok(()), |cpu| cpu.read(rows))?;
        let kept = match &mut self.cgroup {
            Some(cgroup) => cgroup.read(rows, names, owners)?,
            None => 0,
        };
        for task in [&mut self.process, &mut self.thread].into_iter().flatten() {
            task.read(rows, names)?;
        }
        self.kernel.read(rows)?;
        self.code.as_mut().map_or(Ok(()), |code| code.read(rows, names, limits.list()))?;
        self.stacks.as_mut().map_or(Ok(()), |stacks| stacks.read(rows, names, callers, limits))?;
        self.data.as_mut().map_or(Ok(()), |data| data.read(rows, names))?;
        for column in [&mut self.data_src, &mut self.page_size].into_iter().flatten() {
            column.read(rows)?;
        }
        for column in self.outcome.iter_mut().flatten() {
            column.read(rows)?;
        }
        self.bucket.as_mut().map_or(Ok(()), |bucket| bucket.read(rows))?;
        self.exact.read(rows)?;
        self.width.as_mut().map_or(Ok(()), |width| width.read(rows))?;
        for column in [&mut self.count, &mut self.period_sum, &mut self.latency_sum] {
            column.read(rows)?;
        }
        self.latency_max.read(rows)?;
        Ok(kept)
    }

    /// Returns the columns that tell rows apart: those in which the rows of the row group differ.
    fn different(&self) -> Vec<&OpenColumn> {
        let mut all = Vec::new();
        if let Some(epoch) = &self.epoch {
            epoch.visit(&mut all);
        }
        self.event.visit(&mut all);
        if let Some(cpu) = &self.cpu {
            cpu.visit(&mut all);
        }
        if let Some(cgroup) = &self.cgroup {
            cgroup.visit(&mut all);
        }
        for task in [&self.process, &self.thread].into_iter().flatten() {
            task.visit(&mut all);
        }
        self.kernel.visit(&mut all);
        if let Some(code) = &self.code {
            code.visit(&mut all);
        }
        if let Some(stacks) = &self.stacks {
            stacks.visit(&mut all);
        }
        if let Some(data) = &self.data {
            data.visit(&mut all);
        }
        for column in [&self.data_src, &self.page_size].into_iter().flatten() {
            column.visit(&mut all);
        }
        for column in self.outcome.iter().flatten() {
            column.visit(&mut all);
        }
        if let Some(bucket) = &self.bucket {
            bucket.visit(&mut all);
        }
        self.exact.visit(&mut all);
        if let Some(width) = &self.width {
            width.visit(&mut all);
        }
        for column in [&self.count, &self.period_sum, &self.latency_sum] {
            column.visit(&mut all);
        }
        self.latency_max.visit(&mut all);
        all.retain(|column| !column.is_same());
        all
    }

    /// Returns a row of those that were read last. Locations that are new are added to the capture.
    fn row(&mut self, i: usize, capture: &mut Capture, tables: &mut LocationTables) -> Result<Row, String> {
        let nothing = (0, Name::Unknown(Reason::NotRecorded));
        let task = |task: &Option<TaskColumns>| task.as_ref().map_or(nothing, |task| task.get(i));
        let ((pid, process), (tid, thread)) = (task(&self.process), task(&self.thread));
        let (cgroup_id, cgroup) =
            self.cgroup.as_ref().map_or((0, nothing.1), |cgroup| (cgroup.id(i), cgroup.path(i)));
        let kernel = self.kernel.get(i).unwrap_or(true);
        let bucket = self.bucket.as_ref().and_then(|bucket| bucket.get(i));
        Ok(Row {
            epoch: match &self.epoch {
                Some(epoch) => below("epoch", epoch.must(i)?, capture.meta.epochs.len())?,
                None => 0,
            },
            event: below("event", self.event.must(i)?, capture.meta.events.len())?,
            cpu: self.cpu.as_ref().and_then(|cpu| cpu.get(i)),
            cgroup_id,
            cgroup,
            pid,
            tid,
            process,
            thread,
            kernel,
            code: self.code.as_mut().and_then(|code| code.get(i, kernel, capture, tables)),
            data: self.data.as_ref().and_then(|data| data.get(i, capture, tables)),
            stack: self.stacks.as_mut().map_or(Chain::NONE, |stacks| stacks.get(i, capture, tables)),
            data_src: self.data_src.as_ref().and_then(|source| source.get(i)).unwrap_or_default(),
            outcome: self.outcome.as_ref().and_then(|[op, fetch]| match op.get(i) {
                Some(bits) => Some(Outcome::Op(bits)),
                None => fetch.get(i).map(Outcome::Fetch),
            }),
            latency_bucket: match bucket {
                Some(bucket) => Some(below("latency bucket", bucket, latency::BUCKETS as usize)?),
                None => None,
            },
            exact: self.exact.must(i)?,
            width: self.width.as_ref().and_then(|width| width.get(i)),
            page_size: self.page_size.as_ref().and_then(|size| size.get(i)),
            measures: Measures {
                count: self.count.must(i)?,
                period_sum: self.period_sum.must(i)?,
                latency_sum: self.latency_sum.get(i).unwrap_or_default(),
                latency_max: self.latency_max.get(i).unwrap_or_default(),
            },
        })
    }
}

/// Returns `index` if it is less than `bound`.
fn below<T: Copy + Into<u64>>(what: &str, index: T, bound: usize) -> Result<T, String> {
    let number = index.into();
    if number < bound as u64 {
        Ok(index)
    } else {
        Err(format!("a row refers to {what} {number}, but there are only {bound}"))
    }
}
