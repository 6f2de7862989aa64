//! Members that join or take another score: ZADD, ZINCRBY.

use super::{find, stored_score};
use crate::apply::Applied;
use crate::command::{Args, Command, DataFn, Group, Outcome, write};
use crate::effect::Effect;
use crate::notify::Class;
use crate::number::parse_f64;
use crate::refusal::Refusal;
use crate::tx::Tx;
use resp::Reply;

pub const ZADD: Command<DataFn> =
    write("ZADD key [NX | XX] [GT | LT] [CH] [INCR] score member [score member ...]", zadd)
        .doc("Adds members to a sorted set, or changes their scores. The key is created if absent.")
        .group(Group::SortedSet)
        .since("1.2.0")
        .cost("O(log(N)) for each item added, where N is the number of elements in the sorted set.")
        .denyoom()
        .fast();

pub const ZINCRBY: Command<DataFn> = write("ZINCRBY key increment member", zincrby)
    .key_use("RW+access+update")
    .doc("Adds to the score of a member of a sorted set, which is created if absent.")
    .group(Group::SortedSet)
    .since("1.2.0")
    .cost("O(log(N)) where N is the number of elements in the sorted set.")
    .denyoom()
    .fast();

/// The options of ZADD, which stand before the scores; GEOADD has some of them.
#[derive(Clone, Copy, Default)]
pub struct Options {
    pub new_only: bool,
    pub present_only: bool,
    greater: bool,
    less: bool,
    pub counts_changed: bool,
    increments: bool,
}

impl Options {
    /// Takes a word; whether it is an option.
    fn take(&mut self, args: Args<'_>, at: usize) -> bool {
        let option = if args.is(at, "NX") {
            &mut self.new_only
        } else if args.is(at, "XX") {
            &mut self.present_only
        } else if args.is(at, "GT") {
            &mut self.greater
        } else if args.is(at, "LT") {
            &mut self.less
        } else if args.is(at, "CH") {
            &mut self.counts_changed
        } else if args.is(at, "INCR") {
            &mut self.increments
        } else {
            return false;
        };
        *option = true;
        true
    }

    fn check(self, pairs: usize) -> Outcome {
        if self.new_only && self.present_only {
            return Err(Refusal::of("ERR XX and NX options at the same time are not compatible"));
        }
        let chosen = [self.new_only, self.greater, self.less].iter().filter(|set| **set).count();
        if chosen > 1 {
            return Err(Refusal::of(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ));
        }
        if self.increments && pairs > 1 {
            return Err(Refusal::of("ERR INCR option supports a single increment-element pair"));
        }
        Ok(())
    }

    /// Whether a member's present score matters.
    fn looks(self) -> bool {
        self.new_only || self.present_only || self.greater || self.less || self.increments
    }

    /// Gives members their scores and replies.
    pub fn change<'m>(
        self,
        tx: &mut Tx<'_>,
        key: &[u8],
        pairs: impl Iterator<Item = Result<(f64, &'m [u8]), Refusal>>,
        reply: &mut Reply,
    ) -> Outcome {
        let (mut added, mut updated, mut outcome) = (0, 0, None);
        for pair in pairs {
            let (score, member) = pair?;
            outcome = if self.looks() {
                let current = find(tx, key)?.and_then(|sorted| sorted.score(member));
                self.decide(current, score)?
            } else {
                Some(score)
            };
            let Some(score) = outcome else { continue };
            let score = stored_score(tx, key, member, score)?;
            match tx.change(key, Effect::SortedAdd { member, score })? {
                Applied::Added => added += 1,
                Applied::Changed => updated += 1,
                Applied::Nothing | Applied::Pushed(_) => {}
            }
        }
        if added + updated > 0 {
            let event = if self.increments { "zincr" } else { "zadd" };
            tx.notify(Class::SortedSet, event, key);
        }
        match outcome {
            Some(score) if self.increments => reply.double(score),
            None if self.increments => reply.null(),
            _ => reply.integer(if self.counts_changed { added + updated } else { added }),
        }
        Ok(())
    }

    /// The score that a member is to take; `None` if it is to stay as it is.
    fn decide(self, current: Option<f64>, score: f64) -> Result<Option<f64>, Refusal> {
        let Some(current) = current else {
            return Ok((!self.present_only).then_some(score));
        };
        if self.new_only {
            return Ok(None);
        }
        let score = if self.increments { current + score } else { score };
        if score.is_nan() {
            return Err(Refusal::of("ERR resulting score is not a number (NaN)"));
        }
        let stays = self.less && score >= current || self.greater && score <= current;
        Ok((!stays).then_some(score))
    }
}

fn zadd(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    add(tx, args, reply, Options::default())
}

fn zincrby(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply) -> Outcome {
    add(tx, args, reply, Options { increments: true, ..Options::default() })
}

fn add(tx: &mut Tx<'_>, args: Args<'_>, reply: &mut Reply, mut options: Options) -> Outcome {
    let mut first = 2;
    while options.take(args, first) {
        first += 1;
    }
    let words = args.len().saturating_sub(first);
    if words == 0 || !words.is_multiple_of(2) {
        return Err(Refusal::SYNTAX);
    }
    options.check(words / 2)?;
    // Every score is read before anything changes; a single one is read but once.
    if words > 2 {
        for at in (first..args.len()).step_by(2) {
            score(args, at)?;
        }
    }
    let pairs = (first..args.len()).step_by(2);
    let pairs = pairs.map(|at| Ok((score(args, at)?, args.at(at + 1))));
    options.change(tx, args.at(1), pairs, reply)
}

fn score(args: Args<'_>, at: usize) -> Result<f64, Refusal> {
    parse_f64(args.at(at)).ok_or(Refusal::NOT_A_FLOAT)
}
