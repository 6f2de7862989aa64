//! The tier as the core has it: opened, values that requests need and that are not in memory, and
//! room made by moving some there.

use super::{Core, Process};
use crate::session::OwnedRequest;
use base::{ConnectionId, DatabaseId};
use catalog::{CommandId, Registered};
use config::settings::tier::TierSettings;
use engine::cold::{ColdLimits, ColdStore, ColdValue};
use engine::command::{Args, Flags, KeyUse, Outcome, database_argument};
use engine::eviction::Room;
use engine::ids::KeyHash;
use engine::refusal::Refusal;
use engine::unit::Context;
use shard::Shard;
use shard::tiering::{Made, Need, RoomFor, TierOrder, Tiering, TieringLimits, WANTED_BYTES};
use std::collections::BTreeSet;

/// The part of `maxmemory` that values may take which requests wait for.
const PINNED_SHARE: u64 = 4;

/// When to look again whether there is room in memory, for requests, for records that were read or
/// for a master's data set, in nanoseconds.
pub(crate) const ROOM_NANOS: u64 = 1_000_000;

/// Values that requests of one pipeline need that have not run yet.
#[derive(Default)]
pub(crate) struct Ahead {
    /// All of them, and the bytes of those that were asked for.
    values: usize,
    bytes: usize,
}

/// Bytes of memory that a value takes which a request waits for.
pub(crate) fn needed_bytes(value: ColdValue) -> usize {
    value.bytes + WANTED_BYTES
}

impl Process {
    /// The file of values that memory has no room for, if `tier` names where it lies.
    ///
    /// # Errors
    /// It cannot be made, or there is no room for it.
    pub fn open_tier(&self) -> Result<Option<Tiering>, String> {
        self.open_tier_of(&self.settings.tier)
    }

    /// As [`Self::open_tier`], for settings that need not be in force yet.
    ///
    /// # Errors
    /// It cannot be made, or there is no room for it.
    pub(crate) fn open_tier_of(&self, settings: &TierSettings) -> Result<Option<Tiering>, String> {
        let Some(path) = &settings.path else { return Ok(None) };
        let opened = self.options.tier.open(&TierOrder {
            path,
            bytes_max: settings.bytes_max,
            readers: settings.read_threads,
            by_ring: settings.takes_io_uring,
        });
        let files =
            opened.map_err(|error| format!("tier: {} cannot be used: {error}", path.display()))?;
        let limits = TieringLimits {
            cold: self.cold_limits(settings),
            reads_max: self.options.limits.tiering.reads_max.max(settings.read_threads),
            ..self.options.limits.tiering
        };
        tracing::info!(
            path = %path.display(),
            bytes = settings.bytes_max,
            "values that memory has no room for go to the tier"
        );
        Ok(Some(Tiering::new(files, limits, settings.bytes_max)))
    }

    /// Which values may leave memory.
    pub(crate) fn cold_limits(&self, settings: &TierSettings) -> ColdLimits {
        let TieringLimits { tier, cold, .. } = self.options.limits.tiering;
        ColdLimits {
            value_bytes_min: settings.value_bytes_min as usize,
            // What fits into no record would be encoded in vain, again and again.
            value_bytes_max: (settings.value_bytes_max as usize).min(tier.record_bytes_max),
            freed_bytes_min: if settings.is_all_cold { 0 } else { cold.freed_bytes_min },
            ..cold
        }
    }
}

/// The outcome of making room, for a request that needs it; `None` as of [`Core::spill`].
fn room_of(made: Made) -> Option<Room> {
    match made {
        Made::Done => None,
        Made::Behind => Some(Room::Behind),
        Made::More => Some(Room::More),
    }
}

impl Core {
    /// Whether there may be values that are not in memory.
    #[inline]
    pub(crate) fn has_cold(&self) -> bool {
        self.shard.engine.keyspace.cold().is_some()
    }

    /// Calls back with each key of a request whose value it needs.
    fn for_each_needed(command: &Registered, args: Args<'_>, mut each: impl FnMut(&[u8])) {
        Self::for_each_needed_use(command, args, |key, _| each(key));
    }

    /// As [`Self::for_each_needed`], with what becomes of the key.
    fn for_each_needed_use(
        command: &Registered,
        args: Args<'_>,
        mut each: impl FnMut(&[u8], KeyUse),
    ) {
        if command.flags.contains(Flags::NEEDS_NO_VALUE) {
            return;
        }
        command.for_each_key(args, |index, uses| {
            if uses.needs_value()
                && let Some(key) = args.get(index)
            {
                each(key, uses);
            }
        });
        if let Some(key) = command.lone_key_of(args) {
            each(args.at(key), KeyUse::NONE);
        }
    }

    /// Unix time in milliseconds by which keys have expired for everybody but a master.
    fn hidden_by(&self) -> i64 {
        let (_, stands_at) = self.expiry();
        stands_at.unwrap_or_else(|| self.shard_time()).0
    }

    /// Whether a request of a client in this database needs a value that is not in memory.
    fn has_cold_in(&self, database: DatabaseId, command: &Registered, args: Args<'_>) -> bool {
        let keyspace = &self.shard.engine.keyspace;
        let mut is_any = false;
        Self::for_each_needed(command, args, |key| {
            keyspace.work.step();
            is_any = is_any || keyspace.cold_value(database, key, || self.hidden_by()).is_some();
        });
        is_any
    }

    /// As [`Self::needs_cold`], for an ordinary request that passes the gate by what was found of
    /// the one before it.
    #[inline]
    pub(crate) fn has_cold_key(
        &self,
        client: ConnectionId,
        command: &Registered,
        args: Args<'_>,
    ) -> bool {
        self.has_cold() && self.has_cold_in(self.clients.at(client).database, command, args)
    }

    /// Whether a request must wait for values that are not in memory. EXEC waits for those of its
    /// queue. A master's requests do not wait: what they need is read as they run.
    pub(crate) fn needs_cold(
        &self,
        client: ConnectionId,
        command: &Registered,
        args: Args<'_>,
    ) -> bool {
        if !self.has_cold() || self.clients.at(client).is_master() {
            return false;
        }
        let mut needs = false;
        self.for_each_request(client, command, args, |database, command, args| {
            needs = needs || self.has_cold_in(database, command, args);
        });
        needs
    }

    /// Whether the values that a request needs, and that are not in memory, are more than may be
    /// pinned at all: they could only come by pushing everything else out.
    pub(crate) fn needs_too_much(
        &self,
        client: ConnectionId,
        command: &Registered,
        args: Args<'_>,
    ) -> bool {
        let keyspace = &self.shard.engine.keyspace;
        let mut values = BTreeSet::new();
        self.for_each_request(client, command, args, |database, command, args| {
            Self::for_each_needed(command, args, |key| {
                keyspace.work.step();
                values.extend(keyspace.cold_value(database, key, || self.hidden_by()));
            });
        });
        values.into_iter().map(needed_bytes).sum::<usize>() > self.pinned_bytes_max()
    }

    /// Bytes of values that may be pinned at a time, by [`needed_bytes`].
    pub(crate) fn pinned_bytes_max(&self) -> usize {
        match self.shard.engine.keyspace.settings.maxmemory {
            0 => usize::MAX,
            maxmemory => {
                let least = self.process.options.limits.tiering.pinned_bytes_min;
                ((maxmemory / PINNED_SHARE) as usize).max(least)
            }
        }
    }

    /// Calls back with a request, or with each of the queue that it executes, and the database that
    /// it is about.
    fn for_each_request(
        &self,
        client: ConnectionId,
        command: &Registered,
        args: Args<'_>,
        mut each: impl FnMut(DatabaseId, &Registered, Args<'_>),
    ) {
        let session = self.clients.at(client);
        let queue = session.transaction.as_ref();
        let Some(queue) = queue.filter(|_| command.flags.contains(Flags::EXECUTES_QUEUE)) else {
            return each(session.database, command, args);
        };
        let mut database = session.database;
        for request in queue.queued() {
            let command = self.process.catalog.command(request.command);
            if command.flags.contains(Flags::SELECTS_DATABASE) {
                // One that is refused changes nothing.
                let databases = self.shard.engine.keyspace.settings.databases;
                let selected = database_argument(request.args().at(1), databases);
                database = selected.unwrap_or(database);
            }
            each(database, command, request.args());
        }
    }

    /// The keys whose values a request needs: their hashes, and the values that are not in memory.
    pub(crate) fn needed_of(
        &self,
        client: ConnectionId,
        request: &OwnedRequest,
    ) -> (Vec<KeyHash>, Vec<(KeyHash, ColdValue)>) {
        let keyspace = &self.shard.engine.keyspace;
        let (mut hashes, mut cold) = (Vec::new(), Vec::new());
        let command = self.process.catalog.command(request.command);
        self.for_each_request(client, command, request.args(), |database, command, args| {
            Self::for_each_needed(command, args, |key| {
                keyspace.work.step();
                let hash = keyspace.hash(key);
                hashes.push(hash);
                if let Some(value) = keyspace.cold_value(database, key, || self.hidden_by()) {
                    cold.push((hash, value));
                }
            });
        });
        cold.sort_unstable();
        cold.dedup();
        (hashes, cold)
    }

    /// Moves values out of memory, if there is a tier and `maxmemory` is exceeded; what came of it.
    /// `None`: nothing can go, or need go, and what else may be done is another matter.
    pub(crate) fn spill(&mut self) -> Option<Room> {
        let beside = self.client_bytes();
        let Shard { engine, tiering, .. } = &mut self.shard;
        let made = tiering.as_mut()?.make_room(&mut engine.keyspace, beside, self.turn.now);
        room_of(made)
    }

    /// As [`Self::spill`], but a part of it ([`Tiering::make_part_of_room`]).
    pub(crate) fn spill_part(&mut self, room_for: RoomFor) -> Option<Room> {
        let beside = self.client_bytes();
        let Shard { engine, tiering, .. } = &mut self.shard;
        let (keyspace, now) = (&mut engine.keyspace, self.turn.now);
        room_of(tiering.as_mut()?.make_part_of_room(keyspace, beside, room_for, now))
    }

    /// True if a request goes on though values leave memory no faster ([`Tiering::lets_pass`]).
    pub(crate) fn passes_for_room(&mut self) -> bool {
        let beside = self.client_bytes();
        let Shard { engine, tiering, .. } = &mut self.shard;
        tiering.as_mut().is_some_and(|it| it.lets_pass(&engine.keyspace, beside))
    }

    /// Whether a long value on its way out of memory can go on in the next turn.
    pub(crate) fn encodes_next_turn(&self) -> bool {
        let cold = self.shard.engine.keyspace.cold();
        cold.is_some_and(ColdStore::encodes_next_turn)
    }

    /// Has the values come that an ordinary request will need, as far as they are not in memory,
    /// beside so many that earlier ones of its pipeline need. Nobody waits for them yet.
    pub(crate) fn fetch_ahead(
        &mut self,
        client: ConnectionId,
        id: CommandId,
        args: Args<'_>,
        ahead: &mut Ahead,
    ) {
        let database = self.clients.at(client).database;
        let command = self.process.catalog.command(id);
        let hidden_by = self.hidden_by();
        let Shard { engine, tiering, .. } = &mut self.shard;
        let Some(tiering) = tiering else { return };
        // What needs many values has them come once it was judged, beside others.
        Self::for_each_needed(command, args, |_| ahead.values += 1);
        if tiering.need_of(ahead.values, ahead.bytes) == Need::Many {
            return;
        }
        Self::for_each_needed(command, args, |key| {
            let keyspace = &mut engine.keyspace;
            if let Some(value) = keyspace.cold_value(database, key, || hidden_by)
                && tiering.need_of(ahead.values, ahead.bytes + value.bytes) == Need::Few
            {
                ahead.bytes += value.bytes;
                tiering.fetch(keyspace, keyspace.hash(key), value, Need::Few);
            }
        });
    }

    /// True if the request that is judged now has pins.
    pub(crate) fn has_own_pins(&self) -> bool {
        self.shard.engine.keyspace.cold().is_some_and(ColdStore::has_own_pins)
    }

    /// The request that is judged now has so many pins.
    pub(crate) fn set_own_pins(&mut self, count: usize) {
        if let Some(cold) = self.shard.engine.keyspace.cold_mut() {
            cold.set_own_pins(count);
        }
    }

    /// Ends pins.
    pub(crate) fn unpin(&mut self, hashes: &[KeyHash]) {
        if let Some(cold) = self.shard.engine.keyspace.cold_mut() {
            hashes.iter().for_each(|hash| cold.unpin(*hash));
        }
    }

    /// Has the values that a call needs in memory, where nobody could wait for them: amid a
    /// transaction or a script, which may have changed the keys that it uses, for a client that is
    /// served amid another one's unit, for a master.
    ///
    /// # Errors
    /// A value is lost, which is noted and ends this life: the call must not run without it. Or the
    /// values take more memory than requests may have, which are not from a master.
    pub(crate) fn fetch_now_for(
        &mut self,
        client: ConnectionId,
        command: &Registered,
        args: Args<'_>,
        context: Context,
    ) -> Outcome {
        let session = self.clients.at(client);
        let waits =
            !(context.retry || session.is_in_exec || session.is_in_script || session.is_master());
        if waits {
            return Ok(());
        }
        if !self.has_cold() {
            return Ok(());
        }
        let database = session.database;
        let bytes_max = if session.is_master() { usize::MAX } else { self.pinned_bytes_max() };
        // By the time that the call itself goes by: a master's takes no key for expired.
        let (keys, bytes) = self.needed_now(database, command, args, context);
        if keys.is_empty() {
            return Ok(());
        }
        if bytes > bytes_max {
            return Err(Refusal::OUT_OF_MEMORY);
        }
        // What calls before this one brought in may go, or a long script would bring in all.
        let beside = self.client_bytes();
        let Shard { engine, tiering, .. } = &mut self.shard;
        if let Some(tiering) = tiering {
            tiering.make_room_now(&mut engine.keyspace, beside, bytes as u64, self.turn.now);
        }
        // Some that were there may have gone for it.
        let (keys, _) = self.needed_now(database, command, args, context);
        let keyspace = &mut self.shard.engine.keyspace;
        keys.iter().try_for_each(|key| keyspace.fetch_now(database, key))
    }

    /// Keys whose values a call needs that are not in memory, and the bytes that these may take.
    fn needed_now(
        &self,
        database: DatabaseId,
        command: &Registered,
        args: Args<'_>,
        context: Context,
    ) -> (BTreeSet<Vec<u8>>, usize) {
        let hidden_by = context.hidden_by();
        let woken_by = self.shard.unit.woken_by.as_deref().filter(|_| context.retry);
        let keyspace = &self.shard.engine.keyspace;
        let (mut keys, mut bytes) = (BTreeSet::new(), 0);
        Self::for_each_needed_use(command, args, |key, uses| {
            // Of those that it waited for, a client that is woken looks at no other one.
            let is_awaited = uses.intersects(KeyUse::ACCESS);
            let is_seen = !is_awaited || woken_by.is_none_or(|woken| woken == key);
            if let Some(value) = keyspace.cold_value(database, key, || hidden_by)
                && is_seen
                && keys.insert(key.to_vec())
            {
                bytes += needed_bytes(value);
            }
        });
        (keys, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::standard;

    #[test]
    fn a_key_that_pfmerge_alone_names_is_needed() {
        let (catalog, _) = standard();
        let needed = |line: &[&str]| {
            let (mut bytes, mut ranges, mut keys) = (Vec::new(), Vec::new(), Vec::new());
            for word in line {
                ranges.push((bytes.len() as u32, word.len() as u32));
                bytes.extend_from_slice(word.as_bytes());
            }
            let command = catalog.find(line[0].as_bytes(), None).expect("there is such a command");
            let args = Args::new(&bytes, &ranges);
            Core::for_each_needed(command, args, |key| keys.push(key.to_vec()));
            keys
        };
        assert_eq!(needed(&["PFMERGE", "a"]), [b"a"]);
        assert_eq!(needed(&["PFMERGE", "a", "b"]), [b"a", b"b"]);
    }
}
