//! Commands that add and remove entries: XADD, XTRIM, XDEL, XSETID; and XLEN.

use super::find;
use super::ids::{self, id, lent, packed, reply_id};
use super::trim::Trim;
use crate::command::{Args, Command, DataFn, Group, Outcome, read, write};
use crate::effect::{Effect, Fields};
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::stream_id::{Chosen, StreamId};
use crate::tx::Tx;
use crate::value::stream::{self, BLOCK_BYTES_MAX, Stream};
use crate::view::View;
use resp::Reply;
use resp::integer::parse_i64;

pub const XADD: Command<DataFn> = write(
    "XADD key [NOMKSTREAM] [KEEPREF | DELREF | ACKED] [<MAXLEN | MINID> [= | ~] threshold [LIMIT \
     count]] <* | id> field value [field value ...]",
    xadd,
)
.doc("Appends an entry to a stream, which is created if absent.")
.group(Group::Stream)
.since("5.0.0")
.cost(
    "O(1) when adding a new entry, O(N) when trimming where N being the number of entries evicted.",
)
.key_use("RW+update")
.tips(&["nondeterministic_output"])
.denyoom()
.fast();

pub const XTRIM: Command<DataFn> = write(
    "XTRIM key <MAXLEN | MINID> [= | ~] threshold [LIMIT count] [KEEPREF | DELREF | ACKED]",
    xtrim,
)
.doc("Deletes entries from the beginning of a stream.")
.group(Group::Stream)
.since("5.0.0")
.cost("O(N), with N being the number of evicted entries.")
.key_use("RW+delete")
.tips(&["nondeterministic_output"]);

pub const XDEL: Command<DataFn> = write("XDEL key id [id ...]", xdel)
    .doc("Deletes entries from a stream.")
    .group(Group::Stream)
    .since("5.0.0")
    .cost("O(1) for each single item to delete in the stream, regardless of the stream size.")
    .key_use("RW+delete")
    .fast();

pub const XLEN: Command<DataFn> = read("XLEN key", xlen)
    .needs_no_value()
    .doc("Returns the number of entries of a stream.")
    .group(Group::Stream)
    .since("5.0.0")
    .cost("O(1)")
    .key_use("RO")
    .fast();

pub const XSETID: Command<DataFn> =
    write("XSETID key last-id [ENTRIESADDED entries-added] [MAXDELETEDID max-deleted-id]", xsetid)
        .doc("Sets what a stream remembers: its last ID, and of entries that came and went.")
        .group(Group::Stream)
        .since("5.0.0")
        .cost("O(1)")
        .key_use("RW+update")
        .denyoom()
        .fast();

/// The options of XADD, which stand before the ID.
#[derive(Default)]
struct Options {
    trim: Trim,
    makes_no_stream: bool,
    /// The ID as the request gives it, whole or in part; `None` for `*`: the stream chooses it.
    chosen: Option<Chosen>,
    /// The place of the first argument behind the ID.
    fields_at: usize,
}

impl Options {
    fn parse(args: Args<'_>) -> Result<Self, Refusal> {
        let mut options = Self { fields_at: args.len() + 1, ..Self::default() };
        let mut at = 2;
        while let Some(word) = args.get(at) {
            if word != b"*"
                && let Some(words) = options.trim.read(args, at)?
            {
                at += words;
                continue;
            }
            if args.is(at, "NOMKSTREAM") {
                options.makes_no_stream = true;
                at += 1;
                continue;
            }
            if word != b"*" {
                options.chosen = Some(Chosen::parse(word).ok_or(ids::INVALID)?);
            }
            options.fields_at = at + 1;
            break;
        }
        options.trim.check(false)?;
        Ok(options)
    }
}

/// The ID of a new entry behind `last`.
fn next_id(last: StreamId, chosen: Option<Chosen>, now: i64) -> Result<StreamId, Refusal> {
    const SMALL: Refusal = Refusal::of(
        "ERR The ID specified in XADD is equal or smaller than the target stream top item",
    );
    const EXHAUSTED: Refusal =
        Refusal::of("ERR The stream has exhausted the last possible ID, unable to add more items");
    let next = last.next().ok_or(EXHAUSTED)?;
    let id = match chosen {
        None => next.max(StreamId::new(u64::try_from(now).unwrap_or(0), 0)),
        Some(Chosen::Numbered(millis)) if millis == last.millis => match next.millis == millis {
            true => next,
            false => return Err(SMALL),
        },
        Some(Chosen::Time(millis) | Chosen::Numbered(millis)) => StreamId::new(millis, 0),
        Some(Chosen::Whole(id)) => id,
    };
    if id > last { Ok(id) } else { Err(SMALL) }
}

fn xadd(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let options = Options::parse(args)?;
    let texts = args.len().saturating_sub(options.fields_at);
    if texts < 2 || !texts.is_multiple_of(2) {
        return Err(Refusal::arity("xadd"));
    }
    let zero = [Chosen::Whole(StreamId::MIN), Chosen::Time(0)];
    if options.chosen.is_some_and(|chosen| zero.contains(&chosen)) {
        return Err(Refusal::of("ERR The ID specified in XADD must be greater than 0-0"));
    }
    let key = args.at(1);
    let stream = find(tx, key)?;
    if stream.is_none() && options.makes_no_stream {
        reply.null();
        return Ok(());
    }
    let last = stream.map_or(StreamId::MIN, Stream::last_id);
    let id = next_id(last, options.chosen, tx.now().0)?;
    let (work, mut total) = (tx.work(), 0);
    for text in args.from(options.fields_at) {
        work.step();
        total += text.len();
    }
    if total as u64 > BLOCK_BYTES_MAX {
        return Err(Refusal::of("ERR Elements are too large to be stored"));
    }
    let mut bytes = Vec::with_capacity(total + texts * Fields::HEAD_BYTES);
    args.from(options.fields_at).for_each(|text| Fields::put(&mut bytes, text));
    let fields = Fields::of(&bytes).expect("fields and values were put in turn");
    tx.change(key, Effect::StreamAdd { id, fields })?;
    tx.notify(Class::Stream, "xadd", key);
    options.trim.apply(tx, key)?;
    reply_id(id, reply);
    Ok(())
}

fn xtrim(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let mut trim = Trim::default();
    let mut at = 2;
    while at < args.len() {
        at += trim.read(args, at)?.ok_or(Refusal::SYNTAX)?;
    }
    trim.check(true)?;
    let trimmed = trim.apply(tx, args.at(1))?;
    reply.integer(trimmed as i64);
    Ok(())
}

fn xdel(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let key = args.at(1);
    let work = tx.work();
    let Some(stream) = find(tx, key)? else {
        reply.integer(0);
        return Ok(());
    };
    let before = stream.len();
    let ids = ids::ids(args, 2)?;
    let there = ids.into_iter().inspect(|_| work.step()).filter(|id| stream.get(*id).is_some());
    let bytes = packed(there);
    if bytes.is_empty() {
        reply.integer(0);
        return Ok(());
    }
    tx.change(key, Effect::StreamDelete { ids: lent(&bytes) })?;
    let deleted = before - find(tx, key)?.map_or(0, Stream::len);
    tx.notify(Class::Stream, "xdel", key);
    reply.integer(deleted as i64);
    Ok(())
}

fn xlen(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let len = view.count(args.at(1), "stream", |_, entry| {
        stream::of(entry).map(|stream| stream.len() as usize)
    })?;
    reply.integer(len as i64);
    Ok(())
}

/// The options of XSETID: values beside the last ID.
#[derive(Default)]
struct Remembered {
    added: Option<u64>,
    max_deleted: Option<StreamId>,
}

impl Remembered {
    fn parse(args: Args<'_>, last: StreamId) -> Result<Self, Refusal> {
        let mut remembered = Self::default();
        for at in (3..args.len()).step_by(2) {
            let Some(operand) = args.get(at + 1) else { return Err(Refusal::SYNTAX) };
            if args.is(at, "ENTRIESADDED") {
                let added = parse_i64(operand).ok_or(Refusal::NOT_AN_INTEGER)?;
                let refusal = Refusal::of("ERR entries_added must be positive");
                remembered.added = Some(u64::try_from(added).map_err(|_| refusal)?);
            } else if args.is(at, "MAXDELETEDID") {
                let max_deleted = id(operand)?;
                if last < max_deleted {
                    return Err(Refusal::of(
                        "ERR The ID specified in XSETID is smaller than the provided \
                         max_deleted_entry_id",
                    ));
                }
                remembered.max_deleted = Some(max_deleted).filter(|id| *id != StreamId::MIN);
            } else {
                return Err(Refusal::SYNTAX);
            }
        }
        Ok(remembered)
    }
}

fn xsetid(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let last = id(args.at(2))?;
    let remembered = Remembered::parse(args, last)?;
    let key = args.at(1);
    let Some(stream) = find(tx, key)? else { return Err(Refusal::NO_SUCH_KEY) };
    if let Some(entry) = stream.last_entry() {
        if last < entry.id {
            return Err(Refusal::of(
                "ERR The ID specified in XSETID is smaller than the target stream top item",
            ));
        }
        if remembered.added.is_some_and(|added| stream.len() > added) {
            return Err(Refusal::of(
                "ERR The entries_added specified in XSETID is smaller than the target stream \
                 length",
            ));
        }
    }
    let added = remembered.added.unwrap_or(stream.added());
    let max_deleted = remembered.max_deleted.unwrap_or(stream.max_deleted());
    tx.change(key, Effect::StreamSetId { last, added, max_deleted })?;
    tx.notify(Class::Stream, "xsetid", key);
    reply.ok();
    Ok(())
}
