//! "Did you mean": finds the known word that is closest to a mistyped one.

use strsim::osa_distance;

/// The largest number of slips that a suggestion corrects. With more, it would be a guess.
const MOST_SLIPS: usize = 3;

/// Returns the candidate that is closest to the mistyped `word`; `None` if none is close enough.
///
/// A candidate is close enough if it differs by at most one slip per three characters of `word`: at
/// least one and at most three slips, and fewer than `word` has characters. A slip is an extra, a
/// missing or a wrong character, or two neighbours that changed places. Upper and lower case are
/// the same. Of several equally close candidates, the first is returned.
///
/// ```
/// use precise_model::suggest::nearest;
///
/// assert_eq!(nearest("cgruop", ["cpu", "cgroup"]), Some("cgroup"));
/// assert_eq!(nearest("disk", ["cpu", "cgroup"]), None);
/// ```
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word = word.to_ascii_lowercase();
    let length = word.chars().count();
    let allowed = (length / 3).clamp(1, MOST_SLIPS).min(length.saturating_sub(1));
    // Lengths are compared first: the distance of long words is expensive, and `word` is user input
    // of any length.
    let near = |candidate: &&str| allowed > 0 && candidate.chars().count().abs_diff(length) <= allowed;
    candidates
        .into_iter()
        .filter(near)
        .map(|candidate| (osa_distance(&word, &candidate.to_ascii_lowercase()), candidate))
        .filter(|(slips, _)| *slips <= allowed)
        .min_by_key(|(slips, _)| *slips)
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let events = ["cycles", "instructions", "page-faults", "cpu-clock"];
        assert_eq!(nearest("cylces", events), Some("cycles"));
        assert_eq!(nearest("page-fault", events), Some("page-faults"));
        assert_eq!(nearest("Cycles", events), Some("cycles"));
        assert_eq!(nearest("mem-loads", events), None);
        assert_eq!(nearest("laod", ["load", "store"]), Some("load"));
        assert_eq!(nearest("mem_level", ["MEM_LVL", "mem_op"]), Some("MEM_LVL"));
        assert_eq!(nearest("xyz", ["load", "store"]), None);
    }

    #[test]
    fn short_words_are_near_to_few() {
        assert_eq!(nearest("", ["a", "load"]), None);
        assert_eq!(nearest("a", ["b", "ab"]), None);
        assert_eq!(nearest("ap", ["tid", "ip"]), Some("ip"));
    }

    #[test]
    fn no_more_than_three_slips_are_corrected() {
        let name = "mem_load_l3_miss_retired.remote_dram";
        assert_eq!(nearest("mem_load_l3_miss_retired.remote_d", [name]), Some(name));
        assert_eq!(nearest("mem_load_l3_miss_retired.remote_", [name]), None);
        assert_eq!(nearest(&"x".repeat(1 << 20), [name]), None);
    }
}
