//! The hash table against a map, walks included, in ordinary and slow memory.
#![no_main]

use structures::twin::{in_two_memories, play_table};

libfuzzer_sys::fuzz_target!(|input: &[u8]| in_two_memories(play_table, input));
