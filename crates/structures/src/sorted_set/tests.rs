//! Sorted sets against a map, under random operations.

use std::collections::BTreeMap;

use super::twin::{check, ordered, step};
use super::*;
use crate::mover::Met;
use crate::twin::Dice;

#[test]
fn behaves_like_its_twin() {
    for seed in 0..8 {
        let mut dice = Dice::new(seed);
        let mut set = SortedSet::new(KeyHasher::fixed(seed));
        let mut twin = BTreeMap::new();
        for index in 0..4_000 {
            step(&mut dice, &mut set, &mut twin, if index < 2_500 { 8 } else { 3 });
            if index % 250 == 0 {
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
fn a_member_of_16_bytes_costs_at_most_60_and_with_a_whole_score_50() {
    for (scores, bytes_max) in [(1 << 40, 60.0), (1 << 31, 50.0)] {
        let mut set = SortedSet::new(KeyHasher::fixed(1));
        let mut dice = Dice::new(5);
        for n in 0..200_000 {
            let score = dice.below(scores) as f64;
            set.insert(format!("member:{n:09}").as_bytes(), score);
        }
        let each = set.allocated_bytes() as f64 / set.len() as f64;
        println!("sorted set: {each:.1} bytes a member of 16 bytes, scores below {scores}");
        assert!(each <= bytes_max, "{each:.1}");
    }
}

#[test]
fn a_score_may_change_its_form_and_its_block_may_move() {
    let mut set = SortedSet::new(KeyHasher::fixed(1));
    let scores = [0.0, -0.0, 1.5, 7.0, 2_147_483_647.0, 2_147_483_648.0, -2_147_483_648.0, 1e300];
    for score in scores.into_iter().chain(scores.into_iter().rev()) {
        set.insert(b"changed", score);
        set.insert(format!("fresh {score}").as_bytes(), score);
        let mut every_block = |_: Met<'_>| true;
        let mut mover = Mover::new(&mut every_block);
        let mut position = Some(0);
        while let Some(from) = position {
            position = set.move_blocks(from, 8, &mut mover);
        }
        assert_eq!(set.score(b"changed"), Some(score));
        let bytes: usize = set.table.iter().map(ScoredRef::allocated_bytes).sum();
        assert_eq!(set.member_bytes, bytes);
    }
    let stored = set.score(b"fresh -0").map(f64::to_bits);
    assert_eq!(stored, Some((-0.0_f64).to_bits()), "the short form has one zero");
}
