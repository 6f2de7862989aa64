//! A walk over all keys on which blocks of memory are allocated anew, because of where they lie.
//!
//! It goes round in the order of hashes, a few buckets at a time, beside commands. Nothing changes
//! that anybody could see: no value, no order, no count of bytes, no copy on the tier.
//!
//! A large block is copied in pieces, for which the walk stays with its value. If a command changes
//! that meanwhile, the copy is given up, and the block is left until the next round: one that is
//! changed all the time stays where it is, and no round takes for ever.

use crate::ids::KeyHash;
use crate::keyspace::Keyspace;
use crate::value::{EntryMut, EntryRef};
use base::DatabaseId;
use std::collections::VecDeque;
use structures::entry::ValueRef;
use structures::heap::Replacement;
pub use structures::{Met, Mover, WHOLE_BYTES_MAX};

/// Buckets of the table that are passed in one step: some 30 keys.
const BUCKETS_PER_STEP: usize = 4;

/// Where the walk stands.
#[derive(Default)]
pub struct MovingHand {
    database: usize,
    position: u64,
    /// Values that were too long for one step.
    long: VecDeque<Long>,
    /// The copy of a large block, of the first of these values.
    copy: Option<Replacement>,
    /// Keys of which something moved, and keys of which nothing did, so far.
    pub keys_moved: u64,
    pub keys_stayed: u64,
}

/// A long value of which a part was walked over.
struct Long {
    database: DatabaseId,
    hash: KeyHash,
    /// Where in it to go on, if it is still the same.
    from: u128,
    /// The copy under way is of one of its blocks.
    is_copied: bool,
}

impl MovingHand {
    /// Whether the next step begins a round.
    fn is_at_start(&self) -> bool {
        self.database == 0 && self.position == 0 && self.long.is_empty()
    }

    /// Gives up what was begun, since nothing is to be moved for now.
    pub fn pause(&mut self) {
        self.copy = None;
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
        mover.copy = hand.copy.take();
        let has_come_round = self.move_some(hand, elements_max, mover);
        hand.copy = mover.copy.take();
        has_come_round
    }

    fn move_some(
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
        let MovingHand { database: index, position, long, keys_moved, keys_stayed, .. } = hand;
        *index = (*index).min(databases.len() - 1);
        let database = DatabaseId(*index as u32);
        let table = &mut databases[*index].table;
        let mut moved_before = mover.moved;
        let next = table.move_blocks(*position, BUCKETS_PER_STEP, mover, |mut entry, mover| {
            if let Some((from, is_copied)) = move_value(&mut entry, 0, elements_max, mover) {
                let hash = hasher.hash(entry.as_ref().key());
                let more = Long { database, hash, from, is_copied };
                // The copy's value comes first.
                if is_copied { long.push_front(more) } else { long.push_back(more) }
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
        let is_boxed = |entry: EntryRef<'_>| matches!(entry.value(), ValueRef::Boxed(_));
        let database = self.databases.get_mut(long.database.0 as usize);
        let found = database.and_then(|it| it.table.find_mut_where(long.hash, is_boxed));
        let Some(mut found) = found else {
            mover.copy.take_if(|_| long.is_copied);
            return;
        };
        let mut entry = found.as_mut();
        let has_changed = long.is_copied && !entry.is_steady();
        let copied_before = mover.copy.as_ref().map(Replacement::progress);
        mover.copy.take_if(|_| has_changed);
        mover.skips_large = has_changed;
        mover.resumes = long.is_copied && mover.copy.is_some();
        let left = move_value(&mut entry, long.from, elements_max, mover);
        (mover.skips_large, mover.resumes) = (false, false);
        let copied = mover.copy.as_ref().map(Replacement::progress);
        if long.is_copied && copied.is_some() && copied == copied_before {
            // The block is no longer there: the value is another one.
            mover.copy = None;
            return;
        }
        if let Some((from, is_copied)) = left {
            let long = Long { from, is_copied, ..long };
            if is_copied { more.push_front(long) } else { more.push_back(long) }
        }
    }
}

/// Moves blocks of a value, from `from` on. Where to go on, if not at its end, and whether a copy
/// of one of its blocks is under way.
fn move_value(
    entry: &mut EntryMut<'_>,
    from: u128,
    elements_max: usize,
    mover: &mut Mover<'_>,
) -> Option<(u128, bool)> {
    let copied_before = mover.copy.as_ref().map(Replacement::progress);
    mover.access = entry.as_ref().access();
    mover.comes_again = false;
    let next = entry.boxed_to_move()?.move_blocks(from, elements_max, mover);
    let copied = mover.copy.as_ref().map(Replacement::progress);
    let is_copied = copied.is_some() && copied != copied_before;
    if is_copied {
        // It has not changed since the copy began, or the copy would be another one.
        entry.hold_steady();
    }
    let from = if mover.comes_again { Some(from) } else { next };
    from.map(|from| (from, is_copied))
}

#[cfg(test)]
mod tests;
