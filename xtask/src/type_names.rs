//! A name means one type: `cargo test -p xtask type_names`. A type that only its own file can see
//! may have any name.

use std::collections::BTreeMap;
use std::fs;

use crate::checkout;

/// What makes a type.
const MAKERS: [&str; 5] = ["struct", "enum", "trait", "union", "type"];

/// The name of the type that a line of code begins, if other files can see it.
fn visible(line: &str) -> Option<&str> {
    let said = line.trim_start().strip_prefix("pub")?;
    let said = match said.strip_prefix('(') {
        Some(scope) => scope.split_once(')')?.1,
        None => said,
    };
    let (maker, name) = said.strip_prefix(' ')?.split_once(' ')?;
    let name = name.split(|c: char| !c.is_alphanumeric()).next()?;
    // A macro gives the name.
    (MAKERS.contains(&maker) && !name.is_empty()).then_some(name)
}

/// The files of the product: the tests of a kernel, of a guest and of a module have names of their
/// own.
fn is_of_the_product(name: &str) -> bool {
    name.ends_with(".rs") && !name.starts_with("tests/") && !name.ends_with("tests.rs")
}

#[test]
fn a_name_means_one_type() {
    let mut homes: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for file in checkout::files().into_iter().filter(|name| is_of_the_product(name)) {
        let Ok(text) = fs::read_to_string(checkout::root().join(&file)) else { continue };
        for name in text.lines().filter_map(visible) {
            homes.entry(name.to_owned()).or_default().push(file.clone());
        }
    }
    assert!(homes.len() > 500, "{} types", homes.len());
    homes.retain(|_, files| files.len() > 1);
    assert!(homes.is_empty(), "types that share a name, with their files: {homes:#?}");
}

#[test]
fn a_type_is_seen_by_its_line() {
    assert_eq!(visible("pub struct Row {"), Some("Row"));
    assert_eq!(visible("    pub(in crate::run) enum End {"), Some("End"));
    assert_eq!(visible("pub type Bytes<'a> = gimli::EndianSlice<'a>;"), Some("Bytes"));
    assert_eq!(visible("struct Row;"), None);
    assert_eq!(visible("pub fn row() {"), None);
}
