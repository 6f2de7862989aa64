//! Remembers which record this process has put last. A writer ([`super::put`]) asks it whether a
//! put that the store confirmed counts at once, or only after a look at the floor.
//!
//! The question arises because nothing in an object store tells "was never written" from "was
//! written and trimmed". A put may be under way for long; meanwhile another writer takes its place,
//! and that record is trimmed; then the put succeeds. Such an object is called a *ghost*: nobody
//! will ever read it, so its writer must not acknowledge it. The writer may have slept for any
//! time, and its clocks with it: a virtual machine that was stopped, or loaded from a snapshot. So
//! the rule asks no clock, and rests on the store alone:
//!
//! 1. The log *changes hands* at a place where a record is put by another process than the one
//!    before it. Who puts such a record first adds an object that says so, below `kept/`.
//! 2. Trimming never deletes a record at a place that is kept. It looks which are after it raised
//!    the floor, and in the part of the log in which it deletes, so it sees the object of every
//!    record that it might delete ([`super::trim`]).
//! 3. Let this process have put the record at `k - 1`, and its put at `k` succeed. If another's
//!    record had ever stood at `k`, the log had changed hands there; it would be kept, and the put
//!    would have failed. So `k` was free, or held this very record, which is put there unchanged
//!    as often as it takes.
//! 4. Where the log changes hands to this process itself, that argument is missing: there it reads
//!    the floor before it believes that a put has succeeded. The floor was raised before any record
//!    was deleted, so before any ghost.
//!
//! So a writer that goes on pays nothing, and a new one pays two requests, once. Two small objects
//! stay for ever, as a rule, for each time that somebody began to lead: the record and the object
//! that says so. Nothing that works on the log goes over them again and again.

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
