//! Tests that need at most the binary, and neither root nor perf events: documents, schemas,
//! recordings, untrusted bytes, sources, the engines that read captures, the tables of a fleet.

mod advice;
mod doc_commands;
mod doc_machine;
mod documents;
mod duckdb;
mod fleet;
mod fleet_engines;
mod mcp;
mod otlp;
mod parts;
mod readers;
mod recordings;
mod schemas;
mod selecting;
mod session_picture;
mod sources;
mod untrusted;
