//! Results as JSON documents. Each document contains its kind and the version of its schema.

use std::borrow::Cow;

use schemars::{JsonSchema, generate::SchemaSettings};
use serde::Serialize;
use serde_json::{Value, json};

use crate::gates::GateResult;
use precise_model::{Selection, safe_json};

/// A type that is printed as a JSON document of its own.
pub trait Document: Serialize + JsonSchema {
    /// Value of the document's field `kind`.
    const KIND: &'static str;
    /// Value of the document's field `schema`: the version of the schema. It increases when a field
    /// is removed, or changes its type or its meaning. New fields do not increase it.
    const VERSION: u32;
}

/// A kind of document.
#[derive(Clone, Debug)]
pub struct DocumentKind {
    /// Value of the document's field `kind`, and the argument of `precise schema`.
    pub name: &'static str,
    /// Value of the document's field `schema`: the version of the schema.
    pub version: u32,
    /// The command that prints this document.
    pub command: Cow<'static, str>,
}

/// How the schema of a kind of document is derived from its type.
///
/// The binary prints the copies in docs/schemas instead, which a test compares with these: the code
/// that derives schemas is half a megabyte, and nothing in the binary refers to it, so the linker
/// drops it.
#[derive(Clone, Copy, Debug)]
pub struct DerivedSchema {
    /// The kind of document, as in [`DocumentKind::name`].
    pub name: &'static str,
    /// Derives the schema, in draft 2020-12 of JSON Schema.
    pub derive: fn() -> Value,
}

impl DerivedSchema {
    /// Returns how the schema of the documents that [`document`] makes of a type is derived.
    pub const fn of<T: Document>() -> Self {
        Self { name: T::KIND, derive: schema_of::<T> }
    }
}

/// Implements `Document` for a type, given the document's kind and the version of its schema.
macro_rules! document_type {
    ($content:ty: $name:literal $version:literal) => {
        impl $crate::document::Document for $content {
            const KIND: &'static str = $name;
            const VERSION: u32 = $version;
        }
    };
}
pub(crate) use document_type;

/// Declares documents that do not belong to a view. For each: its type, its kind, the version of
/// its schema, and the command that prints it. Defines the lists `KINDS` and `SCHEMAS`.
#[macro_export]
macro_rules! documents {
    ($($content:ty: $name:literal $version:literal $command:literal,)*) => {
        $(impl $crate::document::Document for $content {
            const KIND: &'static str = $name;
            const VERSION: u32 = $version;
        })*

        /// The kinds of documents declared here.
        pub const KINDS: &[$crate::document::DocumentKind] = &[
            $($crate::document::DocumentKind {
                name: $name,
                version: $version,
                command: ::std::borrow::Cow::Borrowed($command),
            },)*
        ];

        /// How the schemas of these kinds are derived.
        pub const SCHEMAS: &[$crate::document::DerivedSchema] =
            &[$($crate::document::DerivedSchema::of::<$content>(),)*];
    };
}

/// A document with its header fields.
#[derive(Serialize, JsonSchema)]
struct Printed<'a, T> {
    schema: u32,
    kind: &'static str,
    #[serde(flatten)]
    content: &'a T,
    /// The part of the run that the document is about; absent if it is about all of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    selection: Option<&'a Selection>,
    /// Results of the gates, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    gates: Option<&'a [GateResult]>,
}

impl<'a, T: Document> Printed<'a, T> {
    fn of(content: &'a T, gates: Option<&'a [GateResult]>, selection: Option<&'a Selection>) -> Self {
        Self { schema: T::VERSION, kind: T::KIND, content, selection, gates }
    }
}

/// Serializes a result as a JSON document. Shares are fractions of 1, latencies are core cycles,
/// and addresses are hexadecimal strings.
///
/// # Errors
///
/// Never returns an error in practice; the error type is serde_json's, for values that cannot be
/// serialized.
pub fn document<T: Document>(content: &T, gates: Option<&[GateResult]>) -> Result<String, serde_json::Error> {
    document_about(content, gates, None)
}

/// Serializes a result about a part of a run as a JSON document.
///
/// # Errors
///
/// Never returns an error in practice, as for [`document`].
pub fn document_about<T: Document>(
    content: &T,
    gates: Option<&[GateResult]>,
    selection: Option<&Selection>,
) -> Result<String, serde_json::Error> {
    let text = safe_json::pretty(&Printed::of(content, gates, selection))? + "\n";
    #[cfg(test)]
    tests::check::<T>(&text);
    Ok(text)
}

/// Serializes a result as a JSON document on one line.
///
/// # Errors
///
/// Never returns an error in practice, as for [`document`].
pub fn document_line<T: Document>(content: &T) -> Result<String, serde_json::Error> {
    let text = safe_json::compact(&Printed::of(content, None, None))? + "\n";
    #[cfg(test)]
    tests::check::<T>(&text);
    Ok(text)
}

/// Returns the schema of the documents that [`document`] makes of a type.
pub fn schema_of<T: Document>() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = generator.into_root_schema_for::<Printed<'_, T>>().to_value();
    schema["title"] = title(T::KIND, T::VERSION);
    schema["properties"]["schema"] =
        json!({ "const": T::VERSION, "description": "version of this kind's schema" });
    schema["properties"]["kind"] = json!({ "const": T::KIND, "description": "what this document is" });
    schema
}

/// Returns the title of a schema.
pub fn title(name: &str, version: u32) -> Value {
    format!("precise {name}, version {version}").into()
}

#[cfg(test)]
mod tests {
    use boon::{Compiler, Schemas};
    use serde_json::Value;

    use super::{Document, schema_of};

    /// Panics unless a document matches its schema. Every document that a unit test of this crate
    /// makes is checked here.
    pub(super) fn check<T: Document>(text: &str) {
        let document: Value = serde_json::from_str(text).unwrap();
        let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
        compiler.add_resource(T::KIND, schema_of::<T>()).unwrap();
        let compiled = compiler.compile(T::KIND, &mut schemas).unwrap();
        schemas.validate(&document, compiled).unwrap_or_else(|error| panic!("{}: {error:#}", T::KIND));
    }
}
