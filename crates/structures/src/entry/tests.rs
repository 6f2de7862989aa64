//! Entries against a plain struct, under random operations.

use super::*;
use crate::table::Table;
use crate::twin::Dice;

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Bytes(Vec<u8>),
    Integer(i64),
    Boxed(Vec<u64>),
    Cold(Cold),
}

#[derive(Clone, Debug)]
struct Twin {
    key: Vec<u8>,
    value: Value,
    expire_at: Option<i64>,
    tag: u8,
    access: u32,
    /// Where a copy of the value lies.
    copy: Option<u64>,
}

/// What a step draws.
impl Dice {
    fn bytes(&mut self, len_max: usize) -> Vec<u8> {
        let len = self.below(len_max + 1);
        (0..len).map(|_| self.roll() as u8).collect()
    }

    fn value(&mut self) -> Value {
        match self.below(5) {
            0 => Value::Integer(self.roll() as i64),
            2 => Value::Cold(Cold {
                place: self.place(),
                count: self.roll() as u16,
                due: self.expire(),
            }),
            1 => Value::Boxed(vec![self.roll(); self.below(5)]),
            _ => Value::Bytes(self.bytes(300)),
        }
    }

    fn place(&mut self) -> u64 {
        self.roll().max(1)
    }

    fn expire(&mut self) -> Option<i64> {
        (self.below(2) == 0).then(|| self.roll() as i64)
    }
}

fn payload(value: &Value) -> Payload<'_, Vec<u64>> {
    match value {
        Value::Bytes(bytes) => Payload::Bytes(bytes),
        Value::Integer(integer) => Payload::Integer(*integer),
        Value::Boxed(boxed) => Payload::Boxed(Box::new(boxed.clone())),
        Value::Cold(cold) => Payload::Cold(*cold),
    }
}

fn check(entry: &Entry<Vec<u64>>, twin: &Twin) {
    assert_eq!(entry.key(), twin.key);
    let value = match entry.value() {
        ValueRef::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        ValueRef::Integer(integer) => Value::Integer(integer),
        ValueRef::Boxed(boxed) => Value::Boxed(boxed.clone()),
        ValueRef::Cold(cold) => Value::Cold(cold),
    };
    let view = entry.as_ref();
    assert_eq!(view.is_cold(), matches!(value, Value::Cold(_)));
    assert_eq!(view.copy_place(), twin.copy);
    assert_eq!(value, twin.value);
    assert_eq!(entry.expire_at(), twin.expire_at);
    assert_eq!((entry.tag(), entry.access()), (twin.tag, twin.access));
}

fn step(mut entry: Entry<Vec<u64>>, twin: &mut Twin, dice: &mut Dice) -> Entry<Vec<u64>> {
    match dice.below(10) {
        0 => {
            twin.expire_at = dice.expire();
            entry.with_expire(twin.expire_at)
        }
        1 => {
            let old = std::mem::replace(&mut twin.value, dice.value());
            let was_bytes = matches!((&old, &twin.value), (Value::Bytes(_), Value::Bytes(_)));
            let is_cold = matches!(twin.value, Value::Cold(_));
            twin.copy = (!is_cold && dice.below(2) == 0).then(|| dice.place());
            let (entry, boxed) = match twin.copy {
                Some(copy) => entry.with_copied_payload(payload(&twin.value), copy),
                None => entry.with_payload(payload(&twin.value)),
            };
            assert_eq!(boxed.is_some(), matches!(old, Value::Boxed(_)));
            assert!(!was_bytes || boxed.is_none());
            entry
        }
        2 => {
            twin.key = dice.bytes(200);
            twin.copy = None;
            entry.with_key(&twin.key)
        }
        3 => {
            twin.access = dice.roll() as u32 & ACCESS_MAX;
            entry.set_access(twin.access | 0xff00_0000);
            entry
        }
        4 => {
            twin.tag = dice.roll() as u8;
            entry.with_tag(twin.tag)
        }
        5 => {
            let bytes = dice.bytes(300);
            let size = entry.allocated_bytes();
            if entry.as_mut().set_bytes_in_place(&bytes) {
                twin.value = Value::Bytes(bytes);
                twin.copy = None;
                assert_eq!(entry.allocated_bytes(), size);
            }
            entry
        }
        6 => {
            let integer = dice.roll() as i64;
            if entry.as_mut().set_integer_in_place(integer) {
                twin.value = Value::Integer(integer);
                twin.copy = None;
            }
            entry
        }
        7 => {
            assert_eq!(entry.as_mut().take_copy(), twin.copy.take());
            entry
        }
        8 => {
            let moved = dice.place();
            let is_moved = entry.as_mut().set_place(moved);
            let has_place = matches!(twin.value, Value::Cold(_)) || twin.copy.is_some();
            assert_eq!(is_moved, has_place);
            if let Value::Cold(cold) = &mut twin.value {
                cold.place = moved;
            }
            twin.copy = twin.copy.map(|_| moved);
            entry
        }
        _ => {
            match &mut twin.value {
                Value::Boxed(boxed) => {
                    twin.copy = None;
                    boxed.push(7);
                    entry.as_mut().boxed_mut().expect("the twin's is boxed").push(7);
                }
                Value::Bytes(bytes) => {
                    twin.copy = None;
                    bytes.reverse();
                    entry.as_mut().bytes_mut().expect("the twin's are bytes").reverse();
                }
                Value::Integer(_) | Value::Cold(_) => {
                    let mut handle = entry.as_mut();
                    assert!(handle.boxed_mut().is_none() && handle.bytes_mut().is_none());
                }
            }
            entry
        }
    }
}

#[test]
fn behaves_like_its_twin() {
    let mut dice = Dice::new(11);
    for _ in 0..500 {
        let mut twin = Twin {
            key: dice.bytes(200),
            value: dice.value(),
            expire_at: dice.expire(),
            tag: 0,
            access: 0,
            copy: None,
        };
        let mut entry = Entry::new(&twin.key, payload(&twin.value), twin.expire_at);
        for _ in 0..60 {
            check(&entry, &twin);
            entry = step(entry, &mut twin, &mut dice);
        }
        check(&entry, &twin);
    }
}

#[test]
fn key_of_16_with_value_of_100_takes_128_bytes() {
    let entry = Entry::<()>::new(&[b'k'; 16], Payload::Bytes(&[b'v'; 100]), None);
    assert_eq!(entry.allocated_bytes(), 128);
    let entry = Entry::<()>::new(&[b'k'; 16], Payload::Integer(1), None);
    assert_eq!(entry.allocated_bytes(), 32);
    let cold = Cold { place: 1, count: 100, due: None };
    let entry = Entry::<()>::new(&[b'k'; 16], Payload::Cold(cold), None);
    assert_eq!(entry.allocated_bytes(), 32);
    let cold = Cold { due: Some(1), ..cold };
    let entry = Entry::<()>::new(&[b'k'; 16], Payload::Cold(cold), None);
    assert_eq!(entry.allocated_bytes(), 40);
}

#[test]
fn a_sweep_visits_what_is_in_memory_and_passes_cold_values_by() {
    let hasher = KeyHasher::fixed(3);
    let mut table = Table::new(hasher);
    for n in 0..5000_u64 {
        let key = format!("key:{n}");
        let cold = Cold { place: n + 1, count: 0, due: None };
        let payload =
            if n % 5 == 0 { Payload::Integer(n as i64) } else { Payload::<()>::Cold(cold) };
        table.insert(hasher.hash(key.as_bytes()), Entry::new(key.as_bytes(), payload, None));
    }
    let (mut position, mut seen) = (Some(0), std::collections::BTreeSet::new());
    while let Some(at) = position {
        position = table.sweep(at, 3, |entry| {
            let ValueRef::Integer(n) = entry.value() else { panic!("it is cold") };
            assert!(seen.insert(n), "each is met once a round");
        });
    }
    assert_eq!(seen.len(), 1000);
    assert_eq!(Table::<Entry<()>>::new(hasher).sweep(0, 1, |_| {}), None);
}

#[test]
fn boxed_value_is_dropped_once() {
    let counter = std::rc::Rc::new(());
    let boxed = || Payload::Boxed(Box::new(counter.clone()));
    let entry = Entry::new(b"key", boxed(), None).with_expire(Some(5)).with_key(b"other");
    assert_eq!(std::rc::Rc::strong_count(&counter), 2);
    let (entry, old) = entry.with_payload(boxed());
    assert_eq!(std::rc::Rc::strong_count(&counter), 3);
    drop((entry, old));
    assert_eq!(std::rc::Rc::strong_count(&counter), 1);
}

#[test]
fn table_of_entries_finds_changes_and_drops_them() {
    let hasher = KeyHasher::fixed(3);
    let mut table = Table::new(hasher);
    let counter = std::rc::Rc::new(());
    let keys: Vec<String> = (0..30_000).map(|n| format!("key:{n}")).collect();
    for key in &keys {
        let payload = Payload::Boxed(Box::new(counter.clone()));
        assert!(
            table
                .insert(hasher.hash(key.as_bytes()), Entry::new(key.as_bytes(), payload, None))
                .is_none()
        );
    }
    for key in &keys {
        let hash = hasher.hash(key.as_bytes());
        table.prefetch_bucket(hash);
        if !table.prefetch_entry(hash) {
            table.prefetch_displaced(hash);
        }
        table.find(hash, key.as_bytes()).expect("inserted").set_access(5);
        assert!(table.update(hash, key.as_bytes(), |entry| entry.with_expire(Some(9))));
        let found = table.find(hash, key.as_bytes()).expect("still there");
        assert_eq!((found.expire_at(), found.access()), (Some(9), 5));
    }
    let gone = table.remove(hasher.hash(b"key:7"), b"key:7");
    assert_eq!(gone.expect("was there").key(), b"key:7");
    table.clear();
    assert_eq!(std::rc::Rc::strong_count(&counter), 1);
}
