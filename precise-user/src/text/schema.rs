//! The JSON documents that precise prints: the name of each, its schema version, and the schema
//! itself. Only documents that are listed here or in [`registry::document_kinds`] can be printed.
//!
//! Schemas are derived from the printed types ([`derived`]). The binary carries the copies in
//! docs/schemas, which a test compares with these.

use precise_capture::Column;
use precise_fleet::Compacted;
use precise_model::{ChainEnd, CompactSort as _, Reason};
use precise_packed::unpack;
use precise_sampling::doctor::{Diagnosis, MachineState};
use precise_sampling::pmu::list::EventList;
use precise_sampling::stream::StreamField;
use precise_views::document::{DerivedSchema, DocumentKind, title};
use precise_views::documents;
use precise_views::registry;
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Value, json};
use std::borrow::Cow;

use crate::export::table::json_type;

/// The document of `precise list`: presets and events of this machine.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct ListDocument<'a>(pub &'a EventList);

/// The document of `precise fleet compact`: what it did.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
pub struct CompactedDocument<'a>(pub &'a Compacted);

/// The document of `precise doctor`: the diagnosis, and the state that it is based on.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Doctor<'a> {
    /// The diagnosis: the checks and their results.
    #[serde(flatten)]
    pub diagnosis: &'a Diagnosis,
    /// The state of the machine that was examined.
    pub state: &'a MachineState,
}

documents! {
    super::stream_account::Accounts<'_>: "account" 1 "script --account",
    crate::archive::Archive: "archive" 1 "archive --json",
    crate::mcp::CaptureList: "captures" 1 "mcp PLACE",
    CompactedDocument<'_>: "fleet-compact" 1 "fleet compact --json",
    crate::asking::DiffDocument<'_>: "fleet-diff" 1 "fleet diff --json",
    crate::asking::LatencyDocument<'_>: "fleet-latency" 1 "fleet latency --json",
    crate::asking::ReportDocument<'_>: "fleet-report" 1 "fleet report --json",
    crate::mcp::ToolAnswer: "mcp" 1 "mcp PLACE",
    Doctor<'_>: "doctor" 1 "doctor --json",
    super::exit_codes::ExitCodes: "exit-codes" 1 "exit-codes --json",
    ListDocument<'_>: "list" 1 "list --json",
    crate::self_test::SelfTestReport: "self-test" 1 "doctor --self-test --json",
}

/// Documents of one line, which commands print many of. They contain neither kind nor version.
static LINES: [DocumentKind; 2] = [
    DocumentKind { name: "row", version: 1, command: Cow::Borrowed("export --format json, a line each") },
    DocumentKind { name: "sample", version: 1, command: Cow::Borrowed("script --json, a line each") },
];

/// How their schemas are made.
static SCHEMAS_OF_LINES: [DerivedSchema; 2] =
    [DerivedSchema { name: "row", derive: row }, DerivedSchema { name: "sample", derive: sample }];

/// The files of docs/schemas, packed by the build script.
static PACKED: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/schemas.z"));

/// Returns every kind of document, by name.
pub fn kinds() -> Vec<DocumentKind> {
    let mut kinds = registry::document_kinds();
    kinds.extend(KINDS.iter().chain(&LINES).cloned());
    kinds.compact_sort_by_key(|kind| kind.name);
    kinds
}

/// Returns the kind with this name.
pub fn find(name: &str) -> Option<DocumentKind> {
    kinds().into_iter().find(|kind| kind.name == name)
}

/// Returns the file of docs/schemas with the schema of a kind.
pub fn file_name(kind: &DocumentKind) -> String {
    format!("{}-{}.json", kind.name, kind.version)
}

/// Returns the schema of a kind, as text. `None` if this build carries none: its docs/schemas was
/// out of date.
pub fn text(kind: &DocumentKind) -> Option<String> {
    let files = unpack(PACKED).ok()?;
    files.find(&file_name(kind)).map(|text| String::from_utf8_lossy(text).into_owned())
}

/// Derives the schema of the kind with this name, in draft 2020-12 of JSON Schema.
pub fn derived(name: &str) -> Option<Value> {
    let mut all = registry::derived_schemas();
    all.extend(SCHEMAS.iter().chain(&SCHEMAS_OF_LINES));
    all.iter().find(|schema| schema.name == name).map(|schema| (schema.derive)())
}

/// Returns the schema of a streamed sample. It has the fields that the user chose; to save time it
/// contains neither kind nor version.
fn sample() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let reason = generator.into_root_schema_for::<Reason>().to_value();
    let unknown = json!({ "type": "string", "enum": names(&reason), "description": "why the field is null" });
    let offset = json!({
        "type": "integer", "minimum": 0, "description": "offset from the start of what the field names, bytes"
    });
    let mut properties = serde_json::Map::new();
    for field in StreamField::all() {
        let name = field.name();
        let value = json!({
            "type": ["string", "integer", "boolean", "null"],
            "description": field.doc(),
        });
        properties.insert(name.to_owned(), value);
        properties.insert(format!("{name}_unknown"), unknown.clone());
        properties.insert(format!("{name}_offset"), offset.clone());
    }
    let frame = json!({
        "type": "object",
        "additionalProperties": false,
        "required": ["ip", "module", "symbol"],
        "properties": {
            "ip": { "type": "string", "description": "address in the call instruction" },
            "symbol": { "type": ["string", "null"], "description": "function" },
            "symbol_offset": offset,
            "module": { "type": ["string", "null"], "description": "file of the function" },
        },
    });
    let callers = json!({ "type": "array", "items": frame, "description": "with -g: the callers, the innermost first" });
    let ends: Vec<_> =
        ChainEnd::ALL.into_iter().map(|end| json!(end.as_str())).chain([Value::Null]).collect();
    let end = json!({
        "enum": ends,
        "description": "with -g: why there are no more callers; null if the kernel unwound",
    });
    properties.insert("callers".to_owned(), callers);
    properties.insert("chain_end".to_owned(), end);
    line("sample", "One sample: the fields that --fields lists, in that order.", properties, &[])
}

/// Returns the schema of an exported row: one property per column. Null columns are left out.
fn row() -> Value {
    let properties = Column::ALL.into_iter().map(|column| {
        (column.name().to_owned(), json!({ "type": json_type(column), "description": column.doc() }))
    });
    let always: Vec<_> =
        Column::ALL.into_iter().filter(|column| !column.nullable()).map(Column::name).collect();
    line("row", "One row of a capture. Null columns are left out.", properties.collect(), &always)
}

/// Returns the schema of a one-line document, which contains neither kind nor version.
fn line(name: &str, what: &str, properties: serde_json::Map<String, Value>, required: &[&str]) -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title(name, 1),
        "description": what,
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// Returns the names of an enumeration, from its schema.
fn names(schema: &Value) -> Vec<Value> {
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    variants
        .flat_map(|variant| {
            let one = variant.get("const").cloned().into_iter();
            one.chain(variant["enum"].as_array().into_iter().flatten().cloned())
        })
        .collect()
}

/// Panics unless a document matches its schema.
#[cfg(test)]
pub(crate) fn check(text: &str) {
    let document: Value = serde_json::from_str(text).unwrap();
    let kind = find(document["kind"].as_str().unwrap()).unwrap();
    let (schemas, compiled) = tests::compiled(&kind);
    schemas.validate(&document, compiled).unwrap_or_else(|error| panic!("{}: {error:#}", kind.name));
}

#[cfg(test)]
mod tests {
    use boon::{Compiler, SchemaIndex, Schemas};

    use super::*;

    pub(super) fn compiled(kind: &DocumentKind) -> (Schemas, SchemaIndex) {
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.add_resource(kind.name, derived(kind.name).unwrap()).unwrap();
        let compiled = compiler.compile(kind.name, &mut schemas).unwrap();
        (schemas, compiled)
    }

    #[test]
    fn every_name_is_one_kind_and_its_schema_is_one() {
        let kinds = kinds();
        for (i, kind) in kinds.iter().enumerate() {
            assert!(kinds[i + 1..].iter().all(|other| other.name != kind.name), "{}", kind.name);
            compiled(kind);
            let schema = derived(kind.name).unwrap();
            assert!(schema["properties"].as_object().unwrap().len() > 2, "{}: {schema:#}", kind.name);
        }
    }
}
