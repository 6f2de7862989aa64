//! REPLICAOF: which master the shard follows, changed by the command and looked up by everything
//! that a replica does differently ([`Core::master`]).
//!
//! It is the shard's state and no process's ([`engine::master`]), kept in the log. Every process
//! reads it there; the one that leads dials the master, so that a failover goes on following. What
//! a configuration says counts once, for a shard without data of which nothing was ever said:
//! otherwise a process that led long ago would take a master's data in place of what others have
//! written since.

use super::{Link, Master, Phase};
use crate::core::Core;
use base::DatabaseId;
use engine::effect::Effect;
use engine::master::ReplicaOf;
use txlog::Gate;

impl Link {
    /// Follows what the configuration of this process says whenever it leads, so that a test can
    /// prove that it would notice.
    #[doc(hidden)]
    pub fn break_master(&mut self, core: &mut Core) {
        core.forced_master = Some(core.configured_master());
    }

    /// Follows a master from now on, within the unit of the command that asked for it.
    pub(crate) fn follow(&mut self, core: &mut Core, master: Master) {
        // A primary's own writes are known to no master; a replica may go on with another one.
        let place = self.place.take().filter(|_| core.master().is_some());
        self.drop_connection(core);
        self.change_all(core, Effect::ReplicaOf { host: master.host(), port: master.port() });
        self.tell_configuration(core);
        *self = Link {
            place,
            database: self.database,
            down_since: Some(core.turn.monotonic),
            ..self.anew(Some(master))
        };
    }

    /// Follows nobody any more, within the unit of the command that asked for it. What is here
    /// counts from now on, even if it is a part of what the master had.
    pub(crate) fn follow_no_one(&mut self, core: &mut Core) {
        self.drop_connection(core);
        if core.shard.engine.keyspace.is_partial() {
            tracing::warn!("what is here of a master's data set is kept as if it were whole");
        }
        self.change_all(core, Effect::ReplicaOfNoOne);
        self.tell_configuration(core);
        *self = self.anew(None);
    }

    /// Ends the connection to the master. What half a transfer brought goes with it.
    fn drop_connection(&mut self, core: &mut Core) {
        if self.must_make_way(core) {
            self.make_way(core);
        }
        self.leave_master(core);
    }

    /// Ends the connection to the master, and changes nothing here.
    fn leave_master(&mut self, core: &mut Core) {
        if let Phase::Streaming(client) = self.phase {
            // First of all, so that its session does not report a failure.
            self.phase = Phase::Apart;
            core.close(client);
        }
        self.hang_up(core);
    }

    /// Makes the link that to the master whom the shard follows now.
    pub(super) fn turn_to_master(&mut self, core: &mut Core) {
        if self.peer.as_ref() == core.master() {
            return;
        }
        self.leave_master(core);
        *self = self.anew(core.master().cloned());
        self.down_since = Some(core.turn.monotonic);
    }

    /// Takes what the configuration says of a master for the shard's word, once this process leads,
    /// if nothing was ever said of one and there is nothing to lose.
    pub(crate) fn adopt_configured_master(&mut self, core: &mut Core) {
        let may_decide = core.leadership.roles.leads() && !core.persistence.is_loading;
        if self.has_judged_configuration || !may_decide || core.shard.gate() != Gate::Open {
            return;
        }
        self.has_judged_configuration = true;
        let keyspace = &core.shard.engine.keyspace;
        if *keyspace.replica_of() != ReplicaOf::Unset {
            return;
        }
        let Some(master) = core.configured_master() else { return };
        let effect = if keyspace.is_empty() {
            tracing::info!(host = master.host(), port = master.port(), "follows a master");
            Effect::ReplicaOf { host: master.host(), port: master.port() }
        } else {
            tracing::warn!(
                replicaof = %master,
                keys = keyspace.len(),
                "the configuration names a master, and this shard has data of its own and follows \
                 nobody: it goes on so. REPLICAOF takes the master's data in its place"
            );
            // Decided once: a later start may find the shard empty because its keys were deleted.
            Effect::ReplicaOfNoOne
        };
        core.shard.unit.clear();
        self.change_all(core, effect);
        core.end_own_unit();
    }

    /// Says whom a shard follows that was just loaded, and that the configuration says otherwise.
    pub(crate) fn compare_configured_master(&self, core: &Core) {
        let replica_of = core.shard.engine.keyspace.replica_of();
        let configured = core.configured_master();
        let differs = match (replica_of, &configured) {
            (ReplicaOf::Master(master), Some(configured)) => !master.is_same(configured),
            (ReplicaOf::NoOne, Some(_)) => true,
            _ => false,
        };
        if let Some(configured) = configured.filter(|_| differs) {
            tracing::warn!(
                %configured,
                in_force = %replica_of,
                "the transaction log and the configuration do not agree on replicaof: the log is \
                 obeyed. The command REPLICAOF changes it"
            );
        } else if let ReplicaOf::Master(master) = replica_of {
            tracing::info!(host = master.host(), port = master.port(), "the shard has a master");
        }
    }

    /// Makes the configuration say whom the shard follows, for CONFIG GET and CONFIG REWRITE to
    /// show. Until something is said, it is what was configured.
    pub(crate) fn tell_configuration(&mut self, core: &mut Core) {
        let master = core.shard.engine.keyspace.master();
        if *core.shard.engine.keyspace.replica_of() != ReplicaOf::Unset {
            core.process.config.set_master(master.map(|master| (master.host(), master.port())));
        }
        if core.forced_master.is_some() {
            self.break_master(core);
        }
    }

    /// Whether half a data set is here that is no longer waited for, and can be removed. It is
    /// known to be a part in any case.
    pub(super) fn must_make_way(&self, core: &Core) -> bool {
        let is_ours = self.peer.is_some() && self.peer.as_ref() == core.master();
        let takes_it =
            core.leadership.roles.leads() && !matches!(core.shard.gate(), Gate::Refuse(_));
        self.is_loading() && is_ours && takes_it
    }

    /// All keys go, and what comes is a part until the transfer ends: within the unit at hand, so
    /// that no crash leaves the one without the other. Only where the log says that the shard
    /// follows the master whose data comes.
    pub(super) fn make_way(&mut self, core: &mut Core) {
        assert!(self.peer.is_some(), "only a master's data takes the place of all keys");
        assert!(self.peer.as_ref() == core.master(), "the data is another master's");
        self.change_all(core, Effect::FlushAll);
        if !core.shard.engine.keyspace.libraries().is_empty() {
            self.change_all(core, Effect::FunctionFlush);
        }
        self.change_all(core, Effect::TransferBegan);
    }

    /// What is here is no part any more, from the unit at hand on.
    pub(super) fn call_whole(&mut self, core: &mut Core) {
        self.change_all(core, Effect::TransferEnded);
    }

    fn change_all(&mut self, core: &mut Core, effect: Effect<'_>) {
        let shard = &mut core.shard;
        let context = engine::unit::Context::background(core.turn.now, DatabaseId(0));
        shard
            .engine
            .tx(context, &mut shard.unit, &mut core.interest)
            .change_all(DatabaseId(0), effect);
    }
}
