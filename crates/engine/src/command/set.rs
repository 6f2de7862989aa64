//! Sets (Redis documentation, "Commands", group set).
//!
//! | module | holds |
//! |---|---|
//! | `set` | members that join, leave, move and are asked for |
//! | `chance` | SPOP, SRANDMEMBER |
//! | `combine` | SINTER, SUNION, SDIFF, their STORE forms, SINTERCARD |

mod chance;
mod combine;
#[cfg(test)]
mod tests;

use super::key::scan::{SCAN_COST, ScanOptions, Takes, parse_cursor};
use super::{Args, Command, DataFn, Group, Outcome, read, write};
use crate::apply::Applied;
use crate::effect::Effect;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::Set;
use crate::value::set::{self, reply_member};
use crate::view::View;
use resp::Reply;
use structures::MemberBuffer;

pub const COMMANDS: &[Command<DataFn>] = &[
    write("SADD key member [member ...]", sadd)
        .key_use("RW+insert")
        .doc("Adds members to a set, which is created if absent.")
        .group(Group::Set)
        .cost("O(1) for each element added, so O(N) for N elements.")
        .denyoom()
        .fast(),
    write("SREM key member [member ...]", srem)
        .key_use("RW+delete")
        .doc("Removes members from a set; the key goes with the last one.")
        .group(Group::Set)
        .cost("O(N) where N is the number of members to be removed.")
        .fast(),
    write("SMOVE source destination member", smove)
        .key_specs(&["@1,0/1/0,RW+access+delete", "@2,0/1/0,RW+insert"])
        .doc("Moves a member from one set to another.")
        .group(Group::Set)
        .cost("O(1)")
        .fast(),
    read("SISMEMBER key member", sismember)
        .key_use("RO")
        .doc("Tells whether a member is in a set.")
        .group(Group::Set)
        .cost("O(1)")
        .fast(),
    read("SMISMEMBER key member [member ...]", smismember)
        .doc("Tells for each of several members whether it is in a set.")
        .group(Group::Set)
        .since("6.2.0")
        .cost("O(N) where N is the number of elements being checked for membership")
        .fast(),
    read("SCARD key", scard)
        .needs_no_value()
        .key_use("RO")
        .doc("Returns the number of members in a set.")
        .group(Group::Set)
        .cost("O(1)")
        .fast(),
    read("SMEMBERS key", combine::smembers)
        .tips(&["nondeterministic_output_order"])
        .doc("Returns all members of a set.")
        .group(Group::Set)
        .cost("O(N) where N is the set cardinality."),
    read("SSCAN key cursor [MATCH pattern] [COUNT count]", sscan)
        .tips(&["nondeterministic_output"])
        .doc("Iterates over the members of a set.")
        .group(Group::Set)
        .since("2.8.0")
        .cost(SCAN_COST),
    chance::SPOP,
    chance::SRANDMEMBER,
    combine::SINTER,
    combine::SINTERCARD,
    combine::SINTERSTORE,
    combine::SUNION,
    combine::SUNIONSTORE,
    combine::SDIFF,
    combine::SDIFFSTORE,
];

/// The set at `key`, read for a client.
///
/// # Errors
/// WRONGTYPE if the key holds another type.
fn view_set<'a>(view: &mut View<'a>, key: &[u8]) -> Result<Option<&'a Set>, Refusal> {
    view.find(key).map(set::of).transpose()
}

/// The set at `key`, read before a change.
///
/// # Errors
/// WRONGTYPE if the key holds another type.
fn find<'t>(tx: &'t mut Tx<'_>, key: &[u8]) -> Result<Option<&'t Set>, Refusal> {
    tx.find(key).map(set::of).transpose()
}

fn sadd(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let mut added = 0;
    for member in args.from(2) {
        if tx.change(key, Effect::SetAdd { member })? != Applied::Nothing {
            added += 1;
        }
    }
    if added > 0 {
        tx.notify(Class::Set, "sadd", key);
    }
    reply.integer(added);
    Ok(())
}

fn srem(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let mut removed = 0;
    for member in args.from(2) {
        if tx.change(key, Effect::SetRemove { member })? != Applied::Nothing {
            removed += 1;
        }
    }
    if removed > 0 {
        tx.notify(Class::Set, "srem", key);
        notify_if_gone(tx, key);
    }
    reply.integer(removed);
    Ok(())
}

/// Publishes that a key went with its last member, if it did.
fn notify_if_gone(tx: &mut Tx<'_>, key: &[u8]) {
    if tx.settings().notify_keyspace_events != 0 && !tx.exists(key) {
        tx.notify(Class::Generic, "del", key);
    }
}

fn smove(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (source, destination, member) = (args.at(1), args.at(2), args.at(3));
    let is_there = find(tx, source).map(|set| set.map(|set| set.contains(member)));
    // A lookup deletes a key whose time has come. Both keys are looked up, whatever the other is.
    let is_set = find(tx, destination).map(|_| ());
    let is_there = is_there?;
    // Only a source that exists makes a destination of another type matter.
    if is_there.is_some() {
        is_set?;
    }
    let is_there = is_there.unwrap_or(false);
    if is_there && source != destination {
        tx.change(source, Effect::SetRemove { member })?;
        tx.notify(Class::Set, "srem", source);
        notify_if_gone(tx, source);
        if tx.change(destination, Effect::SetAdd { member })? != Applied::Nothing {
            tx.notify(Class::Set, "sadd", destination);
        }
    }
    reply.integer(i64::from(is_there));
    Ok(())
}

fn sismember(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let set = view_set(view, args.at(1))?;
    reply.integer(i64::from(set.is_some_and(|set| set.contains(args.at(2)))));
    Ok(())
}

fn smismember(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let set = view_set(view, args.at(1))?;
    reply.array(args.len() - 2);
    view.work().reply_each(args.from(2), reply, |member, reply| {
        reply.integer(i64::from(set.is_some_and(|set| set.contains(member))));
    });
    Ok(())
}

fn scard(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let len = view.count(args.at(1), "set", |_, entry| set::of(entry).map(Set::len))?;
    reply.integer(len as i64);
    Ok(())
}

fn sscan(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    parse_cursor(args.at(2))?;
    let Some(set) = view_set(view, args.at(1))? else {
        // As in Redis, options are not even read then.
        reply.array(2);
        reply.bulk(b"0");
        reply.array(0);
        return Ok(());
    };
    let options = ScanOptions::parse(args, 2, Takes::Nothing)?;
    let mut found = Vec::new();
    let mut buffer = MemberBuffer::new();
    let work = view.work();
    let next = set.scan(options.cursor, options.count, |member| {
        work.step();
        if options.pattern.is_none() || options.matches(member.bytes(&mut buffer), work) {
            found.push(member);
        }
    });
    reply.array(2);
    reply.bulk(next.to_string());
    reply.array(found.len());
    work.reply_each(found, reply, reply_member);
    Ok(())
}
