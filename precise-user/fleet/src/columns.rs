//! The columns that are read of a capture, and what their values say about a row.

use precise_capture::{Column, FlatValues};
use precise_model::sampled::is_fetch;
use serde::Deserialize;

use crate::fold::Full;
use crate::functions::SymbolNames;
use crate::service::OwnerTexts;

/// The longest name of a service or a function that is kept, in bytes.
const LONGEST: usize = 4096;

/// Declares columns that are read of a capture, and their values in a batch.
macro_rules! columns {
    ($(#[$doc:meta])+ $list:ident, $values:ident: $($name:ident: $column:ident,)+) => {
        $(#[$doc])+
        pub(crate) const $list: &[Column] = &[$(Column::$column),+];

        /// The values of these columns in a batch.
        pub(crate) struct $values<'a> {
            $(pub $name: &'a FlatValues,)+
        }

        impl<'a> $values<'a> {
            /// Returns the values; `None` if there are others.
            pub fn of(values: &[&'a FlatValues]) -> Option<Self> {
                let [$($name),+] = *values else { return None };
                Some(Self { $($name),+ })
            }
        }
    };
}

columns! {
    /// The columns that are read of a capture.
    COLUMNS, Columns:
    epoch: Epoch,
    event: EventId,
    cgroup: Cgroup,
    unit: Unit,
    container: Container,
    pod: Pod,
    namespace: Namespace,
    module: Module,
    build_id: BuildId,
    function: Function,
    reason: FunctionReason,
    source: DataSrc,
    bucket: LatencyBucket,
    count: Count,
    weight: PeriodSum,
    latency_sum: LatencySum,
    latency_max: LatencyMax,
}

columns! {
    /// The columns that are read of a capture if one of its events samples accesses.
    ACCESS_COLUMNS, AccessColumns:
    kernel: Kernel,
    ip: Ip,
    file_offset: FileOffset,
    function_offset: FunctionOffset,
    inlined: Inlined,
    address: Address,
}

/// Returns the places of a row's texts as one number: equal ones are those of equal texts.
pub(crate) fn text_places<const N: usize>(columns: [&FlatValues; N], row: usize) -> u128 {
    let place = |column: &FlatValues| column.number(row).map_or(0, |place| place.wrapping_add(1) as u32);
    columns.iter().fold(0, |all, column| all << 32 | u128::from(place(column)))
}

/// Returns a text without what is too long of it.
pub(crate) fn short(text: &str) -> &str {
    text.get(..text.floor_char_boundary(LONGEST)).unwrap_or_default()
}

/// Why the reading of a capture ends early.
pub(crate) enum Stopped {
    Wrong(String),
    Full(Full),
}

impl From<Full> for Stopped {
    fn from(full: Full) -> Self {
        Self::Full(full)
    }
}

impl<'a> Columns<'a> {
    pub fn service(&self, row: usize) -> String {
        let owner = OwnerTexts {
            cgroup: self.cgroup.text(row),
            unit: self.unit.text(row),
            container: self.container.text(row),
            pod: self.pod.text(row),
            namespace: self.namespace.text(row),
        };
        short(&owner.service()).to_owned()
    }

    pub fn symbol(&self, row: usize) -> SymbolNames<'a> {
        let text = |column: &'a FlatValues| short(column.text(row).unwrap_or_default());
        let mut names = SymbolNames {
            name: text(self.function),
            module: text(self.module),
            build_id: text(self.build_id),
            reason: text(self.reason),
        };
        if names.name.is_empty() && names.reason.is_empty() {
            names.reason = precise_model::Reason::NotRecorded.as_str();
        }
        names
    }
}

/// A function that another one is inlined into, as captures have it.
#[derive(Deserialize)]
struct InlinedInto {
    function: String,
}

impl AccessColumns<'_> {
    /// Returns where the instruction is in its file; `None` if it is in none, or in no function
    /// with a name.
    pub fn place(&self, columns: &Columns<'_>, row: usize) -> Option<(u64, u64)> {
        let named = columns.function.number(row).is_some() && columns.module.number(row).is_some();
        let of_file = named && self.kernel.number(row) != Some(1);
        let offset = self.function_offset.number(row).unwrap_or(0);
        // A function may begin at the first byte of its file.
        let at = self.file_offset.number(row).unwrap_or(0);
        let start = at.checked_sub(offset).filter(|_| of_file)?;
        Some((start, offset))
    }

    /// Returns the name of the function that the one of a row is inlined into, of several the
    /// outermost one; `None` if it is not inlined. The error says what is wrong with the column.
    pub fn outermost(&self, row: usize) -> Result<Option<String>, String> {
        let Some(text) = self.inlined.text(row) else { return Ok(None) };
        let all: Vec<InlinedInto> =
            serde_json::from_str(text).map_err(|error| format!("column inlined: {error}"))?;
        Ok(all.into_iter().next_back().map(|outermost| outermost.function))
    }

    /// Returns whether a sample is about the bytes of its own instruction, as a page fault may be.
    pub fn is_fetch(&self, row: usize) -> bool {
        let both = self.ip.number(row).zip(self.address.number(row));
        both.is_some_and(|(ip, address)| is_fetch(ip, address))
    }
}
