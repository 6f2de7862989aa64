//! The proof of a snapshot: it is restored from what the archive keeps, by the code of a start, and
//! what comes of it is compared with what was written, and with what the primary says that it had.

use crate::progress::Phase;
use crate::take::{Claimed, Unproven, Worker};
use archive::Proof;
use base::Position;
use engine::execute::Engine;
use engine::interest::Interest;
use engine::keyspace::Keyspace;
use shard::loading::{Failure, OpenLog, Parts, PartsError, Step};
use shard::recovery::Replayer;
use txlog::{Chain, LogEvent, record::ChainValue};

/// Keys that are restored between two looks at the clock.
const STEP_KEYS: u64 = 16_384;

/// How long the primary's next checksum is waited for, in nanoseconds: three times as long as one
/// that is writing leaves between two.
const PATIENCE_NANOS: u64 = 30_000_000_000;

/// What a snapshot keeps and no digest of the data covers: whom the shard follows, and whether its
/// data is a part of a master's.
pub fn traits(engine: &Engine) -> String {
    let keyspace = &engine.keyspace;
    format!("{:?}, partial: {}", keyspace.replica_of(), keyspace.is_partial())
}

fn unrestored(error: PartsError) -> Failure {
    match error {
        PartsError::Gone(error) => format!("what was written is gone: {error}"),
        PartsError::Unread(what) => format!("what was written cannot be read: {what}"),
        PartsError::Damaged(what) | PartsError::Unsupported(what) => {
            format!("what was written cannot be restored: {what}")
        }
    }
    .into()
}

impl Worker {
    /// Restores what was written into a second engine and compares; then replays the log behind it
    /// to the next record in which the primary says what it had, if one comes.
    ///
    /// # Errors
    /// What differs.
    pub(crate) fn prove(
        &mut self,
        unproven: &Unproven,
        log: OpenLog,
        claimed: &mut Claimed,
    ) -> Result<Proof, Failure> {
        let mut engine = self.compare(unproven, claimed)?;
        let checked = self.replay(&mut engine, unproven, log, claimed)?;
        Ok(Proof { checked, at_ms: self.clock.unix_millis().0 })
    }

    /// Restores what was written into a second engine, and compares.
    ///
    /// # Errors
    /// What differs.
    pub(crate) fn compare(
        &mut self,
        unproven: &Unproven,
        claimed: &mut Claimed,
    ) -> Result<Engine, Failure> {
        let engine = self.rehearse(unproven, claimed)?;
        let digest = self.digest(&engine, claimed)?;
        if digest != unproven.digest {
            return Err(format!(
                "what was written gives other data than was to be written: digest {digest} instead \
                 of {}",
                unproven.digest
            )
            .into());
        }
        let traits = traits(&engine);
        if traits != unproven.traits {
            let what = format!("what was written says {traits} instead of {}", unproven.traits);
            return Err(what.into());
        }
        Ok(engine)
    }

    fn rehearse(&mut self, unproven: &Unproven, claimed: &mut Claimed) -> Result<Engine, Failure> {
        let keyspace = Keyspace::new(self.settings.clone(), self.other_hash_key());
        let mut engine = Engine::new(keyspace, self.seeds.chance);
        let written = unproven.writer.written(&unproven.facts(None));
        let total = written.manifest.bytes();
        let source = &unproven.writer;
        let now = self.clock.unix_millis();
        let mut parts = Parts::open(source, written, &mut self.queues, &engine.keyspace, now)?;
        let loaded = loop {
            let step = match parts.load(source, &mut engine.keyspace, STEP_KEYS) {
                Ok(step) => step,
                Err(error) => break Err(unrestored(error)),
            };
            if let Err(why) = self.note(claimed, Phase::Rehearsing, parts.offset(), total) {
                break Err(why);
            }
            match step {
                Step::More => {}
                Step::Wait => (self.wait)(),
                Step::Done => break Ok(()),
            }
        };
        self.queues = parts.into_queues();
        loaded.map(|()| engine)
    }

    /// Applies the log behind the snapshot until the primary says what it had; the record in which
    /// it last did.
    fn replay(
        &mut self,
        engine: &mut Engine,
        unproven: &Unproven,
        mut log: OpenLog,
        claimed: &mut Claimed,
    ) -> Result<Option<u64>, Failure> {
        let point = &unproven.point;
        let chain = Chain { value: ChainValue(point.chain), epoch: point.epoch };
        let mut replayer = Replayer::new(point.position.sequence, chain);
        replayer.use_keys(self.store.keys().clone());
        replayer.clock_at_least(point.clock);
        if let Some(sum) = point.log_sum {
            replayer.continue_sum(sum);
        }
        let from: Position = point.position.next();
        log.handle.read_from(from);
        let began = self.clock.monotonic();
        let (mut events, mut nobody) = (Vec::new(), Interest::default());
        let mut end = None;
        loop {
            log.handle.poll(&mut events);
            let is_idle = events.is_empty();
            for event in events.drain(..) {
                match event {
                    LogEvent::Read(position, bytes) => {
                        replayer.consume(engine, position.sequence, &bytes, &mut nobody)?;
                        if let Some(checked) = replayer.checked() {
                            return Ok(Some(checked.0));
                        }
                    }
                    LogEvent::CaughtUp(position) => end = Some(position.sequence),
                    LogEvent::Trimmed { first } => {
                        let what = format!("the log was trimmed meanwhile, up to record {first}");
                        return Err(what.into());
                    }
                    LogEvent::Lost => return Err("the log was deleted or cut meanwhile".into()),
                    LogEvent::ReadFailed(what) => return Err(what.into()),
                    _ => {}
                }
            }
            let done = replayer.at().0 - point.position.sequence.0;
            let total = end.map_or(0, |end| end.0.saturating_sub(point.position.sequence.0));
            self.note(claimed, Phase::Checking, done, total)?;
            let is_caught_up = end.is_some_and(|end| replayer.at() >= end);
            // Nothing was written since: what the primary said before is about this state.
            let is_checked = replayer.effects == 0 && unproven.is_all_checked;
            if is_caught_up && is_checked {
                return Ok(unproven.checked.map(|checked| checked.0));
            }
            if is_caught_up && self.clock.monotonic().since(began) >= PATIENCE_NANOS {
                tracing::warn!(
                    "no primary says what it has: the data is compared with itself alone"
                );
                return Ok(None);
            }
            if is_idle {
                (self.wait)();
            }
        }
    }
}
