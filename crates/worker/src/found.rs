//! A new log with data: restored to some moment of another one, or imported.
//!
//! ```text
//! engine ─▶ record 1 of the new log: its origin
//!        ─▶ parts in the new archive ─▶ restored and compared ─▶ the snapshot is published
//! ```
//! Killed before the record is there, the new log is as empty as any that nobody has begun. Killed
//! behind it, it has a beginning and no data, and no server starts on it: it says so.

use crate::take::{Claimed, Worker};
use archive::{Content, Proof, Snapshot};
use base::{Position, Sequence, UnixMillis};
use engine::execute::Engine;
use shard::loading::{Failure, OpenLog};
use shard::recovery::Standing;
use txlog::reader::Goal;
use txlog::{
    Chain, Kind, LogEvent, Origin, Part, Stamper, Ticket, TransactionLog, WriterId, empty_record,
};

/// What a shard held at a moment.
pub struct ShardData {
    pub engine: Engine,
    /// The last record whose effects are in it.
    pub position: Position,
    pub standing: Standing,
}

impl Worker {
    /// Loads what the shard held at the goal.
    ///
    /// # Errors
    /// The data cannot be had: no snapshot is old enough, or the log does not reach back.
    pub fn load_moment(&mut self, goal: Goal, claimed: &mut Claimed) -> Result<ShardData, Failure> {
        let mut loading = self.open()?;
        loading.end_at(goal);
        self.load(&mut loading, claimed)?;
        let (engine, replayer, log) =
            loading.into_loaded().ok_or("the loading ended and was not done")?;
        let standing = replayer.standing();
        if standing.at == Sequence::ZERO {
            return Err("the shard held nothing yet at that moment".into());
        }
        if engine.keyspace.is_partial() {
            tracing::warn!("at that moment the shard held a part of its master's data alone");
        }
        let position = Position { incarnation: log.incarnation, sequence: standing.at };
        Ok(ShardData { engine, position, standing })
    }

    /// Looks whether the archive is one in which nothing was begun yet.
    ///
    /// # Errors
    /// It is not, or cannot be read.
    pub fn must_be_empty(&self) -> Result<(), Failure> {
        let archive = self.store.archive();
        for content in Content::ALL {
            if archive.list(content)?.iter().any(|entry| entry.is_published) {
                let store = self.store.location();
                return Err(format!("there are snapshots in {store}: name another place").into());
            }
        }
        Ok(())
    }

    /// Begins a log with what an engine holds, whose newest clock is `clock`, and publishes the
    /// snapshot with which servers start on it.
    ///
    /// # Errors
    /// Log or archive are not empty, or cannot be written.
    pub fn found(
        &mut self,
        engine: Engine,
        clock: UnixMillis,
        origin: &Origin,
        mut log: OpenLog,
        claimed: &mut Claimed,
    ) -> Result<Snapshot, Failure> {
        let (first, standing) = self.begin_log(clock, origin, &mut log, claimed)?;
        let unproven = self.write(engine, first, &standing, claimed)?;
        if let Err(why) = self.compare(&unproven, claimed) {
            // Why it differs says more than what comes of that.
            let _ = unproven.writer.abandon();
            return Err(why);
        }
        let proof = Proof { checked: None, at_ms: self.clock.unix_millis().0 };
        let facts = unproven.facts(Some(proof));
        Ok(unproven.writer.publish(&facts)?)
    }

    /// Begins a log with the record that says where its data comes from.
    pub(crate) fn begin_log(
        &mut self,
        clock: UnixMillis,
        origin: &Origin,
        log: &mut OpenLog,
        claimed: &mut Claimed,
    ) -> Result<(Position, Standing), Failure> {
        self.must_be_empty()?;
        let before = self.must_be_new(log, claimed)?;
        let mut stamper = Stamper::new(WriterId(self.id), Chain::start(log.incarnation), clock);
        let payload = origin.encode();
        let mut buffer = empty_record(payload.len());
        buffer.extend_from_slice(&payload);
        let record = stamper.stamp(Kind::Origin, Part::Whole, buffer, clock, Sequence::ZERO);
        let standing = Standing {
            at: Sequence(1),
            chain: stamper.chain(),
            sum: stamper.sum().map(|sum| sum.value()),
            clock,
        };
        let ticket = log.handle.append(before, record);
        self.wait_durable(&mut *log.handle, before.next(), ticket, claimed)?;
        Ok((before.next(), standing))
    }

    /// Looks whether a log is one in which nothing was begun yet; where its first record goes.
    ///
    /// # Errors
    /// It is not, or does not answer.
    pub fn must_be_new(
        &mut self,
        log: &mut OpenLog,
        claimed: &mut Claimed,
    ) -> Result<Position, Failure> {
        let before = Position { incarnation: log.incarnation, sequence: Sequence::ZERO };
        let tail = self.ask_tail(&mut *log.handle, claimed)?;
        if tail != before {
            return Err("the new log has records already: name another place".into());
        }
        Ok(before)
    }

    fn wait_durable(
        &mut self,
        log: &mut dyn TransactionLog,
        at: Position,
        asked: Ticket,
        claimed: &mut Claimed,
    ) -> Result<(), Failure> {
        self.wait_for(log, claimed, |event| match event {
            LogEvent::Durable(through) if *through >= at => Some(Ok(())),
            // The snapshot says that it is the first one.
            LogEvent::Shifted { .. } => Some(Err("others write to the new log".to_owned())),
            LogEvent::Failed(ticket, error) if *ticket == asked => Some(Err(error.to_string())),
            _ => None,
        })
    }

    /// Asks a log for its newest record, and waits for the answer.
    ///
    /// # Errors
    /// The log does not say, or the worker is to stop.
    pub(crate) fn ask_tail(
        &mut self,
        log: &mut dyn TransactionLog,
        claimed: &mut Claimed,
    ) -> Result<Position, Failure> {
        let asked = log.tail();
        self.wait_for(log, claimed, |event| match event {
            LogEvent::Tail { ticket, position, .. } if *ticket == asked => Some(Ok(*position)),
            LogEvent::Unanswered(ticket, why) if *ticket == asked => Some(Err(why.clone())),
            _ => None,
        })
    }

    /// Polls the log until it answers.
    pub(crate) fn wait_for<T>(
        &mut self,
        log: &mut dyn TransactionLog,
        claimed: &mut Claimed,
        answer: impl Fn(&LogEvent) -> Option<Result<T, String>>,
    ) -> Result<T, Failure> {
        let mut events = Vec::new();
        loop {
            log.poll(&mut events);
            for event in events.drain(..) {
                if let Some(answered) = answer(&event) {
                    return answered.map_err(Into::into);
                }
            }
            self.rest(claimed)?;
            (self.wait)();
        }
    }
}
