//! The keys of rows that are added up: the numbers of their parts, packed into 128 bits.

use std::ops::{BitOr, Shl, Shr};

/// How many bits the parts of a key take. The first part is in the highest bits, so that keys are
/// in the order of their parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Widths<const N: usize>(pub [u32; N]);

impl<const N: usize> Widths<N> {
    /// Returns how many bits a key takes.
    pub fn bits(&self) -> u32 {
        self.0.iter().sum()
    }

    /// Packs parts into a number that has room for them.
    #[inline(always)]
    pub fn pack<T: KeyWord>(&self, parts: [u32; N]) -> T {
        self.0.iter().zip(parts).fold(T::from(0), |key, (bits, part)| key << *bits | T::from(part))
    }

    /// Returns the parts of a number that [`Self::pack`] made.
    #[inline(always)]
    pub fn parts<T: KeyWord>(&self, mut key: T) -> [u32; N] {
        let mut parts = [0; N];
        for (part, bits) in parts.iter_mut().rev().zip(self.0.iter().rev()) {
            *part = key.low() & ((1 << bits) - 1);
            key = key >> *bits;
        }
        parts
    }
}

/// A number that parts are packed into.
pub(crate) trait KeyWord:
    Copy + From<u32> + Shl<u32, Output = Self> + Shr<u32, Output = Self> + BitOr<Output = Self>
{
    /// Returns the lowest 32 bits.
    fn low(self) -> u32;
}

impl KeyWord for u64 {
    #[inline(always)]
    fn low(self) -> u32 {
        self as u32
    }
}

impl KeyWord for u128 {
    #[inline(always)]
    fn low(self) -> u32 {
        self as u32
    }
}

/// A key of `N` parts.
pub(crate) trait KeyParts<const N: usize> {
    /// How many bits they take. A constant, so that they are packed without a loop.
    const WIDTHS: Widths<N>;
}

/// The bits of the parts of keys. Each part has less than 32.
pub(crate) const SERVICE: u32 = 19;
pub(crate) const EVENT: u32 = 12;
pub(crate) const FUNCTION: u32 = 28;
pub(crate) const LEVEL: u32 = 9;
pub(crate) const NODE: u32 = 24;
pub(crate) const CLUSTER: u32 = 12;
pub(crate) const INSTRUCTION: u32 = 28;
pub(crate) const GROUP: u32 = 5;
pub(crate) const BUCKET: u32 = 8;
pub(crate) const TIMED: u32 = 1;

/// The key of a row, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowKey {
    pub service: u32,
    pub event: u32,
    pub function: u32,
    pub level: u32,
    pub node: u32,
    /// Whether the samples have a latency.
    pub timed: bool,
}

impl KeyParts<6> for RowKey {
    const WIDTHS: Widths<6> = Widths([SERVICE, EVENT, FUNCTION, LEVEL, NODE, TIMED]);
}

impl RowKey {
    #[inline]
    pub fn pack(self) -> u128 {
        let Self { service, event, function, level, node, timed } = self;
        Self::WIDTHS.pack([service, event, function, level, node, timed.into()])
    }

    #[inline]
    pub fn of(key: u128) -> Self {
        let [service, event, function, level, node, timed] = Self::WIDTHS.parts(key);
        Self { service, event, function, level, node, timed: timed == 1 }
    }

    /// Returns what a key has beside the node and whether there is a latency, in the same order.
    pub fn without_node(key: u128) -> u128 {
        key >> (NODE + TIMED)
    }

    /// Returns what [`Self::without_node`] left.
    pub fn of_without_node(key: u128) -> Self {
        Self::of(key << (NODE + TIMED))
    }
}

/// The key of a latency, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct LatencyKey {
    pub service: u32,
    pub event: u32,
    pub function: u32,
    pub level: u32,
    pub cluster: u32,
    pub group: u8,
    pub bucket: u8,
}

impl KeyParts<7> for LatencyKey {
    const WIDTHS: Widths<7> = Widths([SERVICE, EVENT, FUNCTION, LEVEL, CLUSTER, GROUP, BUCKET]);
}

impl LatencyKey {
    #[inline]
    pub fn pack(self) -> u128 {
        let Self { service, event, function, level, cluster, group, bucket } = self;
        Self::WIDTHS.pack([service, event, function, level, cluster, group.into(), bucket.into()])
    }

    #[inline]
    pub fn of(key: u128) -> Self {
        let [service, event, function, level, cluster, group, bucket] = Self::WIDTHS.parts(key);
        Self { service, event, function, level, cluster, group: group as u8, bucket: bucket as u8 }
    }
}

/// The key of the samples of an instruction, in numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InstructionKey {
    pub service: u32,
    pub event: u32,
    pub instruction: u32,
    pub group: u8,
    /// Whether the samples have a latency.
    pub timed: bool,
}

impl KeyParts<5> for InstructionKey {
    const WIDTHS: Widths<5> = Widths([SERVICE, EVENT, INSTRUCTION, GROUP, TIMED]);
}

impl InstructionKey {
    #[inline]
    pub fn pack(self) -> u128 {
        let Self { service, event, instruction, group, timed } = self;
        Self::WIDTHS.pack([service, event, instruction, group.into(), timed.into()])
    }

    #[inline]
    pub fn of(key: u128) -> Self {
        let [service, event, instruction, group, timed] = Self::WIDTHS.parts(key);
        Self { service, event, instruction, group: group as u8, timed: timed == 1 }
    }
}

/// An instruction that samples are about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct SampledInstruction {
    /// The id of the function that the file has a symbol of.
    pub function: u64,
    /// The offset of the function in its file, and the distance of the instruction from there;
    /// `None` if the code is in no file.
    pub place: Option<(u64, u64)>,
    pub op: InstructionOp,
}

precise_model::catalogue! {
    /// What a sampled access did, with its word; an empty one is null.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
    pub(crate) enum InstructionOp: &'static str {
        /// It was not reported, or was something else.
        #[default]
        Unknown => "",
        Load => "LOAD",
        Store => "STORE",
        /// The sample is about the bytes of the instruction itself.
        Fetch => "FETCH",
    }
}

impl InstructionOp {
    /// Returns the word of the column.
    pub const fn word(self) -> &'static str {
        self.entry()
    }

    /// Returns what a word says.
    pub fn parse(word: Option<&str>) -> Self {
        Self::ALL.into_iter().find(|op| Some(op.word()) == word).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_packed_and_unpacked() {
        for bits in [0, 1, 0x5555_5555, u32::MAX] {
            let part = |width: u32| bits & ((1 << width) - 1);
            let (service, event, function) = (part(SERVICE), part(EVENT), part(FUNCTION));
            let (level, node, timed) = (part(LEVEL), part(NODE), bits & 1 == 1);
            let row = RowKey { service, event, function, level, node, timed };
            assert_eq!(RowKey::of(row.pack()), row);
            let of = RowKey::of_without_node(RowKey::without_node(row.pack()));
            assert_eq!(of, RowKey { node: 0, timed: false, ..row });
            let (cluster, group, bucket) = (part(CLUSTER), part(GROUP) as u8, part(BUCKET) as u8);
            let latency = LatencyKey { service, event, function, level, cluster, group, bucket };
            assert_eq!(LatencyKey::of(latency.pack()), latency);
            let instruction = InstructionKey { service, event, instruction: part(INSTRUCTION), group, timed };
            assert_eq!(InstructionKey::of(instruction.pack()), instruction);
        }
        let narrow = Widths([0, 3, 0, 61]);
        let parts = [0, 7, 0, u32::MAX];
        assert_eq!(narrow.pack::<u64>(parts), 7 << 61 | u64::from(u32::MAX));
        assert_eq!(u128::from(narrow.pack::<u64>(parts)), narrow.pack::<u128>(parts));
        let narrow = Widths([5, 0, 31, 12]);
        let parts = [0x15, 0, 0x5555_5555, 0xaaa];
        assert_eq!(narrow.parts(narrow.pack::<u64>(parts)), parts);
        assert_eq!(narrow.parts(narrow.pack::<u128>(parts)), parts);
    }
}
