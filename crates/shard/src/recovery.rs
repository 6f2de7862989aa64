//! What is committed, applied record by record: at the start, and on a replica for ever.

use base::{Sequence, UnixMillis};
use bytes::Bytes;
use encryption::Keys;
use engine::execute::Engine;
use engine::interest::Interest;
use engine::replay::ApplyError;
use std::fmt;
use txlog::{Chain, Checksum, Consumed, FollowError, Follower, Kind, LogSum, Origin};

/// Why a log cannot be replayed.
#[derive(Debug)]
pub enum RecoveryError {
    /// A record that no reader may pass over.
    Follow(Sequence, FollowError),
    /// A record whose effects do not fit.
    Apply(Sequence, ApplyError),
    /// A record that says something of the shard which this release cannot take up.
    Unknown(Sequence, Kind),
    /// The log did not begin empty, and what it began with was not loaded.
    Unfounded(Origin),
    /// The primary had another number of keys at this record.
    Keys { at: Sequence, stated: u64, counted: u64 },
}

impl fmt::Display for RecoveryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Follow(at, error) => write!(f, "record {at} of the log: {error}"),
            Self::Unknown(at, kind) => write!(
                f,
                "record {at} of the log: this release does not know what a {kind:?} record asks of \
                 it; a newer one wrote it"
            ),
            Self::Unfounded(Origin { source, .. }) => write!(
                f,
                "the log begins with the data of {source}, which stands in a snapshot of its first \
                 record, and no snapshot can be used"
            ),
            Self::Keys { at, stated, counted } => write!(
                f,
                "record {at} of the log: the primary had {stated} keys here, and {counted} came of \
                 what was read"
            ),
            Self::Apply(at, ApplyError::Malformed(error)) => {
                write!(f, "record {at} of the log: {} at byte {}", error.what, error.offset)
            }
            Self::Apply(at, ApplyError::Impossible { effect_index }) => {
                write!(f, "record {at} of the log: effect {effect_index} does not fit its key")
            }
            Self::Apply(at, ApplyError::Lost) => write!(
                f,
                "the tier: a value that record {at} of the log changes cannot be read back. The \
                 log may be whole, and the next start needs nothing of the tier"
            ),
        }
    }
}

impl std::error::Error for RecoveryError {}

/// Applies a log's records to an engine, in order.
pub struct Replayer {
    follower: Follower,
    clock: UnixMillis,
    /// Of the last record that counted; 0 before the first.
    counter: u64,
    /// Effects applied so far.
    pub effects: u64,
    /// The last `Checksum` that was compared, all of it.
    checked: Option<Sequence>,
    /// Effects applied when it was.
    checked_effects: u64,
    standing: Standing,
}

/// Where a log was read to, with all units whole: from here on another reader can go on with what
/// was applied.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standing {
    /// The last record that counts; where the reading began, while none did.
    pub at: Sequence,
    pub chain: Chain,
    /// The log's running checksum, if it is known.
    pub sum: Option<u64>,
    /// The newest clock in the records.
    pub clock: UnixMillis,
}

impl Replayer {
    /// Begins after `at`, where the chain stands at `chain`.
    pub fn new(at: Sequence, chain: Chain) -> Self {
        let follower = Follower::new(at, chain);
        let clock = UnixMillis(0);
        let standing = Standing { at, chain, sum: follower.sum().map(|it| it.value()), clock };
        Self {
            follower,
            clock,
            counter: 0,
            effects: 0,
            checked: None,
            checked_effects: 0,
            standing,
        }
    }

    /// Goes on with the log's running checksum as it was where this one begins.
    pub fn continue_sum(&mut self, sum: u64) {
        self.follower.continue_sum(sum);
        self.standing.sum = Some(sum);
    }

    /// Reads encrypted records with these keys.
    pub fn use_keys(&mut self, keys: Keys) {
        self.follower.use_keys(keys);
    }

    /// The keys with which records are read.
    pub fn keys(&self) -> &Keys {
        self.follower.keys()
    }

    /// Where it stands behind the last unit that is whole.
    pub fn standing(&self) -> Standing {
        self.standing
    }

    /// The log's running checksum, if it is known.
    pub fn sum(&self) -> Option<LogSum> {
        self.follower.sum()
    }

    /// The last `Checksum` record with which what was read, and what came of it, was compared.
    pub fn checked(&self) -> Option<Sequence> {
        self.checked
    }

    /// Whether nothing was applied since [`Self::checked`].
    pub fn is_all_checked(&self) -> bool {
        self.checked.is_some() && self.checked_effects == self.effects
    }

    /// Counts records that are void, so that a test can prove that it would notice.
    #[doc(hidden)]
    pub fn count_void_records(&mut self) {
        self.follower.counts_void_records = true;
    }

    /// Takes records of another history for void ones, likewise.
    #[doc(hidden)]
    pub fn join_histories(&mut self) {
        self.follower.joins_histories = true;
    }

    /// Whether it was told to take any log for the one that was read.
    pub(crate) fn joins_histories(&self) -> bool {
        self.follower.joins_histories
    }

    /// The clock stood here before the first record.
    pub fn clock_at_least(&mut self, clock: UnixMillis) {
        self.clock = self.clock.max(clock);
        self.standing.clock = self.clock;
    }

    /// Applies the next record and tells those who are interested; what it was.
    ///
    /// # Errors
    /// [`RecoveryError`] if it is damaged or does not fit; the engine is then of no use.
    pub fn consume(
        &mut self,
        engine: &mut Engine,
        sequence: Sequence,
        bytes: &Bytes,
        interest: &mut Interest,
    ) -> Result<Consumed, RecoveryError> {
        let knew_sum = self.follower.sum().is_some();
        let consumed = self
            .follower
            .consume(sequence, bytes)
            .map_err(|error| RecoveryError::Follow(sequence, error))?;
        let Consumed::Record(record) = &consumed else { return Ok(consumed) };
        let clock = record.header.clock;
        self.clock = if record.header.sets_clock { clock } else { self.clock.max(clock) };
        self.counter = record.header.counter;
        match record.header.kind {
            Kind::Data => {
                let applied =
                    engine.keyspace.apply_payload(&record.payload, record.header.clock, interest);
                self.effects += applied.map_err(|error| RecoveryError::Apply(sequence, error))?;
            }
            // These say who leads, or nothing: what the shard holds stays as it is.
            Kind::Lead | Kind::Renew | Kind::Yield | Kind::Barrier => {}
            Kind::Origin => {
                let origin = Origin::decode(&record.payload);
                let unknown = RecoveryError::Unknown(sequence, Kind::Origin);
                return Err(origin.map_or(unknown, RecoveryError::Unfounded));
            }
            Kind::Checksum => self.check(engine, sequence, &record.payload, knew_sum)?,
            // To pass over one would be to hold another state than its writer does.
            kind @ (Kind::Version | Kind::Slot) => {
                return Err(RecoveryError::Unknown(sequence, kind));
            }
        }
        if !self.follower.is_inside_unit() {
            self.standing = Standing {
                at: self.follower.counted(),
                chain: self.follower.chain(),
                sum: self.follower.sum().map(|sum| sum.value()),
                clock: self.clock,
            };
        }
        Ok(consumed)
    }

    /// The effects of a record to come, as far as they can be told before it is consumed.
    pub(crate) fn foresee(&self, bytes: &Bytes) -> Option<Bytes> {
        self.follower.foresee(bytes)
    }

    /// Compares what the primary had here. The log's checksum was compared as it was read, unless
    /// it was not known.
    fn check(
        &mut self,
        engine: &Engine,
        at: Sequence,
        payload: &[u8],
        knew_sum: bool,
    ) -> Result<(), RecoveryError> {
        let said = Checksum::decode(payload).ok_or(RecoveryError::Unknown(at, Kind::Checksum))?;
        let (stated, counted) = (said.keys, engine.keyspace.len() as u64);
        if stated != counted {
            return Err(RecoveryError::Keys { at, stated, counted });
        }
        if knew_sum && !said.begins_anew {
            self.checked = Some(at);
            self.checked_effects = self.effects;
        }
        Ok(())
    }

    pub fn chain(&self) -> Chain {
        self.follower.chain()
    }

    /// The last record consumed that counts; where it began, while none did.
    pub fn counted(&self) -> Sequence {
        self.follower.counted()
    }

    /// The last record consumed.
    pub fn at(&self) -> Sequence {
        self.follower.at()
    }

    /// The counter of the last record that counted, by whoever wrote it; 0 before the first. Of a
    /// unit in parts, of its last one.
    pub fn counter(&self) -> u64 {
        self.counter
    }

    /// The newest clock in the records.
    pub fn clock(&self) -> UnixMillis {
        self.clock
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::{HashKey, Incarnation};
    use engine::keyspace::Keyspace;
    use engine::settings::Settings;
    use txlog::{Part, Stamper, WriterId, empty_record};

    /// What a reader makes of a record of this kind that counts, behind a `Lead`.
    fn read(kind: Kind) -> Result<Consumed, RecoveryError> {
        let chain = Chain::start(Incarnation(1));
        let mut stamper = Stamper::new(WriterId(1), chain, UnixMillis(0));
        let lead = stamper.lead(1000, &[], UnixMillis(1), Sequence::ZERO);
        let record =
            stamper.stamp(kind, Part::Whole, empty_record(0), UnixMillis(1), Sequence::ZERO);
        let mut engine = Engine::new(Keyspace::new(Settings::default(), HashKey::fixed(1)), 1);
        let mut replayer = Replayer::new(Sequence::ZERO, chain);
        let mut nobody = Interest::default();
        replayer.consume(&mut engine, Sequence(1), &lead, &mut nobody)?;
        replayer.consume(&mut engine, Sequence(2), &record, &mut nobody)
    }

    #[test]
    fn a_reader_stops_by_name_at_what_it_cannot_take_up() {
        for kind in [Kind::Data, Kind::Barrier] {
            assert!(read(kind).is_ok(), "{kind:?}");
        }
        // A `Checksum` without a payload is one of a form that is not known.
        for kind in [Kind::Checksum, Kind::Version, Kind::Slot, Kind::Origin] {
            let why = read(kind).expect_err("it must not pass over this").to_string();
            assert!(why.contains("record 2") && why.contains(&format!("{kind:?}")), "{why}");
        }
    }

    #[test]
    fn a_reader_stops_where_the_primary_had_other_keys() {
        let chain = Chain::start(Incarnation(1));
        let mut stamper = Stamper::new(WriterId(1), chain, UnixMillis(0));
        let lead = stamper.lead(1000, &[], UnixMillis(1), Sequence::ZERO);
        let none = stamper.checksum(0, UnixMillis(1), Sequence::ZERO);
        let one = stamper.checksum(1, UnixMillis(1), Sequence::ZERO);
        let mut engine = Engine::new(Keyspace::new(Settings::default(), HashKey::fixed(1)), 1);
        let mut replayer = Replayer::new(Sequence::ZERO, chain);
        let mut nobody = Interest::default();
        for (record, at) in [(&lead, 1), (&none, 2)] {
            replayer.consume(&mut engine, Sequence(at), record, &mut nobody).expect("it fits");
        }
        assert_eq!(replayer.checked(), Some(Sequence(2)));
        let why = replayer.consume(&mut engine, Sequence(3), &one, &mut nobody);
        let why = why.expect_err("a key is missing").to_string();
        assert_eq!(
            why,
            "record 3 of the log: the primary had 1 keys here, and 0 came of what was read"
        );
    }
}
