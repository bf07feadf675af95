//! A capture in the formats of other tools: one file per format. They are for programs: nothing is
//! cut, and nothing is made safe for a terminal.

pub mod pprof;
pub mod table;
#[cfg(test)]
mod tests;
