//! A foreign file into effects, as its bytes arrive: what a link to a master loads.
//!
//! Unlike [`crate::load`], which builds the tables of a server that is starting, this changes a
//! keyspace that is in use, through [`Tx`]: what it loads goes to the log like any write. It reads
//! one string, one element or one pair at a time. So a collection of any size passes in bounded
//! slices, and where the bytes end in the middle of something, only that is read again.

use crate::apply::Applied;
use crate::effect::{Effect, End};
use crate::functions::Header;
use crate::rdb::{RdbError, Source, kind, opcode};
use crate::tx::Tx;
use crate::value::list::{NODE_PACKED, NODE_PLAIN};
use crate::value::stream::reading::Reading;
use base::DatabaseId;
use std::io::{self, Read};
use structures::{Intset, Listpack};

/// Since this version a file ends with a checksum.
const CHECKSUM_SINCE: u32 = 5;

/// Bytes that have arrived and were not read.
#[derive(Default)]
struct Arrived {
    bytes: Vec<u8>,
    used: usize,
}

impl Read for Arrived {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let rest = &self.bytes[self.used..];
        if rest.is_empty() {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        self.used += count;
        if self.used == self.bytes.len() {
            self.bytes.clear();
            self.used = 0;
        }
        Ok(count)
    }
}

/// The outcome of a step.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Something was read, and perhaps applied.
    Done,
    /// The bytes that arrived so far end in the middle of something.
    Starved,
    /// The file has ended and was whole.
    Finished,
}

/// The next thing to read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Stage {
    Header,
    /// The next entry, or what stands between entries.
    Entry,
    /// The rest of a stream, part by part.
    Stream,
    /// The rest of a collection.
    Elements {
        kind: u8,
        left: u64,
    },
    Checksum,
    Finished,
}

/// Applies a name and what belongs to it.
type ApplyPair = fn(&mut Importer, &[u8], &[u8], &mut Tx<'_>) -> Result<(), RdbError>;

/// Imports one file.
pub struct Importer {
    source: Source<Arrived>,
    stage: Stage,
    version: u32,
    database: DatabaseId,
    expire_at: Option<i64>,
    /// The earliest expiry among the fields of the hash that is being read: their times are
    /// relative to it.
    earliest: i64,
    /// The key of the entry being read.
    key: Vec<u8>,
    /// Elements of the entry that were applied.
    applied: u64,
    /// The progress of reading the entry, if it is a stream.
    stream: Option<Reading>,
    pub keys: u64,
    /// The database that the stream behind the file begins in, where the file tells.
    pub stream_database: DatabaseId,
}

impl Default for Importer {
    fn default() -> Self {
        Self {
            source: Source::new(Arrived::default()),
            stage: Stage::Header,
            version: 0,
            database: DatabaseId(0),
            expire_at: None,
            earliest: 0,
            key: Vec::new(),
            applied: 0,
            stream: None,
            keys: 0,
            stream_database: DatabaseId(0),
        }
    }
}

impl Importer {
    /// Takes bytes that have arrived.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.source.stream_mut().bytes.extend_from_slice(bytes);
    }

    /// Bytes that have arrived and were not taken from the feed yet.
    pub fn waiting(&self) -> usize {
        let feed = self.source.stream();
        feed.bytes.len() - feed.used
    }

    /// Bytes of the file used so far.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }

    /// What arrived behind the end of the file.
    pub fn into_rest(self) -> Vec<u8> {
        let (feed, mut rest) = self.source.into_rest();
        rest.extend_from_slice(&feed.bytes[feed.used..]);
        rest
    }

    /// Reads and applies one thing: a few bytes to one string, or one packed node. Nothing of what
    /// the file holds may be in the keyspace before.
    ///
    /// # Errors
    /// [`RdbError`]; the keyspace then holds a part of the file.
    pub fn step(&mut self, tx: &mut Tx<'_>) -> Result<Step, RdbError> {
        if self.stage == Stage::Finished {
            return Ok(Step::Finished);
        }
        self.source.keep();
        match self.read(tx) {
            Ok(stage) => {
                self.stage = stage;
                Ok(if stage == Stage::Finished { Step::Finished } else { Step::Done })
            }
            Err(RdbError::Io(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                self.source.rewind();
                Ok(Step::Starved)
            }
            Err(error) => Err(error),
        }
    }

    fn read(&mut self, tx: &mut Tx<'_>) -> Result<Stage, RdbError> {
        match self.stage {
            Stage::Header => self.header(),
            Stage::Entry => self.entry(tx),
            Stage::Elements { left: 0, .. } => Ok(self.end_entry()),
            Stage::Elements { kind, left } => {
                self.element(kind, tx)?;
                Ok(Stage::Elements { kind, left: left - 1 })
            }
            Stage::Stream => self.stream_part(tx),
            Stage::Checksum => self.checksum(),
            Stage::Finished => Ok(Stage::Finished),
        }
    }

    fn header(&mut self) -> Result<Stage, RdbError> {
        self.version = self.source.any_header()?;
        Ok(Stage::Entry)
    }

    fn entry(&mut self, tx: &mut Tx<'_>) -> Result<Stage, RdbError> {
        match self.source.byte()? {
            opcode::EXPIRE_MILLIS => {
                self.expire_at = Some(i64::from_le_bytes(self.source.array()?));
            }
            opcode::EXPIRE_SECONDS => {
                let seconds = i32::from_le_bytes(self.source.array()?);
                self.expire_at = Some(i64::from(seconds) * 1000);
            }
            // How recently a key was used is not carried over: here it was used now.
            opcode::IDLE => drop(self.source.length()?),
            opcode::FREQUENCY => drop(self.source.byte()?),
            opcode::AUX => self.auxiliary()?,
            opcode::RESIZE_DATABASE => {
                self.source.length()?;
                self.source.length()?;
            }
            opcode::SLOT_INFO => {
                for _ in 0..3 {
                    self.source.length()?;
                }
            }
            opcode::SELECT_DATABASE => {
                let number = self.source.length()?;
                self.database = self.database_of(number, tx)?;
            }
            opcode::EOF if self.version < CHECKSUM_SINCE => return Ok(Stage::Finished),
            opcode::EOF => return Ok(Stage::Checksum),
            opcode::FUNCTION => {
                let code = self.source.owned()?;
                if Header::of(&code).is_err() {
                    return Err(self.source.damaged("a library of functions without a name"));
                }
                tx.change_all(self.database, Effect::FunctionLoad { code: &code });
            }
            opcode::FUNCTION_PREVIEW => {
                return Err(self.source.unsupported("a library of functions of 7.0's previews"));
            }
            opcode::MODULE_AUX => return Err(self.of_module()),
            kind => return self.begin_entry(kind, tx),
        }
        Ok(Stage::Entry)
    }

    /// Why data of a module is refused; it begins with the module's id.
    fn of_module(&mut self) -> RdbError {
        match self.source.length() {
            Ok(id) => self.source.unsupported(format!("data of the module {}", module_name(id))),
            Err(error) => error,
        }
    }

    fn database_of(&self, number: u64, tx: &Tx<'_>) -> Result<DatabaseId, RdbError> {
        let count = tx.settings().databases;
        match u32::try_from(number) {
            Ok(number) if number < count => Ok(DatabaseId(number)),
            _ => {
                let what = format!("database {number} (there are {count})");
                Err(self.source.unsupported(what))
            }
        }
    }

    fn auxiliary(&mut self) -> Result<(), RdbError> {
        let name = self.source.owned()?;
        let value = self.source.owned()?;
        if name == b"repl-stream-db" {
            let number = std::str::from_utf8(&value).ok().and_then(|text| text.parse().ok());
            self.stream_database = DatabaseId(number.unwrap_or(0));
        }
        Ok(())
    }

    fn begin_entry(&mut self, kind: u8, tx: &mut Tx<'_>) -> Result<Stage, RdbError> {
        if matches!(kind, kind::MODULE | kind::MODULE_2) {
            self.source.owned()?;
            return Err(self.of_module());
        }
        if !is_known(kind, self.source.is_valkey) {
            return Err(self.source.unsupported(format!("a value of type {kind}")));
        }
        let mut key = std::mem::take(&mut self.key);
        let read = self.source.text_into(&mut key);
        self.key = key;
        read?;
        self.applied = 0;
        let stage = match kind {
            kind::HASH_METADATA => {
                self.earliest = i64::from_le_bytes(self.source.array()?);
                Stage::Elements { kind, left: self.source.length()? }
            }
            kind::STRING => {
                let value = self.source.owned()?;
                let effect = Effect::SetString { value: &value, expire_at: self.expire_at };
                self.check_is_new(tx)?;
                self.apply(effect, tx)?;
                return Ok(self.end_entry());
            }
            kind::LIST
            | kind::LIST_QUICKLIST
            | kind::LIST_QUICKLIST_2
            | kind::SET
            | kind::HASH
            | kind::HASH_2
            | kind::ZSET
            | kind::ZSET_2 => Stage::Elements { kind, left: self.source.length()? },
            _ if kind::is_stream(kind) => {
                self.stream = Some(Reading::new(kind, self.source.length()?));
                Stage::Stream
            }
            // One packed value is all its elements.
            _ => Stage::Elements { kind, left: 1 },
        };
        self.check_is_new(tx)?;
        Ok(stage)
    }

    fn check_is_new(&self, tx: &Tx<'_>) -> Result<(), RdbError> {
        if tx.keyspace().exists(self.database, &self.key) {
            return Err(self.source.damaged("a key that stands in the file twice"));
        }
        Ok(())
    }

    fn end_entry(&mut self) -> Stage {
        self.expire_at = None;
        // Old releases could write an empty collection, which is no key.
        self.keys += u64::from(self.applied > 0);
        Stage::Entry
    }

    /// Reads the next element, pair or node whole, then applies it.
    fn element(&mut self, kind: u8, tx: &mut Tx<'_>) -> Result<(), RdbError> {
        match kind {
            kind::LIST_QUICKLIST_2 => {
                let container = self.source.length()?;
                let bytes = self.source.owned()?;
                match container {
                    NODE_PLAIN => self.push(&bytes, tx),
                    NODE_PACKED => {
                        let pack = self.listpack(bytes)?;
                        pack.iter().try_for_each(|item| self.push(&item.to_vec(), tx))
                    }
                    _ => Err(self.source.damaged("a list's node of unknown form")),
                }
            }
            kind::LIST => {
                let element = self.source.owned()?;
                self.push(&element, tx)
            }
            kind::LIST_QUICKLIST | kind::LIST_ZIPLIST => {
                let elements = self.source.words(kind)?;
                elements.iter().try_for_each(|element| self.push(element, tx))
            }
            kind::SET => {
                let member = self.source.owned()?;
                self.apply(Effect::SetAdd { member: &member }, tx)
            }
            kind::SET_INTSET => {
                let bytes = self.source.owned()?;
                let integers = Intset::from_bytes(bytes)
                    .map_err(|error| self.source.damaged(error.to_string()))?;
                integers.iter().try_for_each(|integer| {
                    let mut digits = itoa::Buffer::new();
                    let member = digits.format(integer).as_bytes();
                    self.apply(Effect::SetAdd { member }, tx)
                })
            }
            kind::HASH | kind::HASH_2 | kind::HASH_METADATA => self.hash_element(kind, tx),
            kind::HASH_LISTPACK_EX => {
                let fields = self.source.timed_fields()?;
                fields.iter().try_for_each(|(field, value, at)| self.field(field, value, *at, tx))
            }
            kind::ZSET_2 => {
                let member = self.source.owned()?;
                let score = f64::from_le_bytes(self.source.array()?);
                self.score(&member, score, tx)
            }
            kind::SET_LISTPACK => {
                let members = self.source.words(kind)?;
                members.iter().try_for_each(|member| self.apply(Effect::SetAdd { member }, tx))
            }
            kind::HASH_LISTPACK | kind::HASH_ZIPLIST | kind::HASH_ZIPMAP => {
                self.pairs(kind, tx, |importer, field, value, tx| {
                    importer.field(field, value, None, tx)
                })
            }
            kind::ZSET => {
                let member = self.source.owned()?;
                let score = self.source.old_score()?;
                self.score(&member, score, tx)
            }
            kind::ZSET_LISTPACK | kind::ZSET_ZIPLIST => {
                self.pairs(kind, tx, |importer, member, score, tx| {
                    let score = importer.source.score_of(score)?;
                    importer.score(member, score, tx)
                })
            }
            _ => Err(self.source.unsupported(format!("a value of type {kind}"))),
        }
    }

    /// Reads the next part of a stream, then applies it.
    fn stream_part(&mut self, tx: &mut Tx<'_>) -> Result<Stage, RdbError> {
        let Self { source, stream, database, key, applied, .. } = self;
        let Some(reading) = stream.as_mut().filter(|reading| !reading.is_done()) else {
            return Ok(self.end_entry());
        };
        let (work, mut misfits) = (tx.work(), false);
        reading.step(source, &work, |part| {
            let done = tx.change_in(*database, key, part.effect());
            misfits = matches!(done, Ok(Applied::Nothing) | Err(_));
            *applied += 1;
            Ok(())
        })?;
        if misfits {
            return Err(self.source.damaged("a part of a stream that does not fit the others"));
        }
        self.expire_first(tx);
        Ok(Stage::Stream)
    }

    fn push(&mut self, value: &[u8], tx: &mut Tx<'_>) -> Result<(), RdbError> {
        self.apply(Effect::ListPush { end: End::Tail, value }, tx)
    }

    /// Reads a field of a hash that is stored field by field.
    fn hash_element(&mut self, kind: u8, tx: &mut Tx<'_>) -> Result<(), RdbError> {
        let distance = match kind {
            kind::HASH_METADATA => Some(self.source.length()?),
            _ => None,
        };
        let field = self.source.owned()?;
        let value = self.source.owned()?;
        let expire_at = match distance {
            Some(distance) => self.source.time_from(self.earliest, distance)?,
            None if kind == kind::HASH_2 => self.source.field_time()?,
            None => None,
        };
        self.field(&field, &value, expire_at, tx)
    }

    fn field(
        &mut self,
        field: &[u8],
        value: &[u8],
        expire_at: Option<i64>,
        tx: &mut Tx<'_>,
    ) -> Result<(), RdbError> {
        self.apply(Effect::HashSet { field, value, expire_at }, tx)
    }

    fn score(&mut self, member: &[u8], score: f64, tx: &mut Tx<'_>) -> Result<(), RdbError> {
        if score.is_nan() {
            return Err(self.source.damaged("a score that is not a number"));
        }
        self.apply(Effect::SortedAdd { member, score }, tx)
    }

    /// Applies each pair of a packed value.
    fn pairs(&mut self, kind: u8, tx: &mut Tx<'_>, apply: ApplyPair) -> Result<(), RdbError> {
        let words = self.source.pairs_of_words(kind)?;
        words.chunks_exact(2).try_for_each(|pair| apply(self, &pair[0], &pair[1], tx))
    }

    fn listpack(&self, bytes: Vec<u8>) -> Result<Listpack, RdbError> {
        Listpack::from_bytes(bytes).map_err(|error| self.source.damaged(error.to_string()))
    }

    /// Applies an effect that adds something to the present key. The first one makes the key, and
    /// gives it its expiry.
    fn apply(&mut self, effect: Effect<'_>, tx: &mut Tx<'_>) -> Result<(), RdbError> {
        let applied = tx.change_in(self.database, &self.key, effect);
        if !matches!(applied, Ok(Applied::Added | Applied::Pushed(_))) {
            return Err(self.source.damaged("an element that stands in its collection twice"));
        }
        self.applied += 1;
        if self.applied == 1 && !matches!(effect, Effect::SetString { .. }) {
            self.expire_first(tx);
        }
        Ok(())
    }

    /// Sets the present key's expiry, if it was not set yet.
    fn expire_first(&mut self, tx: &mut Tx<'_>) {
        if self.applied == 1 && self.expire_at.is_some() {
            let expiry = Effect::Expire { at: self.expire_at };
            let applied = tx.change_in(self.database, &self.key, expiry);
            debug_assert!(applied.is_ok(), "every type expires");
        }
    }

    fn checksum(&mut self) -> Result<Stage, RdbError> {
        let computed = self.source.checksum();
        let stored = u64::from_le_bytes(self.source.array()?);
        // 0: whoever wrote the file had checksums switched off.
        if stored != 0 && computed.is_some_and(|computed| stored != computed) {
            return Err(self.source.damaged("a wrong checksum"));
        }
        Ok(Stage::Finished)
    }
}

/// The name in a module's id: nine characters of six bits each, above ten bits of a version (Redis
/// documentation, "Modules API reference").
fn module_name(id: u64) -> String {
    const CHARACTERS: &[u8; 64] =
        b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let character = |place: u32| char::from(CHARACTERS[(id >> (10 + 6 * place)) as usize % 64]);
    (0..9).rev().map(character).collect()
}

fn is_known(kind: u8, is_valkey: bool) -> bool {
    if kind == kind::HASH_2 {
        return is_valkey;
    }
    kind::is_stream(kind)
        || matches!(
            kind,
            kind::STRING
                | kind::LIST
                | kind::SET
                | kind::ZSET
                | kind::HASH
                | kind::ZSET_2
                | kind::HASH_ZIPMAP
                | kind::LIST_ZIPLIST
                | kind::SET_INTSET
                | kind::ZSET_ZIPLIST
                | kind::HASH_ZIPLIST
                | kind::LIST_QUICKLIST
                | kind::HASH_LISTPACK
                | kind::ZSET_LISTPACK
                | kind::LIST_QUICKLIST_2
                | kind::SET_LISTPACK
                | kind::HASH_METADATA
                | kind::HASH_LISTPACK_EX
        )
}

#[cfg(test)]
mod tests;
