//! The operands of an effect by name: the fields of its variant, as the JSON of a change has them.
//!
//! The names are for programs outside, and stay. They are those of `engine::effect::Effect` rather
//! than of the table of numbers, because two numbers may differ in what one operand says (an expiry
//! that is there or not, head or tail).

use engine::effect::{DeleteReason, Effect, End, Fields, Ids};
use engine::stream_id::StreamId;

/// An operand's value.
pub(super) enum Member<'a> {
    Bytes(&'a [u8]),
    Text(&'a str),
    Number(u64),
    Signed(i64),
    Float(f64),
    Flag(bool),
    /// In Unix milliseconds; `None`: never.
    Time(Option<i64>),
    Id(StreamId),
    Ids(Ids<'a>),
    Fields(Fields<'a>),
}

type Members<'a> = Vec<(&'static str, Member<'a>)>;

/// The effect's name and operands.
#[rustfmt::skip]
pub(super) fn of<'a>(effect: &Effect<'a>) -> (&'static str, Members<'a>) {
    use Member::{Bytes, Flag, Float, Id, Number, Signed, Text, Time};
    match *effect {
        Effect::SetString { value, expire_at } => ("set-string", vec![("value", Bytes(value)), ("expire_at", Time(expire_at))]),
        Effect::SetInteger { value } => ("set-integer", vec![("value", Signed(value))]),
        Effect::Append { bytes } => ("append", vec![("bytes", Bytes(bytes))]),
        Effect::SetRange { offset, bytes } => ("set-range", vec![("offset", Number(offset)), ("bytes", Bytes(bytes))]),
        Effect::Delete { reason } => ("delete", vec![("reason", Text(reason_name(reason)))]),
        Effect::Expire { at } => ("expire", vec![("at", Time(at))]),
        Effect::Rename { to_database, to } => ("rename", vec![("to_database", Number(to_database.0.into())), ("to", Bytes(to))]),
        Effect::Copy { to_database, to } => ("copy", vec![("to_database", Number(to_database.0.into())), ("to", Bytes(to))]),
        Effect::ListPush { end, value } => ("list-push", vec![("end", Text(end_name(end))), ("value", Bytes(value))]),
        Effect::ListPop { end, count } => ("list-pop", vec![("end", Text(end_name(end))), ("count", Number(count))]),
        Effect::ListSet { index, value } => ("list-set", vec![("index", Number(index)), ("value", Bytes(value))]),
        Effect::ListInsert { index, value } => ("list-insert", vec![("index", Number(index)), ("value", Bytes(value))]),
        Effect::ListRemove { index, count } => ("list-remove", vec![("index", Number(index)), ("count", Number(count))]),
        Effect::HashSet { field, value, expire_at } => ("hash-set", vec![("field", Bytes(field)), ("value", Bytes(value)), ("expire_at", Time(expire_at))]),
        Effect::HashDelete { field, is_expired } => ("hash-delete", vec![("field", Bytes(field)), ("is_expired", Flag(is_expired))]),
        Effect::HashExpire { field, at } => ("hash-expire", vec![("field", Bytes(field)), ("at", Time(at))]),
        Effect::SetAdd { member } => ("set-add", vec![("member", Bytes(member))]),
        Effect::SetRemove { member } => ("set-remove", vec![("member", Bytes(member))]),
        Effect::SortedAdd { member, score } => ("sorted-add", vec![("member", Bytes(member)), ("score", Float(score))]),
        Effect::SortedRemove { member } => ("sorted-remove", vec![("member", Bytes(member))]),
        Effect::StreamCreate => ("stream-create", vec![]),
        Effect::StreamAdd { id, fields } => ("stream-add", vec![("id", Id(id)), ("fields", Member::Fields(fields))]),
        Effect::StreamDelete { ids } => ("stream-delete", vec![("ids", Member::Ids(ids))]),
        Effect::StreamTrim { below } => ("stream-trim", vec![("below", Id(below))]),
        Effect::StreamSetId { last, added, max_deleted } => ("stream-set-id", vec![("last", Id(last)), ("added", Number(added)), ("max_deleted", Id(max_deleted))]),
        Effect::StreamBlock { base, block } => ("stream-block", vec![("base", Id(base)), ("block", Bytes(block))]),
        Effect::StreamGroupCreate { group, last, read } => ("stream-group-create", vec![("group", Bytes(group)), ("last", Id(last)), ("read", Signed(read))]),
        Effect::StreamGroupSet { group, last, read } => ("stream-group-set", vec![("group", Bytes(group)), ("last", Id(last)), ("read", Signed(read))]),
        Effect::StreamGroupDelete { group } => ("stream-group-delete", vec![("group", Bytes(group))]),
        Effect::StreamConsumerCreate { group, consumer, seen } => ("stream-consumer-create", vec![("group", Bytes(group)), ("consumer", Bytes(consumer)), ("seen", Signed(seen))]),
        Effect::StreamConsumerDelete { group, consumer } => ("stream-consumer-delete", vec![("group", Bytes(group)), ("consumer", Bytes(consumer))]),
        Effect::StreamDeliver { group, consumer, seen, time, count, ids } => (
            "stream-deliver",
            vec![("group", Bytes(group)), ("consumer", Bytes(consumer)), ("seen", Signed(seen)), ("time", Signed(time)), ("count", Number(count)), ("ids", Member::Ids(ids))],
        ),
        Effect::StreamAcknowledge { group, ids } => ("stream-acknowledge", vec![("group", Bytes(group)), ("ids", Member::Ids(ids))]),
        Effect::FlushDatabase => ("flush-database", vec![]),
        Effect::FlushAll => ("flush-all", vec![]),
        Effect::SwapDatabases { with } => ("swap-databases", vec![("with", Number(with.0.into()))]),
        Effect::TransferBegan => ("transfer-began", vec![]),
        Effect::TransferEnded => ("transfer-ended", vec![]),
        Effect::ReplicaOf { host, port } => ("replica-of", vec![("host", Text(host)), ("port", Number(port.into()))]),
        Effect::ReplicaOfNoOne => ("replica-of-no-one", vec![]),
        Effect::FunctionLoad { code } => ("function-load", vec![("code", Bytes(code))]),
        Effect::FunctionDelete { name } => ("function-delete", vec![("name", Bytes(name))]),
        Effect::FunctionFlush => ("function-flush", vec![]),
    }
}

fn reason_name(reason: DeleteReason) -> &'static str {
    match reason {
        DeleteReason::Command => "command",
        DeleteReason::Expired => "expired",
        DeleteReason::Evicted => "evicted",
    }
}

fn end_name(end: End) -> &'static str {
    match end {
        End::Head => "head",
        End::Tail => "tail",
    }
}
