//! Projections: the parts of rows that a question needs. A reader leaves out the others.

use crate::Dimension;
use crate::keys::Key;

/// A part of a row that a reader may leave out. A part that was left out looks as if the run had
/// not recorded it. Events, modes and measures are in every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowPart {
    /// The epoch. Without it, all rows are of the first one.
    Epoch,
    /// The CPU.
    Cpu,
    /// The cgroup, with its path and owner.
    Cgroup,
    /// The process id and the process name.
    Process,
    /// The thread id and the thread name.
    Thread,
    /// The function and the module of the instruction. Of code without a symbol also the place in
    /// the module, which stands for the name.
    Function,
    /// The address of the instruction, its place in the module and in the function, and the build
    /// id.
    Instruction,
    /// The source file and the line of the instruction.
    Line,
    /// The functions that the function is inlined into.
    Inlined,
    /// The call chain.
    Stack,
    /// The data address, with its region and variable.
    Data,
    /// The data source.
    Source,
    /// The outcome of the branch or fetch.
    Outcome,
    /// The latency bucket.
    Latency,
    /// The width of the access.
    Width,
    /// The size of the page of the data.
    PageSize,
}

/// A set of [`RowPart`]s: those that a reader reads.
///
/// ```
/// use precise_model::keys::Key;
/// use precise_model::{Projection, RowPart};
///
/// let by_function = Projection::of_keys(&[Key::Function, Key::Process]);
/// assert!(by_function.has(RowPart::Function) && !by_function.has(RowPart::Data));
/// assert!(Projection::EVERYTHING.has(RowPart::Data));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Projection(u16);

impl Projection {
    /// No part: only events, modes and measures.
    pub const NOTHING: Self = Self(0);
    /// Every part.
    pub const EVERYTHING: Self = Self(u16::MAX);
    /// All that is known about the code of a row itself, without its callers.
    pub const CODE: Self =
        Self::of(&[RowPart::Function, RowPart::Instruction, RowPart::Line, RowPart::Inlined]);

    /// Returns the set of these parts.
    pub const fn of(parts: &[RowPart]) -> Self {
        let (mut bits, mut rest) = (0, parts);
        while let [part, others @ ..] = rest {
            bits |= 1 << *part as u16;
            rest = others;
        }
        Self(bits)
    }

    /// Returns the parts that are in either set.
    #[must_use]
    pub const fn and(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns the set without these parts.
    #[must_use]
    pub const fn without(self, parts: &[RowPart]) -> Self {
        Self(self.0 & !Self::of(parts).0)
    }

    /// Returns whether a part is in the set.
    pub const fn has(self, part: RowPart) -> bool {
        self.0 & Self::of(&[part]).0 != 0
    }

    /// Returns whether any of the parts of `other` is in the set.
    pub const fn has_any(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the parts from which the values of some keys are made.
    pub fn of_keys(keys: &[Key]) -> Self {
        keys.iter().fold(Self::NOTHING, |all, key| all.and(Self::of_key(*key)))
    }

    const fn of_key(key: Key) -> Self {
        match key {
            Key::Function | Key::Module => Self::of(&[RowPart::Function]),
            Key::SymbolOffset | Key::Ip => Self::of(&[RowPart::Function, RowPart::Instruction]),
            Key::Line => Self::of(&[RowPart::Function, RowPart::Line]),
            // The object of an access depends on its code, its operation and its address.
            Key::Type | Key::Field => {
                Self::CODE.and(Self::of(&[RowPart::Source, RowPart::Data, RowPart::Width]))
            }
            Key::Stack => Self::of(&[RowPart::Stack]),
            Key::Cgroup => Self::of(&[RowPart::Cgroup]),
            Key::Process | Key::Pid => Self::of(&[RowPart::Process]),
            Key::Thread => Self::of(&[RowPart::Thread]),
            // A thread is called by its last name.
            Key::Tid => Self::of(&[RowPart::Thread, RowPart::Epoch]),
            Key::Epoch => Self::of(&[RowPart::Epoch]),
            Key::Cpu | Key::Node => Self::of(&[RowPart::Cpu]),
            Key::Event | Key::Kernel => Self::NOTHING,
            Key::Level | Key::Snoop | Key::Tlb | Key::Op | Key::Locked | Key::Remote => {
                Self::of(&[RowPart::Source])
            }
            Key::Latency => Self::of(&[RowPart::Latency]),
            Key::Outcome => Self::of(&[RowPart::Outcome]),
            Key::Address | Key::LineAddress | Key::Page | Key::Variable | Key::Region => {
                Self::of(&[RowPart::Data])
            }
            Key::PageSize => Self::of(&[RowPart::PageSize]),
            // A page belongs to a process, and may have several faults one after the other.
            Key::Age => Self::of(&[RowPart::Epoch, RowPart::Process, RowPart::Data, RowPart::PageSize]),
            Key::Object => Self::of(&[
                RowPart::Epoch,
                RowPart::Process,
                RowPart::Function,
                RowPart::Inlined,
                RowPart::Stack,
                RowPart::Data,
                RowPart::PageSize,
            ]),
        }
    }

    /// Returns the parts that a run records with a dimension.
    pub const fn of_dimension(dimension: Dimension) -> Self {
        match dimension {
            Dimension::Ip => Self::CODE,
            Dimension::Address => Self::of(&[RowPart::Data, RowPart::Width]),
            Dimension::Cgroup => Self::of(&[RowPart::Cgroup]),
            Dimension::Process => Self::of(&[RowPart::Process]),
            Dimension::Thread => Self::of(&[RowPart::Process, RowPart::Thread]),
            Dimension::Cpu => Self::of(&[RowPart::Cpu]),
            Dimension::Source => Self::of(&[RowPart::Source]),
            Dimension::Latency => Self::of(&[RowPart::Latency]),
            Dimension::Outcome => Self::of(&[RowPart::Outcome]),
            Dimension::Stack => Self::of(&[RowPart::Stack]),
            Dimension::PageSize => Self::of(&[RowPart::PageSize]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{CaptureBuilder, REMOTE_RAM, project};
    use crate::values::RawValue;
    use crate::{Capture, Outcome};

    fn capture() -> Capture {
        let mut made = CaptureBuilder::new();
        for (function, address) in [("parse", 0x1000), ("", 0x2000), ("", 0xffff_8000_0000_1000)] {
            let cell = made.cell().samples(3).latency(300).cpu(3).data_src(REMOTE_RAM).page_size(4096);
            let cell = cell.cgroup(9, "/a.service").process(4, "app").thread(5, "worker");
            let module = if address > 0x2000 { "[kernel]" } else { "/bin/app" };
            let cell = cell.code(address, module, function, "src/app.c", 12);
            let mut cell = cell.data(0x7000_0040, "[heap]", "table").callers(&["main"]);
            let row = cell.row();
            (row.outcome, row.width) = (Some(Outcome::Op(1)), Some(8));
        }
        made.build()
    }

    /// The value of each key is the same without all other parts.
    #[test]
    fn keys_need_no_other_parts() {
        let whole = capture();
        for key in Key::ALL {
            let mut parts = whole.clone();
            project(&mut parts, Projection::of_keys(&[key]));
            let values = |capture: &Capture| -> Vec<_> {
                let rows = capture.rows.iter();
                rows.map(|row| RawValue::of(capture, row, key).value(capture, key)).collect()
            };
            assert_eq!(values(&parts), values(&whole), "{key}");
        }
    }

    #[test]
    fn sets_of_parts() {
        let some = Projection::of(&[RowPart::Cpu, RowPart::PageSize]);
        assert!(some.has(RowPart::Cpu) && some.has(RowPart::PageSize) && !some.has(RowPart::Data));
        assert!(!some.without(&[RowPart::Cpu]).has(RowPart::Cpu));
        assert_eq!(some.and(Projection::EVERYTHING), Projection::EVERYTHING);
        assert!(!some.has_any(Projection::CODE) && Projection::CODE.has(RowPart::Line));
        let all = Dimension::ALL.map(Projection::of_dimension);
        let all = all.into_iter().fold(Projection::NOTHING, Projection::and);
        assert!(all.has(RowPart::Width) && all.has(RowPart::Inlined) && all.has(RowPart::Stack));
    }
}
