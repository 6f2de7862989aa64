//! Manifests, stretches of the log, files of keys, and encrypted bytes overwritten here and there.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sim::hostile::archive::read_archive(input));
