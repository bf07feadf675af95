//! Stub.
/// Compiled.
#[derive(Clone, Debug, Default)]
pub struct Compiled { /// s
pub slots: Vec<precise_common::config::Slot>, /// c
pub clauses: Vec<String>, /// n
pub needs: Needs }
/// Needs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Needs { /// p
pub phys_address: bool, /// s
pub page_size: bool }
