//! The list of all views, independent of their types.

use crate::view::AnyView;

/// All views, in the order of `precise --help`.
pub static VIEWS: &[&dyn AnyView] = crate::VIEWS;

/// Returns the view with this name.
pub fn find(name: &str) -> Option<&'static dyn AnyView> {
    VIEWS.iter().copied().find(|view| view.description().name == name)
}

#[cfg(test)]
#[path = "registry_tests.rs"]
mod tests;
