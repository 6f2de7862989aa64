//! One replica: a session that said REPLCONF, SYNC or PSYNC.

use super::transfer::Transfer;
use base::MonotonicNanos;

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

/// The contents of a file without keys.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Filter {
    Functions,
    Nothing,
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
    /// REPLCONF rdb-filter-only: it wants a file without keys, with the libraries of functions or
    /// without.
    pub filter: Option<Filter>,
    /// Bytes of the stream that it has executed, and when it said so.
    pub acknowledged: u64,
    pub acknowledged_at: MonotonicNanos,
    /// Commands to be sent behind the file.
    kept: Vec<u8>,
    /// Bytes of its output that it had taken when that was last looked at while the file was under
    /// way, and since when it took no more.
    taken: Option<(u64, MonotonicNanos)>,
}

impl Default for Replica {
    fn default() -> Self {
        Self {
            stage: Stage::Handshake,
            port: 0,
            address: String::new(),
            acknowledges: false,
            wants_only_file: false,
            filter: None,
            acknowledged: 0,
            acknowledged_at: MonotonicNanos(0),
            kept: Vec::new(),
            taken: None,
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

    /// Whether it follows, or is about to.
    pub fn is_attached(&self) -> bool {
        !matches!(self.stage, Stage::Handshake)
    }

    /// Whether it follows and its snapshot is not written yet.
    pub fn is_waiting_for_file(&self) -> bool {
        matches!(self.stage, Stage::Waiting | Stage::Gathering)
    }

    /// Where it can be reached, as INFO and ROLE show it; `peer` is whom the connection is from.
    pub fn place(&self, peer: &str) -> (String, i64) {
        let peer = peer.rsplit_once(':').map_or("", |(host, _)| host);
        let address = if self.address.is_empty() { peer } else { &self.address };
        (address.trim_matches(['[', ']']).to_owned(), self.port)
    }

    /// Whether it has the data set and gets commands.
    pub fn is_online(&self) -> bool {
        matches!(self.stage, Stage::Online)
    }

    /// Whether its file is being written or sent, and commands are kept for it.
    pub fn is_gathering(&self) -> bool {
        matches!(self.stage, Stage::Gathering | Stage::Sending(_))
    }

    /// Seconds since it was last heard of, once it is online and if it is one that answers.
    pub fn lag_seconds(&self, now: MonotonicNanos) -> Option<u64> {
        let answers = self.is_online() && self.acknowledges;
        answers.then(|| now.seconds_since(self.acknowledged_at))
    }

    /// Seconds for which it has taken nothing of its file, given the bytes of its output that it
    /// has taken so far and those that wait for it.
    pub fn stuck_seconds(
        &mut self,
        taken: u64,
        waiting: usize,
        now: MonotonicNanos,
    ) -> Option<u64> {
        if !matches!(self.stage, Stage::Sending(_)) {
            return None;
        }
        let (before, since) = self.taken.unwrap_or((taken, now));
        let is_stuck = before == taken && waiting > 0;
        let since = if is_stuck { since } else { now };
        self.taken = Some((taken, since));
        Some(now.seconds_since(since))
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::feed::transfer::Transfer;

    #[test]
    fn a_replica_is_stuck_while_bytes_wait_and_it_takes_none() {
        let mut replica = Replica::default();
        assert_eq!(replica.stuck_seconds(0, 10, MonotonicNanos(0)), None, "it is sent no file yet");
        replica.stage = Stage::Sending(Transfer::being_read());
        let mut at = |seconds: u64, taken, waiting| {
            let now = MonotonicNanos(0).after_millis(seconds * 1000);
            replica.stuck_seconds(taken, waiting, now)
        };
        assert_eq!(at(5, 10, 10), Some(0), "it counts from the first look");
        assert_eq!(at(15, 10, 10), Some(10));
        assert_eq!(at(16, 11, 10), Some(0), "it has taken something");
        assert_eq!(at(20, 11, 10), Some(4));
        assert_eq!(at(30, 11, 0), Some(0), "nothing waits for it: the disk is slow");
        assert_eq!(at(32, 11, 10), Some(2));
    }
}
