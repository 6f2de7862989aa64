//! Arbitrary bytes as requests about streams, or as a payload for RESTORE.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sim::hostile::streams::play_streams(input));
