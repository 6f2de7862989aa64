//! Runs one command against the keyspace.

use crate::cold::place_of;
use crate::command::{Args, DataFn, Outcome};
use crate::effect::DeleteReason;
use crate::expiries::Expiries;
use crate::ids::KeyHash;
use crate::interest::Interest;
use crate::keyspace::Keyspace;
use crate::random::Random;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::unit::{Context, Overdue, Unit};
use crate::value::EntryRef;
use crate::value::hash::next_expiry;
use crate::view::View;
use base::{DatabaseId, UnixMillis};
use resp::Reply;
use tier::Place;

/// Hashes that are read at a time because fields of them are due.
const FETCHED_AT_ONCE: usize = 16;

/// As many deletions reading one of them counts for.
const FETCHED_COST: usize = 10;

/// The keyspace and what commands need beside it.
pub struct Engine {
    pub keyspace: Keyspace,
    pub(crate) random: Random,
}

impl Engine {
    /// `chance` is the seed of every random choice of commands.
    pub fn new(keyspace: Keyspace, chance: u64) -> Self {
        Self { keyspace, random: Random::new(chance) }
    }

    /// The process ends: leaves the memory of all keys to the system, which takes it back at once.
    /// Freeing it key by key would keep a large server for seconds. Nothing may be executed later.
    pub fn leave_memory(&mut self) {
        std::mem::forget(std::mem::take(&mut self.keyspace.databases));
    }

    /// Runs one command. Its effects and observations are appended to `unit`, what it has to tell
    /// to `interest`, its reply to `reply`; keys that a read found past their time are deleted by
    /// effects of the same unit.
    ///
    /// # Errors
    /// The refusal to send; then the reply is untouched (a handler replies last) and the only
    /// effects are deletions of expired keys.
    pub fn run(
        &mut self,
        function: &DataFn,
        context: Context,
        args: Args<'_>,
        reply: &mut Reply,
        unit: &mut Unit,
        interest: &mut Interest,
    ) -> Outcome {
        self.keyspace.now = context.now;
        self.keyspace.hashed = args.hashed();
        let outcome = match function {
            DataFn::Read(run) => {
                let mut view = View::new(&self.keyspace, unit, interest, &mut self.random, context);
                run(&mut view, args, reply)
            }
            DataFn::Write(run) => {
                let mut tx = Tx::new(&mut self.keyspace, unit, interest, &mut self.random, context);
                run(&mut tx, args, reply)
            }
        };
        self.keyspace.hashed = None;
        self.end_call(context, unit, interest);
        outcome
    }

    /// Looks at keys for the node itself, as a command that only reads does.
    pub fn look<T>(
        &mut self,
        context: Context,
        unit: &mut Unit,
        interest: &mut Interest,
        look: impl FnOnce(&mut View<'_>) -> T,
    ) -> T {
        self.keyspace.now = context.now;
        let found = look(&mut View::new(&self.keyspace, unit, interest, &mut self.random, context));
        self.end_call(context, unit, interest);
        found
    }

    /// Changes keys for the node itself, as one command does.
    pub fn act<T>(
        &mut self,
        context: Context,
        unit: &mut Unit,
        interest: &mut Interest,
        act: impl FnOnce(&mut Tx<'_>) -> T,
    ) -> T {
        let done = act(&mut self.tx(context, unit, interest));
        self.end_call(context, unit, interest);
        done
    }

    /// Ends what was done as one command: keys that it found past their time go, and replicas are
    /// told of it by itself.
    fn end_call(&mut self, context: Context, unit: &mut Unit, interest: &mut Interest) {
        if context.overdue == Overdue::Deleted {
            if !unit.expired.is_empty() {
                self.delete_expired(context, unit, interest);
            }
        } else if !unit.expired.is_empty() {
            unit.rests_on_clock = true;
            for (_, key, _) in unit.expired.drain(..) {
                interest.hid(&self.keyspace, &key);
            }
        }
        unit.feed.end_call();
    }

    /// A transaction handle for work that no client asked for: expiry, eviction.
    pub fn tx<'a>(
        &'a mut self,
        context: Context,
        unit: &'a mut Unit,
        interest: &'a mut Interest,
    ) -> Tx<'a> {
        self.keyspace.now = context.now;
        Tx::new(&mut self.keyspace, unit, interest, &mut self.random, context)
    }

    /// Whether a key or a field of a hash is due.
    pub fn has_due(&self, now: UnixMillis) -> bool {
        let mut firsts = self.expiries().filter_map(Expiries::first);
        firsts.any(|(at, _)| at <= now.0)
    }

    /// Whether a key, or the first field of a hash, became due between two instants.
    pub fn has_due_since(&self, since: UnixMillis, now: UnixMillis) -> bool {
        self.expiries().any(|expiries| expiries.has_any(since.0, now.0))
    }

    fn expiries(&self) -> impl Iterator<Item = &Expiries> {
        self.keyspace.databases().flat_map(|(_, db)| [db.expiries(), db.field_expiries()])
    }

    /// Deletes up to `count` keys and fields of hashes that are due; returns whether more are.
    pub fn expire_due(
        &mut self,
        now: UnixMillis,
        count: usize,
        unit: &mut Unit,
        interest: &mut Interest,
    ) -> bool {
        let mut left = count;
        let mut databases = (0..self.keyspace.databases.len() as u32).map(DatabaseId);
        let has_more = databases.any(|id| {
            let context = Context::background(now, id);
            self.expire_keys(context, &mut left, unit, interest)
                || self.expire_fields(context, &mut left, unit, interest)
        });
        unit.feed.end_call();
        has_more
    }

    /// Deletes up to `left` keys of a database that are due; returns whether more are.
    fn expire_keys(
        &mut self,
        context: Context,
        left: &mut usize,
        unit: &mut Unit,
        interest: &mut Interest,
    ) -> bool {
        let (id, now) = (context.database, context.now.0);
        while let Some((at, hash)) = self.keyspace.database(id).expiries.first() {
            if at > now {
                break;
            }
            if *left == 0 {
                return true;
            }
            *left -= 1;
            let is_due = |at: Option<i64>| at.is_some_and(|at| at <= now);
            match self.key_where(id, hash, |entry| is_due(entry.expire_at())) {
                Some(key) => {
                    let mut tx = self.tx(context, unit, interest);
                    tx.drop_key(id, hash, &key, DeleteReason::Expired);
                }
                None => self.keyspace.database_mut(id).expiries.remove(at, hash),
            }
        }
        false
    }

    /// Invalidates remembered keys of CLIENT TRACKING until no more than `keys_max` remain, up to
    /// `at_once` of them; returns whether there are still too many. `keys_max` 0: there is no
    /// limit.
    pub fn limit_tracked(
        &mut self,
        keys_max: u64,
        at_once: usize,
        interest: &mut Interest,
    ) -> bool {
        let caches = &mut interest.caches;
        for _ in 0..at_once {
            if !caches.is_over(keys_max) {
                return false;
            }
            caches.forget_random_key(&mut self.random);
            self.keyspace.work.step();
        }
        caches.is_over(keys_max)
    }

    /// Deletes up to `left` fields of a database's hashes that are due; returns whether more are.
    fn expire_fields(
        &mut self,
        context: Context,
        left: &mut usize,
        unit: &mut Unit,
        interest: &mut Interest,
    ) -> bool {
        let (id, now) = (context.database, context.now.0);
        while let Some((at, hash)) = self.keyspace.database(id).field_expiries.first() {
            if at > now {
                break;
            }
            if *left == 0 {
                return true;
            }
            match self.fetch_due_fields(context, at, hash) {
                Ok(0) => {}
                Ok(fetched) => *left = left.saturating_sub(fetched * FETCHED_COST),
                // This life ends.
                Err(_) => return false,
            }
            // What was read for it may have used up what is left: one field goes all the same.
            let count = (*left).max(1);
            let dropped = match self.key_where(id, hash, |entry| next_expiry(entry) == Some(at)) {
                Some(key) => self.tx(context, unit, interest).drop_fields(id, hash, &key, count),
                None => {
                    self.keyspace.database_mut(id).field_expiries.remove(at, hash);
                    1
                }
            };
            if dropped == 0 {
                // Its value is lost.
                return false;
            }
            *left = left.saturating_sub(dropped);
        }
        false
    }

    /// If the hash that is due first is not in memory, it comes, and with it some of those behind
    /// it that are due as well; how many.
    fn fetch_due_fields(
        &mut self,
        context: Context,
        at: i64,
        hash: KeyHash,
    ) -> Result<usize, Refusal> {
        let database = self.keyspace.database(context.database);
        let cold_place = |at, hash| {
            let is_it = |entry: EntryRef<'_>| entry.is_cold() && next_expiry(entry) == Some(at);
            let entry = database.table.find_where(hash, is_it)?;
            place_of(entry).and_then(Place::from_bits).map(|place| (place, hash))
        };
        if database.cold_keys() == 0 || cold_place(at, hash).is_none() {
            return Ok(0);
        }
        let due = database.field_expiries.until(context.now.0).take(FETCHED_AT_ONCE);
        let cold: Vec<_> = due.filter_map(|(at, hash)| cold_place(at, hash)).collect();
        let count = cold.len();
        self.keyspace.fetch_together(cold).map(|()| count)
    }

    /// The key with this key hash whose entry `is_wanted`.
    fn key_where(
        &self,
        id: DatabaseId,
        hash: KeyHash,
        is_wanted: impl Fn(EntryRef<'_>) -> bool,
    ) -> Option<Vec<u8>> {
        let entry = self.keyspace.database(id).table.find_where(hash, is_wanted)?;
        Some(entry.key().to_vec())
    }

    fn delete_expired(&mut self, context: Context, unit: &mut Unit, interest: &mut Interest) {
        let mut inserted = 0;
        for (database, key, told_before) in std::mem::take(&mut unit.expired) {
            let hash = self.keyspace.hash(&key);
            let messages = interest.messages.len();
            self.tx(context, unit, interest).expire_some_if_due(database, hash, &key);
            // Its event belongs where the read met the key.
            let added = interest.messages.len() - messages;
            interest.messages[told_before + inserted..].rotate_right(added);
            inserted += added;
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::settings::Settings;
    use crate::testing::Bench;
    use crate::unit::Overdue;
    use base::UnixMillis;

    #[test]
    fn where_no_deletion_is_recorded_keys_go_by_the_clock_that_stands_still() {
        let mut bench = Bench::new();
        bench.run("SET k v");
        bench.run("PEXPIRE k 10");
        let began = bench.context.now.0;
        bench.context.now.0 += 20;
        bench.context.overdue = Overdue::Left;
        bench.context.stands_at = Some(UnixMillis(began + 9));
        for (request, reply) in
            [("GET k", "$1 v"), ("EXISTS k", ":1"), ("PTTL k", ":0"), ("TTL k", ":0")]
        {
            bench.check(request, reply);
            assert!(!bench.unit.rests_on_clock, "{request}");
        }
        bench.context.stands_at = Some(UnixMillis(began + 10));
        for (request, reply) in [("GET k", "$-1"), ("TTL k", ":-2"), ("KEYS *", "*0")] {
            bench.check(request, reply);
            assert!(bench.unit.rests_on_clock, "{request}");
            assert_eq!(bench.unit.changes, 0, "{request}");
        }
    }

    #[test]
    fn an_expired_key_is_told_of_before_it_is_missed() {
        let settings = Settings { notify_keyspace_events: u32::MAX, ..Settings::default() };
        let mut bench = Bench::with_settings(settings);
        bench.run("MSET a 1 b 2");
        for key in ["a", "b"] {
            bench.run(&format!("PEXPIRE {key} 10"));
        }
        bench.context.now.0 += 20;
        bench.check("EXISTS a none b", ":0");
        let expected = ["expired a", "keymiss a", "keymiss none", "expired b", "keymiss b"];
        assert_eq!(bench.events(), expected);
    }
}
