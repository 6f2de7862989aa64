//! Strings (Redis documentation, "Commands", group string).
//!
//! | file | holds |
//! |---|---|
//! | `string` | reading and writing whole values and ranges |
//! | [`set`] | SET and its kin, with their options |
//! | [`many`] | MSET and its kin |
//! | [`number`] | the increments |
//! | [`lcs`] | LCS |

mod lcs;
mod many;
mod number;
mod set;

use super::{Args, Command, DataFn, Group, Outcome, read, write};
use crate::effect::Effect;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::text::Digits;
use crate::value::{EntryRef, StringValue};
use crate::view::View;
use resp::Reply;
use resp::integer::parse_i64;

pub const COMMANDS: &[Command<DataFn>] = &[
    read("GET key", get)
        .doc("Returns the string value of a key.")
        .group(Group::String)
        .cost("O(1)")
        .fast(),
    read("MGET key [key ...]", mget)
        .tips(&["request_policy:multi_shard"])
        .doc("Atomically returns the string values of one or more keys.")
        .group(Group::String)
        .cost("O(N) where N is the number of keys to retrieve.")
        .fast(),
    read("STRLEN key", strlen)
        .needs_no_value()
        .key_use("RO")
        .doc("Returns the length of a string value.")
        .group(Group::String)
        .since("2.2.0")
        .cost("O(1)")
        .fast(),
    read("GETRANGE key start end", getrange)
        .doc("Returns a substring of the string stored at a key.")
        .group(Group::String)
        .since("2.4.0")
        .cost("O(N) where N is the length of the returned string."),
    read("SUBSTR key start end", getrange)
        .doc("Returns a substring from a string value.")
        .group(Group::String)
        .cost("O(N) where N is the length of the returned string."),
    write("APPEND key value", append)
        .key_use("RW+insert")
        .doc("Appends a string to the value of a key. Creates the key if it doesn't exist.")
        .group(Group::String)
        .since("2.0.0")
        .cost("O(1)")
        .denyoom()
        .fast(),
    write("SETRANGE key offset value", setrange)
        .doc(
            "Overwrites a part of a string value with another by an offset. Creates the key if it \
             doesn't exist.",
        )
        .group(Group::String)
        .since("2.2.0")
        .cost("O(1), not counting the time taken to copy the new string in place.")
        .denyoom(),
    set::SET,
    set::SETNX,
    set::SETEX,
    set::PSETEX,
    set::GETSET,
    set::DELIFEQ,
    set::GETDEL,
    set::GETEX,
    many::MSET,
    many::MSETEX,
    many::MSETNX,
    number::INCR,
    number::DECR,
    number::INCRBY,
    number::DECRBY,
    number::INCRBYFLOAT,
    lcs::LCS,
];

/// Writes a string value, or null.
fn reply_string(value: Option<StringValue<'_>>, reply: &mut Reply) {
    match value {
        Some(StringValue::Bytes(bytes)) => reply.bulk(bytes),
        Some(StringValue::Integer(integer)) => reply.bulk_integer(integer),
        None => reply.null(),
    }
}

fn get(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    reply_string(view.string(args.at(1))?, reply);
    Ok(())
}

fn mget(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    reply.array(args.len() - 1);
    view.work().reply_each(args.from(1), reply, |key, reply| {
        // A key of another type reads as absent, it does not refuse the others.
        reply_string(view.string(key).unwrap_or(None), reply);
    });
    Ok(())
}

fn strlen(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let length = |view: &View<'_>, entry: EntryRef<'_>| {
        let length = StringValue::of(entry)?.len();
        view.work().bytes(length);
        Ok(length)
    };
    reply.integer(view.count(args.at(1), "string", length)? as i64);
    Ok(())
}

fn getrange(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let start = parse_i64(args.at(2)).ok_or(Refusal::NOT_AN_INTEGER)?;
    let end = parse_i64(args.at(3)).ok_or(Refusal::NOT_AN_INTEGER)?;
    let Some(value) = view.string(args.at(1))? else {
        reply.bulk(b"");
        return Ok(());
    };
    let mut digits = Digits::new();
    let bytes = value.bytes(&mut digits);
    reply.bulk(slice(bytes, start, end));
    Ok(())
}

/// The bytes from `start` to `end`, both inclusive; negative positions count from the end.
fn slice(bytes: &[u8], start: i64, end: i64) -> &[u8] {
    if start < 0 && end < 0 && start > end {
        return &[];
    }
    let length = bytes.len() as i64;
    let from_end = |at: i64| if at < 0 { (length.saturating_add(at)).max(0) } else { at };
    let (start, end) = (from_end(start), from_end(end).min(length - 1));
    if start > end { &[] } else { &bytes[start as usize..=end as usize] }
}

fn append(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (key, bytes) = (args.at(1), args.at(2));
    let before = tx.string(key)?.map(|value| value.len());
    let after = before.unwrap_or(0) + bytes.len();
    check_length(tx, after)?;
    match before {
        // As SET: an appended string that is a number is kept as one only when it is new.
        None => tx.change(key, Effect::SetString { value: bytes, expire_at: None })?,
        Some(_) => tx.change(key, Effect::Append { bytes })?,
    };
    tx.notify(Class::String, "append", key);
    reply.integer(after as i64);
    Ok(())
}

fn setrange(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (key, bytes) = (args.at(1), args.at(3));
    let offset = parse_i64(args.at(2)).ok_or(Refusal::NOT_AN_INTEGER)?;
    let offset = u64::try_from(offset).map_err(|_| Refusal::of("ERR offset is out of range"))?;
    let before = tx.string(key)?.map_or(0, |value| value.len());
    if bytes.is_empty() {
        reply.integer(before as i64);
        return Ok(());
    }
    let end = usize::try_from(offset).unwrap_or(usize::MAX).saturating_add(bytes.len());
    check_length(tx, end)?;
    tx.change(key, Effect::SetRange { offset, bytes })?;
    tx.notify(Class::String, "setrange", key);
    reply.integer(before.max(end) as i64);
    Ok(())
}

/// Refuses a string that would grow beyond `proto-max-bulk-len`.
fn check_length(tx: &Tx<'_>, length: usize) -> Outcome {
    if length as u64 > tx.settings().proto_max_bulk_len {
        return Err(Refusal::TOO_LONG);
    }
    Ok(())
}
