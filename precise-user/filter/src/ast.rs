//! The filter as an expression over tests. [`Display`](fmt::Display) prints text that parses to the
//! same expression.

use std::fmt::{self, Write};

use super::term::{NamedValue, Term};

/// A filter expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// All parts hold. There are at least two; none of them is an `All`.
    All(Vec<Expr>),
    /// At least one part holds. There are at least two; none of them is an `Any`.
    Any(Vec<Expr>),
    /// The part does not hold.
    Not(Box<Expr>),
    /// One test.
    Test(TermTest),
}

/// A test of one term.
#[derive(Clone, Debug, PartialEq)]
pub enum TermTest {
    /// A comparison of a number with a bound: `latency >= 100`.
    Bound(Term, Order, u64),
    /// A number that has at least one of these bits: `addr & 0x20`.
    Bits(Term, u64),
    /// A number that is one of `items`, or none of them.
    Number {
        /// A term of [`TermKind::Number`](super::TermKind::Number).
        term: Term,
        /// Whether the test holds for numbers that are none of the items.
        negated: bool,
        /// The items; not empty.
        items: Vec<NumberItem>,
    },
    /// A named value that is one of `values`, or none of them.
    Class {
        /// A term of [`TermKind::Class`](super::TermKind::Class).
        term: Term,
        /// Whether the test holds for samples that have none of the values.
        negated: bool,
        /// The values, which belong to that term; not empty.
        values: Vec<NamedValue>,
    },
    /// A text that is one of `values`, or none of them.
    Text {
        /// A term of [`TermKind::Text`](super::TermKind::Text).
        term: Term,
        /// Whether the test holds for texts that are none of the values.
        negated: bool,
        /// The values; not empty.
        values: Vec<String>,
    },
}

/// An ordered comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// `<`
    Less,
    /// `<=`
    AtMost,
    /// `>`
    Greater,
    /// `>=`
    AtLeast,
}

/// A number, or a range of numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberItem {
    /// A single number.
    One(u64),
    /// The numbers from the first up to, but not including, the second, which is larger: `lo..hi`.
    Range(u64, u64),
    /// This number and all larger ones: `lo..`.
    From(u64),
}

impl NumberItem {
    /// Returns the first and the last number, both included.
    pub fn bounds(self) -> (u64, u64) {
        match self {
            Self::One(number) => (number, number),
            Self::Range(low, end) => (low, end.saturating_sub(1)),
            Self::From(low) => (low, u64::MAX),
        }
    }
}

impl Expr {
    /// Returns the expression that all `parts` hold; `None` if there are no parts.
    pub fn all(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::All(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        if flat.len() > 1 { Some(Self::All(flat)) } else { flat.pop() }
    }

    /// Returns the expression that any of `parts` holds; `None` if there are no parts.
    pub fn any(parts: impl IntoIterator<Item = Self>) -> Option<Self> {
        let mut flat = Vec::new();
        for part in parts {
            match part {
                Self::Any(inner) => flat.extend(inner),
                other => flat.push(other),
            }
        }
        if flat.len() > 1 { Some(Self::Any(flat)) } else { flat.pop() }
    }

    /// Returns the same filter with every negation moved into the tests, so that `Not` remains only
    /// before [`TermTest::Bits`].
    pub fn negations_inside(&self) -> Self {
        self.pushed(false)
    }

    fn pushed(&self, negate: bool) -> Self {
        match self {
            Self::Not(inner) => inner.pushed(!negate),
            Self::Test(test) => match (negate, test.negated()) {
                (false, _) => self.clone(),
                (true, Some(opposite)) => Self::Test(opposite),
                (true, None) => Self::Not(Box::new(self.clone())),
            },
            Self::All(parts) | Self::Any(parts) => {
                let pushed = parts.iter().map(|part| part.pushed(negate));
                // The list is not empty, so neither constructor returns `None`.
                let joined = if matches!(self, Self::All(_)) != negate {
                    Self::all(pushed)
                } else {
                    Self::any(pushed)
                };
                joined.unwrap_or_else(|| self.clone())
            }
        }
    }

    /// Returns the tests, in the order of the text.
    pub fn tests(&self) -> Vec<&TermTest> {
        match self {
            Self::All(parts) | Self::Any(parts) => parts.iter().flat_map(Self::tests).collect(),
            Self::Not(inner) => inner.tests(),
            Self::Test(test) => vec![test],
        }
    }
}

impl TermTest {
    /// Returns the term that is tested.
    pub fn term(&self) -> Term {
        match self {
            Self::Bound(term, ..) | Self::Bits(term, _) => *term,
            Self::Number { term, .. } | Self::Class { term, .. } | Self::Text { term, .. } => *term,
        }
    }

    /// Returns the test that holds exactly if this one does not; `None` if the grammar has none.
    pub fn negated(&self) -> Option<Self> {
        let mut opposite = self.clone();
        match &mut opposite {
            Self::Bound(_, order, _) => {
                *order = match order {
                    Order::Less => Order::AtLeast,
                    Order::AtMost => Order::Greater,
                    Order::Greater => Order::AtMost,
                    Order::AtLeast => Order::Less,
                }
            }
            Self::Bits(..) => return None,
            Self::Number { negated, .. } | Self::Class { negated, .. } | Self::Text { negated, .. } => {
                *negated = !*negated;
            }
        }
        Some(opposite)
    }
}

impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parts, separator) = match self {
            Self::All(parts) => (parts, " && "),
            Self::Any(parts) => (parts, " || "),
            Self::Not(inner) => return write!(f, "!({inner})"),
            Self::Test(test) => return write!(f, "{test}"),
        };
        for (index, part) in parts.iter().enumerate() {
            if index > 0 {
                f.write_str(separator)?;
            }
            // `&&` binds tighter than `||`; the parentheses around an `All` only help the reader.
            match part {
                Self::All(_) | Self::Any(_) => write!(f, "({part})")?,
                _ => write!(f, "{part}")?,
            }
        }
        Ok(())
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Less => "<",
            Self::AtMost => "<=",
            Self::Greater => ">",
            Self::AtLeast => ">=",
        })
    }
}

impl fmt::Display for TermTest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Bound(term, order, number) => {
                write!(f, "{} {order} {}", term.name(), Number(*term, *number))
            }
            Self::Bits(term, bits) => write!(f, "{} & {bits:#x}", term.name()),
            Self::Number { term, negated, items } => list(f, *term, *negated, items, |item, f| match item {
                NumberItem::One(number) => write!(f, "{}", Number(*term, *number)),
                NumberItem::Range(low, end) => write!(f, "{}..{}", Number(*term, *low), Number(*term, *end)),
                NumberItem::From(low) => write!(f, "{}..", Number(*term, *low)),
            }),
            Self::Class { term: Term::Mode, negated: false, values } if values.len() == 1 => {
                f.write_str(values[0].name())
            }
            Self::Class { term, negated, values } => {
                list(f, *term, *negated, values, |value, f| f.write_str(value.name()))
            }
            Self::Text { term, negated, values } => {
                list(f, *term, *negated, values, |value, f| quote(value, f))
            }
        }
    }
}

fn list<T: ListItem>(
    f: &mut fmt::Formatter<'_>,
    term: Term,
    negated: bool,
    items: &[T],
    mut print: impl FnMut(&T, &mut fmt::Formatter<'_>) -> fmt::Result,
) -> fmt::Result {
    f.write_str(term.name())?;
    match items {
        [only] if only.is_single() => {
            f.write_str(if negated { " != " } else { " == " })?;
            print(only, f)
        }
        _ => {
            f.write_str(if negated { " not in " } else { " in " })?;
            if let [only] = items {
                return print(only, f);
            }
            f.write_char('{')?;
            for (index, item) in items.iter().enumerate() {
                f.write_str(if index > 0 { ", " } else { "" })?;
                print(item, f)?;
            }
            f.write_char('}')
        }
    }
}

/// An item of a list. A single item is printed with `==`, a range with `in`.
trait ListItem {
    fn is_single(&self) -> bool {
        true
    }
}

impl ListItem for NumberItem {
    fn is_single(&self) -> bool {
        matches!(self, Self::One(_))
    }
}
impl ListItem for NamedValue {}
impl ListItem for String {}

/// A number in the format of its term: addresses in hexadecimal, page sizes with their unit.
struct Number(Term, u64);

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let number = self.1;
        match self.0 {
            Term::Ip | Term::Address | Term::PhysAddress => write!(f, "{number:#x}"),
            Term::PageSize => {
                for (shift, unit) in [(30, 'G'), (20, 'M'), (10, 'K')] {
                    if number != 0 && number.trailing_zeros() >= shift {
                        return write!(f, "{}{unit}", number >> shift);
                    }
                }
                write!(f, "{number}")
            }
            _ => write!(f, "{number}"),
        }
    }
}

fn quote(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_char('"')?;
    for c in text.chars() {
        if matches!(c, '"' | '\\') {
            f.write_char('\\')?;
        }
        f.write_char(c)?;
    }
    f.write_char('"')
}
