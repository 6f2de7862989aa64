//! Keys under way to another server, and the requests that wait for them.
//!
//! Redis stands still while it migrates, so a key that was sent is the key that is deleted. Here
//! everybody else is served meanwhile, and two things take the place of standing still:
//!
//! 1. *A key that changed is not deleted.* Each key is watched, as WATCH does it, from the moment
//!    its value is taken. Nothing gets past that, whoever changes it, so nothing is ever lost.
//! 2. *Who would change it waits*, as for Redis itself, until the migration has ended: else a key
//!    that is written all the time could never be moved. Only requests that name the key wait, and
//!    those that write without naming any. What changes it otherwise (an eviction, a blocked
//!    client's BLMOVE that another key serves) is what the first rule is for.
//!
//! The second rule need not be exact. A name counts in every database, because a transaction may
//! select another. RESTORE never waits: it may be this very migration, arriving where it left.

use super::Migrations;
use crate::core::Core;
use base::{ConnectionId, DatabaseId, MonotonicNanos};
use catalog::{Demand, Registered};
use engine::command::{Args, Flags};
use engine::ids::WatcherId;
use std::collections::{BTreeMap, VecDeque};

/// The keys under way.
#[derive(Default)]
pub(super) struct Moving {
    /// How many migrations have a key of this name.
    names: BTreeMap<Vec<u8>, usize>,
    /// Sessions whose requests wait, in the order in which they came.
    waiting: VecDeque<ConnectionId>,
}

/// Watches a key that was sent.
pub(super) struct Guard {
    watcher: WatcherId,
    /// When the time of the key comes: that it goes then is no change, it goes there too.
    pub expire_at: Option<i64>,
}

impl Moving {
    pub fn add(&mut self, name: &[u8]) {
        *self.names.entry(name.to_vec()).or_default() += 1;
    }

    pub fn remove(&mut self, name: &[u8]) {
        if let Some(count) = self.names.get_mut(name) {
            *count -= 1;
            if *count == 0 {
                self.names.remove(name);
            }
        }
    }

    fn has(&self, name: &[u8]) -> bool {
        self.names.contains_key(name)
    }
}

impl Migrations {
    /// Watches a key from now on.
    pub(super) fn guard(
        &mut self,
        core: &mut Core,
        database: DatabaseId,
        key: &[u8],
        expire_at: Option<i64>,
    ) -> Guard {
        let watcher = core.guards.add();
        core.interest.watchers.watch(watcher, database, key, false);
        Guard { watcher, expire_at }
    }

    /// Watches a key no longer; whether it is what it was.
    pub(super) fn unguard(
        &mut self,
        core: &mut Core,
        database: DatabaseId,
        key: &[u8],
        guard: &Guard,
    ) -> bool {
        core.interest.watchers.unwatch(guard.watcher, database, key);
        let is_changed = core.guards.remove(guard.watcher);
        let has_expired = guard.expire_at.is_some_and(|at| at <= core.turn.now.0);
        is_changed == Some(false)
            || has_expired && !core.shard.engine.keyspace.exists(database, key)
    }

    /// Whether no MIGRATE is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.running.is_empty()
    }

    /// Whether a request must wait until a migration has ended.
    pub(crate) fn must_wait(
        &self,
        core: &Core,
        client: ConnectionId,
        command: &Registered,
        args: Args<'_>,
    ) -> bool {
        // What comes from the master was executed there.
        if self.is_idle() || core.clients.at(client).is_master() {
            return false;
        }
        let queued =
            core.clients.at(client).transaction.iter().flat_map(|transaction| transaction.queued());
        self.changes_moving(command, args)
            || command.flags.contains(Flags::EXECUTES_QUEUE)
                && queued.into_iter().any(|request| {
                    self.changes_moving(
                        core.process.catalog.command(request.command),
                        request.args(),
                    )
                })
            || command.flags.contains(Flags::AWAITS_SERVER) && self.is_full(core)
    }

    /// Whether a request may change a key that is under way.
    fn changes_moving(&self, command: &Registered, args: Args<'_>) -> bool {
        let may_write = command.may_write() || command.demand.has(Demand::CALM_LOG);
        if !may_write || command.flags.contains(Flags::RESTORES) {
            return false;
        }
        let moving = &self.moving;
        let (mut is_moving, mut has_keys) = (false, false);
        command.for_each_key(args, |key, _| {
            has_keys = true;
            is_moving = is_moving || moving.has(args.at(key));
        });
        is_moving || !has_keys && !moving.names.is_empty() && command.flags.contains(Flags::WRITE)
    }

    /// A client's request waits for the end of a migration, without limit.
    pub(crate) fn add_waiting(&mut self, client: ConnectionId) -> Option<MonotonicNanos> {
        self.moving.waiting.push_back(client);
        None
    }

    /// A migration has ended: lets the requests go on that waited, in the order in which they came.
    /// Those that still must wait come to stand in that order again.
    pub(super) fn resume_after_migration(&mut self, core: &mut Core) {
        core.clients.resuming.append(&mut self.moving.waiting);
    }
}
