//! The value of a row for a key: small and comparable while grouping, as text in the result.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use precise_common::data_src::{DataSource, Snoop, Tlb};
use precise_common::latency;
use schemars::JsonSchema;
use serde::Serialize;

use super::keys::Key;
use crate::accesses::TypedField;
use crate::digits::bytes;
use crate::has_source;
use crate::words;
use crate::words::Served;
use crate::{Capture, Chain, CodeLocation, DataLocation, Name, NameId, Outcome, Reason, Row, Stack, StackId};

/// The value of a group for one key.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Value {
    /// A name.
    Text(String),
    /// A number.
    Number(u64),
    /// An address; a string in JSON, because numbers in JSON would lose its low bits.
    #[serde(serialize_with = "hex")]
    #[schemars(with = "String")]
    Address(u64),
    /// Yes or no.
    Flag(bool),
    /// A latency bucket in core cycles, both ends included.
    Cycles {
        /// The smallest latency, in core cycles.
        low: u64,
        /// The largest latency, in core cycles.
        high: u64,
    },
    /// A name that is not known, with the reason.
    Unknown(Reason),
    /// A type that is not known, with the reason in a few words.
    Untyped(String),
    /// The sample had no value: the hardware did not report one.
    NotGiven,
    /// A cgroup that belongs to a unit, a container or a pod. In JSON, a text with a `name` next to
    /// it.
    #[serde(untagged)]
    Owned {
        /// The path from the root of its hierarchy.
        #[serde(rename = "text")]
        path: String,
        /// The short name of its owner.
        name: String,
    },
    /// A thread whose name is known. In JSON, a number with a `name` next to it.
    #[serde(untagged)]
    Thread {
        /// The thread id.
        #[serde(rename = "number")]
        tid: u64,
        /// The name of the thread.
        name: String,
    },
}

fn hex<S: serde::Serializer>(address: &u64, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&format_args!("{address:#x}"))
}

impl Value {
    /// Returns the name that people use, not yet made safe for a terminal.
    pub fn label(&self) -> String {
        match self {
            Self::Owned { name, .. } => name.clone(),
            Self::Thread { tid, name } => format!("{tid} ({name})"),
            other => other.text(),
        }
    }

    /// Returns the value as plain text, not yet made safe for a terminal.
    pub fn text(&self) -> String {
        match self {
            Self::Text(text) | Self::Owned { path: text, .. } => text.clone(),
            Self::Number(number) | Self::Thread { tid: number, .. } => number.to_string(),
            Self::Address(address) => format!("{address:#x}"),
            Self::Flag(flag) => if *flag { "yes" } else { "no" }.to_owned(),
            Self::Cycles { low, high } if low == high => low.to_string(),
            Self::Cycles { low, high } => format!("{low}-{high}"),
            Self::Unknown(reason) => format!("[{}]", reason.words()),
            Self::Untyped(why) => format!("[{why}]"),
            Self::NotGiven => "N/A".to_owned(),
        }
    }
}

/// The value of a row for a key, without its text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RawValue {
    /// A name.
    Name(NameId),
    /// A file and a line.
    Line(NameId, u32),
    /// A function and the distance from its start, in bytes.
    Offset(NameId, u64),
    /// Code without a symbol: the module, and the offset in its file (kernel: the address).
    Place(NameId, u64),
    /// A number.
    Number(u64),
    /// An address.
    Address(u64),
    /// A size in bytes.
    Bytes(u64),
    /// Yes or no.
    Flag(bool),
    /// The mode. True: kernel; false: user.
    Mode(bool),
    /// A latency bucket, as in `precise_common::latency`.
    Bucket(u8),
    /// Where an access was served.
    Level(Served),
    /// The snoop result: what other caches answered.
    Snoop(Snoop),
    /// How the address was translated.
    Tlb(Tlb),
    /// The operation.
    Op(&'static str),
    /// The outcome of a branch or a fetch.
    Outcome(Outcome),
    /// A call chain.
    Callers(Callers),
    /// A field of a type.
    Field(TypedField),
    /// A type that is not known, with the reason.
    Untyped(NameId),
    /// A name that is not known, with the reason.
    Unknown(Reason),
    /// The sample had no value.
    NotGiven,
}

/// The callers of a sampled function. Chains through the same functions are equal, even if the call
/// sites differ.
#[derive(Clone, Copy, Debug)]
pub struct Callers {
    /// One of the equal chains.
    stack: StackId,
    /// A digest of the functions, because [`Eq`] has no capture to look them up in.
    functions: u64,
}

impl Callers {
    fn of(capture: &Capture, stack: StackId) -> Self {
        let mut digest = rustc_hash::FxHasher::default();
        for caller in callers(capture, stack) {
            caller.hash(&mut digest);
        }
        capture.stacks.get(stack as usize).is_some_and(Stack::lacks_callers).hash(&mut digest);
        Self { stack, functions: digest.finish() }
    }

    /// Returns the chain from the outermost function to the caller of the sampled one, as in folded
    /// stacks.
    fn text(self, capture: &Capture) -> String {
        let mut names: Vec<_> =
            callers(capture, self.stack).map(|name| name_or_reason(capture, name)).collect();
        if capture.stacks.get(self.stack as usize).is_some_and(Stack::lacks_callers) {
            names.push("…".to_owned());
        }
        names.reverse();
        if names.is_empty() { "[no caller]".to_owned() } else { names.join(";") }
    }
}

impl PartialEq for Callers {
    fn eq(&self, other: &Self) -> bool {
        self.functions == other.functions
    }
}

impl Eq for Callers {}

impl Hash for Callers {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.functions.hash(state);
    }
}

/// Returns the functions of a chain, from the sampled function's caller outwards, including inlined
/// ones.
pub(crate) fn callers(capture: &Capture, stack: StackId) -> impl Iterator<Item = Name> + '_ {
    let places = capture.stacks.get(stack as usize).map_or(&[][..], |Stack { callers, .. }| callers);
    places.iter().filter_map(|id| capture.code.get(*id as usize)).flat_map(functions_at)
}

/// Returns the function of a place, and those that it is inlined into.
pub(crate) fn functions_at(location: &CodeLocation) -> impl Iterator<Item = Name> + '_ {
    let around = location.inlined_into.iter().map(|frame| Name::Known(frame.function));
    std::iter::once(location.function).chain(around)
}

/// Returns a name, or in brackets the reason why there is none.
pub(crate) fn name_or_reason(capture: &Capture, name: Name) -> String {
    match name {
        Name::Known(id) => capture.names.get(id).to_owned(),
        Name::Unknown(reason) => format!("[{}]", reason.words()),
    }
}

impl RawValue {
    /// Returns the value of `row` for `key`.
    pub fn of(capture: &Capture, row: &Row, key: Key) -> Self {
        let name = |name: Name| match name {
            Name::Known(id) => Self::Name(id),
            Name::Unknown(reason) => Self::Unknown(reason),
        };
        let code = |get: &dyn Fn(&CodeLocation) -> Self| {
            let location = row.code.and_then(|id| capture.code.get(id as usize));
            location.map_or(Self::Unknown(Reason::NotRecorded), get)
        };
        let data = |get: &dyn Fn(&DataLocation) -> Self| {
            let location = row.data.and_then(|id| capture.data.get(id as usize));
            location.map_or(Self::NotGiven, get)
        };
        let source = |get: &dyn Fn(DataSource) -> Self| {
            if has_source(row.data_src) { get(row.data_source()) } else { Self::NotGiven }
        };
        let typed =
            |get: fn(TypedField) -> Self| match capture.types.as_ref().map(|types| types.of(capture, row)) {
                Some(found) => found.map_or_else(Self::Untyped, get),
                None => Self::Unknown(Reason::NotRecorded),
            };
        match key {
            Key::Type => typed(|found| Self::Name(found.ty)),
            Key::Field => typed(Self::Field),
            Key::Function => code(&|c| Self::place(capture, c).unwrap_or_else(|| name(c.function))),
            Key::SymbolOffset => code(&|c| match c.function {
                Name::Known(id) => Self::Offset(id, c.function_offset),
                Name::Unknown(reason) => Self::place(capture, c).unwrap_or(Self::Unknown(reason)),
            }),
            Key::Line => code(&|c| match c.source {
                Name::Known(id) => Self::Line(id, c.line),
                Name::Unknown(reason) => Self::Unknown(reason),
            }),
            Key::Ip => code(&|c| match c.function {
                Name::Unknown(Reason::Guest) => Self::Unknown(Reason::Guest),
                _ => Self::Address(c.runtime_address),
            }),
            Key::Module => code(&|c| name(c.module)),
            Key::Cgroup => name(row.cgroup),
            Key::Process => name(row.process),
            Key::Pid => Self::Number(row.pid.into()),
            // A thread without a name is its number, so that threads stay apart.
            Key::Thread if row.tid != 0 && matches!(row.thread, Name::Unknown(_)) => {
                Self::Number(row.tid.into())
            }
            Key::Thread => name(row.thread),
            Key::Tid => Self::Number(row.tid.into()),
            Key::Cpu => row.cpu.map_or(Self::NotGiven, |cpu| Self::Number(cpu.into())),
            Key::Node => {
                let node = row.cpu.and_then(|cpu| capture.meta.machine.node_of(cpu.into()));
                node.map_or(Self::NotGiven, |node| Self::Number(node.into()))
            }
            Key::Event => Self::Number(row.event.into()),
            Key::Epoch => Self::Number(row.epoch.into()),
            Key::Kernel => Self::Mode(row.kernel),
            Key::Level => source(&|s| Served::of(s).map_or(Self::NotGiven, Self::Level)),
            Key::Snoop => source(&|s| words::snoop(s).map_or(Self::NotGiven, Self::Snoop)),
            Key::Tlb => source(&|s| words::tlb(s).map_or(Self::NotGiven, Self::Tlb)),
            Key::Op => source(&|s| words::op(s).map_or(Self::NotGiven, Self::Op)),
            Key::Locked => source(&|s| s.locked.map_or(Self::NotGiven, Self::Flag)),
            Key::Remote => source(&|s| Self::Flag(s.remote)),
            Key::Outcome => row.outcome.map_or(Self::NotGiven, |outcome| Self::Outcome(outcome.said())),
            Key::Stack => match row.stack {
                Chain::Known(stack) => Self::Callers(Callers::of(capture, stack)),
                Chain::Unknown(reason) => Self::Unknown(reason),
            },
            Key::Latency => row.latency_bucket.map_or(Self::NotGiven, Self::Bucket),
            Key::Address => data(&|d| Self::Address(d.runtime_address)),
            Key::LineAddress => data(&|d| Self::Address(d.runtime_address & !63)),
            Key::Page => data(&|d| Self::Address(d.runtime_address & !4095)),
            Key::PageSize => row.page_size.map_or(Self::NotGiven, Self::Bytes),
            Key::Variable => data(&|d| name(d.variable)),
            Key::Region => data(&|d| name(d.region)),
            Key::Object | Key::Age => {
                match capture.touches.as_ref().map(|touches| touches.of_row(capture, row)) {
                    Some(Ok(touch)) if key == Key::Object => Self::Name(touch.functions),
                    Some(Ok(touch)) => touch.age.map_or(Self::Unknown(Reason::NotRecorded), Self::Name),
                    Some(Err(Some(reason))) => Self::Unknown(reason),
                    Some(Err(None)) => Self::NotGiven,
                    None => Self::Unknown(Reason::NotRecorded),
                }
            }
        }
    }

    /// Returns the place of code without a symbol; `None` if it has one, or no file and address.
    fn place(capture: &Capture, code: &CodeLocation) -> Option<Self> {
        let at = match (code.file_offset, code.kernel) {
            (0, true) => code.runtime_address,
            (offset, _) => offset,
        };
        // The start of a file has the offset 0, as has everything that is not in a file.
        let is_file = |module| {
            let name = capture.names.get(module);
            name.starts_with('/') && !name.starts_with("//")
        };
        match (code.function, code.module) {
            (Name::Unknown(_), Name::Known(module)) if at != 0 || (!code.kernel && is_file(module)) => {
                Some(Self::Place(module, at))
            }
            _ => None,
        }
    }

    /// Returns the value as the result shows it.
    pub fn value(self, capture: &Capture, key: Key) -> Value {
        let text = |id| capture.names.get(id).to_owned();
        match self {
            Self::Name(id) if key == Key::Cgroup => match capture.meta.owner(capture.names.get(id)) {
                Some(owner) => Value::Owned { path: text(id), name: owner.name.clone() },
                None => Value::Text(text(id)),
            },
            Self::Name(id) => Value::Text(text(id)),
            Self::Line(id, 0) => Value::Text(text(id)),
            Self::Line(id, line) => Value::Text(format!("{}:{line}", text(id))),
            Self::Offset(id, offset) => Value::Text(format!("{}+{offset:#x}", text(id))),
            Self::Place(id, at) => {
                let file = capture.names.get(id).rsplit('/').next().unwrap_or_default();
                Value::Text(format!("{file}+{at:#x}"))
            }
            Self::Number(number) if key == Key::Event => {
                let event = capture.meta.events.get(number as usize);
                Value::Text(event.map_or_else(String::new, |e| e.name.clone()))
            }
            Self::Number(number) => Value::Number(number),
            Self::Address(address) => Value::Address(address),
            Self::Bytes(count) => Value::Text(bytes(count)),
            Self::Flag(flag) => Value::Flag(flag),
            Self::Mode(kernel) => Value::Text(if kernel { "kernel" } else { "user" }.to_owned()),
            Self::Bucket(bucket) => {
                let bucket = u32::from(bucket);
                Value::Cycles { low: latency::lower(bucket), high: latency::lower(bucket + 1) - 1 }
            }
            Self::Level(served) => Value::Text(served.to_string()),
            Self::Snoop(snoop) => Value::Text(snoop.name().to_owned()),
            Self::Tlb(tlb) => Value::Text(tlb.name().to_owned()),
            Self::Op(op) => Value::Text(op.to_owned()),
            Self::Outcome(outcome) => Value::Text(outcome.words()),
            Self::Callers(chain) => Value::Text(chain.text(capture)),
            Self::Field(TypedField { ty, field }) => Value::Text(match capture.names.get(field) {
                "" => text(ty),
                field => format!("{}.{field}", capture.names.get(ty)),
            }),
            Self::Untyped(why) => Value::Untyped(text(why)),
            Self::Unknown(reason) => Value::Unknown(reason),
            Self::NotGiven => Value::NotGiven,
        }
    }

    /// Returns the value of a group beside those of its other keys: a field is named without its
    /// type if the type has a column of its own.
    pub fn value_beside(self, capture: &Capture, key: Key, keys: &[Key]) -> Value {
        match self {
            Self::Field(TypedField { field, .. })
                if field != NameId::default() && keys.contains(&Key::Type) =>
            {
                Value::Text(capture.names.get(field).to_owned())
            }
            _ => self.value(capture, key),
        }
    }

    /// Orders numbers by size, names by text, levels from near to far; unknown values come last.
    pub fn compare(&self, other: &Self, capture: &Capture) -> Ordering {
        let text = |id: &NameId| capture.names.get(*id);
        match (self, other) {
            (Self::Name(a), Self::Name(b)) => text(a).cmp(text(b)),
            (Self::Line(a, x), Self::Line(b, y)) => text(a).cmp(text(b)).then(x.cmp(y)),
            (Self::Offset(a, x), Self::Offset(b, y)) => text(a).cmp(text(b)).then(x.cmp(y)),
            (Self::Place(a, x), Self::Place(b, y)) => text(a).cmp(text(b)).then(x.cmp(y)),
            (Self::Field(a), Self::Field(b)) => {
                text(&a.ty).cmp(text(&b.ty)).then_with(|| text(&a.field).cmp(text(&b.field)))
            }
            (Self::Untyped(a), Self::Untyped(b)) => text(a).cmp(text(b)),
            (Self::Callers(a), Self::Callers(b)) => a.text(capture).cmp(&b.text(capture)),
            (Self::Level(a), Self::Level(b)) => a.cmp(b),
            (Self::Op(a), Self::Op(b)) => a.cmp(b),
            (a, b) => a.rank().cmp(&b.rank()),
        }
    }

    fn rank(&self) -> (u8, u64) {
        match *self {
            Self::Name(_)
            | Self::Line(..)
            | Self::Offset(..)
            | Self::Callers(_)
            | Self::Field(_)
            | Self::Level(_)
            | Self::Op(_) => (0, 0),
            Self::Number(number) | Self::Address(number) | Self::Bytes(number) => (0, number),
            Self::Flag(flag) | Self::Mode(flag) => (0, flag.into()),
            // After the functions with names.
            Self::Place(_, at) => (1, at),
            Self::Bucket(bucket) => (0, bucket.into()),
            Self::Snoop(snoop) => (0, snoop as u64),
            Self::Tlb(tlb) => (0, tlb as u64),
            Self::Outcome(outcome) => (0, outcome.bits()),
            Self::Untyped(_) => (2, 0),
            Self::Unknown(reason) => (2, reason as u64),
            Self::NotGiven => (3, 0),
        }
    }
}
