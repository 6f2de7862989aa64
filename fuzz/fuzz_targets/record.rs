//! Arbitrary bytes as one record of the log.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sim::hostile::log::decode_record(input));
