//! The nodes: how they search, split and merge.

use super::{OrderedItem, compare};
use crate::size_class::growth_class;
use std::cmp::Ordering;

/// Items in a full leaf. 64 × 8 bytes is eight cache lines to move at worst on insertion. A guess.
pub(super) const LEAF_ITEMS_MAX: usize = 64;

/// Children of a full inner node.
pub(super) const CHILDREN_MAX: usize = 64;

/// Below a quarter a node looks for a sibling to merge or share with.
const LEAF_ITEMS_MIN: usize = LEAF_ITEMS_MAX / 4;
const CHILDREN_MIN: usize = CHILDREN_MAX / 4;

/// Steps of a leaf's binary search whose items are loaded together: seven of them for three steps,
/// of which three are used.
const STEPS_AHEAD: u32 = 3;

pub(super) enum Node<T> {
    Leaf(Vec<T>),
    Inner(Box<Inner<T>>),
}

/// Three arrays side by side, one place per child. A sorted set's bytes are asked for before and
/// after every change, so each inner node remembers those of its subtree.
pub(super) struct Inner<T> {
    /// The child's smallest item, with its score.
    firsts: Vec<(f64, T)>,
    /// Items below the child.
    counts: Vec<usize>,
    children: Vec<Node<T>>,
    /// Bytes of memory of this node and of everything below it.
    bytes: usize,
}

/// The sides of the tree at which a subtree lies. A split at the tree's very end is taken for an
/// ascending or descending load, and leaves a full node behind instead of two halves.
#[derive(Clone, Copy)]
pub(super) struct Edges {
    leftmost: bool,
    rightmost: bool,
}

impl Edges {
    /// Those of the root.
    pub(super) const BOTH: Self = Self { leftmost: true, rightmost: true };

    fn of_child(self, at: usize, children: usize) -> Self {
        Self { leftmost: self.leftmost && at == 0, rightmost: self.rightmost && at + 1 == children }
    }
}

/// The outcome of an insertion below.
pub(super) enum Inserted<T> {
    Present,
    /// `first`: the new item is now the smallest of the subtree.
    Added {
        first: bool,
    },
    /// Added, and the subtree's upper part is now a node of its own.
    Split {
        first: bool,
        right: Node<T>,
    },
}

impl<T: OrderedItem> Node<T> {
    pub(super) fn empty() -> Self {
        Self::Leaf(Vec::new())
    }

    /// A root over two nodes of one height.
    pub(super) fn join(left: Self, right: Self) -> Self {
        let mut inner = Inner::with_capacity();
        inner.push(left);
        inner.push(right);
        Self::Inner(Box::new(inner))
    }

    /// Inserts `item`, whose score is `score`.
    pub(super) fn insert(&mut self, item: T, score: f64, edges: Edges) -> Inserted<T> {
        let inner = match self {
            Self::Leaf(items) => return insert_into_leaf(items, item, score, edges),
            Self::Inner(inner) => inner,
        };
        let at = inner.child_where(|other_score, other| {
            let order = other_score.partial_cmp(&score).unwrap_or(Ordering::Equal);
            order.then_with(|| other.member().cmp(item.member())) != Ordering::Greater
        });
        let edges = edges.of_child(at, inner.children.len());
        let bytes = inner.children[at].allocated_bytes();
        let inserted = inner.children[at].insert(item, score, edges);
        inner.bytes = inner.bytes - bytes + inner.children[at].allocated_bytes();
        let (first, right) = match inserted {
            Inserted::Present => return Inserted::Present,
            Inserted::Added { first } => (first, None),
            Inserted::Split { first, right } => (first, Some(right)),
        };
        if first {
            inner.firsts[at] = (score, item);
        }
        inner.counts[at] += 1;
        let first = first && at == 0;
        let Some(right) = right else { return Inserted::Added { first } };
        inner.counts[at] -= right.count();
        inner.insert_child(at + 1, right);
        if inner.children.len() <= CHILDREN_MAX {
            return Inserted::Added { first };
        }
        let cut = match edges {
            Edges { rightmost: true, .. } => inner.children.len() - 1,
            Edges { leftmost: true, .. } => 1,
            _ => inner.children.len() / 2,
        };
        Inserted::Split { first, right: Self::Inner(Box::new(inner.split_off(cut))) }
    }

    /// Takes the item at `rank`, which exists, out.
    pub(super) fn remove_at(&mut self, rank: usize) -> T {
        let inner = match self {
            Self::Leaf(items) => {
                let item = items.remove(rank);
                shrink_leaf(items);
                return item;
            }
            Self::Inner(inner) => inner,
        };
        let (at, rank) = inner.child_of(rank);
        let bytes = inner.children[at].allocated_bytes();
        let item = inner.children[at].remove_at(rank);
        inner.bytes = inner.bytes - bytes + inner.children[at].allocated_bytes();
        inner.counts[at] -= 1;
        if inner.children[at].is_sparse() {
            inner.refill(at);
        } else if rank == 0 {
            inner.firsts[at] = inner.children[at].first();
        }
        item
    }

    /// Replaces a root of one child by that child.
    pub(super) fn lower(&mut self) {
        while let Self::Inner(inner) = self
            && inner.children.len() == 1
            && let Some(child) = inner.children.pop()
        {
            *self = child;
        }
    }

    pub(super) fn rank_where(&self, before: &impl Fn(f64, &T) -> bool) -> usize {
        let (mut node, mut rank) = (self, 0);
        loop {
            match node {
                Self::Leaf(items) => {
                    return rank + partition(items, |item| before(item.score(), item));
                }
                Self::Inner(inner) => {
                    let at = inner.child_where(before);
                    rank += inner.counts[..at].iter().sum::<usize>();
                    node = &inner.children[at];
                }
            }
        }
    }

    /// The leaf that holds the item at `rank`, and its place there. Past the end: the last leaf
    /// and a place past its end.
    pub(super) fn leaf_of(&self, rank: usize) -> (&[T], usize) {
        let (mut node, mut rank) = (self, rank);
        loop {
            match node {
                Self::Leaf(items) => return (items, rank),
                Self::Inner(inner) => {
                    let (at, below) = inner.child_of(rank);
                    (node, rank) = (&inner.children[at], below);
                }
            }
        }
    }

    /// Puts another item of the same score and member into the place of the one at `rank`, which
    /// is there. Neither is looked at.
    pub(super) fn replace_at(&mut self, rank: usize, item: T) -> T {
        let (mut node, mut rank) = (self, rank);
        loop {
            match node {
                Self::Leaf(items) => return std::mem::replace(&mut items[rank], item),
                Self::Inner(inner) => {
                    let (at, below) = inner.child_of(rank);
                    if below == 0 {
                        inner.firsts[at].1 = item;
                    }
                    (node, rank) = (&mut inner.children[at], below);
                }
            }
        }
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        match self {
            Self::Leaf(items) => items.capacity() * size_of::<T>(),
            Self::Inner(inner) => inner.bytes,
        }
    }

    /// Items in this subtree.
    fn count(&self) -> usize {
        match self {
            Self::Leaf(items) => items.len(),
            Self::Inner(inner) => inner.counts.iter().sum(),
        }
    }

    /// The smallest item and its score. The subtree is not empty.
    fn first(&self) -> (f64, T) {
        match self {
            Self::Leaf(items) => (items[0].score(), items[0]),
            Self::Inner(inner) => inner.firsts[0],
        }
    }

    fn is_sparse(&self) -> bool {
        match self {
            Self::Leaf(items) => items.len() < LEAF_ITEMS_MIN,
            Self::Inner(inner) => inner.children.len() < CHILDREN_MIN,
        }
    }

    /// Moves all of `right` into this node if they fit, or else balances the two. Whether `right`
    /// is empty now.
    fn absorb(&mut self, right: &mut Self) -> bool {
        match (self, right) {
            (Self::Leaf(left), Self::Leaf(right)) => absorb_leaf(left, right),
            (Self::Inner(left), Self::Inner(right)) => left.absorb(right),
            _ => unreachable!("siblings have one height"),
        }
    }
}

impl<T: OrderedItem> Inner<T> {
    /// Room for every child at once: inner nodes are a fiftieth of the leaves.
    fn with_capacity() -> Self {
        let mut inner = Self {
            firsts: Vec::with_capacity(CHILDREN_MAX + 1),
            counts: Vec::with_capacity(CHILDREN_MAX + 1),
            children: Vec::with_capacity(CHILDREN_MAX + 1),
            bytes: 0,
        };
        inner.count_bytes();
        inner
    }

    fn push(&mut self, child: Node<T>) {
        self.insert_child(self.children.len(), child);
    }

    fn insert_child(&mut self, at: usize, child: Node<T>) {
        self.firsts.insert(at, child.first());
        self.counts.insert(at, child.count());
        self.bytes += child.allocated_bytes();
        self.children.insert(at, child);
    }

    fn split_off(&mut self, cut: usize) -> Self {
        let mut right = Self::with_capacity();
        right.firsts.extend(self.firsts.drain(cut..));
        right.counts.extend(self.counts.drain(cut..));
        right.children.extend(self.children.drain(cut..));
        right.count_bytes();
        self.count_bytes();
        right
    }

    /// The last child whose first item satisfies `before`; the first child if none does.
    fn child_where(&self, before: impl Fn(f64, &T) -> bool) -> usize {
        self.firsts.partition_point(|(score, item)| before(*score, item)).saturating_sub(1)
    }

    /// The child that holds the item at `rank`, and the rank within it.
    fn child_of(&self, mut rank: usize) -> (usize, usize) {
        let last = self.counts.len() - 1;
        for (at, count) in self.counts[..last].iter().enumerate() {
            if rank < *count {
                return (at, rank);
            }
            rank -= count;
        }
        (last, rank)
    }

    /// Brings a sparse child together with a neighbour. An only child stays as it is: its parent
    /// is about to be lowered or refilled itself.
    fn refill(&mut self, at: usize) {
        let left = if at + 1 < self.children.len() { at } else { at.saturating_sub(1) };
        if left + 1 < self.children.len() {
            let (head, tail) = self.children.split_at_mut(left + 1);
            if head[left].absorb(&mut tail[0]) {
                self.firsts.remove(left + 1);
                self.counts.remove(left + 1);
                self.children.remove(left + 1);
            } else {
                self.refresh(left + 1);
            }
        }
        self.refresh(left);
        self.count_bytes();
    }

    /// Brings what is known about a child up to date. An empty child can only be the only one,
    /// and its parent the root of an empty tree.
    fn refresh(&mut self, at: usize) {
        self.counts[at] = self.children[at].count();
        if self.counts[at] > 0 {
            self.firsts[at] = self.children[at].first();
        }
    }

    fn absorb(&mut self, right: &mut Self) -> bool {
        self.drop_empty();
        right.drop_empty();
        let total = self.children.len() + right.children.len();
        if total <= CHILDREN_MAX {
            self.firsts.append(&mut right.firsts);
            self.counts.append(&mut right.counts);
            self.children.append(&mut right.children);
            self.count_bytes();
            return true;
        }
        balance(&mut self.firsts, &mut right.firsts);
        balance(&mut self.counts, &mut right.counts);
        balance(&mut self.children, &mut right.children);
        self.count_bytes();
        right.count_bytes();
        false
    }

    /// An only child that lost its last item had no sibling to merge with, and its `firsts` names
    /// an item that is gone. Its parent is sparse too, so that this runs before anyone looks.
    fn drop_empty(&mut self) {
        if let Some(at) = self.counts.iter().position(|count| *count == 0) {
            self.firsts.remove(at);
            self.counts.remove(at);
            self.children.remove(at);
        }
    }

    /// Adds up the bytes of the subtree, after children came from or went to a sibling.
    fn count_bytes(&mut self) {
        self.bytes = self.counted_bytes();
    }

    fn counted_bytes(&self) -> usize {
        size_of::<Self>()
            + self.firsts.capacity() * size_of::<(f64, T)>()
            + self.counts.capacity() * size_of::<usize>()
            + self.children.capacity() * size_of::<Node<T>>()
            + self.children.iter().map(Node::allocated_bytes).sum::<usize>()
    }
}

/// [`slice::partition_point`] over items that are probably not in the cache.
fn partition<T: OrderedItem>(items: &[T], mut before: impl FnMut(&T) -> bool) -> usize {
    let (mut low, mut high) = (0, items.len());
    while low < high {
        prefetch_middles(&items[low..high], STEPS_AHEAD);
        for _ in 0..STEPS_AHEAD {
            if low == high {
                break;
            }
            let middle = low + (high - low) / 2;
            if before(&items[middle]) {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
    }
    low
}

/// Asks for every item that the next `steps` of a binary search may visit.
fn prefetch_middles<T: OrderedItem>(items: &[T], steps: u32) {
    if items.is_empty() {
        return;
    }
    let (low, high) = items.split_at(items.len() / 2);
    high[0].prefetch();
    if steps > 1 {
        prefetch_middles(low, steps - 1);
        prefetch_middles(&high[1..], steps - 1);
    }
}

fn insert_into_leaf<T: OrderedItem>(
    items: &mut Vec<T>,
    item: T,
    score: f64,
    edges: Edges,
) -> Inserted<T> {
    let mut found = false;
    let at = partition(items, |other| {
        let order = compare(other.score(), other.member(), score, item.member());
        found |= order == Ordering::Equal;
        order == Ordering::Less
    });
    if found {
        return Inserted::Present;
    }
    let first = at == 0;
    if items.len() < LEAF_ITEMS_MAX {
        insert_exactly(items, at, item);
        return Inserted::Added { first };
    }
    if edges.rightmost && at == items.len() {
        return Inserted::Split { first, right: Node::Leaf(vec![item]) };
    }
    if edges.leftmost && first {
        let right = std::mem::replace(items, vec![item]);
        return Inserted::Split { first, right: Node::Leaf(right) };
    }
    let cut = items.len() / 2;
    let right_len = items.len() - cut + usize::from(at > cut);
    let mut right = Vec::with_capacity(leaf_capacity::<T>(right_len));
    right.extend(items.drain(cut..));
    if at <= cut {
        items.insert(at, item);
    } else {
        right.insert(at - cut, item);
    }
    items.shrink_to(leaf_capacity::<T>(items.len()));
    Inserted::Split { first, right: Node::Leaf(right) }
}

fn absorb_leaf<T>(left: &mut Vec<T>, right: &mut Vec<T>) -> bool {
    let total = left.len() + right.len();
    if total <= LEAF_ITEMS_MAX {
        left.reserve_exact(leaf_capacity::<T>(total).saturating_sub(left.len()));
        left.append(right);
        return true;
    }
    left.reserve_exact((total / 2).saturating_sub(left.len()));
    right.reserve_exact((total - total / 2).saturating_sub(right.len()));
    balance(left, right);
    shrink_leaf(left);
    shrink_leaf(right);
    false
}

/// Makes two adjoining arrays equally long.
fn balance<T>(left: &mut Vec<T>, right: &mut Vec<T>) {
    let half = (left.len() + right.len()) / 2;
    if left.len() > half {
        right.splice(0..0, left.drain(half..));
    } else {
        left.extend(right.drain(..half - left.len()));
    }
}

fn insert_exactly<T>(items: &mut Vec<T>, at: usize, item: T) {
    if items.len() == items.capacity() {
        items.reserve_exact(leaf_capacity::<T>(items.len() + 1) - items.len());
    }
    items.insert(at, item);
}

fn shrink_leaf<T>(items: &mut Vec<T>) {
    // Half a step of slack, or a leaf that gains and loses one item would move each time.
    if leaf_capacity::<T>(items.len() + 4) < items.capacity() {
        items.shrink_to(leaf_capacity::<T>(items.len() + 4));
    }
}

/// Items that fit into the allocation that `items` of them need anyway.
fn leaf_capacity<T>(items: usize) -> usize {
    (growth_class(items * size_of::<T>()) / size_of::<T>()).min(LEAF_ITEMS_MAX)
}

#[cfg(test)]
impl<T: OrderedItem> Node<T> {
    /// Panics unless every node tells the truth about its children. Returns the height.
    pub(super) fn check(&self) -> usize {
        let Self::Inner(inner) = self else { return 0 };
        assert_eq!(inner.bytes, inner.counted_bytes());
        assert!(inner.children.len() <= CHILDREN_MAX && !inner.children.is_empty());
        let mut heights = Vec::new();
        for (at, child) in inner.children.iter().enumerate() {
            let (first, stored) = (child.first(), inner.firsts[at]);
            assert!(inner.counts[at] == child.count() && child.count() > 0);
            assert!(first.0 == stored.0 && first.1.member() == stored.1.member());
            heights.push(child.check());
        }
        assert!(heights.iter().all(|height| *height == heights[0]));
        heights[0] + 1
    }
}
