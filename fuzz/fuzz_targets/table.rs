//! The hash table against a map, walks included.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| structures::twin::play_table(input));
