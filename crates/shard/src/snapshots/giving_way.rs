//! A snapshot that gives way to new data.
//!
//! Databases that are flushed amid a snapshot are kept until they are written, and count in no
//! limit. If new data comes, there may be no memory for both. The snapshot is given up then, and
//! another one begins, which has less to write. That one does not give way: were flushes more
//! frequent than a snapshot takes, none would ever be published, and the log never trimmed. Writers
//! wait for it instead.

use super::{Running, Snapshots, TurnFacts};
use crate::shard::Shard;

/// Why it is given up.
pub(super) const FLUSHED: &str =
    "its data was flushed, and memory has no room for it beside new data";

impl Snapshots {
    /// Frees what the snapshot under way keeps, whatever its store is at, and gives it up.
    pub(super) fn give_way(&mut self, shard: &mut Shard, turn: &TurnFacts) {
        let Some(running) = &mut self.running else { return };
        let keyspace = &mut shard.engine.keyspace;
        let lacks_room = keyspace.lacks_room_for_flushed(turn.client_bytes);
        if self.has_given_way || running.is_given_up || !lacks_room {
            return;
        }
        keyspace.end_snapshot();
        running.give_up();
        self.has_given_way = true;
    }
}

impl Running {
    /// What it has not handed to the disk is of no use any more.
    fn give_up(&mut self) {
        self.is_given_up = true;
        let left = self.chunks.drain(..).map(|chunk| chunk.bytes.len()).sum::<usize>();
        self.backlog_bytes -= left;
    }
}
