//! XACK, XPENDING: entries that were delivered and not acknowledged.

use super::ids::{end, ids, lent, packed, reply_id, start};
use super::{find, find_read, no_key_or_group, view_stream};
use crate::command::{Args, Command, DataFn, Group as Family, Outcome, read, write};
use crate::effect::Effect;
use crate::refusal::Refusal;
use crate::stream_id::StreamId;
use crate::tx::Tx;
use crate::value::stream::{Consumer, Group};
use crate::view::View;
use crate::work::Work;
use resp::Reply;
use resp::integer::parse_i64;

pub const XACK: Command<DataFn> = write("XACK key group id [id ...]", xack)
    .doc("Takes entries out of what is pending to the consumers of a group.")
    .group(Family::Stream)
    .since("5.0.0")
    .cost("O(1) for each message ID processed.")
    .key_use("RW+update")
    .fast();

pub const XPENDING: Command<DataFn> =
    read("XPENDING key group [[IDLE min-idle-time] start end count [consumer]]", xpending)
        .doc("Returns what is pending to the consumers of a group.")
        .group(Family::Stream)
        .since("5.0.0")
        .cost(
            "O(N) with N being the number of elements returned, so asking for a small fixed number \
             of entries per call is O(1). O(M), where M is the total number of entries scanned \
             when used with the IDLE filter. When the command returns just the summary and the \
             list of consumers is small, it runs in O(1) time; otherwise, an additional O(N) time \
             for iterating every consumer.",
        )
        .tips(&["nondeterministic_output"]);

fn xack(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (key, group, work) = (args.at(1), args.at(2), tx.work());
    let found = find_read(tx, key)?.and_then(|stream| stream.group(group));
    let Some(found) = found else {
        reply.integer(0);
        return Ok(());
    };
    let before = found.pending_len();
    let ids = ids(args, 3)?.into_iter().inspect(|_| work.step());
    let bytes = packed(ids.filter(|id| found.pending(*id).is_some()));
    if !bytes.is_empty() {
        tx.change(key, Effect::StreamAcknowledge { group, ids: lent(&bytes) })?;
    }
    let found = find(tx, key)?.and_then(|stream| stream.group(group));
    reply.integer((before - found.map_or(0, Group::pending_len)) as i64);
    Ok(())
}

/// The filters of XPENDING's long form.
struct Shown<'a> {
    idle_min: i64,
    start: StreamId,
    end: StreamId,
    count: u64,
    consumer: Option<&'a [u8]>,
}

impl<'a> Shown<'a> {
    /// Reads the filters; `None` for the short form, which asks for a summary.
    fn parse(args: Args<'a>) -> Result<Option<Self>, Refusal> {
        if args.len() == 3 {
            return Ok(None);
        }
        if !(6..=9).contains(&args.len()) {
            return Err(Refusal::SYNTAX);
        }
        let (mut at, mut idle_min) = (3, 0);
        if args.is(3, "IDLE") {
            idle_min = parse_i64(args.at(4)).ok_or(Refusal::NOT_AN_INTEGER)?;
            if args.len() < 8 {
                return Err(Refusal::SYNTAX);
            }
            at = 5;
        }
        let count = parse_i64(args.at(at + 2)).ok_or(Refusal::NOT_AN_INTEGER)?;
        let count = u64::try_from(count).unwrap_or(0);
        let (start, end) = (start(args.at(at))?, end(args.at(at + 1))?);
        Ok(Some(Self { idle_min, start, end, count, consumer: args.get(at + 3) }))
    }
}

fn xpending(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let shown = Shown::parse(args)?;
    let (key, name) = (args.at(1), args.at(2));
    let group = view_stream(view, key)?.and_then(|stream| stream.group(name));
    let group = group.ok_or_else(|| no_key_or_group(key, name))?;
    match shown {
        None => summary(group, view.work(), reply),
        Some(shown) => listed(group, &shown, view.now().0, view.work(), reply),
    }
    Ok(())
}

fn summary(group: &Group, work: &Work, reply: &mut Reply) {
    reply.array(4);
    reply.integer(group.pending_len() as i64);
    let Some((first, last)) = group.pending_ends() else {
        reply.null();
        reply.null();
        reply.null_array();
        return;
    };
    reply_id(first, reply);
    reply_id(last, reply);
    let array = reply.begin_array();
    let consumers = group.consumers().inspect(|_| work.step());
    let consumers = consumers.filter(|consumer| consumer.pending_len() > 0);
    let written = work.reply_each(consumers, reply, |consumer, reply| {
        reply.array(2);
        reply.bulk(consumer.name());
        reply.bulk_integer(consumer.pending_len() as i64);
    });
    reply.end(array, written);
}

fn listed(group: &Group, shown: &Shown<'_>, now: i64, work: &Work, reply: &mut Reply) {
    let consumer = shown.consumer.map(|name| group.consumer(name));
    if shown.start > shown.end || consumer.is_some_and(|consumer| consumer.is_none()) {
        reply.array(0);
        return;
    }
    let of_group = group.pending_from(shown.start);
    let of_consumer = consumer.flatten().map(|consumer| {
        let ids = consumer.pending_from(shown.start);
        ids.filter_map(|id| Some((id, group.pending(id)?)))
    });
    let of_group = of_consumer.is_none().then_some(of_group);
    let pending = of_group.into_iter().flatten().chain(of_consumer.into_iter().flatten());
    let pending = pending
        .inspect(|_| work.step())
        .take_while(|(id, _)| *id <= shown.end)
        .filter(|(_, it)| shown.idle_min == 0 || now.wrapping_sub(it.time) >= shown.idle_min)
        .take(usize::try_from(shown.count).unwrap_or(usize::MAX));
    let array = reply.begin_array();
    let written = work.reply_each(pending, reply, |(id, pending), reply| {
        reply.array(4);
        reply_id(id, reply);
        reply.bulk(group.owner(pending).map_or(&[][..], Consumer::name));
        reply.integer(now.saturating_sub(pending.time).max(0));
        reply.integer(pending.count as i64);
    });
    reply.end(array, written);
}
