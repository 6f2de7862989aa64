//! An element that goes from one list to another: LMOVE, RPOPLPUSH, and BLMOVE, BRPOPLPUSH, which
//! wait for one.

use super::{end, find, pop_event, push_event};
use crate::command::{Args, Outcome, timeout};
use crate::effect::{Effect, End};
use crate::feed::Word;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::unit::TimeoutReply;
use crate::value::Awaited;
use resp::Reply;

pub(super) fn lmove(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (from, to) = (end(args, 3)?, end(args, 4)?);
    if !shift(tx, args, from, to, reply)? {
        reply.null();
    }
    Ok(())
}

pub(super) fn rpoplpush(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    if !shift(tx, args, End::Tail, End::Head, reply)? {
        reply.null();
    }
    Ok(())
}

pub(super) fn blmove(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (from, to) = (end(args, 3)?, end(args, 4)?);
    let wait_millis = timeout::millis(args.at(5))?;
    blocking_shift(tx, args, from, to, wait_millis, reply)
}

pub(super) fn brpoplpush(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let wait_millis = timeout::millis(args.at(3))?;
    blocking_shift(tx, args, End::Tail, End::Head, wait_millis, reply)
}

fn blocking_shift(
    tx: &mut Tx<'_>,
    args: Args<'_>,
    from: End,
    to: End,
    wait_millis: Option<u64>,
    reply: &mut Reply,
) -> Outcome {
    let source = args.at(1);
    // A client that waits for a list goes on waiting when something else takes the key; what is
    // wrong with the destination it learns when an element is there.
    let passes_over = tx.is_retry() && find(tx, source).is_err();
    if !passes_over && shift(tx, args, from, to, reply)? {
        return Ok(());
    }
    if tx.may_block() {
        tx.wait(vec![source.to_vec()], Awaited::List, wait_millis, TimeoutReply::NullArray);
    } else {
        reply.null();
    }
    Ok(())
}

/// Moves an element from one end of the list at argument 1 to an end of that at argument 2, and
/// replies with it; false if there is none. The element is pushed before it is popped, so that a
/// list of one element that is its own destination, and its expiry, stay.
fn shift(
    tx: &mut Tx<'_>,
    args: Args<'_>,
    from: End,
    to: End,
    reply: &mut Reply,
) -> Result<bool, Refusal> {
    let (source, destination) = (args.at(1), args.at(2));
    let Some(list) = find(tx, source)? else { return Ok(false) };
    let len = list.len();
    let item = list.get(if from == End::Head { 0 } else { len - 1 });
    let Some(value) = item.map(|item| item.to_vec()) else { return Ok(false) };
    find(tx, destination)?;
    let side = |end| Word::Text(if end == End::Head { b"LEFT" } else { b"RIGHT" });
    let (names, sides) = ([source, destination].map(Word::Text), [from, to].map(side));
    let words = [Word::Text(b"LMOVE"), names[0], names[1], sides[0], sides[1]];
    tx.told_as(&words, |tx| {
        tx.change(destination, Effect::ListPush { end: to, value: &value })?;
        tx.change(source, Effect::ListPop { end: from, count: 1 }).map(drop)
    })?;
    tx.notify(Class::List, push_event(to), destination);
    tx.notify(Class::List, pop_event(from), source);
    if len == 1 && source != destination {
        tx.notify(Class::Generic, "del", source);
    }
    reply.bulk(&value);
    Ok(true)
}
