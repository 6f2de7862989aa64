//! Members chosen at random: ZRANDMEMBER.

use super::{reply_header, reply_member, reply_pair, view_sorted};
use crate::command::sample::{self, Wanted};
use crate::command::{Args, Command, DataFn, Group, Outcome, read};
use crate::refusal::Refusal;
use crate::value::sorted::{Sorted, Text};
use crate::view::View;
use resp::Reply;
use std::collections::BTreeSet;

pub const ZRANDMEMBER: Command<DataFn> = read("ZRANDMEMBER key [count [WITHSCORES]]", zrandmember)
    .tips(&["nondeterministic_output"])
    .doc("Returns members of a sorted set chosen at random.")
    .group(Group::SortedSet)
    .since("6.2.0")
    .cost("O(N) where N is the number of elements returned");

fn zrandmember(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let Some(count) = args.get(2) else {
        match view_sorted(view, args.at(1))? {
            Some(sorted) => match sorted.random(view.random().word()) {
                Some((member, _)) => reply_member(member, reply),
                None => reply.null(),
            },
            None => reply.null(),
        }
        return Ok(());
    };
    let wanted = Wanted::parse(count)?;
    if args.len() > 4 || (args.len() == 4 && !args.is(3, "WITHSCORES")) {
        return Err(Refusal::SYNTAX);
    }
    let with_scores = args.len() == 4;
    let (Wanted::Distinct(count) | Wanted::Repeated(count)) = wanted;
    if with_scores && count > i64::MAX as u64 / 2 {
        return Err(Refusal::of("ERR value is out of range"));
    }
    let Some(sorted) = view_sorted(view, args.at(1))? else {
        reply.array(0);
        return Ok(());
    };
    let work = view.work();
    match wanted.check(reply)? {
        Wanted::Repeated(count) => {
            reply_header(count as usize, with_scores, reply);
            work.reply_each(0..count, reply, |_, reply| {
                if let Some((member, score)) = sorted.random(view.random().word()) {
                    reply_pair(member, score, with_scores, reply);
                }
            });
        }
        Wanted::Distinct(count) => {
            let count = usize::try_from(count).unwrap_or(usize::MAX).min(sorted.len());
            let members = distinct(view, sorted, count);
            reply_header(members.len(), with_scores, reply);
            work.reply_each(members, reply, |(member, score), reply| {
                reply_pair(member, score, with_scores, reply);
            });
        }
    }
    Ok(())
}

/// `count` different members, chosen evenly; `count` is at most the sorted set's length.
fn distinct<'s>(view: &mut View<'_>, sorted: &'s Sorted, count: usize) -> Vec<(Text<'s>, f64)> {
    let len = sorted.len();
    if sample::is_most(count, len) || matches!(sorted, Sorted::Pack(_)) {
        let mut all: Vec<_> = sorted.iter().inspect(|_| view.work().step()).collect();
        if count < all.len() {
            view.work().steps(count);
            sample::choose(&mut all, count, view.random());
        }
        return all;
    }
    let mut ranks = BTreeSet::new();
    let mut members = Vec::with_capacity(count);
    while members.len() < count {
        view.work().step();
        let rank = view.random().below(len as u64) as usize;
        if ranks.insert(rank) {
            members.extend(sorted.ascending(rank..rank + 1));
        }
    }
    members
}
