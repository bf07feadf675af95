//! Columns of the file to rows of the model.

use arrow_array::cast::AsArray;
use arrow_array::types::{ArrowPrimitiveType, Int32Type, UInt8Type, UInt16Type, UInt32Type, UInt64Type};
use arrow_array::{Array, ArrayRef, BooleanArray, PrimitiveArray, RecordBatch, StringArray};
use precise_common::latency;
use rustc_hash::FxHashMap;

use super::file::Column;
use super::fold::Folding;
use super::stack_json;
use super::write_rows::JsonFrame;
use precise_model::stack::{Chain, Stack, StackId};
use precise_model::{
    Capture, CodeLocation, DataLocation, Frame, Interner, Measures, Meta, Name, NameId, Names, Outcome,
    Reason, Row,
};

/// A capture that is being read.
pub(super) struct Rows {
    capture: Capture,
    code: Interner<CodeLocation>,
    data: Interner<DataLocation>,
    stacks: Interner<Stack>,
    folding: Folding,
    /// Rows that were read.
    read: u64,
}

impl Rows {
    /// `most`: rows that may be held at one time.
    pub(super) fn new(meta: Meta, most: u64) -> Self {
        Self {
            capture: Capture { meta, ..Capture::default() },
            code: Interner::default(),
            data: Interner::default(),
            stacks: Interner::default(),
            folding: Folding::new(most),
            read: 0,
        }
    }

    /// Rows that were read.
    pub(super) fn read(&self) -> u64 {
        self.read
    }

    /// Makes room for the next batch. Whether there is any.
    pub(super) fn make_room(&mut self) -> bool {
        self.folding.make_room(&mut self.capture.rows, self.capture.meta.epochs.len())
    }

    pub(super) fn finish(mut self) -> Capture {
        self.folding.finish(&mut self.capture, self.read);
        self.capture
    }

    /// Adds a batch, or says what is wrong with it.
    pub(super) fn add(&mut self, batch: &RecordBatch) -> Result<(), String> {
        let names = &mut self.capture.names;
        let epoch = Numbers::<UInt32Type>::of(batch, Column::Epoch)?;
        let event = Numbers::<UInt16Type>::of(batch, Column::EventId)?;
        let cpu = Numbers::<UInt16Type>::of(batch, Column::Cpu)?;
        let cgroup_id = Numbers::<UInt64Type>::of(batch, Column::CgroupId)?;
        let cgroup = NameColumn::of(batch, [Column::Cgroup, Column::CgroupReason], names)?;
        let pid = Numbers::<UInt32Type>::of(batch, Column::Pid)?;
        let tid = Numbers::<UInt32Type>::of(batch, Column::Tid)?;
        let process = NameColumn::of(batch, [Column::Process, Column::ProcessReason], names)?;
        let kernel = Flags::of(batch, Column::Kernel)?;
        let data_src = Numbers::<UInt64Type>::of(batch, Column::DataSrc)?;
        let op_outcome = Numbers::<UInt64Type>::of(batch, Column::OpOutcome)?;
        let fetch_outcome = Numbers::<UInt64Type>::of(batch, Column::FetchOutcome)?;
        let bucket = Numbers::<UInt8Type>::of(batch, Column::LatencyBucket)?;
        let exact = Flags::of(batch, Column::Exact)?;
        let page_size = Numbers::<UInt64Type>::of(batch, Column::PageSize)?;
        let width = Numbers::<UInt16Type>::of(batch, Column::AccessBytes)?;
        let count = Numbers::<UInt64Type>::of(batch, Column::Count)?;
        let period_sum = Numbers::<UInt64Type>::of(batch, Column::PeriodSum)?;
        let latency_sum = Numbers::<UInt64Type>::of(batch, Column::LatencySum)?;
        let latency_max = Numbers::<UInt32Type>::of(batch, Column::LatencyMax)?;
        let code = CodeColumns::of(batch, names)?;
        let data = DataColumns::of(batch, names)?;
        let mut stacks = StackColumns::of(batch, names)?;
        self.capture.rows.reserve(batch.num_rows());
        for i in 0..batch.num_rows() {
            let kernel = kernel.must(i)?;
            let row = Row {
                epoch: self.folding.epoch(below("epoch", epoch.must(i)?, self.capture.meta.epochs.len())?),
                event: below("event", event.must(i)?, self.capture.meta.events.len())?,
                cpu: cpu.get(i),
                cgroup_id: cgroup_id.must(i)?,
                cgroup: cgroup.get(i),
                pid: pid.must(i)?,
                tid: tid.must(i)?,
                process: process.get(i),
                kernel,
                code: code.get(i, kernel)?.map(|l| self.code.intern(&mut self.capture.code, l)),
                data: data.get(i)?.map(|l| self.data.intern(&mut self.capture.data, l)),
                stack: stacks.get(i, &mut self.stacks, &mut self.code, &mut self.capture),
                data_src: data_src.must(i)?,
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
                    latency_sum: latency_sum.must(i)?,
                    latency_max: latency_max.must(i)?,
                },
            };
            self.capture.rows.push(row);
        }
        self.read += batch.num_rows() as u64;
        Ok(())
    }
}

/// `index`, when it is below `bound`.
fn below<T: Copy + Into<u64>>(what: &str, index: T, bound: usize) -> Result<T, String> {
    let number = index.into();
    if number < bound as u64 {
        Ok(index)
    } else {
        Err(format!("a row refers to {what} {number}, but there are only {bound}"))
    }
}

/// The columns of a code location.
struct CodeColumns<'a> {
    address: Numbers<'a, UInt64Type>,
    module: NameColumn<'a>,
    build_id: Texts<'a, NameId>,
    file_offset: Numbers<'a, UInt64Type>,
    function: NameColumn<'a>,
    function_offset: Numbers<'a, UInt64Type>,
    source: NameColumn<'a>,
    line: Numbers<'a, UInt32Type>,
    inlined: Texts<'a, Vec<Frame>>,
}

impl<'a> CodeColumns<'a> {
    fn of(batch: &'a RecordBatch, names: &mut Names) -> Result<Self, String> {
        Ok(Self {
            address: Numbers::of(batch, Column::Ip)?,
            module: NameColumn::of(batch, [Column::Module, Column::ModuleReason], names)?,
            build_id: Texts::of(batch, Column::BuildId, |text| Ok(names.intern(text)))?,
            file_offset: Numbers::of(batch, Column::FileOffset)?,
            function: NameColumn::of(batch, [Column::Function, Column::FunctionReason], names)?,
            function_offset: Numbers::of(batch, Column::FunctionOffset)?,
            source: NameColumn::of(batch, [Column::Source, Column::SourceReason], names)?,
            line: Numbers::of(batch, Column::Line)?,
            inlined: Texts::of(batch, Column::Inlined, |text| frames(text, names))?,
        })
    }

    fn get(&self, i: usize, kernel: bool) -> Result<Option<CodeLocation>, String> {
        let Some(runtime_address) = self.address.get(i) else { return Ok(None) };
        Ok(Some(CodeLocation {
            kernel,
            runtime_address,
            module: self.module.get(i),
            build_id: self.build_id.get(i).copied().unwrap_or_default(),
            file_offset: self.file_offset.must(i)?,
            function: self.function.get(i),
            function_offset: self.function_offset.must(i)?,
            source: self.source.get(i),
            line: self.line.must(i)?,
            inlined_into: self.inlined.get(i).cloned().unwrap_or_default(),
        }))
    }
}

/// The columns of a call chain.
struct StackColumns<'a> {
    callers: Texts<'a, Vec<CodeLocation>>,
    reason: Texts<'a, Reason>,
    elsewhere: Flags<'a>,
    cut: Flags<'a>,
    /// What was put together already, by the text's place in its dictionary: many rows have the same chain.
    known: FxHashMap<(i32, bool, bool), StackId>,
}

impl<'a> StackColumns<'a> {
    fn of(batch: &'a RecordBatch, names: &mut Names) -> Result<Self, String> {
        Ok(Self {
            callers: Texts::of(batch, Column::Stack, |text| stack_json::decode(text, names))?,
            reason: Texts::of(batch, Column::StackReason, |text| {
                Ok(Reason::parse(text).unwrap_or(Reason::Failed))
            })?,
            elsewhere: Flags::of(batch, Column::StackElsewhere)?,
            cut: Flags::of(batch, Column::StackCut)?,
            known: FxHashMap::default(),
        })
    }

    fn get(
        &mut self,
        i: usize,
        stacks: &mut Interner<Stack>,
        code: &mut Interner<CodeLocation>,
        capture: &mut Capture,
    ) -> Chain {
        let Some(callers) = self.callers.get(i) else {
            return Chain::Unknown(self.reason.get(i).copied().unwrap_or(Reason::NotRecorded));
        };
        let flag = |flags: &Flags| flags.must(i).unwrap_or(false);
        let (elsewhere, cut) = (flag(&self.elsewhere), flag(&self.cut));
        let id = *self.known.entry((self.callers.keys.value(i), elsewhere, cut)).or_insert_with(|| {
            let callers = callers.iter().map(|caller| code.intern(&mut capture.code, caller.clone()));
            stacks.intern(&mut capture.stacks, Stack { callers: callers.collect(), elsewhere, cut })
        });
        Chain::Known(id)
    }
}

/// The columns of a data location.
struct DataColumns<'a> {
    address: Numbers<'a, UInt64Type>,
    region: NameColumn<'a>,
    offset: Numbers<'a, UInt64Type>,
    variable: NameColumn<'a>,
    variable_offset: Numbers<'a, UInt64Type>,
}

impl<'a> DataColumns<'a> {
    fn of(batch: &'a RecordBatch, names: &mut Names) -> Result<Self, String> {
        Ok(Self {
            address: Numbers::of(batch, Column::Address)?,
            region: NameColumn::of(batch, [Column::Region, Column::RegionReason], names)?,
            offset: Numbers::of(batch, Column::RegionOffset)?,
            variable: NameColumn::of(batch, [Column::Variable, Column::VariableReason], names)?,
            variable_offset: Numbers::of(batch, Column::VariableOffset)?,
        })
    }

    fn get(&self, i: usize) -> Result<Option<DataLocation>, String> {
        let Some(runtime_address) = self.address.get(i) else { return Ok(None) };
        Ok(Some(DataLocation {
            runtime_address,
            region: self.region.get(i),
            file_offset: self.offset.must(i)?,
            variable: self.variable.get(i),
            variable_offset: self.variable_offset.must(i)?,
        }))
    }
}

fn frames(text: &str, names: &mut Names) -> Result<Vec<Frame>, String> {
    let frames: Vec<JsonFrame> = serde_json::from_str(text).map_err(|e| {
        format!(
            "the column inlined \
        cannot be parsed: {e}"
        )
    })?;
    Ok(stack_json::frames(&frames, names))
}

fn find(batch: &RecordBatch, column: Column) -> Result<&ArrayRef, String> {
    batch.column_by_name(column.name()).ok_or_else(|| format!("the column {} is missing", column.name()))
}

fn wrong_type(column: Column, array: &ArrayRef) -> String {
    let name = column.name();
    format!("the column {name} has the wrong type {}", array.data_type())
}

/// A column of numbers.
struct Numbers<'a, T: ArrowPrimitiveType> {
    column: Column,
    array: &'a PrimitiveArray<T>,
}

impl<'a, T: ArrowPrimitiveType> Numbers<'a, T> {
    fn of(batch: &'a RecordBatch, column: Column) -> Result<Self, String> {
        let array = find(batch, column)?;
        let array = array.as_primitive_opt().ok_or_else(|| wrong_type(column, array))?;
        Ok(Self { column, array })
    }

    fn get(&self, i: usize) -> Option<T::Native> {
        (!self.array.is_null(i)).then(|| self.array.value(i))
    }

    fn must(&self, i: usize) -> Result<T::Native, String> {
        self.get(i)
            .ok_or_else(|| format!("the column {} is null in a row that needs a value", self.column.name()))
    }
}

/// A column of flags.
struct Flags<'a> {
    column: Column,
    array: &'a BooleanArray,
}

impl<'a> Flags<'a> {
    fn of(batch: &'a RecordBatch, column: Column) -> Result<Self, String> {
        let array = find(batch, column)?;
        let array = array.as_boolean_opt().ok_or_else(|| wrong_type(column, array))?;
        Ok(Self { column, array })
    }

    fn must(&self, i: usize) -> Result<bool, String> {
        let value = (!self.array.is_null(i)).then(|| self.array.value(i));
        value.ok_or_else(|| format!("the column {} is null in a row that needs a value", self.column.name()))
    }
}

/// A column of text, each distinct text turned into a `T` once.
struct Texts<'a, T> {
    keys: &'a PrimitiveArray<Int32Type>,
    values: Vec<Option<T>>,
}

impl<'a, T> Texts<'a, T> {
    fn of(
        batch: &'a RecordBatch,
        column: Column,
        mut convert: impl FnMut(&str) -> Result<T, String>,
    ) -> Result<Self, String> {
        let array = find(batch, column)?;
        let dictionary = array.as_dictionary_opt::<Int32Type>().ok_or_else(|| wrong_type(column, array))?;
        let texts: &StringArray =
            dictionary.values().as_string_opt().ok_or_else(|| wrong_type(column, array))?;
        let keys = dictionary.keys();
        // A dictionary serves a whole row group; what no row of this batch names is not converted.
        let mut values = Vec::new();
        values.resize_with(texts.len(), || None);
        for key in keys.iter().flatten() {
            let index = key as usize;
            match values.get_mut(index) {
                Some(Some(_)) => {}
                Some(slot) if !texts.is_null(index) => *slot = Some(convert(texts.value(index))?),
                Some(_) => {}
                None => {
                    return Err(format!(
                        "the column {} refers to text {key}, but there are only {}",
                        column.name(),
                        texts.len()
                    ));
                }
            }
        }
        Ok(Self { keys, values })
    }

    fn get(&self, i: usize) -> Option<&T> {
        if self.keys.is_null(i) {
            return None;
        }
        self.values.get(self.keys.value(i) as usize)?.as_ref()
    }
}

/// A name and, beside it, why there is none.
struct NameColumn<'a> {
    name: Texts<'a, NameId>,
    reason: Texts<'a, Reason>,
}

impl<'a> NameColumn<'a> {
    fn of(batch: &'a RecordBatch, [name, reason]: [Column; 2], names: &mut Names) -> Result<Self, String> {
        Ok(Self {
            name: Texts::of(batch, name, |text| Ok(names.intern(text)))?,
            // A reason that a newer writer knows and we do not is still a reason.
            reason: Texts::of(batch, reason, |text| Ok(Reason::parse(text).unwrap_or(Reason::Failed)))?,
        })
    }

    fn get(&self, i: usize) -> Name {
        match (self.name.get(i), self.reason.get(i)) {
            (Some(id), _) => Name::Known(*id),
            (None, Some(reason)) => Name::Unknown(*reason),
            (None, None) => Name::Unknown(Reason::NotRecorded),
        }
    }
}
