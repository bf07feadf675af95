//! Captures in the formats of other tools, one file per format. The output is for programs: nothing
//! is shortened, and text is not made safe for a terminal.

mod dictionary;
mod frame_name;
pub mod otlp;
#[cfg(test)]
mod otlp_tests;
pub mod pprof;
pub mod service;
pub mod table;
#[cfg(test)]
mod tests;
pub mod wire;
