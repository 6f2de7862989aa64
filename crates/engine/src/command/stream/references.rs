//! XDELEX, XACKDEL, and the options KEEPREF, DELREF and ACKED (Redis 8.2), which say what becomes
//! of references to entries that are deleted. A group refers to each entry that is pending to one
//! of its consumers; for ACKED also to each that it has yet to read.

use super::find;
use super::ids::{id, lent, packed};
use crate::command::{Args, Command, DataFn, Group as Family, Outcome, write};
use crate::effect::Effect;
use crate::notify::Class;
use crate::refusal::Refusal;
use crate::stream_id::StreamId;
use crate::tx::Tx;
use crate::value::stream::Stream;
use resp::Reply;
use resp::integer::parse_i64;
use std::collections::BTreeSet;
use std::ops::Range;

pub const XDELEX: Command<DataFn> =
    write("XDELEX key [KEEPREF | DELREF | ACKED] IDS numids id [id ...]", xdelex)
        .doc("Deletes entries from a stream, and what refers to them as it is told.")
        .group(Family::Stream)
        .since("8.2.0")
        .cost("O(1) for each single item to delete in the stream, regardless of the stream size.")
        .key_use("RW+delete")
        .fast();

pub const XACKDEL: Command<DataFn> =
    write("XACKDEL key group [KEEPREF | DELREF | ACKED] IDS numids id [id ...]", xackdel)
        .doc("Takes entries out of what is pending to the consumers of a group, and deletes them.")
        .group(Family::Stream)
        .since("8.2.0")
        .cost("O(1) for each message ID processed.")
        .key_use("RW+update+delete")
        .fast();

/// The rule for references to an entry that is deleted.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum References {
    /// References stay, as after XDEL.
    #[default]
    Kept,
    /// References are removed with the entry.
    Deleted,
    /// Only entries without references are deleted.
    MustBeNone,
}

impl References {
    /// Reads the option at `at`, if it is one of these.
    pub fn read(args: Args<'_>, at: usize) -> Option<Self> {
        let words =
            [("KEEPREF", Self::Kept), ("DELREF", Self::Deleted), ("ACKED", Self::MustBeNone)];
        words.into_iter().find_map(|(word, references)| args.is(at, word).then_some(references))
    }
}

/// The options of XDELEX and XACKDEL.
struct Options {
    references: References,
    /// The indices of the arguments that are IDs.
    ids: Range<usize>,
}

impl Options {
    /// Reads the arguments from `at` on, which may come in any order. Of several blocks of IDs the
    /// last counts, as in Redis.
    ///
    /// # Errors
    /// They are others, or the IDs are not as many as they are said to be.
    fn parse(args: Args<'_>, mut at: usize) -> Result<Self, Refusal> {
        const NUMBER: Refusal = Refusal::of("ERR Number of IDs must be a positive integer");
        const OTHERS: Refusal =
            Refusal::of("ERR The `numids` parameter must match the number of arguments");
        let (mut references, mut ids) = (None, None);
        while at < args.len() {
            if references.is_none()
                && let Some(read) = References::read(args, at)
            {
                references = Some(read);
                at += 1;
                continue;
            }
            let number = args.get(at + 1).filter(|_| args.is(at, "IDS")).ok_or(Refusal::SYNTAX)?;
            let number = parse_i64(number).filter(|number| *number > 0).ok_or(NUMBER)?;
            let first = at + 2;
            let end = usize::try_from(number).ok().and_then(|number| first.checked_add(number));
            at = end.filter(|end| *end <= args.len()).ok_or(OTHERS)?;
            ids = Some(first..at);
        }
        let ids = ids.ok_or(Refusal::SYNTAX)?;
        Ok(Self { references: references.unwrap_or_default(), ids })
    }

    fn ids(&self, args: Args<'_>) -> Result<Vec<StreamId>, Refusal> {
        self.ids.clone().map(|at| id(args.at(at))).collect()
    }
}

/// The decisions about the entries that a request names, made one by one.
#[derive(Default)]
struct Decisions {
    /// The entries that are there and will be deleted.
    going: BTreeSet<StreamId>,
    /// The IDs whose references will be removed, whether the entries are there or not.
    forgotten: BTreeSet<StreamId>,
    /// The number that the reply has for each ID.
    replies: Vec<i64>,
}

impl Decisions {
    /// The entry is not there, or not pending.
    const NONE: i64 = -1;
    const DONE: i64 = 1;
    /// A group still refers to the entry.
    const REFERRED: i64 = 2;

    /// Marks an entry for deletion; returns whether it was there.
    fn goes(&mut self, stream: &Stream, id: StreamId, references: References) -> bool {
        if references == References::Deleted {
            self.forgotten.insert(id);
        }
        stream.get(id).is_some() && self.going.insert(id)
    }

    /// Deletes the entries, and what refers to them.
    fn apply(&self, tx: &mut Tx<'_>, key: &[u8]) -> Outcome {
        if !self.going.is_empty() {
            let bytes = packed(self.going.iter().copied());
            tx.change(key, Effect::StreamDelete { ids: lent(&bytes) })?;
            tx.notify(Class::Stream, "xdel", key);
        }
        forget(tx, key, &self.forgotten)
    }

    fn reply(&self, tx: &Tx<'_>, reply: &mut Reply) {
        write_each(tx, self.replies.iter().copied(), reply);
    }
}

fn write_each(tx: &Tx<'_>, replies: impl Iterator<Item = i64>, reply: &mut Reply) {
    let array = reply.begin_array();
    let written = tx.work().reply_each(replies, reply, |one, reply| reply.integer(one));
    reply.end(array, written);
}

/// Removes the references of all groups to these entries.
///
/// # Errors
/// Those of a change.
pub(super) fn forget(tx: &mut Tx<'_>, key: &[u8], ids: &BTreeSet<StreamId>) -> Outcome {
    if ids.is_empty() {
        return Ok(());
    }
    let work = tx.work();
    let Some(stream) = find(tx, key)? else { return Ok(()) };
    let mut groups = Vec::new();
    for (name, group) in stream.groups() {
        let ids = ids.iter().inspect(|_| work.step()).copied();
        let bytes = packed(ids.filter(|id| group.pending(*id).is_some()));
        if !bytes.is_empty() {
            groups.push((name.to_vec(), bytes));
        }
    }
    for (group, bytes) in &groups {
        tx.change(key, Effect::StreamAcknowledge { group, ids: lent(bytes) })?;
    }
    Ok(())
}

fn xdelex(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (key, work) = (args.at(1), tx.work());
    let stream = find(tx, key)?;
    let options = Options::parse(args, 2)?;
    let Some(stream) = stream else {
        write_each(tx, options.ids.map(|_| Decisions::NONE), reply);
        return Ok(());
    };
    let mut decisions = Decisions::default();
    for id in options.ids(args)? {
        work.step();
        let is_referred =
            options.references == References::MustBeNone && stream.refers_to(id, None, &work);
        let said = match is_referred {
            true => Decisions::REFERRED,
            false if decisions.goes(stream, id, options.references) => Decisions::DONE,
            false => Decisions::NONE,
        };
        decisions.replies.push(said);
    }
    decisions.apply(tx, key)?;
    decisions.reply(tx, reply);
    Ok(())
}

fn xackdel(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (key, name, work) = (args.at(1), args.at(2), tx.work());
    let stream = find(tx, key)?;
    let options = Options::parse(args, 3)?;
    let Some((stream, group)) = stream.and_then(|it| Some((it, it.group(name)?))) else {
        write_each(tx, options.ids.map(|_| Decisions::NONE), reply);
        return Ok(());
    };
    let (mut decisions, mut acknowledged) = (Decisions::default(), BTreeSet::new());
    for id in options.ids(args)? {
        work.step();
        if group.pending(id).is_none() || !acknowledged.insert(id) {
            decisions.replies.push(Decisions::NONE);
            continue;
        }
        let is_referred =
            options.references == References::MustBeNone && stream.refers_to(id, Some(name), &work);
        if !is_referred {
            decisions.goes(stream, id, options.references);
        }
        decisions.replies.push(if is_referred { Decisions::REFERRED } else { Decisions::DONE });
    }
    if !acknowledged.is_empty() {
        let bytes = packed(acknowledged);
        tx.change(key, Effect::StreamAcknowledge { group: name, ids: lent(&bytes) })?;
    }
    decisions.apply(tx, key)?;
    decisions.reply(tx, reply);
    Ok(())
}
