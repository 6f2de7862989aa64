//! Members and fields against `std` twins.

use std::collections::{BTreeMap, BTreeSet};

use super::*;
use crate::table::Table;
use crate::twin::Dice;

#[test]
fn integers_are_stored_inline_up_to_47_bits() {
    let edge = 1i64 << 46;
    let inline = [0, 1, -1, 42, edge - 1, -edge, 1 - edge];
    for integer in inline {
        let member = Member::new(integer.to_string().as_bytes());
        assert_eq!(member.as_ref(), MemberRef::Integer(integer));
        assert_eq!(member.as_ref().allocated_bytes(), 0);
        assert_eq!(member.as_ref(), Member::of_integer(integer).as_ref());
        assert_eq!(member.as_ref().to_vec(), integer.to_string().as_bytes());
    }
    for integer in [edge, -edge - 1, i64::MAX, i64::MIN] {
        let text = integer.to_string();
        assert_eq!(Member::of_integer(integer).as_ref(), MemberRef::Bytes(text.as_bytes()));
    }
}

#[test]
fn bytes_that_only_look_like_integers_come_back_unchanged() {
    for text in ["", "-", "-0", "00", "01", "+1", " 1", "1 ", "1.0", "0x1", "１"] {
        let member = Member::new(text.as_bytes());
        assert_eq!(member.as_ref(), MemberRef::Bytes(text.as_bytes()));
        assert_eq!(member.as_ref().to_vec(), text.as_bytes());
    }
}

#[test]
fn set_of_members_behaves_like_its_twin() {
    for seed in 0..6 {
        let hasher = KeyHasher::fixed(seed);
        let (mut dice, mut twin) = (Dice::new(seed), BTreeSet::new());
        let mut set: Table<Member> = Table::new(hasher);
        for _ in 0..5_000 {
            let member = dice.text();
            let hash = hasher.hash(&member);
            if dice.below(3) == 0 {
                assert_eq!(set.remove(hash, &member).is_some(), twin.remove(&member));
            } else {
                let old = set.insert(hash, Member::new(&member));
                assert_eq!(old.is_none(), twin.insert(member.clone()));
            }
            assert_eq!(set.contains(hash, &member), twin.contains(&member));
        }
        let listed: BTreeSet<Vec<u8>> = set.iter().map(MemberRef::to_vec).collect();
        assert_eq!(listed, twin);
        for element in set.iter() {
            let bytes = element.to_vec();
            assert_eq!(Member::hash(element, &hasher), hasher.hash(&bytes));
        }
    }
}

#[test]
fn hash_of_fields_behaves_like_its_twin() {
    for seed in 0..6 {
        let hasher = KeyHasher::fixed(seed);
        let (mut dice, mut twin) = (Dice::new(seed), BTreeMap::new());
        let mut fields: Table<Field> = Table::new(hasher);
        for _ in 0..5_000 {
            let (name, value) = (dice.text(), dice.text());
            let hash = hasher.hash(&name);
            let at = (dice.below(2) == 0).then(|| i64::MIN + dice.below(1 << 40) as i64);
            match dice.below(5) {
                0 => {
                    let removed = fields.remove(hash, &name);
                    assert_eq!(
                        removed.as_ref().map(|field| held(field.as_ref())),
                        twin.remove(&name)
                    );
                }
                1 => {
                    let known = fields.update(hash, &name, |field| field.with_value(&value));
                    assert_eq!(known, twin.contains_key(&name));
                    twin.entry(name.clone()).and_modify(|old| old.0 = value);
                }
                2 => {
                    let set = fields
                        .find_mut(hash, &name)
                        .is_some_and(|mut found| found.as_mut().set_expire_in_place(hash as i64));
                    let time = twin.get_mut(&name).and_then(|old| old.1.as_mut());
                    assert_eq!(set, time.is_some());
                    time.into_iter().for_each(|time| *time = hash as i64);
                }
                _ => {
                    let old = fields.insert(hash, Field::expiring(&name, &value, at));
                    let old = old.map(|field| held(field.as_ref()));
                    assert_eq!(old, twin.insert(name.clone(), (value, at)));
                }
            }
            assert_eq!(fields.find(hash, &name).map(held).as_ref(), twin.get(&name));
        }
        let listed: BTreeMap<Vec<u8>, (Vec<u8>, Option<i64>)> =
            fields.iter().map(|field| (field.name().to_vec(), held(field))).collect();
        assert_eq!(listed, twin);
    }
}

/// A field's value and expiry.
fn held(field: FieldRef<'_>) -> (Vec<u8>, Option<i64>) {
    (field.value().to_vec(), field.expire_at())
}

#[test]
fn only_a_field_that_expires_pays_for_its_time() {
    let bytes = |at| Field::expiring(b"counter", b"1234567", at).as_ref().allocated_bytes();
    assert_eq!((bytes(None), bytes(Some(1))), (16, 24));
    let mut field = Field::expiring(b"counter", b"1", Some(5));
    assert!(field.as_mut().set_value_in_place(b"1234567"));
    assert!(!field.as_mut().set_value_in_place(&[7; 300]));
    let mut field = field.with_value(&[7; 300]);
    assert!(field.as_mut().set_expire_in_place(i64::MAX));
    assert_eq!(held(field.as_ref()), (vec![7; 300], Some(i64::MAX)));
    assert!(!Field::new(b"counter", b"1").as_mut().set_expire_in_place(1));
}

#[test]
fn value_of_the_same_class_is_rewritten_in_place() {
    let mut field = Field::new(b"counter", b"1");
    assert_eq!(field.as_ref().allocated_bytes(), 16);
    assert!(field.as_mut().set_value_in_place(b"1234567"));
    assert_eq!((field.as_ref().name(), field.as_ref().value()), (&b"counter"[..], &b"1234567"[..]));
    assert!(!field.as_mut().set_value_in_place(b"12345678"));
    assert_eq!(field.with_value(&[7; 300]).as_ref().value(), [7; 300]);
}

#[test]
fn set_of_integers_costs_at_most_13_bytes_each() {
    let hasher = KeyHasher::fixed(1);
    let mut set = Table::new(hasher);
    for integer in 0..300_000i64 {
        let member = Member::of_integer(integer);
        set.insert_new(Member::hash(member.as_ref(), &hasher), member);
    }
    let each = set.allocated_bytes() as f64 / set.len() as f64;
    println!("set: {each:.2} bytes an integer");
    assert!(each <= 13.0, "{each:.2}");
}
