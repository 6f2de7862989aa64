//! OBJECT: how a key is stored. Looking does not count as using.

use crate::access;
use crate::command::{Args, Command, DataFn, Flags, Outcome, read};
use crate::refusal::Refusal;
use crate::value;
use crate::value::EntryRef;
use crate::view::View;
use resp::Reply;
use structures::entry::ValueRef;

pub const ENCODING: Command<DataFn> = read("OBJECT ENCODING key", encoding)
    .needs_no_value()
    .key_use("RO")
    .tips(&["nondeterministic_output"])
    .doc("Returns the internal encoding of a Redis object.")
    .since("2.2.3")
    .cost("O(1)")
    .with(Flags::KEYSPACE);

pub const FREQ: Command<DataFn> = read("OBJECT FREQ key", freq)
    .needs_no_value()
    .key_use("RO")
    .tips(&["nondeterministic_output"])
    .doc("Returns the logarithmic access frequency counter of a Redis object.")
    .since("4.0.0")
    .cost("O(1)")
    .with(Flags::KEYSPACE);

pub const IDLETIME: Command<DataFn> = read("OBJECT IDLETIME key", idletime)
    .needs_no_value()
    .key_use("RO")
    .tips(&["nondeterministic_output"])
    .doc("Returns the time since the last access to a Redis object.")
    .since("2.2.3")
    .cost("O(1)")
    .with(Flags::KEYSPACE);

pub const REFCOUNT: Command<DataFn> = read("OBJECT REFCOUNT key", refcount)
    .needs_no_value()
    .key_use("RO")
    .tips(&["nondeterministic_output"])
    .doc("Returns the reference count of a value of a key.")
    .since("2.2.3")
    .cost("O(1)")
    .with(Flags::KEYSPACE);

pub const TIER: Command<DataFn> = read("OBJECT TIER key", tier)
    .needs_no_value()
    .key_use("RO")
    .tips(&["nondeterministic_output"])
    .doc("Returns where the value of a key lies: in memory, or on the SSD.")
    .since("7.0.0")
    .cost("O(1)")
    .with(Flags::KEYSPACE);

/// Answers null for a key that is not there, else what `answer` says.
fn with_entry(
    view: &mut View<'_>,
    key: &[u8],
    reply: &mut Reply,
    answer: impl FnOnce(&View<'_>, EntryRef<'_>, &mut Reply) -> Outcome,
) -> Outcome {
    let Some(entry) = view.peek(key) else {
        view.keyspace().statistics.miss();
        reply.null();
        return Ok(());
    };
    view.keyspace().statistics.hit();
    answer(view, entry, reply)
}

fn encoding(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    with_entry(view, args.at(2), reply, |_, entry, reply| {
        reply.bulk(value::encoding(entry));
        Ok(())
    })
}

fn freq(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    with_entry(view, args.at(2), reply, |view, entry, reply| {
        let settings = view.settings();
        if !settings.maxmemory_policy.is_lfu() {
            return Err(Refusal::of(
                "ERR An LFU maxmemory policy is not selected, access frequency not tracked. \
                 Please note that when switching between policies at runtime LRU and LFU data \
                 will take some time to adjust.",
            ));
        }
        let counter = access::lfu_counter(entry.access(), view.now(), settings);
        reply.integer(i64::from(counter));
        Ok(())
    })
}

fn idletime(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    with_entry(view, args.at(2), reply, |view, entry, reply| {
        if view.settings().maxmemory_policy.is_lfu() {
            return Err(Refusal::of(
                "ERR An LFU maxmemory policy is selected, idle time not tracked. Please note that \
                 when switching between policies at runtime LRU and LFU data will take some time \
                 to adjust.",
            ));
        }
        reply.integer(i64::from(access::idle_seconds(entry.access(), view.now())));
        Ok(())
    })
}

/// Integers below this are shared between keys in Redis, and how many users it says that they have.
const SHARED_INTEGERS: i64 = 10_000;
const SHARED_COUNT: i64 = i32::MAX as i64;

fn refcount(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    with_entry(view, args.at(2), reply, |view, entry, reply| {
        // No value is shared between keys; the answer is what Redis gives for one that it shares.
        let settings = &view.keyspace().settings;
        let shares = settings.maxmemory == 0 || !settings.maxmemory_policy.is_by_use();
        let is_small = match entry.value() {
            ValueRef::Integer(integer) => (0..SHARED_INTEGERS).contains(&integer),
            _ => false,
        };
        reply.integer(if shares && is_small { SHARED_COUNT } else { 1 });
        Ok(())
    })
}

/// A value that was moved out, and is in memory all the same because its write is under way, is
/// said to be on the SSD as well: it is fetched like every other.
fn tier(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    with_entry(view, args.at(2), reply, |_, entry, reply| {
        reply.bulk(if entry.is_cold() { "ssd" } else { "memory" });
        Ok(())
    })
}

#[cfg(test)]
mod tests;
