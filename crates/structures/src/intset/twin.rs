//! Intsets against a tree of the standard library, step by step: for the tests and for the fuzzer.

use super::*;
use crate::twin::Dice;
use std::collections::BTreeSet;

/// Takes foreign bytes, or makes an intset, and changes it as the dice fall.
pub(crate) fn play(dice: &mut Dice) {
    let (mut set, mut twin) = (Intset::new(), BTreeSet::new());
    if dice.below(2) == 0 {
        let Ok(foreign) = Intset::from_bytes(dice.foreign_bytes()) else { return };
        twin = foreign.iter().collect();
        set = foreign;
    }
    check(&set, &twin);
    let mask = [0x3F, 0x7FFF, 0x7FFF_FFFF, i64::MAX][dice.below(4)];
    while !dice.is_spent() {
        step(dice, &mut set, &mut twin, mask);
        check(&set, &twin);
    }
}

/// One change. `mask` holds the numbers small, or every set would soon be of eight bytes.
pub(super) fn step(dice: &mut Dice, set: &mut Intset, twin: &mut BTreeSet<i64>, mask: i64) {
    let value = (dice.integer() & mask) - mask / 2;
    if dice.below(3) == 0 {
        assert_eq!(set.remove(value), twin.remove(&value));
    } else {
        assert_eq!(set.insert(value), twin.insert(value));
    }
    assert!(set.len() == twin.len() && set.contains(value) == twin.contains(&value));
}

pub(super) fn check(set: &Intset, twin: &BTreeSet<i64>) {
    assert!(set.iter().eq(twin.iter().copied()));
    assert!(set.iter().rev().eq(twin.iter().rev().copied()));
    assert_eq!(Intset::from_bytes(set.bytes().to_vec()).as_ref(), Ok(set));
}
