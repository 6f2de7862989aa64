//! The ends of ranges, as clients write them.

use crate::number::parse_bound;
use crate::refusal::Refusal;
use resp::integer::parse_i64;
use std::ops::Range;
use structures::ordered::{LexBound, ScoreBound};

/// Reads a range of scores: `(` before one excludes it.
///
/// # Errors
/// Redis's text for what is no number.
pub(super) fn scores(min: &[u8], max: &[u8]) -> Result<(ScoreBound, ScoreBound), Refusal> {
    match (score(min), score(max)) {
        (Some(min), Some(max)) => Ok((min, max)),
        _ => Err(Refusal::of("ERR min or max is not a float")),
    }
}

fn score(text: &[u8]) -> Option<ScoreBound> {
    match text {
        [b'(', text @ ..] => parse_bound(text).map(ScoreBound::Exclusive),
        text => parse_bound(text).map(ScoreBound::Inclusive),
    }
}

/// Reads a range of members: `[a`, `(a`, `-` or `+`.
///
/// # Errors
/// Redis's text for anything else.
pub(super) fn members<'a>(
    min: &'a [u8],
    max: &'a [u8],
) -> Result<(LexBound<'a>, LexBound<'a>), Refusal> {
    match (member(min), member(max)) {
        (Some(min), Some(max)) => Ok((min, max)),
        _ => Err(Refusal::of("ERR min or max not valid string range item")),
    }
}

fn member(text: &[u8]) -> Option<LexBound<'_>> {
    match text {
        // A NUL ends the text, as in Redis.
        [b'-'] | [b'-', 0, ..] => Some(LexBound::Min),
        [b'+'] | [b'+', 0, ..] => Some(LexBound::Max),
        [b'[', member @ ..] => Some(LexBound::Inclusive(member)),
        [b'(', member @ ..] => Some(LexBound::Exclusive(member)),
        _ => None,
    }
}

/// Reads two ranks, both inclusive; negative ones count from the end.
///
/// # Errors
/// Redis's text for what is no integer.
pub(super) fn ranks(start: &[u8], stop: &[u8]) -> Result<(i64, i64), Refusal> {
    let start = parse_i64(start).ok_or(Refusal::NOT_AN_INTEGER)?;
    Ok((start, parse_i64(stop).ok_or(Refusal::NOT_AN_INTEGER)?))
}

/// The half-open range that two ranks mean among `len` members; empty if they cross.
pub(super) fn resolve((start, stop): (i64, i64), len: usize) -> Range<usize> {
    let len = len as i64;
    let from_end = |rank: i64| if rank < 0 { rank.saturating_add(len) } else { rank };
    let start = from_end(start).max(0);
    let stop = from_end(stop).min(len - 1);
    if start > stop { 0..0 } else { start as usize..stop as usize + 1 }
}
