//! XRANGE, XREVRANGE: the entries between two IDs.

use super::ids::{end, reply_id, start};
use super::view_stream;
use crate::command::{Args, Command, DataFn, Group, Outcome, read};
use crate::refusal::Refusal;
use crate::value::list::reply_item;
use crate::value::stream::Entry;
use crate::view::View;
use crate::work::Work;
use resp::Reply;
use resp::integer::parse_i64;

const COST: &str = "O(N) with N being the number of elements being returned. If N is constant \
                    (e.g. always asking for the first 10 elements with COUNT), you can consider it \
                    O(1).";

pub const XRANGE: Command<DataFn> = read("XRANGE key start end [COUNT count]", xrange)
    .doc("Returns the entries of a stream between two IDs.")
    .group(Group::Stream)
    .since("5.0.0")
    .cost(COST);

pub const XREVRANGE: Command<DataFn> = read("XREVRANGE key end start [COUNT count]", xrevrange)
    .doc("Returns the entries of a stream between two IDs, the last first.")
    .group(Group::Stream)
    .since("5.0.0")
    .cost(COST);

/// Appends an entry to the reply: its ID, and an array of its fields and values.
pub(super) fn reply_entry(entry: Entry<'_>, work: &Work, reply: &mut Reply) {
    reply.array(2);
    reply_id(entry.id, reply);
    reply.array(2 * entry.len);
    work.reply_each(entry.fields(), reply, |(field, value), reply| {
        reply_item(field, reply);
        reply_item(value, reply);
    });
}

/// Appends an array of up to `count` entries to the reply; of all if `count` is 0.
pub(super) fn reply_entries<'a>(
    entries: impl Iterator<Item = Entry<'a>>,
    count: u64,
    work: &Work,
    reply: &mut Reply,
) {
    let count = if count == 0 { usize::MAX } else { usize::try_from(count).unwrap_or(usize::MAX) };
    let array = reply.begin_array();
    let written = work.reply_each(entries.take(count), reply, |entry, reply| {
        reply_entry(entry, work, reply);
    });
    reply.end(array, written);
}

/// Reads the operand of COUNT: a negative number counts as 0.
pub(super) fn count(text: &[u8]) -> Result<u64, Refusal> {
    let count = parse_i64(text).ok_or(Refusal::NOT_AN_INTEGER)?;
    Ok(u64::try_from(count).unwrap_or(0))
}

fn xrange(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    range(view, args, reply, false)
}

fn xrevrange(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    range(view, args, reply, true)
}

fn range(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply, is_back: bool) -> Outcome {
    let (first, last) = if is_back { (3, 2) } else { (2, 3) };
    let (start, end) = (start(args.at(first))?, end(args.at(last))?);
    let mut count_max = None;
    for at in (4..args.len()).step_by(2) {
        let operand = args.get(at + 1).filter(|_| args.is(at, "COUNT"));
        count_max = Some(count(operand.ok_or(Refusal::SYNTAX)?)?);
    }
    let work = view.work();
    let Some(stream) = view_stream(view, args.at(1))? else {
        reply.array(0);
        return Ok(());
    };
    let count = count_max.unwrap_or(0);
    if count_max == Some(0) {
        reply.null_array();
    } else if is_back {
        reply_entries(stream.range_back(start, end), count, work, reply);
    } else {
        reply_entries(stream.range(start, end), count, work, reply);
    }
    Ok(())
}
