//! Records that were read and are not applied yet: the values that they change come into memory
//! meanwhile, so that applying does not wait for each of them.
//!
//! ```text
//! read ─▶ looked into: its values fetched and pinned ─▶ they have come ─▶ applied ─▶ unpinned
//! ```
//! It is foresight and no promise. A record may turn out void, a key may be deleted by one before
//! it, a value may have moved: whatever is missing when a record is applied is read then.

use crate::recovery::Replayer;
use crate::tiering::{Made, Need, Tiering};
use base::{Sequence, UnixMillis};
use bytes::Bytes;
use engine::ids::KeyHash;
use engine::keyspace::Keyspace;
use std::collections::VecDeque;
use tier::Place;

/// Bytes of values that are asked for at a time, of what they may take in memory, and the part of
/// `maxmemory` that they may be. Two thousand values of 500 bytes: forty records of a primary that
/// is busy, and some ten milliseconds of a disk.
const BYTES_MAX: usize = 1 << 20;
const MEMORY_SHARE: u64 = 16;

/// Values that are in memory and must stay until the records come that change them: so many at
/// most, and as many as have so many times the bytes that may be asked for, if they are as large as
/// others.
const WARM_MAX: usize = 4096;
const WARM_SHARE: usize = 4;

/// Records that are looked into at a time, whatever they change.
const RECORDS_MAX: usize = 1024;

/// What is known of records to come.
#[derive(Default)]
pub(crate) struct Foresight {
    /// Those that were looked into, in order; the first is the next to be applied.
    looked_into: VecDeque<Foreseen>,
    /// Values that were asked for, of all of them, and their bytes.
    values: usize,
    bytes: usize,
    /// Values that are in memory, and stay.
    warm: usize,
    /// A record that needs more than there was room for, beside so many bytes.
    refused: Option<(Sequence, usize)>,
}

#[derive(Default)]
struct Foreseen {
    sequence: Sequence,
    values: Vec<(KeyHash, Place)>,
    /// Those that are in memory.
    warm: Vec<KeyHash>,
    /// So many of them have come.
    arrived: usize,
    bytes: usize,
}

impl Foresight {
    /// Looks into the records that were not looked into before, as far as there is room for their
    /// values, and has these fetched. Of one that needs more than there may be, as much as that,
    /// and one value at least.
    pub fn fetch_ahead<'a>(
        &mut self,
        records: impl Iterator<Item = (Sequence, &'a Bytes)>,
        replayer: &Replayer,
        keyspace: &mut Keyspace,
        tiering: &mut Tiering,
    ) {
        if keyspace.cold_keys() == 0 && self.looked_into.is_empty() {
            return;
        }
        let share = (keyspace.settings.maxmemory / MEMORY_SHARE) as usize;
        let bytes_max = if share == 0 { BYTES_MAX } else { share.min(BYTES_MAX) };
        for (sequence, bytes) in records.skip(self.looked_into.len()) {
            if self.bytes >= bytes_max || self.looked_into.len() >= RECORDS_MAX {
                return;
            }
            let (room, is_first) = (bytes_max - self.bytes, self.looked_into.is_empty());
            // It is not decoded again for every value that goes.
            let is_refused =
                |(refused, beside)| refused == sequence && self.bytes > beside / 2 && !is_first;
            if self.refused.is_some_and(is_refused) {
                return;
            }
            let payload = replayer.foresee(bytes).unwrap_or_default();
            let found = keyspace.foresee_values(&payload, room, is_first);
            if !found.are_all && !is_first {
                self.refused = Some((sequence, self.bytes));
                return;
            }
            let mut foreseen = Foreseen { sequence, ..Foreseen::default() };
            // They must not leave before the record comes. However many there are, others may.
            let warm_max = keyspace.values_of(WARM_SHARE * bytes_max).min(WARM_MAX);
            if let Some(cold) = keyspace.cold_mut() {
                foreseen.warm = found.warm;
                foreseen.warm.sort_unstable();
                foreseen.warm.dedup();
                foreseen.warm.truncate(warm_max.saturating_sub(self.warm));
                foreseen.warm.iter().for_each(|hash| cold.pin(*hash));
            }
            for (hash, value) in found.cold {
                if let Some(cold) = keyspace.cold_mut() {
                    cold.pin(hash);
                }
                // While a client waits for a value, no more than half of the reads are for these.
                tiering.fetch(keyspace, hash, value, Need::Many);
                foreseen.bytes += value.bytes;
                foreseen.values.push((hash, value.place));
            }
            self.bytes += foreseen.bytes;
            self.values += foreseen.values.len();
            self.warm += foreseen.warm.len();
            self.looked_into.push_back(foreseen);
        }
    }

    /// Whether the next record was not looked into.
    pub fn is_empty(&self) -> bool {
        self.looked_into.is_empty()
    }

    /// Whether nothing that the next record needs is still being read.
    pub fn is_ready(&mut self, tiering: &Tiering) -> bool {
        let Some(next) = self.looked_into.front_mut() else { return true };
        let waits = |(_, place): &(KeyHash, Place)| tiering.awaits(*place);
        let rest = &next.values[next.arrived..];
        next.arrived += rest.iter().position(waits).unwrap_or(rest.len());
        next.arrived == next.values.len()
    }

    /// The record was consumed: what it needed may go.
    pub fn note_consumed(&mut self, sequence: Sequence, keyspace: &mut Keyspace) {
        let is_it = |foreseen: &mut Foreseen| foreseen.sequence <= sequence;
        while let Some(foreseen) = self.looked_into.pop_front_if(is_it) {
            self.bytes -= foreseen.bytes;
            self.values -= foreseen.values.len();
            self.warm -= foreseen.warm.len();
            foreseen.unpin(keyspace);
        }
    }

    /// None of the records will be applied.
    pub fn forget(&mut self, keyspace: &mut Keyspace) {
        self.looked_into.drain(..).for_each(|foreseen| foreseen.unpin(keyspace));
        (self.bytes, self.values, self.warm, self.refused) = (0, 0, 0, None);
    }

    /// Moves values out of memory, as [`Tiering::make_room`] does, for who applies the records:
    /// what is pinned for these goes only when they are applied, so nobody waits for it.
    pub fn make_room(
        &self,
        keyspace: &mut Keyspace,
        tiering: &mut Tiering,
        now: UnixMillis,
    ) -> Made {
        let set_own = |keyspace: &mut Keyspace, pins| {
            if let Some(cold) = keyspace.cold_mut() {
                cold.set_own_pins(pins);
            }
        };
        set_own(keyspace, self.values + self.warm);
        let made = tiering.make_room(keyspace, 0, now);
        set_own(keyspace, 0);
        made
    }
}

impl Foreseen {
    fn unpin(&self, keyspace: &mut Keyspace) {
        let Some(cold) = keyspace.cold_mut() else { return };
        self.values.iter().for_each(|(hash, _)| cold.unpin(*hash));
        self.warm.iter().for_each(|hash| cold.unpin(*hash));
    }
}

#[cfg(test)]
mod tests;
