//! The grammar of filters, and a recursive-descent parser.
//!
//! ```text
//! filter := any { "," any }                      `,` is AND and binds loosest, as in perf
//! any    := all { "||" all }
//! all    := unary { "&&" unary }
//! unary  := ( "!" | "not" ) unary | "(" filter ")" | test
//! test   := "kernel" | "user"
//!         | term ( "==" | "=" | "!=" | "<" | "<=" | ">" | ">=" | "&" ) value
//!         | term [ "not" ] "in" ( "{" item { "," item } "}" | item )
//! item   := value | number ".." [ number ]       `lo..hi` holds lo and does not hold hi; `lo..` has no end
//! ```
//!
//! Numbers are decimal or hexadecimal (`0x`), with optional `_` between digits. Decimal numbers may
//! have a unit: `K`, `M`, `G`, `T`, each a power of 1024 (`4K` is 4096). Addresses and page sizes
//! are in bytes, latencies in core cycles.
//!
//! A process name or a cgroup is bare or quoted (`"` or `'`). In quotes, a backslash escapes a
//! quote or a backslash. Before any other character it stands for itself, so `"dev-disk\x2dby"`
//! needs no escaping.
//!
//! A test of a named value holds if the hardware reported the value, alone or with other values of
//! the same field: `mem_snoop == hit`. `mem_snoop & hit` means the same. Names have no order:
//! `mem_lvl > l2` is an error.

use super::ast::{Expr, NumberItem, Order, TermTest};
use super::error::ParseError;
use super::literal::{check_comm, number};
use super::term::{HOPS, NOT_HERE, NamedValue, Term, TermKind};
use precise_model::suggest::nearest;

/// The largest nesting of parentheses and negations in the text.
const MAX_DEPTH: usize = 100;
/// The largest nesting of the result. It is smaller, so that the canonical text of every accepted
/// filter is accepted too: it has at most two levels (`!` and a parenthesis) per level of the
/// result.
const MAX_NESTING: usize = 32;

/// Parses a filter.
pub fn parse(text: &str) -> Result<Expr, ParseError> {
    let mut parser = Parser::new(text);
    let expr = parser.filter()?;
    parser.space();
    if parser.at < parser.chars.len() {
        let help = match parser.chars[parser.at] {
            '&' => "`&` is only allowed between a term and a bit mask; for AND write `&&` or `,`",
            '|' => "for OR write `||`",
            ')' => "this `)` has no matching `(`",
            '-' => "write a range as `lo..hi`; `hi` is not included",
            _ => "expected `&&`, `,`, `||` or the end of the filter",
        };
        return Err(parser.error(
            parser.at,
            "unexpected text after the end of the filter",
            Some(help.to_owned()),
        ));
    }
    if nesting(&expr) > MAX_NESTING {
        return Err(parser.error(
            0,
            format!("parentheses are nested more than {MAX_NESTING} levels deep"),
            None,
        ));
    }
    Ok(expr)
}

/// Parses one number or range as in a command line flag: `0x1000..0x2000`, `4K..`.
pub fn range(text: &str) -> Result<NumberItem, ParseError> {
    let mut parser = Parser::new(text);
    let item = parser.item(Term::Address)?;
    parser.space();
    match parser.peek() {
        None => Ok(item),
        Some('-') => {
            Err(parser.error(parser.at, "not a range", Some("write a range as `lo..hi`".to_owned())))
        }
        Some(_) => Err(parser.error(parser.at, "unexpected text after the range", None)),
    }
}

fn nesting(expr: &Expr) -> usize {
    1 + match expr {
        Expr::All(parts) | Expr::Any(parts) => parts.iter().map(nesting).max().unwrap_or(0),
        Expr::Not(inner) => nesting(inner),
        Expr::Test(_) => 0,
    }
}

struct Parser<'a> {
    text: &'a str,
    chars: Vec<char>,
    /// The position of the parser, in characters from 0.
    at: usize,
    depth: usize,
}

type Parsed<T> = Result<T, ParseError>;

impl<'a> Parser<'a> {
    fn new(text: &'a str) -> Self {
        Self { text, chars: text.chars().collect(), at: 0, depth: 0 }
    }

    fn error(&self, column: usize, message: impl Into<String>, help: Option<String>) -> ParseError {
        ParseError { message: message.into(), help, text: self.text.to_owned(), column }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn starts_with(&self, symbol: &str) -> bool {
        symbol.chars().enumerate().all(|(offset, c)| self.chars.get(self.at + offset) == Some(&c))
    }

    /// Skips spaces, and `symbol` if it follows. Returns whether it does.
    fn eat(&mut self, symbol: &str) -> bool {
        self.space();
        let found = self.starts_with(symbol);
        if found {
            self.at += symbol.chars().count();
        }
        found
    }

    /// Skips spaces, and the word `word` if it follows. Returns whether it does.
    fn eat_word(&mut self, word: &str) -> bool {
        let before = self.at;
        let found = self.word() == word;
        if !found {
            self.at = before;
        }
        found
    }

    /// Takes the letters, digits and underscores that follow after spaces; may be empty.
    fn word(&mut self) -> String {
        self.space();
        self.take_while(|c| c.is_ascii_alphanumeric() || c == '_')
    }

    fn take_while(&mut self, belongs: impl Fn(char) -> bool) -> String {
        let start = self.at;
        while self.peek().is_some_and(&belongs) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    fn joined(
        &mut self,
        separator: &str,
        part: fn(&mut Self) -> Parsed<Expr>,
        join: fn(Vec<Expr>) -> Option<Expr>,
    ) -> Parsed<Expr> {
        let first = part(self)?;
        let mut rest = Vec::new();
        while self.eat(separator) {
            rest.push(part(self)?);
        }
        if rest.is_empty() {
            return Ok(first);
        }
        rest.insert(0, first);
        join(rest).ok_or_else(|| self.error(self.at, "expected a comparison", None))
    }

    fn filter(&mut self) -> Parsed<Expr> {
        self.joined(",", Self::any, Expr::all)
    }

    fn any(&mut self) -> Parsed<Expr> {
        self.joined("||", Self::all, Expr::any)
    }

    fn all(&mut self) -> Parsed<Expr> {
        self.joined("&&", Self::unary, Expr::all)
    }

    fn unary(&mut self) -> Parsed<Expr> {
        self.space();
        let start = self.at;
        if self.depth >= MAX_DEPTH {
            return Err(self.error(
                start,
                format!("parentheses are nested more than {MAX_DEPTH} levels deep"),
                None,
            ));
        }
        self.depth += 1;
        let expr = if self.eat("!") || self.eat_word("not") {
            Expr::Not(Box::new(self.unary()?))
        } else if self.eat("(") {
            let inner = self.filter()?;
            if !self.eat(")") {
                let message =
                    format!("expected `)` to close the `(` in column {}, or `&&`, `,`, `||`", start + 1);
                return Err(self.error(self.at, message, None));
            }
            inner
        } else {
            Expr::Test(self.test()?)
        };
        self.depth -= 1;
        Ok(expr)
    }

    fn term(&mut self) -> Parsed<Term> {
        self.space();
        let start = self.at;
        let name = self.word();
        if name.is_empty() {
            let message = match self.peek() {
                None if start == 0 => "the filter is empty".to_owned(),
                None => "the filter ends where a comparison is expected".to_owned(),
                Some(c) => format!("expected a term, found `{}`", c.escape_default()),
            };
            return Err(self.error(
                start,
                message,
                Some("a comparison looks like `latency > 100`".to_owned()),
            ));
        }
        if let Some(term) = Term::by_name(&name) {
            return Ok(term);
        }
        if let Some((_, why)) = NOT_HERE.iter().find(|(perf, _)| *perf == name) {
            return Err(self.error(
                start,
                format!("`{name}` cannot be used in a filter"),
                Some((*why).to_owned()),
            ));
        }
        let known = Term::ALL.iter().flat_map(|term| term.names().iter().copied());
        let help = match nearest(&name, known.chain(["kernel", "user"])) {
            Some(near) => format!("did you mean `{near}`?"),
            None => {
                let mut names: Vec<_> = Term::ALL.iter().map(|term| term.name()).collect();
                names.retain(|name| *name != Term::Mode.name());
                format!("valid terms: {}, kernel, user", names.join(", "))
            }
        };
        Err(self.error(start, format!("unknown term `{name}`"), Some(help)))
    }

    fn test(&mut self) -> Parsed<TermTest> {
        for mode in ["kernel", "user"] {
            if self.eat_word(mode) {
                let values = Term::Mode.class(mode).into_iter().collect();
                return Ok(TermTest::Class { term: Term::Mode, negated: false, values });
            }
        }
        let term = self.term()?;
        self.space();
        let at = self.at;
        let not = self.eat_word("not");
        if self.eat_word("in") {
            return self.members(term, not);
        }
        if not {
            self.space();
            return Err(self.error(self.at, "expected `in` after `not`", None));
        }
        let operators = ["==", "!=", "<=", ">=", "=", "<", ">", "&"];
        let found =
            operators.iter().copied().find(|symbol| self.starts_with(symbol) && !self.starts_with("&&"));
        let Some(operator) = found else {
            let message = format!("expected a comparison operator after `{}`", term.name());
            let help = match term.kind() {
                TermKind::Number { .. } => "valid operators: `==`, `!=`, `<`, `<=`, `>`, `>=`, `&`, `in`",
                _ => "valid operators: `==`, `!=`, `in`",
            };
            return Err(self.error(at, message, Some(help.to_owned())));
        };
        self.at += operator.len();
        let negated = operator == "!=";
        let order = match operator {
            "<" => Some(Order::Less),
            "<=" => Some(Order::AtMost),
            ">" => Some(Order::Greater),
            ">=" => Some(Order::AtLeast),
            _ => None,
        };
        match term.kind() {
            TermKind::Number { .. } => {
                let number = self.number(term)?;
                Ok(match order {
                    Some(order) => TermTest::Bound(term, order, number),
                    None if operator == "&" => TermTest::Bits(term, number),
                    None => TermTest::Number { term, negated, items: vec![NumberItem::One(number)] },
                })
            }
            TermKind::Class(_) if order.is_none() => {
                Ok(TermTest::Class { term, negated, values: vec![self.class(term)?] })
            }
            TermKind::Text if order.is_none() && operator != "&" => {
                Ok(TermTest::Text { term, negated, values: vec![self.text_value(term)?] })
            }
            _ => {
                let message = format!(
                    "`{operator}` does not apply to `{}`, whose values have no order and no bits",
                    term.name()
                );
                Err(self.error(
                    at,
                    message,
                    Some(format!("list the values you want: `{} in {{…}}`", term.name())),
                ))
            }
        }
    }

    /// Parses the operand of `in`.
    fn members(&mut self, term: Term, negated: bool) -> Parsed<TermTest> {
        Ok(match term.kind() {
            TermKind::Number { .. } => {
                TermTest::Number { term, negated, items: self.list(|parser| parser.item(term))? }
            }
            TermKind::Class(_) => {
                TermTest::Class { term, negated, values: self.list(|parser| parser.class(term))? }
            }
            TermKind::Text => {
                TermTest::Text { term, negated, values: self.list(|parser| parser.text_value(term))? }
            }
        })
    }

    fn list<T>(&mut self, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        if !self.eat("{") {
            return Ok(vec![item(self)?]);
        }
        let open = self.at;
        let mut items = vec![item(self)?];
        while self.eat(",") {
            items.push(item(self)?);
        }
        if !self.eat("}") {
            return Err(self.error(
                self.at,
                format!("expected `,`, or `}}` to close the `{{` in column {open}"),
                None,
            ));
        }
        Ok(items)
    }

    fn item(&mut self, term: Term) -> Parsed<NumberItem> {
        self.space();
        let start = self.at;
        let low = self.number(term)?;
        if !self.eat("..") {
            return Ok(NumberItem::One(low));
        }
        if self.eat("=") {
            let help = "write a range as `lo..hi`; `hi` is not included".to_owned();
            return Err(self.error(self.at - 1, "unexpected `=`", Some(help)));
        }
        self.space();
        if !self.peek().is_some_and(|c| c.is_ascii_alphanumeric()) {
            return Ok(NumberItem::From(low));
        }
        let end = self.number(term)?;
        if low >= end {
            let help = format!(
                "the range `{low}..{end}` is empty: it holds the numbers from {low} up \
                to, but not including, {end}"
            );
            return Err(self.error(start, "this range is empty", Some(help)));
        }
        Ok(NumberItem::Range(low, end))
    }

    fn number(&mut self, term: Term) -> Parsed<u64> {
        self.space();
        let start = self.at;
        let word = self.word();
        if term == Term::Hops
            && let Some((_, number)) = HOPS.iter().find(|(name, _)| *name == word)
        {
            return Ok(*number);
        }
        if word.is_empty() {
            let message = format!("expected a number for `{}`", term.name());
            let help = (self.peek() == Some('{'))
                .then(|| "a set must follow `in`, not a comparison operator".to_owned());
            return Err(self.error(start, message, help));
        }
        number(&word).map_err(|message| {
            let help = "write numbers as 100, 0xff00 or 4K".to_owned();
            self.error(start, format!("`{word}` {message}"), Some(help))
        })
    }

    fn class(&mut self, term: Term) -> Parsed<NamedValue> {
        self.space();
        let start = self.at;
        let word = self.word();
        if let Some(class) = term.class(&word) {
            return Ok(class);
        }
        let TermKind::Class(values) = term.kind() else {
            return Err(self.error(start, "expected a value here", None));
        };
        let list = values.iter().map(NamedValue::name).collect::<Vec<_>>().join(", ");
        let help = match nearest(&word, values.iter().flat_map(|value| value.names.iter().copied())) {
            Some(near) => format!("did you mean `{near}`? Valid values: {list}"),
            None => format!("valid values: {list}"),
        };
        let message = if word.is_empty() {
            format!("expected a value for `{}`", term.name())
        } else {
            format!("`{}` never has the value `{word}`", term.name())
        };
        Err(self.error(start, message, Some(help)))
    }

    fn text_value(&mut self, term: Term) -> Parsed<String> {
        self.space();
        let start = self.at;
        let text = match self.peek() {
            Some(quote @ ('"' | '\'')) => self.quoted(quote)?,
            _ => self.take_while(|c| c.is_alphanumeric() || "_-./:@+%#~*?[]\\".contains(c)),
        };
        if text.is_empty() {
            let help =
                Some("put text with spaces or special characters in quotes: \"Web Content\"".to_owned());
            return Err(self.error(start, format!("expected a text for `{}`", term.name()), help));
        }
        let checked = match term {
            Term::Comm => check_comm(&text),
            _ if text.contains('\0') => Err("a name cannot contain a zero byte".to_owned()),
            _ => Ok(()),
        };
        match checked {
            Ok(()) => Ok(text),
            Err(help) => {
                Err(self.error(start, format!("no `{}` matches this pattern", term.name()), Some(help)))
            }
        }
    }

    fn quoted(&mut self, quote: char) -> Parsed<String> {
        let start = self.at;
        self.at += 1;
        let mut text = String::new();
        loop {
            let Some(c) = self.peek() else {
                return Err(self.error(start, format!("this `{quote}` is never closed"), None));
            };
            self.at += 1;
            if c == quote {
                return Ok(text);
            }
            match self.peek() {
                Some(next) if c == '\\' && matches!(next, '"' | '\'' | '\\') => {
                    self.at += 1;
                    text.push(next);
                }
                _ => text.push(c),
            }
        }
    }
}
