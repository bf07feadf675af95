//! Tests that need at most the binary, and neither root nor perf events: documents, schemas,
//! recordings, untrusted bytes, sources, DuckDB.

mod documents;
mod duckdb;
mod recordings;
mod schemas;
mod sources;
mod untrusted;
