//! Elements that come: LPUSH, RPUSH, LPUSHX, RPUSHX, LINSERT.

use super::{find, push_event};
use crate::apply::Applied;
use crate::command::{Args, Outcome};
use crate::effect::{Effect, End};
use crate::feed::Word;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use resp::Reply;

pub(super) fn lpush(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    push(tx, args, reply, End::Head)
}

pub(super) fn rpush(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    push(tx, args, reply, End::Tail)
}

pub(super) fn lpushx(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    push_if_exists(tx, args, reply, End::Head)
}

pub(super) fn rpushx(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    push_if_exists(tx, args, reply, End::Tail)
}

fn push_if_exists(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply, end: End) -> Outcome {
    if find(tx, args.at(1))?.is_none() {
        reply.integer(0);
        return Ok(());
    }
    push(tx, args, reply, end)
}

fn push(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply, end: End) -> Outcome {
    let key = args.at(1);
    let mut len = 0;
    for value in args.from(2) {
        // The key is not looked up before: what it holds is the change's to refuse.
        if let Applied::Pushed(now) = tx.change(key, Effect::ListPush { end, value })? {
            len = now;
        }
    }
    tx.notify(Class::List, push_event(end), key);
    reply.integer(len as i64);
    Ok(())
}

pub(super) fn linsert(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let behind = if args.is(2, "AFTER") {
        1
    } else if args.is(2, "BEFORE") {
        0
    } else {
        return Err(Refusal::SYNTAX);
    };
    let (key, pivot, value) = (args.at(1), args.at(3), args.at(4));
    let work = tx.work();
    let Some(list) = find(tx, key)? else {
        reply.integer(0);
        return Ok(());
    };
    let len = list.len();
    let mut items = list.iter().inspect(|_| work.step());
    let Some(index) = items.position(|item| item.equals(pivot)) else {
        reply.integer(-1);
        return Ok(());
    };
    let side: &[u8] = if behind == 1 { b"AFTER" } else { b"BEFORE" };
    let words = [b"LINSERT", key, side, pivot, value].map(Word::Text);
    let effect = Effect::ListInsert { index: index as u64 + behind, value };
    tx.told_as(&words, |tx| tx.change(key, effect).map(drop))?;
    tx.notify(Class::List, "linsert", key);
    reply.integer(len as i64 + 1);
    Ok(())
}
