//! A client's requests, whole and in pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sim::hostile::requests::decode_requests(input));
