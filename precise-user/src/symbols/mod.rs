//! Addresses to names.
pub mod mapping;
pub mod process;
mod procfs;
