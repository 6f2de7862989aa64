//! Members that go from an end: ZPOPMIN, ZPOPMAX, ZMPOP, and BZPOPMIN, BZPOPMAX, BZMPOP, which
//! wait.

use super::copied::Copied;
use super::{find, notify_if_gone};
use crate::command::{Args, Command, DataFn, Flags, Group, Outcome, timeout, write};
use crate::effect::Effect;
use crate::feed::Word;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::unit::TimeoutReply;
use crate::value::Awaited;
use resp::integer::parse_i64;
use resp::{Protocol, Reply};
use std::ops::Range;

pub const ZPOPMIN: Command<DataFn> =
    write("ZPOPMIN key [count]", |tx, args, reply| pop(tx, args, reply, End::Min))
        .key_use("RW+access+delete")
        .doc("Removes and returns the members with the lowest scores.")
        .group(Group::SortedSet)
        .since("5.0.0")
        .cost(POP_COST)
        .fast();

pub const ZPOPMAX: Command<DataFn> =
    write("ZPOPMAX key [count]", |tx, args, reply| pop(tx, args, reply, End::Max))
        .key_use("RW+access+delete")
        .doc("Removes and returns the members with the highest scores.")
        .group(Group::SortedSet)
        .since("5.0.0")
        .cost(POP_COST)
        .fast();

pub const ZMPOP: Command<DataFn> =
    write("ZMPOP numkeys key [key ...] <MIN | MAX> [COUNT count]", zmpop)
        .key_use("RW+access+delete")
        .doc("Removes and returns members from the first of several sorted sets that has any.")
        .group(Group::SortedSet)
        .since("7.0.0")
        .cost(MANY_COST);

pub const BZPOPMIN: Command<DataFn> =
    write("BZPOPMIN key [key ...] timeout", |tx, args, reply| bzpop(tx, args, reply, End::Min))
        .key_use("RW+access+delete")
        .doc("Removes and returns the member with the lowest score, or waits for one.")
        .group(Group::SortedSet)
        .since("5.0.0")
        .cost("O(log(N)) with N being the number of elements in the sorted set.")
        .with(Flags::NOSCRIPT)
        .fast()
        .blocking();

pub const BZPOPMAX: Command<DataFn> =
    write("BZPOPMAX key [key ...] timeout", |tx, args, reply| bzpop(tx, args, reply, End::Max))
        .key_use("RW+access+delete")
        .doc("Removes and returns the member with the highest score, or waits for one.")
        .group(Group::SortedSet)
        .since("5.0.0")
        .cost("O(log(N)) with N being the number of elements in the sorted set.")
        .with(Flags::NOSCRIPT)
        .fast()
        .blocking();

pub const BZMPOP: Command<DataFn> =
    write("BZMPOP timeout numkeys key [key ...] <MIN | MAX> [COUNT count]", bzmpop)
        .key_use("RW+access+delete")
        .doc("Removes and returns members from a sorted set, or waits for one that has any.")
        .group(Group::SortedSet)
        .since("7.0.0")
        .cost(MANY_COST)
        .blocking();

const POP_COST: &str = "O(log(N)*M) with N being the number of elements in the sorted set, and M \
                        being the number of elements popped.";
const MANY_COST: &str = "O(K) + O(M*log(N)) where K is the number of provided keys, N being the \
                         number of elements in the sorted set, and M being the number of elements \
                         popped.";

/// An end of a sorted set.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    Min,
    Max,
}

/// The form of a reply that names what was popped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// `member score …`
    Flat,
    /// `[member score] …`
    Pairs,
    /// `key member score`
    Keyed,
    /// `key [[member score] …]`
    KeyedPairs,
}

fn pop(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply, end: End) -> Outcome {
    let count = match args.len() {
        2 => None,
        3 => {
            let count = parse_i64(args.at(2)).and_then(|count| u64::try_from(count).ok());
            Some(count.ok_or(Refusal::NOT_POSITIVE)?)
        }
        _ => return Err(Refusal::SYNTAX),
    };
    let pairs = count.is_some() && reply.protocol() == Protocol::Resp3;
    let shape = if pairs { Shape::Pairs } else { Shape::Flat };
    if !pop_from(tx, args.at(1), end, count.unwrap_or(1), shape, reply)? {
        reply.array(0);
    }
    Ok(())
}

/// Pops up to `count` members from the sorted set at `key` and replies with them; whether there
/// was one.
fn pop_from(
    tx: &mut Tx<'_>,
    key: &[u8],
    end: End,
    count: u64,
    shape: Shape,
    reply: &mut Reply,
) -> Result<bool, Refusal> {
    let mut leaving = Copied::new(tx.work());
    let Some(sorted) = find(tx, key)? else { return Ok(false) };
    let len = sorted.len();
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(len);
    match end {
        End::Min => {
            sorted.ascending(0..count).for_each(|(member, score)| leaving.push_text(member, score))
        }
        End::Max => sorted
            .descending(len - count..len)
            .for_each(|(member, score)| leaving.push_text(member, score)),
    }
    match shape {
        Shape::Flat => reply.array(count * 2),
        Shape::Pairs => reply.array(count),
        Shape::Keyed => {
            reply.array(1 + count * 2);
            reply.bulk(key);
        }
        Shape::KeyedPairs => {
            reply.array(2);
            reply.bulk(key);
            reply.array(count);
        }
    }
    for (member, score) in leaving.iter() {
        if matches!(shape, Shape::Pairs | Shape::KeyedPairs) {
            reply.array(2);
        }
        reply.bulk(member);
        reply.double(score);
    }
    if count > 0 {
        let verb: &[u8] = if end == End::Min { b"ZPOPMIN" } else { b"ZPOPMAX" };
        let words = [Word::Text(verb), Word::Text(key), Word::Number(count as i64)];
        tx.told_as(&words, |tx| {
            let mut members = leaving.iter().map(|(member, _)| member);
            members.try_for_each(|member| tx.change(key, Effect::SortedRemove { member }).map(drop))
        })?;
        let event = if end == End::Min { "zpopmin" } else { "zpopmax" };
        tx.notify(Class::SortedSet, event, key);
        notify_if_gone(tx, key);
    }
    Ok(true)
}

/// Pops from the first of the keys that has a sorted set; whether there was one. A command that
/// runs again takes only from the key that became ready, and passes over other types.
fn pop_first(
    tx: &mut Tx<'_>,
    args: Args<'_>,
    keys: Range<usize>,
    (end, count, shape): (End, u64, Shape),
    reply: &mut Reply,
) -> Result<bool, Refusal> {
    for key in args.range(keys) {
        if !tx.may_serve(key) {
            continue;
        }
        match pop_from(tx, key, end, count, shape, reply) {
            Ok(false) => {}
            Err(_) if tx.is_retry() => {}
            done => return done,
        }
    }
    Ok(false)
}

/// Leaves the client waiting for one of the keys, where it may be.
fn wait(
    tx: &mut Tx<'_>,
    args: Args<'_>,
    keys: Range<usize>,
    wait_millis: Option<u64>,
    reply: &mut Reply,
) {
    if tx.may_block() {
        let keys = args.range(keys).map(<[u8]>::to_vec).collect();
        tx.wait(keys, Awaited::SortedSet, wait_millis, TimeoutReply::NullArray);
    } else {
        reply.null_array();
    }
}

fn bzpop(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply, end: End) -> Outcome {
    let last = args.len() - 1;
    let wait_millis = timeout::millis(args.at(last))?;
    if !pop_first(tx, args, 1..last, (end, 1, Shape::Keyed), reply)? {
        wait(tx, args, 1..last, wait_millis, reply);
    }
    Ok(())
}

/// The arguments of ZMPOP and BZMPOP behind the keys.
struct Many {
    keys: Range<usize>,
    end: End,
    count: u64,
}

impl Many {
    /// `numkeys` is the argument that counts the keys.
    fn parse(args: Args<'_>, numkeys: usize) -> Result<Self, Refusal> {
        let positive = |at, refusal| {
            let number = parse_i64(args.at(at)).filter(|number| *number > 0);
            number.map(i64::unsigned_abs).ok_or(Refusal::of(refusal))
        };
        let keys = positive(numkeys, "ERR numkeys should be greater than 0")?;
        let first = numkeys + 1;
        let side = first.saturating_add(usize::try_from(keys).unwrap_or(usize::MAX));
        let end = if args.is(side, "MIN") {
            End::Min
        } else if args.is(side, "MAX") {
            End::Max
        } else {
            return Err(Refusal::SYNTAX);
        };
        let mut count = None;
        let mut at = side + 1;
        while at < args.len() {
            if count.is_some() || !args.is(at, "COUNT") || at + 1 == args.len() {
                return Err(Refusal::SYNTAX);
            }
            count = Some(positive(at + 1, "ERR count should be greater than 0")?);
            at += 2;
        }
        Ok(Self { keys: first..side, end, count: count.unwrap_or(1) })
    }

    fn pop(&self, tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Result<bool, Refusal> {
        let how = (self.end, self.count, Shape::KeyedPairs);
        pop_first(tx, args, self.keys.clone(), how, reply)
    }
}

fn zmpop(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    if !Many::parse(args, 1)?.pop(tx, args, reply)? {
        reply.null_array();
    }
    Ok(())
}

fn bzmpop(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let many = Many::parse(args, 2)?;
    let wait_millis = timeout::millis(args.at(1))?;
    if !many.pop(tx, args, reply)? {
        wait(tx, args, many.keys, wait_millis, reply);
    }
    Ok(())
}
