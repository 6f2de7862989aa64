//! Arbitrary bytes as a configuration file.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sim::hostile::config::read_config(input));
