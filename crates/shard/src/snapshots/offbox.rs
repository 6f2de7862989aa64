//! What a primary knows of snapshots that it did not take: who takes them off the box, and whether
//! that one lives; and how much of the log the newest one covers.
//!
//! ```text
//! every five seconds ─▶ look: the newest snapshots, what the claim's holder says
//!   it says something new ─▶ it lives: none is taken here
//!   a newer snapshot than was known ─▶ older ones are pruned, the log is trimmed
//! ```
//! Whether a worker lives shows in what it says alone: its claim may be a lock on another machine,
//! or an object. It is silent as long as looks hear nothing new of it; while a look is slow, nobody
//! listens, and nobody is silent.

use super::stores::{Looked, Sighting};
use super::{Snapshots, TurnFacts};
use crate::shard::{Growth, Shard};
use archive::CLAIM_SILENCE;
use base::{MonotonicNanos, Sequence};
use std::collections::VecDeque;

/// What the log has grown by between two marks, at least.
const MARK: Growth = Growth { records: 1024, bytes: 4 << 20 };

/// Marks that are kept. With more, every other one goes: what is known of the older ones becomes
/// coarser.
const MARKS_MAX: usize = 1024;

/// What the log had grown by, and what had changed, at a record.
#[derive(Clone, Copy)]
struct Mark {
    at: Sequence,
    grown: Growth,
    dirty: u64,
}

/// What is known of the snapshots of others.
#[derive(Default)]
pub(super) struct OffBox {
    /// What the claim's holder said last, and when it first said so.
    said: Option<Vec<u8>>,
    heard_at: Option<MonotonicNanos>,
    /// When the last look was asked for that has come back.
    asked_at: MonotonicNanos,
    /// Whether it lived when it was last looked.
    lived: bool,
    /// The newest snapshot that was taken into account, whoever took it.
    newest: Option<Sequence>,
    marks: VecDeque<Mark>,
}

impl OffBox {
    /// Takes what the holder of the claim is heard to say now, or that there is none.
    fn hear(&mut self, said: Option<Vec<u8>>, now: MonotonicNanos) {
        if said.is_none() {
            self.heard_at = None;
        } else if said != self.said {
            self.heard_at = Some(now);
        }
        self.said = said;
    }

    /// Whether somebody takes snapshots off the box.
    pub fn lives(&self) -> bool {
        let silence = CLAIM_SILENCE.as_nanos() as u64;
        self.heard_at.is_some_and(|heard_at| self.asked_at.since(heard_at) < silence)
    }

    /// Marks how far the log has grown, if it has since the last mark.
    fn mark(&mut self, shard: &Shard) {
        let before = self.marks.back().map_or(Growth::default(), |mark| mark.grown);
        let grown = shard.grown;
        let is_enough = grown.records >= before.records + MARK.records
            || grown.bytes >= before.bytes + MARK.bytes;
        if !is_enough {
            return;
        }
        let dirty = shard.engine.keyspace.statistics.dirty.get();
        self.marks.push_back(Mark { at: shard.appended().sequence, grown, dirty });
        if self.marks.len() > MARKS_MAX {
            let mut is_kept = true;
            self.marks.retain(|_| {
                is_kept = !is_kept;
                is_kept
            });
        }
    }

    /// A snapshot covers the log through here: what it had grown by and changed up to there, as far
    /// as is known, is taken from every mark behind it.
    pub fn cover(&mut self, through: Sequence) -> (Growth, u64) {
        let mut covered = (Growth::default(), 0);
        while let Some(mark) = self.marks.front().filter(|mark| mark.at <= through) {
            covered = (mark.grown, mark.dirty);
            self.marks.pop_front();
        }
        self.uncount(covered);
        self.newest = self.newest.max(Some(through));
        covered
    }

    /// As [`Self::cover`], by a snapshot of which it is known what it covers.
    pub fn cover_exactly(&mut self, through: Sequence, grown: Growth, dirty: u64) {
        self.marks.retain(|mark| mark.at > through);
        self.uncount((grown, dirty));
        self.newest = self.newest.max(Some(through));
    }

    /// So much is counted no more.
    fn uncount(&mut self, (grown, dirty): (Growth, u64)) {
        for mark in &mut self.marks {
            mark.grown -= grown;
            mark.dirty = mark.dirty.saturating_sub(dirty);
        }
    }
}

impl Snapshots {
    /// Notes how far the log has grown: called in every turn.
    pub(super) fn mark(&mut self, shard: &Shard) {
        self.offbox.mark(shard);
    }

    /// What a worker that lives says of itself: JSON. `None` also if nobody has looked for long: a
    /// replica without a primary does not.
    pub fn worker(&self, now: MonotonicNanos) -> Option<String> {
        let is_known = now.since(self.offbox.asked_at) < 2 * CLAIM_SILENCE.as_nanos() as u64;
        let said = self.offbox.said.as_ref().filter(|_| is_known && self.offbox.lives())?;
        // Anybody who can write to the archive may have written it.
        let is_plain = said.iter().all(|byte| matches!(byte, b' '..=b'~'));
        is_plain.then(|| String::from_utf8_lossy(said).into_owned())
    }

    /// Takes what a look has found.
    pub(super) fn looked(&mut self, shard: &mut Shard, turn: &TurnFacts, looked: Looked) {
        let Looked { asked_at, own, proven, foreign, said } = looked;
        let newest = own.first().copied();
        self.stores.looked(own, proven, turn.leads);
        if let Some(names) = self.stores.note_foreign(foreign) {
            let store = self.store.location();
            tracing::warn!(
                names,
                "in {store} lie snapshots of another log than this shard's: they count for \
                 nothing here and stay; whoever wrote them has this shard's snapshot-store beside \
                 the transaction-log of another"
            );
        }
        // What cannot be read is silence.
        self.offbox.asked_at = asked_at;
        if let Some(said) = said {
            self.offbox.hear(said, turn.monotonic);
        }
        let lives = self.offbox.lives();
        let lived = std::mem::replace(&mut self.offbox.lived, lives);
        if lived && !lives && turn.leads {
            tracing::warn!("no worker takes the snapshots any more: they are taken here again");
        }
        if let Some(newest) = newest
            && self.offbox.newest.is_none_or(|known| newest.sequence > known)
        {
            self.take_over(shard, turn, newest);
        }
    }

    /// Another process has published this one.
    fn take_over(&mut self, shard: &mut Shard, turn: &TurnFacts, newest: Sighting) {
        let is_first = self.offbox.newest.is_none();
        let (grown, dirty) = self.offbox.cover(newest.sequence);
        shard.grown -= grown;
        let changes = &shard.engine.keyspace.statistics.dirty;
        changes.set(changes.get().saturating_sub(dirty));
        if let Some(running) = &mut self.running {
            running.log -= grown;
            running.dirty = running.dirty.saturating_sub(dirty);
        }
        // One that was there when this process began is no news.
        if turn.leads && !is_first {
            tracing::info!(record = newest.sequence.0, "another process has published a snapshot");
            self.status.last_published = Some(turn.now);
            self.pruning.is_due = true;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn second(n: u64) -> MonotonicNanos {
        MonotonicNanos(n * 1_000_000_000)
    }

    #[test]
    fn a_worker_lives_while_it_says_something_new() {
        let mut offbox = OffBox::default();
        assert!(!offbox.lives());
        let mut look = |said: Option<&[u8]>, asked, ended| {
            offbox.asked_at = second(asked);
            offbox.hear(said.map(<[u8]>::to_vec), second(ended));
            offbox.lives()
        };
        assert!(look(Some(b"1"), 9, 10));
        assert!(look(Some(b"1"), 39, 39) && !look(Some(b"1"), 40, 40));
        assert!(look(Some(b"2"), 41, 42), "it was only slow");
        assert!(look(Some(b"2"), 60, 200), "nobody listened for long");
        assert!(!look(Some(b"2"), 200, 201));
        assert!(look(Some(b"3"), 202, 300) && look(Some(b"3"), 301, 400));
        assert!(!look(None, 401, 401), "it gave the claim up");
    }

    #[test]
    fn what_a_snapshot_covers_is_counted_no_more() {
        let mark = |at, n| Mark {
            at: Sequence(at),
            grown: Growth { records: n, bytes: 10 * n },
            dirty: 2 * n,
        };
        let mut offbox =
            OffBox { marks: [mark(5, 1), mark(9, 4), mark(12, 6)].into(), ..OffBox::default() };
        assert_eq!(offbox.cover(Sequence(4)), (Growth::default(), 0));
        assert_eq!(offbox.cover(Sequence(10)), (Growth { records: 4, bytes: 40 }, 8));
        let left = offbox.marks.front().map(|mark| (mark.grown.records, mark.dirty));
        assert_eq!(left, Some((2, 4)));
        assert_eq!(offbox.newest, Some(Sequence(10)));
    }
}
