//! Elements that go from an end: LPOP, RPOP, LMPOP, and BLPOP, BRPOP, BLMPOP, which wait.

use super::{at_least, end, find, pop_event};
use crate::command::{Args, Outcome, timeout};
use crate::effect::{Effect, End};
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::unit::TimeoutReply;
use crate::value::{Awaited, list};
use crate::work::Work;
use resp::Reply;
use structures::Quicklist;

pub(super) fn lpop(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    pop(tx, args, reply, End::Head)
}

pub(super) fn rpop(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    pop(tx, args, reply, End::Tail)
}

fn pop(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply, end: End) -> Outcome {
    let key = args.at(1);
    let count = match args.len() {
        2 => None,
        3 => Some(at_least(args, 2, 0, Refusal::NOT_POSITIVE)?),
        _ => return Err(Refusal::arity(if end == End::Head { "lpop" } else { "rpop" })),
    };
    let work = tx.work();
    let Some(list) = find(tx, key)? else {
        match count {
            Some(_) => reply.null_array(),
            None => reply.null(),
        }
        return Ok(());
    };
    match count {
        Some(0) => {
            reply.array(0);
            return Ok(());
        }
        Some(count) => reply_items(list, end, count, &work, reply),
        None => reply_edge(list, end, reply),
    }
    let len = list.len();
    remove(tx, key, end, count.unwrap_or(1), len)
}

/// Appends up to `count` elements from one end as an array, the outermost first.
fn reply_items(list: &Quicklist, end: End, count: u64, work: &Work, reply: &mut Reply) {
    let count = usize::try_from(count).unwrap_or(usize::MAX).min(list.len());
    reply.array(count);
    let mut reply_item = |item| {
        work.step();
        list::reply_item(item, reply);
    };
    match end {
        End::Head => list.range(0..count).for_each(reply_item),
        End::Tail => {
            let items = list.range(list.len() - count..list.len());
            items.rev().for_each(&mut reply_item);
        }
    }
}

/// Appends the outermost element.
fn reply_edge(list: &Quicklist, end: End, reply: &mut Reply) {
    let index = if end == End::Head { 0 } else { list.len() - 1 };
    match list.get(index) {
        Some(item) => list::reply_item(item, reply),
        None => reply.null(),
    }
}

/// Removes up to `count` elements from one end of a list of `len`, with the events.
fn remove(tx: &mut Tx<'_>, key: &[u8], end: End, count: u64, len: usize) -> Outcome {
    let count = count.min(len as u64);
    tx.change(key, Effect::ListPop { end, count })?;
    tx.notify(Class::List, pop_event(end), key);
    if count == len as u64 {
        tx.notify(Class::Generic, "del", key);
    }
    Ok(())
}

/// The arguments of LMPOP and BLMPOP behind the keys.
struct Many<'a> {
    keys: std::ops::Range<usize>,
    args: Args<'a>,
    end: End,
    count: u64,
}

impl<'a> Many<'a> {
    /// `numkeys` is the argument that counts the keys.
    fn parse(args: Args<'a>, numkeys: usize) -> Result<Self, Refusal> {
        let refusal = Refusal::of("ERR numkeys should be greater than 0");
        let keys = at_least(args, numkeys, 1, refusal)?;
        let first = numkeys + 1;
        let keys = usize::try_from(keys).unwrap_or(usize::MAX);
        let side = first.saturating_add(keys);
        if side >= args.len() {
            return Err(Refusal::SYNTAX);
        }
        let end = end(args, side)?;
        let count = match args.len() - side - 1 {
            0 => 1,
            words => {
                if words < 2 || !args.is(side + 1, "COUNT") {
                    return Err(Refusal::SYNTAX);
                }
                let refusal = Refusal::of("ERR count should be greater than 0");
                let count = at_least(args, side + 2, 1, refusal)?;
                if words > 2 {
                    return Err(Refusal::SYNTAX);
                }
                count
            }
        };
        Ok(Self { keys: first..side, args, end, count })
    }

    /// Pops from the first key that has a list; whether there was one.
    fn pop(&self, tx: &mut Tx<'_>, reply: &mut Reply) -> Result<bool, Refusal> {
        for key in self.args.range(self.keys.clone()) {
            let work = tx.work();
            let Some(list) = find_ready(tx, key)? else { continue };
            reply.array(2);
            reply.bulk(key);
            reply_items(list, self.end, self.count, &work, reply);
            let len = list.len();
            remove(tx, key, self.end, self.count, len)?;
            return Ok(true);
        }
        Ok(false)
    }
}

/// The list at a key, if a command that may have waited is to take from it.
fn find_ready<'a>(tx: &'a mut Tx<'_>, key: &[u8]) -> Result<Option<&'a Quicklist>, Refusal> {
    if !tx.may_serve(key) {
        return Ok(None);
    }
    let is_retry = tx.is_retry();
    match find(tx, key) {
        Err(_) if is_retry => Ok(None),
        found => found,
    }
}

pub(super) fn lmpop(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    if !Many::parse(args, 1)?.pop(tx, reply)? {
        reply.null_array();
    }
    Ok(())
}

pub(super) fn blmpop(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let many = Many::parse(args, 2)?;
    let wait_millis = timeout::millis(args.at(1))?;
    if many.pop(tx, reply)? {
        return Ok(());
    }
    if tx.may_block() {
        let keys = args.range(many.keys).map(<[u8]>::to_vec).collect();
        tx.wait(keys, Awaited::List, wait_millis, TimeoutReply::NullArray);
    } else {
        reply.null_array();
    }
    Ok(())
}

pub(super) fn blpop(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    blocking_pop(tx, args, reply, End::Head)
}

pub(super) fn brpop(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    blocking_pop(tx, args, reply, End::Tail)
}

fn blocking_pop(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply, end: End) -> Outcome {
    let last = args.len() - 1;
    let wait_millis = timeout::millis(args.at(last))?;
    for key in args.range(1..last) {
        let Some(list) = find_ready(tx, key)? else { continue };
        reply.array(2);
        reply.bulk(key);
        reply_edge(list, end, reply);
        let len = list.len();
        return remove(tx, key, end, 1, len);
    }
    if tx.may_block() {
        let keys = args.range(1..last).map(<[u8]>::to_vec).collect();
        tx.wait(keys, Awaited::List, wait_millis, TimeoutReply::NullArray);
    } else {
        reply.null_array();
    }
    Ok(())
}
