//! The JSON documents that precise prints: the name of each, the version of its schema, and the schema itself, which is derived
//! from the types that are printed. What is not listed here cannot be printed.

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Value, json};

use super::heatmap_json::HeatmapJson;
use super::json::{Doctor, Printed};
use super::stream_account::Accounts;
use crate::archive::Archive;
use crate::capture::{COLUMNS, Reason};
use crate::error::ExitCodes;
use crate::export::table::json_type;
use crate::pmu::list::EventList;
use crate::self_test;
use crate::stream::Field;
use crate::views::{
    annotate::Annotation, branches::Branches, c2c::C2c, call_graph::CallGraph, chase::Chase, check::Check,
    derived::DerivedView, diff::Diff, explain::Explanation, fetch::FetchView, imported::ImportedView,
    latency::Latency, mem::Mem, numa::Numa, report::Report, skid::Skid, summary::Summary, tlb::TlbView,
};

/// Something that is printed as a JSON document of its own.
pub trait Document: Serialize + JsonSchema {
    /// What `kind` says in the document.
    const KIND: &'static str;
    /// What `schema` says: raised when a field goes away, changes its type or its meaning. One that is added does not
    /// raise it.
    const VERSION: u32;
}

/// A kind of document.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// What `kind` says in the document, and what `precise schema` takes.
    pub name: &'static str,
    /// What `schema` says in the document.
    pub version: u32,
    /// The command that prints it.
    pub command: &'static str,
    /// The schema, draft 2020-12 of JSON Schema.
    pub schema: fn() -> Value,
}

macro_rules! documents {
    ($($content:ty: $name:literal $version:literal $command:literal,)*) => {
        $(impl Document for $content {
            const KIND: &'static str = $name;
            const VERSION: u32 = $version;
        })*

        /// Every kind of document, by name.
        pub const KINDS: &[Kind] = &[
            $(Kind { name: $name, version: $version, command: $command, schema: derived::<$content> },)*
            Kind { name: "row", version: 1, command: "export --format json, a line each", schema: row },
            Kind { name: "sample", version: 1, command: "script --json, a line each", schema: sample },
        ];
    };
}

documents! {
    Accounts<'_>: "account" 2 "script --account",
    Annotation: "annotate" 2 "annotate --json",
    Archive: "archive" 1 "archive --json",
    Branches: "branches" 2 "branches --json",
    C2c: "c2c" 2 "c2c --json",
    CallGraph: "call-graph" 2 "report --call-graph --json",
    Chase: "chase" 2 "chase --json",
    Check: "check" 1 "check --json",
    DerivedView: "derived" 2 "derived --json",
    Diff: "diff" 2 "diff --json",
    Doctor<'_>: "doctor" 2 "doctor --json",
    Explanation: "explain" 2 "explain --json",
    ExitCodes: "exit-codes" 1 "exit-codes --json",
    FetchView: "fetch" 2 "fetch --json",
    HeatmapJson<'_>: "heatmap" 2 "heatmap --json",
    ImportedView: "import" 2 "import --json",
    Latency: "latency" 2 "latency --json",
    EventList: "list" 1 "list --json",
    Mem: "mem" 2 "mem --json",
    Numa: "numa" 2 "numa --json",
    Report: "report" 2 "report --by --json, record --json",
    self_test::Report: "self-test" 2 "doctor --self-test --json",
    Skid: "skid" 2 "skid --json",
    Summary: "summary" 2 "report --json, record --json",
    TlbView: "tlb" 2 "tlb --json",
}

/// The kind of this name.
pub fn find(name: &str) -> Option<&'static Kind> {
    KINDS.iter().find(|kind| kind.name == name)
}

/// The schema of what [`super::json::document`] prints of a type.
fn derived<T: Document>() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<Printed<'_, T>>().to_value();
    schema["title"] = title(T::KIND, T::VERSION);
    schema["properties"]["schema"] =
        json!({ "const": T::VERSION, "description": "version of this kind's schema" });
    schema["properties"]["kind"] = json!({ "const": T::KIND, "description": "what this document is" });
    schema
}

fn title(name: &str, version: u32) -> Value {
    format!("precise {name}, version {version}").into()
}

/// The schema of a streamed sample, which has the fields that the user chose, and for speed no name and version.
fn sample() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let reason = generator.into_root_schema_for::<Reason>().to_value();
    let unknown = json!({ "type": "string", "enum": names(&reason), "description": "why the field is null" });
    let offset = json!({ "type": "integer", "minimum": 0, "description": "bytes from the start of what the field names" });
    let mut properties = serde_json::Map::new();
    for field in Field::all() {
        let name = field.name();
        let value = json!({
            "type": ["string", "integer", "boolean", "null"],
            "description": field.doc(),
        });
        properties.insert(name.to_owned(), value);
        properties.insert(format!("{name}_unknown"), unknown.clone());
        properties.insert(format!("{name}_offset"), offset.clone());
    }
    line("sample", "One sample: the fields that --fields names, in their order.", properties, &[])
}

/// The schema of an exported row: a column each, and what is null is not there.
fn row() -> Value {
    let properties = COLUMNS.iter().map(|column| {
        (column.name.to_owned(), json!({ "type": json_type(column), "description": column.doc }))
    });
    let always: Vec<_> = COLUMNS.iter().filter(|column| !column.nullable).map(|column| column.name).collect();
    line("row", "One row of a capture. What is null is left out.", properties.collect(), &always)
}

/// The schema of one line of many, which says neither kind nor version.
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

/// The names of an enumeration, from its schema.
fn names(schema: &Value) -> Vec<Value> {
    let variants = schema["oneOf"].as_array().into_iter().flatten();
    variants
        .flat_map(|variant| {
            let one = variant.get("const").cloned().into_iter();
            one.chain(variant["enum"].as_array().into_iter().flatten().cloned())
        })
        .collect()
}

/// Panics unless a document is what its schema says: every document that a unit test makes comes by here.
#[cfg(test)]
pub(crate) fn check(text: &str) {
    let document: Value = serde_json::from_str(text).unwrap();
    let kind = find(document["kind"].as_str().unwrap()).unwrap();
    let (schemas, compiled) = tests::compiled(kind);
    schemas.validate(&document, compiled).unwrap_or_else(|error| panic!("{}: {error:#}", kind.name));
}

#[cfg(test)]
mod tests {
    use boon::{Compiler, SchemaIndex, Schemas};

    use super::*;

    pub(super) fn compiled(kind: &Kind) -> (Schemas, SchemaIndex) {
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.add_resource(kind.name, (kind.schema)()).unwrap();
        let compiled = compiler.compile(kind.name, &mut schemas).unwrap();
        (schemas, compiled)
    }

    #[test]
    fn every_name_is_one_kind_and_its_schema_is_one() {
        for (i, kind) in KINDS.iter().enumerate() {
            assert!(KINDS[i + 1..].iter().all(|other| other.name != kind.name), "{}", kind.name);
            compiled(kind);
            let schema = (kind.schema)();
            assert!(schema["properties"].as_object().unwrap().len() > 2, "{}: {schema:#}", kind.name);
        }
    }
}
