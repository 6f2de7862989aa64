//! Keys, fields and members that a client chose to collide cost what random ones cost, in every
//! table there is.

use crate::effect::Effect;
use crate::execute::Engine;
use crate::interest::Interest;
use crate::keyspace::Keyspace;
use crate::settings::Settings;
use crate::unit::{Context, Unit};
use crate::value::{Hash, Set, Sorted, Value};
use base::{DatabaseId, HashKey, UnixMillis};
use std::collections::BTreeSet;
use structures::chosen::{FAMILIES, random_like};
use structures::entry::Payload;

const KEYS: u64 = 20_000;
const HOME: DatabaseId = DatabaseId(0);
const NOW: UnixMillis = UnixMillis(1_000);

/// What it takes to find all of them, as keys, fields, members and scored members.
fn steps(keys: &[Vec<u8>]) -> [u64; 4] {
    let mut engine = Engine::new(Keyspace::new(Settings::default(), HashKey::fixed(9)), 1);
    let mut unit = Unit::new(0);
    let mut interest = Interest::default();
    let mut tx = engine.tx(Context::background(NOW, HOME), &mut unit, &mut interest);
    for key in keys {
        let effects: [(&[u8], Effect<'_>); 3] = [
            (b"\xffhash", Effect::HashSet { field: key, value: b"", expire_at: None }),
            (b"\xffset", Effect::SetAdd { member: key }),
            (b"\xffsorted", Effect::SortedAdd { member: key, score: 0.0 }),
        ];
        let whole = Effect::SetString { value: b"", expire_at: Some(2_000) };
        tx.change(key, whole).expect("a string takes any key");
        for (name, effect) in effects {
            tx.change(name, effect).expect("the type fits");
        }
    }
    let database = engine.keyspace.database(HOME);
    assert_eq!(database.len(), keys.len() + 3);
    assert_eq!(database.expiries().len(), keys.len(), "each key has its expiry");
    let hashes: BTreeSet<_> = database.expiries().iter().collect();
    assert_eq!(hashes.len(), keys.len(), "and its hash, of which the tracker's slots are made");
    let steps = |name: &[u8]| {
        let entry = database.find(engine.keyspace.hash(name), name).expect("it was made");
        match Value::of(entry) {
            Some(Value::Hash(Hash::Table(fields))) => fields.lookup_steps(),
            Some(Value::Set(Set::Table(members))) => members.lookup_steps(),
            Some(Value::Sorted(Sorted::Tree(tree))) => tree.lookup_steps(),
            _ => panic!("so many are in a table"),
        }
    };
    let own = database.table().lookup_steps();
    let found = [own, steps(b"\xffhash"), steps(b"\xffset"), steps(b"\xffsorted")];
    assert!(
        engine.expire_due(UnixMillis(2_000), keys.len() / 2, &mut unit, &mut interest),
        "half is left"
    );
    assert!(!engine.expire_due(UnixMillis(2_000), keys.len(), &mut unit, &mut interest));
    assert_eq!(engine.keyspace.len(), 3, "every key expires");
    found
}

#[test]
fn chosen_keys_cost_what_random_keys_cost_in_every_table() {
    for (name, make) in FAMILIES {
        let chosen: Vec<_> = (0..KEYS).map(make).collect();
        let random: Vec<_> = random_like(make, KEYS).collect();
        for (chosen, random) in steps(&chosen).into_iter().zip(steps(&random)) {
            assert!(chosen <= 2 * random, "{name}: {chosen} steps, random ones {random}");
        }
    }
}

/// No two keys of one hash are known, which is the point of it; so entries are put under one here.
#[test]
fn a_key_keeps_its_expiry_when_another_of_its_hash_goes() {
    let mut keyspace = Keyspace::new(Settings::default(), HashKey::fixed(9));
    let hash = 7;
    for key in [b"a", b"b", b"c"] {
        keyspace.put(HOME, hash, key, Payload::Integer(1), Some(2_000));
    }
    keyspace.take(HOME, hash, b"a").expect("it is there");
    assert_eq!(keyspace.database(HOME).expiries().len(), 2);
    keyspace.put(HOME, hash, b"b", Payload::Integer(2), None);
    let database = keyspace.database(HOME);
    assert!(!database.has_no_expiries(), "or writes would not look whether a key is overdue");
    assert_eq!(database.expiries().first(), Some((2_000, hash)));
    keyspace.take(HOME, hash, b"c").expect("it is there");
    assert!(keyspace.database(HOME).has_no_expiries());
}
