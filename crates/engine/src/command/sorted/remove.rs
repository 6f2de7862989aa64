//! Members that leave: ZREM, ZREMRANGEBYRANK, ZREMRANGEBYSCORE, ZREMRANGEBYLEX.

use super::copied::Copied;
use super::{bounds, find, notify_if_gone};
use crate::apply::Applied;
use crate::command::{Args, Command, DataFn, Group, Outcome, write};
use crate::effect::Effect;
use crate::notify::Class;
use crate::tx::Tx;
use crate::value::Sorted;
use resp::Reply;
use std::ops::Range;

pub const ZREM: Command<DataFn> = write("ZREM key member [member ...]", zrem)
    .key_use("RW+delete")
    .doc("Removes members from a sorted set; the key goes with the last one.")
    .group(Group::SortedSet)
    .since("1.2.0")
    .cost(
        "O(M*log(N)) with N being the number of elements in the sorted set and M the number of \
         elements to be removed.",
    )
    .fast();

pub const ZREMRANGEBYRANK: Command<DataFn> =
    write("ZREMRANGEBYRANK key start stop", zremrangebyrank)
        .key_use("RW+delete")
        .doc("Removes the members of a sorted set between two ranks.")
        .group(Group::SortedSet)
        .since("2.0.0")
        .cost(RANGE_COST);

pub const ZREMRANGEBYSCORE: Command<DataFn> =
    write("ZREMRANGEBYSCORE key min max", zremrangebyscore)
        .key_use("RW+delete")
        .doc("Removes the members of a sorted set whose scores lie within a range.")
        .group(Group::SortedSet)
        .since("1.2.0")
        .cost(RANGE_COST);

pub const ZREMRANGEBYLEX: Command<DataFn> = write("ZREMRANGEBYLEX key min max", zremrangebylex)
    .key_use("RW+delete")
    .doc("Removes the members of a sorted set between two members.")
    .group(Group::SortedSet)
    .since("2.8.9")
    .cost(RANGE_COST);

const RANGE_COST: &str = "O(log(N)+M) with N being the number of elements in the sorted set and M \
                          the number of elements removed by the operation.";

fn zrem(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let mut removed = 0;
    for member in args.from(2) {
        if tx.change(key, Effect::SortedRemove { member })? != Applied::Nothing {
            removed += 1;
        }
    }
    if removed > 0 {
        tx.notify(Class::SortedSet, "zrem", key);
        notify_if_gone(tx, key);
    }
    reply.integer(removed);
    Ok(())
}

fn zremrangebyrank(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let ranks = bounds::ranks(args.at(2), args.at(3))?;
    remove_range(tx, args, reply, "zremrangebyrank", |it| bounds::resolve(ranks, it.len()))
}

fn zremrangebyscore(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (min, max) = bounds::scores(args.at(2), args.at(3))?;
    remove_range(tx, args, reply, "zremrangebyscore", |it| it.ranks_by_score(min, max))
}

fn zremrangebylex(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (min, max) = bounds::members(args.at(2), args.at(3))?;
    remove_range(tx, args, reply, "zremrangebylex", |it| it.ranks_by_lex(min, max))
}

fn remove_range(
    tx: &mut Tx<'_>,
    args: Args<'_>,
    reply: &mut Reply,
    event: &str,
    ranks: impl FnOnce(&Sorted) -> Range<usize>,
) -> Outcome {
    let key = args.at(1);
    let mut leaving = Copied::new(tx.work());
    if let Some(sorted) = find(tx, key)? {
        let ranks = ranks(sorted);
        sorted.ascending(ranks).for_each(|(member, score)| leaving.push_text(member, score));
    }
    for (member, _) in leaving.iter() {
        tx.change(key, Effect::SortedRemove { member })?;
    }
    if !leaving.is_empty() {
        tx.notify(Class::SortedSet, event, key);
        notify_if_gone(tx, key);
    }
    reply.integer(leaving.len() as i64);
    Ok(())
}
