//! Sorted sets against a map, step by step: for the tests and for the fuzzer.

use std::collections::BTreeMap;

use super::*;
use crate::twin::Dice;

/// Changes a sorted set as the dice fall.
pub(crate) fn play(dice: &mut Dice) {
    let mut set = SortedSet::new(KeyHasher::fixed(1));
    let mut twin = BTreeMap::new();
    while !dice.is_spent() {
        for _ in 0..16 {
            step(dice, &mut set, &mut twin, 8);
        }
        check(&set, &twin, dice);
    }
}

/// One change. Fewer choices remove more.
pub(super) fn step(
    dice: &mut Dice,
    set: &mut SortedSet,
    twin: &mut BTreeMap<Vec<u8>, f64>,
    choices: usize,
) {
    let member = dice.text();
    match dice.below(choices) {
        0 => assert_eq!(set.remove(&member), twin.remove(&member)),
        1 => {
            let rank = dice.below(set.len() + 1);
            let expected = ordered(twin).get(rank).cloned();
            let removed = set.remove_at(rank);
            assert_eq!(removed, expected);
            removed.map(|(member, _)| twin.remove(&member));
        }
        _ => {
            let score = score(dice);
            let expected = match twin.insert(member.clone(), score) {
                None => Scored::Added,
                Some(old) if old == score => Scored::Unchanged,
                Some(old) => Scored::Updated(old),
            };
            assert_eq!(set.insert(&member, score), expected);
        }
    }
    assert_eq!(set.score(&member), twin.get(&member).copied());
}

/// A score: whole and small, or about where the short form ends, or none that has it.
fn score(dice: &mut Dice) -> f64 {
    let whole = dice.below(40) as f64 - 20.0;
    match dice.below(8) {
        0 => whole + 0.5,
        1 => whole * 1e9,
        2 => [-0.0, f64::INFINITY, f64::NEG_INFINITY][dice.below(3)],
        3 => f64::from(i32::MAX) + whole,
        4 => f64::from(i32::MIN) + whole,
        _ => whole,
    }
}

/// The twin's members in order.
pub(super) fn ordered(twin: &BTreeMap<Vec<u8>, f64>) -> Vec<(Vec<u8>, f64)> {
    let mut members: Vec<_> = twin.iter().map(|(member, &score)| (member.clone(), score)).collect();
    members.sort_by(|a, b| a.1.partial_cmp(&b.1).expect("not NaN").then_with(|| a.0.cmp(&b.0)));
    members
}

pub(super) fn check(set: &SortedSet, twin: &BTreeMap<Vec<u8>, f64>, dice: &mut Dice) {
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
