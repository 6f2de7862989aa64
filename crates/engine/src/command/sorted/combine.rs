//! Sorted sets made of sorted sets and sets: union, intersection and difference, answered or
//! stored. A set's members all have the score 1.

use super::copied::Copied;
use super::{reply_header, reply_pair, store};
use crate::command::{Args, Command, DataFn, Group, Outcome, read, write};
use crate::number::parse_f64;
use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::value::sorted::Text;
use crate::value::{EntryRef, Set, Sorted, Value};
use crate::view::View;
use crate::work::Work;
use resp::Reply;
use resp::integer::parse_i64;
use std::ops::{ControlFlow, Range};
use structures::MemberBuffer;

pub const ZUNION: Command<DataFn> = read(
    "ZUNION numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] \
     [WITHSCORES]",
    |view, args, reply| answer(view, args, reply, Operation::Union, "zunion"),
)
.doc("Returns the members of several sorted sets, with their scores brought together.")
.group(Group::SortedSet)
.since("6.2.0")
.cost(UNION_COST);

pub const ZUNIONSTORE: Command<DataFn> = write(
    "ZUNIONSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] \
     [AGGREGATE <SUM | MIN | MAX>]",
    |tx, args, reply| store_result(tx, args, reply, Operation::Union, "zunionstore"),
)
.key_specs(&["@1,0/1/0,OW+update", "@2,#0/1/1,RO+access"])
.doc("Stores the members of several sorted sets in a key, with their scores brought together.")
.group(Group::SortedSet)
.since("2.0.0")
.cost(UNION_COST)
.denyoom();

pub const ZINTER: Command<DataFn> = read(
    "ZINTER numkeys key [key ...] [WEIGHTS weight [weight ...]] [AGGREGATE <SUM | MIN | MAX>] \
     [WITHSCORES]",
    |view, args, reply| answer(view, args, reply, Operation::Intersection, "zinter"),
)
.doc("Returns the members that all of several sorted sets share.")
.group(Group::SortedSet)
.since("6.2.0")
.cost(INTERSECTION_COST);

pub const ZINTERSTORE: Command<DataFn> = write(
    "ZINTERSTORE destination numkeys key [key ...] [WEIGHTS weight [weight ...]] \
     [AGGREGATE <SUM | MIN | MAX>]",
    |tx, args, reply| store_result(tx, args, reply, Operation::Intersection, "zinterstore"),
)
.key_specs(&["@1,0/1/0,OW+update", "@2,#0/1/1,RO+access"])
.doc("Stores the members that all of several sorted sets share in a key.")
.group(Group::SortedSet)
.since("2.0.0")
.cost(INTERSECTION_COST)
.denyoom();

pub const ZINTERCARD: Command<DataFn> =
    read("ZINTERCARD numkeys key [key ...] [LIMIT limit]", zintercard)
        .doc("Returns how many members all of several sorted sets share.")
        .group(Group::SortedSet)
        .since("7.0.0")
        .cost(INTERSECTION_COST);

pub const ZDIFF: Command<DataFn> =
    read("ZDIFF numkeys key [key ...] [WITHSCORES]", |view, args, reply| {
        answer(view, args, reply, Operation::Difference, "zdiff")
    })
    .doc("Returns the members of a sorted set that are in none of the others.")
    .group(Group::SortedSet)
    .since("6.2.0")
    .cost(DIFFERENCE_COST);

pub const ZDIFFSTORE: Command<DataFn> =
    write("ZDIFFSTORE destination numkeys key [key ...]", |tx, args, reply| {
        store_result(tx, args, reply, Operation::Difference, "zdiffstore")
    })
    .key_specs(&["@1,0/1/0,OW+update", "@2,#0/1/1,RO+access"])
    .doc("Stores the members of a sorted set that are in none of the others in a key.")
    .group(Group::SortedSet)
    .since("6.2.0")
    .cost(DIFFERENCE_COST)
    .denyoom();

const UNION_COST: &str = "O(N)+O(M*log(M)) with N being the sum of the sizes of the input sorted \
                          sets, and M being the number of elements in the resulting sorted set.";
const INTERSECTION_COST: &str = "O(N*K)+O(M*log(M)) worst case with N being the smallest input \
                                 sorted set, K being the number of input sorted sets and M being \
                                 the number of elements in the resulting sorted set.";
const DIFFERENCE_COST: &str = "O(L + (N-K)log(N)) worst case where L is the total number of \
                               elements in all the sets, N is the size of the first set, and K is \
                               the size of the result set.";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Operation {
    Union,
    Intersection,
    Difference,
}

/// The function that makes one score of a member's scores in several inputs.
#[derive(Clone, Copy)]
enum Aggregate {
    Sum,
    Min,
    Max,
}

impl Aggregate {
    /// Infinities of both signs add up to zero, and so does anything with not-a-number.
    fn apply(self, score: f64, other: f64) -> f64 {
        match self {
            Self::Sum => number_or_zero(score + other),
            Self::Min if other < score => other,
            Self::Max if other > score => other,
            Self::Min | Self::Max => score,
        }
    }
}

fn number_or_zero(score: f64) -> f64 {
    if score.is_nan() { 0.0 } else { score }
}

/// The collection at an input's key.
#[derive(Clone, Copy)]
enum Members<'a> {
    Absent,
    Set(&'a Set),
    Sorted(&'a Sorted),
}

impl<'a> Members<'a> {
    fn of(entry: Option<EntryRef<'a>>) -> Result<Self, Refusal> {
        let Some(entry) = entry else { return Ok(Self::Absent) };
        match Value::of(entry) {
            Some(Value::Set(set)) => Ok(Self::Set(set)),
            Some(Value::Sorted(sorted)) => Ok(Self::Sorted(sorted)),
            _ => Err(Refusal::WRONG_TYPE),
        }
    }

    fn len(self) -> usize {
        match self {
            Self::Absent => 0,
            Self::Set(set) => set.len(),
            Self::Sorted(sorted) => sorted.len(),
        }
    }

    fn score(self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Absent => None,
            Self::Set(set) => set.contains(member).then_some(1.0),
            Self::Sorted(sorted) => sorted.score(member),
        }
    }

    /// Visits every member until `visit` breaks.
    fn each(self, mut visit: impl FnMut(&[u8], f64) -> ControlFlow<()>) {
        let mut buffer = MemberBuffer::new();
        // Only where it stopped could be of interest, and is not.
        let _ = match self {
            Self::Absent => ControlFlow::Continue(()),
            Self::Set(set) => {
                set.iter().try_for_each(|member| visit(member.bytes(&mut buffer), 1.0))
            }
            Self::Sorted(sorted) => sorted
                .iter()
                .try_for_each(|(member, score)| visit(member.bytes(&mut buffer), score)),
        };
    }
}

/// One input: its members, and what their scores are multiplied by.
#[derive(Clone, Copy)]
struct Input<'a> {
    members: Members<'a>,
    weight: f64,
}

/// The options of a command, which stand behind its inputs.
struct Options {
    aggregate: Aggregate,
    with_scores: bool,
    /// 0: none.
    limit: u64,
}

/// The options that a command accepts behind its inputs.
#[derive(Clone, Copy)]
struct Takes {
    weights: bool,
    with_scores: bool,
    limit: bool,
}

/// The arguments that are the inputs' keys; the one at `numkeys` counts them.
fn keys(args: Args<'_>, numkeys: usize, name: &str) -> Result<Range<usize>, Refusal> {
    let count = parse_i64(args.at(numkeys)).ok_or(Refusal::NOT_AN_INTEGER)?;
    if count < 1 {
        return Err(Refusal::new(format!(
            "ERR at least 1 input key is needed for '{name}' command"
        )));
    }
    let first = numkeys + 1;
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    if count > args.len() - first {
        return Err(Refusal::SYNTAX);
    }
    Ok(first..first + count)
}

/// Looks the inputs up and reads the options behind them, in Redis's order.
fn parse<'a>(
    args: Args<'_>,
    keys: Range<usize>,
    takes: Takes,
    mut find: impl FnMut(&[u8]) -> Option<EntryRef<'a>>,
) -> Result<(Vec<Input<'a>>, Options), Refusal> {
    let mut inputs = Vec::with_capacity(keys.len());
    for key in args.range(keys.clone()) {
        inputs.push(Input { members: Members::of(find(key))?, weight: 1.0 });
    }
    let mut options = Options { aggregate: Aggregate::Sum, with_scores: false, limit: 0 };
    let mut at = keys.end;
    while at < args.len() {
        let left = args.len() - at - 1;
        if takes.weights && left >= inputs.len() && args.is(at, "WEIGHTS") {
            for input in &mut inputs {
                at += 1;
                let refusal = Refusal::of("ERR weight value is not a float");
                input.weight = parse_f64(args.at(at)).ok_or(refusal)?;
            }
        } else if takes.weights && left >= 1 && args.is(at, "AGGREGATE") {
            at += 1;
            options.aggregate = if args.is(at, "SUM") {
                Aggregate::Sum
            } else if args.is(at, "MIN") {
                Aggregate::Min
            } else if args.is(at, "MAX") {
                Aggregate::Max
            } else {
                return Err(Refusal::SYNTAX);
            };
        } else if takes.with_scores && args.is(at, "WITHSCORES") {
            options.with_scores = true;
        } else if takes.limit && left >= 1 && args.is(at, "LIMIT") {
            at += 1;
            let limit = parse_i64(args.at(at)).and_then(|limit| u64::try_from(limit).ok());
            options.limit = limit.ok_or(Refusal::of("ERR LIMIT can't be negative"))?;
        } else {
            return Err(Refusal::SYNTAX);
        }
        at += 1;
    }
    Ok((inputs, options))
}

impl Operation {
    /// The members of the result in their order.
    fn combine(self, mut inputs: Vec<Input<'_>>, aggregate: Aggregate, work: &Work) -> Copied {
        if self != Self::Difference {
            // The order in which scores are added up shows in the last digits: Redis's.
            inputs.sort_by_key(|input| input.members.len());
        }
        let mut result = Copied::new(work.clone());
        match self {
            Self::Union => unite(&inputs, aggregate, &mut result),
            Self::Intersection => intersect(&inputs, aggregate, work, |member, score| {
                result.push(member, score);
                ControlFlow::Continue(())
            }),
            Self::Difference => subtract(&inputs, work, &mut result),
        }
        result.sort();
        result
    }

    fn takes(self, stores: bool) -> Takes {
        Takes { weights: self != Self::Difference, with_scores: !stores, limit: false }
    }
}

fn unite(inputs: &[Input<'_>], aggregate: Aggregate, result: &mut Copied) {
    for input in inputs {
        input.members.each(|member, score| {
            result.push(member, number_or_zero(input.weight * score));
            ControlFlow::Continue(())
        });
    }
    result.merge(|score, other| aggregate.apply(score, other));
}

/// Visits the members that all inputs share, until `visit` breaks; the smallest input stands first.
fn intersect(
    inputs: &[Input<'_>],
    aggregate: Aggregate,
    work: &Work,
    mut visit: impl FnMut(&[u8], f64) -> ControlFlow<()>,
) {
    let Some((smallest, others)) = inputs.split_first() else { return };
    smallest.members.each(|member, score| {
        work.step();
        let mut result = number_or_zero(smallest.weight * score);
        for other in others {
            work.step();
            let Some(score) = other.members.score(member) else {
                return ControlFlow::Continue(());
            };
            result = aggregate.apply(result, score * other.weight);
        }
        visit(member, result)
    });
}

fn subtract(inputs: &[Input<'_>], work: &Work, result: &mut Copied) {
    let Some((first, others)) = inputs.split_first() else { return };
    first.members.each(|member, score| {
        work.step();
        let is_elsewhere = others.iter().any(|other| {
            work.step();
            other.members.score(member).is_some()
        });
        if !is_elsewhere {
            result.push(member, score);
        }
        ControlFlow::Continue(())
    });
}

fn answer(
    view: &mut View<'_>,
    args: Args<'_>,
    reply: &mut Reply,
    operation: Operation,
    name: &str,
) -> Outcome {
    let keys = keys(args, 1, name)?;
    let (inputs, options) = parse(args, keys, operation.takes(false), |key| view.find(key))?;
    let result = operation.combine(inputs, options.aggregate, view.work());
    reply_header(result.len(), options.with_scores, reply);
    view.work().reply_each(result.iter(), reply, |(member, score), reply| {
        reply_pair(Text::Bytes(member), score, options.with_scores, reply);
    });
    Ok(())
}

fn store_result(
    tx: &mut Tx<'_>,
    args: Args<'_>,
    reply: &mut Reply,
    operation: Operation,
    name: &str,
) -> Outcome {
    let keys = keys(args, 2, name)?;
    // Keys past their time are deleted and hits are counted first; then all can be looked at.
    for key in args.range(keys.clone()) {
        Members::of(tx.find_read(key))?;
    }
    let mut view = tx.view();
    let (inputs, options) = parse(args, keys, operation.takes(true), |key| view.peek(key))?;
    let result = operation.combine(inputs, options.aggregate, view.work());
    store(tx, args.at(1), &result, name, reply)
}

fn zintercard(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let keys = keys(args, 1, "zintercard")?;
    let takes = Takes { weights: false, with_scores: false, limit: true };
    let (mut inputs, options) = parse(args, keys, takes, |key| view.find(key))?;
    inputs.sort_by_key(|input| input.members.len());
    let mut count = 0;
    intersect(&inputs, options.aggregate, view.work(), |_, _| {
        count += 1;
        if count == options.limit { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    reply.integer(count as i64);
    Ok(())
}
