//! Intsets, quicklists and sorted sets against their safe twins.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| structures::twin::play_collections(input));
