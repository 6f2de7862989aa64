//! A shard that is read: what another process appends is applied here, until this one leads.

use super::{Duty, Progress, Shard};
use crate::recovery::Replayer;
use crate::role::member::Member;
use crate::role::sign::Sign;
use crate::tracker::Tracker;
use base::{Incarnation, Position, Sequence, UnixMillis};
use bytes::Bytes;
use engine::execute::Engine;
use engine::interest::Interest;
use txlog::{AppendError, LogEvent, Stamper, TransactionLog, WriterId};

/// What a log told that concerns who leads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Told {
    /// A record that counts was applied.
    Saw(Sign),
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
    pub fn following(
        engine: Engine,
        log: Box<dyn TransactionLog>,
        replayer: Replayer,
        incarnation: Incarnation,
    ) -> Self {
        let applied = Position { incarnation, sequence: replayer.at() };
        let duty = Duty::Follows { replayer: Box::new(replayer), bid: None };
        Self::assemble(engine, log, duty, applied)
    }

    /// Whether this process reads what another writes.
    pub fn is_following(&self) -> bool {
        matches!(self.duty, Duty::Follows { .. })
    }

    /// The newest clock in the records applied: a replica's time. `None` on the primary.
    pub fn applied_clock(&self) -> Option<UnixMillis> {
        match &self.duty {
            Duty::Leads(_) => None,
            Duty::Follows { replayer, .. } => Some(replayer.clock()),
        }
    }

    /// Appends a `Lead` behind what is applied. `is_set_back`: the shard's clock goes back to
    /// `now`.
    pub fn stand(
        &mut self,
        writer: WriterId,
        lease_millis: u64,
        member: &Member,
        now: UnixMillis,
        is_set_back: bool,
    ) {
        if let Duty::Follows { replayer, bid } = &mut self.duty {
            let mut stamper = Stamper::new(writer, replayer.chain(), replayer.clock());
            let durable = self.appended.sequence;
            if is_set_back {
                stamper.set_clock_back();
            }
            let record = stamper.lead(lease_millis, &member.encode(), now, durable);
            self.log.append(self.appended, record);
            *bid = Some(Box::new(stamper));
        }
    }

    /// Asks the log whether the holder is dead.
    pub fn probe_holder(&mut self) {
        self.log.probe_holder();
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
            LogEvent::Tail { .. } | LogEvent::First { .. } | LogEvent::Unanswered(..) => {}
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
        let Duty::Follows { replayer, .. } = &mut self.duty else { return Progress::Nothing };
        match replayer.consume(&mut self.engine, position.sequence, bytes, interest) {
            Ok(consumed) => told.extend(Sign::of(&consumed).map(Told::Saw)),
            Err(error) => return Progress::Fatal(format!("this replica stops: {error}")),
        }
        self.appended = position;
        self.grown.add(bytes.len());
        self.tracker.durable_through(position.sequence);
        Progress::Durable
    }

    /// The `Lead` is durable: what was applied before it is the newest there is.
    fn begin_to_lead(&mut self, position: Position, told: &mut Vec<Told>) -> Progress {
        let Duty::Follows { replayer, bid } = &mut self.duty else { return Progress::Nothing };
        let Some(stamper) = bid.take() else { return Progress::Nothing };
        // Its own reading may have gone past the `Lead` already: if by void records only, it leads,
        // and its next record moves on behind them; otherwise somebody else leads by now.
        if replayer.at() >= position.sequence && replayer.chain() != stamper.chain() {
            return Progress::Deposed("it learned too late that it led".to_owned());
        }
        self.log.stop_reading();
        self.duty = Duty::Leads(*stamper);
        self.appended = position;
        self.tracker = Tracker::new(position.sequence);
        told.push(Told::Led);
        Progress::Durable
    }

    fn lose_bid(&mut self, error: &AppendError, told: &mut Vec<Told>) {
        let Duty::Follows { bid, .. } = &mut self.duty else { return };
        if bid.take().is_none() {
            return;
        }
        tracing::info!("did not become the primary: {error}");
        let tail = match error {
            AppendError::Conflict { tail } => tail.sequence,
            _ => self.appended.sequence,
        };
        told.push(Told::Lost { tail });
    }
}
