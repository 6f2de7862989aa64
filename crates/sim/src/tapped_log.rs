//! A log that is listened to: whatever passes between a server and its log passes here.

use base::{Position, Sequence};
use bytes::Bytes;
use txlog::{Chain, Gate, Limits, LogEvent, Refusal, Ticket, TransactionLog};

/// Who listens. Each is called at the instant itself, and may let time pass.
pub trait Listener {
    /// A record is about to be handed to the log, for this place.
    fn appends(&mut self, _place: Sequence, _record: &Bytes) {}

    /// The loop has synced the log itself.
    fn committed_inline(&mut self) {}

    /// The log has told this, and the server does not know it yet. What is added, it hears too;
    /// what is taken away, it never does.
    fn told(&mut self, _events: &mut Vec<LogEvent>) {}

    /// Whether the server is told that somebody may wait for its lease to end; the log says `so`.
    fn watches(&mut self, so: bool) -> bool {
        so
    }

    /// Whether the server is told that it may write; the log says `so`.
    fn gates(&self, so: Gate) -> Gate {
        so
    }

    /// Why the server is told that the log would take nothing from it; the log says `so`.
    fn troubles(&self, so: Option<Refusal>) -> Option<Refusal> {
        so
    }
}

/// A log and who listens to it.
pub struct TappedLog<L> {
    pub log: Box<dyn TransactionLog>,
    pub listener: L,
}

impl<L: Listener> TransactionLog for TappedLog<L> {
    fn limits(&self) -> Limits {
        self.log.limits()
    }

    fn gate(&self) -> Gate {
        self.listener.gates(self.log.gate())
    }

    fn append(&mut self, after: Position, record: Bytes) -> Ticket {
        self.listener.appends(after.sequence.next(), &record);
        self.log.append(after, record)
    }

    fn commit_inline(&mut self) -> bool {
        let did = self.log.commit_inline();
        if did {
            self.listener.committed_inline();
        }
        did
    }

    fn poll(&mut self, events: &mut Vec<LogEvent>) {
        self.log.poll(events);
        self.listener.told(events);
    }

    fn is_busy(&self) -> bool {
        self.log.is_busy()
    }

    fn wait_nanos(&self) -> Option<u64> {
        self.log.wait_nanos()
    }

    fn read_from(&mut self, from: Position) {
        self.log.read_from(from);
    }

    fn stop_reading(&mut self) {
        self.log.stop_reading();
    }

    fn tail(&mut self) -> Ticket {
        self.log.tail()
    }

    fn compare(&mut self, position: Position, chain: Chain) -> Ticket {
        self.log.compare(position, chain)
    }

    fn probe_holder(&mut self) {
        self.log.probe_holder();
    }

    fn is_watched(&mut self) -> bool {
        let so = self.log.is_watched();
        self.listener.watches(so)
    }

    fn trouble(&self) -> Option<Refusal> {
        self.listener.troubles(self.log.trouble())
    }

    fn trim(&mut self, through: Position) {
        self.log.trim(through);
    }

    fn first(&mut self) -> Ticket {
        self.log.first()
    }
}
