//! Guests: those that are pinned cost no search, and go when nothing pins them.

use super::*;

/// As many that none but a search through all of them would be long.
const GUESTS: usize = 1000;

fn names() -> Vec<String> {
    (0..GUESTS).map(|number| format!("key{number}")).collect()
}

/// Guests that have just been fetched.
fn guests() -> Keyspace {
    let (mut keyspace, file) = keyspace(ALL_COLD);
    for name in names() {
        set(&mut keyspace, 0, &name, &[1; 100]);
    }
    spill_all(&mut keyspace, &file);
    for name in names() {
        keyspace.fetch_now(DatabaseId(0), name.as_bytes()).expect("it is there");
    }
    keyspace
}

fn dismiss_all(keyspace: &mut Keyspace) -> usize {
    let mut steps = 0;
    while keyspace.dismiss_guest(0) {
        steps += 1;
    }
    steps
}

#[test]
fn pinned_guests_are_passed_by_once_and_go_when_nothing_pins_them() {
    let mut keyspace = guests();
    let hashes: Vec<KeyHash> = names().iter().map(|it| keyspace.hash(it.as_bytes())).collect();
    let pinned = &hashes[..GUESTS - 1];
    let cold = |keyspace: &mut Keyspace| keyspace.cold.take().expect("it has a store");
    let mut store = cold(&mut keyspace);
    pinned.iter().for_each(|hash| store.pin(*hash));
    // One of them twice.
    store.pin(pinned[0]);
    keyspace.cold = Some(store);
    assert!(dismiss_all(&mut keyspace) < GUESTS / 10, "it looks at a few at a time");
    assert_eq!(keyspace.cold_keys(), 1);
    assert_eq!(dismiss_all(&mut keyspace), 0, "they are not looked at again");
    let mut store = cold(&mut keyspace);
    assert_eq!(store.guest_bytes, 0);
    pinned.iter().for_each(|hash| store.unpin(*hash));
    keyspace.cold = Some(store);
    dismiss_all(&mut keyspace);
    assert_eq!(keyspace.cold_keys(), GUESTS - 1, "all but the one that is pinned still");
    keyspace.cold_mut().expect("it has a store").unpin(pinned[0]);
    dismiss_all(&mut keyspace);
    assert_eq!(keyspace.cold_keys(), GUESTS);
    check_places(&keyspace);
}

#[test]
fn pinned_guests_that_were_flushed_do_not_come_back() {
    let mut keyspace = guests();
    let hash = keyspace.hash(b"key0");
    keyspace.cold_mut().expect("it has a store").pin(hash);
    dismiss_all(&mut keyspace);
    keyspace.apply(DatabaseId(0), b"", &Effect::FlushAll).expect("it is no type's");
    keyspace.cold_mut().expect("it has a store").unpin(hash);
    assert_eq!(keyspace.cold().expect("it has a store").guest_bytes, 0);
    assert_eq!(dismiss_all(&mut keyspace), 0);
}
