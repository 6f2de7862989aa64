//! HRANDFIELD: fields chosen at random, with or without their values.

use super::{find, reply_text};
use crate::command::sample::{self, Wanted};
use crate::command::{Args, Command, DataFn, Group, Outcome, read};
use crate::refusal::Refusal;
use crate::value::Hash;
use crate::value::hash::{Seen, Text};
use crate::view::View;
use resp::{Protocol, Reply};
use std::collections::BTreeSet;

pub const HRANDFIELD: Command<DataFn> = read("HRANDFIELD key [count [WITHVALUES]]", hrandfield)
    .tips(&["nondeterministic_output"])
    .doc("Returns fields of a hash chosen at random.")
    .group(Group::Hash)
    .since("6.2.0")
    .cost("O(N) where N is the number of fields returned");

/// Half the largest count: twice as many elements must be countable, too.
const WITH_VALUES_MAX: u64 = i64::MAX as u64 / 2;

fn hrandfield(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    if args.len() == 2 {
        let hash = find(view, args.at(1))?;
        let work = view.work();
        match hash.and_then(|hash| hash.random(work, || view.random().word())) {
            Some((field, _)) => reply_text(field, reply),
            None => reply.null(),
        }
        return Ok(());
    }
    let wanted = Wanted::parse(args.at(2))?;
    let with_values = args.is(3, "WITHVALUES");
    if args.len() > 4 || (args.len() == 4 && !with_values) {
        return Err(Refusal::SYNTAX);
    }
    let (Wanted::Distinct(count) | Wanted::Repeated(count)) = wanted;
    if with_values && count > WITH_VALUES_MAX {
        return Err(Refusal::of("ERR value is out of range"));
    }
    let Some(hash) = find(view, args.at(1))? else {
        reply.array(0);
        return Ok(());
    };
    match wanted.check(reply)? {
        Wanted::Repeated(count) => reply_repeated(view, hash, count, with_values, reply),
        Wanted::Distinct(count) => {
            let count = usize::try_from(count).unwrap_or(usize::MAX);
            let count = count.min(hash.len(view.work()));
            let pairs = distinct(view, hash, count);
            reply_header(pairs.len(), with_values, reply);
            view.work().reply_each(pairs, reply, |pair, reply| {
                reply_pair(pair, with_values, reply);
            });
        }
    }
    Ok(())
}

/// The header of a reply with `count` fields: RESP2 has their values in between.
fn reply_header(count: usize, with_values: bool, reply: &mut Reply) {
    let is_flat = with_values && reply.protocol() == Protocol::Resp2;
    reply.array(if is_flat { 2 * count } else { count });
}

fn reply_pair((field, value): (Text<'_>, Text<'_>), with_values: bool, reply: &mut Reply) {
    if with_values && reply.protocol() == Protocol::Resp3 {
        reply.array(2);
    }
    reply_text(field, reply);
    if with_values {
        reply_text(value, reply);
    }
}

fn reply_repeated(
    view: &mut View<'_>,
    hash: Seen<'_>,
    count: u64,
    with_values: bool,
    reply: &mut Reply,
) {
    reply_header(count as usize, with_values, reply);
    let work = view.work();
    // Each draw from a listpack walks half of it: lay it out once if there are several.
    let drawn_from = hash.whole().filter(|hash| !hash.is_packed() || count == 1);
    let all: Vec<_> = match drawn_from {
        Some(_) => Vec::new(),
        None => hash.iter(work).collect(),
    };
    work.reply_each(0..count, reply, |_, reply| {
        let pair = match drawn_from {
            Some(hash) => hash.random(view.random().word()),
            None => all.get(view.random().below(all.len().max(1) as u64) as usize).copied(),
        };
        if let Some(pair) = pair {
            reply_pair(pair, with_values, reply);
        }
    });
}

/// `count` different fields, chosen evenly; `count` is at most the hash's length.
fn distinct<'v>(view: &mut View<'v>, hash: Seen<'v>, count: usize) -> Vec<(Text<'v>, Text<'v>)> {
    let drawn_from = |hash: &&Hash| !hash.is_packed() && !sample::is_most(count, hash.len());
    let Some(hash) = hash.whole().filter(drawn_from) else {
        let work = view.work();
        let mut all: Vec<_> = hash.iter(work).inspect(|_| work.step()).collect();
        if count < all.len() {
            view.work().steps(count);
            sample::choose(&mut all, count, view.random());
        }
        return all;
    };
    let hasher = view.keyspace().hasher();
    let mut seen = BTreeSet::new();
    let mut pairs = Vec::with_capacity(count);
    while pairs.len() < count {
        view.work().step();
        let Some(pair) = hash.random(view.random().word()) else { break };
        // Two fields of one hash would exclude each other: with 64 bits that is no bias.
        if seen.insert(hasher.hash(&pair.0.to_vec())) {
            pairs.push(pair);
        }
    }
    pairs
}
