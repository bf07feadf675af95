//! A table: its parts, how it is built, and how it is checked.

use precise_common::unwind::{PAGE_BITS, Rule, bp, kind, row};
use rustc_hash::FxHashMap;
use serde::{Deserialize, Serialize};

/// Maximum number of rows: 32 MB.
const MAX_ROWS: usize = 8_000_000;
/// Maximum number of pages: 1 GiB of addresses.
const MAX_PAGES: usize = 1 << (30 - PAGE_BITS);
/// Maximum number of rules. Those beyond it count as unsupported. The largest programs have a
/// thousand.
const MAX_RULES: usize = 8192;
#[cfg(test)]
pub(super) const LIMITS: (usize, usize, usize) = (MAX_ROWS, MAX_PAGES, MAX_RULES);

/// An unwind table of a file, in the format of [`precise_common::unwind`].
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UnwindTable {
    /// The number of the first page: its ELF address, shifted by [`PAGE_BITS`].
    pub first: u32,
    /// The number of rows of each page.
    pub pages: Vec<u32>,
    /// The rows of all pages, one behind another. Their rules are indexes into `rules`.
    #[serde(with = "words")]
    pub rows: Vec<u32>,
    /// The rules.
    #[serde(with = "rules")]
    pub rules: Vec<Rule>,
}

impl UnwindTable {
    /// Checks what a table must be so that addresses can be looked up in it, and in nothing else.
    pub(super) fn check(&self) -> Result<(), &'static str> {
        if self.pages.is_empty() || self.pages.len() > MAX_PAGES || self.rows.len() > MAX_ROWS {
            return Err("its unwind table is too large, or empty");
        }
        if self.first.checked_add(self.pages.len() as u32).is_none() {
            return Err("its unwind table is for addresses that do not exist");
        }
        if self.pages.iter().map(|&rows| u64::from(rows)).sum::<u64>() != self.rows.len() as u64 {
            return Err("the pages of its unwind table have other numbers of rows than the table");
        }
        if self.pages.first() == Some(&0) || self.rows.first().is_none_or(|&first| row::low(first) != 0) {
            return Err("its unwind table does not begin at the start of a page");
        }
        if self.rules.len() > MAX_RULES
            || self.rows.iter().any(|&row| row::rule(row) as usize >= self.rules.len())
        {
            return Err("a row of its unwind table has no rule");
        }
        let mut rest = &self.rows[..];
        for &count in &self.pages {
            let (rows, behind) = rest.split_at_checked(count as usize).unwrap_or_default();
            if !rows.is_sorted_by(|a, b| row::low(*a) < row::low(*b)) {
                return Err("the rows of its unwind table are not in order");
            }
            rest = behind;
        }
        Ok(())
    }
}

/// Builds a table from functions in the order of their addresses.
#[derive(Debug, Default)]
pub(super) struct Builder {
    table: UnwindTable,
    /// The index of each rule.
    index: FxHashMap<Rule, u16>,
    /// The last row: its rule, and the index of that.
    last: Option<(Rule, u16)>,
    /// The address after the last function.
    end: u64,
    /// Whether large gaps between functions are code that keeps frame pointers.
    frame_pointers: bool,
}

/// Size in bytes of a gap between functions from which on it is the code of a compiler that writes
/// no unwind information, such as the built-in functions of V8. What lies between functions
/// otherwise is padding, and assembly of a few instructions.
const COMPILED: u64 = 16 << 10;

/// How code with frame pointers is unwound, but for its first and last instructions.
const FRAME_POINTER: Rule = Rule::pack(kind::BP, 16, 0, bp::AT_CFA, -16);

impl Builder {
    /// Creates a builder. `frame_pointers`: whether code without unwind information is unwound by
    /// frame pointers.
    pub fn new(frame_pointers: bool) -> Self {
        Self { frame_pointers, ..Self::default() }
    }

    /// Adds a function by its rows. There is a gap between functions that do not follow each other.
    ///
    /// # Errors
    ///
    /// Returns why there is no room for it.
    pub fn function(&mut self, rows: &[(u64, Rule)], end: u64) -> Result<(), String> {
        let Some(&(start, _)) = rows.first() else { return Ok(()) };
        if self.last.is_none() {
            let first = start >> PAGE_BITS;
            self.table.first = u32::try_from(first)
                .map_err(|_| format!("has code at {start:#x}, which no program can have"))?;
            self.end = first << PAGE_BITS;
        }
        if self.end < start {
            let compiled = self.frame_pointers && start - self.end >= COMPILED;
            self.push(self.end, if compiled { FRAME_POINTER } else { Rule::GAP })?;
        }
        for &(address, rule) in rows {
            self.push(address, rule)?;
        }
        self.end = end;
        Ok(())
    }

    /// Returns the table; `None` if it has no function.
    pub fn finish(mut self) -> Option<UnwindTable> {
        self.last?;
        // If there is no room for the end, then the last rule holds for code that does not exist.
        let _at_the_limit = self.push(self.end, Rule::GAP);
        Some(self.table)
    }

    fn push(&mut self, address: u64, rule: Rule) -> Result<(), String> {
        if self.last.is_some_and(|(last, _)| last == rule) {
            return Ok(());
        }
        let page = (address >> PAGE_BITS).saturating_sub(u64::from(self.table.first));
        let pages = usize::try_from(page).unwrap_or(usize::MAX).saturating_add(1);
        if pages > MAX_PAGES {
            return Err(format!("has code that spans more than {} MiB", MAX_PAGES >> (20 - PAGE_BITS)));
        }
        if self.table.rows.len() == MAX_ROWS {
            return Err(format!("has unwind information of more than {MAX_ROWS} rows"));
        }
        if pages > self.table.pages.len() {
            self.table.pages.resize(pages, 0);
        }
        let index = self.rule(rule);
        self.table.rows.push(row::pack(address as u16, index));
        if let Some(count) = self.table.pages.last_mut() {
            *count += 1;
        }
        self.last = Some((rule, index));
        Ok(())
    }

    /// Returns the index of a rule.
    fn rule(&mut self, rule: Rule) -> u16 {
        if let Some(&index) = self.index.get(&rule) {
            return index;
        }
        // The last place is for what has none.
        let rule = if self.table.rules.len() < MAX_RULES - 1 { rule } else { Rule::UNSUPPORTED };
        let next = self.table.rules.len() as u16;
        let rules = &mut self.table.rules;
        *self.index.entry(rule).or_insert_with(|| {
            rules.push(rule);
            next
        })
    }
}

/// Rows in messages: their bytes, which are copied and not parsed one by one.
mod words {
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(words: &[u32], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u32>, D::Error> {
        let bytes = deserializer.deserialize_bytes(super::Raw)?;
        Ok(bytes.as_chunks().0.iter().map(|word| u32::from_le_bytes(*word)).collect())
    }
}

/// Rules in messages.
mod rules {
    use precise_common::unwind::Rule;
    use serde::{Deserializer, Serializer};

    pub fn serialize<S: Serializer>(rules: &[Rule], serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&rules.iter().flat_map(|rule| rule.0.to_le_bytes()).collect::<Vec<u8>>())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Rule>, D::Error> {
        let bytes = deserializer.deserialize_bytes(super::Raw)?;
        Ok(bytes.as_chunks().0.iter().map(|word| Rule(u64::from_le_bytes(*word))).collect())
    }
}

/// Takes the bytes of a message without a copy.
struct Raw;

impl<'de> serde::de::Visitor<'de> for Raw {
    type Value = &'de [u8];

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("bytes")
    }

    fn visit_borrowed_bytes<E>(self, bytes: &'de [u8]) -> Result<Self::Value, E> {
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Functions that end where a gap of this size begins, and the rule of the gap.
    fn rule_of_gap(size: u64, frame_pointers: bool) -> Option<Rule> {
        let mut builder = Builder::new(frame_pointers);
        builder.function(&[(0, Rule::ROOT)], 0x100).unwrap();
        builder.function(&[(0x100 + size, Rule::SIGNAL)], 0x200 + size).unwrap();
        let table = builder.finish()?;
        // Rules are in the order of the addresses.
        table.rules.get(1).copied()
    }

    #[test]
    fn large_gaps_are_code_with_frame_pointers() {
        assert_eq!(rule_of_gap(COMPILED - 1, true), Some(Rule::GAP));
        assert_eq!(rule_of_gap(COMPILED, true), Some(FRAME_POINTER));
        assert_eq!(rule_of_gap(COMPILED, false), Some(Rule::GAP));
    }
}
