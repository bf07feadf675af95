//! The instructions that the samples of a capture are about, of events that sample accesses to
//! memory. A type is a function of the instruction, so they are all that `fleet types` needs.

use precise_capture::Column;
use precise_model::{EventInfo, Meta};
use rustc_hash::FxHashMap;

use crate::columns::{ACCESS_COLUMNS, AccessColumns, Columns, Stopped, short, text_places};
use crate::fold::{Fold, once};
use crate::functions::SymbolNames;
use crate::keys::{InstructionOp, SampledInstruction};
use crate::met::Met;

/// The instructions of a capture whose rows are being added.
pub(crate) struct RowInstructions {
    /// Whether each event of the capture samples accesses.
    of_event: Vec<bool>,
    /// The numbers of the functions of the batch that others are inlined into, by the places of the
    /// texts of those.
    outermost: FxHashMap<u128, u32>,
    /// The numbers of the instructions of the batch, of each function the one that was met last.
    met: Met<(SampledInstruction, u32)>,
}

fn samples_accesses(event: &EventInfo) -> bool {
    event.fields.address || event.fields.latency || event.fields.data_source
}

impl RowInstructions {
    pub fn of(meta: &Meta) -> Self {
        let of_event = meta.events.iter().map(samples_accesses).collect();
        Self { of_event, outermost: FxHashMap::default(), met: Met::default() }
    }

    /// Returns the columns that are read beside those of [`Columns`].
    pub fn columns(meta: &Meta) -> &'static [Column] {
        if meta.events.iter().any(samples_accesses) { ACCESS_COLUMNS } else { &[] }
    }

    /// Forgets what is known of the texts of a batch: those of the next one have other places.
    pub fn begin_batch(&mut self) {
        self.outermost.clear();
        self.met = Met::default();
    }

    /// Returns whether an event of the capture samples accesses.
    pub fn has(&self, event: u64) -> bool {
        self.of_event.get(event as usize).is_some_and(|samples| *samples)
    }

    /// Returns the number of a row's instruction in `fold`. `function` is the number of the
    /// row's function, and `op` what the row's data source says that the access did.
    pub fn instruction(
        &mut self,
        fold: &mut Fold,
        (columns, own): (&Columns<'_>, &AccessColumns<'_>),
        row: usize,
        (function, op): (u32, InstructionOp),
    ) -> Result<u32, Stopped> {
        let op = if own.is_fetch(row) { InstructionOp::Fetch } else { op };
        let function = match own.inlined.number(row) {
            None => function,
            Some(_) => {
                let columns_of = [columns.build_id, columns.module, columns.function, own.inlined];
                once(&mut self.outermost, text_places(columns_of, row), || {
                    let outermost = own.outermost(row).map_err(Stopped::Wrong)?;
                    let name = outermost.as_deref().map(short);
                    let innermost = columns.symbol(row);
                    let names = SymbolNames { name: name.unwrap_or(innermost.name), ..innermost };
                    Ok::<_, Stopped>(fold.symbol(names)?)
                })?
            }
        };
        let function = fold.functions.id(function);
        let of = SampledInstruction { function, place: own.place(columns, row), op };
        Ok(self.met.with(columns.function, row, of, || fold.place(of))?)
    }
}
