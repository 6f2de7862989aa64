//! Members chosen at random: SPOP, SRANDMEMBER.

use super::{find, notify_if_gone, reply_member, view_set};
use crate::command::sample::{self, Wanted};
use crate::command::{Args, Command, DataFn, Group, Outcome, read, write};
use crate::effect::Effect;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::Set;
use crate::view::View;
use resp::Reply;
use resp::integer::parse_i64;
use std::collections::BTreeSet;
use structures::{MemberBuffer, MemberRef};

pub const SPOP: Command<DataFn> = write("SPOP key [count]", spop)
    .key_use("RW+access+delete")
    .tips(&["nondeterministic_output"])
    .doc("Removes and returns members chosen at random; the key goes with the last one.")
    .group(Group::Set)
    .cost("Without the count argument O(1), otherwise O(N) where N is the value of the count.")
    .fast();

pub const SRANDMEMBER: Command<DataFn> = read("SRANDMEMBER key [count]", srandmember)
    .tips(&["nondeterministic_output"])
    .doc("Returns members chosen at random.")
    .group(Group::Set)
    .cost(
        "Without the count argument O(1), otherwise O(N) where N is the absolute value of the \
         passed count.",
    );

fn spop(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    match args.len() {
        2 => {}
        3 => return spop_count(tx, args, reply),
        _ => return Err(Refusal::SYNTAX),
    }
    let word = tx.random().word();
    let Some(member) = find(tx, key)?.and_then(|set| set.random(word)).map(MemberRef::to_vec)
    else {
        reply.null();
        return Ok(());
    };
    tx.change(key, Effect::SetRemove { member: &member })?;
    tx.notify(Class::Set, "spop", key);
    notify_if_gone(tx, key);
    reply.bulk(member);
    Ok(())
}

fn spop_count(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let count = parse_i64(args.at(2)).and_then(|count| u64::try_from(count).ok());
    let count = count.ok_or(Refusal::NOT_POSITIVE)?;
    let set = find(tx, key)?;
    let len = set.map_or(0, Set::len);
    if count == 0 || len == 0 {
        reply.set(0);
        return Ok(());
    }
    tx.notify(Class::Set, "spop", key);
    if count >= len as u64 {
        let work = tx.work();
        reply.set(len);
        if let Some(set) = find(tx, key)? {
            work.reply_each(set.iter(), reply, reply_member);
        }
        tx.delete(key);
        tx.notify(Class::Generic, "del", key);
        return Ok(());
    }
    reply.set(count as usize);
    for _ in 0..count {
        let word = tx.random().word();
        let member = find(tx, key)?.and_then(|set| set.random(word)).map(MemberRef::to_vec);
        let Some(member) = member else { break };
        tx.change(key, Effect::SetRemove { member: &member })?;
        reply.bulk(member);
    }
    Ok(())
}

fn srandmember(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let wanted = match args.len() {
        2 => None,
        3 => Some(Wanted::parse(args.at(2))?),
        _ => return Err(Refusal::SYNTAX),
    };
    let set = view_set(view, args.at(1))?;
    let Some(wanted) = wanted else {
        match set.and_then(|set| set.random(view.random().word())) {
            Some(member) => reply_member(member, reply),
            None => reply.null(),
        }
        return Ok(());
    };
    let Some(set) = set else {
        reply.array(0);
        return Ok(());
    };
    let work = view.work();
    match wanted.check(reply)? {
        Wanted::Repeated(count) => {
            reply.array(count as usize);
            work.reply_each(0..count, reply, |_, reply| {
                if let Some(member) = set.random(view.random().word()) {
                    reply_member(member, reply);
                }
            });
        }
        Wanted::Distinct(count) => {
            let count = usize::try_from(count).unwrap_or(usize::MAX).min(set.len());
            let members = distinct(view, set, count);
            reply.array(members.len());
            work.reply_each(members, reply, reply_member);
        }
    }
    Ok(())
}

/// `count` different members, chosen evenly; `count` is at most the set's length.
fn distinct<'s>(view: &mut View<'_>, set: &'s Set, count: usize) -> Vec<MemberRef<'s>> {
    if sample::is_most(count, set.len()) {
        let mut all: Vec<_> = set.iter().inspect(|_| view.work().step()).collect();
        if count < all.len() {
            view.work().steps(count);
            sample::choose(&mut all, count, view.random());
        }
        return all;
    }
    let hasher = view.keyspace().hasher();
    let mut buffer = MemberBuffer::new();
    let mut seen = BTreeSet::new();
    let mut members = Vec::with_capacity(count);
    while members.len() < count {
        view.work().step();
        let Some(member) = set.random(view.random().word()) else { break };
        // Two members of one hash would exclude each other: with 64 bits that is no bias.
        if seen.insert(hasher.hash(member.bytes(&mut buffer))) {
            members.push(member);
        }
    }
    members
}
