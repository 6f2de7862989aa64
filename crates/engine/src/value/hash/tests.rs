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

/// A hash and what it should hold, under random changes, in every form.
#[test]
fn fields_that_expire_behave_like_a_twin() {
    with_recipe(|recipe| {
        for seed in 0..20 {
            let mut dice = crate::random::Random::new(seed);
            let mut hash = Hash::new();
            let mut twin: BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)> = BTreeMap::new();
            // Half of them stay small.
            let fields = if seed % 2 == 0 { 4 } else { 40 };
            for _ in 0..800 {
                let field = format!("f{}", dice.below(fields)).into_bytes();
                let at = (dice.below(3) == 0).then(|| 1 + dice.below(50) as i64);
                match dice.below(8) {
                    0..2 => {
                        assert_eq!(hash.remove(&field), twin.remove(&field).is_some());
                    }
                    2..4 => {
                        let before = twin.get(&field).map(|(_, at)| *at);
                        let changes = before.is_some_and(|it| it.is_some() || at.is_some());
                        assert_eq!(hash.expire(&field, at, recipe), changes);
                        twin.entry(field.clone()).and_modify(|held| held.1 = at);
                    }
                    4 => {
                        let is_new = twin.insert(field.clone(), (b"1".to_vec(), None)).is_none();
                        assert_eq!(hash.set(&field, b"1", recipe), is_new);
                    }
                    _ => {
                        let value = dice.below(1000).to_string().into_bytes();
                        let is_new = hash.set_expiring(&field, &value, at, recipe);
                        assert_eq!(is_new, twin.insert(field.clone(), (value, at)).is_none());
                    }
                }
                compare(&hash, &twin, dice.below(60) as i64, recipe.work);
            }
        }
    });
}

fn compare(hash: &Hash, twin: &BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)>, by: i64, work: &Work) {
    let held = hash.iter_timed().map(|(field, value, at)| (field.to_vec(), (value.to_vec(), at)));
    assert_eq!(held.collect::<BTreeMap<_, _>>(), *twin);
    let times = || twin.values().filter_map(|(_, at)| *at);
    assert_eq!(hash.next_expiry(), times().min());
    let is_timed = matches!(hash, Hash::TimedPack(_) | Hash::TimedTable(_));
    assert_eq!(is_timed, times().next().is_some(), "the plain form comes back");
    let is_shown = |at: Option<i64>| at.is_none_or(|at| at > by);
    let shown = || twin.iter().filter(|(_, (_, at))| is_shown(*at));
    assert_eq!(hash.is_all_due(by), !twin.is_empty() && shown().next().is_none());
    let mut due = hash.due(by, usize::MAX);
    due.sort();
    assert!(due.iter().eq(twin.iter().filter(|(_, (_, at))| !is_shown(*at)).map(|(name, _)| name)));
    let seen = Seen::new(hash, by);
    assert_eq!(seen.len(work), shown().count());
    let held: BTreeMap<_, _> = seen.iter(work).map(|(f, v)| (f.to_vec(), v.to_vec())).collect();
    assert!(held.iter().eq(shown().map(|(name, (value, _))| (name, value))));
    let mut scanned = 0;
    let mut cursor = 0;
    loop {
        cursor = seen.scan(cursor, 3, |_, _| scanned += 1);
        if cursor == 0 {
            break;
        }
    }
    assert_eq!(scanned, shown().count());
    for (name, (value, at)) in twin {
        let expected = is_shown(*at).then(|| value.clone());
        assert_eq!(seen.get(name).map(|value| value.to_vec()), expected);
        assert_eq!(seen.expire_at(name), is_shown(*at).then_some(*at));
    }
    let copy = hash.copied(work);
    assert_eq!((copy.len(), copy.next_expiry()), (hash.len(), hash.next_expiry()));
}

#[test]
fn what_does_not_expire_pays_nothing() {
    assert_eq!(size_of::<Value>(), 32, "a size class of the allocator, which every box takes");
    with_recipe(|recipe| {
        for fields in [4, 400] {
            let (mut plain, mut other) = (Hash::new(), Hash::new());
            for i in 0..fields {
                let field = format!("field-{i}").into_bytes();
                plain.set(&field, b"1", recipe);
                other.set_expiring(&field, b"1", Some(1 << 40), recipe);
            }
            let each = (other.allocated_bytes() - plain.allocated_bytes()) / fields;
            println!("{fields} fields: {each} bytes more for each that expires");
            assert!(each <= 48, "{each}");
            for i in 0..fields {
                other.expire(format!("field-{i}").as_bytes(), None, recipe);
            }
            assert!(other.allocated_bytes() <= plain.allocated_bytes());
            assert_eq!(other.encoding(), plain.encoding());
        }
    });
}

#[test]
fn random_fields_are_those_that_are_seen() {
    with_recipe(|recipe| {
        for fields in [4, 100] {
            let mut hash = Hash::new();
            for i in 0..fields {
                let at = (i > 0).then_some(10);
                hash.set_expiring(format!("f{i}").as_bytes(), b"v", at, recipe);
            }
            let mut dice = crate::random::Random::new(1);
            for _ in 0..20 {
                let seen = Seen::new(&hash, 10);
                let drawn = seen.random(recipe.work, || dice.word());
                assert_eq!(text(drawn.map(|(field, _)| field)).as_deref(), Some("f0"));
            }
        }
    });
}
