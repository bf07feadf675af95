//! The build and check tasks of precise.
fn main() {}
