//! The instructions that the samples of a capture are about, of events that sample accesses to
//! memory. A type is a function of the instruction, so they are all that `fleet types` needs.

use precise_capture::{Column, FlatValues};
use precise_common::data_src::DataSource;
use precise_model::words;
use precise_model::{EventInfo, Meta};
use rustc_hash::FxHashMap;

use crate::columns::{ACCESS_COLUMNS, AccessColumns, Columns};
use crate::fold::{Fold, Full, InstructionKey, InstructionOp, SampledInstruction, Sums};

/// The instructions of a capture whose rows are being added.
pub(crate) struct RowInstructions {
    /// Whether each event of the capture samples accesses.
    of_event: Vec<bool>,
    /// The numbers of the capture's instructions in the fold.
    numbers: FxHashMap<SampledInstruction, u32>,
    /// What data sources say that accesses did.
    ops: FxHashMap<u64, InstructionOp>,
    /// The ids of the functions of the batch, by the places of their texts.
    functions: FxHashMap<[Option<u64>; 4], u64>,
}

/// What a row adds to the samples of its instruction.
pub(crate) struct InstructionRow {
    pub event_of_capture: u64,
    pub service: u32,
    pub event: u32,
    pub group: u8,
    pub timed: bool,
    pub source: Option<u64>,
    pub sums: Sums,
}

impl RowInstructions {
    pub fn of(meta: &Meta) -> Self {
        let accesses =
            |event: &EventInfo| event.fields.address || event.fields.latency || event.fields.data_source;
        Self {
            of_event: meta.events.iter().map(accesses).collect(),
            numbers: FxHashMap::default(),
            ops: FxHashMap::default(),
            functions: FxHashMap::default(),
        }
    }

    /// Returns the columns that are read beside those of [`Columns`].
    pub fn columns(meta: &Meta) -> &'static [Column] {
        if Self::of(meta).of_event.contains(&true) { ACCESS_COLUMNS } else { &[] }
    }

    /// Forgets what is known of the texts of a batch: those of the next one have other places.
    pub fn begin_batch(&mut self) {
        self.functions.clear();
    }

    /// Adds a row to the samples of its instruction, if its event samples accesses. `own` are the
    /// values of [`Self::columns`].
    pub fn add(
        &mut self,
        fold: &mut Fold,
        (columns, own): (&Columns<'_>, &[&FlatValues]),
        row: usize,
        of: &InstructionRow,
    ) -> Result<(), Full> {
        let Some(own) = AccessColumns::of(own) else { return Ok(()) };
        if !self.of_event.get(of.event_of_capture as usize).is_some_and(|of| *of) {
            return Ok(());
        }
        let op = match of.source {
            _ if own.is_fetch(row) => InstructionOp::Fetch,
            None => InstructionOp::Unknown,
            Some(word) => {
                let op = || InstructionOp::parse(words::op(DataSource::decode(word)));
                *self.ops.entry(word).or_insert_with(op)
            }
        };
        let texts = [columns.build_id, columns.module, columns.function, own.inlined];
        let texts = texts.map(|column| column.number(row));
        let function = match self.functions.get(&texts) {
            Some(function) => *function,
            None => {
                let function = fold.symbol(own.symbol(columns, row));
                self.functions.insert(texts, function);
                function
            }
        };
        let instruction = SampledInstruction { function, place: own.place(columns, row), op };
        let number = match self.numbers.get(&instruction) {
            Some(number) => *number,
            None => {
                let number = fold.place(instruction)?;
                self.numbers.insert(instruction, number);
                number
            }
        };
        let InstructionRow { service, event, group, timed, sums, .. } = *of;
        let key = InstructionKey { service, event, instruction: number, group, timed };
        fold.instructions.push((key.pack(), sums));
        Ok(())
    }
}
