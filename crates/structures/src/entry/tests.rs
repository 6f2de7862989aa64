//! Entries against a plain struct, under random operations.

use super::*;
use crate::table::Table;
use crate::twin::Dice;

#[derive(Clone, Debug, PartialEq)]
enum Value {
    Bytes(Vec<u8>),
    Integer(i64),
    Boxed(Vec<u64>),
}

#[derive(Clone, Debug)]
struct Twin {
    key: Vec<u8>,
    value: Value,
    expire_at: Option<i64>,
    tag: u8,
    access: u32,
}

/// What a step draws.
impl Dice {
    fn bytes(&mut self, len_max: usize) -> Vec<u8> {
        let len = self.below(len_max + 1);
        (0..len).map(|_| self.roll() as u8).collect()
    }

    fn value(&mut self) -> Value {
        match self.below(4) {
            0 => Value::Integer(self.roll() as i64),
            1 => Value::Boxed(vec![self.roll(); self.below(5)]),
            _ => Value::Bytes(self.bytes(300)),
        }
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
    }
}

fn check(entry: &Entry<Vec<u64>>, twin: &Twin) {
    assert_eq!(entry.key(), twin.key);
    let value = match entry.value() {
        ValueRef::Bytes(bytes) => Value::Bytes(bytes.to_vec()),
        ValueRef::Integer(integer) => Value::Integer(integer),
        ValueRef::Boxed(boxed) => Value::Boxed(boxed.clone()),
    };
    assert_eq!(value, twin.value);
    assert_eq!(entry.expire_at(), twin.expire_at);
    assert_eq!((entry.tag(), entry.access()), (twin.tag, twin.access));
}

fn step(mut entry: Entry<Vec<u64>>, twin: &mut Twin, dice: &mut Dice) -> Entry<Vec<u64>> {
    match dice.below(8) {
        0 => {
            twin.expire_at = dice.expire();
            entry.with_expire(twin.expire_at)
        }
        1 => {
            let old = std::mem::replace(&mut twin.value, dice.value());
            let was_bytes = matches!((&old, &twin.value), (Value::Bytes(_), Value::Bytes(_)));
            let (entry, boxed) = entry.with_payload(payload(&twin.value));
            assert_eq!(boxed.is_some(), matches!(old, Value::Boxed(_)));
            assert!(!was_bytes || boxed.is_none());
            entry
        }
        2 => {
            twin.key = dice.bytes(200);
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
                assert_eq!(entry.allocated_bytes(), size);
            }
            entry
        }
        6 => {
            let integer = dice.roll() as i64;
            if entry.as_mut().set_integer_in_place(integer) {
                twin.value = Value::Integer(integer);
            }
            entry
        }
        _ => {
            match &mut twin.value {
                Value::Boxed(boxed) => {
                    boxed.push(7);
                    entry.as_mut().boxed_mut().expect("the twin's is boxed").push(7);
                }
                Value::Bytes(bytes) => {
                    bytes.reverse();
                    entry.as_mut().bytes_mut().expect("the twin's are bytes").reverse();
                }
                Value::Integer(_) => {
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
        table.prefetch_entry(hash);
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
