//! A shard at work: the engine, its log, and the tracker between them.
//!
//! The primary gathers everything executed in one turn of the loop into one record. The record's
//! place is known before it is appended, so replies know what to wait for while effects are still
//! gathering. A replica applies what it reads, and what it serves is durable already.
//!
//! Records that count for nobody may take places that were meant for ours, and then ours move on
//! behind them. What waits for a record knows it by the place it was first meant for; its place in
//! the log is that and what has been [`Shard::shifted`] since. Only this file counts in both.

mod following;
mod growth;
mod place;

use crate::role::member::Member;
use crate::tracker::Tracker;
use base::{Position, Sequence, UnixMillis};
use bytes::{Bytes, BytesMut};
use engine::execute::Engine;
use engine::interest::Interest;
use engine::unit::Unit;
use following::Following;
pub use following::Told;
pub use growth::Growth;
pub use place::Place;
use txlog::memory::MemoryLog;
use txlog::{
    AppendError, Chain, Gate, Kind, LogEvent, Part, Refusal, Stamper, TransactionLog, record,
};

/// Effects gathered in one record, in bytes, after which the turn commits at once: a larger record
/// only adds latency (DESIGN section 7). The last unit may overshoot.
const RECORD_BYTES_TARGET: usize = 512 << 10;

/// One shard, of which this process is the primary or a replica.
pub struct Shard {
    pub engine: Engine,
    pub tracker: Tracker,
    /// What the command being executed leaves behind; its effects gather until the next commit.
    pub unit: Unit,
    log: Box<dyn TransactionLog>,
    duty: Duty,
    /// The last record appended, as it was first meant; or the last one applied.
    appended: Position,
    /// How many places further on in the log the records stand that are not yet durable.
    shifted: u64,
    /// Records and bytes appended since the start, for INFO.
    pub records_appended: u64,
    pub bytes_appended: u64,
    /// Since the last snapshot: what schedules the next one.
    pub grown: Growth,
    events: Vec<LogEvent>,
    /// The log takes effects, as it said when it was last polled.
    is_open: bool,
    /// Replies wait for nothing: see [`Self::break_tracker`].
    is_tracker_broken: bool,
    /// Keys are hidden by a clock that no record has: see [`Self::break_clock`].
    is_clock_broken: bool,
}

/// What this process does with the shard's log.
enum Duty {
    /// It appends.
    Leads(Stamper),
    /// It reads, and may have a `Lead` under way.
    Follows(Box<Following>),
}

/// What the log told.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Progress {
    /// More became durable, or was applied.
    Durable,
    /// Nothing new.
    Nothing,
    /// Another process may lead: what was executed here may be void.
    Deposed(String),
    /// What is needed of the log was trimmed: a snapshot has it.
    Trimmed,
    /// The log is gone for this process; it must stop and says why.
    Fatal(String),
}

impl Shard {
    /// A shard whose engine has applied everything through `applied`, where its log ends, and which
    /// this process leads.
    pub fn new(
        engine: Engine,
        log: Box<dyn TransactionLog>,
        stamper: Stamper,
        applied: Position,
    ) -> Self {
        Self::assemble(engine, log, Duty::Leads(stamper), applied)
    }

    fn assemble(
        mut engine: Engine,
        log: Box<dyn TransactionLog>,
        duty: Duty,
        applied: Position,
    ) -> Self {
        let tracker = Tracker::new(applied.sequence);
        let is_open = log.gate() == Gate::Open;
        engine.keyspace.base_bytes = Tracker::ALLOCATED_BYTES + size_of::<Engine>();
        Self {
            engine,
            tracker,
            unit: Unit::new(record::HEADER_BYTES),
            log,
            duty,
            appended: applied,
            shifted: 0,
            records_appended: 0,
            bytes_appended: 0,
            grown: Growth::default(),
            events: Vec::new(),
            is_open,
            is_tracker_broken: false,
            is_clock_broken: false,
        }
    }

    /// Lets every reply leave at once, so that a test can prove that it would notice.
    #[doc(hidden)]
    pub fn break_tracker(&mut self) {
        self.is_tracker_broken = true;
    }

    /// Hides keys by the clock of this process, and lets replies that rest on it leave at once, so
    /// that a test can prove that it would notice.
    #[doc(hidden)]
    pub fn break_clock(&mut self) {
        self.is_clock_broken = true;
    }

    /// Gives every record the same counter, so that a test can prove that it would notice.
    #[doc(hidden)]
    pub fn break_counters(&mut self) {
        if let Duty::Leads(stamper) = &mut self.duty {
            stamper.reuses_counters = true;
        }
    }

    /// Puts another log in the place of this one, made from it, so that a test can listen in.
    #[doc(hidden)]
    pub fn wrap_log(
        &mut self,
        wrap: impl FnOnce(Box<dyn TransactionLog>) -> Box<dyn TransactionLog>,
    ) {
        let nothing = Box::new(MemoryLog::new(self.appended.incarnation).handle(0));
        self.log = wrap(std::mem::replace(&mut self.log, nothing));
    }

    /// The record that holds what executes now.
    pub fn gathering(&self) -> Sequence {
        self.appended.sequence.next()
    }

    /// The last record appended: its place in the log, as far as can be told.
    pub fn appended(&self) -> Position {
        self.in_log(self.appended.sequence)
    }

    /// What waits for everything appended waits for this.
    pub fn newest_appended(&self) -> Sequence {
        self.appended.sequence
    }

    /// How many places further on than meant the records stand that are not yet durable. While it
    /// stays, so does the place of every record.
    pub fn shifted(&self) -> u64 {
        self.shifted
    }

    /// Through this place the log is durable: our records, and void ones behind them.
    pub fn durable(&self) -> Position {
        self.in_log(self.tracker.durable())
    }

    /// Where a record that is not yet durable comes to stand.
    pub(crate) fn in_log(&self, meant: Sequence) -> Position {
        self.appended.at(Sequence(meant.0 + self.shifted))
    }

    /// The record that what reveals everything until now must wait for.
    pub fn newest(&self) -> Sequence {
        if self.is_tracker_broken { Sequence::ZERO } else { self.tracker.newest() }
    }

    /// Where the log's chain stands behind the last record appended or applied.
    pub fn chain(&self) -> Chain {
        match &self.duty {
            Duty::Leads(stamper) => stamper.chain(),
            Duty::Follows(following) => following.replayer.chain(),
        }
    }

    /// The last record appended or applied, as other processes know it.
    pub fn place(&self) -> Place {
        let counter = match &self.duty {
            Duty::Leads(stamper) => stamper.counter(),
            Duty::Follows(following) => following.replayer.counter(),
        };
        Place { chain: self.chain(), counter }
    }

    /// The clock in the newest record that this process appended or applied. A reply that rests on
    /// it waits for that record.
    pub(crate) fn recorded_clock(&self) -> Option<UnixMillis> {
        let clock = match &self.duty {
            Duty::Leads(stamper) => stamper.clock(),
            Duty::Follows(following) => following.replayer.clock(),
        };
        (!self.is_clock_broken).then_some(clock)
    }

    /// Whether the log took effects when it was last polled.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether a write may execute now.
    pub fn gate(&self) -> Gate {
        self.log.gate()
    }

    /// Whether effects wait for a commit.
    pub fn has_gathered(&self) -> bool {
        !self.unit.effects.is_empty()
    }

    /// The record that what reveals everything executed so far waits for, by the running unit too.
    pub fn newest_executed(&self) -> Sequence {
        if self.has_gathered() { self.gathering() } else { self.appended.sequence }
    }

    /// Whether so much has gathered that the turn should commit before it goes on.
    pub fn is_record_full(&self) -> bool {
        self.unit.effects.len() >= RECORD_BYTES_TARGET
    }

    /// The record that a reply must wait for, given what its unit observed, and notes what the
    /// unit wrote.
    pub fn settle_unit(&mut self, now: UnixMillis) -> Sequence {
        if self.unit.changes > 0 {
            let gathering = if self.unit.effects.len() > self.payload_bytes_max() {
                self.append_large_unit(now)
            } else {
                self.gathering()
            };
            let dirty = &self.engine.keyspace.statistics.dirty;
            dirty.set(dirty.get() + self.unit.changes);
            for &hash in &self.unit.written {
                self.tracker.wrote(hash, gathering);
            }
            if self.unit.whole {
                self.tracker.wrote_all(gathering);
            }
            return if self.is_tracker_broken { Sequence::ZERO } else { gathering };
        }
        if self.is_tracker_broken {
            return Sequence::ZERO;
        }
        let clock = self.clock_observed();
        if self.unit.whole || self.tracker.is_clean() {
            return self.tracker.newest().max(clock);
        }
        let observed = self.unit.observed.iter().map(|hash| self.tracker.observed(*hash));
        observed.max().unwrap_or(Sequence::ZERO).max(clock)
    }

    /// The record that a reply must wait for because it hid keys by the recorded clock. What a
    /// replica has applied is durable.
    fn clock_observed(&self) -> Sequence {
        let rests_on_clock = self.unit.rests_on_clock && !self.is_clock_broken;
        if rests_on_clock && matches!(self.duty, Duty::Leads(_)) {
            return self.appended.sequence;
        }
        Sequence::ZERO
    }

    /// The largest payload of one record.
    fn payload_bytes_max(&self) -> usize {
        self.log.limits().record_bytes_max - record::HEADER_BYTES
    }

    /// Appends what has gathered because it has outgrown one record: first the units before the
    /// last one, whose replies wait for one record and no more; then the last one, in parts if it
    /// must be. Its reply waits for its last part: the record returned.
    fn append_large_unit(&mut self, now: UnixMillis) -> Sequence {
        let before = self.unit.effects.len_before_unit();
        let payload = self.unit.effects.take().split_off(record::HEADER_BYTES);
        if before > 0 {
            self.append_copy(Part::Whole, &payload[..before], now);
        }
        let parts = payload[before..].chunks(self.payload_bytes_max());
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
        self.appended.sequence
    }

    fn append_copy(&mut self, part: Part, payload: &[u8], now: UnixMillis) {
        let mut buffer = BytesMut::with_capacity(record::HEADER_BYTES + payload.len());
        buffer.resize(record::HEADER_BYTES, 0);
        buffer.extend_from_slice(payload);
        self.append(part, buffer, now);
    }

    /// Appends what has gathered, if anything has and the log takes it now.
    pub fn commit(&mut self, now: UnixMillis) {
        if !self.has_gathered() || self.log.gate() == Gate::Wait {
            return;
        }
        let buffer = self.unit.effects.take();
        self.append(Part::Whole, buffer, now);
    }

    /// Appends a record whose buffer begins with room for its header.
    fn append(&mut self, part: Part, buffer: BytesMut, now: UnixMillis) {
        self.bytes_appended += buffer.len() as u64;
        self.records_appended += 1;
        let durable = self.durable().sequence;
        let Duty::Leads(stamper) = &mut self.duty else {
            debug_assert!(false, "the gate lets nobody write while this process follows");
            return;
        };
        let record = stamper.stamp(Kind::Data, part, buffer, now, durable);
        self.hand_over(record);
    }

    fn hand_over(&mut self, record: Bytes) {
        self.grown.add(record.len());
        self.log.append(self.appended(), record);
        self.appended.sequence = self.appended.sequence.next();
    }

    /// Appends a `Renew`, if nothing has gathered: a record with data renews as well.
    pub fn renew(&mut self, lease_millis: u64, member: &Member, now: UnixMillis) {
        let durable = self.durable().sequence;
        if let Duty::Leads(stamper) = &mut self.duty
            && self.unit.effects.is_empty()
        {
            let record = stamper.renew(lease_millis, &member.encode(), now, durable);
            self.hand_over(record);
        }
    }

    /// Appends a `Yield`: the last record of this holder. Nothing may have gathered.
    pub fn give_up(&mut self, successor: &[u8], now: UnixMillis) {
        let durable = self.durable().sequence;
        if let Duty::Leads(stamper) = &mut self.duty {
            let record = stamper.give_up(successor, now, durable);
            self.hand_over(record);
        }
    }

    /// Makes what was appended durable on this thread, where that is quicker (a lone client).
    pub fn commit_inline(&mut self) -> bool {
        self.log.commit_inline()
    }

    /// What a start would spend on the log behind the last snapshot, as bytes of a snapshot.
    pub fn replay_cost_bytes(&self) -> u64 {
        self.grown.cost_bytes(&self.log.limits())
    }

    /// Why the log would take no writes from this process if it led.
    pub fn trouble(&self) -> Option<Refusal> {
        self.log.trouble()
    }

    /// Whether appended records are not durable yet.
    pub fn is_in_flight(&self) -> bool {
        self.tracker.durable() < self.appended.sequence
    }

    /// Whether the log wants to be polled.
    pub fn is_log_busy(&self) -> bool {
        self.log.is_busy()
    }

    /// In how many nanoseconds the log wants to be polled though nothing happens.
    pub fn log_wait_nanos(&self) -> Option<u64> {
        self.log.wait_nanos()
    }

    /// Whether somebody may wait for this holder's lease to end.
    pub fn is_watched(&mut self) -> bool {
        self.log.is_watched()
    }

    /// Learns what became durable, or applies what was read; `told` takes what it says of who
    /// leads, and `interest` what was applied brought.
    pub fn poll(&mut self, told: &mut Vec<Told>, interest: &mut Interest) -> Progress {
        let mut events = std::mem::take(&mut self.events);
        self.log.poll(&mut events);
        let mut progress = Progress::Nothing;
        for event in events.drain(..) {
            let found = match &self.duty {
                Duty::Leads(_) => self.lead_on(event),
                Duty::Follows(_) => self.follow_on(event, told, interest),
            };
            match found {
                Progress::Nothing => {}
                Progress::Durable => progress = Progress::Durable,
                end => {
                    progress = end;
                    break;
                }
            }
        }
        events.clear();
        self.events = events;
        self.is_open = self.log.gate() == Gate::Open;
        progress
    }

    fn lead_on(&mut self, event: LogEvent) -> Progress {
        match event {
            LogEvent::Durable(position) => {
                self.tracker.durable_through(Sequence(position.sequence.0 - self.shifted));
                Progress::Durable
            }
            LogEvent::Shifted { by } => {
                self.shifted += by;
                Progress::Nothing
            }
            LogEvent::Failed(_, error @ (AppendError::Fatal(_) | AppendError::LogLost)) => {
                Progress::Fatal(explain(&error))
            }
            LogEvent::Failed(_, error) => Progress::Deposed(explain(&error)),
            LogEvent::Lost => Progress::Fatal("the transaction log was deleted".to_owned()),
            _ => Progress::Nothing,
        }
    }

    /// Lets the log forget records through here.
    pub fn trim(&mut self, through: Position) {
        self.log.trim(through);
    }
}

fn explain(error: &AppendError) -> String {
    format!("what has executed cannot be made durable: {error}")
}
