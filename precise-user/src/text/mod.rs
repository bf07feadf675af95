//! Text of results that are not views: events, the state of the machine, streamed samples,
//! archives, fleets.

pub mod archive_text;
pub mod doctor_text;
pub mod exit_codes;
pub mod fleet_answers;
pub mod fleet_text;
pub mod schema;
pub mod stream_account;
pub mod stream_chain;
pub mod stream_json;
#[cfg(test)]
mod stream_tests;
pub mod stream_text;
