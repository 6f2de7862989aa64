//! The start of a server: the loop turns while its shard loads, so that clients are told LOADING
//! instead of nothing, and goes on until it is known whether this process leads or follows.

use crate::core::Stop;
use crate::server::Server;
use crate::server::reactor::Scratch;
use archive::SnapshotStore;
use base::Driver;
use base::time::MILLISECOND;
use shard::loading::{Failure, KnownLog, Loaded, Loading, OpenLog, Sources, Step};
use std::sync::Arc;

/// A start under way: the loading, and then the wait until it is known whether this process leads
/// or follows.
pub struct Start {
    /// `None` once all is loaded.
    loading: Option<Loading>,
}

impl Start {
    pub fn new(loading: Loading) -> Self {
        Self { loading: Some(loading) }
    }
}

impl Server {
    /// Opens the shard's log and begins to load what it and the snapshots hold. Blocks.
    ///
    /// # Errors
    /// The log is damaged or lost; the disk fails.
    pub fn open_shard(
        &self,
        store: SnapshotStore,
        open_log: impl FnOnce(&KnownLog) -> Result<OpenLog, Failure>,
    ) -> Result<Loading, Failure> {
        let process = &self.core.process;
        let sources = Sources {
            clock: Arc::clone(&process.options.clock),
            store,
            settings: process.engine_settings(),
            seeds: process.options.seeds,
        };
        let tiering = process.open_tier()?;
        let mut loading = Loading::open(sources, open_log)?;
        if let Some(tiering) = tiering {
            loading.spill_to(tiering);
        }
        loading.compact_by(process.compaction());
        Ok(loading)
    }

    /// Loads everything while clients are told to wait, and goes on until it is known whether this
    /// process leads or follows. `Some` if the server was told to stop before that.
    ///
    /// # Errors
    /// The data cannot be had back.
    pub fn load(
        &mut self,
        driver: &mut dyn Driver,
        loading: Loading,
    ) -> Result<Option<Stop>, Failure> {
        let mut scratch = Scratch::default();
        let mut start = Start::new(loading);
        while !self.advance_start(&mut start)? {
            self.turn(driver, &mut scratch);
            if let Some(stop) = self.stopped_while_loading()? {
                return Ok(Some(stop));
            }
        }
        Ok(None)
    }

    /// Does a slice of the start, before each turn of the loop; whether the start is over.
    ///
    /// # Errors
    /// The data cannot be had back.
    pub fn advance_start(&mut self, start: &mut Start) -> Result<bool, Failure> {
        if let Some(mut loading) = start.loading.take() {
            self.core.persistence.is_loading = true;
            let step = loading.step()?;
            self.has_more_to_load = step == Step::More;
            self.core.persistence.progress = loading.progress();
            if step != Step::Done {
                start.loading = Some(loading);
                return Ok(false);
            }
            self.core.persistence.keys_loaded = loading.keys_loaded;
            let loaded = loading.into_shard().ok_or("the loading ended and was not done")?;
            self.take_up(loaded);
        }
        self.core.persistence.is_loading = !self.core.leadership.roles.is_role_known();
        Ok(!self.core.persistence.is_loading)
    }

    /// Why a start ends before it is over, if it does.
    ///
    /// # Errors
    /// The log failed.
    pub fn stopped_while_loading(&self) -> Result<Option<Stop>, Failure> {
        match self.core.stopping.clone() {
            Some(Stop::LogFailed(why)) => Err(why.into()),
            other => Ok(other),
        }
    }

    fn take_up(&mut self, loaded: Loaded) {
        let Loaded { mut shard, found } = loaded;
        shard.limit(self.core.process.options.limits.shard);
        let keyspace = &mut shard.engine.keyspace;
        keyspace.settings = self.core.process.engine_settings();
        if keyspace.is_partial() {
            tracing::error!(
                keys = keyspace.len(),
                "the transfer of a master's data set was cut short: what is here is a part of it, \
                 and requests about it are refused until all is taken anew, or REPLICAOF NO ONE"
            );
        }
        self.core.shard = shard;
        self.core.set_compaction();
        self.drop_caches();
        self.link.compare_configured_master(&self.core);
        let member = self.core.process.member();
        let (host, port) = (&member.host, member.port);
        tracing::info!(host, port, "other members are told that this server is here");
        let lease_nanos = self.core.process.settings.transaction_log_lease * MILLISECOND;
        self.set_policy();
        self.core.leadership.follow(member.id, lease_nanos, found);
    }
}
