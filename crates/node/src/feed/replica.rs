//! One replica: a session that said REPLCONF, SYNC or PSYNC.

use super::transfer::Transfer;
use crate::session::Session;
use base::UnixMillis;

/// How far a replica is.
pub enum Stage {
    /// It has said something about itself.
    Handshake,
    /// It waits for a snapshot to begin.
    Waiting,
    /// The snapshot is being written; commands are kept for it.
    Gathering,
    /// The snapshot's file is on its way; commands are kept for it.
    Sending(Transfer),
    /// It gets commands as they become durable.
    Online,
}

/// What is known of a replica.
pub struct Replica {
    pub stage: Stage,
    /// Where it says that it listens: REPLCONF listening-port and ip-address.
    pub port: i64,
    pub address: String,
    /// It speaks PSYNC: it is told where the stream begins, and acknowledges.
    pub acknowledges: bool,
    /// REPLCONF rdb-only: it wants the file and nothing more.
    pub wants_only_file: bool,
    /// Bytes of the stream that it has executed, and when it said so.
    pub acknowledged: u64,
    pub acknowledged_at: UnixMillis,
    /// Commands to be sent behind the file.
    kept: Vec<u8>,
}

impl Default for Replica {
    fn default() -> Self {
        Self {
            stage: Stage::Handshake,
            port: 0,
            address: String::new(),
            acknowledges: false,
            wants_only_file: false,
            acknowledged: 0,
            acknowledged_at: UnixMillis(0),
            kept: Vec::new(),
        }
    }
}

impl Replica {
    /// Keeps commands until the file is sent.
    pub fn keep(&mut self, commands: &[u8]) {
        if !self.wants_only_file {
            self.kept.extend_from_slice(commands);
        }
    }

    /// What was kept; it is kept no longer.
    pub fn take_kept(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.kept)
    }

    pub fn kept_bytes(&self) -> usize {
        self.kept.len()
    }

    /// Whether it has the data set and gets commands.
    pub fn is_online(&self) -> bool {
        matches!(self.stage, Stage::Online)
    }

    /// Seconds since it was last heard of, once it is online and if it is one that answers.
    pub fn lag_seconds(&self, now: UnixMillis) -> Option<i64> {
        let answers = self.is_online() && self.acknowledges;
        answers.then(|| (now.0 - self.acknowledged_at.0).max(0) / 1000)
    }

    /// The stage as INFO names it.
    pub fn state(&self) -> &'static str {
        match self.stage {
            Stage::Handshake | Stage::Waiting | Stage::Gathering => "wait_bgsave",
            Stage::Sending(_) => "send_bulk",
            Stage::Online => "online",
        }
    }
}

impl Session {
    /// Whether the session follows, or is about to.
    pub fn is_replica(&self) -> bool {
        let stage = self.replica.as_ref().map(|replica| &replica.stage);
        stage.is_some_and(|stage| !matches!(stage, Stage::Handshake))
    }

    /// Whether the session follows and its snapshot is not written yet.
    pub fn is_waiting_for_file(&self) -> bool {
        let stage = self.replica.as_ref().map(|replica| &replica.stage);
        stage.is_some_and(|stage| matches!(stage, Stage::Waiting | Stage::Gathering))
    }

    /// Where a replica can be reached, as INFO and ROLE show it.
    pub fn replica_place(&self) -> (String, i64) {
        let replica = self.replica.as_deref();
        let announced = replica.map(|replica| replica.address.as_str()).unwrap_or_default();
        let peer = self.peer.rsplit_once(':').map_or("", |(host, _)| host);
        let address = if announced.is_empty() { peer } else { announced };
        (address.trim_matches(['[', ']']).to_owned(), replica.map_or(0, |replica| replica.port))
    }
}
