//! Effects: what a command changed, as outcomes.
//!
//! The primary applies an effect and writes it to the log in one step; a replica, recovery and the
//! snapshotter apply the very same effect. So an effect never asks, it states: chosen members,
//! absolute expiry times, resulting numbers. Applying one needs no clock and no randomness.
//!
//! ```text
//! effect   = opcode (1) | database, if bit 7 of the opcode is set (u32)
//!                       | key, unless bit 6 of the opcode is set | operands of the opcode
//! between two units of one payload: the byte UNIT_BEGINS
//! bytes    = length (u32) | bytes             integers and doubles: fixed width, little-endian
//! ```
//! Bit 6 says "the same key as the effect before", which keeps a command with many members small.
//! `docs/formats/effects.md` is normative. Opcodes are never reused. Each effect is one variant of
//! [`Effect`], one row in `effect/table.rs` and one arm of [`crate::keyspace::Keyspace::apply`].

mod decode;
mod encode;
mod operand;
mod stream;
mod table;

use crate::stream_id::StreamId;
use base::DatabaseId;
pub use decode::EffectDecoder;
pub use encode::EffectEncoder;
pub use operand::Quoted;
pub use stream::{Fields, Ids};

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
    /// A field of a hash takes a value, and expires at this Unix time in milliseconds, or never;
    /// the hash is created if absent.
    HashSet { field: &'a [u8], value: &'a [u8], expire_at: Option<i64> },
    /// A field leaves the hash: by a command, or because its time had come.
    HashDelete { field: &'a [u8], is_expired: bool },
    /// A field expires at this Unix time in milliseconds, or never.
    HashExpire { field: &'a [u8], at: Option<i64> },
    /// A member joins the set; the set is created if absent.
    SetAdd { member: &'a [u8] },
    /// A member leaves the set.
    SetRemove { member: &'a [u8] },
    /// A member of a sorted set takes a score; the sorted set is created if absent.
    SortedAdd { member: &'a [u8], score: f64 },
    /// A member leaves the sorted set.
    SortedRemove { member: &'a [u8] },
    /// Creates an empty stream at the key.
    StreamCreate,
    /// Appends an entry to the stream; the stream is created if absent.
    StreamAdd { id: StreamId, fields: Fields<'a> },
    /// Deletes entries from the stream. The stream keeps the greatest deleted ID.
    StreamDelete { ids: Ids<'a> },
    /// Removes all entries with smaller IDs. `below` is 0-0 (the successor of the greatest ID) if
    /// all are removed.
    StreamTrim { below: StreamId },
    /// Sets the stream's counters: the last ID, how many entries were ever added, the greatest
    /// deleted ID.
    StreamSetId { last: StreamId, added: u64, max_deleted: StreamId },
    /// Appends a block of entries in Redis's form: from RESTORE or a file. The stream is created if
    /// absent.
    StreamBlock { base: StreamId, block: &'a [u8] },
    /// Creates a consumer group, which has read up to `last`: `read` entries, or -1 if unknown.
    StreamGroupCreate { group: &'a [u8], last: StreamId, read: i64 },
    /// Sets a group's progress: it has read up to `last`, which were `read` entries, or -1 if
    /// unknown.
    StreamGroupSet { group: &'a [u8], last: StreamId, read: i64 },
    /// Deletes a group with its consumers and pending entries.
    StreamGroupDelete { group: &'a [u8] },
    /// Creates a consumer, last seen at this Unix time in milliseconds.
    StreamConsumerCreate { group: &'a [u8], consumer: &'a [u8], seen: i64 },
    /// Deletes a consumer with its pending entries.
    StreamConsumerDelete { group: &'a [u8], consumer: &'a [u8] },
    /// Makes entries pending to a consumer, whichever consumer had them before: delivered `count`
    /// times, the last time at `time`. The consumer was seen at `seen`. Both are Unix times in
    /// milliseconds.
    StreamDeliver {
        group: &'a [u8],
        consumer: &'a [u8],
        seen: i64,
        time: i64,
        count: u64,
        ids: Ids<'a>,
    },
    /// Removes entries from the group's pending ones.
    StreamAcknowledge { group: &'a [u8], ids: Ids<'a> },
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
    /// Loads a library of functions, in place of one with the same name. The first line of the code
    /// has the name. Carries no key.
    FunctionLoad { code: &'a [u8] },
    /// Deletes a library of functions. Carries no key.
    FunctionDelete { name: &'a [u8] },
    /// Deletes all libraries of functions. Carries no key.
    FunctionFlush,
}

/// The reason of a deletion: the statistics of replicas and the change stream tell them apart.
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

/// A byte between two units of one payload, in the place of an opcode. A number of its own rather
/// than a bit, because a release that does not know it must stop: it would misread a bit.
const UNIT_BEGINS: u8 = 53;

/// Set in an opcode whose effect names its database.
const NEW_DATABASE: u8 = 0x80;

/// Set in an opcode whose effect is on the same key as the one before.
const SAME_KEY: u8 = 0x40;
