//! XREADGROUP: entries delivered to a consumer of a group, which become pending.

use super::ids::{id, lent, packed, reply_id};
use super::range::reply_entry;
use super::read::{Request, StreamsReply};
use super::{find, find_read, quoted};
use crate::command::{Args, Command, DataFn, Flags, Group as Family, Outcome, write};
use crate::effect::Effect;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::stream_id::StreamId;
use crate::tx::Tx;
use crate::unit::TimeoutReply;
use crate::value::Awaited;
use crate::value::stream::{self, Counter, Group, Stream};
use resp::Reply;

pub const XREADGROUP: Command<DataFn> = write(
    "XREADGROUP <GROUP group consumer> [COUNT count] [BLOCK milliseconds] [NOACK] STREAMS key \
     [key ...] id [id ...]",
    xreadgroup,
)
.doc(
    "Returns new or pending entries of several streams to a consumer of a group, or waits for some.",
)
.group(Family::Stream)
.since("5.0.0")
.cost(
    "For each stream mentioned: O(M) with M being the number of elements returned. If M is \
     constant (e.g. always asking for the first 10 elements with COUNT), you can consider it O(1). \
     On the other side when XREADGROUP blocks, XADD will pay the O(N) time in order to serve the N \
     clients blocked on the stream getting new data.",
)
.keys(&[])
.key_specs(&["STREAMS:4,-1/1/2,RO+access"])
.with(Flags::MOVABLEKEYS)
.blocking();

/// The entries that a consumer asks for in one stream.
#[derive(Clone, Copy)]
enum Wanted {
    /// `>`: new entries, which were delivered to no consumer of the group.
    New,
    /// An ID: the consumer's own pending entries behind it.
    Pending(StreamId),
}

/// The stream at `key` and its group `name`, which must exist.
fn group<'t>(
    tx: &'t mut Tx<'_>,
    key: &[u8],
    name: &[u8],
) -> Result<Option<(&'t Stream, &'t Group)>, Refusal> {
    Ok(find(tx, key)?.and_then(|stream| Some((stream, stream.group(name)?))))
}

/// Refuses a client that has waited for a group, if the group no longer exists.
fn check_retry(tx: &mut Tx<'_>, key: &[u8], name: &[u8]) -> Result<(), Refusal> {
    match find(tx, key) {
        Ok(Some(stream)) if stream.group(name).is_some() => Ok(()),
        Ok(Some(_)) => Err(Refusal::of(
            "NOGROUP the consumer group this client was blocked on no longer exists",
        )),
        Ok(None) | Err(_) => Err(Refusal::of("UNBLOCKED the stream key no longer exists")),
    }
}

fn wanted(tx: &mut Tx<'_>, key: &[u8], name: &[u8], text: &[u8]) -> Result<Wanted, Refusal> {
    if find_read(tx, key)?.and_then(|stream| stream.group(name)).is_none() {
        let (key, name) = (quoted(key), quoted(name));
        return Err(Refusal::new(format!(
            "NOGROUP No such key '{key}' or consumer group '{name}' in XREADGROUP with GROUP option"
        )));
    }
    match text {
        b"$" => Err(Refusal::of(
            "ERR The $ ID is meaningless in the context of XREADGROUP: you want to read the \
             history of this consumer by specifying a proper ID, or use the > ID to get new \
             messages. The $ ID would just return an empty result set.",
        )),
        b">" => Ok(Wanted::New),
        // The greatest ID means the same as `>`: it is how Redis notes that.
        text => id(text).map(|from| match from {
            StreamId::MAX => Wanted::New,
            from => Wanted::Pending(from),
        }),
    }
}

fn xreadgroup(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let request = Request::parse(args, true, tx.context.in_script)?;
    let Some((name, consumer)) = request.reader else { return Err(Refusal::SYNTAX) };
    let (has_waited, work) = (tx.is_retry(), tx.work());
    let mut streams = Vec::new();
    for (_, key, text) in request.streams() {
        work.step();
        if !tx.may_serve(key) {
            continue;
        }
        if has_waited {
            check_retry(tx, key, name)?;
        }
        streams.push((key, wanted(tx, key, name, text)?));
    }
    let reader = Reader { name, consumer, needs_no_ack: request.needs_no_ack };
    let count = request.count(has_waited);
    let mut found = StreamsReply::default();
    for (key, wanted) in streams {
        match wanted {
            Wanted::Pending(behind) => {
                found.begin(key, reply);
                reader.give_pending(tx, key, behind, count, reply)?;
            }
            Wanted::New => {
                let news = group(tx, key, name)?.is_some_and(|(stream, group)| {
                    stream.last_entry().is_some_and(|entry| entry.id > group.last_id())
                });
                if news {
                    found.begin(key, reply);
                    reader.give_new(tx, key, count, reply)?;
                }
            }
        }
    }
    if found.end(reply) {
        return Ok(());
    }
    match request.wait(tx.may_block()) {
        Some(wait_millis) => {
            tx.wait(request.keys(), Awaited::Group, wait_millis, TimeoutReply::NullArray);
        }
        None => reply.null_array(),
    }
    Ok(())
}

/// The group and the consumer that read.
struct Reader<'a> {
    name: &'a [u8],
    consumer: &'a [u8],
    needs_no_ack: bool,
}

impl Reader<'_> {
    /// Delivers new entries.
    fn give_new(&self, tx: &mut Tx<'_>, key: &[u8], count: u64, reply: &mut Reply) -> Outcome {
        claim_consumer(tx, key, self.name, self.consumer)?;
        let work = tx.work();
        let Some((stream, group)) = group(tx, key, self.name)? else { return Ok(()) };
        let Some(first) = group.last_id().next() else { return Ok(()) };
        let mut counter = Counter::of(stream);
        let (mut read, mut ids) = (group.read(), Vec::new());
        let array = reply.begin_array();
        let count = if count == 0 { usize::MAX } else { count as usize };
        for entry in stream.range(first, StreamId::MAX).take(count) {
            work.step();
            read = counter.after(read, entry.id);
            ids.push(entry.id);
            reply_entry(entry, &work, reply);
        }
        reply.end(array, ids.len());
        let last = ids.last().copied().unwrap_or(group.last_id());
        let pending = if self.needs_no_ack { Vec::new() } else { packed(ids) };
        self.deliver(tx, key, 1, &pending)?;
        tx.change(key, Effect::StreamGroupSet { group: self.name, last, read })?;
        Ok(())
    }

    /// Delivers the consumer's own pending entries once more.
    fn give_pending(
        &self,
        tx: &mut Tx<'_>,
        key: &[u8],
        behind: StreamId,
        count: u64,
        reply: &mut Reply,
    ) -> Outcome {
        claim_consumer(tx, key, self.name, self.consumer)?;
        let work = tx.work();
        let Some((stream, group)) = group(tx, key, self.name)? else { return Ok(()) };
        let consumer = group.consumer(self.consumer);
        let from = behind.next().unwrap_or(StreamId::MIN);
        let pending = consumer.into_iter().flat_map(|consumer| consumer.pending_from(from));
        let count = if count == 0 { usize::MAX } else { count as usize };
        let array = reply.begin_array();
        // Consecutive entries with one delivery count become one effect.
        let (mut given, mut runs) = (0, Vec::<(u64, Vec<StreamId>)>::new());
        for id in pending.take(count) {
            work.step();
            given += 1;
            let Some(entry) = stream.get(id) else {
                reply.array(2);
                reply_id(id, reply);
                reply.null_array();
                continue;
            };
            reply_entry(entry, &work, reply);
            let times = group.pending(id).map_or(1, |pending| pending.count.saturating_add(1));
            match runs.last_mut() {
                Some((of, ids)) if *of == times => ids.push(id),
                _ => runs.push((times, vec![id])),
            }
        }
        reply.end(array, given);
        if runs.is_empty() {
            self.deliver(tx, key, 1, &[])?;
        }
        for (times, ids) in runs {
            self.deliver(tx, key, times, &packed(ids))?;
        }
        Ok(())
    }

    /// Records that the consumer was seen, and that these entries are pending to it.
    fn deliver(&self, tx: &mut Tx<'_>, key: &[u8], count: u64, ids: &[u8]) -> Outcome {
        let (group, consumer, now) = (self.name, self.consumer, tx.now().0);
        let ids = lent(ids);
        let effect = Effect::StreamDeliver { group, consumer, seen: now, time: now, count, ids };
        tx.change(key, effect).map(drop)
    }
}

/// Creates a consumer of a group, unless it exists.
pub(super) fn claim_consumer(
    tx: &mut Tx<'_>,
    key: &[u8],
    group: &[u8],
    consumer: &[u8],
) -> Result<bool, Refusal> {
    let is_there = find(tx, key)?
        .and_then(|stream| stream.group(group))
        .is_some_and(|group| stream::Group::consumer(group, consumer).is_some());
    if !is_there {
        let seen = tx.now().0;
        tx.change(key, Effect::StreamConsumerCreate { group, consumer, seen })?;
        tx.notify(Class::Stream, "xgroup-createconsumer", key);
    }
    Ok(!is_there)
}
