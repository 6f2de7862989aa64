//! What this server is to others, as far as commands ask: a replica of the log, a follower of a
//! master, or neither.

use super::Core;
use engine::master::Master;

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

    pub(crate) fn configured_master(&self) -> Option<Master> {
        let (host, port) = self.process.config.master()?;
        Master::new(&host, port)
    }

    /// Whether this server follows a master, or another process that writes its log.
    pub fn is_replica(&self) -> bool {
        self.master().is_some() || self.is_following()
    }

    /// Whether memory is the master's business.
    pub(crate) fn ignores_memory_limit(&self) -> bool {
        self.is_following() || self.is_replica() && self.process.settings.replica_ignore_maxmemory
    }

    /// Whether this process is a replica of whoever writes the transaction log.
    pub fn is_following(&self) -> bool {
        self.leadership.roles.follows()
    }

    /// Whether the primary was heard of within its lease.
    pub(crate) fn hears_primary(&self) -> bool {
        self.leadership.roles.hears_holder(self.turn.monotonic)
    }

    /// Appends a record that only says who leads, and when.
    pub(crate) fn renew(&mut self) {
        let Core { process, leadership, shard, .. } = self;
        leadership.renew(shard, &|| process.member());
    }

    /// The records appended since the last call renew the lease.
    pub(crate) fn note_appended(&mut self) {
        let Core { leadership, shard, .. } = self;
        leadership.note_appended(shard);
    }
}
