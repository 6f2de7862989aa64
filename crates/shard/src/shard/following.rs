//! A shard that is read: what another process appends is applied here, until this one leads.
//!
//! Before it stands, it compares: is the last record that counted here still in the log, where it
//! was? A log that lost what it had acknowledged, or that was restored from a backup, and then grew
//! again, takes a `Lead` at the right number from anybody. That `Lead` would count for this process
//! alone, and two would lead. The same is asked where suspiciously many records in a row are void.

use super::{Duty, Progress, Shard};
use crate::foresight::Foresight;
use crate::recovery::Replayer;
use crate::role::heartbeat::Heartbeat;
use crate::role::member::Member;
use crate::tiering::Made;
use crate::tracker::Tracker;
use base::{Epoch, Incarnation, Position, Sequence, UnixMillis};
use bytes::Bytes;
use engine::execute::Engine;
use engine::interest::Interest;
use std::collections::VecDeque;
use txlog::{
    ANOTHER_HISTORY, AppendError, Gate, History, LogEvent, Stamper, Ticket, TransactionLog,
    WriterId,
};

/// Void records in a row that are looked into, and again at each doubling. A deposed writer leaves
/// as many as its log has puts under way, eight with JetStream, and a bad network repeats that.
const VOIDS_SUSPICIOUS: u64 = 32;

/// What a process knows that reads.
pub(super) struct Following {
    pub(super) replayer: Replayer,
    bid: Option<Bid>,
    /// Void records are being looked into.
    asked: Option<Ticket>,
}

/// A follower asks the log for more while it has fewer bytes of records that are not applied.
const UNAPPLIED_BYTES_MAX: usize = 1 << 20;

/// What the log told and was not taken up yet.
#[derive(Default)]
pub(super) struct Unapplied {
    events: VecDeque<LogEvent>,
    /// Bytes of the records among them.
    bytes: usize,
    /// What these will change.
    foresight: Foresight,
    /// Whether some of it had to wait when the log was last read.
    has_waited: bool,
    /// Room for what the log tells.
    polled: Vec<LogEvent>,
}

impl Unapplied {
    fn take_up(&mut self) {
        self.bytes += self.polled.iter().map(read_bytes).sum::<usize>();
        self.events.extend(self.polled.drain(..));
    }

    fn next(&mut self) -> Option<LogEvent> {
        let event = self.events.pop_front()?;
        self.bytes -= read_bytes(&event);
        Some(event)
    }
}

/// Bytes of a record that was read.
fn read_bytes(event: &LogEvent) -> usize {
    match event {
        LogEvent::Read(_, bytes) => bytes.len(),
        _ => 0,
    }
}

/// A `Lead` under way.
struct Bid {
    stamper: Stamper,
    /// The record, until it is known that the log is the one that was read.
    unsent: Option<(Ticket, Bytes)>,
}

/// What a log told that concerns who leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// A record that counts was applied.
    Heartbeat(Heartbeat),
    /// All that was there is applied.
    CaughtUp(Sequence),
    /// The `Lead` under way is durable: this process leads.
    Led,
    /// The `Lead` under way failed, and the log has this much at least.
    Lost {
        tail: Sequence,
    },
    HolderDead,
}

impl Shard {
    /// A shard whose engine has applied what `replayer` consumed, and whose log is being read on.
    /// Whoever polls it takes the keyspace's garbage.
    pub fn following(
        mut engine: Engine,
        log: Box<dyn TransactionLog>,
        replayer: Replayer,
        incarnation: Incarnation,
    ) -> Self {
        let applied = Position { incarnation, sequence: replayer.at() };
        engine.keyspace.leaves_garbage = true;
        let duty = Duty::Follows(Box::new(Following { replayer, bid: None, asked: None }));
        Self::assemble(engine, log, duty, None, applied)
    }

    /// Whether this process reads what another writes.
    pub fn is_following(&self) -> bool {
        matches!(self.duty, Duty::Follows(_))
    }

    /// The newest clock in the records applied: a replica's time. `None` on the primary.
    pub fn applied_clock(&self) -> Option<UnixMillis> {
        match &self.duty {
            Duty::Leads | Duty::Loads => None,
            Duty::Follows(following) => Some(following.replayer.clock()),
        }
    }

    /// Whether a follower has to wait with the next record until values have left memory that the
    /// ones before it brought in. The other members never wait for that, nor does it for ever.
    fn lacks_room(&mut self, foresight: &Foresight) -> bool {
        let Duty::Follows(following) = &self.duty else { return false };
        let now = following.replayer.clock();
        let Some(tiering) = &mut self.tiering else { return false };
        foresight.make_room(&mut self.engine.keyspace, tiering, now) != Made::Done
    }

    /// Learns what the log told, and applies what was read of it.
    pub(super) fn read_on(&mut self, told: &mut Vec<Told>, interest: &mut Interest) -> Progress {
        let mut unapplied = std::mem::take(&mut self.unapplied);
        unapplied.has_waited = !unapplied.events.is_empty();
        if unapplied.bytes < UNAPPLIED_BYTES_MAX && !self.lacks_room(&unapplied.foresight) {
            self.appender.borrow_mut().log.poll(&mut unapplied.polled);
            unapplied.take_up();
        }
        self.fetch_ahead(&mut unapplied);
        let mut progress = Progress::Nothing;
        while !self.lacks_room(&unapplied.foresight)
            && self.has_foreseen(&mut unapplied)
            && let Some(event) = unapplied.next()
        {
            let found = match &self.duty {
                // It has just begun to lead.
                Duty::Leads => {
                    self.appender.borrow_mut().take(event);
                    Progress::Nothing
                }
                Duty::Follows(_) => self.follow_on(event, told, interest),
                Duty::Loads => Progress::Nothing,
            };
            let (consumed, keyspace) = (self.newest_appended(), &mut self.engine.keyspace);
            match &self.duty {
                Duty::Leads => unapplied.foresight.forget(keyspace),
                _ => unapplied.foresight.note_consumed(consumed, keyspace),
            }
            match found {
                Progress::Nothing => {}
                Progress::Durable => progress = Progress::Durable,
                end => {
                    progress = end;
                    unapplied.foresight.forget(&mut self.engine.keyspace);
                    unapplied = Unapplied::default();
                }
            }
        }
        self.unapplied = unapplied;
        self.is_open = self.gate() == Gate::Open;
        match &self.duty {
            Duty::Leads => self.learn().unwrap_or(progress),
            Duty::Follows(_) | Duty::Loads => progress,
        }
    }

    /// Has the values come that the records which were read will change.
    fn fetch_ahead(&mut self, unapplied: &mut Unapplied) {
        let Duty::Follows(following) = &self.duty else { return };
        let Some(tiering) = &mut self.tiering else { return };
        let records = unapplied.events.iter().filter_map(|event| match event {
            LogEvent::Read(position, bytes) => Some((position.sequence, bytes)),
            _ => None,
        });
        let keyspace = &mut self.engine.keyspace;
        unapplied.foresight.fetch_ahead(records, &following.replayer, keyspace, tiering);
    }

    /// Whether nothing that the next event needs is still being read.
    fn has_foreseen(&mut self, unapplied: &mut Unapplied) -> bool {
        if !matches!(unapplied.events.front(), Some(LogEvent::Read(..))) {
            return true;
        }
        if unapplied.foresight.is_empty() {
            self.fetch_ahead(unapplied);
        }
        self.tiering.as_ref().is_none_or(|tiering| unapplied.foresight.is_ready(tiering))
    }

    /// What was fetched for records that were not applied yet need not stay: they are not applied,
    /// or the tier goes.
    pub fn forget_foreseen(&mut self) {
        self.unapplied.foresight.forget(&mut self.engine.keyspace);
    }

    /// Whether records were read that have to wait for memory, or for values.
    pub fn has_unapplied(&self) -> bool {
        !self.unapplied.events.is_empty()
    }

    /// Whether what was applied last was read some time before: it does not tell what time it is.
    pub fn is_late(&self) -> bool {
        self.unapplied.has_waited || self.has_unapplied()
    }

    /// Appends a `Lead` behind what is applied, once the log has been found to hold that.
    /// `is_set_back`: the shard's clock goes back to `now`.
    pub fn stand(
        &mut self,
        writer: WriterId,
        lease_millis: u64,
        member: &Member,
        now: UnixMillis,
        is_set_back: bool,
    ) {
        if let Duty::Follows(following) = &mut self.duty {
            let replayer = &following.replayer;
            let chain = replayer.chain();
            let mut stamper = Stamper::new(writer, chain, replayer.clock());
            stamper.continue_sum(replayer.sum());
            stamper.use_keys(replayer.keys().clone());
            let mut appender = self.appender.borrow_mut();
            let applied = appender.appended;
            if is_set_back {
                stamper.set_clock_back();
            }
            let record = stamper.lead(lease_millis, &member.encode(), now, applied.sequence);
            // A chain that nobody has led is the beginning of this incarnation of the log.
            let unsent = if chain.epoch == Epoch(0) || replayer.joins_histories() {
                appender.log.append(applied, record);
                None
            } else {
                Some((appender.log.compare(applied.at(replayer.counted()), chain), record))
            };
            following.bid = Some(Bid { stamper, unsent });
        }
    }

    /// Asks the log whether the holder is dead.
    pub fn probe_holder(&mut self) {
        self.appender.borrow_mut().log.probe_holder();
    }

    /// What an event of the log means while this process follows.
    pub(super) fn follow_on(
        &mut self,
        event: LogEvent,
        told: &mut Vec<Told>,
        interest: &mut Interest,
    ) -> Progress {
        match event {
            LogEvent::Read(position, bytes) => return self.apply(position, &bytes, told, interest),
            LogEvent::CaughtUp(position) => told.push(Told::CaughtUp(position.sequence)),
            LogEvent::HolderDead => told.push(Told::HolderDead),
            LogEvent::Durable(position) => return self.begin_to_lead(position, told),
            LogEvent::Failed(_, AppendError::Fatal(what)) => return Progress::Fatal(what),
            LogEvent::Failed(_, error) => self.lose_bid(&error, told),
            LogEvent::Trimmed { .. } => return Progress::Trimmed,
            LogEvent::Lost => {
                return Progress::Fatal("the transaction log was deleted or cut".to_owned());
            }
            LogEvent::ReadFailed(what) => {
                return Progress::Fatal(format!("the transaction log cannot be read: {what}"));
            }
            // Of a `Lead` under way: what stands before it is void, and nothing to apply.
            LogEvent::Shifted { .. } => {}
            LogEvent::Compared { ticket, history } => return self.hear_compared(ticket, history),
            LogEvent::Unanswered(ticket, why) => self.hear_unanswered(ticket, &why, told),
            LogEvent::Tail { .. } | LogEvent::First { .. } => {}
        }
        Progress::Nothing
    }

    fn apply(
        &mut self,
        position: Position,
        bytes: &Bytes,
        told: &mut Vec<Told>,
        interest: &mut Interest,
    ) -> Progress {
        let Duty::Follows(following) = &mut self.duty else { return Progress::Nothing };
        let replayer = &mut following.replayer;
        match replayer.consume(&mut self.engine, position.sequence, bytes, interest) {
            Ok(consumed) => told.extend(Heartbeat::of(&consumed).map(Told::Heartbeat)),
            Err(error) => {
                // The record is whole: what it changes was lost here.
                let lost = self.engine.keyspace.cold_failure();
                let stops = || Progress::Fatal(format!("this replica stops: {error}"));
                return lost.map_or_else(stops, Progress::Deposed);
            }
        }
        self.appender.borrow_mut().appended = position;
        let (counted, chain) = (replayer.counted(), replayer.chain());
        let voids = position.sequence.0 - counted.0;
        if voids >= VOIDS_SUSPICIOUS && voids.is_power_of_two() && !replayer.joins_histories() {
            following.asked =
                Some(self.appender.borrow_mut().log.compare(position.at(counted), chain));
        }
        if voids == 0 && following.bid.as_ref().is_some_and(|bid| bid.unsent.is_some()) {
            self.lose_bid(&AppendError::Conflict { tail: position }, told);
        }
        self.grown.add(bytes.len());
        self.tracker.durable_through(position.sequence);
        Progress::Durable
    }

    /// The `Lead` is durable: what was applied before it is the newest there is.
    fn begin_to_lead(&mut self, position: Position, told: &mut Vec<Told>) -> Progress {
        let Duty::Follows(following) = &mut self.duty else { return Progress::Nothing };
        let Some(Bid { stamper, .. }) = following.bid.take() else { return Progress::Nothing };
        let replayer = &following.replayer;
        // Its own reading may have gone past the `Lead` already: if by void records only, it leads,
        // and its next record moves on behind them; otherwise somebody else leads by now.
        if replayer.at() >= position.sequence && replayer.chain() != stamper.chain() {
            return Progress::Deposed("it learned too late that it led".to_owned());
        }
        self.duty = Duty::Leads;
        self.appender.borrow_mut().begin_to_lead(stamper, position);
        self.tracker = Tracker::new(position.sequence, self.limits.tracker_slots);
        told.push(Told::Led);
        Progress::Durable
    }

    /// The log was compared with what was read of it.
    fn hear_compared(&mut self, ticket: Ticket, history: History) -> Progress {
        let Duty::Follows(following) = &mut self.duty else { return Progress::Nothing };
        let bids = |(of, _): &mut (Ticket, Bytes)| *of == ticket;
        let lead = following.bid.as_mut().and_then(|bid| bid.unsent.take_if(bids));
        let asked = following.asked.take_if(|asked| *asked == ticket);
        match history {
            _ if lead.is_none() && asked.is_none() => {}
            History::Same => {
                if let Some((_, record)) = lead {
                    let mut appender = self.appender.borrow_mut();
                    let applied = appender.appended;
                    appender.log.append(applied, record);
                }
            }
            History::Other => {
                return Progress::Fatal(format!("this replica stops: {ANOTHER_HISTORY}"));
            }
            History::Lost => {
                return Progress::Fatal("the transaction log was deleted or cut".to_owned());
            }
            // The last record that counts is trimmed by nobody who has not gone past it.
            History::Trimmed => return Progress::Trimmed,
        }
        Progress::Nothing
    }

    fn hear_unanswered(&mut self, ticket: Ticket, why: &str, told: &mut Vec<Told>) {
        let Duty::Follows(following) = &mut self.duty else { return };
        following.asked.take_if(|asked| *asked == ticket);
        let unsent = following.bid.as_ref().and_then(|bid| bid.unsent.as_ref());
        if unsent.is_some_and(|(of, _)| *of == ticket) {
            tracing::warn!("cannot compare the log with what was read of it: {why}");
            self.lose_bid(&AppendError::NotAttempted, told);
        }
    }

    fn lose_bid(&mut self, error: &AppendError, told: &mut Vec<Told>) {
        let Duty::Follows(following) = &mut self.duty else { return };
        if following.bid.take().is_none() {
            return;
        }
        tracing::info!("did not become the primary: {error}");
        let tail = match error {
            AppendError::Conflict { tail } => tail.sequence,
            _ => self.newest_appended(),
        };
        told.push(Told::Lost { tail });
    }
}
