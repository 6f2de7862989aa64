//! Sorted sets against a map, under random operations.

use std::collections::BTreeMap;

use super::twin::{check, ordered, step};
use super::*;
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
fn member_of_16_bytes_costs_at_most_70() {
    let mut set = SortedSet::new(KeyHasher::fixed(1));
    let mut dice = Dice::new(5);
    for n in 0..200_000 {
        let score = dice.below(1 << 40) as f64;
        set.insert(format!("member:{n:09}").as_bytes(), score);
    }
    let each = set.allocated_bytes() as f64 / set.len() as f64;
    println!("sorted set: {each:.1} bytes a member of 16 bytes");
    assert!(each <= 60.0, "{each:.1}");
}
