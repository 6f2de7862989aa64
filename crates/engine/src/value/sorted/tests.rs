use super::*;
use crate::settings::Settings;
use crate::value::ValueType;
use crate::work::Work;
use std::collections::BTreeMap;

fn with_recipe(run: impl FnOnce(&Recipe<'_>)) {
    let settings = Settings {
        zset_max_listpack_entries: 40,
        zset_max_listpack_value: 10,
        ..Settings::default()
    };
    let work = Work::default();
    run(&Recipe { settings: &settings, hasher: KeyHasher::fixed(1), work: &work });
}

fn pairs<'a>(pairs: impl Iterator<Item = (Text<'a>, f64)>) -> Vec<(Vec<u8>, f64)> {
    pairs.map(|(member, score)| (member.to_vec(), score)).collect()
}

fn expected(twin: &BTreeMap<Vec<u8>, f64>) -> Vec<(Vec<u8>, f64)> {
    let mut pairs: Vec<_> = twin.iter().map(|(member, score)| (member.clone(), *score)).collect();
    pairs.sort_by(|a, b| a.1.partial_cmp(&b.1).unwrap().then_with(|| a.0.cmp(&b.0)));
    pairs
}

#[test]
fn both_forms_are_in_order_under_random_changes() {
    with_recipe(|recipe| {
        let mut dice = crate::random::Random::new(7);
        let mut sorted = Sorted::new();
        let mut twin = BTreeMap::new();
        for step in 0..3_000 {
            // Up to 40 members at first: both forms are met.
            let members = if step < 1_500 { 40 } else { 300 };
            let member = dice.below(members).to_string().into_bytes();
            let score = dice.below(20) as f64 / 4.0 - 2.0;
            if dice.below(4) == 0 {
                assert_eq!(sorted.remove(&member), twin.remove(&member));
            } else {
                let is = match twin.insert(member.clone(), score) {
                    None => Scored::Added,
                    Some(old) if old == score => Scored::Unchanged,
                    Some(old) => Scored::Updated(old),
                };
                assert_eq!(sorted.insert(&member, score, recipe), is);
            }
            if step % 20 == 0 {
                check(&sorted, &expected(&twin), &mut dice);
            }
        }
        assert_eq!(sorted.encoding(), "skiplist");
        assert_eq!(pairs(sorted.copied(&Work::default()).iter()), expected(&twin));
    });
}

fn check(sorted: &Sorted, expected: &[(Vec<u8>, f64)], dice: &mut crate::random::Random) {
    assert_eq!(pairs(sorted.iter()), expected);
    let (a, b) = (dice.below(50) as usize, dice.below(50) as usize);
    let end = b.min(expected.len());
    let ranks = expected.get(a..end).unwrap_or_default();
    assert_eq!(pairs(sorted.ascending(a..b)), ranks);
    let mut down = pairs(sorted.descending(a..b));
    down.reverse();
    assert_eq!(down, ranks);
    for (rank, (member, score)) in expected.iter().enumerate() {
        assert_eq!(sorted.rank(member), Some(rank));
        assert_eq!(sorted.score(member), Some(*score));
    }
    let (min, max) = (dice.below(24) as f64 / 4.0 - 2.5, dice.below(24) as f64 / 4.0 - 2.5);
    let inside = |keep: &dyn Fn(f64) -> bool| expected.iter().filter(|pair| keep(pair.1)).count();
    use ScoreBound::{Exclusive, Inclusive};
    let found = sorted.ranks_by_score(Inclusive(min), Exclusive(max));
    assert_eq!(found.len(), inside(&|score| score >= min && score < max));
    let found = sorted.ranks_by_score(Exclusive(min), Inclusive(max));
    assert_eq!(found.len(), inside(&|score| score > min && score <= max));
}

#[test]
fn lexical_bounds_mean_the_same_in_both_forms() {
    with_recipe(|recipe| {
        let mut small = Sorted::new();
        let mut large = Sorted::new();
        large.insert(b"longer than ten", 0.0, recipe);
        large.remove(b"longer than ten");
        for member in ["1", "10", "2", "a", "ab", "b"] {
            small.insert(member.as_bytes(), 0.0, recipe);
            large.insert(member.as_bytes(), 0.0, recipe);
        }
        assert_eq!((small.encoding(), large.encoding()), ("listpack", "skiplist"));
        let texts: [&[u8]; 5] = [b"", b"10", b"a", b"aa", b"z"];
        let mut bounds = vec![LexBound::Min, LexBound::Max];
        for text in texts {
            bounds.extend([LexBound::Inclusive(text), LexBound::Exclusive(text)]);
        }
        for min in &bounds {
            for max in &bounds {
                let found = small.ranks_by_lex(*min, *max);
                assert_eq!(pairs(small.ascending(found)), {
                    pairs(large.ascending(large.ranks_by_lex(*min, *max)))
                });
            }
        }
    });
}

#[test]
fn a_sorted_set_stays_a_listpack_up_to_both_limits() {
    with_recipe(|recipe| {
        let mut sorted = Sorted::new();
        for member in 0..40_u32 {
            sorted.insert(member.to_string().as_bytes(), 1.0, recipe);
        }
        assert_eq!((sorted.encoding(), sorted.len()), ("listpack", 40));
        sorted.insert(b"7", 2.5, recipe);
        assert_eq!(sorted.encoding(), "listpack");
        let mut long = sorted.copied(&Work::default());
        long.remove(b"0");
        long.insert(b"0123456789", 1.0, recipe);
        assert_eq!(long.encoding(), "listpack");
        long.remove(b"1");
        long.insert(b"0123456789!", 1.0, recipe);
        assert_eq!((long.encoding(), long.len()), ("skiplist", 40));
        sorted.insert(b"40", 1.0, recipe);
        assert_eq!((sorted.encoding(), sorted.len()), ("skiplist", 41));
        assert_eq!(sorted.score(b"7"), Some(2.5));
        assert_eq!(sorted.allocated_bytes(), sorted.copied(&Work::default()).allocated_bytes());
    });
}

/// As Redis 7.0.15's DUMP carries it: `ZADD z 1 a 2.5 b 0 c 1e19 d`.
#[test]
fn scores_are_stored_as_redis_stores_them() {
    with_recipe(|recipe| {
        let mut sorted = Sorted::new();
        for (member, score) in [("a", 1.0), ("b", 2.5), ("c", 0.0), ("d", 1e19)] {
            sorted.insert(member.as_bytes(), score, recipe);
        }
        let Sorted::Pack(pack) = &sorted else { panic!("four members are a listpack") };
        let expected = b"\x23\0\0\0\x08\0\x81c\x02\0\x01\x81a\x02\x01\x01\x81b\x02\x832.5\x04\
                         \x81d\x02\x851e+19\x06\xff";
        assert_eq!(pack.bytes(), expected);
    });
}

/// A value that was a tree has it, and may be a listpack when it is read again.
#[test]
fn minus_zero_stays_minus_zero_in_both_forms() {
    with_recipe(|recipe| {
        let mut sorted = Sorted::new();
        let is_minus = |sorted: &Sorted, member: &[u8]| {
            sorted.score(member).is_some_and(|score| score == 0.0 && score.is_sign_negative())
        };
        for number in 0..200 {
            sorted.insert(number.to_string().as_bytes(), -0.0, recipe);
            assert!(is_minus(&sorted, b"0") && is_minus(&sorted, number.to_string().as_bytes()));
        }
        assert_eq!(sorted.encoding(), "skiplist");
    });
}
