//! Increments. The effect is the resulting number, never the step; those who follow are told of the
//! step, because that is shorter and the same.

use crate::command::{Args, Command, DataFn, Group, Outcome, write};
use crate::effect::Effect;
use crate::feed::Word;
use crate::notify::Class;
use crate::number::extended::Extended;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::StringValue;
use crate::value::text::Digits;
use resp::Reply;
use resp::integer::parse_i64;

pub const INCR: Command<DataFn> = write("INCR key", incr)
    .key_use("RW+access+update")
    .doc(
        "Increments the integer value of a key by one. Uses 0 as initial value if the key doesn't \
         exist.",
    )
    .group(Group::String)
    .cost("O(1)")
    .denyoom()
    .fast();

pub const DECR: Command<DataFn> = write("DECR key", decr)
    .key_use("RW+access+update")
    .doc(
        "Decrements the integer value of a key by one. Uses 0 as initial value if the key doesn't \
         exist.",
    )
    .group(Group::String)
    .cost("O(1)")
    .denyoom()
    .fast();

pub const INCRBY: Command<DataFn> = write("INCRBY key increment", incrby)
    .key_use("RW+access+update")
    .doc(
        "Increments the integer value of a key by a number. Uses 0 as initial value if the key \
         doesn't exist.",
    )
    .group(Group::String)
    .cost("O(1)")
    .denyoom()
    .fast();

pub const DECRBY: Command<DataFn> = write("DECRBY key decrement", decrby)
    .key_use("RW+access+update")
    .doc(
        "Decrements a number from the integer value of a key. Uses 0 as initial value if the key \
         doesn't exist.",
    )
    .group(Group::String)
    .cost("O(1)")
    .denyoom()
    .fast();

pub const INCRBYFLOAT: Command<DataFn> = write("INCRBYFLOAT key increment", incrbyfloat)
    .key_use("RW+access+update")
    .doc(
        "Increment the floating point value of a key by a number. Uses 0 as initial value if the \
         key doesn't exist.",
    )
    .group(Group::String)
    .since("2.6.0")
    .cost("O(1)")
    .denyoom()
    .fast();

fn incr(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    add(tx, args.at(1), 1, reply)
}

fn decr(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    add(tx, args.at(1), -1, reply)
}

fn incrby(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let step = parse_i64(args.at(2)).ok_or(Refusal::NOT_AN_INTEGER)?;
    add(tx, args.at(1), step, reply)
}

fn decrby(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let step = parse_i64(args.at(2)).ok_or(Refusal::NOT_AN_INTEGER)?;
    let step = step.checked_neg().ok_or(Refusal::of("ERR decrement would overflow"))?;
    add(tx, args.at(1), step, reply)
}

fn add(tx: &mut Tx<'_>, key: &[u8], step: i64, reply: &mut Reply) -> Outcome {
    let before = match tx.string(key)? {
        None => 0,
        Some(StringValue::Integer(integer)) => integer,
        Some(StringValue::Bytes(bytes)) => parse_i64(bytes).ok_or(Refusal::NOT_AN_INTEGER)?,
    };
    let value =
        before.checked_add(step).ok_or(Refusal::of("ERR increment or decrement would overflow"))?;
    let name = Word::Text(key);
    let words = match step {
        1 => &[Word::Text(b"INCR"), name][..],
        -1 => &[Word::Text(b"DECR"), name],
        _ => &[Word::Text(b"INCRBY"), name, Word::Number(step)],
    };
    tx.told_as(words, |tx| tx.change(key, Effect::SetInteger { value }).map(drop))?;
    tx.notify(Class::String, "incrby", key);
    reply.integer(value);
    Ok(())
}

fn incrbyfloat(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let mut digits = Digits::new();
    let before = match tx.string(key)? {
        None => Extended::ZERO,
        Some(value) => Extended::parse(value.bytes(&mut digits)).ok_or(Refusal::NOT_A_FLOAT)?,
    };
    let step = Extended::parse(args.at(2)).ok_or(Refusal::NOT_A_FLOAT)?;
    let sum = before
        .checked_add(step)
        .ok_or(Refusal::of("ERR increment would produce NaN or Infinity"))?;
    let text = sum.to_text();
    let expire_at = tx.find(key).and_then(|entry| entry.expire_at());
    let value = text.as_bytes();
    let words = [Word::Text(b"SET"), Word::Text(key), Word::Text(value), Word::Text(b"KEEPTTL")];
    tx.told_as(&words, |tx| tx.change(key, Effect::SetString { value, expire_at }).map(drop))?;
    tx.notify(Class::String, "incrbyfloat", key);
    reply.bulk(text.as_bytes());
    Ok(())
}
