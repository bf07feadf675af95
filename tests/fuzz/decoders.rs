//! `precise_tests::untrusted::decoders` of any bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| precise_tests::untrusted::decoders(bytes));
