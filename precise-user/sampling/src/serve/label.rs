//! The labels of series: group keys of a report that have few values.

use std::borrow::Cow;

use precise_model::keys::Key;
use precise_model::suggest::nearest;
use precise_model::text::sanitize;
use precise_model::values::Value;
use precise_model::{Capture, Dimension};

/// The number of characters of a mistyped word that an error repeats.
const LONGEST_WORD: usize = 40;

/// A group key with the name of its label. Prometheus allows no hyphen in a label name.
const LABELS: &[(Key, &str)] = &[
    (Key::Cgroup, "cgroup"),
    (Key::Process, "process"),
    (Key::Function, "function"),
    (Key::Module, "module"),
    (Key::Cpu, "cpu"),
    (Key::Node, "node"),
    (Key::Level, "level"),
    (Key::Snoop, "snoop"),
    (Key::Tlb, "tlb"),
    (Key::Op, "op"),
    (Key::Locked, "locked"),
    (Key::Remote, "remote"),
    (Key::Outcome, "outcome"),
    (Key::PageSize, "page_size"),
    (Key::Kernel, "mode"),
];

/// A group key that can be a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeriesLabel {
    key: Key,
    name: &'static str,
}

/// Why a word is not a valid label.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnfitLabel {
    /// The word is not a group key.
    #[error("{word:?} is not a label.{hint} Valid labels: {list}.", list = SeriesLabel::list(),
        hint = .nearest.map_or(String::new(), |name| format!(" Did you mean `{name}`?")))]
    Unknown {
        /// The word.
        word: String,
        /// The label that is closest to it, if one is.
        nearest: Option<&'static str>,
    },
    /// The number of the key's values is not bounded.
    #[error("{0} cannot be a label: it has no bounded number of values, and each would be a series of \
        its own. Valid labels: {list}.", list = SeriesLabel::list())]
    Unbounded(Key),
    /// The key is read from binaries.
    #[error("{0} cannot be a label: it is read from the debug information of binaries, which takes \
        too long for a run without an end. Group a rolling capture with `precise report --by {0}`. \
        Valid labels: {list}.", list = SeriesLabel::list())]
    FromBinaries(Key),
}

impl SeriesLabel {
    /// Returns every label, in the order of the documentation.
    pub fn all() -> impl Iterator<Item = Self> {
        LABELS.iter().map(|(key, name)| Self { key: *key, name })
    }

    /// Parses a comma-separated list of keys and removes duplicates.
    ///
    /// # Errors
    ///
    /// Returns an error for the first word that is not a key, or that cannot be a label.
    pub fn parse_list(text: &str) -> Result<Vec<Self>, UnfitLabel> {
        let mut labels = Vec::new();
        for word in text.split(',').map(str::trim).filter(|word| !word.is_empty()) {
            let key = Key::parse(word).map_err(|_| Self::unknown(word))?;
            let label =
                Self::all().find(|label| label.key == key).ok_or_else(|| match key.needs_types() {
                    true => UnfitLabel::FromBinaries(key),
                    false => UnfitLabel::Unbounded(key),
                })?;
            if !labels.contains(&label) {
                labels.push(label);
            }
        }
        Ok(labels)
    }

    fn unknown(word: &str) -> UnfitLabel {
        let nearest = nearest(word, Self::all().map(|label| label.key.name()));
        UnfitLabel::Unknown { word: word.chars().take(LONGEST_WORD).collect(), nearest }
    }

    fn list() -> String {
        Self::all().map(|label| label.key.name()).collect::<Vec<_>>().join(", ")
    }

    /// Returns the group key.
    pub fn key(self) -> Key {
        self.key
    }

    /// Returns the name of the label on the page.
    pub fn name(self) -> &'static str {
        self.name
    }

    /// Returns the dimension by which the run must group for this label.
    pub fn dimension(self) -> Option<Dimension> {
        self.key.dimension()
    }
}

/// The name of a label and its value, safe to print.
pub(super) type LabelPair = (&'static str, Cow<'static, str>);

/// Returns the labels of one combination of values. A cgroup adds the labels of its owner.
///
/// The values are sanitized, because pages are also read in terminals. Escaping for the text format
/// is left to the encoder.
pub(super) fn pairs(labels: &[SeriesLabel], values: &[Value], named: &Capture) -> Vec<LabelPair> {
    let mut pairs = Vec::new();
    for (label, value) in labels.iter().zip(values) {
        let text = value.text();
        let owner = named.meta.owner(&text).filter(|_| label.key == Key::Cgroup);
        pairs.push((label.name, sanitize(&text).into()));
        let Some(owner) = owner else { continue };
        for (name, known) in [
            ("unit", &owner.unit),
            ("container", &owner.container),
            ("container_id", &owner.container_id),
            ("pod", &owner.pod),
            ("namespace", &owner.namespace),
        ] {
            pairs.extend(known.iter().map(|known| (name, sanitize(known).into())));
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use super::*;
    use precise_model::Owner;

    #[test]
    fn labels_are_keys_with_few_values() {
        let names = |text| {
            SeriesLabel::parse_list(text)
                .map(|labels| labels.iter().map(|label| label.name()).collect::<Vec<_>>())
                .map_err(|error| error.to_string())
        };
        assert_eq!(names("cgroup,level,page-size,cgroup"), Ok(vec!["cgroup", "level", "page_size"]));
        assert_eq!(names("comm"), Ok(vec!["process"]), "perf's name for it");
        assert_eq!(names(""), Ok(vec![]));
        let unbounded = names("cgroup,address").unwrap_err();
        assert!(unbounded.starts_with("address cannot be a label"), "{unbounded}");
        assert!(unbounded.contains("Valid labels: cgroup, process, function,"), "{unbounded}");
        let unknown = names("cgruop").unwrap_err();
        assert!(unknown.contains("is not a label. Did you mean `cgroup`?"), "{unknown}");
        assert!(!unknown.contains("address"), "a key that would be refused: {unknown}");
        for label in SeriesLabel::all() {
            assert!(label.name().chars().all(|c| c.is_ascii_lowercase() || c == '_'), "{}", label.name());
        }
    }

    #[test]
    fn a_cgroup_brings_its_owner_and_nobody_gives_orders() {
        let path = "/kubepods/pod1/\u{1b}[31mred";
        let mut named = Capture::default();
        named.meta.owners.push(Owner {
            path: path.to_owned(),
            container: Some("web\u{202e}".to_owned()),
            pod: Some("shop-0".to_owned()),
            namespace: Some("shop".to_owned()),
            ..Owner::default()
        });
        let labels = SeriesLabel::parse_list("cgroup,level").unwrap();
        let values = [
            Value::Owned { path: path.to_owned(), name: "shop".to_owned() },
            Value::Text("L1 hit".to_owned()),
        ];
        let found = pairs(&labels, &values, &named);
        let expected = [
            ("cgroup", "/kubepods/pod1/\u{fffd}[31mred"),
            ("container", "web\u{fffd}"),
            ("pod", "shop-0"),
            ("namespace", "shop"),
            ("level", "L1 hit"),
        ];
        assert_eq!(found, expected.map(|(name, value)| (name, value.into())));
    }
}
