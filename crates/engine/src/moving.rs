//! A walk over all keys on which blocks of memory are allocated anew, because of where they lie.
//!
//! It goes round in the order of hashes, a few buckets at a time, beside commands. Nothing changes
//! that anybody could see: no value, no order, no count of bytes, no copy on the tier.

use crate::ids::KeyHash;
use crate::keyspace::Keyspace;
use crate::value::EntryRef;
use base::DatabaseId;
use std::collections::VecDeque;
pub use structures::Mover;
use structures::entry::ValueRef;

/// Buckets of the table that are passed in one step: some 30 keys.
const BUCKETS_PER_STEP: usize = 4;

/// Where the walk stands.
#[derive(Default)]
pub struct MovingHand {
    database: usize,
    position: u64,
    /// Values that were too long for one step.
    long: VecDeque<Long>,
    /// Keys of which something moved, and keys of which nothing did, so far.
    pub keys_moved: u64,
    pub keys_stayed: u64,
}

/// A long value of which a part was walked over.
struct Long {
    database: DatabaseId,
    hash: KeyHash,
    /// Where in it to go on, if it is still the same.
    from: u64,
}

impl MovingHand {
    /// Whether the next step begins a round.
    fn is_at_start(&self) -> bool {
        self.database == 0 && self.position == 0 && self.long.is_empty()
    }
}

impl Keyspace {
    /// Goes a step on, in which `mover` is asked about the blocks of some keys, and of at most
    /// `elements_max` elements of each. Whether that ends a round.
    pub fn move_blocks(
        &mut self,
        hand: &mut MovingHand,
        elements_max: usize,
        mover: &mut Mover<'_>,
    ) -> bool {
        if let Some(long) = hand.long.pop_front() {
            self.go_on_in(long, &mut hand.long, elements_max, mover);
            return hand.is_at_start();
        }
        let Self { databases, hasher, .. } = self;
        let MovingHand { database: index, position, long, keys_moved, keys_stayed } = &mut *hand;
        *index = (*index).min(databases.len() - 1);
        let database = DatabaseId(*index as u32);
        let table = &mut databases[*index].table;
        let mut moved_before = mover.moved;
        let next = table.move_blocks(*position, BUCKETS_PER_STEP, mover, |mut entry, mover| {
            let value = entry.boxed_to_move();
            if let Some(from) = value.and_then(|it| it.move_blocks(0, elements_max, mover)) {
                let hash = hasher.hash(entry.as_ref().key());
                long.push_back(Long { database, hash, from });
            }
            let has_moved = mover.moved > moved_before;
            moved_before = mover.moved;
            *if has_moved { &mut *keys_moved } else { &mut *keys_stayed } += 1;
        });
        *position = next.unwrap_or(0);
        if next.is_none() {
            *index = (*index + 1) % databases.len();
        }
        hand.is_at_start()
    }

    fn go_on_in(
        &mut self,
        long: Long,
        more: &mut VecDeque<Long>,
        elements_max: usize,
        mover: &mut Mover<'_>,
    ) {
        let Some(database) = self.databases.get_mut(long.database.0 as usize) else { return };
        let is_boxed = |entry: EntryRef<'_>| matches!(entry.value(), ValueRef::Boxed(_));
        let Some(mut found) = database.table.find_mut_where(long.hash, is_boxed) else { return };
        let mut entry = found.as_mut();
        let Some(value) = entry.boxed_to_move() else { return };
        if let Some(from) = value.move_blocks(long.from, elements_max, mover) {
            more.push_back(Long { from, ..long });
        }
    }
}

#[cfg(test)]
mod tests;
