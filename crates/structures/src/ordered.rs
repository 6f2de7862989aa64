//! The order of a big sorted set: a B+tree that counts.
//!
//! Redis keeps a skiplist: about 40 bytes a member for pointers and spans, one cache miss a step.
//! Here the leaves are arrays of references to members, and inner nodes know how many items lie
//! below each child, so that a rank is found, or told, on the way down.
//!
//! ```text
//!              firsts (score, item)   a        h        p
//! Inner        counts                 7        6        5        of items below each child
//!              children               │        │        │
//! Leaf         items          a b c d e f g    h … o    p … t    sorted by (score, member)
//! ```
//! An item is a small `Copy` reference: the tree asks it for its score and its member and never
//! owns either. The scores of `firsts` are copies, so that the way down rarely leaves the inner
//! nodes; only a leaf's binary search visits members, six of them one after the other. It asks for
//! the seven that its next three steps choose from at once, since loads that overlap cost a fifth.
//!
//! Memory: a leaf's array is allocated in the allocator's size classes, not at its full size, so
//! that a half-full leaf costs half. With 8-byte items that is 9 to 11 bytes an item after random
//! inserts, and under 9 after ascending or descending ones, whose splits leave full leaves behind.
//! It also makes redistribution between siblings before a split needless.
//!
//! There are no links between leaves: an iterator that reaches a leaf's end goes down again by
//! rank, which touches counts only.

mod node;
mod search;
#[cfg(test)]
mod tests;

pub use search::{Forward, LexBound, ScoreBound};

use node::{Edges, Inserted, Node};
use std::cmp::Ordering;

/// A small reference to a member that lives elsewhere. What it answers must not change while the
/// tree holds it: take the item out, change the score, put it back.
pub trait OrderedItem: Copy {
    /// Never NaN: no command lets one in.
    fn score(&self) -> f64;
    fn member(&self) -> &[u8];
    /// Asks the processor to load what the item refers to.
    fn prefetch(&self) {}
}

/// The order of a sorted set: by score, equal scores by the bytes of the member. `0.0` and `-0.0`
/// are equal.
pub fn compare(score: f64, member: &[u8], other_score: f64, other_member: &[u8]) -> Ordering {
    score
        .partial_cmp(&other_score)
        .unwrap_or(Ordering::Equal)
        .then_with(|| member.cmp(other_member))
}

/// Items in the order of [`compare`], no two of them equal.
pub struct OrderedTree<T> {
    root: Node<T>,
    len: usize,
}

impl<T: OrderedItem> Default for OrderedTree<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: OrderedItem> OrderedTree<T> {
    pub fn new() -> Self {
        Self { root: Node::empty(), len: 0 }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds an item. False, and no change, if one of the same score and member is there.
    pub fn insert(&mut self, item: T) -> bool {
        match self.root.insert(item, item.score(), Edges::BOTH) {
            Inserted::Present => return false,
            Inserted::Added { .. } => {}
            Inserted::Split { right, .. } => {
                let left = std::mem::replace(&mut self.root, Node::empty());
                self.root = Node::join(left, right);
            }
        }
        self.len += 1;
        true
    }

    /// Takes the item of this score and member out.
    pub fn remove(&mut self, score: f64, member: &[u8]) -> Option<T> {
        let rank = self.rank_of(score, member)?;
        self.remove_at(rank)
    }

    /// Takes the item with `rank` smaller ones out.
    pub fn remove_at(&mut self, rank: usize) -> Option<T> {
        if rank >= self.len {
            return None;
        }
        let item = self.root.remove_at(rank);
        self.root.lower();
        self.len -= 1;
        Some(item)
    }

    /// Puts another item of the same score and member into the place of the one at `rank`, which is
    /// there, and returns that one. Neither is looked at, and no node changes its size.
    pub fn replace_at(&mut self, rank: usize, item: T) -> T {
        assert!(rank < self.len, "an item is replaced where one is");
        self.root.replace_at(rank, item)
    }

    /// How many items come before the one of this score and member.
    pub fn rank_of(&self, score: f64, member: &[u8]) -> Option<usize> {
        let rank = self.rank_where(|other_score, other| {
            let order = other_score.partial_cmp(&score).unwrap_or(Ordering::Equal);
            order.then_with(|| other.member().cmp(member)) == Ordering::Less
        });
        let item = self.by_rank(rank)?;
        (compare(item.score(), item.member(), score, member) == Ordering::Equal).then_some(rank)
    }

    /// The item with `rank` smaller ones. A random rank is a fair draw.
    pub fn by_rank(&self, rank: usize) -> Option<T> {
        let (leaf, at) = self.root.leaf_of(rank);
        leaf.get(at).copied()
    }

    pub fn first(&self) -> Option<T> {
        self.by_rank(0)
    }

    pub fn last(&self) -> Option<T> {
        self.by_rank(self.len.checked_sub(1)?)
    }

    /// Bytes of memory behind the tree, without the struct itself and the members.
    pub fn allocated_bytes(&self) -> usize {
        self.root.allocated_bytes()
    }

    /// How many items, from the first on, satisfy `before`, which must hold for all up to some
    /// item and for none behind it. It gets the item's score without a visit to the item.
    fn rank_where(&self, before: impl Fn(f64, &T) -> bool) -> usize {
        self.root.rank_where(&before)
    }
}
