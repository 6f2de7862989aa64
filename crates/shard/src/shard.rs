//! A shard at work: the engine, its log, and the tracker between them.
//!
//! The primary gathers everything executed in one turn of the loop into one record. The record's
//! place is known before it is appended, so replies know what to wait for while effects are still
//! gathering. A replica applies what it reads, and what it serves is durable already.
//!
//! What is handed to the log goes through the [`Appender`], which long commands call as well.
//!
//! Records that count for nobody may take places that were meant for ours, and then ours move on
//! behind them. What waits for a record knows it by the place it was first meant for; its place in
//! the log is that and what has been [`Shard::shifted`] since. This file and the [`Appender`] count
//! in both; everybody else in places as they were first meant.

mod appender;
mod checksums;
mod following;
mod growth;
mod pins;
mod record_id;

use crate::compaction::Compaction;
use crate::limits::Limits;
use crate::no_log::NoLog;
use crate::role::lease_clock::LeaseClock;
use crate::role::renewal::Renewal;
use crate::tiering::Tiering;
use crate::tracker::Tracker;
use appender::Appender;
use base::{DatabaseId, Incarnation, Moment, Position, Seeds, Sequence, UnixMillis};
use checksums::Checksums;
use engine::execute::Engine;
use engine::ids::KeyHash;
use engine::interest::Interest;
use engine::keyspace::Keyspace;
use engine::settings::Settings;
use engine::unit::Unit;
pub use following::Told;
use following::{Following, Unapplied};
pub use growth::Growth;
pub use pins::Pins;
pub use record_id::RecordId;
use std::cell::RefCell;
use std::rc::Rc;
use txlog::{AppendError, Chain, Gate, Refusal, Stamper, TransactionLog, record};

/// One shard, of which this process is the primary or a replica.
pub struct Shard {
    pub engine: Engine,
    pub tracker: Tracker,
    /// What the command being executed leaves behind; its effects gather with those of the turn
    /// when it ends.
    pub unit: Unit,
    appender: Rc<RefCell<Appender>>,
    duty: Duty,
    /// Records and bytes appended since the start, for INFO.
    pub records_appended: u64,
    pub bytes_appended: u64,
    /// Since the last snapshot: what schedules the next one.
    pub grown: Growth,
    checksums: Checksums,
    /// Who needs old records and snapshots.
    pins: Pins,
    /// The file of values that memory has no room for, if there is one.
    pub tiering: Option<Tiering>,
    /// Wins memory back that is lost between blocks, if somebody asked for it.
    pub compaction: Option<Compaction>,
    limits: Limits,
    unapplied: Unapplied,
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
    Leads,
    /// It reads, and may have a `Lead` under way.
    Follows(Box<Following>),
    /// Nothing yet: what the shard holds is being loaded, elsewhere.
    Loads,
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
    /// this process leads from the start, as in a test that is about something else: a server
    /// follows first.
    #[doc(hidden)]
    pub fn leading(
        engine: Engine,
        log: Box<dyn TransactionLog>,
        stamper: Stamper,
        applied: Position,
    ) -> Self {
        Self::assemble(engine, log, Duty::Leads, Some(stamper), applied)
    }

    /// A shard without data and without a log: what a process has while it loads. Nothing may be
    /// written to it.
    pub fn loading(settings: Settings, seeds: Seeds) -> Self {
        let engine = Engine::new(Keyspace::new(settings, seeds.hash), seeds.chance);
        Self::assemble(engine, Box::new(NoLog), Duty::Loads, None, Position::default())
    }

    fn assemble(
        mut engine: Engine,
        log: Box<dyn TransactionLog>,
        duty: Duty,
        stamper: Option<Stamper>,
        applied: Position,
    ) -> Self {
        let is_open = log.gate() == Gate::Open;
        let appender = Rc::new(RefCell::new(Appender::new(log, stamper, applied)));
        engine.keyspace.work.set_pulse(Rc::clone(&appender) as _);
        let limits = Limits::default();
        let tracker = Tracker::new(applied.sequence, limits.tracker_slots);
        engine.keyspace.base_bytes = base_bytes(&tracker);
        Self {
            engine,
            tracker,
            unit: Unit::new(record::HEADER_BYTES),
            appender,
            duty,
            records_appended: 0,
            bytes_appended: 0,
            grown: Growth::default(),
            checksums: Checksums::default(),
            pins: Pins::default(),
            tiering: None,
            compaction: None,
            limits,
            unapplied: Unapplied::default(),
            is_open,
            is_tracker_broken: false,
            is_clock_broken: false,
        }
    }

    /// Sets other limits than those that serve. Before anything was written here.
    ///
    /// # Panics
    /// Something is written and not yet durable.
    pub fn limit(&mut self, limits: Limits) {
        assert!(self.tracker.is_clean(), "what is dirty would be forgotten");
        self.tracker = Tracker::new(self.tracker.durable(), limits.tracker_slots);
        self.engine.keyspace.base_bytes = base_bytes(&self.tracker);
        self.limits = limits;
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
        if let Some(stamper) = &mut self.appender.borrow_mut().stamper {
            stamper.reuses_counters = true;
        }
    }

    /// Lets no long command renew the lease, so that a test can prove that it would notice.
    #[doc(hidden)]
    pub fn break_renewal(&mut self) {
        self.appender.borrow_mut().is_renewal_broken = true;
    }

    /// Puts another log in the place of this one, made from it, so that a test can listen in.
    #[doc(hidden)]
    pub fn wrap_log(
        &mut self,
        wrap: impl FnOnce(Box<dyn TransactionLog>) -> Box<dyn TransactionLog>,
    ) {
        let mut appender = self.appender.borrow_mut();
        let log = std::mem::replace(&mut appender.log, Box::new(NoLog));
        appender.log = wrap(log);
    }

    /// A turn begins: what long commands append says this time.
    pub fn begin_turn(&mut self, clock: &Rc<LeaseClock>, began: Moment, now: UnixMillis) {
        self.appender.borrow_mut().begin_turn(clock, began, now);
    }

    /// Lets long commands renew the lease of this process, which leads.
    pub fn renew_amid(&mut self, renewal: Renewal) {
        self.appender.borrow_mut().renewal = Some(renewal);
    }

    /// Tells of each record appended since the last call, and of an instant before it was handed to
    /// the log. Whether there were any.
    pub fn drain_sent(&mut self, mut tell: impl FnMut(Sequence, Moment)) -> bool {
        let sent = &mut self.appender.borrow_mut().sent;
        let are_any = !sent.is_empty();
        sent.drain(..).for_each(|(place, at)| tell(place, at));
        are_any
    }

    /// The record that holds what executes now.
    pub fn gathering(&self) -> Sequence {
        self.newest_appended().next()
    }

    /// The last record appended: its place in the log, as far as can be told.
    pub fn appended(&self) -> Position {
        self.in_log(self.newest_appended())
    }

    /// What waits for everything appended waits for this.
    pub fn newest_appended(&self) -> Sequence {
        self.appender.borrow().appended.sequence
    }

    /// How many places further on than meant the records stand that are not yet durable. While it
    /// stays, so does the place of every record.
    pub fn shifted(&self) -> u64 {
        self.appender.borrow().shifted
    }

    /// Through this place the log is durable: our records, and void ones behind them.
    pub fn durable(&self) -> Position {
        self.in_log(self.tracker.durable())
    }

    /// Where a record that is not yet durable comes to stand.
    pub fn in_log(&self, meant: Sequence) -> Position {
        let appender = self.appender.borrow();
        appender.appended.at(Sequence(meant.0 + appender.shifted))
    }

    /// The record that what reveals everything until now must wait for.
    pub fn newest(&self) -> Sequence {
        if self.is_tracker_broken { Sequence::ZERO } else { self.tracker.newest() }
    }

    fn standing_stamper<T>(&self, look: impl FnOnce(&Stamper) -> T) -> T {
        look(self.appender.borrow().stamper.as_ref().expect("who leads stamps"))
    }

    /// Where the log's chain stands behind the last record appended or applied, and its counter.
    fn standing(&self) -> (Chain, u64) {
        match &self.duty {
            Duty::Leads => self.standing_stamper(|it| (it.chain(), it.counter())),
            Duty::Follows(following) => {
                let replayer = &following.replayer;
                (replayer.chain(), replayer.counter())
            }
            Duty::Loads => (Chain::start(Incarnation::default()), 0),
        }
    }

    /// Where the log's chain stands behind the last record appended or applied.
    pub fn chain(&self) -> Chain {
        self.standing().0
    }

    /// The last record appended or applied, as other processes know it.
    pub fn newest_id(&self) -> RecordId {
        let (chain, counter) = self.standing();
        RecordId { chain, counter }
    }

    /// The clock in the newest record that this process appended or applied. A reply that rests on
    /// it waits for that record.
    pub fn recorded_clock(&self) -> Option<UnixMillis> {
        (!self.is_clock_broken).then_some(self.newest_clock())
    }

    /// As [`Self::recorded_clock`], whatever a test has broken.
    pub fn newest_clock(&self) -> UnixMillis {
        match &self.duty {
            Duty::Leads => self.standing_stamper(Stamper::clock),
            Duty::Follows(following) => following.replayer.clock(),
            Duty::Loads => UnixMillis(0),
        }
    }

    /// Whether the log took effects when it was last polled.
    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Whether a write may execute now. Not before records that are held.
    pub fn gate(&self) -> Gate {
        let appender = self.appender.borrow();
        match appender.log.gate() {
            Gate::Open if appender.holds_records() => Gate::Wait,
            gate => gate,
        }
    }

    /// While this number stays, so does what [`Self::gate`] says, of a process that leads. It may
    /// change amid a command: one that takes long has the log polled.
    pub fn gate_serial(&self) -> u64 {
        self.appender.borrow().gate_serial
    }

    /// Whether parts of a large unit are kept here, because the log does not take them yet.
    pub fn holds_records(&self) -> bool {
        self.appender.borrow().holds_records()
    }

    /// Whether the log was handed records that are not durable yet.
    pub fn is_in_log(&self) -> bool {
        self.appender.borrow().is_in_log()
    }

    /// Whether effects wait for a commit.
    pub fn has_gathered(&self) -> bool {
        self.appender.borrow().has_gathered() || !self.unit.effects.is_empty()
    }

    /// The record that what reveals everything executed so far waits for, by the running unit too.
    pub fn newest_executed(&self) -> Sequence {
        if self.has_gathered() { self.gathering() } else { self.newest_appended() }
    }

    /// Whether so much has gathered that the turn should commit before it goes on.
    pub fn is_record_full(&self) -> bool {
        self.appender.borrow().gathered.len() >= self.limits.record_bytes_target
    }

    /// The record that a reply must wait for, given what its unit observed, and notes what the
    /// unit wrote.
    pub fn settle_unit(&mut self, now: UnixMillis) -> Sequence {
        if self.unit.changes > 0 {
            let gathering = match self.engine.keyspace.has_lost_value() {
                // It may have ended halfway for want of the value. Nothing of it is written, and
                // nobody is told of it: this life ends.
                true => self.forsake_unit(),
                false => self.gather_unit(now),
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

    /// Drops the effects of the unit; a record that will not be written.
    fn forsake_unit(&mut self) -> Sequence {
        self.unit.effects.take();
        self.gathering()
    }

    /// The record that a reply must wait for because it hid keys by the recorded clock. What a
    /// replica has applied is durable.
    fn clock_observed(&self) -> Sequence {
        let rests_on_clock = self.unit.rests_on_clock && !self.is_clock_broken;
        if rests_on_clock && matches!(self.duty, Duty::Leads) {
            return self.newest_appended();
        }
        Sequence::ZERO
    }

    /// Gathers what the unit did with what the turn's units before it did; the record that holds
    /// it. A unit that outgrows one record is appended at once, and its reply waits for its last
    /// part.
    fn gather_unit(&mut self, now: UnixMillis) -> Sequence {
        let mut appender = self.appender.borrow_mut();
        let before = appender.gathered.len();
        let begins = self.unit.effects.move_into(&mut appender.gathered);
        if appender.gathered.len() - record::HEADER_BYTES <= appender.payload_bytes_max {
            return appender.appended.sequence.next();
        }
        appender.append_large_unit(before..begins, now);
        drop(appender);
        self.note_grown();
        self.newest_appended()
    }

    /// Asks the processor for what requests about these keys will look at, so that the misses of
    /// all overlap. Changes their order.
    pub fn prefetch(&self, keys: &mut [(DatabaseId, KeyHash)]) {
        for (_, hash) in &*keys {
            self.tracker.prefetch(*hash);
        }
        self.engine.keyspace.prefetch(keys);
    }

    /// Appends what has gathered, if anything has and the log takes it now.
    pub fn commit(&mut self, now: UnixMillis) {
        let is_lost = self.engine.keyspace.has_lost_value();
        if is_lost || !self.has_gathered() || self.gate() == Gate::Wait {
            return;
        }
        let mut appender = self.appender.borrow_mut();
        self.unit.effects.move_into(&mut appender.gathered);
        appender.append_gathered(now);
        drop(appender);
        self.note_grown();
    }

    /// Appends a `Renew`, if nothing has gathered: a record with data renews as well.
    pub fn renew(&mut self, renewal: &Renewal, now: UnixMillis) {
        if self.unit.effects.is_empty() {
            self.appender.borrow_mut().renew(renewal, now);
            self.note_grown();
        }
    }

    /// Appends a `Yield`: the last record of this holder. Nothing may have gathered.
    pub fn append_yield(&mut self, successor: &[u8], now: UnixMillis) {
        self.appender.borrow_mut().append_yield(successor, now);
        self.note_grown();
    }

    /// Counts what was appended, by long commands too.
    fn note_grown(&mut self) {
        let mut appender = self.appender.borrow_mut();
        self.grown += std::mem::take(&mut appender.grown);
        let Growth { records, bytes } = std::mem::take(&mut appender.data);
        self.records_appended += records;
        self.bytes_appended += bytes;
    }

    /// Makes what was appended durable on this thread, where that is quicker (a lone client).
    pub fn commit_inline(&mut self) -> bool {
        let mut appender = self.appender.borrow_mut();
        appender.gate_serial += 1;
        appender.log.commit_inline()
    }

    /// What a start would spend on the log behind the last snapshot, as bytes of a snapshot.
    pub fn replay_cost_bytes(&self) -> u64 {
        self.grown.cost_bytes(&self.appender.borrow().log.limits())
    }

    /// Why the log would take no writes from this process if it led.
    pub fn trouble(&self) -> Option<Refusal> {
        self.appender.borrow().log.trouble()
    }

    /// Whether appended records are not durable yet, those that are held among them.
    pub fn is_in_flight(&self) -> bool {
        self.tracker.durable() < self.newest_appended()
    }

    /// In how many nanoseconds the log wants to be polled though nothing happens.
    pub fn log_wait_nanos(&self) -> Option<u64> {
        self.appender.borrow().log.wait_nanos()
    }

    /// Whether somebody may wait for this holder's lease to end.
    pub fn is_watched(&mut self) -> bool {
        self.appender.borrow_mut().log.is_watched()
    }

    /// Learns what became durable, or applies what was read; `told` takes what it says of who
    /// leads, and `interest` what was applied brought.
    pub fn poll(&mut self, told: &mut Vec<Told>, interest: &mut Interest) -> Progress {
        if matches!(self.duty, Duty::Leads) {
            self.appender.borrow_mut().poll();
            self.is_open = self.gate() == Gate::Open;
            return self.learn().unwrap_or(Progress::Nothing);
        }
        self.read_on(told, interest)
    }

    /// What became of this primary's records, as far as it was told, amid long commands too.
    fn learn(&mut self) -> Option<Progress> {
        self.note_grown();
        let mut appender = self.appender.borrow_mut();
        let is_news = appender.durable > self.tracker.durable();
        if is_news {
            self.tracker.durable_through(appender.durable);
        }
        let is_news = std::mem::take(&mut appender.has_renewed_ahead) || is_news;
        match &appender.failed {
            Some(error @ (AppendError::Fatal(_) | AppendError::LogLost)) => {
                Some(Progress::Fatal(explain(error)))
            }
            Some(error) => Some(Progress::Deposed(explain(error))),
            None if appender.is_lost => {
                Some(Progress::Fatal("the transaction log was deleted".to_owned()))
            }
            None => is_news.then_some(Progress::Durable),
        }
    }

    /// Keeps what this shard held behind a record, and everything since, for somebody of this name:
    /// a snapshot at or before it, and the log from that one's record on. What goes just now, or
    /// has gone before, does not come back: who pins first and then looks what is there knows what
    /// stays. A name has one pin, which it may move. Pins end with this life of the process. Made
    /// for readers of the log that come from outside; only tests have one yet.
    pub fn pin(&mut self, name: impl Into<String>, at: Sequence) {
        self.pins.set(name.into(), at);
    }

    /// Keeps one snapshot in its store, and no log, for somebody of this name who is reading it.
    pub fn pin_snapshot(&mut self, name: impl Into<String>, snapshot: &str) {
        self.pins.set_snapshot(name.into(), snapshot.to_owned());
    }

    /// Ends what [`Self::pin`] or [`Self::pin_snapshot`] began.
    pub fn unpin(&mut self, name: &str) {
        self.pins.remove(name);
    }

    /// Who needs what of the log and of old snapshots.
    pub fn pins(&self) -> &Pins {
        &self.pins
    }

    /// Lets the log forget records through here, as far as nobody needs them.
    pub fn trim(&mut self, through: Position) {
        let pinned = self.pins.oldest().map(|(_, at)| Sequence(at.0.saturating_sub(1)));
        let sequence = pinned.map_or(through.sequence, |pinned| pinned.min(through.sequence));
        if sequence > Sequence::ZERO {
            self.appender.borrow_mut().log.trim(through.at(sequence));
        }
    }
}

fn explain(error: &AppendError) -> String {
    format!("what has executed cannot be made durable: {error}")
}

/// Memory of a shard without a key, in bytes.
fn base_bytes(tracker: &Tracker) -> usize {
    tracker.allocated_bytes() + size_of::<Engine>()
}
