//! Arbitrary bytes as a record's payload, applied to a keyspace.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sim::hostile::effects::apply_payload(input));
