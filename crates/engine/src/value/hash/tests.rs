use super::*;
use crate::settings::Settings;
use crate::value::ValueType;
use crate::work::Work;
use std::collections::BTreeMap;

fn with_recipe(run: impl FnOnce(&Recipe<'_>)) {
    let settings = Settings {
        hash_max_listpack_entries: 4,
        hash_max_listpack_value: 10,
        ..Settings::default()
    };
    let work = Work::default();
    run(&Recipe { settings: &settings, hasher: KeyHasher::fixed(1), work: &work });
}

fn text(item: Option<Text<'_>>) -> Option<String> {
    item.map(|item| String::from_utf8_lossy(&item.to_vec()).into_owned())
}

#[test]
fn a_hash_stays_a_listpack_up_to_both_limits() {
    with_recipe(|recipe| {
        let mut hash = Hash::new();
        for field in ["a", "b", "c", "4"] {
            assert!(hash.set(field.as_bytes(), b"1", recipe));
        }
        assert!(!hash.set(b"a", b"0123456789", recipe));
        assert_eq!((hash.encoding(), hash.len()), ("listpack", 4));
        let mut long = hash.copied(&Work::default());
        assert!(!long.set(b"a", b"0123456789!", recipe));
        assert_eq!((long.encoding(), long.len()), ("hashtable", 4));
        assert_eq!(text(long.get(b"a")).as_deref(), Some("0123456789!"));
        assert!(hash.set(b"e", b"5", recipe));
        assert_eq!((hash.encoding(), hash.len()), ("hashtable", 5));
        assert_eq!(text(hash.get(b"4")).as_deref(), Some("1"));
        assert!(hash.remove(b"4") && !hash.remove(b"4") && hash.get(b"4").is_none());
    });
}

#[test]
fn bytes_follow_values_that_grow_and_shrink() {
    with_recipe(|recipe| {
        let mut hash = Hash::new();
        let mut twin = BTreeMap::new();
        for i in 0..2000_usize {
            let field = format!("field-{}", i % 100).into_bytes();
            let value = vec![b'v'; (i * 37) % 500];
            assert_eq!(hash.set(&field, &value, recipe), twin.insert(field, value).is_none());
            assert_eq!(hash.len(), twin.len());
        }
        assert_eq!(hash.copied(&Work::default()).allocated_bytes(), hash.allocated_bytes());
        let held: BTreeMap<_, _> = hash.iter().map(|(f, v)| (f.to_vec(), v.to_vec())).collect();
        assert_eq!(held, twin);
    });
}
