//! Tells false sharing from true sharing: do threads use the same bytes of a line, or only
//! neighbouring ones?

use schemars::JsonSchema;
use serde::Serialize;

/// Minimum number of samples of a line for a verdict. If none of 20 sampled accesses overlaps, at
/// most 16 % of all accesses do (at 95 % confidence).
pub const MIN_LINE_SAMPLES: u64 = 20;
/// Largest assumed width, in bytes, of an access whose width is unknown: an integer register.
const WIDEST: u32 = 8;
/// Percentage of a line's samples below which accesses are ignored as strays. An example is the
/// code that initialized the line.
const STRAY: u64 = 5;

/// The kind of sharing on a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SharingVerdict {
    /// Different threads use different bytes, and at least one thread writes. Padding removes the
    /// contention.
    FalseSharing,
    /// Different threads use the same bytes, and at least one thread writes them. Padding does not
    /// help.
    TrueSharing,
    /// Some bytes are shared; others are not, but their accesses are slowed down too.
    Both,
    /// Only one thread was sampled. The line moved with the thread, or its other users were not
    /// sampled.
    OneThread,
    /// No write to the line was sampled.
    NoWriter,
    /// Too few samples for a verdict.
    TooFew,
    /// The verdict depends on the widths of accesses, and these are unknown.
    WidthNotKnown,
    /// The recorded addresses are too coarse, or neither threads nor CPUs were recorded.
    NotRecorded,
}

impl SharingVerdict {
    /// Returns the verdict in a few words.
    pub const fn words(self) -> &'static str {
        match self {
            Self::FalseSharing => "false sharing",
            Self::TrueSharing => "true sharing",
            Self::Both => "false and true sharing",
            Self::OneThread => "single thread",
            Self::NoWriter => "no writer sampled",
            Self::TooFew => "too few samples",
            Self::WidthNotKnown => "width unknown",
            Self::NotRecorded => "not recorded",
        }
    }
}

/// Accesses of one thread to the same bytes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Touch {
    /// The thread; the CPU if threads were not recorded.
    pub actor: u64,
    /// Offset of the first byte in the line.
    pub offset: u32,
    /// Width in bytes; `None` if it is unknown.
    pub width: Option<u32>,
    /// Whether the access writes.
    pub writes: bool,
    /// Number of samples.
    pub samples: u64,
}

/// Returns the kind of sharing that the accesses of a line show. Offsets are multiples of `granule`
/// bytes.
///
/// A touch is *shared* if touches of other threads overlap it, at least one side of the overlap
/// writes, and the overlapping touches are not strays relative to it. An unknown width is between 1
/// and 8 bytes; the verdict is given only if it is the same for both extremes.
pub fn judge(touches: &[Touch], granule: u64) -> SharingVerdict {
    let total = touches.iter().fold(0u64, |sum, touch| sum.saturating_add(touch.samples));
    if total < MIN_LINE_SAMPLES {
        return SharingVerdict::TooFew;
    }
    let Some(first) = touches.first() else { return SharingVerdict::TooFew };
    if touches.iter().all(|touch| touch.actor == first.actor) {
        return SharingVerdict::OneThread;
    }
    if !touches.iter().any(|touch| touch.writes) {
        return SharingVerdict::NoWriter;
    }
    let granule = u32::try_from(granule).unwrap_or(u32::MAX);
    let widest = with_widths(touches, total, |touch| touch.width.unwrap_or(WIDEST).max(granule));
    if granule > 1 {
        // Accesses in different granules are certainly disjoint; accesses in the same granule may
        // be disjoint or not.
        return if widest == SharingVerdict::FalseSharing { widest } else { SharingVerdict::NotRecorded };
    }
    let narrowest = with_widths(touches, total, |touch| touch.width.unwrap_or(1));
    if narrowest == widest { widest } else { SharingVerdict::WidthNotKnown }
}

/// Returns whether two touches of different threads overlap and at least one of them writes.
pub(crate) fn meet(a: &Touch, b: &Touch, width: impl Fn(&Touch) -> u32) -> bool {
    let end = |touch: &Touch| touch.offset.saturating_add(width(touch));
    a.actor != b.actor && (a.writes || b.writes) && a.offset < end(b) && b.offset < end(a)
}

fn with_widths(touches: &[Touch], total: u64, width: impl Fn(&Touch) -> u32 + Copy) -> SharingVerdict {
    let shared = |touch: &&Touch| {
        let others = touches.iter().filter(|other| meet(touch, other, width));
        let others = others.fold(0u64, |sum, other| sum.saturating_add(other.samples));
        others > 0 && !is_stray(others, touch.samples)
    };
    let shared = touches.iter().filter(shared).fold(0u64, |sum, touch| sum.saturating_add(touch.samples));
    if shared == 0 || is_stray(shared, total) {
        SharingVerdict::FalseSharing
    } else if is_stray(total - shared, total) {
        SharingVerdict::TrueSharing
    } else {
        SharingVerdict::Both
    }
}

pub(crate) fn is_stray(part: u64, whole: u64) -> bool {
    u128::from(part) * 100 < u128::from(whole) * u128::from(STRAY)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(actor: u64, offset: u32, width: Option<u32>, writes: bool, samples: u64) -> Touch {
        Touch { actor, offset, width, writes, samples }
    }

    #[test]
    fn neighbours_are_false_sharing_and_the_same_bytes_true() {
        let apart = [touch(1, 0, Some(8), true, 50), touch(2, 8, Some(8), false, 50)];
        assert_eq!(judge(&apart, 1), SharingVerdict::FalseSharing);
        let same = [touch(1, 0, Some(8), true, 50), touch(2, 4, Some(4), false, 50)];
        assert_eq!(judge(&same, 1), SharingVerdict::TrueSharing);
        let both = [apart[0], touch(2, 0, Some(8), false, 40), touch(3, 16, Some(8), true, 50)];
        assert_eq!(judge(&both, 1), SharingVerdict::Both);
    }

    #[test]
    fn who_set_it_up_does_not_make_it_true_sharing() {
        let counters = [
            touch(1, 0, Some(8), true, 500),
            touch(2, 8, Some(8), true, 500),
            touch(9, 0, Some(8), true, 1),
            touch(9, 8, Some(8), true, 1),
        ];
        assert_eq!(judge(&counters, 1), SharingVerdict::FalseSharing);
    }

    #[test]
    fn what_is_not_known_is_said() {
        let few = [touch(1, 0, Some(8), true, 9), touch(2, 8, Some(8), true, 10)];
        assert_eq!(judge(&few, 1), SharingVerdict::TooFew);
        assert_eq!(judge(&[], 1), SharingVerdict::TooFew);
        assert_eq!(judge(&[touch(1, 0, Some(8), true, 90)], 1), SharingVerdict::OneThread);
        let readers = [touch(1, 0, None, false, 90), touch(2, 0, None, false, 90)];
        assert_eq!(judge(&readers, 1), SharingVerdict::NoWriter);
    }

    #[test]
    fn a_width_that_is_not_known_decides_only_what_it_cannot_change() {
        let at = |offset| [touch(1, 0, None, true, 50), touch(2, offset, None, true, 50)];
        assert_eq!(judge(&at(0), 1), SharingVerdict::TrueSharing);
        assert_eq!(judge(&at(8), 1), SharingVerdict::FalseSharing);
        assert_eq!(judge(&at(4), 1), SharingVerdict::WidthNotKnown);
        // Known widths decide the verdict.
        let known = [touch(1, 0, Some(4), true, 50), touch(2, 4, Some(4), true, 50)];
        assert_eq!(judge(&known, 1), SharingVerdict::FalseSharing);
    }

    #[test]
    fn coarse_addresses_tell_neighbours_but_not_the_same_bytes() {
        let apart = [touch(1, 0, None, true, 50), touch(2, 8, None, true, 50)];
        assert_eq!(judge(&apart, 8), SharingVerdict::FalseSharing);
        assert_eq!(judge(&apart, 64), SharingVerdict::NotRecorded);
        assert_eq!(judge(&[apart[0], touch(2, 0, None, true, 50)], 8), SharingVerdict::NotRecorded);
    }
}
