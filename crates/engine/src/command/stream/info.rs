//! XINFO.

use super::ids::reply_id;
use super::range::{reply_entries, reply_entry};
use super::view_stream;
use crate::command::{Args, Command, DataFn, Group, Outcome, read};
use crate::refusal::Refusal;
use crate::stream_id::StreamId;
use crate::value::stream::{self, Entry, Stream};
use crate::view::View;
use crate::work::Work;
use resp::Reply;
use resp::integer::parse_i64;

/// Elements of each list that FULL shows by default: entries, and pending entries of each group and
/// consumer.
const COUNT_DEFAULT: usize = 10;

pub const STREAM: Command<DataFn> = read("XINFO STREAM key [FULL [COUNT count]]", stream)
    .doc("Returns what a stream consists of.")
    .group(Group::Stream)
    .since("5.0.0")
    .cost(
        "O(1), with FULL O(N) where N is the number of entries, blocks and pending entries shown.",
    );

pub const GROUPS: Command<DataFn> = read("XINFO GROUPS key", groups)
    .doc("Returns the groups of a stream.")
    .group(Group::Stream)
    .since("5.0.0")
    .cost("O(N) where N is the number of groups.");

pub const CONSUMERS: Command<DataFn> = read("XINFO CONSUMERS key group", consumers)
    .doc("Returns the consumers of a stream's group.")
    .group(Group::Stream)
    .since("5.0.0")
    .cost("O(N) where N is the number of consumers.")
    .tips(&["nondeterministic_output"]);

/// The stream of an XINFO request, which must exist.
fn existing<'a>(view: &mut View<'a>, key: &[u8]) -> Result<&'a Stream, Refusal> {
    view_stream(view, key)?.ok_or(Refusal::NO_SUCH_KEY)
}

/// COUNT of FULL, 0 for all; `None` without FULL.
fn shown_max(args: Args<'_>) -> Result<Option<usize>, Refusal> {
    let refusal = || Refusal::subcommand("XINFO", args.at(1));
    match args.len() {
        3 => Ok(None),
        4 if args.is(3, "FULL") => Ok(Some(COUNT_DEFAULT)),
        6 if args.is(3, "FULL") && args.is(4, "COUNT") => {
            let count = parse_i64(args.at(5)).ok_or(Refusal::NOT_AN_INTEGER)?;
            Ok(Some(match usize::try_from(count) {
                Ok(0) => usize::MAX,
                Ok(count) => count,
                Err(_) => COUNT_DEFAULT,
            }))
        }
        _ => Err(refusal()),
    }
}

fn stream(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (stream, work) = (existing(view, args.at(2))?, view.work());
    let shown_max = shown_max(args)?;
    reply.map(if shown_max.is_some() { 9 } else { 10 });
    reply.bulk("length");
    reply.integer(stream.len() as i64);
    reply.bulk("radix-tree-keys");
    reply.integer(stream.block_count() as i64);
    reply.bulk("radix-tree-nodes");
    reply.integer(stream.radix_nodes(work) as i64);
    reply.bulk("last-generated-id");
    reply_id(stream.last_id(), reply);
    reply.bulk("max-deleted-entry-id");
    reply_id(stream.max_deleted(), reply);
    reply.bulk("entries-added");
    reply.integer(stream.added() as i64);
    reply.bulk("recorded-first-entry-id");
    reply_id(stream.first_id(), reply);
    match shown_max {
        Some(shown_max) => full(stream, shown_max, work, reply),
        None => {
            reply.bulk("groups");
            reply.integer(stream.groups().len() as i64);
            for (name, entry) in
                [("first-entry", stream.first_entry()), ("last-entry", stream.last_entry())]
            {
                reply.bulk(name);
                reply_entry_or_null(entry, work, reply);
            }
        }
    }
    Ok(())
}

fn reply_entry_or_null(entry: Option<Entry<'_>>, work: &Work, reply: &mut Reply) {
    match entry {
        Some(entry) => reply_entry(entry, work, reply),
        None => reply.null(),
    }
}

/// The part of FULL that STREAM does not show: all entries, and groups with their pending entries.
fn full(stream: &Stream, shown_max: usize, work: &Work, reply: &mut Reply) {
    reply.bulk("entries");
    reply_entries(stream.iter(), shown_max as u64, work, reply);
    reply.bulk("groups");
    reply.array(stream.groups().len());
    work.reply_each(stream.groups(), reply, |(name, group), reply| {
        reply.map(7);
        reply.bulk("name");
        reply.bulk(name);
        reply.bulk("last-delivered-id");
        reply_id(group.last_id(), reply);
        reply_progress(stream, group, reply);
        reply.bulk("pel-count");
        reply.integer(group.pending_len() as i64);
        reply.bulk("pending");
        reply.array(group.pending_len().min(shown_max));
        let pending = group.pending_from(StreamId::MIN).take(shown_max);
        work.reply_each(pending, reply, |(id, pending), reply| {
            reply.array(4);
            reply_id(id, reply);
            reply.bulk(group.owner(pending).map_or(&[][..], stream::Consumer::name));
            reply.integer(pending.time);
            reply.integer(pending.count as i64);
        });
        reply.bulk("consumers");
        reply.array(group.consumers_len());
        work.reply_each(group.consumers(), reply, |consumer, reply| {
            reply.map(4);
            reply.bulk("name");
            reply.bulk(consumer.name());
            reply.bulk("seen-time");
            reply.integer(consumer.seen());
            reply.bulk("pel-count");
            reply.integer(consumer.pending_len() as i64);
            reply.bulk("pending");
            reply.array(consumer.pending_len().min(shown_max));
            let pending = consumer.pending_from(StreamId::MIN).take(shown_max);
            work.reply_each(pending, reply, |id, reply| {
                let pending = group.pending(id);
                reply.array(3);
                reply_id(id, reply);
                reply.integer(pending.map_or(0, |pending| pending.time));
                reply.integer(pending.map_or(0, |pending| pending.count) as i64);
            });
        });
    });
}

/// Appends a group's count of read entries and its lag.
fn reply_progress(stream: &Stream, group: &stream::Group, reply: &mut Reply) {
    let reply_known = |number: Option<i64>, reply: &mut Reply| match number {
        Some(number) => reply.integer(number),
        None => reply.null(),
    };
    reply.bulk("entries-read");
    reply_known(Some(group.read()).filter(|read| *read != stream::UNKNOWN), reply);
    reply.bulk("lag");
    reply_known(stream.lag(group), reply);
}

fn groups(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let stream = existing(view, args.at(2))?;
    reply.array(stream.groups().len());
    view.work().reply_each(stream.groups(), reply, |(name, group), reply| {
        reply.map(6);
        reply.bulk("name");
        reply.bulk(name);
        reply.bulk("consumers");
        reply.integer(group.consumers_len() as i64);
        reply.bulk("pending");
        reply.integer(group.pending_len() as i64);
        reply.bulk("last-delivered-id");
        reply_id(group.last_id(), reply);
        reply_progress(stream, group, reply);
    });
    Ok(())
}

fn consumers(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (key, name) = (args.at(2), args.at(3));
    let stream = existing(view, key)?;
    let group = stream.group(name).ok_or_else(|| super::no_group(name, key))?;
    let now = view.now().0;
    reply.array(group.consumers_len());
    view.work().reply_each(group.consumers(), reply, |consumer, reply| {
        reply.map(3);
        reply.bulk("name");
        reply.bulk(consumer.name());
        reply.bulk("pending");
        reply.integer(consumer.pending_len() as i64);
        reply.bulk("idle");
        reply.integer(now.saturating_sub(consumer.seen()).max(0));
    });
    Ok(())
}
