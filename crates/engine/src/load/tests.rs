//! A large value takes many slices, and is the same in the end.

use super::*;
use crate::digest::Digest;
use crate::effect::{Effect, End};
use crate::rdb::tests::{sample, save};
use crate::settings::{Limits, Settings};
use crate::testing::holdings;
use base::{DatabaseId, HashKey};

const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

/// Keys whose values need several slices each: by their elements, or by one element that does.
fn large() -> Keyspace {
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(7));
    let mut apply = |key: &str, effect: &Effect<'_>| {
        keyspace.apply(DatabaseId(0), key.as_bytes(), effect).expect("each key has one type");
    };
    for number in 0..40_000_u32 {
        let text = format!("element-{number}-{}", "x".repeat(number as usize % 30));
        let text = text.as_bytes();
        apply("list", &Effect::ListPush { end: End::Tail, value: text });
        apply("set", &Effect::SetAdd { member: text });
        apply("hash", &Effect::HashSet { field: text, value: b"v", expire_at: None });
        apply("sorted", &Effect::SortedAdd { score: f64::from(number % 50), member: text });
    }
    let long: Vec<u8> = (0..1_500_000_u32).map(|number| (number % 251) as u8).collect();
    apply("string", &Effect::SetString { value: &long, expire_at: Some(NOW.0 + 1) });
    for count in [140_000, 600_000, 1_500_000] {
        let long = &long[..count];
        apply("long:list", &Effect::ListPush { end: End::Tail, value: long });
        apply("long:set", &Effect::SetAdd { member: long });
        apply("long:hash", &Effect::HashSet { field: long, value: long, expire_at: None });
        apply("long:sorted", &Effect::SortedAdd { score: 1.5, member: long });
    }
    apply("small", &Effect::SetAdd { member: b"m" });
    apply("small:string", &Effect::SetString { value: b"s", expire_at: None });
    keyspace
}

#[test]
fn a_large_value_is_loaded_in_slices() {
    let keyspace = large();
    let file = save(&keyspace);
    let (keys, slice_bytes) = (keyspace.len() as u64, keyspace.settings.limits.load_slice_bytes);
    for is_own in [false, true] {
        let mut loader = match is_own {
            true => Loader::of_own_file(&file[..], keys, NOW),
            false => Loader::new(&file[..], NOW),
        };
        let mut loaded = Keyspace::new(Settings::default(), HashKey::fixed(8));
        let (mut slices, mut within) = (1, 0);
        while !loader.load(&mut loaded, u64::MAX).expect("the file is whole") {
            slices += 1;
            within += u64::from(loader.parser.unfinished.is_some());
            assert_eq!(loaded.len() as u64, loader.keys_loaded(), "a value is put in whole");
        }
        assert_eq!(Digest::of_keyspace(&loaded), Digest::of_keyspace(&keyspace));
        // A slice ends with a node, a pair or a piece of a string, which here are all smaller.
        assert!(slices >= file.len() as u64 / (2 * slice_bytes), "{slices} slices");
        assert!(within >= slices / 2, "{within} of {slices} slices end within a value");
    }
}

#[test]
fn a_file_that_ends_within_a_large_value_is_damaged() {
    let file = save(&large());
    for part in 1..20 {
        let mut loader = Loader::new(&file[..file.len() * part / 20], NOW);
        let mut loaded = Keyspace::new(Settings::default(), HashKey::fixed(8));
        let error = loop {
            match loader.load(&mut loaded, 1000) {
                Ok(true) => panic!("a part is no file"),
                Ok(false) => {}
                Err(error) => break error,
            }
        };
        assert!(matches!(error, RdbError::Damaged { .. }), "{error}");
    }
}

#[test]
fn wherever_slices_end_the_same_is_loaded() {
    let keyspace = sample().engine.keyspace;
    let file = save(&keyspace);
    for load_slice_bytes in [1, 2, 3, 5, 17, 100, 1000] {
        let limits = Limits { load_slice_bytes, ..Limits::default() };
        let settings = Settings { limits, ..keyspace.settings.clone() };
        let mut loaded = Keyspace::new(settings, HashKey::fixed(8));
        Loader::new(&file[..], NOW).load_all(&mut loaded).expect("the file is whole");
        assert_eq!(holdings(&loaded), holdings(&keyspace), "by {load_slice_bytes} bytes");
    }
}
