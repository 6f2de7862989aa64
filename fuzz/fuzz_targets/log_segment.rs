//! A log whose newest segment was overwritten here and there.
#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| sim::hostile::log::open_patched_log(input));
