//! MIGRATE: keys move to another server, and the client waits for it while everybody else is
//! served (Redis documentation, MIGRATE).
//!
//! ```text
//! MIGRATE ─▶ connect ─▶ AUTH, SELECT ─▶ dump, watch ─▶ durable ─▶ RESTORE ─▶ +OK
//!                                           ▲ the next keys ─────────────────┘ │ all answered
//!            reply ◀─ durable ◀─ DEL of what was taken and did not change ◀────┘
//! ```
//! A key is always on one side at least: it is sent in a durable state, deleted only once the
//! target has taken it and if it is still what was sent, and the reply waits for the deletion like
//! any other. Whatever fails on the way leaves a key here, or on both sides.
//!
//! What has begun goes to its end although its client is gone, as in Redis, where a client is not
//! looked at before that. A process that ends on the way has deleted nothing.
//!
//! | file | holds |
//! |---|---|
//! | [`crate::command::migrate`] | the request |
//! | `events` | what the driver tells of the connections |
//! | `exchange` | the dialogue with the target ([`peers::restore`]), and what is withheld of it |
//! | `moving` | the keys under way: who changed them, who waits for them |

mod events;
mod exchange;
mod moving;

use crate::core::Broken;
use crate::core::Core;
use crate::core::verdict::Verdict;
use crate::session::Blocked;
use base::driver::{Endpoint, Sent};
use base::{ConnectionId, DatabaseId, Driver, MonotonicNanos};
use engine::dump::dump;
use engine::notify::Class;
use engine::refusal::Refusal;
use engine::unit::Context;
use exchange::Exchange;
use moving::{Guard, Moving};
use peers::idle::{Idle, IdleConnections};
use peers::outgoing::Outgoing;
use peers::restore::Dumped;
pub(crate) use peers::restore::{Login, Target};
use std::collections::BTreeMap;

const CONNECTING: Refusal = Refusal::of("IOERR error or timeout connecting to the client");
const WRITING: Refusal = Refusal::of("IOERR error or timeout writing to target instance");
const READING: Refusal = Refusal::of("IOERR error or timeout reading from target instance");
const CHANGED: Refusal = Refusal::of(
    "ERR a key was changed while it was sent: it was not deleted here, and the target may hold it \
     as it was before",
);

/// What a request asks for.
pub(crate) struct Order {
    pub target: Target,
    /// The target's database, as it was given: the target judges it.
    pub into: i64,
    /// Time without progress after which the migration fails.
    pub timeout_nanos: u64,
    /// The keys stay here too.
    pub copies: bool,
    pub replaces: bool,
}

/// How far a migration is.
enum Stage {
    /// It has no connection that stands.
    Begun,
    Talking,
    /// Nothing more is said or heard. What is still to be answered, if not OK.
    Over(Option<Refusal>),
}

/// A key on its way.
struct Key {
    name: Vec<u8>,
    /// Since it was sent, if it is to be deleted.
    guard: Option<Guard>,
    /// The target has it.
    is_taken: bool,
}

/// One request under way.
pub(crate) struct Migration {
    /// Whom to answer, if it still waits for this.
    client: ConnectionId,
    database: DatabaseId,
    order: Order,
    stage: Stage,
    /// The connection to the target, which is waited for since it last came further. What is said
    /// on it lies in the exchange: it may leave only while the lease holds.
    line: Outgoing,
    /// The connection has served another migration.
    is_reused: bool,
    exchange: Exchange,
    keys: Vec<Key>,
    /// How many of the keys were sent, or found to be gone.
    sent: usize,
}

/// All migrations.
#[derive(Default)]
pub(crate) struct Migrations {
    running: BTreeMap<u64, Migration>,
    begun: u64,
    moving: Moving,
    idle: IdleConnections,
    /// Something happened that a migration may have waited for.
    pub(crate) is_due: bool,
}

impl Migrations {
    /// Whether keys are on their way, or somebody waits for that.
    pub fn are_under_way(&self) -> bool {
        !self.running.is_empty()
    }

    /// Connections kept for the next migration.
    pub fn idle_connections(&self) -> usize {
        self.idle.connections().len()
    }

    /// Every connection to a target.
    pub fn connections(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        let running = self.running.values().filter_map(|migration| migration.line.connection());
        running.chain(self.idle.connections())
    }

    /// How long until a migration wants to do something by itself; `None`: as long as you like.
    pub fn wait_nanos(&self, now: MonotonicNanos) -> Option<u64> {
        let running = self.running.values();
        let soonest = running.filter_map(|migration| migration.nanos_left(now)).min();
        if self.is_due && !self.running.is_empty() { Some(0) } else { soonest }
    }

    fn is_full(&self, core: &Core) -> bool {
        self.running.len() >= core.process.options.limits.migrations_max
    }

    fn of(&mut self, connection: ConnectionId) -> Option<(u64, Migration)> {
        let is_its =
            |(_, migration): &(&u64, &Migration)| migration.line.connection() == Some(connection);
        let id = *self.running.iter().find(is_its)?.0;
        self.running.remove(&id).map(|migration| (id, migration))
    }
}

impl Migration {
    fn is_over(&self) -> bool {
        matches!(self.stage, Stage::Over(_))
    }

    /// Time that the target still has; `None`: it is not waited for.
    fn nanos_left(&self, now: MonotonicNanos) -> Option<u64> {
        let is_waited_for = match self.stage {
            Stage::Begun => self.line.is_dialing(),
            Stage::Talking => self.exchange.owes(),
            Stage::Over(_) => false,
        };
        let waited = self.line.waited_nanos(now);
        is_waited_for.then(|| self.order.timeout_nanos.saturating_sub(waited))
    }

    /// What has failed, if something fails now.
    fn failure(&self) -> Refusal {
        match self.stage {
            Stage::Begun => CONNECTING,
            _ if self.exchange.output.sendable_bytes() == 0 => READING,
            _ => WRITING,
        }
    }

    fn hang_up(&mut self, driver: &mut dyn Driver) {
        if let Some(connection) = self.line.hang_up() {
            driver.close(connection);
        }
    }

    /// Ends with what the target refused first, or else with this.
    fn end(&mut self, refusal: Option<Refusal>) {
        let refused = self.exchange.dialogue.refusal.take();
        let refused = refused
            .map(|error| Refusal::new(format!("ERR Target instance replied with error: {error}")));
        self.stage = Stage::Over(refused.or(refusal));
    }
}

impl Migrations {
    /// Begins to move keys that are there; the session waits.
    pub(crate) fn begin(
        &mut self,
        core: &mut Core,
        client: ConnectionId,
        order: Order,
        keys: Vec<Vec<u8>>,
    ) {
        for key in keys.iter().filter(|_| !order.copies) {
            self.moving.add(key);
        }
        let keys = keys.into_iter().map(|name| Key { name, guard: None, is_taken: false });
        let migration = Migration {
            client,
            database: core.clients.at(client).database,
            order,
            stage: Stage::Begun,
            line: Outgoing::default(),
            is_reused: false,
            exchange: Exchange::default(),
            keys: keys.collect(),
            sent: 0,
        };
        self.begun += 1;
        self.running.insert(self.begun, migration);
        self.is_due = true;
        core.block(client, Blocked::Migration(self.begun));
    }

    /// Brings all migrations further, each by a bounded piece.
    pub(crate) fn advance(&mut self, core: &mut Core, driver: &mut dyn Driver) {
        for connection in self.idle.take_old(core.turn.monotonic) {
            driver.close(connection);
        }
        self.is_due = false;
        let mut bytes_left = core.process.options.limits.migration_turn_bytes_max;
        let mut has_ended = false;
        for id in self.running.keys().copied().collect::<Vec<_>>() {
            let Some(mut migration) = self.running.remove(&id) else { continue };
            self.advance_one(core, driver, &mut migration, &mut bytes_left);
            if migration.is_over() && self.conclude(core, driver, id, &mut migration) {
                has_ended = true;
            } else {
                self.running.insert(id, migration);
            }
        }
        if has_ended {
            self.resume_after_migration(core);
        }
    }

    fn advance_one(
        &mut self,
        core: &mut Core,
        driver: &mut dyn Driver,
        migration: &mut Migration,
        bytes_left: &mut usize,
    ) {
        if migration.is_over() {
            return;
        }
        if let Some(refusal) = self.refuses_to_move(core) {
            migration.end(Some(refusal));
            return;
        }
        match migration.nanos_left(core.turn.monotonic) {
            None => migration.line.wait_from(core.turn.monotonic),
            Some(0) => {
                let failure = migration.failure();
                migration.end(Some(failure));
                return;
            }
            Some(_) => {}
        }
        if matches!(migration.stage, Stage::Begun) && migration.line.is_apart() {
            self.connect(core, driver, migration);
        }
        if let Stage::Talking = migration.stage {
            self.dump_keys(core, migration, bytes_left);
            self.flush(core, driver, migration);
            let is_told = migration.sent == migration.keys.len();
            let is_open = migration.exchange.dialogue.is_open();
            if migration.exchange.dialogue.is_answered() && (is_told || !is_open) {
                migration.end(None);
            }
        }
    }

    /// Why no key of this server is its own to move, if none is any more.
    fn refuses_to_move(&self, core: &Core) -> Option<Refusal> {
        let follows = core.is_replica() && core.process.settings.replica_read_only;
        follows.then_some(crate::core::verdict::READ_ONLY)
    }

    /// Takes a connection that is kept, or asks for one.
    fn connect(&mut self, core: &mut Core, driver: &mut dyn Driver, migration: &mut Migration) {
        let (target, now) = (&migration.order.target, core.turn.monotonic);
        if let Some(idle) = self.idle.take(target) {
            migration.line = Outgoing::over(idle.connection, now);
            migration.is_reused = true;
            migration.exchange = Exchange::new(idle.selected);
            migration.exchange.open(&migration.order);
            migration.stage = Stage::Talking;
        } else if let Some(port) = target.port {
            let endpoint = Endpoint::tcp(target.host.as_str(), port);
            let is_encrypted = core.process.settings.tls_cluster;
            migration.line.dial(driver, &endpoint.encrypted(is_encrypted), now);
        } else {
            migration.end(Some(CONNECTING));
        }
    }

    /// Sends the next keys, as far as there is room.
    fn dump_keys(&mut self, core: &mut Core, migration: &mut Migration, bytes_left: &mut usize) {
        let context = core.background(migration.database);
        while migration.exchange.dialogue.is_open() && migration.sent < migration.keys.len() {
            let pending = migration.exchange.output.pending_bytes();
            if pending >= core.process.options.limits.migration_output_bytes_max {
                return;
            }
            if *bytes_left == 0 {
                self.is_due = true;
                return;
            }
            let index = migration.sent;
            migration.sent += 1;
            let name = &migration.keys[index].name;
            core.shard.unit.clear();
            let found =
                core.shard.engine.look(context, &mut core.shard.unit, &mut core.interest, |view| {
                    let entry = view.peek(name)?;
                    let whole = view.keyspace().with_value(entry).ok()?;
                    Some((dump(whole.as_ref().value(), view.work()), entry.expire_at()))
                });
            let observed = core.settle_unit();
            core.spread(observed, None);
            if core.shard.engine.keyspace.has_lost_value() {
                // This life ends, and its migrations with it.
                return;
            }
            let Some((payload, expire_at)) = found else { continue };
            let dumped = Dumped {
                index,
                key: name,
                ttl_millis: expire_at.map_or(0, |at| (at - core.turn.now.0).max(1)),
                payload: &payload,
                replaces: migration.order.replaces,
            };
            let durable = core.shard.tracker.durable();
            migration.exchange.restore(&dumped, observed, durable);
            if !migration.order.copies {
                let guard = self.guard(core, migration.database, name, expire_at);
                migration.keys[index].guard = Some(guard);
            }
            let added = migration.exchange.output.pending_bytes() - pending;
            *bytes_left = bytes_left.saturating_sub(added);
        }
    }

    /// Sends what may leave.
    fn flush(&mut self, core: &mut Core, driver: &mut dyn Driver, migration: &mut Migration) {
        let Migration { line, exchange, .. } = migration;
        let output = &mut exchange.output;
        output.release(core.shard.tracker.durable());
        while line.takes_bytes() && output.sendable_bytes() > 0 {
            if core.leadership.has_lapsed() && core.broken != Some(Broken::MigratesWithoutLease) {
                // The turn has taken long, and somebody else may lead by now. What that one has
                // sent of this key since would be replaced by what was here before.
                self.is_due = true;
                return;
            }
            let sent = output.offer(output.sendable_bytes(), |buffer, range| {
                line.send(driver, &buffer[range]).map_or(Sent::Closed, Sent::Bytes)
            });
            if sent == Sent::Closed {
                self.lose_target(core, driver, migration);
                return;
            }
            line.wait_from(core.turn.monotonic);
        }
        let has_room =
            output.pending_bytes() < core.process.options.limits.migration_output_bytes_max;
        let has_more =
            migration.sent < migration.keys.len() && migration.exchange.dialogue.is_open();
        self.is_due |= has_room && has_more;
    }

    /// The connection is no more. One that was kept may have been closed long ago: if nothing was
    /// answered on it, a new one is tried, once, as Redis does.
    fn lose_target(&mut self, core: &mut Core, driver: &mut dyn Driver, migration: &mut Migration) {
        migration.hang_up(driver);
        if !migration.is_reused || migration.exchange.dialogue.has_heard {
            let failure = migration.failure();
            migration.end(Some(failure));
            return;
        }
        for index in 0..migration.keys.len() {
            self.unguard_key(core, migration, index);
        }
        migration.exchange = Exchange::default();
        migration.sent = 0;
        migration.is_reused = false;
        migration.stage = Stage::Begun;
        self.is_due = true;
    }

    /// Ends the watch on a key; whether it is what was sent.
    fn unguard_key(&mut self, core: &mut Core, migration: &mut Migration, index: usize) -> bool {
        let key = &mut migration.keys[index];
        let guard = key.guard.take();
        guard.is_some_and(|guard| self.unguard(core, migration.database, &key.name, &guard))
    }

    /// Deletes what the target has taken, and answers. Whether that could be done now.
    fn conclude(
        &mut self,
        core: &mut Core,
        driver: &mut dyn Driver,
        id: u64,
        migration: &mut Migration,
    ) -> bool {
        let Stage::Over(refusal) = &migration.stage else { return false };
        let mut refusal = refusal.clone();
        let deletes = migration.keys.iter().any(|key| key.is_taken) && !migration.order.copies;
        let mut stays = self.refuses_to_move(core);
        if deletes && stays.is_none() {
            // The data set stands still, or the log takes nothing now.
            if core.pause.paused().is_some() {
                return false;
            }
            match core.judge_log(true) {
                Verdict::Later => return false,
                Verdict::Refuse(why) => stays = Some(why),
                Verdict::Run => {}
            }
        }
        let mut leaving = Vec::new();
        for index in 0..migration.keys.len() {
            let is_same = self.unguard_key(core, migration, index);
            let key = &mut migration.keys[index];
            let name = std::mem::take(&mut key.name);
            if !migration.order.copies {
                self.moving.remove(&name);
            }
            if !key.is_taken || !deletes {
                continue;
            }
            if is_same {
                leaving.push(name);
            } else {
                refusal = refusal.or(Some(CHANGED));
            }
        }
        if let Some(why) = stays.filter(|_| deletes) {
            leaving.clear();
            refusal = refusal.or(Some(why));
        }
        self.delete_moved(core, migration.database, &leaving);
        self.answer(core, id, migration, refusal);
        core.spread(core.shard.newest_executed(), None);
        self.part_from_target(core, driver, migration);
        true
    }

    /// Deletes keys that are elsewhere now, as one unit.
    fn delete_moved(&mut self, core: &mut Core, database: DatabaseId, keys: &[Vec<u8>]) {
        core.shard.unit.clear();
        let context = Context::background(core.turn.now, database);
        core.shard.engine.act(context, &mut core.shard.unit, &mut core.interest, |tx| {
            for key in keys {
                // A key may be named twice.
                if tx.delete(key) {
                    tx.notify(Class::Generic, "del", key);
                }
            }
        });
        core.settle_unit();
    }

    /// Tells the client how it ended, once everything that reveals is durable.
    fn answer(
        &mut self,
        core: &mut Core,
        id: u64,
        migration: &Migration,
        refusal: Option<Refusal>,
    ) {
        let connection = migration.client;
        let session = core.clients.sessions.get(connection);
        let waits = session.and_then(|session| session.blocked.as_ref());
        if !matches!(waits, Some(Blocked::Migration(it)) if *it == id) {
            return;
        }
        core.unblock(connection);
        let written = core.clients.at(connection).output.end();
        match refusal {
            Some(refusal) => core.refuse(connection, written, &refusal),
            None => core.clients.reply(connection).ok(),
        }
        let observed = core.shard.newest_executed();
        core.note_wrote(connection, observed);
        core.finish_reply(connection, written, observed);
        core.enqueue(connection);
    }

    /// Keeps the connection if another migration could use it.
    fn part_from_target(
        &mut self,
        core: &Core,
        driver: &mut dyn Driver,
        migration: &mut Migration,
    ) {
        let is_reusable =
            migration.exchange.dialogue.is_reusable() && migration.line.input.is_empty();
        let Some(connection) = migration.line.hang_up() else { return };
        if !is_reusable {
            driver.close(connection);
            return;
        }
        let target = migration.order.target.clone();
        let selected = migration.exchange.dialogue.selected;
        let idle = Idle { connection, target, selected, since: core.turn.monotonic };
        if let Some(gone) = self.idle.keep(idle) {
            driver.close(gone);
        }
    }
}
