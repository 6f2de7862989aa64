//! Cleaning, as far as keys are concerned: which records of a segment are still some key's, and the
//! places of those that move.

use crate::ids::KeyHash;
use crate::keyspace::Keyspace;
use crate::value::EntryRef;
use tier::{Draft, Place, Tier};

impl Keyspace {
    /// A segment is cleaned, and has this record: if a key has its value or a copy there, it is put
    /// anew. Whether that is done; if not, there is no room for it yet.
    pub fn put_survivor(&mut self, hash: KeyHash, place: Place, content: &[u8]) -> bool {
        self.move_record(hash, place, |tier| tier.put_survivor(hash, content).ok())
    }

    /// As [`Self::put_survivor`], of a long record, which is taken if it moves.
    pub fn put_surviving_draft(
        &mut self,
        hash: KeyHash,
        place: Place,
        draft: &mut Option<Draft>,
    ) -> bool {
        self.move_record(hash, place, |tier| {
            let put = tier.put_surviving_draft(hash, draft.take()?);
            put.map_err(|(_, left)| *draft = Some(left)).ok()
        })
    }

    /// Has `put` put a record anew, if a key has its value or a copy there. Whether that is done.
    fn move_record(
        &mut self,
        hash: KeyHash,
        place: Place,
        put: impl FnOnce(&mut Tier) -> Option<Place>,
    ) -> bool {
        let Some(id) = self.holder_of(hash, place) else { return true };
        let Self { databases, cold, .. } = self;
        let Some(cold) = cold else { return true };
        let Some(moved) = put(&mut cold.tier) else { return false };
        let is_it = |entry: EntryRef<'_>| super::place_of(entry) == Some(place.bits());
        let table = &mut databases[id.0 as usize].table;
        if let Some(mut found) = table.find_mut_where(hash, is_it) {
            found.as_mut().set_place(moved.bits());
        }
        // A guest that has moved is not found by its place any more: it stays, with its copy.
        cold.tier.release(place);
        true
    }
}
