//! Makes a document smaller until it fits into a number of bytes, and keeps it valid.
//!
//! Only what its schema allows is taken away: rows from the ends of lists, which are ordered by
//! importance, the middle of free texts, and digits of fractions. Lists of a fixed length, words of
//! an enumeration and fields stay.

use precise_model::CompactSort as _;
use precise_model::safe_json;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

/// Lists that give way first: details of the verdict, which an answer has in short anyway, and
/// histograms, of which percentiles stay.
const DETAILS: [&str; 3] = ["buckets", "ledger", "rates"];
/// Entries that every list keeps before some get more: the outer ones first, so that an answer has
/// many rows with few details and not the reverse.
const FEW_ROWS: usize = 3;
/// Number of lists that may get more.
const GROWN: usize = 24;
/// Significant digits of fractions. Intervals are wider than what this leaves out.
const DIGITS: usize = 4;
/// Longest text of an answer, in characters, and the lengths that are tried if it does not fit.
const TEXTS: [usize; 4] = [240, 120, 60, 30];
/// Levels of references that are followed in a schema.
const REFERENCES: usize = 8;
/// Levels of a document that are kept: serde_json reads no more than 128.
const DEEPEST: usize = 100;
/// Number of lists whose cuts are reported one by one.
const REPORTED: usize = 4;

/// A list that was cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CutList {
    /// JSON pointer to the list, below `answer`.
    pub list: String,
    /// Number of entries in the answer.
    pub shown: u64,
    /// Number of entries in the whole document.
    pub of: u64,
}

/// What an answer left out to fit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct AnswerCuts {
    /// The first lists that were cut, in the order of the document.
    pub lists: Vec<CutList>,
    /// Number of further lists that were cut.
    pub more_lists: u64,
    /// Number of texts that lost their middle, which `…` stands for.
    pub texts: u64,
}

impl AnswerCuts {
    /// Returns whether nothing was left out.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

/// Limits for the parts of a document.
#[derive(Clone, Debug)]
struct PartLimits {
    /// Entries of a list.
    rows: usize,
    /// Entries of the lists in [`DETAILS`].
    details: usize,
    /// Characters of a text.
    text: usize,
    /// Lists with a limit of their own.
    own: Vec<(String, usize)>,
}

/// Returns as much of a document as fits into `bytes`, as compact JSON, and what was left out.
/// `None` if not even the document with empty lists fits.
pub fn fit(document: &Value, schema: &Value, bytes: usize) -> Option<(Value, AnswerCuts)> {
    let root = Schemas { root: schema };
    let fits = |limits: &PartLimits| {
        let mut shrink =
            Shrink { schemas: root, limits, left_out: AnswerCuts::default(), longest: Vec::new() };
        let value = shrink.value(document, &[schema], "", "", 0);
        let size = safe_json::compact(&value).map_or(usize::MAX, |text| text.len());
        (size <= bytes).then_some((value, shrink.left_out, shrink.longest))
    };
    let most = longest_list(document);
    for text in TEXTS {
        for details in [usize::MAX, 0] {
            let limits = |rows| PartLimits { rows, details, text, own: Vec::new() };
            if let Some((value, left_out, _)) = fits(&limits(usize::MAX)) {
                return Some((value, left_out));
            }
            // With details the rest must fit as a whole: rows are worth more than they are.
            if details > 0 {
                continue;
            }
            let least = if text == TEXTS[TEXTS.len() - 1] { 0 } else { 1 };
            let Some(rows) = largest(least, most, |rows| fits(&limits(rows)).is_some()) else { continue };
            return grow(limits(rows.min(FEW_ROWS)), fits);
        }
    }
    None
}

/// Gives the room that equal limits leave to lists that were cut: the outer ones first, and details
/// last.
fn grow(
    mut limits: PartLimits,
    fits: impl Fn(&PartLimits) -> Option<(Value, AnswerCuts, Vec<CutPlace>)>,
) -> Option<(Value, AnswerCuts)> {
    let (mut value, mut left_out, mut lists) = fits(&limits)?;
    lists.compact_sort_by_key(|list| (list.is_detail, list.at.matches('/').count()));
    for CutPlace { at, length, is_detail } in lists.into_iter().take(GROWN) {
        let with = |rows| {
            let mut own = limits.own.clone();
            own.push((at.clone(), rows));
            PartLimits { own, ..limits.clone() }
        };
        let least = if is_detail { limits.details } else { limits.rows };
        let more = largest(least.saturating_add(1), length, |rows| fits(&with(rows)).is_some());
        if let Some(grown) = more.map(with) {
            let (larger, less, _) = fits(&grown)?;
            (value, left_out, limits) = (larger, less, grown);
        }
    }
    Some((value, left_out))
}

/// Returns the largest number from `least` to `most` that is good; `None` if `least` is not.
fn largest(least: usize, most: usize, good: impl Fn(usize) -> bool) -> Option<usize> {
    if least > most || !good(least) {
        return None;
    }
    let (mut low, mut high) = (least, most);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if good(middle) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Some(low)
}

/// Returns the length of the longest list of a document.
fn longest_list(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(longest_list).max().unwrap_or(0).max(items.len()),
        Value::Object(fields) => fields.values().map(longest_list).max().unwrap_or(0),
        _ => 0,
    }
}

/// A schema and its definitions.
#[derive(Clone, Copy)]
struct Schemas<'a> {
    root: &'a Value,
}

impl<'a> Schemas<'a> {
    /// Returns a schema, what it refers to, and its alternatives, one after the other.
    fn all(self, schema: &'a Value, levels: usize, found: &mut Vec<&'a Value>) {
        if levels == 0 {
            return;
        }
        if let Some(to) = schema["$ref"].as_str().and_then(|to| to.strip_prefix('#')) {
            self.root.pointer(to).into_iter().for_each(|to| self.all(to, levels - 1, found));
        }
        for several in ["anyOf", "oneOf", "allOf"] {
            let several = schema[several].as_array().into_iter().flatten();
            several.for_each(|one| self.all(one, levels - 1, found));
        }
        found.push(schema);
    }

    fn each(self, schemas: &[&'a Value]) -> Vec<&'a Value> {
        let mut found = Vec::new();
        schemas.iter().for_each(|schema| self.all(schema, REFERENCES, &mut found));
        found
    }
}

/// Returns whether a schema says something about a kind of value.
fn is_of(schema: &Value, kind: &str) -> bool {
    schema["type"] == kind
        || schema["type"].as_array().is_some_and(|kinds| kinds.iter().any(|one| one == kind))
}

/// Makes a smaller copy of a document.
struct Shrink<'a> {
    schemas: Schemas<'a>,
    limits: &'a PartLimits,
    left_out: AnswerCuts,
    /// Lists that were cut by a limit that is not their own.
    longest: Vec<CutPlace>,
}

/// A list that was cut by a limit of all lists.
struct CutPlace {
    at: String,
    length: usize,
    is_detail: bool,
}

impl<'a> Shrink<'a> {
    fn value(&mut self, value: &Value, schemas: &[&'a Value], at: &str, name: &str, depth: usize) -> Value {
        let each = self.schemas.each(schemas);
        match value {
            Value::Object(fields) => {
                let of = |key: &str| -> Vec<&'a Value> {
                    let field = |schema: &&'a Value| {
                        let schema: &'a Value = schema;
                        schema["properties"].get(key).or_else(|| schema.get("additionalProperties"))
                    };
                    each.iter().filter_map(field).collect()
                };
                let shrunk = fields.iter().map(|(key, field)| {
                    let below = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                    (key.clone(), self.value(field, &of(key), &below, key, depth + 1))
                });
                Value::Object(shrunk.collect())
            }
            Value::Array(items) => {
                let lists: Vec<_> = each.iter().copied().filter(|schema| is_of(schema, "array")).collect();
                let fixed =
                    |schema: &&Value| schema.get("minItems").is_some() || schema.get("prefixItems").is_some();
                let kept = match lists.is_empty() || lists.iter().any(fixed) {
                    true => items.len(),
                    false => self.kept(items.len(), at, name, depth),
                };
                let of: Vec<&'a Value> = lists.iter().filter_map(|schema| schema.get("items")).collect();
                let items = items.iter().take(kept).enumerate();
                let shrunk =
                    items.map(|(index, item)| self.value(item, &of, &format!("{at}/{index}"), "", depth + 1));
                Value::Array(shrunk.collect())
            }
            Value::String(text) => {
                let bound = |schema: &&Value| {
                    ["const", "enum", "format", "pattern"].iter().any(|key| schema.get(key).is_some())
                };
                let free = each.iter().any(|schema| is_of(schema, "string")) && !each.iter().any(bound);
                Value::String(if free { self.text(text) } else { text.clone() })
            }
            Value::Number(number) if number.is_f64() => {
                let rounded =
                    number.as_f64().and_then(|value| format!("{value:.*e}", DIGITS - 1).parse().ok());
                rounded.and_then(serde_json::Number::from_f64).map_or_else(|| value.clone(), Value::Number)
            }
            other => other.clone(),
        }
    }

    /// Returns the number of entries of a list that stay.
    fn kept(&mut self, length: usize, at: &str, name: &str, depth: usize) -> usize {
        let own = self.limits.own.iter().rev().find(|(list, _)| list == at);
        let most = match own {
            _ if depth >= DEEPEST => 0,
            Some((_, own)) => *own,
            None if DETAILS.contains(&name) => self.limits.details,
            None => self.limits.rows,
        };
        if length <= most {
            return length;
        }
        if own.is_none() && depth < DEEPEST {
            let is_detail = DETAILS.contains(&name);
            self.longest.push(CutPlace { at: at.to_owned(), length, is_detail });
        }
        if self.left_out.lists.len() < REPORTED {
            let list = shorten(at, 80);
            self.left_out.lists.push(CutList { list, shown: most as u64, of: length as u64 });
        } else {
            self.left_out.more_lists += 1;
        }
        most
    }

    fn text(&mut self, text: &str) -> String {
        let short = shorten(text, self.limits.text);
        self.left_out.texts += u64::from(short.len() != text.len());
        short
    }
}

/// Returns a text in at most `most` characters, with `…` in place of its middle.
pub fn shorten(text: &str, most: usize) -> String {
    let length = text.chars().count();
    if length <= most {
        return text.to_owned();
    }
    let rest = most.saturating_sub(1);
    let (head, tail) = (rest - rest / 2, rest / 2);
    text.chars().take(head).chain(['…']).chain(text.chars().skip(length - tail)).collect()
}
