//! Compares the chains of two profilers that took the same samples, and explains each difference.

use std::collections::BTreeMap;

use crate::chains::{ChainGroup, ChainsTaken, UserFrame};

/// How many differences of a kind are shown.
const SHOWN: usize = 3;

/// Why chains of the same sample differ.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChainDifference {
    /// perf's is the beginning of precise's: it has no further caller in this file.
    PerfEnds {
        /// The file of perf's last frame.
        file: String,
    },
    /// precise's is the beginning of perf's, for this reason.
    PreciseEnds {
        /// The reason, as captures have it.
        reason: String,
        /// The file of precise's last frame.
        file: String,
    },
    /// Both go on, to different callers.
    Apart {
        /// The file of the last common frame.
        file: String,
        /// Why precise's chain ends.
        reason: String,
    },
    /// perf has no sample with such a first instruction left: it has lost it.
    Lost,
    /// precise has no sample with such a first instruction left.
    OnlyPerf,
}

/// How two sets of chains of the same samples compare.
#[derive(Clone, Debug, Default)]
pub struct SameVerdict {
    /// Samples of precise.
    pub samples: u64,
    /// Samples of both.
    pub both: u64,
    /// Of these, samples whose frames have the same addresses.
    pub same: u64,
    /// Samples whose functions are the same, but not all addresses.
    pub same_functions: u64,
    /// All others, with a few of each kind.
    pub different: BTreeMap<ChainDifference, (u64, Vec<ChainPair>)>,
    /// Samples of precise whose chains are whole.
    pub whole: u64,
    /// Samples of precise by the reason why their chains end, and the file of the last frame.
    pub ends: BTreeMap<(String, String), u64>,
}

/// The chains of precise and of perf.
pub type ChainPair = (Vec<UserFrame>, Vec<UserFrame>);

/// Compares two sets of samples.
pub fn compare(precise: &ChainsTaken, perf: &ChainsTaken) -> SameVerdict {
    let mut verdict =
        SameVerdict { samples: precise.values().map(|group| group.samples).sum(), ..SameVerdict::default() };
    let whole = precise.values().filter(|group| matches!(group.end.as_str(), "root" | "kernel-only"));
    verdict.whole = whole.map(|group| group.samples).sum();
    for group in precise.values() {
        let file = group.frames.last().map(|frame| frame.file.clone()).unwrap_or_default();
        *verdict.ends.entry((group.end.clone(), file)).or_default() += group.samples;
    }
    let (mut ours, mut theirs) = (Vec::new(), perf.clone());
    for (addresses, group) in precise {
        let left = theirs.get_mut(addresses);
        let same = left.as_ref().map_or(0, |theirs| theirs.samples.min(group.samples));
        verdict.same += same;
        left.into_iter().for_each(|theirs| theirs.samples -= same);
        if group.samples > same {
            ours.push(ChainGroup { samples: group.samples - same, ..group.clone() });
        }
    }
    let mut theirs: Vec<ChainGroup> = theirs.into_values().filter(|group| group.samples > 0).collect();
    // The longest common parts first, so that a sample is compared with itself.
    let mut candidates = Vec::new();
    for (at, group) in ours.iter().enumerate() {
        for (other, theirs) in theirs.iter().enumerate() {
            let common = common(&group.frames, &theirs.frames);
            if common > 0 {
                candidates.push((common, at, other));
            }
        }
    }
    candidates.sort_unstable_by(|a, b| b.cmp(a));
    for (common, at, other) in candidates {
        let (Some(group), Some(theirs)) = (ours.get_mut(at), theirs.get_mut(other)) else { continue };
        let samples = group.samples.min(theirs.samples);
        if samples == 0 {
            continue;
        }
        group.samples -= samples;
        theirs.samples -= samples;
        verdict.add(common, group, &theirs.frames, samples);
    }
    for group in ours.iter().filter(|group| group.samples > 0) {
        verdict.note(ChainDifference::Lost, group.samples, (group.frames.clone(), Vec::new()));
    }
    for group in theirs.iter_mut().filter(|group| group.samples > 0) {
        let frames = std::mem::take(&mut group.frames);
        verdict.note(ChainDifference::OnlyPerf, group.samples, (Vec::new(), frames));
    }
    let lost = |kind: &ChainDifference| verdict.different.get(kind).map_or(0, |(samples, _)| *samples);
    verdict.both = verdict.samples - lost(&ChainDifference::Lost);
    verdict
}

/// Returns the number of frames that both chains begin with.
fn common(a: &[UserFrame], b: &[UserFrame]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a.address == b.address).count()
}

impl SameVerdict {
    /// Adds samples of a chain that perf has another chain for.
    fn add(&mut self, common: usize, ours: &ChainGroup, theirs: &[UserFrame], samples: u64) {
        let functions = |frames: &[UserFrame]| -> Vec<(String, String)> {
            frames.iter().map(|frame| (plain(&frame.function).to_owned(), frame.file.clone())).collect()
        };
        if functions(&ours.frames) == functions(theirs) {
            self.same_functions += samples;
            return;
        }
        let file = |frames: &[UserFrame], at: usize| {
            frames.get(at.saturating_sub(1)).map(|frame| frame.file.clone()).unwrap_or_default()
        };
        let difference = if common == theirs.len() {
            ChainDifference::PerfEnds { file: file(theirs, common) }
        } else if common == ours.frames.len() {
            ChainDifference::PreciseEnds { reason: ours.end.clone(), file: file(&ours.frames, common) }
        } else {
            ChainDifference::Apart { file: file(theirs, common), reason: ours.end.clone() }
        };
        self.note(difference, samples, (ours.frames.clone(), theirs.to_vec()));
    }

    fn note(&mut self, difference: ChainDifference, samples: u64, pair: ChainPair) {
        let (count, pairs) = self.different.entry(difference).or_default();
        *count += samples;
        if pairs.len() < SHOWN {
            pairs.push(pair);
        }
    }
}

/// Returns the name of a function without what compilers append to parts of it.
fn plain(function: &str) -> &str {
    let end = function.find(['(', '<', '@']).unwrap_or(function.len());
    let name = function.get(..end).unwrap_or(function);
    name.split(".cold").next().unwrap_or(name).split(".part").next().unwrap_or(name)
}
