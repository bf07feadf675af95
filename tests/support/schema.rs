//! Checks the JSON output of `precise` against its schema.

use std::ffi::OsStr;

use anyhow::{Context as _, Result, anyhow};
use boon::{CompileError, Compiler, Schemas};
use precise::text::schema;
use precise::views::document::DocumentKind;
use serde_json::Value;

/// Checks the output of a command if it is JSON: one document, or one line per sample or row.
///
/// # Errors
///
/// Returns an error with each mismatch and its position if the output does not match its schema.
pub fn check(arguments: &[&OsStr], text: &str) -> Result<()> {
    let mut own = arguments.iter().take_while(|argument| **argument != "--");
    let command = arguments.first().copied().and_then(OsStr::to_str);
    let of_a_line = match command {
        Some("script") => Some("sample"),
        Some("export") => Some("row"),
        _ => None,
    };
    // For export: `--format json`.
    let is_json =
        own.any(|argument| *argument == "--json" || (command == Some("export") && *argument == "json"));
    if !is_json || text.is_empty() {
        return Ok(());
    }
    if let Some(name) = of_a_line {
        let kind = &schema::find(name).with_context(|| format!("there is no schema {name}"))?;
        return text.lines().try_for_each(|line| validate(&serde_json::from_str(line)?, kind));
    }
    document(&serde_json::from_str(text).with_context(|| format!("no JSON: {text}"))?)
}

/// Checks a document against the schema that it names.
///
/// # Errors
///
/// Returns an error with each mismatch if the document does not match its schema.
pub fn document(document: &Value) -> Result<()> {
    let name =
        document["kind"].as_str().with_context(|| format!("a document without its kind: {document}"))?;
    validate(document, &schema::find(name).with_context(|| format!("there is no schema {name}"))?)
}

fn validate(document: &Value, kind: &DocumentKind) -> Result<()> {
    let (mut compiler, mut schemas) = (Compiler::new(), Schemas::new());
    let invalid = |error: CompileError| anyhow!("{} has no valid schema: {error:#}", kind.name);
    let schema = schema::derived(kind.name).with_context(|| format!("{} has no schema", kind.name))?;
    compiler.add_resource(kind.name, schema).map_err(invalid)?;
    let compiled = compiler.compile(kind.name, &mut schemas).map_err(invalid)?;
    let valid = schemas.validate(document, compiled);
    valid.map_err(|error| anyhow!("not what the schema of {} says: {error:#}", kind.name))
}
