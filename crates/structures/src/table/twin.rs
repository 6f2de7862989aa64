//! Tables against a map of the standard library, with kind and unkind hashes: for the tests and for
//! the fuzzer.

use std::collections::BTreeMap;

use super::*;
use crate::heap;
use crate::mover::Met;
use crate::ratio::Memory;
use crate::twin::{Dice, slow};

/// Keys that the dice can name: enough for several segments, few enough to meet again.
const KEYS: usize = 1 << 12;

/// One step in sixteen changes where blocks lie, too.
const MEMORY_ROLLS_FROM: usize = 240;

/// Changes a table as the dice fall, with walks beside the changes.
pub(crate) fn play(dice: &mut Dice) {
    let roll = dice.below(6);
    let hashing = [Hashing::Good, Hashing::Corner, Hashing::Few][roll % 3];
    let is_packed = roll >= 3;
    let mut pair = Pair::new(hashing);
    let mut walk = None;
    let mut step = 0;
    while !dice.is_spent() {
        step += 1;
        if is_packed {
            pair.pack();
        }
        play_step(dice, &mut pair, &mut walk, step);
    }
    while walk.is_some() {
        walk_on(&mut pair, &mut walk, KEYS);
    }
    pair.check();
    let keys: Vec<u64> = pair.twin.keys().copied().collect();
    keys.into_iter().for_each(|key| pair.remove(key));
    assert_eq!(pair.table.allocated_bytes(), 0, "an empty table owns nothing");
}

fn play_step(dice: &mut Dice, pair: &mut Pair, walk: &mut Option<Walk>, step: u64) {
    let key = dice.below(KEYS) as u64;
    let roll = dice.below(256);
    if let Some(what) = roll.checked_sub(MEMORY_ROLLS_FROM) {
        change_memory(pair, what, pair.hash(key));
    }
    match roll % 8 {
        0..=2 => touch(pair, walk, key..key + 1, |pair, key| pair.insert(key, step)),
        3 => touch(pair, walk, key..key + 1, |pair, key| pair.remove(key)),
        4 => touch(pair, walk, key..key + 1, |pair, key| pair.change(key, step)),
        // Many at once, so that few bytes of input split and merge segments.
        5 => {
            let keys = key..key + 4 * dice.below(256) as u64;
            touch(pair, walk, keys, |pair, key| pair.insert(key, step));
        }
        6 => {
            let keys = key..key + 4 * dice.below(256) as u64;
            touch(pair, walk, keys, |pair, key| pair.remove(key));
        }
        _ if walk.is_some() => walk_on(pair, walk, dice.below(256)),
        _ => {
            pair.table.begin_walk();
            *walk = Some(Walk { expected: pair.twin.clone(), visited: Vec::new() });
        }
    }
    let found = pair.table.find(pair.hash(key), &key.to_le_bytes());
    assert_eq!(found.map(|probe| probe.1), pair.twin.get(&key).copied());
}

/// Slow memory fills, tables are to lie elsewhere, or blocks move, of which the table's content
/// knows nothing. A process may have no slow memory: then all lies where it lies.
fn change_memory(pair: &mut Pair, what: usize, from: u64) {
    match what {
        0..=2 => heap::set_tables(Memory::Slow),
        3..=5 => heap::set_tables(Memory::Fast),
        6 | 7 => slow::set_full(true),
        8..=10 => slow::set_full(false),
        _ => {
            // Every other block that the walk comes to.
            let mut is_wanted = false;
            let wanted = &mut |_: Met<'_>| {
                is_wanted = !is_wanted;
                is_wanted
            };
            let next = pair.table.move_blocks(from, 16, &mut Mover::new(wanted), |_, _| ());
            assert!(next.is_none_or(|next| next > from), "the walk goes on");
        }
    }
}

/// What a walk has to visit, and what it has visited.
struct Walk {
    expected: BTreeMap<u64, u64>,
    visited: Vec<(u64, u64)>,
}

/// Changes keys, each after the walk has visited what the change may touch.
fn touch(
    pair: &mut Pair,
    walk: &mut Option<Walk>,
    keys: std::ops::Range<u64>,
    change: impl Fn(&mut Pair, u64),
) {
    for key in keys {
        if let Some(walk) = walk {
            let hash = pair.hash(key);
            let visited = &mut walk.visited;
            pair.table.visit_unwalked(hash, |probe| visited.push((key_of(probe), probe.1)));
        }
        change(pair, key);
    }
}

/// Goes on with the walk. At its end it has visited what was there at its beginning, once each.
fn walk_on(pair: &mut Pair, walk: &mut Option<Walk>, entries_max: usize) {
    let Some(under_way) = walk else { return };
    let visited = &mut under_way.visited;
    if pair.table.walk(entries_max, |probe| visited.push((key_of(probe), probe.1))) {
        visited.sort_unstable();
        let expected: Vec<_> = std::mem::take(&mut under_way.expected).into_iter().collect();
        assert_eq!(*visited, expected, "a walk visits the state at its beginning");
        *walk = None;
    }
}

/// An element whose hash is whatever the test wants it to be.
pub(crate) struct Probe(Box<(u64, u64, Vec<u8>)>);

impl Probe {
    pub(super) fn new(hash: u64, key: u64, value: u64) -> Self {
        Self::named(hash, value, key.to_le_bytes().to_vec())
    }

    pub(super) fn named(hash: u64, value: u64, key: Vec<u8>) -> Self {
        Self(Box::new((hash, value, key)))
    }
}

// SAFETY: the value is the address of a box; `from_raw` makes the box again.
unsafe impl Element for Probe {
    type Ref<'a> = &'a (u64, u64, Vec<u8>);
    type Mut<'a> = &'a mut u64;

    fn into_raw(self) -> u64 {
        Box::into_raw(self.0).expose_provenance() as u64
    }

    unsafe fn from_raw(raw: u64) -> Self {
        // SAFETY: `raw` came from `into_raw`.
        Self(unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut(raw as usize)) })
    }

    unsafe fn borrow<'a>(raw: u64) -> Self::Ref<'a> {
        // SAFETY: `raw` came from `into_raw` and is shared for `'a`.
        unsafe { &*std::ptr::with_exposed_provenance(raw as usize) }
    }

    unsafe fn borrow_mut<'a>(raw: u64) -> Self::Mut<'a> {
        let probe: *mut (u64, u64, Vec<u8>) = std::ptr::with_exposed_provenance_mut(raw as usize);
        // SAFETY: `raw` came from `into_raw` and is exclusive for `'a`.
        unsafe { &mut (*probe).1 }
    }

    fn has_key(element: Self::Ref<'_>, key: &[u8]) -> bool {
        element.2 == key
    }

    unsafe fn moved(raw: u64, mover: &mut Mover<'_>) -> u64 {
        if !mover.takes_ordinary(raw as usize) {
            return raw;
        }
        // SAFETY: the caller hands the element over.
        let probe = unsafe { Self::from_raw(raw) };
        Self(Box::new(*probe.0.clone())).into_raw()
    }

    fn has_same_key(a: Self::Ref<'_>, b: Self::Ref<'_>) -> bool {
        a.2 == b.2
    }

    fn hash(element: Self::Ref<'_>, _hasher: &KeyHasher) -> u64 {
        element.0
    }
}

/// How a key's hash comes about.
#[derive(Clone, Copy, Debug)]
pub(super) enum Hashing {
    Good,
    /// All hashes share their top bits: one deep corner of the directory.
    Corner,
    /// Few different hashes: nothing can tell many of the keys apart.
    Few,
}

impl Hashing {
    pub(super) fn hash(self, key: u64) -> u64 {
        let good = KeyHasher::fixed(7).hash(&key.to_le_bytes());
        match self {
            Self::Good => good,
            Self::Corner => 0x1234_5678_0000_0000 | good >> 20 & 0xffff_ffff,
            Self::Few => good & 0xf000_0000_0000_0001,
        }
    }
}

/// A table, its twin and the hashes.
pub(super) struct Pair {
    pub(super) table: Table<Probe>,
    pub(super) twin: BTreeMap<u64, u64>,
    hashing: Hashing,
}

impl Pair {
    pub(super) fn new(hashing: Hashing) -> Self {
        Self { table: Table::new(KeyHasher::fixed(0)), twin: BTreeMap::new(), hashing }
    }

    /// Has the table pack its buckets from now on, as a larger one does by itself.
    pub(super) fn pack(&mut self) {
        if !self.table.is_empty() && self.table.packed.is_none() {
            self.table.packed = Some(Packed::new());
        }
    }

    pub(super) fn hash(&self, key: u64) -> u64 {
        self.hashing.hash(key)
    }

    pub(super) fn insert(&mut self, key: u64, value: u64) {
        let hash = self.hash(key);
        let old = self.table.insert(hash, Probe::new(hash, key, value));
        assert_eq!(old.map(|probe| probe.0.1), self.twin.insert(key, value));
    }

    pub(super) fn remove(&mut self, key: u64) {
        let removed = self.table.remove(self.hash(key), &key.to_le_bytes());
        assert_eq!(removed.map(|probe| probe.0.1), self.twin.remove(&key));
    }

    pub(super) fn change(&mut self, key: u64, value: u64) {
        let found = self.table.find_mut(self.hash(key), &key.to_le_bytes());
        assert_eq!(found.is_some(), self.twin.contains_key(&key));
        if let Some(mut found) = found {
            *found.as_mut() = value;
            assert_eq!(found.as_ref().1, value);
            found.update(|probe| Probe::new(probe.0.0, key, value + 1));
            self.twin.insert(key, value + 1);
        }
    }

    pub(super) fn check(&self) {
        let listed: BTreeMap<u64, u64> =
            self.table.iter().map(|probe| (key_of(probe), probe.1)).collect();
        assert_eq!(listed, self.twin);
        assert_eq!(self.table.len(), self.twin.len());
        assert_eq!(self.table.iter().count(), self.twin.len());
        let bytes: usize = self.table.segments.iter().map(Segment::allocated_bytes).sum();
        assert_eq!(self.table.segment_bytes, bytes);
        if let Some(packed) = &self.table.packed {
            packed.check(self.table.segments.iter().map(Segment::array));
        }
        for (index, segment) in self.table.segments.iter().enumerate() {
            let below = self.table.depth - segment.depth;
            let range = (segment.prefix as usize) << below;
            let named = &self.table.directory[range..range + (1 << below)];
            assert!(named.iter().all(|&named| named as usize == index));
            segment.check();
        }
    }
}

pub(super) fn key_of(probe: &(u64, u64, Vec<u8>)) -> u64 {
    u64::from_le_bytes(probe.2.as_slice().try_into().expect("keys of this test have eight bytes"))
}
