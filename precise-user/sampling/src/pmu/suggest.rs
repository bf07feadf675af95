//! "Did you mean": the nearest of the known names.

/// The known name that is nearest to `word`, if it is near enough to be a slip: one change in three letters
/// at most.
pub(super) fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<String> {
    let word = word.to_ascii_lowercase();
    let limit = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .map(|name| (distance(&word, &name.to_ascii_lowercase()), name))
        .filter(|&(distance, _)| distance <= limit)
        .min_by_key(|&(distance, _)| distance)
        .map(|(_, name)| name.to_owned())
}

/// Insertions, deletions, replacements and swaps of neighbours that make `b` of `a`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before: Vec<usize> = Vec::new();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut next = vec![i];
        for j in 1..=b.len() {
            let change = row[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = change.min(row[j] + 1).min(next[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(before[j - 2] + 1);
            }
            next.push(best);
        }
        before = std::mem::replace(&mut row, next);
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slips_are_found_and_other_words_are_not() {
        let known = ["cycles", "instructions", "page-faults", "cpu-clock"];
        assert_eq!(nearest("cylces", known).as_deref(), Some("cycles"));
        assert_eq!(nearest("page-fault", known).as_deref(), Some("page-faults"));
        assert_eq!(nearest("Cycles", known).as_deref(), Some("cycles"));
        assert_eq!(nearest("mem-loads", known), None);
        assert_eq!(nearest("", known), None);
        assert_eq!((distance("", "abc"), distance("abcd", "acbd"), distance("abc", "abc")), (3, 1, 0));
    }
}
