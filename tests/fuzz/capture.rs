//! `precise_tests::untrusted::capture` of any bytes.

#![no_main]

libfuzzer_sys::fuzz_target!(
    // libFuzzer's hook ends the process at each panic, also at those of parquet that the reader
    // makes errors of. Any other is still found: it leaves the target.
    init: std::panic::set_hook(Box::new(|_| {})),
    |bytes: &[u8]| precise_tests::untrusted::capture(bytes)
);
