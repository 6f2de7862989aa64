//! One unit of execution: what a command, a transaction or a script did, saw and said.
//!
//! A unit is all or nothing: its effects stand in one record, its replies and messages wait for one
//! position. Time stands still within it.

use crate::effect::EffectEncoder;
use crate::feed::Feed;
use crate::ids::KeyHash;
use crate::stream_id::StreamId;
use crate::value::Awaited;
use base::{DatabaseId, UnixMillis};
use std::any::Any;

/// The results of a unit, for the node to log and to hold. Reused between units. What it has to
/// tell those who listen is in [`crate::interest::Interest`].
pub struct Unit {
    /// Encoded effects of this unit.
    pub effects: EffectEncoder,
    /// The same as commands, while somebody follows.
    pub feed: Feed,
    /// Hashes of the keys whose state a reply may reveal.
    pub observed: Vec<KeyHash>,
    /// Hashes of the keys that changed.
    pub written: Vec<KeyHash>,
    /// The reply depends on every key, or a whole database changed.
    pub whole: bool,
    /// How many effects were recorded.
    pub changes: u64,
    /// While a blocked command runs again: the key that became ready.
    pub woken_by: Option<Vec<u8>>,
    /// For a retry: the IDs behind which it reads streams, as they were when the wait began.
    pub resumed_since: Vec<StreamId>,
    /// Set if the command found nothing and its client is to wait.
    pub wait: Option<Wait>,
    /// Keys that a read found past their time, or with fields past theirs, and how many messages
    /// there were then; the executor deletes what is due after it.
    pub expired: Vec<(DatabaseId, Vec<u8>, usize)>,
    /// A due key or field was hidden but not deleted: the reply rests on the clock, and no effect
    /// records that.
    pub rests_on_clock: bool,
    /// Big values on their way to a background thread.
    pub garbage: Vec<Box<dyn Any + Send>>,
}

impl Unit {
    /// An empty unit whose record buffers begin with `reserved` bytes for a header.
    pub fn new(reserved: usize) -> Self {
        Self {
            effects: EffectEncoder::new(reserved),
            feed: Feed::default(),
            observed: Vec::new(),
            written: Vec::new(),
            whole: false,
            changes: 0,
            woken_by: None,
            resumed_since: Vec::new(),
            wait: None,
            expired: Vec::new(),
            rests_on_clock: false,
            garbage: Vec::new(),
        }
    }

    /// Begins the next unit: forgets everything but effects that are not yet gathered for a record.
    pub fn clear(&mut self) {
        self.effects.begin_unit();
        self.feed.clear();
        self.observed.clear();
        self.written.clear();
        self.whole = false;
        self.changes = 0;
        self.woken_by = None;
        self.resumed_since.clear();
        self.wait = None;
        self.expired.clear();
        self.rests_on_clock = false;
    }

    /// If `hashes_max` or more key hashes are noted, takes the whole keyspace as observed and
    /// written instead. A script may touch any number of keys. Its reply then waits for longer than
    /// it must.
    pub fn forget_keys_beyond(&mut self, hashes_max: usize) {
        if self.observed.len() + self.written.len() > hashes_max {
            self.whole = true;
            self.observed.clear();
            self.written.clear();
        }
    }

    /// The reply may reveal the state of the key with this hash.
    pub(crate) fn observe(&mut self, hash: KeyHash) {
        if self.observed.last() != Some(&hash) {
            self.observed.push(hash);
        }
    }

    /// The key with this hash changed. A command with many elements says so once.
    pub(crate) fn wrote(&mut self, hash: KeyHash) {
        if self.written.last() != Some(&hash) {
            self.written.push(hash);
        }
    }
}

/// A blocked command: the keys it waits for, and what it answers when its time is up. The node
/// runs the command again when one of the keys may serve it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Wait {
    pub database: DatabaseId,
    pub keys: Vec<Vec<u8>>,
    pub awaited: Awaited,
    /// How long, from now on; `None`: without limit. A duration, which the node measures: the time
    /// that commands see is the shard's, and may run slower or jump when a process takes over.
    pub wait_millis: Option<u64>,
    pub on_timeout: TimeoutReply,
    /// The IDs behind which it reads streams, in the order of `keys`; empty if it reads no streams
    /// by ID.
    pub since: Vec<StreamId>,
}

/// The reply to a blocked command whose time is up.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TimeoutReply {
    Null,
    NullArray,
}

/// The parameters of one execution, constant while it runs: its time, its database, and the rules
/// for blocking, access times and expired keys.
#[derive(Clone, Copy, Debug)]
pub struct Context {
    /// The time of the unit.
    pub now: UnixMillis,
    /// Expiry stands still at this instant: keys are past their time by it, not by `now`.
    pub stands_at: Option<UnixMillis>,
    pub database: DatabaseId,
    /// False inside MULTI and scripts: a blocking command then answers at once.
    pub may_block: bool,
    /// A script calls the command: elements without an order of their own are returned sorted.
    pub in_script: bool,
    /// The command runs again for a blocked client: keys of other types do not refuse it.
    pub retry: bool,
    /// Reads update the access word (false for CLIENT NO-TOUCH and introspection).
    pub touch: bool,
    /// Keys that the request does not name may be read (SORT's BY and GET).
    pub reads_every_key: bool,
    pub overdue: Overdue,
}

/// How keys, and fields of hashes, are treated when their time has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Overdue {
    /// Whoever meets one deletes it, by an effect.
    Deleted,
    /// Whoever reads leaves them where they are, invisible: writes are paused, or the log takes no
    /// effects now. Whoever writes all the same deletes them.
    Left,
    /// They are invisible, and stay: the server follows a master, which will say that they went.
    Hidden,
    /// They count as there: this is what the master says, and its clock decides.
    Kept,
}

impl Context {
    /// By which clock keys are past their time.
    pub fn due_by(&self) -> UnixMillis {
        self.stands_at.unwrap_or(self.now)
    }

    /// Whether a key that expires at this instant is past its time.
    pub fn is_due(&self, expire_at: i64) -> bool {
        expire_at <= self.due_by().0
    }

    /// Keys and fields that expire by this Unix time in milliseconds are hidden.
    pub fn hidden_by(&self) -> i64 {
        if self.overdue == Overdue::Kept { i64::MIN } else { self.due_by().0 }
    }

    /// For work that no client asked for.
    pub const fn background(now: UnixMillis, database: DatabaseId) -> Self {
        Self {
            now,
            stands_at: None,
            database,
            may_block: false,
            in_script: false,
            retry: false,
            touch: false,
            reads_every_key: true,
            overdue: Overdue::Deleted,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::effect::{Effect, EffectDecoder};
    use bytes::BytesMut;

    #[test]
    fn units_that_were_gathered_can_be_told_apart() {
        let mut unit = Unit::new(4);
        let effect = Effect::Append { bytes: b"x" };
        let mut gathered = BytesMut::zeroed(4);
        let mut ends = Vec::new();
        for _ in 0..3 {
            unit.clear();
            unit.effects.push(DatabaseId(3), b"key", &effect);
            unit.effects.move_into(&mut gathered);
            assert!(unit.effects.is_empty());
            ends.push(gathered.len());
        }
        unit.clear();
        unit.effects.move_into(&mut gathered);
        assert_eq!(gathered.len(), ends[2], "one that did nothing leaves nothing");
        let mut decoder = EffectDecoder::new(&gathered[4..]);
        for index in 0..3 {
            let first = Some((DatabaseId(3), &b"key"[..], effect));
            assert_eq!(decoder.next_effect(), Ok(first));
            assert_eq!(decoder.unit(), index);
        }
        assert_eq!(decoder.next_effect(), Ok(None));
        let first = ends[0] - 4;
        assert_eq!(ends, [4 + first, 5 + 2 * first, 6 + 3 * first], "a byte between two units");
    }
}
