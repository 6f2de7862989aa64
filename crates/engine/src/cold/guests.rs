//! Guests: values that were fetched and not used again. They are few, and the first to go.

use super::{ColdStore, TAG_FETCHED, TAG_USED_AGAIN};
use crate::ids::KeyHash;
use crate::keyspace::Keyspace;
use crate::value::EntryRef;
use crate::value::hash::next_expiry;
use tier::Place;

/// Guests for whose notes memory is kept.
const GUESTS_KEPT: usize = 1024;

/// Pinned guests that are passed by in the search for one that may go.
const PASSED_AT_ONCE: usize = 64;

/// A fetched value, by what finds it again.
pub(super) struct Guest {
    pub hash: u64,
    pub place: Place,
    /// Bytes of memory that it took when it came.
    pub bytes: usize,
}

/// Notes a use of a value that was fetched.
pub(crate) fn note_use(entry: EntryRef<'_>) {
    let tag = entry.tag();
    if (TAG_FETCHED..TAG_USED_AGAIN).contains(&tag) && !entry.is_cold() {
        entry.set_tag(tag + 1);
    }
}

impl ColdStore {
    /// Nothing pins the values of keys with this hash any more: guests among them may go.
    pub(super) fn free_guests(&mut self, hash: KeyHash) {
        let Some(guests) = self.pinned_guests.remove(&hash) else { return };
        self.guest_bytes += guests.iter().map(|guest| guest.bytes).sum::<usize>();
        self.guests.extend(guests);
    }

    /// None of them is there any more.
    pub(super) fn forget_guests(&mut self) {
        self.guests.clear();
        self.pinned_guests.clear();
        self.guest_bytes = 0;
    }
}

impl Keyspace {
    /// Gives guests up that were not used again, until no more are kept than may be.
    pub(super) fn dismiss_guests(&mut self, bytes_max: usize) {
        while self.dismiss_guest(bytes_max) {}
    }

    /// Gives the first guest up, if more are kept than may be, and passes by those that requests
    /// wait for. Whether there was one of either.
    pub(super) fn dismiss_guest(&mut self, bytes_max: usize) -> bool {
        let Some(cold) = self.cold.as_deref_mut() else { return false };
        let mut passed = 0;
        let guest = loop {
            if cold.guest_bytes <= bytes_max {
                return passed > 0;
            }
            let Some(guest) = cold.guests.pop_front() else { return passed > 0 };
            cold.guest_bytes -= guest.bytes;
            if !cold.is_pinned(guest.hash) {
                break guest;
            }
            cold.pinned_guests.entry(guest.hash).or_default().push(guest);
            passed += 1;
            if passed == PASSED_AT_ONCE {
                return true;
            }
        };
        if cold.guests.capacity() > GUESTS_KEPT && cold.guests.len() < cold.guests.capacity() / 4 {
            cold.guests.shrink_to(cold.guests.len() * 2);
        }
        self.dismiss(&guest);
        true
    }

    fn dismiss(&mut self, guest: &Guest) {
        let Some(id) = self.holder_of(guest.hash, guest.place) else { return };
        let is_it = |entry: EntryRef<'_>| entry.copy_place() == Some(guest.place.bits());
        let entry = self.database(id).table.find_where(guest.hash, is_it);
        // It may stay: the hand will meet it.
        let is_free = |entry: EntryRef<'_>| {
            entry.tag() < TAG_USED_AGAIN
                && !self.is_being_written(id, entry)
                && next_expiry(entry).is_none_or(|at| at > self.now.0)
        };
        if entry.is_some_and(is_free) {
            self.send_away(id, guest.hash, None, is_it);
        }
    }
}
