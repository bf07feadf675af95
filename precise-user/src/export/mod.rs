//! Captures in the formats of other tools, one file per format. The output is for programs: nothing
//! is shortened, and text is not made safe for a terminal.

pub mod pprof;
pub mod table;
#[cfg(test)]
mod tests;
