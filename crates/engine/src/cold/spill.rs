//! Which values leave memory, and how.
//!
//! A hand goes round the tables in the order of hashes. It passes cold values by without a look at
//! them; of what is in memory it takes what was idle for longer than most, as a sample of what is
//! there says. So it wastes no time however few values are left, and goes on where it stood.

use super::{ColdLimits, ColdStore, TAG_TOO_LONG, add};
use crate::access::Idleness;
use crate::ids::KeyHash;
use crate::keyspace::Keyspace;
use crate::settings::Settings;
use crate::value::content::{count_of, may_go, put_content, tag_of};
use crate::value::hash::next_expiry;
use crate::value::text::EMBSTR_BYTES_MAX;
use crate::value::{EntryRef, Value, entry_bytes};
use base::time::{MonotonicNanos, SECOND};
use base::{DatabaseId, UnixMillis};
use structures::entry::{Payload, ValueRef};
use tier::{Place, Refused};

/// Buckets that the hand passes at a time.
const BUCKETS_AT_ONCE: usize = 4;

/// Values that a sample of idle times has, and buckets that are looked into for it.
const SAMPLE_VALUES: usize = 32;
const SAMPLE_BUCKETS: usize = 64;

/// Values that the hand takes, and buckets that it passes, by one sample.
const VALUES_PER_SAMPLE: u32 = 512;

/// Values stop going once more than so many of a hundred keys have theirs spilled, and what is left
/// of the others is at most this part of `maxmemory`: memory is full of keys then, and every
/// request would wait for the file. A few of the keys may have nearly all the bytes.
const COLD_PERCENT_MAX: usize = 95;
const WARM_SHARE: usize = 20;

/// Memory is barren if less than this part of what the hand met there may go, by bytes, idle or
/// not: of so many entries, or in so many rounds. What it met before so many others counts for
/// half.
const BARREN_SHARE: usize = 64;
const BARREN_ENTRIES_MIN: usize = 512;
const BARREN_ROUNDS_MIN: u32 = 2;
const HALVED_ENTRIES: usize = 2048;

/// Rounds in which nothing went, after which any value is taken that may go, however it is used,
/// and after which there is nothing to be had.
const FRUITLESS_CHOOSY_MAX: u32 = 1;
const FRUITLESS_MAX: u32 = 4;

/// Guests that leave in a step where nothing else can, or fewer.
const GUESTS_AT_ONCE: usize = 64;

/// Buckets that are looked into each time while it is: some 80 keys.
const BARREN_BUCKETS_AT_ONCE: usize = 16;

/// Values that are not tried again so soon because they were encoded in vain, and how long.
const VAIN_MAX: usize = 16;
const VAIN_NANOS: u64 = SECOND;

/// The part of `maxmemory` that guests may take, and what they may take of a small one, in bytes.
const GUESTS_SHARE: usize = 32;
const GUEST_BYTES_MIN: usize = 256 << 10;

/// What came of an attempt to spill.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spilled {
    /// Enough bytes were freed.
    Enough,
    /// The work allowed was done; more must go.
    More,
    /// What went before is not written yet: more can go later.
    Behind,
    /// Nothing more can go: the store is full, too little would stay in memory, or next to nothing
    /// of what is there may go.
    Nothing,
}

/// How a value goes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum How {
    /// If it has a copy in the store.
    OnlyCopies,
    /// If it is long, over several turns.
    InSlices,
    /// However long it is: for tests.
    AtOnce,
}

/// Where the hand stands.
#[derive(Default)]
pub(super) struct Hand {
    database: usize,
    position: u64,
    /// What is ranked below that stays.
    rank_min: u32,
    /// Values to be taken, and buckets to be passed, before the next sample.
    sampled_for: u32,
    pub(super) harvest: Harvest,
    /// Rounds since a value left memory.
    pub(super) fruitless: u32,
    /// Where every value goes, for tests ([`Keyspace::spill_all`]): some could not go yet.
    has_left: bool,
    /// A long value was passed by, because another one is being encoded or buffers are full.
    pub(super) has_passed_long: bool,
    /// A long value was passed by, because the store is too full for it.
    pub(super) has_met_full: bool,
    /// Long values that were encoded in vain since this time: some that change all the time must
    /// not be all that is tried.
    vain: Vec<KeyHash>,
    vain_since: MonotonicNanos,
    /// The state of its chance.
    chance: u64,
    /// What it met and will take: kept for its memory.
    victims: Vec<KeyHash>,
}

/// Entries in memory that the hand has met lately.
#[derive(Clone, Copy, Default)]
pub(super) struct Harvest {
    entries: usize,
    /// Bytes of these and of their values, and the part of them that may go, however idle it is.
    bytes: usize,
    able_bytes: usize,
    /// How often it has come round meanwhile.
    rounds: u32,
}

impl Harvest {
    fn add(&mut self, met: Self) {
        if self.entries >= HALVED_ENTRIES {
            self.entries /= 2;
            self.bytes /= 2;
            self.able_bytes /= 2;
        }
        self.entries += met.entries;
        self.bytes = self.bytes.saturating_add(met.bytes);
        self.able_bytes = self.able_bytes.saturating_add(met.able_bytes);
        self.rounds = if self.is_poor() { self.rounds.saturating_add(met.rounds) } else { 0 };
    }

    /// Whether little of what was met may go.
    fn is_poor(&self) -> bool {
        self.able_bytes == 0 || self.able_bytes < self.bytes / BARREN_SHARE
    }

    /// Whether so little may go that it is not worth the search: others must make room. In memory
    /// there are so many entries, of so many bytes: if those that were met are much smaller, the
    /// few that have most of the bytes are still to come.
    fn is_barren(&self, entries: usize, bytes: usize) -> bool {
        let as_large = || self.bytes as u128 * entries as u128 * 4;
        let is_like_all = || as_large() >= self.entries as u128 * bytes as u128 * 3;
        self.is_poor()
            && (self.rounds > BARREN_ROUNDS_MIN
                || self.entries >= BARREN_ENTRIES_MIN && is_like_all())
    }
}

impl Hand {
    /// Goes on with the next database. How often it has come round with that.
    fn go_on(&mut self, databases: usize) -> u32 {
        self.position = 0;
        self.database = (self.database + 1) % databases;
        // What one sample took for recent must not stay for ever.
        self.sampled_for = 0;
        u32::from(self.database == 0)
    }

    /// Whether it is not worth to look any further: [`Harvest::is_barren`].
    fn is_barren(&self, entries: usize, bytes: usize) -> bool {
        self.fruitless > FRUITLESS_MAX || self.harvest.is_barren(entries, bytes)
    }

    /// Notes a value that was encoded in vain.
    pub(super) fn note_vain(&mut self, hash: KeyHash) {
        if self.vain.len() < VAIN_MAX {
            self.vain.push(hash);
        }
    }

    /// Lets those be tried again whose time has come.
    fn retry_vain(&mut self, now: MonotonicNanos) {
        if self.vain.is_empty() || now.since(self.vain_since) < VAIN_NANOS {
            return;
        }
        self.vain.clear();
        self.vain_since = now;
    }
}

impl Keyspace {
    /// Moves every value out of memory that may go, whatever it is worth: for tests in which no
    /// value is where it was.
    pub fn spill_all(&mut self, now: UnixMillis) {
        self.dismiss_guests(0);
        for index in 0..self.databases.len() {
            if self.databases[index].len() == self.databases[index].cold_keys {
                continue;
            }
            let mut position = Some(0);
            while let Some(from) = position {
                let Some(cold) = self.cold.as_deref_mut() else { return };
                (cold.hand.database, cold.hand.position) = (index, from);
                (cold.hand.rank_min, cold.hand.sampled_for) = (0, 1);
                let (id, _) = self.look_for_victims(now);
                let hand = self.cold.as_ref().map(|cold| &cold.hand);
                position = hand
                    .filter(|it| it.database == index)
                    .map(|it| it.position)
                    .filter(|at| *at > 0);
                if self.send_victims_away(id, How::AtOnce).is_some() {
                    return;
                }
            }
        }
        if let Some(cold) = self.cold.as_deref_mut() {
            cold.hand.has_left = false;
        }
    }

    /// As [`Self::spill_all`], of keys with these hashes alone, once all others are out of memory.
    pub fn spill_keys(&mut self, hashes: &[KeyHash], now: UnixMillis) {
        if self.cold.as_deref().is_some_and(|cold| cold.hand.has_left) {
            return self.spill_all(now);
        }
        self.dismiss_guests(0);
        for id in (0..self.databases.len() as u32).map(DatabaseId) {
            if self.database(id).len() == self.database(id).cold_keys {
                continue;
            }
            for hash in hashes {
                let Some(cold) = self.cold.as_deref() else { return };
                let may_go = |entry: EntryRef<'_>| self.may_spill(id, entry, &cold.limits, now);
                let is_there = self.database(id).table.find_where(*hash, may_go).is_some();
                if is_there
                    && !cold.is_pinned(*hash)
                    && self.spill_one(id, *hash, How::AtOnce).is_err()
                    && let Some(cold) = self.cold.as_deref_mut()
                {
                    cold.hand.has_left = true;
                    return;
                }
            }
        }
    }

    /// Moves values out of memory until `bytes` are freed, or `buckets_max` buckets were looked
    /// into, of which a guest that leaves counts as one; what came of it.
    pub fn spill(&mut self, bytes: usize, buckets_max: usize, now: UnixMillis) -> Spilled {
        let Some(cold) = &self.cold else { return Spilled::Nothing };
        // What is over may be more than all values together.
        let is_enough_there = self.entry_bytes() > bytes;
        let before = self.entry_bytes();
        let wanted = before.saturating_sub(bytes);
        let share = self.settings.maxmemory as usize / GUESTS_SHARE;
        let guest_bytes_max = cold.limits.guest_bytes_max.min(share.max(GUEST_BYTES_MIN));
        let (mut buckets, mut refused) = (0, self.encode_further(now));
        // No guest goes while no fewer bytes of them are kept.
        let mut guests_kept = usize::MAX;
        let (keys, warm_bytes) = (self.len() - self.cold_keys(), self.warm_bytes());
        while self.entry_bytes() > wanted {
            let is_barren =
                self.cold.as_ref().is_some_and(|it| it.hand.is_barren(keys, warm_bytes));
            let is_over = is_barren && buckets >= buckets_max.min(BARREN_BUCKETS_AT_ONCE);
            let is_last_resort = is_over || self.is_full_of_keys();
            if buckets >= buckets_max + if is_last_resort { GUESTS_AT_ONCE } else { 0 } {
                let has_freed = self.entry_bytes() < before;
                return self.what_comes(refused, has_freed);
            }
            let guests_max = if is_last_resort { 0 } else { guest_bytes_max };
            if guests_max < guests_kept {
                if self.dismiss_guest(guests_max) {
                    buckets += 1;
                    continue;
                }
                guests_kept = guests_max;
            }
            if is_last_resort {
                return self.cold.as_deref_mut().map_or(Spilled::Nothing, ColdStore::what_waits);
            }
            buckets += BUCKETS_AT_ONCE;
            let (id, mut met) = self.look_for_victims(now);
            let how = if refused.is_some() { How::OnlyCopies } else { How::InSlices };
            let bytes_before = self.database(id).entry_bytes;
            refused = self.send_victims_away(id, how).or(refused);
            let has_met_full =
                self.cold.as_mut().map(|it| std::mem::take(&mut it.hand.has_met_full));
            if refused == Some(Spilled::Nothing) || has_met_full == Some(true) {
                // What has a copy goes though the store is full.
                met.able_bytes = bytes_before.saturating_sub(self.database(id).entry_bytes);
                if let Some(cold) = &mut self.cold {
                    cold.is_full = true;
                }
            }
            let has_freed = self.database(id).entry_bytes < bytes_before;
            if let Some(cold) = &mut self.cold {
                cold.hand.harvest.add(met);
                let fruitless = cold.hand.fruitless.saturating_add(met.rounds);
                let is_behind = refused == Some(Spilled::Behind);
                cold.hand.fruitless = if has_freed || is_behind { 0 } else { fruitless };
            }
        }
        if is_enough_there { Spilled::Enough } else { Spilled::Nothing }
    }

    /// The outcome of a step that has ended, and more must go.
    fn what_comes(&mut self, refused: Option<Spilled>, has_freed: bool) -> Spilled {
        let Some(cold) = self.cold.as_deref_mut().filter(|_| !has_freed) else {
            // Those that have a copy need no room in the store.
            return Spilled::More;
        };
        match refused {
            Some(refused) => refused,
            // What may go is long: it goes a part in each turn.
            None if cold.waits_for_long() => cold.what_waits(),
            None => Spilled::More,
        }
    }

    /// Whether too little would stay in memory if more went.
    fn is_full_of_keys(&self) -> bool {
        let bytes_min = self.settings.maxmemory as usize / WARM_SHARE;
        self.cold_keys() * 100 > self.len() * COLD_PERCENT_MAX && self.warm_bytes() <= bytes_min
    }

    /// Bytes of entries and values that are in memory.
    fn warm_bytes(&self) -> usize {
        self.databases.iter().map(|it| it.entry_bytes - it.cold_entry_bytes).sum()
    }

    /// How many values in memory take so many bytes, if they are as large as most.
    pub fn values_of(&self, bytes: usize) -> usize {
        let count = (self.len() - self.cold_keys()) as u128;
        let all = self.warm_bytes().max(1) as u128;
        usize::try_from(count * bytes as u128 / all).unwrap_or(usize::MAX)
    }

    /// Bytes of all entries and values in memory.
    fn entry_bytes(&self) -> usize {
        self.databases.iter().map(|database| database.entry_bytes).sum()
    }

    /// Moves the hand on, and notes what it takes; in which database, and what it has met.
    fn look_for_victims(&mut self, now: UnixMillis) -> (DatabaseId, Harvest) {
        let mut met = Harvest::default();
        let Some(mut cold) = self.cold.take() else { return (DatabaseId(0), met) };
        while self.databases[cold.hand.database].is_empty() && !self.is_empty() {
            met.rounds += cold.hand.go_on(self.databases.len());
        }
        if cold.hand.sampled_for == 0 {
            cold.hand.rank_min = self.high_rank(&mut cold, now);
            cold.hand.sampled_for = VALUES_PER_SAMPLE;
        }
        let ColdStore { hand, limits, pins, now: moment, .. } = &mut *cold;
        hand.retry_vain(*moment);
        // What is idle enough may be what cannot go now: it is pinned.
        let is_choosy = hand.fruitless <= FRUITLESS_CHOOSY_MAX;
        let rank_min = if is_choosy { hand.rank_min } else { 0 };
        let id = DatabaseId(hand.database as u32);
        let mut victims = std::mem::take(&mut hand.victims);
        victims.clear();
        let database = &self.databases[hand.database];
        let next = database.table.sweep(hand.position, BUCKETS_AT_ONCE, |entry| {
            let bytes = entry_bytes(entry);
            met.entries += 1;
            met.bytes += bytes;
            if !self.may_spill(id, entry, limits, now) {
                return;
            }
            let hash = self.hasher.hash(entry.key());
            if !pins.is_empty() && pins.contains_key(&hash) || hand.vain.contains(&hash) {
                return;
            }
            met.able_bytes += bytes;
            if rank(entry, now, &self.settings) >= rank_min {
                victims.push(hash);
            }
        });
        hand.victims = victims;
        match next {
            Some(position) => hand.position = position,
            None => met.rounds += hand.go_on(self.databases.len()),
        }
        self.cold = Some(cold);
        (id, met)
    }

    /// Spills what the hand noted. If the store takes no more, only what has a copy there; why, if
    /// it is so.
    fn send_victims_away(&mut self, id: DatabaseId, how: How) -> Option<Spilled> {
        let cold = self.cold.as_deref_mut()?;
        let victims = std::mem::take(&mut cold.hand.victims);
        let mut refused = None;
        for hash in &victims {
            let how = if refused.is_some() { How::OnlyCopies } else { how };
            match self.spill_one(id, *hash, how) {
                // It fits into no record: others may.
                Ok(()) | Err(Refused::Length) => {}
                Err(why) => refused = refused.or(Some(why)),
            }
        }
        if let Some(cold) = self.cold.as_deref_mut() {
            // What passes in vain counts too: all may have been used since the sample.
            let passed = victims.len() + BUCKETS_AT_ONCE;
            cold.hand.sampled_for = cold.hand.sampled_for.saturating_sub(passed as u32);
            cold.hand.victims = victims;
        }
        refused.map(|why| if why == Refused::Behind { Spilled::Behind } else { Spilled::Nothing })
    }

    /// Moves the value of a key with this hash out of memory, or begins to.
    fn spill_one(&mut self, id: DatabaseId, hash: KeyHash, how: How) -> Result<(), Refused> {
        let Self { databases, cold, .. } = self;
        let Some(cold) = cold else { return Err(Refused::Full) };
        let is_here = |entry: EntryRef<'_>| may_go(entry.value());
        let database = &databases[id.0 as usize];
        let Some(entry) = database.table.find_where(hash, is_here) else { return Ok(()) };
        let mut written = None;
        if entry.copy_place().is_none() {
            match how {
                How::OnlyCopies => return Ok(()),
                How::InSlices if cold.is_long(entry.value()) => {
                    self.begin_encoding(id, hash);
                    return Ok(());
                }
                How::InSlices | How::AtOnce => written = Some(self.write_at_once(id, hash)?),
            }
        }
        self.send_away(id, hash, written, is_here);
        Ok(())
    }

    /// Writes the value of a key with this hash, which is in memory, to the store.
    fn write_at_once(&mut self, id: DatabaseId, hash: KeyHash) -> Result<Place, Refused> {
        let Self { databases, cold, work, .. } = self;
        let Some(cold) = cold else { return Err(Refused::Full) };
        let database = &mut databases[id.0 as usize];
        let found = database.table.find_where(hash, |entry| may_go(entry.value()));
        let entry = found.ok_or(Refused::Full)?;
        let mut content = std::mem::take(&mut cold.content);
        content.clear();
        put_content(&mut content, entry.value(), work);
        let put = cold.tier.put(hash, &content);
        cold.keep_content(content);
        if put == Err(Refused::Length) {
            entry.set_tag(TAG_TOO_LONG);
        }
        add(&cold.statistics.spilled_by_writing, u64::from(put.is_ok()));
        cold.is_full &= put.is_err();
        database.placed += usize::from(put.is_ok());
        put
    }

    /// Takes a value out of memory of which a copy lies in the store: where it was just written, or
    /// where its entry says.
    pub(super) fn send_away(
        &mut self,
        id: DatabaseId,
        hash: KeyHash,
        written: Option<Place>,
        is_it: impl Fn(EntryRef<'_>) -> bool,
    ) {
        let Self { databases, cold, settings, garbage, .. } = self;
        let Some(cold) = cold else { return };
        let database = &mut databases[id.0 as usize];
        let Some(mut found) = database.table.find_mut_where(hash, is_it) else { return };
        let entry = found.as_ref();
        let copy = || entry.copy_place().and_then(Place::from_bits);
        let Some(place) = written.or_else(copy) else { return };
        let (tag, payload) = (tag_of(entry.value()), away(place, entry));
        let before = entry_bytes(entry);
        let mut value = None;
        found.update(|entry| {
            let (entry, boxed) = entry.with_payload(payload);
            value = boxed;
            entry
        });
        found.as_ref().set_tag(tag);
        let after = entry_bytes(found.as_ref());
        database.entry_bytes = database.entry_bytes + after - before;
        database.cold_keys += 1;
        database.cold_entry_bytes += after;
        add(&cold.statistics.spilled, 1);
        if let Some(value) = value
            && value.elements() > settings.limits.freed_inline_elements_max
        {
            garbage.push(value);
        }
    }

    /// Whether the value of an entry of this database may be spilled now.
    pub(super) fn may_spill(
        &self,
        id: DatabaseId,
        entry: EntryRef<'_>,
        limits: &ColdLimits,
        now: UnixMillis,
    ) -> bool {
        let value = entry.value();
        let bytes = match value {
            ValueRef::Bytes(text) => text.len(),
            // A short one has an encoding of its own, which it would lose.
            ValueRef::Boxed(Value::Text(text)) if text.len() <= EMBSTR_BYTES_MAX => return false,
            ValueRef::Boxed(Value::Text(text)) => text.len(),
            ValueRef::Boxed(value) => value.allocated_bytes(),
            ValueRef::Integer(_) | ValueRef::Cold(_) => return false,
        };
        let freed = entry_bytes(entry).saturating_sub(entry.bytes_if_cold());
        // It would come back at once.
        let is_due = next_expiry(entry).is_some_and(|at| at <= now.0);
        let bytes_max = match next_expiry(entry) {
            Some(_) => limits.value_bytes_max.min(limits.expiring_bytes_max),
            None => limits.value_bytes_max,
        };
        (limits.value_bytes_min..=bytes_max).contains(&bytes)
            && entry.tag() != TAG_TOO_LONG
            && freed >= limits.freed_bytes_min
            && may_go(value)
            && !is_due
            && !self.is_being_written(id, entry)
    }

    /// Whether a snapshot is writing the value of this entry in pieces, for which it must stay.
    pub(super) fn is_being_written(&self, id: DatabaseId, entry: EntryRef<'_>) -> bool {
        let snapshot = self.snapshot.as_ref();
        snapshot.is_some_and(|snapshot| snapshot.holds(self.database(id), entry.key()))
    }

    /// The rank that a third of the values in memory reach that may go, by a sample.
    fn high_rank(&self, cold: &mut ColdStore, now: UnixMillis) -> u32 {
        let mut ranks = Vec::with_capacity(2 * SAMPLE_VALUES);
        let filled = self.databases().filter(|(_, database)| !database.is_empty());
        let most = filled.max_by_key(|(_, database)| database.len() - database.cold_keys);
        let Some((id, database)) = most else { return 0 };
        for _ in 0..SAMPLE_BUCKETS / BUCKETS_AT_ONCE {
            cold.hand.chance = cold.hand.chance.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let from = cold.hand.chance.wrapping_mul(0xbf58_476d_1ce4_e5b9);
            database.table.sweep(from, BUCKETS_AT_ONCE, |entry| {
                // What must stay, however idle, would hide what may go.
                if self.may_spill(id, entry, &cold.limits, now) {
                    ranks.push(rank(entry, now, &self.settings));
                }
            });
            if ranks.len() >= SAMPLE_VALUES {
                break;
            }
        }
        ranks.sort_unstable();
        ranks.get(ranks.len() * 2 / 3).copied().unwrap_or(0)
    }
}

/// A payload that says where the value of an entry lies.
fn away(place: Place, entry: EntryRef<'_>) -> Payload<'static, Value> {
    let (count, due) = (count_of(entry.value()), next_expiry(entry));
    Payload::Cold(structures::Cold { place: place.bits(), count, due })
}

/// How little a value is worth being in memory.
fn rank(entry: EntryRef<'_>, now: UnixMillis, settings: &Settings) -> u32 {
    Idleness::at(now, settings).of(entry.access())
}
