//! Arbitrary bytes as a script.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sim::hostile::scripts::run_script(input));
