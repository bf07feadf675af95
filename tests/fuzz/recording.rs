//! `precise_tests::untrusted::recording` of any bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| precise_tests::untrusted::recording(bytes));
