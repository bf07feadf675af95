//! The name that occurs most often in a stream of names, in bounded memory.

use std::sync::Arc;

use rustc_hash::FxHashMap;

/// Counts names by the algorithm of Misra and Gries: a name that makes up more than one in
/// [`Heaviest::NAMES`] of all is never lost, and its count is low by at most that share.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heaviest {
    counts: FxHashMap<Arc<str>, u64>,
    all: u64,
}

impl Heaviest {
    /// The number of names that are counted at a time.
    const NAMES: usize = 64;

    /// Counts a name once.
    pub fn add(&mut self, name: &str) {
        self.all += 1;
        if let Some(count) = self.counts.get_mut(name) {
            *count += 1;
        } else if self.counts.len() < Self::NAMES {
            self.counts.insert(name.into(), 1);
        } else {
            self.counts.retain(|_, count| {
                *count -= 1;
                *count > 0
            });
        }
    }

    /// Returns the name that occurs most often, with its share of all names; `None` if there were
    /// no names, or none of them occurs often.
    pub fn most(&self) -> Option<(&str, f64)> {
        let (name, count) = self.counts.iter().max_by_key(|(name, count)| (**count, *name))?;
        Some((name, *count as f64 / self.all as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frequent_name_is_found_among_any_number_of_others() {
        let mut names = Heaviest::default();
        assert!(names.most().is_none());
        for at in 0..100_000u64 {
            names.add(if at % 10 < 3 { "storm" } else { "sh" });
            names.add(&format!("pid-{at}"));
        }
        let (name, share) = names.most().unwrap();
        assert_eq!(name, "sh");
        assert!((0.35 - 1.0 / Heaviest::NAMES as f64..=0.35).contains(&share), "{share}");
        assert!(names.counts.len() <= Heaviest::NAMES);
    }
}
