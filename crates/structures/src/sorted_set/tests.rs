//! Sorted sets against a map, under random operations.

use std::collections::BTreeMap;

use super::*;
use crate::twin::Dice;

/// The twin's members in order.
fn ordered(twin: &BTreeMap<Vec<u8>, f64>) -> Vec<(Vec<u8>, f64)> {
    let mut members: Vec<_> = twin.iter().map(|(member, &score)| (member.clone(), score)).collect();
    members.sort_by(|a, b| a.1.partial_cmp(&b.1).expect("not NaN").then_with(|| a.0.cmp(&b.0)));
    members
}

fn check(set: &SortedSet, twin: &BTreeMap<Vec<u8>, f64>, dice: &mut Dice) {
    let expected = ordered(twin);
    let listed: Vec<_> = set.iter().map(|(member, score)| (member.to_vec(), score)).collect();
    assert_eq!(listed, expected);
    assert_eq!(set.len(), twin.len());
    let bytes: usize = set.table.iter().map(ScoredRef::allocated_bytes).sum();
    assert_eq!(set.member_bytes, bytes);
    let (min, max) = (dice.below(40) as f64 - 20.0, dice.below(40) as f64 - 20.0);
    let ranks = set.ranks_by_score(ScoreBound::Inclusive(min), ScoreBound::Exclusive(max));
    let found: Vec<_> = set.range(ranks).rev().map(|(m, s)| (m.to_vec(), s)).collect();
    let within = |entry: &&(Vec<u8>, f64)| entry.1 >= min && entry.1 < max;
    assert_eq!(found, expected.iter().rev().filter(within).cloned().collect::<Vec<_>>());
    if let Some(rank) = set.len().checked_sub(1).map(|last| dice.below(last + 1)) {
        assert_eq!(set.by_rank(rank).map(|(m, s)| (m.to_vec(), s)), Some(expected[rank].clone()));
        assert_eq!(set.rank(&expected[rank].0), Some(rank));
    }
}

#[test]
fn behaves_like_its_twin() {
    for seed in 0..8 {
        let mut dice = Dice::new(seed);
        let mut set = SortedSet::new(KeyHasher::new(seed));
        let mut twin = BTreeMap::new();
        for step in 0..4_000 {
            let member = dice.text();
            match dice.below(if step < 2_500 { 8 } else { 3 }) {
                0 => assert_eq!(set.remove(&member), twin.remove(&member)),
                1 => {
                    let rank = dice.below(set.len() + 1);
                    let expected = ordered(&twin).get(rank).cloned();
                    let removed = set.remove_at(rank);
                    assert_eq!(removed, expected);
                    removed.map(|(member, _)| twin.remove(&member));
                }
                _ => {
                    let score = dice.below(40) as f64 - 20.0;
                    let expected = match twin.insert(member.clone(), score) {
                        None => Scored::Added,
                        Some(old) if old == score => Scored::Unchanged,
                        Some(old) => Scored::Updated(old),
                    };
                    assert_eq!(set.insert(&member, score), expected);
                }
            }
            assert_eq!(set.score(&member), twin.get(&member).copied());
            if step % 250 == 0 {
                check(&set, &twin, &mut dice);
            }
        }
        let from = dice.below(10);
        let expected: Vec<_> = ordered(&twin).into_iter().skip(from).collect();
        let mut removed = Vec::new();
        set.remove_range(from..usize::MAX, |member, score| removed.push((member.to_vec(), score)));
        assert_eq!(removed, expected);
        expected.iter().for_each(|(member, _)| {
            twin.remove(member);
        });
        check(&set, &twin, &mut dice);
    }
}

#[test]
fn member_of_16_bytes_costs_at_most_70() {
    let mut set = SortedSet::new(KeyHasher::new(1));
    let mut dice = Dice::new(5);
    for n in 0..200_000 {
        let score = dice.below(1 << 40) as f64;
        set.insert(format!("member:{n:09}").as_bytes(), score);
    }
    let each = set.allocated_bytes() as f64 / set.len() as f64;
    println!("sorted set: {each:.1} bytes a member of 16 bytes");
    assert!(each <= 60.0, "{each:.1}");
}
