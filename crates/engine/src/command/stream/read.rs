//! XREAD, and the options of XREAD and XREADGROUP.
//!
//! A client that waits remembers the ID behind which it reads: `$` is the last ID at the moment
//! when the wait began. It is kept with the wait, and is in the unit that runs when the wait ends.

use super::ids::id;
use super::range::{count, reply_entries};
use crate::command::{Args, Command, DataFn, Flags, Group, Outcome, read};
use crate::refusal::Refusal;
use crate::stream_id::StreamId;
use crate::unit::TimeoutReply;
use crate::value::Awaited;
use crate::value::stream::{self, Stream};
use crate::view::View;
use resp::integer::parse_i64;
use resp::{Deferred, Protocol, Reply};

/// Entries per stream for a client that has waited, if its request has no COUNT. Redis's.
const COUNT_AFTER_WAIT: u64 = 1000;

pub const XREAD: Command<DataFn> =
    read("XREAD [COUNT count] [BLOCK milliseconds] STREAMS key [key ...] id [id ...]", xread)
        .doc("Returns entries of several streams behind given IDs, or waits for some.")
        .group(Group::Stream)
        .since("5.0.0")
        .cost(
            "For each stream mentioned: O(N) with N being the number of elements being returned, \
             it means that XREAD-ing with a fixed COUNT is O(1).",
        )
        .keys(&[])
        .key_specs(&["STREAMS:1,-1/1/2,RO+access"])
        .with(Flags::MOVABLEKEYS)
        .blocking();

/// A request of XREAD or XREADGROUP.
pub(super) struct Request<'a> {
    args: Args<'a>,
    /// The names of group and consumer; `None` for XREAD.
    pub reader: Option<(&'a [u8], &'a [u8])>,
    /// NOACK: delivered entries do not become pending.
    pub needs_no_ack: bool,
    count: u64,
    /// BLOCK: the longest wait in milliseconds, `Some(None)` without limit.
    waits: Option<Option<u64>>,
    /// The place of the first key, and how many keys there are; as many IDs follow them.
    first: usize,
    streams: usize,
}

impl<'a> Request<'a> {
    pub fn parse(args: Args<'a>, is_group: bool, in_script: bool) -> Result<Self, Refusal> {
        let mut request = Self {
            args,
            reader: None,
            needs_no_ack: false,
            count: 0,
            waits: None,
            first: 0,
            streams: 0,
        };
        let mut at = 1;
        while request.first == 0 && at < args.len() {
            if in_script && args.is(at, "BLOCK") && at + 1 < args.len() {
                let name = String::from_utf8_lossy(args.at(0));
                return Err(Refusal::new(format!(
                    "ERR {name} command is not allowed with BLOCK option from scripts"
                )));
            }
            at += request.option(at, is_group)?;
        }
        if request.first == 0 {
            return Err(Refusal::SYNTAX);
        }
        if is_group && request.reader.is_none() {
            return Err(Refusal::of("ERR Missing GROUP option for XREADGROUP"));
        }
        Ok(request)
    }

    /// Reads the option at `at`; returns the number of its arguments.
    fn option(&mut self, at: usize, is_group: bool) -> Result<usize, Refusal> {
        let args = self.args;
        if let Some(operand) = args.get(at + 1) {
            if args.is(at, "BLOCK") {
                self.waits = Some(wait_millis(operand)?);
                return Ok(2);
            }
            if args.is(at, "COUNT") {
                self.count = count(operand)?;
                return Ok(2);
            }
            if args.is(at, "STREAMS") {
                let rest = args.len() - at - 1;
                if !rest.is_multiple_of(2) {
                    return Err(Refusal::of(
                        "ERR Unbalanced XREAD list of streams: for each stream key an ID or '$' \
                         must be specified.",
                    ));
                }
                (self.first, self.streams) = (at + 1, rest / 2);
                return Ok(1);
            }
            if args.is(at, "GROUP")
                && let Some(consumer) = args.get(at + 2)
            {
                if !is_group {
                    return Err(Refusal::of(
                        "ERR The GROUP option is only supported by XREADGROUP. You called XREAD \
                         instead.",
                    ));
                }
                self.reader = Some((operand, consumer));
                return Ok(3);
            }
        }
        if args.is(at, "NOACK") {
            if !is_group {
                return Err(Refusal::of(
                    "ERR The NOACK option is only supported by XREADGROUP. You called XREAD \
                     instead.",
                ));
            }
            self.needs_no_ack = true;
            return Ok(1);
        }
        Err(Refusal::SYNTAX)
    }

    /// Each stream: its index, its key, and the ID as the request has it.
    pub fn streams(&self) -> impl Iterator<Item = (usize, &'a [u8], &'a [u8])> + use<'a> {
        let (args, first, streams) = (self.args, self.first, self.streams);
        (0..streams)
            .map(move |index| (index, args.at(first + index), args.at(first + streams + index)))
    }

    /// The keys, to wait for.
    pub fn keys(&self) -> Vec<Vec<u8>> {
        self.streams().map(|(_, key, _)| key.to_vec()).collect()
    }

    /// The greatest number of entries per stream; 0: all.
    pub fn count(&self, has_waited: bool) -> u64 {
        if has_waited && self.count == 0 { COUNT_AFTER_WAIT } else { self.count }
    }

    /// The wait to begin if there are no entries; `None` if the request has no BLOCK, or may not
    /// block.
    pub fn wait(&self, may_block: bool) -> Option<Option<u64>> {
        self.waits.filter(|_| may_block)
    }
}

/// Reads the operand of BLOCK, in milliseconds; `None` means without limit.
fn wait_millis(text: &[u8]) -> Result<Option<u64>, Refusal> {
    let refusal = Refusal::of("ERR timeout is not an integer or out of range");
    let millis = parse_i64(text).ok_or(refusal)?;
    let millis = u64::try_from(millis).map_err(|_| Refusal::of("ERR timeout is negative"))?;
    Ok(Some(millis).filter(|millis| *millis > 0))
}

/// A growing reply with the entries of several streams: a map in RESP3, an array of pairs in RESP2.
/// Nothing is written before the first stream that has entries.
#[derive(Default)]
pub(super) struct StreamsReply {
    head: Option<Deferred>,
    streams: usize,
}

impl StreamsReply {
    /// Begins the part of a stream. Its entries must follow.
    pub fn begin(&mut self, key: &[u8], reply: &mut Reply) {
        let is_map = reply.protocol() == Protocol::Resp3;
        if self.head.is_none() {
            self.head = Some(if is_map { reply.begin_map() } else { reply.begin_array() });
        }
        if !is_map {
            reply.array(2);
        }
        reply.bulk(key);
        self.streams += 1;
    }

    /// Ends the reply; returns whether any stream had entries.
    pub fn end(self, reply: &mut Reply) -> bool {
        let Some(head) = self.head else { return false };
        reply.end(head, self.streams);
        true
    }
}

/// The ID behind which XREAD reads. For `+` it is the one before the last entry, which is then
/// read.
fn behind(stream: Option<&Stream>, text: &[u8]) -> Result<StreamId, Refusal> {
    let last = || stream.map_or(StreamId::MIN, Stream::last_id);
    match text {
        b"$" => Ok(last()),
        b"+" => {
            let entry = stream.and_then(Stream::last_entry);
            Ok(entry.and_then(|entry| entry.id.previous()).unwrap_or_else(last))
        }
        b">" => Err(Refusal::of(
            "ERR The > ID can be specified only when calling XREADGROUP using the GROUP <group> \
             <consumer> option.",
        )),
        text => id(text),
    }
}

fn xread(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let request = Request::parse(args, false, view.context().in_script)?;
    let has_waited = view.is_retry();
    let since = view.resumed_since();
    let mut streams = Vec::new();
    for (index, key, text) in request.streams() {
        view.work().step();
        if !view.may_serve(key) {
            continue;
        }
        let found = view.find(key).map(stream::of).transpose();
        let stream = if has_waited { found.unwrap_or(None) } else { found? };
        let id = match since.get(index) {
            Some(id) => *id,
            None => behind(stream, text)?,
        };
        streams.push((key, stream, id));
    }
    let mut found = StreamsReply::default();
    for (key, stream, id) in &streams {
        // Redis looks the key up twice, and so counts a second miss.
        if !has_waited {
            view.find(key);
        }
        let Some((stream, next)) = stream.zip(id.next()) else { continue };
        if stream.last_entry().is_some_and(|entry| entry.id > *id) {
            found.begin(key, reply);
            let entries = stream.range(next, StreamId::MAX);
            reply_entries(entries, request.count(has_waited), view.work(), reply);
            if has_waited {
                break;
            }
        }
    }
    if found.end(reply) {
        return Ok(());
    }
    match request.wait(view.may_block()) {
        Some(wait_millis) => {
            let since = if has_waited { since } else { streams.iter().map(|it| it.2).collect() };
            let reply = TimeoutReply::NullArray;
            view.wait(request.keys(), Awaited::Stream, wait_millis, reply, since);
        }
        None => reply.null_array(),
    }
    Ok(())
}
