//! Listpacks against vectors.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| structures::twin::play_listpack(input));
