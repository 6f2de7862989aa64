//! A small sorted set: members and scores alternate in a listpack, in order.
//!
//! A score that is an integer is stored as one, any other as its text of 17 digits, which reads
//! back as the same number. Minus zero is such a text too: commands put none here, as Redis does
//! not, but a value that was a tree and is read from a file or a master may have it, and must read
//! the same wherever it lies.

use crate::number::format_double;
use std::cmp::Ordering;
use std::ops::Range;
use structures::listpack::{Cursor, Item, Iter};
use structures::ordered::{LexBound, ScoreBound};
use structures::{Listpack, Scored};

/// Scores beyond half the range of an `i64` are stored as text: Redis's bound for a safe cast.
const INTEGRAL_SCORE_MAX: f64 = (i64::MAX / 2) as f64;

pub(super) fn score(pack: &Listpack, member: &[u8]) -> Option<f64> {
    let member = pack.find(member, 1)?;
    Some(read_score(pack.at(pack.next(member)?)))
}

/// Gives the member at `cursor` another score.
pub(super) fn change(pack: &mut Listpack, cursor: Cursor, member: &[u8], score: f64) -> Scored {
    let old = pack.next(cursor).map_or(0.0, |cursor| read_score(pack.at(cursor)));
    if old == score {
        return Scored::Unchanged;
    }
    pack.remove(cursor, 2);
    insert_new(pack, member, score);
    Scored::Updated(old)
}

/// Inserts a member that is not there.
pub(super) fn insert_new(pack: &mut Listpack, member: &[u8], score: f64) {
    with_score_item(score, |item| match place(pack, member, score) {
        Some(cursor) => {
            pack.insert_item_before(cursor, item);
            pack.insert_before(cursor, member);
        }
        None => {
            pack.push_back(member);
            pack.push_back_item(item);
        }
    });
}

/// The first member that comes after this one; `None` if it comes last.
fn place(pack: &Listpack, member: &[u8], score: f64) -> Option<Cursor> {
    // Members often come in the order of their scores.
    let last = pack.last()?;
    if order_at(pack, pack.prev(last)?, last, member, score) == Ordering::Less {
        return None;
    }
    let mut cursor = pack.first()?;
    loop {
        let score_at = pack.next(cursor)?;
        if order_at(pack, cursor, score_at, member, score) == Ordering::Greater {
            return Some(cursor);
        }
        cursor = pack.next(score_at)?;
    }
}

/// The order of what stands at two cursors, against a member and its score.
fn order_at(pack: &Listpack, at: Cursor, score_at: Cursor, member: &[u8], score: f64) -> Ordering {
    let other = read_score(pack.at(score_at));
    let order = other.partial_cmp(&score).unwrap_or(Ordering::Equal);
    order.then_with(|| compare_text(pack.at(at), member))
}

pub(super) fn remove(pack: &mut Listpack, member: &[u8]) -> Option<f64> {
    let cursor = pack.find(member, 1)?;
    let score = read_score(pack.at(pack.next(cursor)?));
    pack.remove(cursor, 2);
    Some(score)
}

pub(super) fn rank(pack: &Listpack, member: &[u8]) -> Option<usize> {
    ascending(pack, 0..usize::MAX).position(|(other, _)| other.equals(member))
}

pub(super) fn at_rank(pack: &Listpack, rank: usize) -> Option<(Item<'_>, f64)> {
    let member = pack.seek(rank.checked_mul(2)?)?;
    Some((pack.at(member), read_score(pack.at(pack.next(member)?))))
}

pub(super) fn ranks_by_score(pack: &Listpack, min: ScoreBound, max: ScoreBound) -> Range<usize> {
    let scores = || ascending(pack, 0..usize::MAX).map(|(_, score)| score);
    let start = scores().take_while(|score| match min {
        ScoreBound::Inclusive(min) => *score < min,
        ScoreBound::Exclusive(min) => *score <= min,
    });
    let start = start.count();
    let inside = scores().skip(start).take_while(|score| match max {
        ScoreBound::Inclusive(max) => *score <= max,
        ScoreBound::Exclusive(max) => *score < max,
    });
    start..start + inside.count()
}

pub(super) fn ranks_by_lex(pack: &Listpack, min: LexBound<'_>, max: LexBound<'_>) -> Range<usize> {
    let members = || ascending(pack, 0..usize::MAX).map(|(member, _)| member);
    let start = members().take_while(|member| match min {
        LexBound::Min => false,
        LexBound::Max => true,
        LexBound::Inclusive(min) => compare_text(*member, min) == Ordering::Less,
        LexBound::Exclusive(min) => compare_text(*member, min) != Ordering::Greater,
    });
    let start = start.count();
    let inside = members().skip(start).take_while(|member| match max {
        LexBound::Min => false,
        LexBound::Max => true,
        LexBound::Inclusive(max) => compare_text(*member, max) != Ordering::Greater,
        LexBound::Exclusive(max) => compare_text(*member, max) == Ordering::Less,
    });
    start..start + inside.count()
}

pub(super) fn ascending(pack: &Listpack, ranks: Range<usize>) -> Ascending<'_> {
    let start = ranks.start.saturating_mul(2);
    let first = if start == 0 { pack.first() } else { pack.seek(start) };
    Ascending { items: first.map(|first| pack.iter_from(first)), left: ranks.len() }
}

pub(super) fn descending(pack: &Listpack, ranks: Range<usize>) -> Descending<'_> {
    let len = pack.len() / 2;
    let end = ranks.end.min(len);
    // The score of the last member in range is the element before two times `end`.
    let last = match end {
        0 => None,
        end if end == len => pack.last(),
        end => pack.seek(2 * end - 1),
    };
    let left = end.saturating_sub(ranks.start);
    Descending { items: last.map(|last| pack.iter_up_to(last)), left }
}

/// Pairs from the front.
pub(super) struct Ascending<'a> {
    items: Option<Iter<'a>>,
    left: usize,
}

/// Pairs from the back.
pub(super) struct Descending<'a> {
    items: Option<Iter<'a>>,
    left: usize,
}

impl<'a> Iterator for Ascending<'a> {
    type Item = (Item<'a>, f64);

    fn next(&mut self) -> Option<(Item<'a>, f64)> {
        self.left = self.left.checked_sub(1)?;
        let items = self.items.as_mut()?;
        Some((items.next()?, read_score(items.next()?)))
    }
}

impl<'a> Iterator for Descending<'a> {
    type Item = (Item<'a>, f64);

    fn next(&mut self) -> Option<(Item<'a>, f64)> {
        self.left = self.left.checked_sub(1)?;
        let items = self.items.as_mut()?;
        let score = items.next_back()?;
        Some((items.next_back()?, read_score(score)))
    }
}

/// A stored score. A snapshot may hold text that is no number; it counts as zero, and so does
/// not-a-number, which no order could hold.
fn read_score(item: Item<'_>) -> f64 {
    match item {
        Item::Integer(integer) => integer as f64,
        Item::Bytes(text) => {
            let score = std::str::from_utf8(text).ok().and_then(|text| text.parse::<f64>().ok());
            score.filter(|score| !score.is_nan()).unwrap_or(0.0)
        }
    }
}

/// Lends a score as it is stored.
fn with_score_item<T>(score: f64, stores: impl FnOnce(Item<'_>) -> T) -> T {
    let is_minus_zero = score == 0.0 && score.is_sign_negative();
    if score.abs() <= INTEGRAL_SCORE_MAX && score == score.trunc() && !is_minus_zero {
        return stores(Item::Integer(score as i64));
    }
    stores(Item::Bytes(format_double(score).as_bytes()))
}

/// The order of a member's bytes against others.
fn compare_text(member: Item<'_>, other: &[u8]) -> Ordering {
    match member {
        Item::Bytes(bytes) => bytes.cmp(other),
        Item::Integer(integer) => itoa::Buffer::new().format(integer).as_bytes().cmp(other),
    }
}
