//! The list of all views, independent of their types, and of all documents.

use crate::document::{DerivedSchema, DocumentKind};
use crate::imported;
use crate::view::AnyView;

/// All views, in the order of `precise --help`.
pub static VIEWS: &[&dyn AnyView] = crate::VIEWS;

/// Returns the view with this name.
pub fn find(name: &str) -> Option<&'static dyn AnyView> {
    VIEWS.iter().copied().find(|view| view.description().name == name)
}

/// Returns the kinds of documents of this crate: those of all views, and that of an import.
pub fn document_kinds() -> Vec<DocumentKind> {
    VIEWS.iter().map(|view| view.document()).chain(imported::KINDS.iter().cloned()).collect()
}

/// Returns how the schema of each of these kinds is derived, in the same order.
pub fn derived_schemas() -> Vec<DerivedSchema> {
    crate::SCHEMAS.iter().chain(imported::SCHEMAS).copied().collect()
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
