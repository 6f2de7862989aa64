//! Listpacks against a vector of texts, step by step: for the tests and for the fuzzer.

use super::*;
use crate::twin::Dice;

/// Takes foreign bytes, or makes a listpack, and changes it as the dice fall.
pub(crate) fn play(dice: &mut Dice) {
    let (mut pack, mut twin) = (Listpack::new(), Vec::new());
    if dice.below(2) == 0 {
        let Ok(foreign) = Listpack::from_bytes(dice.foreign_bytes()) else { return };
        twin = foreign.iter().map(|item| item.to_vec()).collect();
        pack = foreign;
    }
    check_against(&pack, &twin);
    while !dice.is_spent() {
        step(dice, &mut pack, &mut twin);
        check_against(&pack, &twin);
    }
}

pub(super) fn check_against(pack: &Listpack, twin: &[Vec<u8>]) {
    assert_eq!(checked(pack), twin);
    assert_eq!(pack.len(), twin.len());
    assert!(pack.iter().map(|item| item.to_vec()).eq(twin.iter().cloned()));
    assert!(pack.iter().rev().map(|item| item.to_vec()).eq(twin.iter().rev().cloned()));
}

/// The elements of its bytes, which are valid.
pub(super) fn checked(pack: &Listpack) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    let valid = check::check(pack.bytes(), |item| found.push(item.to_vec()));
    assert_eq!(valid, Ok(()));
    found
}

pub(super) fn step(dice: &mut Dice, pack: &mut Listpack, twin: &mut Vec<Vec<u8>>) {
    let text = dice.text();
    let index = dice.below(twin.len().max(1));
    let cursor = pack.seek(index);
    assert_eq!(cursor.is_some(), index < twin.len());
    match (dice.below(9), cursor) {
        (0, _) => {
            pack.push_front(&text);
            twin.insert(0, text);
        }
        (1, Some(cursor)) => {
            let new = pack.insert_before(cursor, &text);
            assert!(pack.at(new).equals(&text));
            twin.insert(index, text);
        }
        (2, Some(cursor)) => {
            let new = pack.insert_after(cursor, &text);
            assert!(pack.at(new).equals(&text));
            twin.insert(index + 1, text);
        }
        (3, Some(cursor)) => {
            pack.replace(cursor, &text);
            twin[index] = text;
        }
        (4, Some(cursor)) => {
            let count = dice.below(4);
            let next = pack.remove(cursor, count);
            twin.drain(index..(index + count).min(twin.len()));
            assert_eq!(next.map(|next| pack.at(next).to_vec()), twin.get(index).cloned());
        }
        (5, _) => assert_eq!(pack.pop_back(), twin.pop()),
        (6, Some(cursor)) => {
            let tail = pack.split_off(cursor);
            assert_eq!([checked(pack), checked(&tail)].concat(), *twin);
            pack.append(&tail);
        }
        (7, Some(_)) => {
            let wanted = twin[index].clone();
            let found = pack.find(&wanted, 0);
            let first = twin.iter().position(|text| *text == wanted);
            assert_eq!(found, first.and_then(|first| pack.seek(first)));
        }
        _ => {
            pack.push_back(&text);
            twin.push(text);
        }
    }
}
