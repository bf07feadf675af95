//! The instructions that the samples of a capture are about, of events that sample accesses to
//! memory. A type is a function of the instruction, so they are all that `fleet types` needs.

use precise_capture::Column;
use precise_common::data_src::DataSource;
use precise_model::words;
use precise_model::{EventInfo, Meta};
use rustc_hash::FxHashMap;

use crate::columns::{ACCESS_COLUMNS, AccessColumns, Columns, Stopped, text_places};
use crate::fold::{Fold, InstructionOp, SampledInstruction, once};

/// The instructions of a capture whose rows are being added.
pub(crate) struct RowInstructions {
    /// Whether each event of the capture samples accesses.
    of_event: Vec<bool>,
    /// What data sources say that accesses did.
    ops: FxHashMap<u64, InstructionOp>,
    /// The ids of the functions of the batch, by the places of their texts.
    functions: FxHashMap<u128, u64>,
}

fn samples_accesses(event: &EventInfo) -> bool {
    event.fields.address || event.fields.latency || event.fields.data_source
}

impl RowInstructions {
    pub fn of(meta: &Meta) -> Self {
        let of_event = meta.events.iter().map(samples_accesses).collect();
        Self { of_event, ops: FxHashMap::default(), functions: FxHashMap::default() }
    }

    /// Returns the columns that are read beside those of [`Columns`].
    pub fn columns(meta: &Meta) -> &'static [Column] {
        if meta.events.iter().any(samples_accesses) { ACCESS_COLUMNS } else { &[] }
    }

    /// Forgets what is known of the texts of a batch: those of the next one have other places.
    pub fn begin_batch(&mut self) {
        self.functions.clear();
    }

    /// Returns whether an event of the capture samples accesses.
    pub fn has(&self, event: u64) -> bool {
        self.of_event.get(event as usize).is_some_and(|samples| *samples)
    }

    /// Returns the number of a row's instruction in `fold`.
    pub fn instruction(
        &mut self,
        fold: &mut Fold,
        (columns, own): (&Columns<'_>, &AccessColumns<'_>),
        row: usize,
    ) -> Result<u32, Stopped> {
        let op = match columns.source.number(row) {
            _ if own.is_fetch(row) => InstructionOp::Fetch,
            None => InstructionOp::Unknown,
            Some(word) => {
                let op = || InstructionOp::parse(words::op(DataSource::decode(word)));
                *self.ops.entry(word).or_insert_with(op)
            }
        };
        let texts = text_places([columns.build_id, columns.module, columns.function, own.inlined], row);
        let find = || Ok::<_, Stopped>(fold.symbol(own.symbol(columns, row).map_err(Stopped::Wrong)?));
        let function = once(&mut self.functions, texts, find)?;
        Ok(fold.place(SampledInstruction { function, place: own.place(columns, row), op })?)
    }
}
