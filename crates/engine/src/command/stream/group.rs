//! XGROUP: groups and consumers, created and destroyed.

use super::ids::{self, id};
use super::read_group::claim_consumer;
use super::{find, no_group};
use crate::command::{Args, Command, DataFn, Group, Outcome, write};
use crate::effect::Effect;
use crate::feed::Word;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::stream_id::StreamId;
use crate::tx::Tx;
use crate::value::stream::{Consumer, Stream, UNKNOWN};
use resp::Reply;
use resp::integer::parse_i64;

pub const CREATE: Command<DataFn> =
    write("XGROUP CREATE key group <id | $> [MKSTREAM] [ENTRIESREAD entries-read]", create)
        .doc("Creates a group of consumers.")
        .group(Group::Stream)
        .since("5.0.0")
        .cost("O(1)")
        .key_use("RW+insert")
        .denyoom();

pub const SETID: Command<DataFn> =
    write("XGROUP SETID key group <id | $> [ENTRIESREAD entries-read]", setid)
        .doc("Sets how far a group has read.")
        .group(Group::Stream)
        .since("5.0.0")
        .cost("O(1)")
        .key_use("RW+update");

pub const DESTROY: Command<DataFn> = write("XGROUP DESTROY key group", destroy)
    .doc("Deletes a group of consumers.")
    .group(Group::Stream)
    .since("5.0.0")
    .cost("O(N) where N is the number of entries in the group's pending entries list (PEL).")
    .key_use("RW+delete");

pub const CREATECONSUMER: Command<DataFn> =
    write("XGROUP CREATECONSUMER key group consumer", createconsumer)
        .doc("Creates a consumer of a group.")
        .group(Group::Stream)
        .since("6.2.0")
        .cost("O(1)")
        .key_use("RW+insert")
        .denyoom();

pub const DELCONSUMER: Command<DataFn> =
    write("XGROUP DELCONSUMER key group consumer", delconsumer)
        .doc("Deletes a consumer of a group, with what is pending to it.")
        .group(Group::Stream)
        .since("5.0.0")
        .cost("O(1)")
        .key_use("RW+delete");

const NO_KEY: Refusal = Refusal::of(
    "ERR The XGROUP subcommand requires the key to exist. Note that for CREATE you may want to use \
     the MKSTREAM option to create an empty stream automatically.",
);

/// The options of XGROUP CREATE and SETID.
struct Options {
    makes_stream: bool,
    read: i64,
}

impl Options {
    /// Reads the options. `arguments_max` counts the container and the subcommand.
    fn parse(args: Args<'_>, is_create: bool, arguments_max: usize) -> Result<Self, Refusal> {
        let refusal = || Refusal::subcommand("XGROUP", args.at(1));
        let mut options = Self { makes_stream: false, read: UNKNOWN };
        let mut at = 5;
        while at < args.len() {
            if is_create && args.is(at, "MKSTREAM") {
                options.makes_stream = true;
                at += 1;
                continue;
            }
            let operand = args.get(at + 1).filter(|_| args.is(at, "ENTRIESREAD"));
            let read = parse_i64(operand.ok_or_else(refusal)?).ok_or(Refusal::NOT_AN_INTEGER)?;
            if read < UNKNOWN {
                return Err(Refusal::of("ERR value for ENTRIESREAD must be positive or -1"));
            }
            options.read = read;
            at += 2;
        }
        if args.len() > arguments_max { Err(refusal()) } else { Ok(options) }
    }
}

/// The stream at `key`, which must exist and have the group `name`.
fn existing<'t>(tx: &'t mut Tx<'_>, key: &[u8], name: &[u8]) -> Result<&'t Stream, Refusal> {
    let stream = find(tx, key)?.ok_or(NO_KEY)?;
    match stream.group(name) {
        Some(_) => Ok(stream),
        None => Err(no_group(name, key)),
    }
}

fn create(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    const ARGUMENTS_MAX: usize = 8;
    let options = Options::parse(args, true, usize::MAX)?;
    let (key, group) = (args.at(2), args.at(3));
    let stream = find(tx, key)?;
    let is_there = stream.is_some();
    if !is_there && !options.makes_stream {
        return Err(NO_KEY);
    }
    if args.len() > ARGUMENTS_MAX {
        return Err(Refusal::subcommand("XGROUP", args.at(1)));
    }
    let last = match args.at(4) {
        b"$" => stream.map_or(StreamId::MIN, Stream::last_id),
        text => id(text)?,
    };
    if stream.is_some_and(|stream| stream.group(group).is_some()) {
        return Err(Refusal::of("BUSYGROUP Consumer Group name already exists"));
    }
    let effect = Effect::StreamGroupCreate { group, last, read: options.read };
    if is_there {
        tx.change(key, effect)?;
    } else {
        let text = last.to_string();
        let words = [
            Word::Text(b"XGROUP"),
            Word::Text(b"CREATE"),
            Word::Text(key),
            Word::Text(group),
            Word::Text(text.as_bytes()),
            Word::Text(b"MKSTREAM"),
            Word::Text(b"ENTRIESREAD"),
            Word::Number(options.read),
        ];
        tx.told_as(&words, |tx| {
            tx.change(key, Effect::StreamCreate)?;
            tx.change(key, effect).map(drop)
        })?;
    }
    tx.notify(Class::Stream, "xgroup-create", key);
    reply.ok();
    Ok(())
}

fn setid(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    const ARGUMENTS_MAX: usize = 7;
    let options = Options::parse(args, false, usize::MAX)?;
    let (key, group) = (args.at(2), args.at(3));
    let stream = existing(tx, key, group)?;
    if args.len() > ARGUMENTS_MAX {
        return Err(Refusal::subcommand("XGROUP", args.at(1)));
    }
    let last = match args.at(4) {
        b"$" => stream.last_id(),
        b"-" => StreamId::MIN,
        b"+" => StreamId::MAX,
        text => StreamId::parse(text, 0).ok_or(ids::INVALID)?,
    };
    tx.change(key, Effect::StreamGroupSet { group, last, read: options.read })?;
    tx.notify(Class::Stream, "xgroup-setid", key);
    reply.ok();
    Ok(())
}

fn destroy(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (key, group) = (args.at(2), args.at(3));
    let stream = find(tx, key)?.ok_or(NO_KEY)?;
    let is_there = stream.group(group).is_some();
    if is_there {
        tx.change(key, Effect::StreamGroupDelete { group })?;
        tx.notify(Class::Stream, "xgroup-destroy", key);
    }
    reply.integer(i64::from(is_there));
    Ok(())
}

fn createconsumer(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (key, group) = (args.at(2), args.at(3));
    existing(tx, key, group)?;
    let is_new = claim_consumer(tx, key, group, args.at(4))?;
    reply.integer(i64::from(is_new));
    Ok(())
}

fn delconsumer(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (key, group, consumer) = (args.at(2), args.at(3), args.at(4));
    let found = existing(tx, key, group)?.group(group);
    let pending = found.and_then(|group| group.consumer(consumer)).map(Consumer::pending_len);
    if pending.is_some() {
        tx.change(key, Effect::StreamConsumerDelete { group, consumer })?;
        tx.notify(Class::Stream, "xgroup-delconsumer", key);
    }
    reply.integer(pending.unwrap_or(0) as i64);
    Ok(())
}
