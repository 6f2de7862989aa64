//! The table of effects: number, bytes and text of each, in one row.
//!
//! ```text
//! number  on a key or a whole database  text  (operands, in the order of their bytes) => effect
//! ```
//! Everything that goes by the number or by the operands is told from here. What an effect does is
//! said where effects are applied.

use super::operand::Operand;
use super::{DeleteReason, Effect, EffectDecoder, EffectError, End, Fields, Ids, UNIT_BEGINS};
use crate::stream_id::StreamId;
use base::DatabaseId;
use bytes::BytesMut;
use std::fmt;

/// The bits that hold an opcode's number.
const NUMBER_BITS: u32 = 6;

/// What an effect is on, as a bit of [`KEYLESS`].
mod on {
    pub const KEY: u64 = 0;
    /// Whole databases: the effect names no key.
    pub const ALL: u64 = 1;
}

macro_rules! effects {
    ($($number:literal $on:ident $text:literal ($($operand:ident: $type:ty),*)
        => $effect:ident { $($fields:tt)* };)*) => {
        /// The bit of each number whose effect names no key.
        const KEYLESS: u64 = $(on::$on << $number)|*;

        $(const _: () = assert!($number < 1 << NUMBER_BITS, "the bits above say other things");)*
        $(const _: () = assert!($number != UNIT_BEGINS, "it stands between units");)*

        impl Effect<'_> {
            /// The effect's number in the log.
            #[allow(unused_variables, reason = "a row names its operands for all that use it")]
            pub(super) fn opcode(&self) -> u8 {
                match *self {
                    $(Effect::$effect { $($fields)* } => $number,)*
                }
            }

            /// Appends the bytes of the operands.
            pub(super) fn put_operands(&self, out: &mut BytesMut) {
                match *self {
                    $(Effect::$effect { $($fields)* } => {
                        $(<$type as Operand>::put($operand, out);)*
                    })*
                }
            }
        }

        impl<'a> EffectDecoder<'a> {
            /// Reads the operands of the effect with this number.
            pub(super) fn operands(&mut self, number: u8) -> Result<Effect<'a>, EffectError> {
                Ok(match number {
                    $($number => {
                        $(let $operand = <$type as Operand>::take(self)?;)*
                        Effect::$effect { $($fields)* }
                    })*
                    _ => return Err(self.error("unknown effect")),
                })
            }
        }

        /// As `kiln log inspect` shows it, without its key.
        impl fmt::Display for Effect<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match *self {
                    $(Effect::$effect { $($fields)* } => {
                        $(let $operand = <$type as Operand>::shown($operand);)*
                        write!(f, $text)
                    })*
                }
            }
        }
    };
}

#[rustfmt::skip]
effects! {
    1  KEY "set-string {value}" (value: &[u8]) => SetString { value, expire_at: None };
    2  KEY "set-string {value} expire-at {at}" (at: i64, value: &[u8]) => SetString { value, expire_at: Some(at) };
    3  KEY "set-integer {value}" (value: i64) => SetInteger { value };
    4  KEY "append {bytes}" (bytes: &[u8]) => Append { bytes };
    5  KEY "set-range {offset} {bytes}" (offset: u64, bytes: &[u8]) => SetRange { offset, bytes };
    6  KEY "delete" () => Delete { reason: DeleteReason::Command };
    7  KEY "delete expired" () => Delete { reason: DeleteReason::Expired };
    8  KEY "delete evicted" () => Delete { reason: DeleteReason::Evicted };
    9  KEY "expire-at {at}" (at: i64) => Expire { at: Some(at) };
    10 KEY "persist" () => Expire { at: None };
    11 KEY "rename db {to_database} {to}" (to_database: DatabaseId, to: &[u8]) => Rename { to_database, to };
    12 KEY "copy db {to_database} {to}" (to_database: DatabaseId, to: &[u8]) => Copy { to_database, to };
    13 KEY "list-push head {value}" (value: &[u8]) => ListPush { end: End::Head, value };
    14 KEY "list-push tail {value}" (value: &[u8]) => ListPush { end: End::Tail, value };
    15 KEY "list-pop head {count}" (count: u64) => ListPop { end: End::Head, count };
    16 KEY "list-pop tail {count}" (count: u64) => ListPop { end: End::Tail, count };
    17 KEY "list-set {index} {value}" (index: u64, value: &[u8]) => ListSet { index, value };
    18 KEY "list-insert {index} {value}" (index: u64, value: &[u8]) => ListInsert { index, value };
    19 KEY "list-remove {index} {count}" (index: u64, count: u64) => ListRemove { index, count };
    20 KEY "hash-set {field} {value}" (field: &[u8], value: &[u8]) => HashSet { field, value, expire_at: None };
    21 KEY "hash-delete {field}" (field: &[u8]) => HashDelete { field, is_expired: false };
    22 KEY "set-add {member}" (member: &[u8]) => SetAdd { member };
    23 KEY "set-remove {member}" (member: &[u8]) => SetRemove { member };
    24 KEY "sorted-add {score} {member}" (score: f64, member: &[u8]) => SortedAdd { member, score };
    25 KEY "sorted-remove {member}" (member: &[u8]) => SortedRemove { member };
    26 ALL "flush-database" () => FlushDatabase {};
    27 ALL "flush-all" () => FlushAll {};
    28 ALL "swap-databases {with}" (with: DatabaseId) => SwapDatabases { with };
    29 ALL "transfer-began" () => TransferBegan {};
    30 ALL "transfer-ended" () => TransferEnded {};
    31 ALL "replica-of {host} {port}" (host: &str, port: u16) => ReplicaOf { host, port };
    32 ALL "replica-of no one" () => ReplicaOfNoOne {};
    33 KEY "stream-create" () => StreamCreate {};
    34 KEY "stream-add {id} {fields}" (id: StreamId, fields: Fields<'_>) => StreamAdd { id, fields };
    35 KEY "stream-delete {ids}" (ids: Ids<'_>) => StreamDelete { ids };
    36 KEY "stream-trim below {below}" (below: StreamId) => StreamTrim { below };
    37 KEY "stream-set-id {last} added {added} max-deleted {max_deleted}" (last: StreamId, added: u64, max_deleted: StreamId) => StreamSetId { last, added, max_deleted };
    38 KEY "stream-block {base} {block}" (base: StreamId, block: &[u8]) => StreamBlock { base, block };
    39 KEY "stream-group-create {group} {last} read {read}" (group: &[u8], last: StreamId, read: i64) => StreamGroupCreate { group, last, read };
    40 KEY "stream-group-set {group} {last} read {read}" (group: &[u8], last: StreamId, read: i64) => StreamGroupSet { group, last, read };
    41 KEY "stream-group-delete {group}" (group: &[u8]) => StreamGroupDelete { group };
    42 KEY "stream-consumer-create {group} {consumer} seen {seen}" (group: &[u8], consumer: &[u8], seen: i64) => StreamConsumerCreate { group, consumer, seen };
    43 KEY "stream-consumer-delete {group} {consumer}" (group: &[u8], consumer: &[u8]) => StreamConsumerDelete { group, consumer };
    44 KEY "stream-deliver {group} {consumer} seen {seen} time {time} count {count}: {ids}" (group: &[u8], consumer: &[u8], seen: i64, time: i64, count: u64, ids: Ids<'_>) => StreamDeliver { group, consumer, seen, time, count, ids };
    45 KEY "stream-acknowledge {group} {ids}" (group: &[u8], ids: Ids<'_>) => StreamAcknowledge { group, ids };
    46 KEY "hash-set {field} {value} expire-at {at}" (at: i64, field: &[u8], value: &[u8]) => HashSet { field, value, expire_at: Some(at) };
    47 KEY "hash-expire {field} at {at}" (at: i64, field: &[u8]) => HashExpire { field, at: Some(at) };
    48 KEY "hash-persist {field}" (field: &[u8]) => HashExpire { field, at: None };
    49 KEY "hash-delete {field} expired" (field: &[u8]) => HashDelete { field, is_expired: true };
    50 ALL "function-load {code}" (code: &[u8]) => FunctionLoad { code };
    51 ALL "function-delete {name}" (name: &[u8]) => FunctionDelete { name };
    52 ALL "function-flush" () => FunctionFlush {};
    // 53 is UNIT_BEGINS.
}

/// Whether the effect with this number is on whole databases and names no key.
pub(super) fn is_keyless(number: u8) -> bool {
    KEYLESS >> (number % u64::BITS as u8) & 1 != 0
}

impl Effect<'_> {
    /// Whether the effect is on whole databases and names no key.
    pub fn is_keyless(&self) -> bool {
        is_keyless(self.opcode())
    }

    /// The key that the effect changes beside the one that it is about, and its database: who asks
    /// what an effect changes must ask for both.
    #[inline]
    pub fn second_key(&self) -> Option<(DatabaseId, &[u8])> {
        match self {
            Effect::Rename { to_database, to } | Effect::Copy { to_database, to } => {
                Some((*to_database, to))
            }
            _ => None,
        }
    }
}
