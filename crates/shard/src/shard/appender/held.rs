//! Records that the log does not take yet. A unit larger than one record is handed over in parts,
//! each when the gate is open. The log keeps room for what it has taken, so what it has taken
//! becomes durable; the rest is held here, unstamped, and whoever would write is kept waiting or
//! refused. Were all parts handed over at once, then on a full disk no record could follow them:
//! the lease would run out, and nobody would be answered until somebody gives room.
//!
//! ```text
//!   in the log             held                     the log from then on
//!   first  middle    │     middle   last            first middle RENEW middle last
//! ```
//! While records are held a `Renew` goes ahead of them: between the parts of a unit nothing else
//! may stand. It was meant for no place, so what is held moves on by one, as behind a record that
//! counts for nobody. It says the time of the unit: with a later one, a replica would let keys go
//! that the unit has still seen.

use super::Appender;
use crate::role::renewal::Renewal;
use base::{Moment, Sequence, UnixMillis};
use bytes::BytesMut;
use std::collections::VecDeque;
use txlog::{Gate, Part, Refusal};

/// A record that is not stamped yet.
pub(super) struct Unstamped {
    pub part: Part,
    /// The payload, behind room for a header.
    pub buffer: BytesMut,
    /// The time of its unit.
    pub now: UnixMillis,
}

/// Records that the log does not take yet, in order, and the renewal that went ahead of them. What
/// one unit and the units of its turn did, so bounded as these are.
#[derive(Default)]
pub(super) struct Held {
    records: VecDeque<Unstamped>,
    ahead: Option<Ahead>,
}

/// A `Renew` under way that went ahead.
struct Ahead {
    /// Where it stands in the log.
    at: Sequence,
    /// An instant before it was handed over.
    sent: Moment,
}

impl Held {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Whether one record is held, of whole units: the log keeps room for that.
    pub fn is_alone_and_whole(&self) -> bool {
        self.records.len() == 1 && self.records[0].part == Part::Whole
    }

    /// The time of the unit that stands first.
    pub fn clock(&self) -> Option<UnixMillis> {
        self.records.front().map(|record| record.now)
    }

    pub fn push(&mut self, part: Part, buffer: BytesMut, now: UnixMillis) {
        self.records.push_back(Unstamped { part, buffer, now });
    }

    pub fn pop(&mut self) -> Option<Unstamped> {
        self.records.pop_front()
    }
}

impl Appender {
    /// The last record that the log was handed, as it was first meant.
    pub fn handed(&self) -> Sequence {
        Sequence(self.appended.sequence.0 - self.held.records.len() as u64)
    }

    /// Whether records are held.
    pub fn holds_records(&self) -> bool {
        !self.held.is_empty()
    }

    /// Whether the log was handed something that is not yet durable.
    pub fn is_in_log(&self) -> bool {
        self.durable < self.handed() || self.held.ahead.is_some()
    }

    /// The last durable place of the log, for a record that is stamped now. A renewal that went
    /// ahead has moved what comes behind it on, and is not durable itself.
    pub(super) fn durable_mark(&self) -> Sequence {
        let place = self.in_log(self.durable).sequence;
        Sequence(place.0 - u64::from(self.held.ahead.is_some()))
    }

    /// Whether the log takes a further record of a large unit. One that is lost to this process is
    /// given all, and says so.
    fn takes_more(&self) -> bool {
        match self.log.gate() {
            Gate::Open => true,
            Gate::Wait | Gate::Refuse(Refusal::DiskFull | Refusal::Unavailable(_)) => false,
            Gate::Refuse(Refusal::NotWriter | Refusal::LogLost | Refusal::Failed(_)) => true,
        }
    }

    /// Hands over what the log takes of the records that are held; whether it took any.
    pub fn hand_over_held(&mut self) -> bool {
        let held = self.held.records.len();
        while self.holds_records() && self.takes_more() {
            self.hand_over_next();
        }
        self.held.records.len() < held
    }

    /// Renews the lease ahead of what is held, once the log has made durable all that it was
    /// handed. `clock` is the time of the unit that is held.
    pub(super) fn renew_ahead(&mut self, renewal: &Renewal, clock: UnixMillis) {
        if self.is_in_log() {
            return;
        }
        let durable = self.durable_mark();
        let after = self.in_log(self.handed());
        let Some(stamper) = &mut self.stamper else { return };
        let record = stamper.renew(renewal.lease_millis, &renewal.member, clock, durable);
        let sent = self.send(after, record);
        self.shifted += 1;
        self.held.ahead = Some(Ahead { at: after.sequence.next(), sent });
    }

    /// The log is durable through this place of it. A renewal that went ahead counts from now on,
    /// as a record would that was meant for the last durable place.
    pub(super) fn note_renewed(&mut self, through: Sequence) {
        if let Some(Ahead { sent, .. }) = self.held.ahead.take_if(|it| it.at <= through) {
            self.sent.push((self.durable, sent));
            self.has_renewed_ahead = true;
        }
    }

    /// What is not durable moves on by so many places.
    pub(super) fn note_shifted(&mut self, by: u64) {
        self.shifted += by;
        if let Some(ahead) = &mut self.held.ahead {
            ahead.at.0 += by;
        }
    }
}
