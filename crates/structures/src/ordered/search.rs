//! Bounds of ranges, and walking between ranks.

use super::{OrderedItem, OrderedTree};

/// One end of a range of scores. Infinities are ordinary values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ScoreBound {
    Inclusive(f64),
    Exclusive(f64),
}

/// One end of a range of members. Means something only where all scores are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LexBound<'a> {
    /// `-`: before every member.
    Min,
    /// `+`: behind every member.
    Max,
    Inclusive(&'a [u8]),
    Exclusive(&'a [u8]),
}

impl<T: OrderedItem> OrderedTree<T> {
    /// The ranks of the items between two scores; empty if the bounds exclude each other.
    pub fn ranks_by_score(&self, min: ScoreBound, max: ScoreBound) -> std::ops::Range<usize> {
        let start = match min {
            ScoreBound::Inclusive(min) => self.rank_where(|score, _| score < min),
            ScoreBound::Exclusive(min) => self.rank_where(|score, _| score <= min),
        };
        let end = match max {
            ScoreBound::Inclusive(max) => self.rank_where(|score, _| score <= max),
            ScoreBound::Exclusive(max) => self.rank_where(|score, _| score < max),
        };
        start..end.max(start)
    }

    /// The ranks of the items between two members; empty if the bounds exclude each other.
    pub fn ranks_by_lex(&self, min: LexBound<'_>, max: LexBound<'_>) -> std::ops::Range<usize> {
        let start = match min {
            LexBound::Min => 0,
            LexBound::Max => self.len(),
            LexBound::Inclusive(min) => self.rank_where(|_, item| item.member() < min),
            LexBound::Exclusive(min) => self.rank_where(|_, item| item.member() <= min),
        };
        let end = match max {
            LexBound::Min => 0,
            LexBound::Max => self.len(),
            LexBound::Inclusive(max) => self.rank_where(|_, item| item.member() <= max),
            LexBound::Exclusive(max) => self.rank_where(|_, item| item.member() < max),
        };
        start..end.max(start)
    }

    /// The items from `ranks.start` up to `ranks.end`, which may lie past the last item. `rev()`
    /// walks down from the end.
    pub fn range(&self, ranks: std::ops::Range<usize>) -> Forward<'_, T> {
        let end = ranks.end.min(self.len());
        Forward { tree: self, start: ranks.start.min(end), end, front: &[], back: &[] }
    }

    pub fn iter(&self) -> Forward<'_, T> {
        self.range(0..self.len())
    }
}

/// Items between two ranks, from either end. Holds the leaf that each end stands in.
pub struct Forward<'a, T> {
    tree: &'a OrderedTree<T>,
    /// Rank of the next item from the front.
    start: usize,
    /// One past the rank of the next item from the back.
    end: usize,
    /// The rest of the leaf that `start` stands in; empty when it has to be looked up.
    front: &'a [T],
    /// The part of the leaf before `end`; empty when it has to be looked up.
    back: &'a [T],
}

impl<T: OrderedItem> Iterator for Forward<'_, T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.start >= self.end {
            return None;
        }
        if self.front.is_empty() {
            let (leaf, at) = self.tree.root.leaf_of(self.start);
            self.front = &leaf[at..];
        }
        let (item, rest) = self.front.split_first()?;
        self.front = rest;
        self.start += 1;
        Some(*item)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.end - self.start, Some(self.end - self.start))
    }
}

impl<T: OrderedItem> DoubleEndedIterator for Forward<'_, T> {
    fn next_back(&mut self) -> Option<T> {
        if self.start >= self.end {
            return None;
        }
        if self.back.is_empty() {
            let (leaf, at) = self.tree.root.leaf_of(self.end - 1);
            self.back = &leaf[..=at];
        }
        let (item, rest) = self.back.split_last()?;
        self.back = rest;
        self.end -= 1;
        Some(*item)
    }
}

impl<T: OrderedItem> ExactSizeIterator for Forward<'_, T> {}
