//! Fuzz target: `precise_tests::untrusted::texts`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| precise_tests::untrusted::texts(bytes));
