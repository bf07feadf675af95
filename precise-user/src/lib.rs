//! precise.
