//! XCLAIM, XAUTOCLAIM: pending entries given to another consumer.

use super::ids::{id, lent, packed, reply_id, start};
use super::range::reply_entry;
use super::read_group::claim_consumer;
use super::{find, find_read, no_key_or_group, quoted};
use crate::command::{Args, Command, DataFn, Group as Family, Outcome, write};
use crate::effect::Effect;
use crate::refusal::Refusal;
use crate::stream_id::StreamId;
use crate::tx::Tx;
use crate::value::stream::{Group, Pending, Stream};
use resp::Reply;
use resp::integer::parse_i64;

pub const XCLAIM: Command<DataFn> = write(
    "XCLAIM key group consumer min-idle-time id [id ...] [IDLE milliseconds] [TIME \
     unix-time-milliseconds] [RETRYCOUNT count] [FORCE] [JUSTID] [LASTID lastid]",
    xclaim,
)
.doc("Gives entries that are pending in a group to another consumer.")
.group(Family::Stream)
.since("5.0.0")
.cost("O(log N) with N being the number of messages in the PEL of the consumer group.")
.key_use("RW+update")
.tips(&["nondeterministic_output"])
.fast();

pub const XAUTOCLAIM: Command<DataFn> =
    write("XAUTOCLAIM key group consumer min-idle-time start [COUNT count] [JUSTID]", xautoclaim)
        .doc("Gives entries that have been pending in a group for long to another consumer.")
        .group(Family::Stream)
        .since("6.2.0")
        .cost("O(1) if COUNT is small.")
        .key_use("RW+delete")
        .tips(&["nondeterministic_output"])
        .fast();

/// Entries that XAUTOCLAIM claims by default. Redis's.
const COUNT_DEFAULT: u64 = 100;
/// Pending entries that XAUTOCLAIM examines for each entry that it may claim. Redis's.
const LOOKS_PER_CLAIM: u64 = 10;
/// The largest COUNT of XAUTOCLAIM. Redis's.
const COUNT_MAX: i64 = i64::MAX / 16;
/// The COUNT from which Redis has no memory for the IDs: the address space of a process ends at
/// 2^47 bytes, and each ID has 16.
const COUNT_WITHOUT_MEMORY: u64 = 1 << 43;
const COUNT_TOO_HIGH: Refusal =
    Refusal::of("ERR Insufficient memory, failed allocating transient memory, COUNT too high.");
/// Pending entries that XAUTOCLAIM judges before it changes what they mean: so many share one
/// lookup, and an effect has at most 16 KiB of IDs.
const SLICE_ENTRIES: u64 = 1024;

/// A claim: the new consumer, and the conditions.
struct Claim<'a> {
    key: &'a [u8],
    group: &'a [u8],
    consumer: &'a [u8],
    /// The least idle time of an entry, in milliseconds.
    idle_min: i64,
    /// The delivery time that a claimed entry gets, as a Unix time in milliseconds.
    time: i64,
    /// The delivery count that a claimed entry gets, if the request gives one.
    count: Option<u64>,
    /// FORCE: entries that are not pending are claimed too.
    is_forced: bool,
    shows_ids: bool,
}

/// The outcome of a claim for one pending entry.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Claimed {
    /// It goes to the consumer, with this delivery count.
    Yes(u64),
    /// Nothing changes: the entry is not pending, or not idle for long enough.
    No,
    /// The entry was deleted from the stream, so it is removed from the pending ones too.
    Gone,
}

/// Consecutive entries with the same outcome: one effect.
struct Run {
    means: Claimed,
    ids: Vec<StreamId>,
}

impl Claim<'_> {
    fn found<'t>(&self, tx: &'t mut Tx<'_>) -> Result<(&'t Stream, &'t Group), Refusal> {
        let found = find(tx, self.key)?;
        let found = found.and_then(|stream| Some((stream, stream.group(self.group)?)));
        found.ok_or_else(|| no_key_or_group(self.key, self.group))
    }

    /// The outcome for one entry; `pending` is its row in the group's list of pending entries, if
    /// it has one.
    fn judge(&self, stream: &Stream, id: StreamId, pending: Option<Pending>, now: i64) -> Claimed {
        if stream.get(id).is_none() {
            return if pending.is_some() { Claimed::Gone } else { Claimed::No };
        }
        let is_idle = |it: &Pending| now.wrapping_sub(it.time) >= self.idle_min;
        let may_claim = match &pending {
            Some(pending) => self.idle_min == 0 || is_idle(pending),
            None => self.is_forced,
        };
        if !may_claim {
            return Claimed::No;
        }
        // An entry that was not pending counts as delivered once before.
        let before = pending.map_or(1, |pending| pending.count);
        Claimed::Yes(match self.count {
            Some(count) => count,
            None if self.shows_ids => before,
            None => before.saturating_add(1),
        })
    }

    /// Applies the outcome to the entries of a run.
    fn carry_out(&self, tx: &mut Tx<'_>, run: &Run) -> Outcome {
        let (group, consumer, time) = (self.group, self.consumer, self.time);
        let ids = packed(run.ids.iter().copied());
        let ids = lent(&ids);
        let effect = match run.means {
            Claimed::No => return Ok(()),
            Claimed::Gone => Effect::StreamAcknowledge { group, ids },
            Claimed::Yes(count) => {
                claim_consumer(tx, self.key, group, consumer)?;
                let seen = tx.now().0;
                Effect::StreamDeliver { group, consumer, seen, time, count, ids }
            }
        };
        tx.change(self.key, effect).map(drop)
    }

    /// Claims one entry; whether it went to the consumer.
    fn claim(&self, tx: &mut Tx<'_>, id: StreamId) -> Result<bool, Refusal> {
        let now = tx.now().0;
        let (stream, group) = self.found(tx)?;
        let means = self.judge(stream, id, group.pending(id), now);
        self.carry_out(tx, &Run { means, ids: vec![id] })?;
        Ok(matches!(means, Claimed::Yes(_)))
    }

    /// Judges a slice of the pending entries from `from` on: at most `looks`, and until `count` are
    /// claimed or gone. Returns those in runs, how many were judged, and where to go on.
    fn judge_slice(
        &self,
        tx: &mut Tx<'_>,
        from: StreamId,
        looks: u64,
        count: u64,
    ) -> Result<(Vec<Run>, u64, Option<StreamId>), Refusal> {
        let (work, now) = (tx.work(), tx.now().0);
        let (stream, group) = self.found(tx)?;
        let (mut runs, mut judged, mut met, mut next) = (Vec::<Run>::new(), 0, 0, Some(from));
        for (id, pending) in group.pending_from(from) {
            if judged == looks.min(SLICE_ENTRIES) || met == count {
                break;
            }
            work.step();
            (judged, next) = (judged + 1, id.next());
            let means = self.judge(stream, id, Some(pending), now);
            met += u64::from(means != Claimed::No);
            match runs.last_mut() {
                _ if means == Claimed::No => {}
                Some(run) if run.means == means => run.ids.push(id),
                _ => runs.push(Run { means, ids: vec![id] }),
            }
        }
        Ok((runs, judged, next))
    }

    /// Appends the claimed entries to the reply, or their IDs if the request says JUSTID.
    fn reply(&self, tx: &mut Tx<'_>, claimed: &[StreamId], reply: &mut Reply) -> Outcome {
        let work = tx.work();
        let (stream, _) = self.found(tx)?;
        reply.array(claimed.len());
        work.reply_each(claimed, reply, |id, reply| match stream.get(*id) {
            Some(entry) if !self.shows_ids => reply_entry(entry, &work, reply),
            _ => reply_id(*id, reply),
        });
        Ok(())
    }
}

/// The options of XCLAIM, which stand behind the IDs.
#[derive(Default)]
struct Options {
    time: Option<i64>,
    count: Option<i64>,
    is_forced: bool,
    shows_ids: bool,
    last: StreamId,
}

impl Options {
    fn parse(args: Args<'_>, first: usize, now: i64) -> Result<Self, Refusal> {
        let mut options = Self::default();
        let mut at = first;
        let integer = |text: &[u8], name: &str| {
            let refusal = || format!("ERR Invalid {name} option argument for XCLAIM");
            parse_i64(text).ok_or_else(|| Refusal::new(refusal()))
        };
        while let Some(word) = args.get(at) {
            let operand = args.get(at + 1);
            at += 2;
            if args.is(at - 2, "FORCE") {
                options.is_forced = true;
                at -= 1;
            } else if args.is(at - 2, "JUSTID") {
                options.shows_ids = true;
                at -= 1;
            } else if let (true, Some(operand)) = (args.is(at - 2, "IDLE"), operand) {
                options.time = Some(now.wrapping_sub(integer(operand, "IDLE")?));
            } else if let (true, Some(operand)) = (args.is(at - 2, "TIME"), operand) {
                options.time = Some(integer(operand, "TIME")?);
            } else if let (true, Some(operand)) = (args.is(at - 2, "RETRYCOUNT"), operand) {
                options.count = Some(integer(operand, "RETRYCOUNT")?);
            } else if let (true, Some(operand)) = (args.is(at - 2, "LASTID"), operand) {
                options.last = id(operand)?;
            } else {
                let text = format!("ERR Unrecognized XCLAIM option '{}'", quoted(word));
                return Err(Refusal::new(text));
            }
        }
        Ok(options)
    }
}

fn xclaim(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let now = tx.now().0;
    let mut claim = Claim {
        key: args.at(1),
        group: args.at(2),
        consumer: args.at(3),
        idle_min: 0,
        time: now,
        count: None,
        is_forced: false,
        shows_ids: false,
    };
    find_read(tx, claim.key)?;
    claim.found(tx)?;
    let refusal = Refusal::of("ERR Invalid min-idle-time argument for XCLAIM");
    claim.idle_min = parse_i64(args.at(4)).ok_or(refusal)?.max(0);
    let ids: Vec<StreamId> = args.from(5).map_while(|text| StreamId::parse(text, 0)).collect();
    let options = Options::parse(args, 5 + ids.len(), now)?;
    (claim.is_forced, claim.shows_ids) = (options.is_forced, options.shows_ids);
    claim.count = options.count.and_then(|count| u64::try_from(count).ok());
    // A time below 0 or in the future becomes now: the clock of whoever computed it may differ.
    claim.time = options.time.filter(|time| (0..=now).contains(time)).unwrap_or(now);
    let (_, group) = claim.found(tx)?;
    if options.last > group.last_id() {
        let (group, last, read) = (claim.group, options.last, group.read());
        tx.change(claim.key, Effect::StreamGroupSet { group, last, read })?;
    }
    let mut claimed = Vec::new();
    for id in ids {
        if claim.claim(tx, id)? {
            claimed.push(id);
        }
    }
    claim.reply(tx, &claimed, reply)
}

fn xautoclaim(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    // The lookup counts a hit before the options are read, but WRONGTYPE is answered after them.
    let found = find_read(tx, args.at(1)).map(drop);
    let refusal = Refusal::of("ERR Invalid min-idle-time argument for XAUTOCLAIM");
    let idle_min = parse_i64(args.at(4)).ok_or(refusal)?.max(0);
    let mut next = Some(start(args.at(5))?);
    let (mut count, mut shows_ids) = (COUNT_DEFAULT, false);
    let mut at = 6;
    while at < args.len() {
        if args.is(at, "COUNT")
            && let Some(operand) = args.get(at + 1)
        {
            let given = parse_i64(operand).filter(|count| (1..=COUNT_MAX).contains(count));
            count = given.ok_or(Refusal::of("ERR COUNT must be > 0"))? as u64;
            at += 2;
        } else if args.is(at, "JUSTID") {
            shows_ids = true;
            at += 1;
        } else {
            return Err(Refusal::SYNTAX);
        }
    }
    let claim = Claim {
        key: args.at(1),
        group: args.at(2),
        consumer: args.at(3),
        idle_min,
        time: tx.now().0,
        count: None,
        is_forced: false,
        shows_ids,
    };
    found?;
    claim.found(tx)?;
    let next_pending = |tx: &mut Tx<'_>, from: Option<StreamId>| -> Result<_, Refusal> {
        let (_, group) = claim.found(tx)?;
        Ok(from.and_then(|from| group.pending_from(from).next()).map(|(id, _)| id))
    };
    if count >= COUNT_WITHOUT_MEMORY {
        return Err(COUNT_TOO_HIGH);
    }
    let mut looks = count.saturating_mul(LOOKS_PER_CLAIM);
    let (mut claimed, mut gone) = (Vec::new(), Vec::new());
    while let Some(from) = next.filter(|_| looks > 0 && count > 0) {
        let (runs, judged, behind) = claim.judge_slice(tx, from, looks, count)?;
        if judged == 0 {
            break;
        }
        (looks, next) = (looks - judged, behind);
        for run in runs {
            claim.carry_out(tx, &run)?;
            count -= run.ids.len() as u64;
            let all = if run.means == Claimed::Gone { &mut gone } else { &mut claimed };
            all.extend(run.ids);
        }
    }
    reply.array(3);
    reply_id(next_pending(tx, next)?.unwrap_or_default(), reply);
    claim.reply(tx, &claimed, reply)?;
    reply.array(gone.len());
    gone.into_iter().for_each(|id| reply_id(id, reply));
    Ok(())
}
