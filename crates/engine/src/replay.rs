//! Applies the records of the log: what recovery and replicas do with what a primary wrote.
//!
//! Each effect goes through the same [`Keyspace::apply`] as on the primary. Clients that watch,
//! wait or are subscribed are told, if there are any.

mod telling;

use crate::cold::ColdValue;
use crate::effect::{Effect, EffectDecoder, EffectError};
use crate::ids::KeyHash;
use crate::interest::Interest;
use crate::keyspace::Keyspace;
use base::{DatabaseId, UnixMillis};
use telling::Telling;

/// Effects of a record that are decoded ahead, so that the misses of their keys overlap: as many as
/// the loop parses of a pipeline at a time.
const EFFECTS_AHEAD: usize = 16;

/// The same where values may not be in memory: what they need is read together, several reads at a
/// time, and the more there are the less they wait for each other.
const FETCHES_AHEAD: usize = 256;

/// Values that a record will change.
#[derive(Default, PartialEq, Eq, Debug)]
pub struct ToChange {
    /// Of those that are not in memory: the hash of the key, and what is known of the value.
    pub cold: Vec<(KeyHash, ColdValue)>,
    /// Hashes of keys whose values are in memory, or of which there is none yet.
    pub warm: Vec<KeyHash>,
    /// There are no others.
    pub are_all: bool,
}

/// A record's payload that cannot be applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ApplyError {
    Malformed(EffectError),
    /// The effect is for another type than the key holds, or names a database that is not there.
    Impossible {
        effect_index: u64,
    },
    /// A value that the effects change could not be read from the tier. The record may be right.
    Lost,
}

impl Keyspace {
    /// Applies all effects of a record's payload and tells those who are interested; how many
    /// effects there were. `now` is the record's clock.
    ///
    /// # Errors
    /// [`ApplyError`] if the payload is damaged or does not fit this keyspace.
    pub fn apply_payload(
        &mut self,
        payload: &[u8],
        now: UnixMillis,
        interest: &mut Interest,
    ) -> Result<u64, ApplyError> {
        self.now = now;
        let mut telling = Telling::of(interest, self);
        let mut decoder = EffectDecoder::new(payload);
        let mut count = 0;
        let freed_apart = self.statistics.freed_apart.get();
        let has_cold = self.cold.is_some() && self.cold_keys() > 0;
        let effects_ahead = if has_cold { FETCHES_AHEAD } else { EFFECTS_AHEAD };
        let mut batch = Vec::with_capacity(effects_ahead);
        loop {
            while batch.len() < effects_ahead
                && let Some(effect) = decoder.next_effect().map_err(ApplyError::Malformed)?
            {
                batch.push(effect);
            }
            if batch.is_empty() {
                return Ok(count);
            }
            let mut ready = batch.len();
            if self.cold.is_some() {
                ready = self.fetch_for_effects(&batch).map_err(|_| ApplyError::Lost)?;
            }
            self.prefetch_keys(&batch[..ready]);
            for (database, key, effect) in batch.drain(..ready) {
                let impossible = || ApplyError::Impossible { effect_index: count };
                if !self.has_databases_of(database, &effect) {
                    return Err(impossible());
                }
                let applied = match &mut telling {
                    None => self.apply(database, key, &effect).map(drop),
                    Some(telling) => telling.apply(self, database, key, &effect),
                };
                applied.map_err(|_| match self.has_lost_value() {
                    true => ApplyError::Lost,
                    false => impossible(),
                })?;
                if !self.leaves_garbage {
                    self.garbage.clear();
                    self.statistics.freed_apart.set(freed_apart);
                }
                count += 1;
            }
        }
    }

    /// The values that a record's payload will change, as far as `bytes_max` of those go that are
    /// not in memory now, of what they may take there. One of these may exceed that if
    /// `one_exceeds`. A payload that is damaged or does not fit is left to [`Self::apply_payload`].
    pub fn foresee_values(&self, payload: &[u8], bytes_max: usize, one_exceeds: bool) -> ToChange {
        let mut found = ToChange { are_all: true, ..ToChange::default() };
        if self.cold_keys() == 0 {
            return found;
        }
        let mut bytes = 0;
        let mut decoder = EffectDecoder::new(payload);
        while let Ok(Some((database, key, effect))) = decoder.next_effect() {
            if !self.changes_value_of(database, key, &effect) {
                continue;
            }
            let hash = self.hash(key);
            let Some(value) = self.cold_value(database, key, || i64::MIN) else {
                found.warm.push(hash);
                continue;
            };
            bytes += value.bytes;
            if bytes > bytes_max && !(one_exceeds && found.cold.is_empty()) {
                found.are_all = false;
                return found;
            }
            found.cold.push((hash, value));
        }
        found
    }

    /// Asks the processor for the entries that a batch will change. The databases that it names may
    /// not exist.
    fn prefetch_keys(&self, batch: &[(DatabaseId, &[u8], Effect<'_>)]) {
        if batch.len() < 2 || batch.len() > EFFECTS_AHEAD {
            return;
        }
        let (mut keys, mut found) = ([(DatabaseId(0), 0); EFFECTS_AHEAD], 0);
        let mut last: &[u8] = &[];
        for (database, key, _) in batch {
            // Further effects on a key repeat where it stands, and need no second look.
            let is_new = !std::ptr::eq(last, *key) && !key.is_empty();
            if is_new && self.databases.get(database.0 as usize).is_some() {
                keys[found] = (*database, self.hash(key));
                found += 1;
            }
            last = key;
        }
        self.prefetch(&mut keys[..found]);
    }

    fn has_databases_of(&self, database: DatabaseId, effect: &Effect<'_>) -> bool {
        let count = self.databases.len() as u32;
        let other = match *effect {
            Effect::SwapDatabases { with } => with,
            _ => effect.second_key().map_or(database, |(database, _)| database),
        };
        database.0 < count && other.0 < count
    }
}
