//! What a stranger says to a port for encrypted connections.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| world::net::hostile::shake_hands(input));
