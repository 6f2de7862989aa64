//! Eviction: which keys go when `maxmemory` is reached.
//!
//! As Redis does it, by samples: of a few random keys the one that its policy values least goes.
//! Each eviction is a logged effect, so replicas and restarts agree on what is gone.

use crate::access;
use crate::effect::DeleteReason;
use crate::execute::Engine;
use crate::ids::KeyHash;
use crate::interest::Interest;
use crate::keyspace::{Database, Keyspace};
use crate::random::Random;
use crate::settings::EvictionPolicy;
use crate::unit::{Context, Unit};
use crate::value::EntryRef;
use base::{DatabaseId, UnixMillis};

/// Random picks per wanted sample when only keys with an expiry may go and few have one.
const VOLATILE_TRIES: usize = 8;

/// The outcome of an attempt to make room.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Room {
    /// Memory is below the limit.
    Enough,
    /// The work allowed was done; more must go.
    More,
    /// Nothing may go: the policy has no candidate.
    None,
    /// Nothing may go now.
    Later,
    /// Values that were moved out are not written yet: there is room soon.
    Behind,
}

impl Engine {
    /// Evicts up to `keys_max` keys while memory is above `maxmemory`, which counts the bytes of
    /// the data and `beside`, those that clients occupy.
    pub fn evict(
        &mut self,
        now: UnixMillis,
        keys_max: usize,
        beside: u64,
        unit: &mut Unit,
        interest: &mut Interest,
    ) -> Room {
        for _ in 0..keys_max {
            if !self.keyspace.is_over_limit(beside) {
                return Room::Enough;
            }
            let Some((database, hash, key)) = victim(&self.keyspace, &mut self.random, now) else {
                return Room::None;
            };
            let mut tx = self.tx(Context::background(now, database), unit, interest);
            tx.drop_key(database, hash, &key, DeleteReason::Evicted);
        }
        if self.keyspace.is_over_limit(beside) { Room::More } else { Room::Enough }
    }
}

impl Keyspace {
    /// Whether memory is above `maxmemory`: the bytes of the data and `beside`, those that clients
    /// occupy.
    pub fn is_over_limit(&self, beside: u64) -> bool {
        self.bytes_over_limit(beside) > 0
    }

    /// Bytes by which memory is above `maxmemory`, counted as by [`Self::is_over_limit`].
    pub fn bytes_over_limit(&self, beside: u64) -> usize {
        self.bytes_lacking(beside, 0)
    }

    /// Bytes by which memory would be above `maxmemory` with so many more, which are not there yet.
    pub fn bytes_lacking(&self, beside: u64, more: u64) -> usize {
        let limit = self.settings.maxmemory;
        if limit == 0 {
            return 0;
        }
        let used = (self.used_bytes() as u64).saturating_add(beside);
        if used > limit {
            self.most_bytes.set(used.max(self.most_bytes.get()));
        }
        let lacking = used.saturating_add(more).saturating_sub(limit);
        usize::try_from(lacking).unwrap_or(usize::MAX)
    }
}

/// The key that goes next, `None` if the policy lets none go.
fn victim(
    keyspace: &Keyspace,
    random: &mut Random,
    now: UnixMillis,
) -> Option<(DatabaseId, KeyHash, Vec<u8>)> {
    let policy = keyspace.settings.maxmemory_policy;
    if policy == EvictionPolicy::NoEviction {
        return None;
    }
    let mut worst: Option<(u64, DatabaseId, EntryRef<'_>)> = None;
    for (id, database) in keyspace.databases() {
        let candidate = match policy {
            EvictionPolicy::VolatileTtl => first_to_expire(database),
            _ => sample(keyspace, database, random, now),
        };
        if let Some((rank, entry)) = candidate
            && worst.is_none_or(|(known, ..)| rank > known)
        {
            worst = Some((rank, id, entry));
        }
    }
    let (_, id, entry) = worst?;
    Some((id, keyspace.hash(entry.key()), entry.key().to_vec()))
}

/// The entry with the earliest expiry; earlier ranks higher.
fn first_to_expire(database: &Database) -> Option<(u64, EntryRef<'_>)> {
    let (at, hash) = database.expiries().first()?;
    let entry = database.table().find_where(hash, |entry| entry.expire_at() == Some(at))?;
    Some((u64::MAX - at.max(0) as u64, entry))
}

/// Of `maxmemory-samples` random entries, the one that the policy values least.
fn sample<'a>(
    keyspace: &'a Keyspace,
    database: &'a Database,
    random: &mut Random,
    now: UnixMillis,
) -> Option<(u64, EntryRef<'a>)> {
    let settings = &keyspace.settings;
    let policy = settings.maxmemory_policy;
    let volatile = matches!(
        policy,
        EvictionPolicy::VolatileLru | EvictionPolicy::VolatileLfu | EvictionPolicy::VolatileRandom
    );
    if database.is_empty() || volatile && database.has_no_expiries() {
        return None;
    }
    let wanted = settings.maxmemory_samples.max(1) as usize;
    let tries = if volatile { wanted * VOLATILE_TRIES } else { wanted };
    let mut best: Option<(u64, EntryRef<'a>)> = None;
    let mut found = 0;
    for _ in 0..tries {
        let word = random.word();
        let Some(entry) = database.table().random(word) else { break };
        if volatile && entry.expire_at().is_none() {
            continue;
        }
        let rank = match policy {
            EvictionPolicy::AllKeysRandom | EvictionPolicy::VolatileRandom => word >> 1,
            _ if policy.is_lfu() => {
                255 - u64::from(access::lfu_counter(entry.access(), now, settings))
            }
            _ => u64::from(access::idle_seconds(entry.access(), now)),
        };
        if best.is_none_or(|(known, _)| rank > known) {
            best = Some((rank, entry));
        }
        found += 1;
        if found == wanted {
            break;
        }
    }
    // Few keys expire and none was met: any of them goes.
    best.or_else(|| first_to_expire(database).map(|(_, entry)| (0, entry)).filter(|_| volatile))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::Effect;
    use crate::settings::Settings;
    use base::HashKey;

    fn engine(policy: EvictionPolicy) -> Engine {
        let settings = Settings { maxmemory_policy: policy, ..Settings::default() };
        Engine::new(Keyspace::new(settings, HashKey::fixed(7)), 7)
    }

    fn fill(engine: &mut Engine, keys: usize, expiring: usize, now: UnixMillis) {
        let (mut unit, mut interest) = (Unit::new(0), Interest::default());
        let context = Context::background(now, DatabaseId(0));
        for i in 0..keys {
            let expire_at = (i < expiring).then_some(now.0 + 100_000 + i as i64);
            let effect = Effect::SetString { value: &[b'x'; 100], expire_at };
            let mut tx = engine.tx(context, &mut unit, &mut interest);
            tx.change(format!("key:{i}").as_bytes(), effect).expect("a new string");
        }
    }

    fn evict_half(policy: EvictionPolicy, keys: usize, expiring: usize) -> (Engine, Room) {
        let now = UnixMillis(1_000_000_000);
        let mut engine = engine(policy);
        fill(&mut engine, keys, expiring, now);
        engine.keyspace.settings.maxmemory = engine.keyspace.used_bytes() as u64 * 3 / 4;
        let mut unit = Unit::new(0);
        let room = engine.evict(now, usize::MAX, 0, &mut unit, &mut Interest::default());
        (engine, room)
    }

    #[test]
    fn every_policy_makes_room_or_says_that_it_cannot() {
        for policy in
            [EvictionPolicy::AllKeysLru, EvictionPolicy::AllKeysLfu, EvictionPolicy::AllKeysRandom]
        {
            let (engine, room) = evict_half(policy, 2000, 0);
            assert_eq!(room, Room::Enough, "{policy:?}");
            assert!(!engine.keyspace.is_over_limit(0));
            assert!(engine.keyspace.statistics.evicted_keys.get() > 100, "{policy:?}");
        }
        let (engine, room) = evict_half(EvictionPolicy::NoEviction, 2000, 0);
        assert_eq!((room, engine.keyspace.len()), (Room::None, 2000));
    }

    #[test]
    fn volatile_policies_touch_only_keys_that_expire() {
        for policy in [
            EvictionPolicy::VolatileLru,
            EvictionPolicy::VolatileLfu,
            EvictionPolicy::VolatileRandom,
            EvictionPolicy::VolatileTtl,
        ] {
            let (engine, room) = evict_half(policy, 2000, 50);
            assert_eq!(room, Room::None, "{policy:?}");
            assert_eq!(engine.keyspace.len(), 1950, "{policy:?}");
        }
    }

    #[test]
    fn the_first_to_expire_goes_first() {
        let now = UnixMillis(1_000_000_000);
        let mut engine = engine(EvictionPolicy::VolatileTtl);
        fill(&mut engine, 100, 100, now);
        engine.keyspace.settings.maxmemory = 1;
        let mut unit = Unit::new(0);
        engine.evict(now, 10, 0, &mut unit, &mut Interest::default());
        for i in 0..100 {
            let key = format!("key:{i}");
            let hash = engine.keyspace.hash(key.as_bytes());
            let found = engine.keyspace.database(DatabaseId(0)).find(hash, key.as_bytes());
            assert_eq!(found.is_some(), i >= 10, "{key}");
        }
    }
}
