//! Members between two ranks, scores or members: ZRANGE, its older kin, and ZRANGESTORE.

use super::copied::Copied;
use super::{bounds, reply_header, reply_pair, store, view_sorted};
use crate::command::{Args, Command, DataFn, Group, KeySpec, Outcome, read, write};
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::sorted::{self, Sorted, Text};
use crate::view::View;
use crate::work::Work;
use resp::Reply;
use std::ops::Range;
use structures::ordered::{LexBound, ScoreBound};

pub const ZRANGE: Command<DataFn> = read(
    "ZRANGE key start stop [BYSCORE | BYLEX] [REV] [LIMIT offset count] [WITHSCORES]",
    |view, args, reply| range(view, args, reply, Kind::default()),
)
.doc("Returns the members of a sorted set within a range.")
.group(Group::SortedSet)
.since("1.2.0")
.cost(COST);

pub const ZRANGESTORE: Command<DataFn> =
    write("ZRANGESTORE dst src min max [BYSCORE | BYLEX] [REV] [LIMIT offset count]", zrangestore)
        .key_specs(&["@1,0/1/0,OW+update", "@2,0/1/0,RO+access"])
        .doc("Stores the members of a sorted set within a range in another key.")
        .group(Group::SortedSet)
        .since("6.2.0")
        .cost(COST)
        .keys(&[KeySpec::Range { first: 1, last: 2, step: 1 }])
        .denyoom();

pub const ZREVRANGE: Command<DataFn> =
    read("ZREVRANGE key start stop [WITHSCORES]", |view, args, reply| {
        let kind = Kind { by: Some(Axis::Rank), reverse: Some(true) };
        range(view, args, reply, kind)
    })
    .doc("Returns the members of a sorted set between two ranks, from the greatest down.")
    .group(Group::SortedSet)
    .since("1.2.0")
    .cost(COST);

pub const ZRANGEBYSCORE: Command<DataFn> =
    read("ZRANGEBYSCORE key min max [WITHSCORES] [LIMIT offset count]", |view, args, reply| {
        let kind = Kind { by: Some(Axis::Score), reverse: Some(false) };
        range(view, args, reply, kind)
    })
    .doc("Returns the members of a sorted set whose scores lie within a range.")
    .group(Group::SortedSet)
    .since("1.0.5")
    .cost(COST);

pub const ZREVRANGEBYSCORE: Command<DataFn> = read(
    "ZREVRANGEBYSCORE key max min [WITHSCORES] [LIMIT offset count]",
    |view, args, reply| {
        let kind = Kind { by: Some(Axis::Score), reverse: Some(true) };
        range(view, args, reply, kind)
    },
)
.doc("Returns the members of a sorted set whose scores lie within a range, from the greatest down.")
.group(Group::SortedSet)
.since("2.2.0")
.cost(COST);

pub const ZRANGEBYLEX: Command<DataFn> =
    read("ZRANGEBYLEX key min max [LIMIT offset count]", |view, args, reply| {
        let kind = Kind { by: Some(Axis::Member), reverse: Some(false) };
        range(view, args, reply, kind)
    })
    .doc("Returns the members of a sorted set between two members.")
    .group(Group::SortedSet)
    .since("2.8.9")
    .cost(COST);

pub const ZREVRANGEBYLEX: Command<DataFn> =
    read("ZREVRANGEBYLEX key max min [LIMIT offset count]", |view, args, reply| {
        let kind = Kind { by: Some(Axis::Member), reverse: Some(true) };
        range(view, args, reply, kind)
    })
    .doc("Returns the members of a sorted set between two members, from the greatest down.")
    .group(Group::SortedSet)
    .since("2.8.9")
    .cost(COST);

const COST: &str = "O(log(N)+M) with N being the number of elements in the sorted set and M the \
                    number of elements returned.";

/// The order by which a range is given.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Axis {
    Rank,
    Score,
    Member,
}

/// The options that a command's name fixes; `None`: the arguments say.
#[derive(Clone, Copy, Default)]
struct Kind {
    by: Option<Axis>,
    reverse: Option<bool>,
}

/// The two ends of a range.
enum Ends<'a> {
    Ranks((i64, i64)),
    Scores(ScoreBound, ScoreBound),
    Members(LexBound<'a>, LexBound<'a>),
}

struct Request<'a> {
    ends: Ends<'a>,
    reverse: bool,
    with_scores: bool,
    offset: i64,
    /// Negative: all.
    limit: i64,
}

impl<'a> Request<'a> {
    /// Reads what stands behind the key at argument `at`.
    fn parse(args: Args<'a>, at: usize, stores: bool, kind: Kind) -> Result<Self, Refusal> {
        let Kind { mut by, mut reverse } = kind;
        let (mut with_scores, mut offset, mut limit) = (false, 0, -1);
        let mut word = at + 3;
        while word < args.len() {
            if !stores && args.is(word, "WITHSCORES") {
                with_scores = true;
            } else if args.is(word, "LIMIT") && word + 2 < args.len() {
                (offset, limit) = bounds::ranks(args.at(word + 1), args.at(word + 2))?;
                word += 2;
            } else if reverse.is_none() && args.is(word, "REV") {
                reverse = Some(true);
            } else if by.is_none() && args.is(word, "BYLEX") {
                by = Some(Axis::Member);
            } else if by.is_none() && args.is(word, "BYSCORE") {
                by = Some(Axis::Score);
            } else {
                return Err(Refusal::SYNTAX);
            }
            word += 1;
        }
        let (by, reverse) = (by.unwrap_or(Axis::Rank), reverse.unwrap_or(false));
        if limit != -1 && by == Axis::Rank {
            return Err(Refusal::of(
                "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or \
                 BYLEX",
            ));
        }
        if with_scores && by == Axis::Member {
            return Err(Refusal::of(
                "ERR syntax error, WITHSCORES not supported in combination with BYLEX",
            ));
        }
        let ends = Ends::parse(by, reverse, args.at(at + 1), args.at(at + 2))?;
        Ok(Self { ends, reverse, with_scores, offset, limit })
    }

    /// The ranks that are asked for, counted from the smallest member.
    fn ranks(&self, sorted: &Sorted) -> Range<usize> {
        let within = match self.ends {
            Ends::Ranks(ranks) => {
                let len = sorted.len();
                let ranks = bounds::resolve(ranks, len);
                return if self.reverse { len - ranks.end..len - ranks.start } else { ranks };
            }
            Ends::Scores(min, max) => sorted.ranks_by_score(min, max),
            Ends::Members(min, max) => sorted.ranks_by_lex(min, max),
        };
        // A negative offset leaves nothing, as in Redis.
        let offset = usize::try_from(self.offset).unwrap_or(usize::MAX).min(within.len());
        let limit = usize::try_from(self.limit).unwrap_or(usize::MAX).min(within.len() - offset);
        if self.reverse {
            let end = within.end - offset;
            end - limit..end
        } else {
            let start = within.start + offset;
            start..start + limit
        }
    }
}

impl<'a> Ends<'a> {
    /// A reversed range of scores or members names its greater end first.
    fn parse(by: Axis, reverse: bool, first: &'a [u8], second: &'a [u8]) -> Result<Self, Refusal> {
        let (min, max) = if reverse { (second, first) } else { (first, second) };
        Ok(match by {
            Axis::Rank => Self::Ranks(bounds::ranks(first, second)?),
            Axis::Score => {
                let (min, max) = bounds::scores(min, max)?;
                Self::Scores(min, max)
            }
            Axis::Member => {
                let (min, max) = bounds::members(min, max)?;
                Self::Members(min, max)
            }
        })
    }
}

fn range(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply, kind: Kind) -> Outcome {
    let request = Request::parse(args, 1, false, kind)?;
    let Some(sorted) = view_sorted(view, args.at(1))? else {
        reply.array(0);
        return Ok(());
    };
    let (ranks, with_scores) = (request.ranks(sorted), request.with_scores);
    reply_header(ranks.len(), with_scores, reply);
    if request.reverse {
        reply_pairs(sorted.descending(ranks), with_scores, view.work(), reply);
    } else {
        reply_pairs(sorted.ascending(ranks), with_scores, view.work(), reply);
    }
    Ok(())
}

/// Appends members, with their scores or without, as far as the reply takes them.
fn reply_pairs<'s>(
    members: impl Iterator<Item = (Text<'s>, f64)>,
    with_scores: bool,
    work: &Work,
    reply: &mut Reply,
) {
    work.reply_each(members, reply, |(member, score), reply| {
        reply_pair(member, score, with_scores, reply);
    });
}

fn zrangestore(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let request = Request::parse(args, 2, true, Kind::default())?;
    let mut members = Copied::new(tx.work());
    if let Some(sorted) = tx.find_read(args.at(2)).map(sorted::of).transpose()? {
        let ranks = request.ranks(sorted);
        sorted.ascending(ranks).for_each(|(member, score)| members.push_text(member, score));
    }
    store(tx, args.at(1), &members, "zrangestore", reply)
}
