//! The dictionary of an OTLP request: what its profiles refer to by index, each item once.

use rustc_hash::FxHashMap;

use precise_model::text::sanitize;
use precise_model::{Capture, Chain, CodeLocation, Name, Row};

use super::frame_name::{frame_address, frame_name, module_name};
use super::wire::WireMessage;

/// A list of the dictionary. Its first item is empty, so that the index 0 stands for "none".
struct DictionaryTable {
    /// The field of `ProfilesDictionary`.
    field: u32,
    indices: FxHashMap<Vec<u8>, u64>,
    items: WireMessage,
}

impl DictionaryTable {
    fn new(field: u32) -> Self {
        let mut table = Self { field, indices: FxHashMap::default(), items: WireMessage::default() };
        table.index(Vec::new());
        table
    }

    /// Returns the index of an encoded item, which is added if it is new.
    fn index(&mut self, item: Vec<u8>) -> u64 {
        if let Some(index) = self.indices.get(&item) {
            return *index;
        }
        let index = self.indices.len() as u64;
        self.items.bytes(self.field, &item);
        self.indices.insert(item, index);
        index
    }
}

/// The dictionary under construction.
pub(super) struct Dictionary<'a> {
    capture: &'a Capture,
    mappings: DictionaryTable,
    locations: DictionaryTable,
    functions: DictionaryTable,
    links: DictionaryTable,
    strings: DictionaryTable,
    attributes: DictionaryTable,
    stacks: DictionaryTable,
    /// The indices of locations that were asked for, by their place in the capture.
    by_code: FxHashMap<u32, Option<u64>>,
    by_chain: FxHashMap<(Option<u32>, Chain), u64>,
}

impl<'a> Dictionary<'a> {
    pub fn new(capture: &'a Capture) -> Self {
        Self {
            capture,
            mappings: DictionaryTable::new(1),
            locations: DictionaryTable::new(2),
            functions: DictionaryTable::new(3),
            links: DictionaryTable::new(4),
            strings: DictionaryTable::new(5),
            attributes: DictionaryTable::new(6),
            stacks: DictionaryTable::new(7),
            by_code: FxHashMap::default(),
            by_chain: FxHashMap::default(),
        }
    }

    /// Returns the `ProfilesDictionary`.
    pub fn encode(self) -> WireMessage {
        let Self { mappings, locations, functions, links, strings, attributes, stacks, .. } = self;
        let mut all = WireMessage::default();
        for table in [mappings, locations, functions, links, strings, attributes, stacks] {
            all.append(&table.items);
        }
        all
    }

    /// Returns the index of a text. The users of the machine choose names, and readers print them.
    pub fn string(&mut self, text: &str) -> u64 {
        self.strings.index(sanitize(text).into_bytes())
    }

    /// Returns a `ValueType`.
    pub fn value_type(&mut self, kind: &str, unit: &str) -> WireMessage {
        let mut value = WireMessage::default();
        value.number(1, self.string(kind));
        value.number(2, self.string(unit));
        value
    }

    /// Returns the index of an attribute with an encoded `AnyValue`.
    fn attribute(&mut self, key: &str, value: &WireMessage) -> u64 {
        let mut attribute = WireMessage::default();
        attribute.number(1, self.string(key));
        attribute.message(2, value);
        self.attributes.index(attribute.into_bytes())
    }

    /// Returns the index of an attribute that is a text.
    pub fn text(&mut self, key: &str, text: &str) -> u64 {
        self.attribute(key, &any_text(text))
    }

    /// Returns the index of an attribute that is true or false.
    pub fn flag(&mut self, key: &str, flag: bool) -> u64 {
        let mut value = WireMessage::default();
        value.always(2, flag.into());
        self.attribute(key, &value)
    }

    /// Returns the index of an attribute that is a name; 0 if the name is not known.
    pub fn name(&mut self, key: &str, name: Name) -> u64 {
        match name {
            Name::Known(id) => self.text(key, self.capture.names.get(id)),
            Name::Unknown(_) => 0,
        }
    }

    /// Returns the index of the stack of a row: the sampled instruction and its callers; 0 if
    /// neither is known.
    pub fn stack(&mut self, row: &Row) -> u64 {
        if let Some(index) = self.by_chain.get(&(row.code, row.stack)) {
            return *index;
        }
        let stack = match row.stack {
            Chain::Known(id) => self.capture.stacks.get(id as usize),
            Chain::Unknown(_) => None,
        };
        let callers = stack.into_iter().flat_map(|stack| stack.callers.iter().copied());
        let locations: Vec<u64> =
            row.code.into_iter().chain(callers).filter_map(|code| self.location(code)).collect();
        let mut stack = WireMessage::default();
        stack.packed(1, &locations);
        let index = self.stacks.index(stack.into_bytes());
        self.by_chain.insert((row.code, row.stack), index);
        index
    }

    fn location(&mut self, code: u32) -> Option<u64> {
        if let Some(known) = self.by_code.get(&code) {
            return *known;
        }
        let index = self.capture.code.get(code as usize).map(|place| self.place(place));
        self.by_code.insert(code, index);
        index
    }

    fn place(&mut self, place: &CodeLocation) -> u64 {
        let mut location = WireMessage::default();
        location.number(1, self.mapping(place));
        location.number(2, frame_address(place));
        location.message(3, &self.line(place, place.function, place.source, place.line));
        for frame in &place.inlined_into {
            let (function, source) = (Name::Known(frame.function), Name::Known(frame.source));
            location.message(3, &self.line(place, function, source, frame.line));
        }
        let origin = self.text("profile.frame.type", if place.kernel { "kernel" } else { "native" });
        location.packed(4, &[origin]);
        self.locations.index(location.into_bytes())
    }

    fn line(&mut self, place: &CodeLocation, function: Name, source: Name, line: u32) -> WireMessage {
        let names = &self.capture.names;
        let source = match source {
            Name::Known(id) => names.get(id),
            Name::Unknown(_) => "",
        };
        let name = self.string(&frame_name(names, place, function));
        let mut item = WireMessage::default();
        item.number(1, name);
        item.number(3, self.string(source));
        let mut at = WireMessage::default();
        at.number(1, self.functions.index(item.into_bytes()));
        at.number(2, line.into());
        at
    }

    /// Returns the index of the mapping of a place's file. The file counts as mapped from its
    /// start, so that addresses are offsets in the file.
    fn mapping(&mut self, place: &CodeLocation) -> u64 {
        let names = &self.capture.names;
        let mut mapping = WireMessage::default();
        mapping.number(2, u64::MAX);
        mapping.number(4, self.string(&module_name(names, place)));
        let build_id = names.get(place.build_id);
        if !build_id.is_empty() {
            let attribute = self.text("process.executable.build_id.gnu", build_id);
            mapping.packed(5, &[attribute]);
        }
        self.mappings.index(mapping.into_bytes())
    }
}

/// Returns an `AnyValue` that is a text.
pub(super) fn any_text(text: &str) -> WireMessage {
    let mut value = WireMessage::default();
    // A member of a `oneof`: there even if it is empty.
    value.bytes(1, sanitize(text).as_bytes());
    value
}
