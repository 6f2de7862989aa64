//! Intsets, quicklists and sorted sets against their safe twins, in ordinary and slow memory.
#![no_main]

use structures::twin::{in_two_memories, play_collections};

libfuzzer_sys::fuzz_target!(|input: &[u8]| in_two_memories(play_collections, input));
