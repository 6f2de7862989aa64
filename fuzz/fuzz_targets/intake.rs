//! RDB files, append-only files and a master's data set, as `kiln import` reads them.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sim::hostile::intake::take_in(input));
