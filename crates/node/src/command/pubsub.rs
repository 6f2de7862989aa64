//! SUBSCRIBE and its kin, and PUBSUB (Redis documentation, group pubsub).
//!
//! A subscription is confirmed by a push for each name, not by a reply.

use super::{NodeFn, node};
use crate::server::Server;
use base::ConnectionId;
use engine::command::{Args, Channels, Command, Flags, Group, KeySpec, Outcome};
use engine::glob;
use engine::refusal::Refusal;
use engine::subscribers::Sort;

pub const COMMANDS: &[Command<NodeFn>] = &[
    subscription("SUBSCRIBE channel [channel ...]", subscribe)
        .channels(Channels::All)
        .doc("Listens for messages published to channels.")
        .since("2.0.0")
        .cost("O(N) where N is the number of channels to subscribe to."),
    subscription("UNSUBSCRIBE [channel [channel ...]]", unsubscribe)
        .doc("Stops listening to messages posted to channels.")
        .since("2.0.0")
        .cost("O(N) where N is the number of clients already subscribed to a channel."),
    subscription("PSUBSCRIBE pattern [pattern ...]", psubscribe)
        .channels(Channels::Patterns)
        .doc("Listens for messages published to channels that match one or more patterns.")
        .since("2.0.0")
        .cost("O(N) where N is the number of patterns the client is already subscribed to."),
    subscription("PUNSUBSCRIBE [pattern [pattern ...]]", punsubscribe)
        .doc("Stops listening to messages published to channels that match one or more patterns.")
        .since("2.0.0")
        .cost(
            "O(N+M) where N is the number of patterns the client is already subscribed and M is \
             the number of total patterns subscribed in the system (by any client).",
        ),
    subscription("SSUBSCRIBE shardchannel [shardchannel ...]", ssubscribe)
        .channels(Channels::All)
        .key_use("not_key")
        .doc("Listens for messages published to shard channels.")
        .since("7.0.0")
        .cost("O(N) where N is the number of shard channels to subscribe to.")
        .keys(SHARD_CHANNELS),
    subscription("SUNSUBSCRIBE [shardchannel [shardchannel ...]]", sunsubscribe)
        .key_use("not_key")
        .doc("Stops listening to messages posted to shard channels.")
        .since("7.0.0")
        .cost("O(N) where N is the number of clients already subscribed to a shard channel.")
        .keys(SHARD_CHANNELS),
    pubsub("PUBSUB CHANNELS [pattern]", channels)
        .doc("Returns the active channels.")
        .since("2.8.0")
        .cost(
            "O(N) where N is the number of active channels, and assuming constant time pattern \
             matching (relatively short channels and patterns)",
        ),
    pubsub("PUBSUB NUMPAT", numpat)
        .doc("Returns a count of unique pattern subscriptions.")
        .since("2.8.0")
        .cost("O(1)"),
    pubsub("PUBSUB NUMSUB [channel [channel ...]]", numsub)
        .doc("Returns a count of subscribers to channels.")
        .since("2.8.0")
        .cost("O(N) for the NUMSUB subcommand, where N is the number of requested channels"),
    pubsub("PUBSUB SHARDCHANNELS [pattern]", shardchannels)
        .doc("Returns the active shard channels.")
        .since("7.0.0")
        .cost(
            "O(N) where N is the number of active shard channels, and assuming constant time \
             pattern matching (relatively short shard channels).",
        ),
    pubsub("PUBSUB SHARDNUMSUB [shardchannel [shardchannel ...]]", shardnumsub)
        .doc("Returns the count of subscribers of shard channels.")
        .since("7.0.0")
        .cost(
            "O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard \
             channels",
        ),
];

const SHARD_CHANNELS: &[KeySpec] = &[KeySpec::Range { first: 1, last: -1, step: 1 }];

/// Declares a command by which a client begins or ends to listen.
const fn subscription(usage: &'static str, function: NodeFn) -> Command<NodeFn> {
    node(usage, function).with(Flags::PUBSUB.union(Flags::FOR_SUBSCRIBERS)).group(Group::PubSub)
}

/// Declares a subcommand of PUBSUB.
const fn pubsub(usage: &'static str, function: NodeFn) -> Command<NodeFn> {
    node(usage, function).allowed_in_scripts().with(Flags::PUBSUB).group(Group::PubSub)
}

/// How confirmations name what happened: on subscribing, on unsubscribing.
const fn kinds(sort: Sort) -> (&'static str, &'static str) {
    match sort {
        Sort::Channel => ("subscribe", "unsubscribe"),
        Sort::Pattern => ("psubscribe", "punsubscribe"),
        Sort::Shard => ("ssubscribe", "sunsubscribe"),
    }
}

/// Confirms with the count of subscriptions: shard channels are counted apart.
fn confirm(server: &mut Server, client: ConnectionId, kind: &str, sort: Sort, name: Option<&[u8]>) {
    let session = server.core.clients.at_mut(client);
    let count = match sort {
        Sort::Shard => session.subscriptions.shard_channels.len(),
        Sort::Channel | Sort::Pattern => session.subscriptions(),
    };
    session.confirm(kind, name, count);
}

fn begin(server: &mut Server, client: ConnectionId, args: Args<'_>, sort: Sort) -> Outcome {
    let work = server.core.work();
    for name in args.from(1) {
        work.step();
        server.core.subscribe(client, sort, name);
        confirm(server, client, kinds(sort).0, sort, Some(name));
    }
    Ok(())
}

fn end(server: &mut Server, client: ConnectionId, args: Args<'_>, sort: Sort) -> Outcome {
    let names: Vec<Vec<u8>> = if args.len() > 1 {
        args.from(1).map(<[u8]>::to_vec).collect()
    } else {
        server.core.clients.at_mut(client).subscribed(sort).iter().cloned().collect()
    };
    let work = server.core.work();
    for name in &names {
        work.step();
        server.core.unsubscribe(client, sort, name);
        confirm(server, client, kinds(sort).1, sort, Some(name));
    }
    if names.is_empty() {
        confirm(server, client, kinds(sort).1, sort, None);
    }
    Ok(())
}

fn subscribe(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    begin(server, client, args, Sort::Channel)
}

fn psubscribe(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    begin(server, client, args, Sort::Pattern)
}

fn ssubscribe(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    if server.core.clients.at(client).is_in_exec {
        return Err(Refusal::of("ERR SSUBSCRIBE isn't allowed for a DENY BLOCKING client"));
    }
    begin(server, client, args, Sort::Shard)
}

fn unsubscribe(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    end(server, client, args, Sort::Channel)
}

fn punsubscribe(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    end(server, client, args, Sort::Pattern)
}

fn sunsubscribe(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    end(server, client, args, Sort::Shard)
}

fn channels(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    list(server, client, args, Sort::Channel)
}

fn shardchannels(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    list(server, client, args, Sort::Shard)
}

fn list(server: &mut Server, client: ConnectionId, args: Args<'_>, sort: Sort) -> Outcome {
    if args.len() > 3 {
        return Err(Refusal::subcommand("PUBSUB", args.at(1)));
    }
    let pattern = args.get(2);
    let work = &server.core.shard.engine.keyspace.work;
    let names = server.core.interest.subscribers.names(sort);
    let reply = server.core.clients.reply(client);
    let header = reply.begin_array();
    let mut count = 0;
    work.reply_each(names, reply, |name, reply| {
        if pattern.is_none_or(|pattern| glob::matches(pattern, name, work)) {
            reply.bulk(name);
            count += 1;
        }
    });
    reply.end(header, count);
    Ok(())
}

fn numpat(server: &mut Server, client: ConnectionId, _: Args<'_>) -> Outcome {
    let patterns = server.core.interest.subscribers.names_len(Sort::Pattern);
    server.core.clients.reply(client).integer(patterns as i64);
    Ok(())
}

fn numsub(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    tally(server, client, args, Sort::Channel)
}

fn shardnumsub(server: &mut Server, client: ConnectionId, args: Args<'_>) -> Outcome {
    tally(server, client, args, Sort::Shard)
}

fn tally(server: &mut Server, client: ConnectionId, args: Args<'_>, sort: Sort) -> Outcome {
    let subscribers = &server.core.interest.subscribers;
    let reply = server.core.clients.reply(client);
    reply.array((args.len() - 2) * 2);
    server.core.shard.engine.keyspace.work.reply_each(args.from(2), reply, |name, reply| {
        reply.bulk(name);
        reply.integer(subscribers.subscribers_len(sort, name) as i64);
    });
    Ok(())
}
