//! Whose record stands before the next one: what makes a confirmed put count, without any clock.
//!
//! Nothing in an object store tells "was never written" from "was written and trimmed". So a put
//! that lay on the way while its place was taken by another writer, and trimmed, succeeds: a
//! *ghost*. Its writer must not take it for a record, or it acknowledges what nobody will ever
//! read. It may have slept for any time, and its clocks with it: a virtual machine that was
//! stopped, or loaded from a snapshot. So this rests on the store alone:
//!
//! 1. The log *changes hands* at a place where a record is put by another process than the one
//!    before it. Who puts such a record first adds an object that says so, below `kept/`.
//! 2. Trimming never deletes a record at a place that is kept. It looks which are after it raised
//!    the floor, so it sees the mark of every record that it might delete.
//! 3. Let this process have put the record at `k - 1`, and its put at `k` succeed. If another's
//!    record had ever stood at `k`, the log had changed hands there; it would be kept, and the put
//!    would have failed. So `k` was free, or held this very record, which is put there unchanged
//!    as often as it takes.
//! 4. Where the log changes hands to this process itself, that argument is missing: there it reads
//!    the floor before it believes that a put has succeeded. The floor was raised before any record
//!    was deleted, so before any ghost.
//!
//! So a writer that goes on pays nothing, and a new one pays two requests, once. What is kept for
//! ever are two small objects for each time that somebody began to lead, as a rule.

use base::Sequence;
use bytes::Bytes;

/// What this process has put.
#[derive(Clone, Debug, Default)]
pub struct Hands {
    /// The newest place that holds a record of this process.
    own: Option<Sequence>,
    /// What was put last, and where; whether it succeeded may be unknown.
    tried: Option<(Sequence, Bytes)>,
}

impl Hands {
    /// Whether the record before this place is this process's own.
    pub fn go_on_at(&self, sequence: Sequence) -> bool {
        self.own.is_some_and(|own| own.next() == sequence)
    }

    pub fn tries(&mut self, sequence: Sequence, record: Bytes) {
        self.tried = Some((sequence, record));
    }

    /// The record that was tried there is this process's, and is the one that counts there.
    pub fn stored(&mut self, sequence: Sequence) {
        self.own = Some(sequence);
        self.tried = None;
    }

    /// Whether what stands there may be this process's own ghost, for all that is known without
    /// the floor.
    pub fn may_haunt(&self, sequence: Sequence) -> bool {
        self.tried.as_ref().is_some_and(|(at, _)| *at == sequence) && !self.go_on_at(sequence)
    }

    /// This record stands there and is no ghost.
    pub fn saw(&mut self, sequence: Sequence, record: &Bytes) {
        if self.tried.as_ref().is_some_and(|(at, tried)| *at == sequence && tried == record) {
            self.stored(sequence);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORD: Bytes = Bytes::from_static(b"record");

    #[test]
    fn who_put_the_record_before_goes_on() {
        let mut hands = Hands::default();
        assert!(!hands.go_on_at(Sequence(5)), "nothing was put yet");
        hands.tries(Sequence(5), RECORD);
        assert!(!hands.go_on_at(Sequence(6)) && hands.may_haunt(Sequence(5)));
        hands.stored(Sequence(5));
        assert!(hands.go_on_at(Sequence(6)) && !hands.go_on_at(Sequence(5)));
        hands.tries(Sequence(6), RECORD);
        assert!(!hands.may_haunt(Sequence(6)), "another's record there would have been kept");
        assert!(!hands.go_on_at(Sequence(7)), "a record in doubt is nobody's");
    }

    #[test]
    fn a_doubt_ends_when_the_record_is_found() {
        let mut hands = Hands::default();
        hands.tries(Sequence(5), RECORD);
        hands.saw(Sequence(5), &Bytes::from_static(b"another"));
        hands.saw(Sequence(4), &RECORD);
        assert!(!hands.go_on_at(Sequence(6)));
        hands.saw(Sequence(5), &RECORD);
        assert!(hands.go_on_at(Sequence(6)));
    }
}
