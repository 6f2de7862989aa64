//! RDB files, manifests, and a published snapshot overwritten here and there.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sim::hostile::snapshot::load_snapshot(input));
