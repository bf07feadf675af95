//! Converts the columns of the file to rows of the model.

use precise_common::latency;
use rustc_hash::FxHashMap;

use super::file::Column;
use super::fold::Folding;
use super::limits::ReadLimits;
use super::read_columns::GroupReader;
use super::read_error::Stop;
use super::read_owners::ReadOwners;
use super::read_values::{FlagColumn, NameColumn, NumberColumn, TextColumn};
use super::stack_json::{self, JsonFrame};
use precise_model::{
    Capture, ChainEnd, CodeLocation, DataLocation, Frame, Interner, LocationId, Measures, Meta, NameId,
    Names, Outcome, Reason, Row,
};
use precise_model::{Chain, Stack, StackId};

/// A capture that is being read.
pub(super) struct Rows {
    capture: Capture,
    code: Interner,
    data: Interner,
    stacks: Interner,
    owners: ReadOwners,
    folding: Folding,
    /// The number of rows that were read.
    read: u64,
    /// The bytes of everything but rows and names, and the limit of these and the names.
    kept: u64,
    limits: ReadLimits,
}

impl Rows {
    /// Starts a capture, whose metadata takes `kept` bytes.
    pub(super) fn new(meta: Meta, limits: &ReadLimits, kept: u64) -> Self {
        Self {
            capture: Capture { meta, ..Capture::default() },
            code: Interner::default(),
            data: Interner::default(),
            stacks: Interner::default(),
            owners: ReadOwners::default(),
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

    /// Makes room for the next batch. Returns whether there is any.
    pub(super) fn make_room(&mut self) -> bool {
        self.folding.make_room(&mut self.capture.rows, self.capture.meta.epochs.len())
    }

    pub(super) fn finish(mut self) -> Capture {
        self.folding.finish(&mut self.capture, self.read);
        self.capture.meta.owners = self.owners.finish();
        self.capture
    }

    /// Adds a batch. The error describes what is wrong with it.
    pub(super) fn add(&mut self, batch: &mut GroupReader<'_>) -> Result<(), Stop> {
        let longest = self.limits.list();
        let names = &mut self.capture.names;
        let epoch = NumberColumn::<u32>::of(batch, Column::Epoch)?;
        let event = NumberColumn::<u16>::of(batch, Column::EventId)?;
        let cpu = NumberColumn::<u16>::of(batch, Column::Cpu)?;
        let cgroup_id = NumberColumn::<u64>::of(batch, Column::CgroupId)?;
        let cgroup = NameColumn::of(batch, [Column::Cgroup, Column::CgroupReason], names)?;
        self.kept += self.owners.add(batch, &cgroup.name, names)?;
        let pid = NumberColumn::<u32>::of(batch, Column::Pid)?;
        let tid = NumberColumn::<u32>::of(batch, Column::Tid)?;
        let process = NameColumn::of(batch, [Column::Process, Column::ProcessReason], names)?;
        let thread = NameColumn::of(batch, [Column::Thread, Column::ThreadReason], names)?;
        let kernel = FlagColumn::of(batch, Column::Kernel)?;
        let data_src = NumberColumn::<u64>::of(batch, Column::DataSrc)?;
        let op_outcome = NumberColumn::<u64>::of(batch, Column::OpOutcome)?;
        let fetch_outcome = NumberColumn::<u64>::of(batch, Column::FetchOutcome)?;
        let bucket = NumberColumn::<u8>::of(batch, Column::LatencyBucket)?;
        let exact = FlagColumn::of(batch, Column::Exact)?;
        let page_size = NumberColumn::<u64>::of(batch, Column::PageSize)?;
        let width = NumberColumn::<u16>::of(batch, Column::AccessBytes)?;
        let count = NumberColumn::<u64>::of(batch, Column::Count)?;
        let period_sum = NumberColumn::<u64>::of(batch, Column::PeriodSum)?;
        let latency_sum = NumberColumn::<u64>::of(batch, Column::LatencySum)?;
        let latency_max = NumberColumn::<u32>::of(batch, Column::LatencyMax)?;
        let code = CodeColumns::of(batch, names, longest)?;
        let data = DataColumns::of(batch, names)?;
        let mut stacks = StackColumns::of(batch, names, longest)?;
        // An eighth more than needed, not twice as much as before.
        self.capture.rows.reserve_exact(batch.rows().max(self.capture.rows.len() / 8));
        for i in 0..batch.rows() {
            let kept = self.kept.saturating_add(self.capture.names.bytes() as u64);
            if kept > self.limits.kept() {
                let what = format!("what its first {} rows name takes", self.read + i as u64);
                return Err(Stop::Memory { what, bytes: kept, limit: self.limits.kept() });
            }
            let kernel = kernel.get(i).unwrap_or(true);
            let row = Row {
                epoch: self.folding.epoch(below("epoch", epoch.must(i)?, self.capture.meta.epochs.len())?),
                event: below("event", event.must(i)?, self.capture.meta.events.len())?,
                cpu: cpu.get(i),
                cgroup_id: cgroup_id.get(i).unwrap_or_default(),
                cgroup: cgroup.get(i),
                pid: pid.get(i).unwrap_or_default(),
                tid: tid.get(i).unwrap_or_default(),
                process: process.get(i),
                thread: thread.get(i),
                kernel,
                code: match code.get(i, kernel) {
                    Some(location) => {
                        Some(intern_code(location, &mut self.code, &mut self.capture.code, &mut self.kept))
                    }
                    None => None,
                },
                data: data.get(i).map(|location| {
                    let before = self.capture.data.len();
                    let id = self.data.intern(&mut self.capture.data, location);
                    if self.capture.data.len() > before {
                        self.kept += in_a_table::<DataLocation>();
                    }
                    id
                }),
                stack: stacks.get(i, &mut self.stacks, &mut self.code, &mut self.capture, &mut self.kept),
                data_src: data_src.get(i).unwrap_or_default(),
                outcome: match op_outcome.get(i) {
                    Some(bits) => Some(Outcome::Op(bits)),
                    None => fetch_outcome.get(i).map(Outcome::Fetch),
                },
                latency_bucket: match bucket.get(i) {
                    Some(bucket) => Some(below("latency bucket", bucket, latency::BUCKETS as usize)?),
                    None => None,
                },
                exact: exact.must(i)?,
                width: width.get(i),
                page_size: page_size.get(i),
                measures: Measures {
                    count: count.must(i)?,
                    period_sum: period_sum.must(i)?,
                    latency_sum: latency_sum.get(i).unwrap_or_default(),
                    latency_max: latency_max.get(i).unwrap_or_default(),
                },
            };
            self.capture.rows.push(row);
        }
        self.read += batch.rows() as u64;
        Ok(())
    }
}

/// Returns the bytes that an item takes in a table of an [`Interner`]: in the table, in the larger
/// table that it may be copied to, and in the index.
const fn in_a_table<T>() -> u64 {
    (3 * size_of::<T>() + Interner::BYTES) as u64
}

/// Returns the index of a location, and adds its bytes to `kept` if it is new.
fn intern_code(
    location: CodeLocation,
    code: &mut Interner,
    table: &mut Vec<CodeLocation>,
    kept: &mut u64,
) -> LocationId {
    let (before, lists) = (table.len(), size_of_val(location.inlined_into.as_slice()));
    let id = code.intern(table, location);
    if table.len() > before {
        *kept += in_a_table::<CodeLocation>() + 2 * lists as u64;
    }
    id
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

/// The columns of a code location.
struct CodeColumns {
    address: NumberColumn<u64>,
    module: NameColumn,
    build_id: TextColumn<NameId>,
    file_offset: NumberColumn<u64>,
    function: NameColumn,
    function_offset: NumberColumn<u64>,
    source: NameColumn,
    line: NumberColumn<u32>,
    inlined: TextColumn<Vec<Frame>>,
}

impl CodeColumns {
    fn of(batch: &mut GroupReader<'_>, names: &mut Names, longest: usize) -> Result<Self, Stop> {
        Ok(Self {
            address: NumberColumn::of(batch, Column::Ip)?,
            module: NameColumn::of(batch, [Column::Module, Column::ModuleReason], names)?,
            build_id: TextColumn::of(batch, Column::BuildId, |text| Ok(names.intern(text)))?,
            file_offset: NumberColumn::of(batch, Column::FileOffset)?,
            function: NameColumn::of(batch, [Column::Function, Column::FunctionReason], names)?,
            function_offset: NumberColumn::of(batch, Column::FunctionOffset)?,
            source: NameColumn::of(batch, [Column::SourceFile, Column::SourceReason], names)?,
            line: NumberColumn::of(batch, Column::Line)?,
            inlined: TextColumn::of(batch, Column::Inlined, |text| {
                frames(short(Column::Inlined, text, longest)?, names)
            })?,
        })
    }

    fn get(&self, i: usize, kernel: bool) -> Option<CodeLocation> {
        // The kernel may hide the address of its code, and still name it.
        let address = self.address.get(i);
        if address.is_none() && !self.module.has(i) {
            return None;
        }
        Some(CodeLocation {
            kernel,
            runtime_address: address.unwrap_or_default(),
            module: self.module.get(i),
            build_id: self.build_id.get(i).copied().unwrap_or_default(),
            file_offset: self.file_offset.get(i).unwrap_or_default(),
            function: self.function.get(i),
            function_offset: self.function_offset.get(i).unwrap_or_default(),
            source: self.source.get(i),
            line: self.line.get(i).unwrap_or_default(),
            inlined_into: self.inlined.get(i).cloned().unwrap_or_default(),
        })
    }
}

/// The columns of a call chain.
struct StackColumns {
    callers: TextColumn<Vec<CodeLocation>>,
    reason: TextColumn<Reason>,
    elsewhere: FlagColumn,
    cut: FlagColumn,
    end: TextColumn<Option<ChainEnd>>,
    /// The stacks that were built so far, by the text's index among the distinct texts, because
    /// many rows have the same chain.
    known: FxHashMap<(u32, bool, bool, Option<ChainEnd>), StackId>,
}

impl StackColumns {
    fn of(batch: &mut GroupReader<'_>, names: &mut Names, longest: usize) -> Result<Self, Stop> {
        Ok(Self {
            callers: TextColumn::of(batch, Column::Stack, |text| {
                stack_json::decode(short(Column::Stack, text, longest)?, names)
            })?,
            reason: TextColumn::of(batch, Column::StackReason, |text| {
                Ok(Reason::parse(text).unwrap_or(Reason::Failed))
            })?,
            elsewhere: FlagColumn::of(batch, Column::StackElsewhere)?,
            cut: FlagColumn::of(batch, Column::StackCut)?,
            // A newer writer may have reasons that this version does not know.
            end: TextColumn::of(batch, Column::StackEnd, |text| Ok(ChainEnd::parse(text)))?,
            known: FxHashMap::default(),
        })
    }

    fn get(
        &mut self,
        i: usize,
        stacks: &mut Interner,
        code: &mut Interner,
        capture: &mut Capture,
        kept: &mut u64,
    ) -> Chain {
        let Some((key, callers)) = self.callers.entry(i) else {
            return Chain::Unknown(self.reason.get(i).copied().unwrap_or(Reason::NotRecorded));
        };
        let flag = |flags: &FlagColumn| flags.must(i).unwrap_or(false);
        let (elsewhere, cut) = (flag(&self.elsewhere), flag(&self.cut));
        let end = self.end.get(i).copied().flatten();
        let id = *self.known.entry((key, elsewhere, cut, end)).or_insert_with(|| {
            let of = |caller: &CodeLocation| intern_code(caller.clone(), code, &mut capture.code, kept);
            let callers: Vec<_> = callers.iter().map(of).collect();
            let before = capture.stacks.len();
            let lists = size_of_val(callers.as_slice());
            let id = stacks.intern(&mut capture.stacks, Stack { callers, elsewhere, cut, end });
            if capture.stacks.len() > before {
                *kept += in_a_table::<Stack>() + 2 * lists as u64;
            }
            id
        });
        Chain::Known(id)
    }
}

/// The columns of a data location.
struct DataColumns {
    address: NumberColumn<u64>,
    region: NameColumn,
    offset: NumberColumn<u64>,
    variable: NameColumn,
    variable_offset: NumberColumn<u64>,
}

impl DataColumns {
    fn of(batch: &mut GroupReader<'_>, names: &mut Names) -> Result<Self, Stop> {
        Ok(Self {
            address: NumberColumn::of(batch, Column::Address)?,
            region: NameColumn::of(batch, [Column::Region, Column::RegionReason], names)?,
            offset: NumberColumn::of(batch, Column::RegionOffset)?,
            variable: NameColumn::of(batch, [Column::Variable, Column::VariableReason], names)?,
            variable_offset: NumberColumn::of(batch, Column::VariableOffset)?,
        })
    }

    fn get(&self, i: usize) -> Option<DataLocation> {
        let runtime_address = self.address.get(i)?;
        Some(DataLocation {
            runtime_address,
            region: self.region.get(i),
            file_offset: self.offset.get(i).unwrap_or_default(),
            variable: self.variable.get(i),
            variable_offset: self.variable_offset.get(i).unwrap_or_default(),
        })
    }
}

/// Returns a text with a list if it is not too long to be parsed.
fn short(column: Column, text: &str, longest: usize) -> Result<&str, String> {
    if text.len() <= longest {
        return Ok(text);
    }
    Err(format!("the column {} has a text of {} bytes; {longest} are possible", column.name(), text.len()))
}

fn frames(text: &str, names: &mut Names) -> Result<Vec<Frame>, String> {
    let frames: Vec<JsonFrame> =
        serde_json::from_str(text).map_err(|e| format!("the column inlined cannot be parsed: {e}"))?;
    Ok(stack_json::frames(&frames, names))
}
