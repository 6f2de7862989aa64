//! The chain through a log: which records count, and which are void.
//!
//! A numeric condition does not fence a pipeline. After a foreign `Lead` takes a deposed writer's
//! next place, the records it already sent behind may still be accepted, because their numbers
//! fit. So every record names the chain value of the last record that counted, and a record of
//! another epoch, or one that names another predecessor, is void: outside the chain, for every
//! reader alike, for ever.
//!
//! ```text
//! sequence   1        2        3        4        5
//!            Lead e1  Data e1  Lead e2  Data e1  Data e2
//!            └────────┘────────┘──────────────────┘         4 is void: epoch 1 is over
//! ```
//!
//! **Void records are of the current epoch or an older one.** A `Lead` is sent to one place only,
//! the one behind the last record that its candidate has applied, and nothing is sent behind it
//! before it is durable. So where a `Lead` stands, the log before it is what its candidate has
//! read, and it counts; and every other record of its epoch stands behind it. A reader that meets
//! a later epoch which does not continue its chain has therefore applied records that this log does
//! not hold: log and reader (or its snapshot) are two histories, and the reader stops.

use crate::checksum::{Checksum, LogSum};
use crate::record::{self, ChainValue, Header, Kind, Part, READER_VERSION, Record, WriterId};
use base::{Epoch, Incarnation, Sequence, UnixMillis};
use bytes::{Bytes, BytesMut};
use encryption::{KeyError, Keys, PAYLOAD_OVERHEAD_BYTES_MAX};
use std::fmt;

/// Where a chain stands: what a snapshot stores beside its position, so that a reader can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chain {
    /// Names everything that counted so far.
    pub value: ChainValue,
    /// The epoch of the last Lead that counted; 0 before the first.
    pub epoch: Epoch,
}

impl Chain {
    /// The chain of an empty log. Bound to the log's incarnation, so that records of one log never
    /// fit into another.
    pub fn start(incarnation: Incarnation) -> Self {
        Self { value: ChainValue(mix(incarnation.0)), epoch: Epoch(0) }
    }

    /// Whether a record counts here: it names this chain as its predecessor and is of the current
    /// epoch, or is a Lead into a later one.
    pub fn admits(&self, header: &Header) -> bool {
        let epoch_fits = match header.kind {
            Kind::Lead => header.epoch > self.epoch,
            _ => header.epoch == self.epoch,
        };
        epoch_fits && header.predecessor == self.value
    }

    /// Whether a record cannot stand behind this chain in one and the same history: it is of a
    /// later epoch, and not the `Lead` that continues this chain into it.
    pub fn contradicts(&self, header: &Header) -> bool {
        header.epoch > self.epoch && !self.admits(header)
    }

    /// Where the chain stood before a record, if that record counts. It says so itself. `None` if
    /// the bytes are no record.
    pub fn before(bytes: &[u8]) -> Option<Self> {
        let header = record::decode_header(bytes, true).ok()?;
        let epochs_begun = u64::from(header.kind == Kind::Lead);
        let epoch = Epoch(header.epoch.0.saturating_sub(epochs_begun));
        Some(Self { value: header.predecessor, epoch })
    }

    /// Where the chain stands behind a record, if that record counts. It says so itself, because it
    /// names its predecessor. `None` if the bytes are no record.
    pub fn behind(bytes: &[u8]) -> Option<Self> {
        let header = record::decode_header(bytes, true).ok()?;
        Some(Self { value: header.predecessor.after(bytes), epoch: header.epoch })
    }

    /// Extends the chain by a record that it admits. `bytes` is the whole record.
    pub fn extend(&mut self, header: &Header, bytes: &[u8]) {
        debug_assert!(self.admits(header), "only records that count extend a chain");
        self.epoch = header.epoch;
        self.value = self.value.after(bytes);
    }
}

impl ChainValue {
    /// The value after a record with these bytes. The checksum covers the record's own
    /// predecessor field, so the value depends on every byte of every record before.
    fn after(self, bytes: &[u8]) -> Self {
        let checksum = u64::from(record::checksum_field(bytes));
        Self(mix(self.0 ^ (checksum << 32) ^ bytes.len() as u64))
    }
}

/// The finaliser of splitmix64: a bijection that spreads every input bit over the word.
pub(crate) fn mix(word: u64) -> u64 {
    let word = word.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// What one record meant to a reader.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Consumed {
    /// Outside the chain: skip it.
    Void,
    /// A part of a split unit; nothing to apply until its last part, and not even then if the
    /// reading began amid the unit.
    Buffered,
    /// A record to act on. A unit that was split arrives whole, under the header of its last part
    /// with [`Part::Whole`].
    Record(Record),
}

/// Why a reader must stop. None of these is skipped: an older binary stops at what it does not
/// know.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FollowError {
    /// The records were not given in sequence order without gaps.
    Gap { expected: Sequence, given: Sequence },
    /// The record asks for a newer reader.
    ReaderVersion { needed: u32 },
    /// The bytes are not a record that this build reads.
    Record(record::RecordError),
    /// The payload is compressed, or not one that is ever encrypted: this build does not undo it.
    Unsupported,
    /// The payload is encrypted, and cannot be decrypted.
    Encrypted(KeyError),
    /// A split unit was continued, ended or interrupted against the rules by its own writer.
    SplitUnit,
    /// The record belongs to another history of the log than what was consumed before it.
    AnotherHistory,
    /// A `Checksum` record has another checksum of the log than what was consumed before it.
    Checksum { stated: u64, computed: u64 },
}

impl fmt::Display for FollowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Gap { expected, given } => write!(f, "expected record {expected}, got {given}"),
            Self::ReaderVersion { needed } => {
                write!(f, "the record needs reader version {needed}, this is {READER_VERSION}")
            }
            Self::Record(error) => error.fmt(f),
            Self::Unsupported => {
                f.write_str("the payload is compressed, or encrypted against the rules")
            }
            Self::Encrypted(error) => error.fmt(f),
            Self::SplitUnit => f.write_str("a split unit is out of order"),
            Self::AnotherHistory => f.write_str(ANOTHER_HISTORY),
            Self::Checksum { stated, computed } => write!(
                f,
                "what was read before it has the checksum {computed:016x}, and the primary's has \
                 {stated:016x}: the log was not read as it was written"
            ),
        }
    }
}

/// What an operator is told of a log that is not the history which was read before.
pub const ANOTHER_HISTORY: &str = "the log is another history than the one that was applied: the \
     log, or the snapshots beside it, were restored from a backup, or the log lost records that it \
     had acknowledged (docs/operations/restore.md)";

/// Follows a log record by record and hands out what counts.
///
/// A split unit has no limit here. Its size is known only after it has executed, and what has
/// executed is appended: a reader with a limit would one day refuse what was acknowledged. Nothing
/// is reserved at anybody's word: a byte is held for each byte of log that was read, checked and
/// found to count. That is less than the writer held, who had the same bytes as effects, as records
/// on their way to the disk, and as values.
#[derive(Clone, Debug)]
pub struct Follower {
    chain: Chain,
    /// The last record consumed, void ones included.
    at: Sequence,
    /// The last record that counts; at first, where it began.
    counted: Sequence,
    /// Payloads of the split unit under way; empty between units.
    parts: Vec<Bytes>,
    /// Of what was consumed; `None` while it is not known, because the log was not read from its
    /// beginning.
    sum: Option<LogSum>,
    /// The records may be the rest of a unit that began before the first of them.
    is_amid: bool,
    /// Decrypt payloads.
    keys: Keys,
    /// Breaks the void rule on purpose (every record counts), so that a test can prove that it
    /// would notice.
    #[doc(hidden)]
    pub counts_void_records: bool,
    /// Takes records of another history for void ones, likewise.
    #[doc(hidden)]
    pub joins_histories: bool,
}

impl Follower {
    /// Starts behind `at`, where the chain stood at `chain`. Never inside a split unit: snapshots
    /// are not taken there.
    pub fn new(at: Sequence, chain: Chain) -> Self {
        Self {
            chain,
            at,
            counted: at,
            parts: Vec::new(),
            sum: (at == Sequence::ZERO).then(|| LogSum::start(chain)),
            is_amid: false,
            keys: Keys::none(),
            counts_void_records: false,
            joins_histories: false,
        }
    }

    /// Reads encrypted payloads with these keys.
    pub fn use_keys(&mut self, keys: Keys) {
        self.keys = keys;
    }

    /// The keys with which payloads are read.
    pub fn keys(&self) -> &Keys {
        &self.keys
    }

    /// Goes on with the checksum that the log had where this one starts.
    pub fn continue_sum(&mut self, sum: u64) {
        self.sum = Some(LogSum::at(sum));
    }

    /// The checksum of what was consumed, if it is known.
    pub fn sum(&self) -> Option<LogSum> {
        self.sum
    }

    /// As [`Self::new`], where the record at `at` need not have ended a unit. The rest of one that
    /// was begun before is passed over.
    pub fn amid(at: Sequence, chain: Chain) -> Self {
        Self { is_amid: true, ..Self::new(at, chain) }
    }

    /// The last record consumed.
    pub fn at(&self) -> Sequence {
        self.at
    }

    /// The last record consumed that counts; where it began, while none did.
    pub fn counted(&self) -> Sequence {
        self.counted
    }

    /// Where the chain stands.
    pub fn chain(&self) -> Chain {
        self.chain
    }

    /// Whether the last records are parts of a unit that has not ended. A new leader's `Lead`
    /// abandons it.
    pub fn is_inside_unit(&self) -> bool {
        !self.parts.is_empty()
    }

    /// Consumes the next record. After an error the follower must not be used further.
    ///
    /// # Errors
    /// [`FollowError`]; the reader stops and says so.
    pub fn consume(&mut self, sequence: Sequence, bytes: &Bytes) -> Result<Consumed, FollowError> {
        let expected = self.at.next();
        if sequence != expected {
            return Err(FollowError::Gap { expected, given: sequence });
        }
        let record = Record::decode(bytes).map_err(FollowError::Record)?;
        self.at = sequence;
        let header = record.header;
        if !self.chain.admits(&header) {
            if self.counts_void_records {
                return Ok(Consumed::Record(record));
            }
            if self.chain.contradicts(&header) && !self.joins_histories {
                return Err(FollowError::AnotherHistory);
            }
            return Ok(Consumed::Void);
        }
        if header.reader_version_min > READER_VERSION {
            return Err(FollowError::ReaderVersion { needed: header.reader_version_min });
        }
        if header.is_compressed || header.is_encrypted && header.kind != Kind::Data {
            return Err(FollowError::Unsupported);
        }
        self.chain.extend(&header, bytes);
        self.counted = sequence;
        self.check(&record)?;
        let record = if header.is_encrypted { self.decrypt(record, bytes)? } else { record };
        self.assemble(record)
    }

    /// The effects of a record to come, if they are a whole unit and can be read. Nothing is
    /// consumed: whether it will count is not known, nor whether it is intact.
    pub fn foresee(&self, bytes: &Bytes) -> Option<Bytes> {
        let header = record::decode_header(bytes, false).ok()?;
        if header.kind != Kind::Data || header.part != Part::Whole || header.is_compressed {
            return None;
        }
        let payload = bytes.slice(record::HEADER_BYTES..);
        match header.is_encrypted {
            false => Some(payload),
            true => {
                let plain = self.keys.decrypt_payload(&bytes[record::CONTEXT], &payload);
                plain.ok().map(BytesMut::freeze)
            }
        }
    }

    /// The record as it was before it was encrypted.
    fn decrypt(&self, mut record: Record, bytes: &[u8]) -> Result<Record, FollowError> {
        let plain = self.keys.decrypt_payload(&bytes[record::CONTEXT], &record.payload);
        record.payload = plain.map_err(FollowError::Encrypted)?.freeze();
        record.header.is_encrypted = false;
        Ok(record)
    }

    /// Extends the checksum, and compares it where the writer says what it has. A form that this
    /// release does not know is left to whoever applies records.
    fn check(&mut self, record: &Record) -> Result<(), FollowError> {
        match (record.header.kind, &mut self.sum) {
            (Kind::Data, Some(sum)) => sum.add(record.header.part, &record.payload),
            (Kind::Lead, Some(sum)) => sum.abandon(),
            (Kind::Checksum, sum) => {
                let Some(said) = Checksum::decode(&record.payload) else { return Ok(()) };
                match sum {
                    Some(sum) if !said.begins_anew && sum.value() != said.log => {
                        let (stated, computed) = (said.log, sum.value());
                        return Err(FollowError::Checksum { stated, computed });
                    }
                    _ => *sum = Some(LogSum::at(said.log)),
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn assemble(&mut self, record: Record) -> Result<Consumed, FollowError> {
        if std::mem::take(&mut self.is_amid) {
            let is_rest = matches!(record.header.part, Part::Middle | Part::Last);
            self.is_amid = record.header.kind == Kind::Renew || record.header.part == Part::Middle;
            if is_rest {
                return Ok(Consumed::Buffered);
            }
        }
        match (record.header.kind, record.header.part) {
            (Kind::Data, Part::First) => {
                if self.is_inside_unit() {
                    return Err(FollowError::SplitUnit);
                }
                self.parts.push(record.payload);
                Ok(Consumed::Buffered)
            }
            (Kind::Data, Part::Middle | Part::Last) => self.continue_unit(record),
            (Kind::Renew, _) => Ok(Consumed::Record(record)),
            (Kind::Lead, _) => {
                self.parts.clear();
                Ok(Consumed::Record(record))
            }
            _ if self.is_inside_unit() => Err(FollowError::SplitUnit),
            _ => Ok(Consumed::Record(record)),
        }
    }

    fn continue_unit(&mut self, mut record: Record) -> Result<Consumed, FollowError> {
        if !self.is_inside_unit() {
            return Err(FollowError::SplitUnit);
        }
        self.parts.push(record.payload);
        if record.header.part == Part::Middle {
            return Ok(Consumed::Buffered);
        }
        record.payload = join(std::mem::take(&mut self.parts));
        record.header.part = Part::Whole;
        Ok(Consumed::Record(record))
    }
}

/// The parts as one. Each is freed as soon as it is copied, so that a unit of many gigabytes is in
/// memory once, not twice.
fn join(parts: Vec<Bytes>) -> Bytes {
    let mut unit = BytesMut::with_capacity(parts.iter().map(Bytes::len).sum());
    for part in parts {
        unit.extend_from_slice(&part);
    }
    unit.freeze()
}

/// Stamps a leader's records, so that the rest of the node gives only payloads.
#[derive(Clone, Debug)]
pub struct Stamper {
    writer: WriterId,
    chain: Chain,
    /// The counter of the last record stamped.
    counter: u64,
    /// The newest clock stamped: the shard's clock never goes back.
    clock: UnixMillis,
    /// The next record, a Lead, takes the clock back.
    sets_clock: bool,
    /// The running checksum of what was stamped and read before; `None` while nobody knew it.
    sum: Option<LogSum>,
    /// Encrypt the payloads of Data, if there are any.
    keys: Keys,
    /// Breaks the rule of counters on purpose, so that a test can prove that it would notice.
    #[doc(hidden)]
    pub reuses_counters: bool,
}

impl Stamper {
    /// A writer whose records continue `chain`, of which it must have read everything. `clock` is
    /// the newest clock it read.
    pub fn new(writer: WriterId, chain: Chain, clock: UnixMillis) -> Self {
        let sum = (chain.epoch == Epoch(0)).then(|| LogSum::start(chain));
        Self {
            writer,
            chain,
            counter: 0,
            clock,
            sets_clock: false,
            sum,
            keys: Keys::none(),
            reuses_counters: false,
        }
    }

    /// Encrypts the payloads of Data from here on, if there are keys.
    pub fn use_keys(&mut self, keys: Keys) {
        self.keys = keys;
    }

    /// Bytes by which a payload grows when it is stamped, at most.
    pub fn overhead_bytes_max(&self) -> usize {
        if self.keys.are_there() { PAYLOAD_OVERHEAD_BYTES_MAX } else { 0 }
    }

    /// Goes on with the checksum of what was read; `None` if it is not known.
    pub fn continue_sum(&mut self, sum: Option<LogSum>) {
        self.sum = sum;
    }

    /// The checksum of what was stamped and read before, if it is known.
    pub fn sum(&self) -> Option<LogSum> {
        self.sum
    }

    /// Where the chain stands after everything stamped.
    pub fn chain(&self) -> Chain {
        self.chain
    }

    /// The counter of the last record stamped.
    pub fn counter(&self) -> u64 {
        self.counter
    }

    /// The newest clock stamped, or read before that.
    pub fn clock(&self) -> UnixMillis {
        self.clock
    }

    /// Lets the `Lead` that is stamped next set the clock, also back.
    pub fn set_clock_back(&mut self) {
        self.sets_clock = true;
    }

    /// Stamps the `Lead` into the next epoch. `member` tells readers who leads; opaque here.
    pub fn lead(
        &mut self,
        lease_millis: u64,
        member: &[u8],
        clock: UnixMillis,
        durable: Sequence,
    ) -> Bytes {
        let epoch = Epoch(self.chain.epoch.0 + 1);
        let buffer = lease(lease_millis, member);
        self.stamp_epoch(epoch, Kind::Lead, Part::Whole, buffer, clock, durable)
    }

    /// Stamps a `Renew`. `member` as in [`Self::lead`], for readers that begin behind the `Lead`.
    pub fn renew(
        &mut self,
        lease_millis: u64,
        member: &[u8],
        clock: UnixMillis,
        durable: Sequence,
    ) -> Bytes {
        let (epoch, buffer) = (self.chain.epoch, lease(lease_millis, member));
        self.stamp_epoch(epoch, Kind::Renew, Part::Whole, buffer, clock, durable)
    }

    /// Stamps a `Yield`. `successor` names who is to lead at once; empty: whoever is first.
    pub fn give_up(&mut self, successor: &[u8], clock: UnixMillis, durable: Sequence) -> Bytes {
        let mut buffer = empty_record(successor.len());
        buffer.extend_from_slice(successor);
        self.stamp(Kind::Yield, Part::Whole, buffer, clock, durable)
    }

    /// Stamps a `Checksum`: of everything stamped before, and of so many keys there. A checksum
    /// that nobody knew begins here.
    pub fn checksum(&mut self, keys: u64, clock: UnixMillis, durable: Sequence) -> Bytes {
        let begins_anew = self.sum.is_none();
        let sum = *self.sum.get_or_insert_with(|| LogSum::start(self.chain));
        let said = Checksum { log: sum.value(), begins_anew, keys }.encode();
        let mut buffer = empty_record(said.len());
        buffer.extend_from_slice(&said);
        self.stamp(Kind::Checksum, Part::Whole, buffer, clock, durable)
    }

    /// Stamps any other kind. `buffer` begins with [`record::HEADER_BYTES`] reserved bytes, the
    /// payload follows (see [`empty_record`]).
    pub fn stamp(
        &mut self,
        kind: Kind,
        part: Part,
        buffer: BytesMut,
        clock: UnixMillis,
        durable: Sequence,
    ) -> Bytes {
        debug_assert!(kind != Kind::Lead, "a Lead begins an epoch: use lead");
        self.stamp_epoch(self.chain.epoch, kind, part, buffer, clock, durable)
    }

    fn stamp_epoch(
        &mut self,
        epoch: Epoch,
        kind: Kind,
        part: Part,
        mut buffer: BytesMut,
        clock: UnixMillis,
        durable: Sequence,
    ) -> Bytes {
        self.counter += u64::from(!self.reuses_counters);
        let sets_clock = kind == Kind::Lead && std::mem::take(&mut self.sets_clock);
        self.clock = if sets_clock { clock } else { self.clock.max(clock) };
        let is_encrypted = kind == Kind::Data && self.keys.are_there();
        let header = Header {
            kind,
            part,
            is_compressed: false,
            is_encrypted,
            sets_clock,
            reader_version_min: if is_encrypted { READER_VERSION_ENCRYPTED } else { 1 },
            epoch,
            writer: self.writer,
            counter: self.counter,
            predecessor: self.chain.value,
            clock: self.clock,
            durable,
        };
        if is_encrypted {
            record::encode_encrypted(&header, &mut buffer, &self.keys);
        } else {
            record::encode_in_place(&header, &mut buffer);
        }
        self.chain.extend(&header, &buffer);
        match (kind, &mut self.sum) {
            (Kind::Data, Some(sum)) => sum.add(part, &buffer[record::HEADER_BYTES..]),
            (Kind::Lead, Some(sum)) => sum.abandon(),
            _ => {}
        }
        buffer.freeze()
    }
}

/// The first reader version that decrypts: an older one stops at this, before the flag.
const READER_VERSION_ENCRYPTED: u32 = 2;

/// A buffer that begins with the room for a header; append the payload to it.
pub fn empty_record(payload_bytes: usize) -> BytesMut {
    let mut buffer = BytesMut::with_capacity(record::HEADER_BYTES + payload_bytes);
    buffer.resize(record::HEADER_BYTES, 0);
    buffer
}

fn lease(lease_millis: u64, member: &[u8]) -> BytesMut {
    let mut buffer = empty_record(8 + member.len());
    buffer.extend_from_slice(&lease_millis.to_le_bytes());
    buffer.extend_from_slice(member);
    buffer
}
