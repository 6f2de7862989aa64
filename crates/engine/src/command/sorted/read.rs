//! What is asked of one member, or of how many there are.

use super::{bounds, reply_member, view_sorted};
use crate::command::key::scan::{SCAN_COST, ScanOptions, Takes, parse_cursor};
use crate::command::{Args, Command, DataFn, Group, Outcome, read};
use crate::number::{format_double, push_score};
use crate::refusal::Refusal;
use crate::value::sorted::{self, Sorted, Text};
use crate::view::View;
use resp::Reply;

pub const ZCARD: Command<DataFn> = read("ZCARD key", zcard)
    .needs_no_value()
    .key_use("RO")
    .doc("Returns the number of members in a sorted set.")
    .group(Group::SortedSet)
    .since("1.2.0")
    .cost("O(1)")
    .fast();

pub const ZSCORE: Command<DataFn> = read("ZSCORE key member", zscore)
    .doc("Returns the score of a member of a sorted set.")
    .group(Group::SortedSet)
    .since("1.2.0")
    .cost("O(1)")
    .fast();

pub const ZMSCORE: Command<DataFn> = read("ZMSCORE key member [member ...]", zmscore)
    .doc("Returns the scores of several members of a sorted set.")
    .group(Group::SortedSet)
    .since("6.2.0")
    .cost("O(N) where N is the number of members being requested.")
    .fast();

pub const ZRANK: Command<DataFn> = read("ZRANK key member [WITHSCORE]", zrank)
    .doc("Returns how many members of a sorted set come before one.")
    .group(Group::SortedSet)
    .since("2.0.0")
    .cost("O(log(N))")
    .fast();

pub const ZREVRANK: Command<DataFn> = read("ZREVRANK key member [WITHSCORE]", zrevrank)
    .doc("Returns how many members of a sorted set come behind one.")
    .group(Group::SortedSet)
    .since("2.0.0")
    .cost("O(log(N))")
    .fast();

pub const ZCOUNT: Command<DataFn> = read("ZCOUNT key min max", zcount)
    .doc("Returns how many members of a sorted set have scores within a range.")
    .group(Group::SortedSet)
    .since("2.0.0")
    .cost("O(log(N)) with N being the number of elements in the sorted set.")
    .fast();

pub const ZLEXCOUNT: Command<DataFn> = read("ZLEXCOUNT key min max", zlexcount)
    .doc("Returns how many members of a sorted set lie between two members.")
    .group(Group::SortedSet)
    .since("2.8.9")
    .cost("O(log(N)) with N being the number of elements in the sorted set.")
    .fast();

pub const ZSCAN: Command<DataFn> =
    read("ZSCAN key cursor [MATCH pattern] [COUNT count] [NOSCORES]", zscan)
        .tips(&["nondeterministic_output"])
        .doc("Iterates over the members and scores of a sorted set.")
        .group(Group::SortedSet)
        .since("2.8.0")
        .cost(SCAN_COST);

fn zcard(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let len = view.count(args.at(1), "zset", |_, entry| sorted::of(entry).map(Sorted::len))?;
    reply.integer(len as i64);
    Ok(())
}

fn zscore(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let sorted = view_sorted(view, args.at(1))?;
    reply_score(sorted.and_then(|sorted| sorted.score(args.at(2))), reply);
    Ok(())
}

fn zmscore(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let sorted = view_sorted(view, args.at(1))?;
    reply.array(args.len() - 2);
    view.work().reply_each(args.from(2), reply, |member, reply| {
        reply_score(sorted.and_then(|sorted| sorted.score(member)), reply);
    });
    Ok(())
}

fn reply_score(score: Option<f64>, reply: &mut Reply) {
    match score {
        Some(score) => reply.double(score),
        None => reply.null(),
    }
}

fn zrank(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    rank(view, args, reply, "zrank", |rank, _| rank)
}

fn zrevrank(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    rank(view, args, reply, "zrevrank", |rank, len| len - 1 - rank)
}

/// WITHSCORE came with Redis 7.2.
fn rank(
    view: &mut View<'_>,
    args: Args<'_>,
    reply: &mut Reply,
    command: &str,
    count: impl FnOnce(usize, usize) -> usize,
) -> Outcome {
    let has_score = match args.len() {
        3 => false,
        4 if args.is(3, "WITHSCORE") => true,
        4 => return Err(Refusal::SYNTAX),
        _ => return Err(Refusal::arity(command)),
    };
    let member = args.at(2);
    let sorted = view_sorted(view, args.at(1))?;
    let Some((sorted, rank)) = sorted.and_then(|sorted| Some((sorted, sorted.rank(member)?)))
    else {
        if has_score {
            reply.null_array()
        } else {
            reply.null()
        }
        return Ok(());
    };
    let rank = count(rank, sorted.len()) as i64;
    if has_score {
        reply.array(2);
    }
    reply.integer(rank);
    if has_score {
        reply_score(sorted.score(member), reply);
    }
    Ok(())
}

fn zcount(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (min, max) = bounds::scores(args.at(2), args.at(3))?;
    let sorted = view_sorted(view, args.at(1))?;
    reply.integer(sorted.map_or(0, |sorted| sorted.ranks_by_score(min, max).len()) as i64);
    Ok(())
}

fn zlexcount(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    let (min, max) = bounds::members(args.at(2), args.at(3))?;
    let sorted = view_sorted(view, args.at(1))?;
    reply.integer(sorted.map_or(0, |sorted| sorted.ranks_by_lex(min, max).len()) as i64);
    Ok(())
}

fn zscan(view: &mut View<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    parse_cursor(args.at(2))?;
    let Some(sorted) = view_sorted(view, args.at(1))? else {
        // As in Redis, options are not even read then.
        reply.array(2);
        reply.bulk(b"0");
        reply.array(0);
        return Ok(());
    };
    let options = ScanOptions::parse(args, 2, Takes::Bare("NOSCORES"))?;
    let mut found = Vec::new();
    let work = view.work();
    let next = sorted.scan(options.cursor, options.count, |member, score| {
        work.step();
        let is_wanted = options.pattern.is_none()
            || match member {
                Text::Bytes(bytes) => options.matches(bytes, work),
                Text::Integer(integer) => {
                    options.matches(itoa::Buffer::new().format(integer).as_bytes(), work)
                }
            };
        if is_wanted {
            found.push((member, score));
        }
    });
    reply.array(2);
    reply.bulk(next.to_string());
    reply.array(if options.with_values { 2 * found.len() } else { found.len() });
    let mut score_text = Vec::new();
    work.reply_each(found, reply, |(member, score), reply| {
        reply_member(member, reply);
        match sorted {
            _ if !options.with_values => {}
            // As it is stored: integers in full, however large.
            Sorted::Pack(_) => {
                score_text.clear();
                push_score(&mut score_text, score);
                reply.bulk(&score_text);
            }
            Sorted::Tree(_) => reply.bulk(format_double(score).as_bytes()),
        }
    });
    Ok(())
}
