//! Fields set, counted and deleted.

use crate::apply::Applied;
use crate::command::{Args, Outcome};
use crate::effect::Effect;
use crate::notify::Class;
use crate::number::Extended;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::hash::{Seen, Text};
use resp::Reply;
use resp::integer::parse_i64;

pub(super) fn hset(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let added = set_all(tx, args, "hset")?;
    reply.integer(added);
    Ok(())
}

pub(super) fn hmset(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    set_all(tx, args, "hmset")?;
    reply.ok();
    Ok(())
}

/// Sets the fields from argument 2 on; how many are new. The first effect looks the key up and
/// refuses a value of another type, so nothing is looked up before.
fn set_all(tx: &mut Tx<'_>, args: Args<'_>, command: &str) -> Result<i64, Refusal> {
    let key = args.at(1);
    if !args.len().is_multiple_of(2) {
        return Err(Refusal::arity(command));
    }
    let mut added = 0;
    for at in (2..args.len()).step_by(2) {
        let (field, value) = (args.at(at), args.at(at + 1));
        let effect = Effect::HashSet { field, value, expire_at: None };
        added += i64::from(tx.change(key, effect)? == Applied::Added);
    }
    tx.notify(Class::Hash, "hset", key);
    Ok(added)
}

pub(super) fn hsetnx(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (key, field, value) = (args.at(1), args.at(2), args.at(3));
    let is_new = !tx.hash(key)?.is_some_and(|hash| hash.contains(field));
    if is_new {
        tx.change(key, Effect::HashSet { field, value, expire_at: None })?;
        tx.notify(Class::Hash, "hset", key);
    }
    reply.integer(i64::from(is_new));
    Ok(())
}

/// The expiry of a field, which HINCRBY and its kin keep.
fn expiry_of(hash: Option<Seen<'_>>, field: &[u8]) -> Option<i64> {
    hash.and_then(|hash| hash.expire_at(field)).flatten()
}

pub(super) fn hincrby(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (key, field) = (args.at(1), args.at(2));
    let step = parse_i64(args.at(3)).ok_or(Refusal::NOT_AN_INTEGER)?;
    let found = tx.hash(key)?;
    let expire_at = expiry_of(found, field);
    let before = match found.and_then(|hash| hash.get(field)) {
        None => 0,
        Some(Text::Integer(integer)) => integer,
        Some(Text::Bytes(bytes)) => {
            parse_i64(bytes).ok_or(Refusal::of("ERR hash value is not an integer"))?
        }
    };
    let sum =
        before.checked_add(step).ok_or(Refusal::of("ERR increment or decrement would overflow"))?;
    let mut digits = itoa::Buffer::new();
    tx.change(key, Effect::HashSet { field, value: digits.format(sum).as_bytes(), expire_at })?;
    tx.notify(Class::Hash, "hincrby", key);
    reply.integer(sum);
    Ok(())
}

pub(super) fn hincrbyfloat(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (key, field) = (args.at(1), args.at(2));
    let step = Extended::parse(args.at(3)).ok_or(Refusal::NOT_A_FLOAT)?;
    if !step.is_finite() {
        return Err(Refusal::of("ERR value is NaN or Infinity"));
    }
    let found = tx.hash(key)?;
    let expire_at = expiry_of(found, field);
    let before = match found.and_then(|hash| hash.get(field)) {
        None => Extended::ZERO,
        Some(Text::Integer(integer)) => Extended::from(integer),
        Some(Text::Bytes(bytes)) => {
            Extended::parse(bytes).ok_or(Refusal::of("ERR hash value is not a float"))?
        }
    };
    let sum = before
        .checked_add(step)
        .ok_or(Refusal::of("ERR increment would produce NaN or Infinity"))?
        .to_text();
    tx.change(key, Effect::HashSet { field, value: sum.as_bytes(), expire_at })?;
    tx.notify(Class::Hash, "hincrbyfloat", key);
    reply.bulk(sum);
    Ok(())
}

/// Publishes the events for fields that a command has deleted.
pub(super) fn tell_deleted(tx: &mut Tx<'_>, key: &[u8]) {
    tx.notify(Class::Hash, "hdel", key);
    if tx.settings().notify_keyspace_events != 0 && !tx.exists(key) {
        tx.notify(Class::Generic, "del", key);
    }
}

pub(super) fn hdel(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let mut deleted = 0;
    for field in args.from(2) {
        let effect = Effect::HashDelete { field, is_expired: false };
        if tx.change(key, effect)? != Applied::Nothing {
            deleted += 1;
        }
    }
    if deleted > 0 {
        tell_deleted(tx, key);
    }
    reply.integer(deleted);
    Ok(())
}
