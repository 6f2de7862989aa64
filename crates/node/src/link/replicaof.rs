//! REPLICAOF: which master the shard follows, changed by the command and looked up by everything
//! that a replica does differently ([`Server::master`]).
//!
//! It is the shard's state and no process's ([`engine::master`]), kept in the log. Every process
//! reads it there; the one that leads dials the master, so that a failover goes on following. What
//! a configuration says counts once, for a shard without data of which nothing was ever said:
//! otherwise a process that led long ago would take a master's data in place of what others have
//! written since.

use super::{Link, Master, Phase};
use crate::core::Core;
use crate::server::Server;
use base::DatabaseId;
use engine::effect::Effect;
use engine::master::ReplicaOf;
use txlog::Gate;

impl Core {
    /// The master that this process takes data from: the shard's, unless another process leads it.
    pub fn master(&self) -> Option<&Master> {
        if self.is_following() {
            return None;
        }
        if let Some(broken) = &self.forced_master {
            return broken.as_ref();
        }
        self.shard.engine.keyspace.master()
    }

    fn configured_master(&self) -> Option<Master> {
        let (host, port) = self.process.config.master()?;
        Master::new(&host, port)
    }
}

impl Server {
    /// Follows what the configuration of this process says whenever it leads, so that a test can
    /// prove that it would notice.
    #[doc(hidden)]
    pub fn break_master(&mut self) {
        self.core.forced_master = Some(self.core.configured_master());
    }

    /// Follows a master from now on, within the unit of the command that asked for it.
    pub(crate) fn follow(&mut self, master: Master) {
        self.unblock_everybody();
        self.feed.drop_replicas(&mut self.core);
        // A primary's own writes are known to no master; a replica may go on with another one.
        let place = self.link.place.take().filter(|_| self.core.master().is_some());
        self.drop_link();
        self.change_all(Effect::ReplicaOf { host: master.host(), port: master.port() });
        self.tell_configuration();
        self.link = Link {
            place,
            database: self.link.database,
            down_since: Some(self.core.turn.monotonic),
            ..self.link.anew(Some(master))
        };
    }

    /// Follows nobody any more, within the unit of the command that asked for it. What is here
    /// counts from now on, even if it is a part of what the master had.
    pub(crate) fn follow_no_one(&mut self) {
        self.drop_link();
        if self.core.shard.engine.keyspace.is_partial() {
            tracing::warn!("what is here of a master's data set is kept as if it were whole");
        }
        self.change_all(Effect::ReplicaOfNoOne);
        self.tell_configuration();
        self.link = self.link.anew(None);
    }

    /// Ends the connection to the master. What half a transfer brought goes with it.
    fn drop_link(&mut self) {
        if self.must_make_way() {
            self.make_way();
        }
        self.leave_master();
    }

    /// Ends the connection to the master, and changes nothing here.
    fn leave_master(&mut self) {
        if let (Phase::Streaming, Some(connection)) = (&self.link.phase, self.link.connection) {
            self.link.connection = None;
            self.core.close(connection);
        }
        self.link.hang_up();
    }

    /// Makes the link that to the master whom the shard follows now.
    pub(super) fn turn_to_master(&mut self) {
        if self.link.peer.as_ref() == self.core.master() {
            return;
        }
        self.leave_master();
        self.link = self.link.anew(self.core.master().cloned());
        self.link.down_since = Some(self.core.turn.monotonic);
    }

    /// Takes what the configuration says of a master for the shard's word, once this process leads,
    /// if nothing was ever said of one and there is nothing to lose.
    pub(crate) fn adopt_configured_master(&mut self) {
        let may_decide = self.core.leadership.roles.leads() && !self.core.persistence.is_loading;
        if self.link.has_judged_configuration || !may_decide || self.core.shard.gate() != Gate::Open
        {
            return;
        }
        self.link.has_judged_configuration = true;
        let keyspace = &self.core.shard.engine.keyspace;
        if *keyspace.replica_of() != ReplicaOf::Unset {
            return;
        }
        let Some(master) = self.core.configured_master() else { return };
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
        self.core.shard.unit.clear();
        self.change_all(effect);
        self.core.end_own_unit();
    }

    /// Says whom a shard follows that was just loaded, and that the configuration says otherwise.
    pub(crate) fn compare_configured_master(&self) {
        let replica_of = self.core.shard.engine.keyspace.replica_of();
        let configured = self.core.configured_master();
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
    pub(crate) fn tell_configuration(&mut self) {
        let master = self.core.shard.engine.keyspace.master();
        if *self.core.shard.engine.keyspace.replica_of() != ReplicaOf::Unset {
            self.core
                .process
                .config
                .set_master(master.map(|master| (master.host(), master.port())));
        }
        if self.core.forced_master.is_some() {
            self.break_master();
        }
    }

    /// Whether half a data set is here that is no longer waited for, and can be removed. It is
    /// known to be a part in any case.
    pub(super) fn must_make_way(&self) -> bool {
        let is_ours = self.link.peer.is_some() && self.link.peer.as_ref() == self.core.master();
        let takes_it = self.core.leadership.roles.leads()
            && !matches!(self.core.shard.gate(), Gate::Refuse(_));
        self.link.is_loading() && is_ours && takes_it
    }

    /// All keys go, and what comes is a part until the transfer ends: within the unit at hand, so
    /// that no crash leaves the one without the other. Only where the log says that the shard
    /// follows the master whose data comes.
    pub(super) fn make_way(&mut self) {
        assert!(self.link.peer.is_some(), "only a master's data takes the place of all keys");
        assert!(self.link.peer.as_ref() == self.core.master(), "the data is another master's");
        self.change_all(Effect::FlushAll);
        self.change_all(Effect::TransferBegan);
    }

    /// What is here is no part any more, from the unit at hand on.
    pub(super) fn call_whole(&mut self) {
        self.change_all(Effect::TransferEnded);
    }

    fn change_all(&mut self, effect: Effect<'_>) {
        let shard = &mut self.core.shard;
        let context = engine::unit::Context::background(self.core.turn.now, DatabaseId(0));
        shard
            .engine
            .tx(context, &mut shard.unit, &mut self.core.interest)
            .change_all(DatabaseId(0), effect);
    }
}
