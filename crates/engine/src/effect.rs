//! Effects: what a command changed, as outcomes.
//!
//! The primary applies an effect and writes it to the log in one step; a replica, recovery and the
//! snapshotter apply the very same effect. So an effect never asks, it states: chosen members,
//! absolute expiry times, resulting numbers. Applying one needs no clock and no randomness.
//!
//! ```text
//! effect   = opcode (1) | database, if bit 7 of the opcode is set (u32)
//!                       | key, unless bit 6 of the opcode is set | operands of the opcode
//! bytes    = length (u32) | bytes             integers and doubles: fixed width, little-endian
//! ```
//! Bit 6 says "the same key as the effect before", which keeps a command with many members small.
//! `docs/formats/effects.md` is normative. Opcodes are never reused.

use crate::master;
use base::DatabaseId;
use bytes::BytesMut;

/// One change of one key, or of a whole database.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Effect<'a> {
    /// The key becomes a string; `expire_at` is absolute, in Unix milliseconds.
    SetString { value: &'a [u8], expire_at: Option<i64> },
    /// The string's value becomes a number; its expiry stays.
    SetInteger { value: i64 },
    /// Bytes are appended to a string, which is created if absent; its expiry stays.
    Append { bytes: &'a [u8] },
    /// Bytes overwrite a string at an offset, zero-padded up to it; created if absent.
    SetRange { offset: u64, bytes: &'a [u8] },
    /// The key is gone.
    Delete { reason: DeleteReason },
    /// The key expires at this Unix time in milliseconds, or never.
    Expire { at: Option<i64> },
    /// The key's entry takes this name in this database, replacing what was there.
    Rename { to_database: DatabaseId, to: &'a [u8] },
    /// A copy of the entry takes this name in this database, replacing what was there.
    Copy { to_database: DatabaseId, to: &'a [u8] },
    /// An element joins the list at its head or tail; the list is created if absent.
    ListPush { end: End, value: &'a [u8] },
    /// `count` elements leave one end of the list.
    ListPop { end: End, count: u64 },
    /// The element at `index` (from the head) changes.
    ListSet { index: u64, value: &'a [u8] },
    /// An element is inserted before the one at `index` (from the head; `index` = length appends).
    ListInsert { index: u64, value: &'a [u8] },
    /// `count` elements leave the list, from `index` (from the head) on.
    ListRemove { index: u64, count: u64 },
    /// A field of a hash takes a value; the hash is created if absent.
    HashSet { field: &'a [u8], value: &'a [u8] },
    /// A field leaves the hash.
    HashDelete { field: &'a [u8] },
    /// A member joins the set; the set is created if absent.
    SetAdd { member: &'a [u8] },
    /// A member leaves the set.
    SetRemove { member: &'a [u8] },
    /// A member of a sorted set takes a score; the sorted set is created if absent.
    SortedAdd { member: &'a [u8], score: f64 },
    /// A member leaves the sorted set.
    SortedRemove { member: &'a [u8] },
    /// All keys of the database are gone. Carries no key.
    FlushDatabase,
    /// All keys of all databases are gone. Carries no key.
    FlushAll,
    /// Two databases change places. Carries no key.
    SwapDatabases { with: DatabaseId },
    /// From here on the keyspace is a part of a master's data set, until the transfer ends or all
    /// keys go. Carries no key.
    TransferBegan,
    /// The keyspace is whole: the transfer has ended, or an operator says so. Carries no key.
    TransferEnded,
    /// The shard follows this server from here on. Carries no key.
    ReplicaOf { host: &'a str, port: u16 },
    /// The shard follows nobody from here on, and what is here counts as whole. Carries no key.
    ReplicaOfNoOne,
}

/// Why a key went: the statistics of replicas and the change stream tell them apart.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeleteReason {
    /// A command removed it.
    Command,
    /// Its time had come.
    Expired,
    /// Memory was short.
    Evicted,
}

/// An end of a list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum End {
    Head,
    Tail,
}

/// Bytes that are not a valid sequence of effects.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EffectError {
    /// Where in the payload, in bytes.
    pub offset: usize,
    pub what: &'static str,
}

const NEW_DATABASE: u8 = 0x80;
const SAME_KEY: u8 = 0x40;

mod opcode {
    pub const SET_STRING: u8 = 1;
    pub const SET_STRING_EXPIRING: u8 = 2;
    pub const SET_INTEGER: u8 = 3;
    pub const APPEND: u8 = 4;
    pub const SET_RANGE: u8 = 5;
    pub const DELETE: u8 = 6;
    pub const DELETE_EXPIRED: u8 = 7;
    pub const DELETE_EVICTED: u8 = 8;
    pub const EXPIRE: u8 = 9;
    pub const PERSIST: u8 = 10;
    pub const RENAME: u8 = 11;
    pub const COPY: u8 = 12;
    pub const LIST_PUSH_HEAD: u8 = 13;
    pub const LIST_PUSH_TAIL: u8 = 14;
    pub const LIST_POP_HEAD: u8 = 15;
    pub const LIST_POP_TAIL: u8 = 16;
    pub const LIST_SET: u8 = 17;
    pub const LIST_INSERT: u8 = 18;
    pub const LIST_REMOVE: u8 = 19;
    pub const HASH_SET: u8 = 20;
    pub const HASH_DELETE: u8 = 21;
    pub const SET_ADD: u8 = 22;
    pub const SET_REMOVE: u8 = 23;
    pub const SORTED_ADD: u8 = 24;
    pub const SORTED_REMOVE: u8 = 25;
    pub const FLUSH_DATABASE: u8 = 26;
    pub const FLUSH_ALL: u8 = 27;
    pub const SWAP_DATABASES: u8 = 28;
    pub const TRANSFER_BEGAN: u8 = 29;
    pub const TRANSFER_ENDED: u8 = 30;
    pub const REPLICA_OF: u8 = 31;
    pub const REPLICA_OF_NO_ONE: u8 = 32;

    /// Whether the effect is on a whole database and names no key.
    pub fn is_keyless(code: u8) -> bool {
        (FLUSH_DATABASE..=REPLICA_OF_NO_ONE).contains(&code)
    }
}

/// Encodes the effects of one unit after another into one buffer, behind room for a record's
/// header, so that the log stamps the record in place.
#[derive(Debug)]
pub struct EffectEncoder {
    bytes: BytesMut,
    /// Bytes at the front left for the header.
    reserved: usize,
    /// The database of the last effect; the first effect of a record always names its own.
    database: Option<DatabaseId>,
    /// Where the last key stands in `bytes`.
    key: Option<(usize, usize)>,
}

impl EffectEncoder {
    /// An encoder whose buffers begin with `reserved` zero bytes.
    pub fn new(reserved: usize) -> Self {
        let bytes = BytesMut::zeroed(reserved);
        Self { bytes, reserved, database: None, key: None }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes.len() == self.reserved
    }

    /// Encoded length so far, in bytes.
    pub fn len(&self) -> usize {
        self.bytes.len() - self.reserved
    }

    /// The effects encoded so far.
    pub fn payload(&self) -> &[u8] {
        &self.bytes[self.reserved..]
    }

    /// Begins a unit: its first effect names its database and key, so that the unit can be told
    /// apart from those before it.
    pub fn begin_unit(&mut self) {
        self.database = None;
        self.key = None;
    }

    /// Moves what is encoded behind what `gathered` holds, which begins with as many reserved
    /// bytes. The first to come gives its buffer away, so that a large unit is not copied.
    pub fn move_into(&mut self, gathered: &mut BytesMut) {
        self.begin_unit();
        if gathered.len() == self.reserved {
            std::mem::swap(gathered, &mut self.bytes);
        } else {
            gathered.extend_from_slice(self.payload());
            self.bytes.truncate(self.reserved);
        }
    }

    /// Takes the buffer, reserved bytes first, and starts the next one.
    pub fn take(&mut self) -> BytesMut {
        let capacity = self.bytes.len().min(1 << 20);
        self.database = None;
        self.key = None;
        let mut next = BytesMut::with_capacity(capacity.max(self.reserved));
        next.resize(self.reserved, 0);
        std::mem::replace(&mut self.bytes, next)
    }

    /// Appends one effect on `key` (empty and ignored for effects on whole databases).
    pub fn push(&mut self, database: DatabaseId, key: &[u8], effect: &Effect<'_>) {
        let same_database = self.database == Some(database);
        let keyless = effect.is_keyless();
        let same_key = !keyless
            && same_database
            && self.key.is_some_and(|(start, end)| &self.bytes[start..end] == key);
        let mut code = effect.opcode();
        if !same_database {
            code |= NEW_DATABASE;
            self.database = Some(database);
        }
        if same_key {
            code |= SAME_KEY;
        }
        self.bytes.extend_from_slice(&[code]);
        if !same_database {
            self.bytes.extend_from_slice(&database.0.to_le_bytes());
        }
        if !keyless && !same_key {
            self.put_bytes(key);
            self.key = Some((self.bytes.len() - key.len(), self.bytes.len()));
        }
        self.put_operands(effect);
    }

    fn put_bytes(&mut self, bytes: &[u8]) {
        // Requests, RDB files and `proto-max-bulk-len` are limited to it, and no command makes a
        // string that is longer than the longest it was given, but for those that look at
        // `proto-max-bulk-len`.
        let length = u32::try_from(bytes.len()).expect("no string is longer: STRING_BYTES_MAX");
        self.bytes.extend_from_slice(&length.to_le_bytes());
        self.bytes.extend_from_slice(bytes);
    }

    fn put_u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    fn put_operands(&mut self, effect: &Effect<'_>) {
        match *effect {
            Effect::SetString { value, expire_at } => {
                if let Some(at) = expire_at {
                    self.put_u64(at as u64);
                }
                self.put_bytes(value);
            }
            Effect::SetInteger { value } => self.put_u64(value as u64),
            Effect::Append { bytes } => self.put_bytes(bytes),
            Effect::SetRange { offset, bytes } => {
                self.put_u64(offset);
                self.put_bytes(bytes);
            }
            Effect::Delete { .. }
            | Effect::FlushDatabase
            | Effect::FlushAll
            | Effect::TransferBegan
            | Effect::TransferEnded
            | Effect::ReplicaOfNoOne => {}
            Effect::ReplicaOf { host, port } => {
                self.put_bytes(host.as_bytes());
                self.bytes.extend_from_slice(&port.to_le_bytes());
            }
            Effect::Expire { at } => {
                if let Some(at) = at {
                    self.put_u64(at as u64);
                }
            }
            Effect::Rename { to_database, to } | Effect::Copy { to_database, to } => {
                self.bytes.extend_from_slice(&to_database.0.to_le_bytes());
                self.put_bytes(to);
            }
            Effect::ListPush { value, .. } => self.put_bytes(value),
            Effect::ListPop { count, .. } => self.put_u64(count),
            Effect::ListSet { index, value } | Effect::ListInsert { index, value } => {
                self.put_u64(index);
                self.put_bytes(value);
            }
            Effect::ListRemove { index, count } => {
                self.put_u64(index);
                self.put_u64(count);
            }
            Effect::HashSet { field, value } => {
                self.put_bytes(field);
                self.put_bytes(value);
            }
            Effect::HashDelete { field: name }
            | Effect::SetAdd { member: name }
            | Effect::SetRemove { member: name }
            | Effect::SortedRemove { member: name } => self.put_bytes(name),
            Effect::SortedAdd { member, score } => {
                self.put_u64(score.to_bits());
                self.put_bytes(member);
            }
            Effect::SwapDatabases { with } => self.bytes.extend_from_slice(&with.0.to_le_bytes()),
        }
    }
}

impl Effect<'_> {
    /// Whether the effect is on a whole database and names no key.
    pub fn is_keyless(&self) -> bool {
        opcode::is_keyless(self.opcode())
    }

    fn opcode(&self) -> u8 {
        match self {
            Self::SetString { expire_at: None, .. } => opcode::SET_STRING,
            Self::SetString { expire_at: Some(_), .. } => opcode::SET_STRING_EXPIRING,
            Self::SetInteger { .. } => opcode::SET_INTEGER,
            Self::Append { .. } => opcode::APPEND,
            Self::SetRange { .. } => opcode::SET_RANGE,
            Self::Delete { reason: DeleteReason::Command } => opcode::DELETE,
            Self::Delete { reason: DeleteReason::Expired } => opcode::DELETE_EXPIRED,
            Self::Delete { reason: DeleteReason::Evicted } => opcode::DELETE_EVICTED,
            Self::Expire { at: Some(_) } => opcode::EXPIRE,
            Self::Expire { at: None } => opcode::PERSIST,
            Self::Rename { .. } => opcode::RENAME,
            Self::Copy { .. } => opcode::COPY,
            Self::ListPush { end: End::Head, .. } => opcode::LIST_PUSH_HEAD,
            Self::ListPush { end: End::Tail, .. } => opcode::LIST_PUSH_TAIL,
            Self::ListPop { end: End::Head, .. } => opcode::LIST_POP_HEAD,
            Self::ListPop { end: End::Tail, .. } => opcode::LIST_POP_TAIL,
            Self::ListSet { .. } => opcode::LIST_SET,
            Self::ListInsert { .. } => opcode::LIST_INSERT,
            Self::ListRemove { .. } => opcode::LIST_REMOVE,
            Self::HashSet { .. } => opcode::HASH_SET,
            Self::HashDelete { .. } => opcode::HASH_DELETE,
            Self::SetAdd { .. } => opcode::SET_ADD,
            Self::SetRemove { .. } => opcode::SET_REMOVE,
            Self::SortedAdd { .. } => opcode::SORTED_ADD,
            Self::SortedRemove { .. } => opcode::SORTED_REMOVE,
            Self::FlushDatabase => opcode::FLUSH_DATABASE,
            Self::FlushAll => opcode::FLUSH_ALL,
            Self::SwapDatabases { .. } => opcode::SWAP_DATABASES,
            Self::TransferBegan => opcode::TRANSFER_BEGAN,
            Self::TransferEnded => opcode::TRANSFER_ENDED,
            Self::ReplicaOf { .. } => opcode::REPLICA_OF,
            Self::ReplicaOfNoOne => opcode::REPLICA_OF_NO_ONE,
        }
    }
}

/// Reads effects back from a record's payload.
#[derive(Debug)]
pub struct EffectDecoder<'a> {
    payload: &'a [u8],
    offset: usize,
    database: Option<DatabaseId>,
    key: Option<&'a [u8]>,
}

impl<'a> EffectDecoder<'a> {
    pub fn new(payload: &'a [u8]) -> Self {
        Self { payload, offset: 0, database: None, key: None }
    }

    /// The next effect with its database and key, `None` at the end.
    ///
    /// # Errors
    /// [`EffectError`] if the bytes are not effects: damage, or a newer version's opcode.
    #[allow(clippy::type_complexity, reason = "a name for the triple would tell less than it does")]
    pub fn next_effect(
        &mut self,
    ) -> Result<Option<(DatabaseId, &'a [u8], Effect<'a>)>, EffectError> {
        let Some(&first) = self.payload.get(self.offset) else { return Ok(None) };
        self.offset += 1;
        if first & NEW_DATABASE != 0 {
            self.database = Some(DatabaseId(self.u32()?));
        }
        let database = self.database.ok_or_else(|| self.error("effect without a database"))?;
        let code = first & !(NEW_DATABASE | SAME_KEY);
        let key = if opcode::is_keyless(code) {
            &[][..]
        } else if first & SAME_KEY != 0 {
            self.key.ok_or_else(|| self.error("effect repeats a key that is not there"))?
        } else {
            let key = self.bytes()?;
            self.key = Some(key);
            key
        };
        Ok(Some((database, key, self.operands(code)?)))
    }

    fn operands(&mut self, code: u8) -> Result<Effect<'a>, EffectError> {
        Ok(match code {
            opcode::SET_STRING => Effect::SetString { value: self.bytes()?, expire_at: None },
            opcode::SET_STRING_EXPIRING => {
                let at = self.u64()? as i64;
                Effect::SetString { value: self.bytes()?, expire_at: Some(at) }
            }
            opcode::SET_INTEGER => Effect::SetInteger { value: self.u64()? as i64 },
            opcode::APPEND => Effect::Append { bytes: self.bytes()? },
            opcode::SET_RANGE => Effect::SetRange { offset: self.u64()?, bytes: self.bytes()? },
            opcode::DELETE => Effect::Delete { reason: DeleteReason::Command },
            opcode::DELETE_EXPIRED => Effect::Delete { reason: DeleteReason::Expired },
            opcode::DELETE_EVICTED => Effect::Delete { reason: DeleteReason::Evicted },
            opcode::EXPIRE => Effect::Expire { at: Some(self.u64()? as i64) },
            opcode::PERSIST => Effect::Expire { at: None },
            opcode::RENAME => {
                Effect::Rename { to_database: DatabaseId(self.u32()?), to: self.bytes()? }
            }
            opcode::COPY => {
                Effect::Copy { to_database: DatabaseId(self.u32()?), to: self.bytes()? }
            }
            opcode::FLUSH_DATABASE => Effect::FlushDatabase,
            opcode::FLUSH_ALL => Effect::FlushAll,
            opcode::SWAP_DATABASES => Effect::SwapDatabases { with: DatabaseId(self.u32()?) },
            opcode::TRANSFER_BEGAN => Effect::TransferBegan,
            opcode::TRANSFER_ENDED => Effect::TransferEnded,
            opcode::REPLICA_OF => Effect::ReplicaOf { host: self.host()?, port: self.u16()? },
            opcode::REPLICA_OF_NO_ONE => Effect::ReplicaOfNoOne,
            _ => self.collection_operands(code)?,
        })
    }

    fn collection_operands(&mut self, code: u8) -> Result<Effect<'a>, EffectError> {
        Ok(match code {
            opcode::LIST_PUSH_HEAD => Effect::ListPush { end: End::Head, value: self.bytes()? },
            opcode::LIST_PUSH_TAIL => Effect::ListPush { end: End::Tail, value: self.bytes()? },
            opcode::LIST_POP_HEAD => Effect::ListPop { end: End::Head, count: self.u64()? },
            opcode::LIST_POP_TAIL => Effect::ListPop { end: End::Tail, count: self.u64()? },
            opcode::LIST_SET => Effect::ListSet { index: self.u64()?, value: self.bytes()? },
            opcode::LIST_INSERT => Effect::ListInsert { index: self.u64()?, value: self.bytes()? },
            opcode::LIST_REMOVE => Effect::ListRemove { index: self.u64()?, count: self.u64()? },
            opcode::HASH_SET => Effect::HashSet { field: self.bytes()?, value: self.bytes()? },
            opcode::HASH_DELETE => Effect::HashDelete { field: self.bytes()? },
            opcode::SET_ADD => Effect::SetAdd { member: self.bytes()? },
            opcode::SET_REMOVE => Effect::SetRemove { member: self.bytes()? },
            opcode::SORTED_ADD => {
                let score = f64::from_bits(self.u64()?);
                Effect::SortedAdd { member: self.bytes()?, score }
            }
            opcode::SORTED_REMOVE => Effect::SortedRemove { member: self.bytes()? },
            _ => return Err(self.error("unknown effect")),
        })
    }

    fn error(&self, what: &'static str) -> EffectError {
        EffectError { offset: self.offset, what }
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], EffectError> {
        let bytes = self.payload.get(self.offset..).and_then(|rest| rest.first_chunk::<N>());
        let bytes = *bytes.ok_or_else(|| self.error("effect cut short"))?;
        self.offset += N;
        Ok(bytes)
    }

    fn host(&mut self) -> Result<&'a str, EffectError> {
        let host = self.bytes()?;
        let text = std::str::from_utf8(host).ok().filter(|_| master::is_host(host));
        text.ok_or_else(|| self.error("no name of a host"))
    }

    fn u16(&mut self) -> Result<u16, EffectError> {
        self.fixed().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, EffectError> {
        self.fixed().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, EffectError> {
        self.fixed().map(u64::from_le_bytes)
    }

    fn bytes(&mut self) -> Result<&'a [u8], EffectError> {
        let length = self.u32()? as usize;
        let bytes = self.payload.get(self.offset..self.offset.saturating_add(length));
        let bytes = bytes.ok_or_else(|| self.error("effect cut short"))?;
        self.offset += length;
        Ok(bytes)
    }
}
