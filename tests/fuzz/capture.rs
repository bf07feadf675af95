//! Fuzz target: `precise_tests::untrusted::capture`.

#![no_main]

libfuzzer_sys::fuzz_target!(
    // libFuzzer's hook ends the process at every panic, including those of parquet that the reader
    // turns into errors. Without the hook, all other panics are still found, because they leave the
    // target.
    init: std::panic::set_hook(Box::new(|_| {})),
    |bytes: &[u8]| precise_tests::untrusted::capture(bytes)
);
