//! Hands a primary's records to its log: what the units of a turn did, and what renews the lease
//! amid a command that takes long. The shard calls it at the end of a turn, long commands call it
//! from within ([`Pulse`], counted by `engine/work`).
//!
//! A long command calls it again and again, and it appends a record when one is due: what the units
//! *before* the running one have gathered, at the place that their replies were told, or a `Renew`
//! if nothing has. The running unit's own place is settled at its end, so it comes behind, and its
//! reply knows. Nothing is sent meanwhile: what the loop judges after the command, and how, stays
//! as it is.
//!
//! Such a record says the time at which the turn began, because time stands still within a unit: a
//! replica that was told a later one would let keys go that the running unit still sees.
//!
//! A unit of many parts is handed over as the log takes them: [`held`] keeps the rest.

mod buffers;
mod held;

use super::growth::Growth;
use crate::role::lease_clock::LeaseClock;
use crate::role::renewal::{self, Purpose, Renewal};
use base::{Moment, MonotonicNanos, Position, Sequence, UnixMillis};
use buffers::Buffers;
use bytes::{Bytes, BytesMut};
use engine::work::Pulse;
use held::Held;
use std::ops::Range;
use std::rc::Rc;
use txlog::{AppendError, Kind, LogEvent, Part, Stamper, TransactionLog, empty_record, record};

/// How long a turn's commands renew the lease, in nanoseconds. What takes longer is taken for a
/// command that never ends, and for a process that is of no use: the lease lapses, and a replica
/// may lead. 60 s is as long as the longest lease, and longer than clients wait as a rule.
const RENEWED_NANOS_MAX: u64 = 60_000_000_000;

/// Records on their way to the log, and what it said of them.
pub(super) struct Appender {
    pub log: Box<dyn TransactionLog>,
    /// The largest payload of one record, before it is encrypted: asked of the log once, as each
    /// unit needs it.
    pub payload_bytes_max: usize,
    /// Of a process that leads.
    pub stamper: Option<Stamper>,
    /// Effects of units that have ended, behind room for a record's header.
    pub gathered: BytesMut,
    buffers: Buffers,
    /// The last record appended, as it was first meant; or the last one applied. The newest may
    /// still be held.
    pub appended: Position,
    /// Records that the log does not take yet.
    held: Held,
    /// How many places further on in the log the records stand that are not yet durable.
    pub shifted: u64,
    /// Our records are durable through the one that was meant for this place.
    pub durable: Sequence,
    /// Records handed over since the shard last took note, and those of them with data.
    pub grown: Growth,
    pub data: Growth,
    /// Each record handed over since then, and the instant before it was.
    pub sent: Vec<(Sequence, Moment)>,
    /// A renewal that went ahead of held records is durable, which the shard was not yet told.
    pub has_renewed_ahead: bool,
    pub events: Vec<LogEvent>,
    /// Counts the calls after which the gate may be another: the log, or what is held for it, was
    /// given something to do.
    pub gate_serial: u64,
    /// The log told that this process appends nothing more, and why.
    pub failed: Option<AppendError>,
    pub is_lost: bool,
    clock: Option<Rc<LeaseClock>>,
    /// The turn under way: when it began, and what the shard's clock showed.
    began: Moment,
    now: UnixMillis,
    /// Set while this process leads under a lease.
    pub renewal: Option<Renewal>,
    last_sent: MonotonicNanos,
    /// The turn has taken so long that its commands renew the lease no more.
    has_stopped_renewing: bool,
    /// Long commands renew nothing: see [`super::Shard::break_renewal`].
    pub is_renewal_broken: bool,
}

impl Appender {
    pub fn new(log: Box<dyn TransactionLog>, stamper: Option<Stamper>, at: Position) -> Self {
        let payload_bytes_max = payload_bytes_max(&*log, stamper.as_ref());
        Self {
            log,
            payload_bytes_max,
            stamper,
            gathered: empty_record(0),
            buffers: Buffers::default(),
            appended: at,
            held: Held::default(),
            shifted: 0,
            durable: at.sequence,
            grown: Growth::default(),
            data: Growth::default(),
            sent: Vec::new(),
            has_renewed_ahead: false,
            events: Vec::new(),
            gate_serial: 0,
            failed: None,
            is_lost: false,
            clock: None,
            began: Moment::default(),
            now: UnixMillis(0),
            renewal: None,
            last_sent: MonotonicNanos(0),
            has_stopped_renewing: false,
            is_renewal_broken: false,
        }
    }

    pub fn begin_turn(&mut self, clock: &Rc<LeaseClock>, began: Moment, now: UnixMillis) {
        self.clock = Some(Rc::clone(clock));
        (self.began, self.now, self.has_stopped_renewing) = (began, now, false);
    }

    pub fn begin_to_lead(&mut self, stamper: Stamper, at: Position) {
        self.log.stop_reading();
        self.payload_bytes_max = payload_bytes_max(&*self.log, Some(&stamper));
        self.stamper = Some(stamper);
        self.appended = at;
        self.durable = at.sequence;
        self.last_sent = self.began.monotonic;
    }

    pub fn has_gathered(&self) -> bool {
        self.gathered.len() > record::HEADER_BYTES
    }

    /// Where a record that is not yet durable comes to stand.
    fn in_log(&self, meant: Sequence) -> Position {
        self.appended.at(Sequence(meant.0 + self.shifted))
    }

    /// Appends what has gathered, as one record.
    pub fn append_gathered(&mut self, now: UnixMillis) {
        let next = self.buffers.take(self.gathered.len());
        let buffer = std::mem::replace(&mut self.gathered, next);
        self.append(Part::Whole, buffer, now);
    }

    /// Appends what has gathered because it has outgrown one record: first the units before the
    /// last one, whose replies wait for one record and no more; then the last one, in parts if it
    /// must be. `between` them stands what tells units of one record apart.
    pub fn append_large_unit(&mut self, between: Range<usize>, now: UnixMillis) {
        let buffer = std::mem::replace(&mut self.gathered, empty_record(0));
        let before = &buffer[record::HEADER_BYTES..between.start];
        if !before.is_empty() {
            self.append_copy(Part::Whole, before, now);
        }
        let parts = buffer[between.end..].chunks(self.payload_bytes_max);
        let last = parts.len() - 1;
        for (index, bytes) in parts.enumerate() {
            let part = match index {
                _ if last == 0 => Part::Whole,
                0 => Part::First,
                _ if index == last => Part::Last,
                _ => Part::Middle,
            };
            self.append_copy(part, bytes, now);
        }
    }

    fn append_copy(&mut self, part: Part, payload: &[u8], now: UnixMillis) {
        let mut buffer = empty_record(payload.len());
        buffer.extend_from_slice(payload);
        self.append(part, buffer, now);
    }

    /// Appends a record whose buffer begins with room for its header: hands it over, or holds it.
    fn append(&mut self, part: Part, buffer: BytesMut, now: UnixMillis) {
        if self.stamper.is_none() {
            debug_assert!(false, "the gate lets nobody write while this process follows");
            return;
        }
        self.appended.sequence = self.appended.sequence.next();
        self.gate_serial += 1;
        self.held.push(part, buffer, now);
        if self.held.is_alone_and_whole() {
            self.hand_over_next();
        } else {
            self.hand_over_held();
        }
    }

    /// Stamps the first record that is held and hands it to the log.
    fn hand_over_next(&mut self) {
        let durable = self.durable_mark();
        let Some(stamper) = &mut self.stamper else { return };
        let Some(record) = self.held.pop() else { return };
        let bytes = stamper.stamp(Kind::Data, record.part, record.buffer, record.now, durable);
        self.data.add(bytes.len());
        self.buffers.lend(&bytes);
        self.hand_over(bytes);
    }

    /// Appends a `Renew`, if nothing has gathered: a record with data renews as well. Before
    /// records that are held.
    pub fn renew(&mut self, renewal: &Renewal, now: UnixMillis) {
        if let Some(clock) = self.held.clock() {
            return self.renew_ahead(renewal, clock);
        }
        let durable = self.durable_mark();
        let has_gathered = self.has_gathered();
        if let Some(stamper) = self.stamper.as_mut().filter(|_| !has_gathered) {
            let Renewal { lease_millis, member } = renewal;
            let record = stamper.renew(*lease_millis, member, now, durable);
            self.appended.sequence = self.appended.sequence.next();
            self.hand_over(record);
        }
    }

    /// Appends a `Checksum`, at which the shard holds so many keys. Everything that has executed
    /// stands in records before it.
    pub fn append_checksum(&mut self, keys: u64, now: UnixMillis) {
        debug_assert!(self.held.is_empty() && !self.has_gathered(), "it counts what is appended");
        let durable = self.durable_mark();
        if let Some(stamper) = &mut self.stamper {
            let record = stamper.checksum(keys, now, durable);
            self.appended.sequence = self.appended.sequence.next();
            self.hand_over(record);
        }
    }

    /// Appends a `Yield`, and nothing behind it.
    pub fn append_yield(&mut self, successor: &[u8], now: UnixMillis) {
        self.renewal = None;
        let durable = self.durable_mark();
        if let Some(stamper) = &mut self.stamper {
            let record = stamper.give_up(successor, now, durable);
            debug_assert!(self.held.is_empty(), "who hands over has appended everything");
            self.appended.sequence = self.appended.sequence.next();
            self.hand_over(record);
        }
    }

    /// Hands the record over that was meant for the place behind all that were.
    fn hand_over(&mut self, record: Bytes) {
        let place = self.handed();
        let after = self.in_log(Sequence(place.0 - 1));
        let sent = self.send(after, record);
        self.sent.push((place, sent));
    }

    /// Hands the log a record to stand behind `after`. Returns the instant before the log has it,
    /// from which the lease counts, and not from the turn's: a turn may last for longer than a
    /// lease.
    fn send(&mut self, after: Position, record: Bytes) -> Moment {
        self.grown.add(record.len());
        let sent = self.clock.as_ref().map_or(self.began, |clock| clock.moment());
        self.gate_serial += 1;
        self.log.append(after, record);
        self.last_sent = sent.monotonic;
        sent
    }

    /// Learns what became of this process's records.
    pub fn poll(&mut self) {
        self.gate_serial += 1;
        let mut events = std::mem::take(&mut self.events);
        loop {
            self.log.poll(&mut events);
            for event in events.drain(..) {
                self.take(event);
            }
            // Polling starts the work on what was handed over.
            if !self.hand_over_held() {
                break;
            }
        }
        self.events = events;
    }

    pub fn take(&mut self, event: LogEvent) {
        match event {
            LogEvent::Durable(position) => {
                self.durable = Sequence(position.sequence.0 - self.shifted);
                self.note_renewed(position.sequence);
            }
            LogEvent::Shifted { by } => self.note_shifted(by),
            // The first says why; those behind it only that something before them failed.
            LogEvent::Failed(_, error) => {
                self.failed.get_or_insert(error);
            }
            LogEvent::Lost => self.is_lost = true,
            _ => {}
        }
    }

    fn is_in_flight(&self) -> bool {
        self.durable < self.appended.sequence
    }

    /// Whether the lease is to be renewed now, though the turn goes on.
    fn is_due(&mut self, renewal: &Renewal, now: MonotonicNanos) -> bool {
        let is_due = renewal.is_due(now.since(self.last_sent), self.is_in_log());
        if !is_due || self.is_renewal_broken {
            return false;
        }
        if now.since(self.began.monotonic) > RENEWED_NANOS_MAX {
            if !self.has_stopped_renewing {
                self.has_stopped_renewing = true;
                let seconds = RENEWED_NANOS_MAX / 1_000_000_000;
                tracing::warn!(
                    seconds,
                    "a command has run for too long: the lease is renewed no more"
                );
            }
            return false;
        }
        renewal::may_append(Purpose::Lease, &self.log.gate(), false)
            && self.failed.is_none()
            && self.log.is_watched()
    }
}

fn payload_bytes_max(log: &dyn TransactionLog, stamper: Option<&Stamper>) -> usize {
    let overhead = record::HEADER_BYTES + stamper.map_or(0, Stamper::overhead_bytes_max);
    log.limits().record_bytes_max - overhead
}

impl Pulse for Appender {
    fn beat(&mut self) {
        let Some(renewal) = self.renewal.take() else { return };
        if self.is_in_flight() {
            // The log goes on with its work when it is polled.
            self.poll();
        }
        let clock = self.clock.as_ref().map(|clock| clock.monotonic());
        if clock.is_some_and(|now| self.is_due(&renewal, now)) {
            if self.has_gathered() && self.held.is_empty() {
                self.append_gathered(self.now);
            } else {
                self.renew(&renewal, self.now);
            }
            self.poll();
        }
        self.renewal = Some(renewal);
    }
}
