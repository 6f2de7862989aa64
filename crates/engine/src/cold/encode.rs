//! Long values on their way out of memory: encoded over several turns, so that none takes long.
//!
//! One value at a time is encoded, slice by slice, into a record of the store in the making
//! ([`tier::Draft`]), whose memory counts among the store's buffers. The value stays where it is
//! meanwhile, and whoever reads it finds it there. Before an effect touches it, the work is thrown
//! away; so it is if the value was used meanwhile, or must stay for another reason.

use super::spill::Spilled;
use super::{ColdStore, TAG_TOO_LONG, add};
use crate::effect::Effect;
use crate::ids::KeyHash;
use crate::keyspace::Keyspace;
use crate::value::content::{may_go, put_beginning, put_part};
use crate::value::stored::Cursor;
use crate::value::{EntryRef, Value};
use base::{DatabaseId, UnixMillis};
use structures::entry::ValueRef;
use tier::{Draft, Refused};

/// Speed of copying a string, in times that of encoding elements, about.
const COPIED_SHARE: usize = 16;

/// Bytes that an encoding may have beyond the value's in memory: this part of them, and so many. As
/// a rule it has none; that of a stream with many pending entries may.
const LONGER_SHARE: usize = 8;
const LONGER_BYTES: usize = 256;

/// A long value that is being encoded.
pub(super) struct Encoding {
    database: DatabaseId,
    hash: KeyHash,
    key: Vec<u8>,
    /// The access word that the entry had: another one says that the value was used.
    access: u32,
    /// How far it is encoded.
    cursor: Cursor,
    is_complete: bool,
    draft: Draft,
}

/// What came of a slice.
enum Step {
    /// There is more of the value.
    More,
    Complete,
    /// The value must stay.
    InVain,
    /// It is longer than any record.
    TooLong,
}

/// Bytes of a value that are appended in the time that a byte of elements takes.
fn speed_of(value: &Value) -> usize {
    match value {
        Value::Text(_) => COPIED_SHARE,
        value if !value.is_divisible() => COPIED_SHARE,
        _ => 1,
    }
}

impl ColdStore {
    /// Whether a value is encoded over several turns.
    pub(super) fn is_long(&self, value: ValueRef<'_, Value>) -> bool {
        matches!(value, ValueRef::Boxed(it) if it.allocated_bytes() > self.limits.slice_bytes)
    }

    /// Whether a long value is being encoded, and that can go on in the next turn.
    pub fn encodes_next_turn(&self) -> bool {
        self.encoding.as_ref().is_some_and(|encoding| !encoding.is_complete)
    }

    /// Whether a long value is being encoded, or waits for its turn.
    pub(super) fn waits_for_long(&self) -> bool {
        self.encoding.is_some() || self.hand.has_passed_long
    }

    /// What is to be said where nothing more can go: whether something can later.
    pub(super) fn what_waits(&mut self) -> Spilled {
        if self.encodes_next_turn() && self.encoded_bytes_left > 0 {
            return Spilled::More;
        }
        let has_passed_long = std::mem::take(&mut self.hand.has_passed_long);
        // What is pinned can go as soon as the requests that wait for it have run.
        match self.encoding.is_some() || has_passed_long || self.waits_for_pins() {
            true => Spilled::Behind,
            false => Spilled::Nothing,
        }
    }

    /// Throws away what was encoded.
    pub(super) fn stop_encoding(&mut self) {
        if let Some(encoding) = self.encoding.take() {
            self.hand.note_vain(encoding.hash);
            self.give_up(encoding);
        }
    }

    fn give_up(&mut self, encoding: Encoding) {
        self.tier.give_up_draft(encoding.draft);
        add(&self.statistics.encoded_in_vain, 1);
    }
}

impl Keyspace {
    /// An effect is about to be applied: if it touches the value that is being encoded, that was in
    /// vain.
    pub(crate) fn stop_encoding_before(
        &mut self,
        database: DatabaseId,
        hash: KeyHash,
        effect: &Effect<'_>,
    ) {
        let hasher = self.hasher;
        let Some(cold) = &mut self.cold else { return };
        let Some(encoding) = &cold.encoding else { return };
        let is_it = |database, hash| hash == encoding.hash && database == encoding.database;
        let touches = effect.is_keyless()
            || is_it(database, hash)
            || effect.second_key().is_some_and(|(database, key)| is_it(database, hasher.hash(key)));
        if touches && !cold.limits.keeps_encoding {
            cold.stop_encoding();
        }
    }

    /// Begins with a long value of a key with this hash, unless there is another one, or no room.
    pub(super) fn begin_encoding(&mut self, id: DatabaseId, hash: KeyHash) {
        let Self { databases, cold, .. } = self;
        let Some(cold) = cold else { return };
        let found = databases[id.0 as usize].table.find_where(hash, |it| may_go(it.value()));
        let Some(entry) = found else { return };
        let ValueRef::Boxed(value) = entry.value() else { return };
        if cold.encoding.is_some() {
            cold.hand.has_passed_long = true;
            return;
        }
        let bytes = value.allocated_bytes();
        let bytes_max = bytes + bytes / LONGER_SHARE + LONGER_BYTES;
        let mut draft = match cold.tier.begin_draft(bytes_max.min(cold.tier.content_bytes_max())) {
            Ok(draft) => draft,
            Err(Refused::Length) => return entry.set_tag(TAG_TOO_LONG),
            // Shorter ones may have room.
            Err(Refused::Full) => {
                cold.hand.has_met_full = true;
                return;
            }
            Err(Refused::Behind) => {
                cold.hand.has_passed_long = true;
                return;
            }
        };
        draft.write(|out| put_beginning(out, value));
        cold.encoding = Some(Encoding {
            database: id,
            hash,
            key: entry.key().to_vec(),
            access: entry.access(),
            cursor: Cursor::default(),
            is_complete: false,
            draft,
        });
    }

    /// Goes on with the long value that is being encoded, if one is, by a slice. If that is its
    /// end, it leaves memory. Why it does not, if the store does not take it.
    pub(super) fn encode_further(&mut self, now: UnixMillis) -> Option<Spilled> {
        let mut encoding = self.cold.as_deref_mut()?.encoding.take()?;
        let step = self.encode_slice(&mut encoding, now);
        let cold = self.cold.as_deref_mut()?;
        match step {
            Step::More => cold.encoding = Some(encoding),
            Step::Complete => return self.put_encoded(encoding),
            Step::InVain => {
                cold.hand.note_vain(encoding.hash);
                cold.give_up(encoding);
            }
            Step::TooLong => self.stays_for_length(encoding),
        }
        None
    }

    /// As [`Self::encode_further`], whether memory is short or not: what was begun is finished.
    pub fn go_on_encoding(&mut self) {
        self.encode_further(self.now);
    }

    fn encode_slice(&mut self, encoding: &mut Encoding, now: UnixMillis) -> Step {
        let Some(cold) = self.cold.as_deref() else { return Step::InVain };
        let entry = self.database(encoding.database).find(encoding.hash, &encoding.key);
        let stays = |entry: EntryRef<'_>| {
            entry.copy_place().is_some()
                || entry.access() != encoding.access
                || cold.is_pinned(encoding.hash)
                || !self.may_spill(encoding.database, entry, &cold.limits, now)
        };
        let Some(entry) = entry.filter(|entry| !stays(*entry)) else { return Step::InVain };
        let ValueRef::Boxed(value) = entry.value() else { return Step::InVain };
        if encoding.is_complete {
            return Step::Complete;
        }
        let bytes_max = cold.limits.slice_bytes.min(cold.encoded_bytes_left);
        if bytes_max == 0 {
            return Step::More;
        }
        let Encoding { draft, cursor, is_complete, .. } = encoding;
        let (before, speed) = (draft.content_bytes(), speed_of(value));
        *is_complete = draft
            .write(|out| put_part(out, value, cursor, bytes_max.saturating_mul(speed), &self.work));
        let done = (draft.content_bytes() - before).div_ceil(speed).max(1);
        let (is_complete, is_over) = (*is_complete, draft.is_over());
        if let Some(cold) = self.cold.as_deref_mut() {
            cold.encoded_bytes_left = cold.encoded_bytes_left.saturating_sub(done);
        }
        match is_complete {
            _ if is_over => Step::TooLong,
            true => Step::Complete,
            false => Step::More,
        }
    }

    /// Hands an encoded value to the store, and takes it out of memory.
    fn put_encoded(&mut self, encoding: Encoding) -> Option<Spilled> {
        let Encoding { database: id, hash, draft, .. } = encoding;
        let cold = self.cold.as_deref_mut()?;
        let place = match cold.tier.put_draft(hash, draft) {
            Ok(place) => place,
            Err((why, draft)) => {
                let encoding = Encoding { draft, ..encoding };
                match why {
                    Refused::Behind => cold.encoding = Some(encoding),
                    Refused::Full => cold.give_up(encoding),
                    Refused::Length => self.stays_for_length(encoding),
                }
                return match why {
                    Refused::Behind => Some(Spilled::Behind),
                    Refused::Full => Some(Spilled::Nothing),
                    Refused::Length => None,
                };
            }
        };
        add(&cold.statistics.spilled_by_writing, 1);
        cold.hand.fruitless = 0;
        cold.is_full = false;
        self.databases[id.0 as usize].placed += 1;
        self.send_away(id, hash, Some(place), |entry| entry.key() == encoding.key);
        None
    }

    /// Notes of a value that no record has room for it: it is not tried again until it changes.
    fn stays_for_length(&mut self, encoding: Encoding) {
        if let Some(entry) = self.database(encoding.database).find(encoding.hash, &encoding.key) {
            entry.set_tag(TAG_TOO_LONG);
        }
        if let Some(cold) = &mut self.cold {
            cold.give_up(encoding);
        }
    }
}
