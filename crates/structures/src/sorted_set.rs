//! A big sorted set: a table by member and a counted tree by score, over the same blocks.
//!
//! ```text
//!  table (hash of member) ── owns ──▶ │ score │ len │ member │ ◀── refers ── tree (score, member)
//! ```
//! Redis pairs a dict with a skiplist for the same reason: ZSCORE by member, ZRANGE by order. Here
//! a member of 16 bytes with a whole score costs 24 for its block, about 12 for the table and about
//! 10 for the tree.
//!
//! Invariant: tree and table hold the same members; the table owns them. So a member enters the
//! table first and leaves the tree first, and its score changes while the tree does not hold it.
//!
//! Scores are never NaN: callers refuse it, and it is asserted here, because no order could hold.

#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "twins"))]
pub(crate) mod twin;

use std::ops::Range;

use crate::member::{ScoredItem, ScoredMember, ScoredRef};
use crate::mover::Mover;
use crate::ordered::{LexBound, OrderedTree, ScoreBound};
use crate::table::{KeyHasher, Table};

/// Members in the order of their scores, equal scores by the members' bytes.
pub struct SortedSet {
    /// Drops before the table's blocks do, and refers to nothing else.
    tree: OrderedTree<ScoredItem>,
    table: Table<ScoredMember>,
    member_bytes: usize,
}

// SAFETY: the items in the tree refer to blocks that the same value's table owns.
unsafe impl Send for SortedSet {}
// SAFETY: nothing changes through a shared sorted set.
unsafe impl Sync for SortedSet {}

/// The outcome of [`SortedSet::insert`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scored {
    Added,
    /// The member was there with this other score.
    Updated(f64),
    /// The member was there with the same score.
    Unchanged,
}

impl SortedSet {
    pub fn new(hasher: KeyHasher) -> Self {
        Self { tree: OrderedTree::new(), table: Table::new(hasher), member_bytes: 0 }
    }

    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Bytes of memory behind the set, without the struct itself.
    pub fn allocated_bytes(&self) -> usize {
        self.member_bytes + self.table.allocated_bytes() + self.tree.allocated_bytes()
    }

    /// Moves what `mover` takes from the hash `position` on, in up to `buckets_max` buckets of the
    /// table. Returns where to go on, `None` at the end. Blocks of the tree stay.
    pub fn move_blocks(
        &mut self,
        position: u64,
        buckets_max: usize,
        mover: &mut Mover<'_>,
    ) -> Option<u64> {
        let mut taken = Vec::new();
        self.table.sweep(position, buckets_max, |member| {
            if mover.takes(member.address(), || member.allocated_bytes()) {
                taken.push((self.hash(member.member()), member.item()));
            }
        });
        for (hash, item) in taken {
            // Its address is in the tree.
            let address = item.address();
            let is_it = |member: ScoredRef<'_>| member.address() == address;
            let Some(mut found) = self.table.find_mut_where(hash, is_it) else { continue };
            let (score, member) = (found.as_ref().score(), found.as_ref().member());
            let rank = self.tree.rank_of(score, member);
            let rank = rank.expect("the tree holds what the table holds");
            found.update(ScoredMember::elsewhere);
            // Until then the tree has an item of no block, and is asked for none.
            self.tree.replace_at(rank, found.as_ref().item());
        }
        // What is left of it are the buckets.
        self.table.move_blocks(position, buckets_max, mover, |_, _| {})
    }

    fn hash(&self, member: &[u8]) -> u64 {
        self.table.hasher().hash(member)
    }

    /// Asks the processor for the bucket of the members with this hash.
    pub fn prefetch_bucket(&self, hash: u64) {
        self.table.prefetch_bucket(hash);
    }

    /// Then for the members that the bucket points to.
    pub fn prefetch_member(&self, hash: u64) {
        self.table.prefetch_displaced(hash);
    }

    pub fn score(&self, member: &[u8]) -> Option<f64> {
        self.table.find(self.hash(member), member).map(ScoredRef::score)
    }

    /// Adds the member, or changes its score.
    pub fn insert(&mut self, member: &[u8], score: f64) -> Scored {
        assert!(!score.is_nan(), "a sorted set's score is not a number");
        let hash = self.hash(member);
        let Some(mut found) = self.table.find_mut(hash, member) else {
            let element = ScoredMember::new(member, score);
            let item = element.as_ref().item();
            self.member_bytes += element.as_ref().allocated_bytes();
            self.table.insert_new(hash, element);
            assert!(self.tree.insert(item), "the tree holds what the table holds");
            return Scored::Added;
        };
        let old = found.as_ref().score();
        // 0.0 and -0.0 are equal: the score that was there first stays, as in Redis.
        if old == score {
            return Scored::Unchanged;
        }
        self.tree.remove(old, member).expect("the tree holds what the table holds");
        self.member_bytes -= found.as_ref().allocated_bytes();
        found.update(|member| member.with_score(score));
        self.member_bytes += found.as_ref().allocated_bytes();
        let item = found.as_ref().item();
        assert!(self.tree.insert(item), "the tree holds what the table holds");
        Scored::Updated(old)
    }

    /// Takes the member out and returns its score.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        let hash = self.hash(member);
        let found = self.table.find_mut(hash, member)?;
        let score = found.as_ref().score();
        self.tree.remove(score, member).expect("the tree holds what the table holds");
        self.member_bytes -= found.as_ref().allocated_bytes();
        found.remove();
        Some(score)
    }

    /// Takes the member with `rank` smaller ones out.
    pub fn remove_at(&mut self, rank: usize) -> Option<(Vec<u8>, f64)> {
        let item = self.tree.remove_at(rank)?;
        // SAFETY: the table still owns the item's block, and is not changed before its last use.
        let view = unsafe { item.lend() };
        let (member, score) = (view.member().to_vec(), view.score());
        self.member_bytes -= view.allocated_bytes();
        self.table.remove(self.hash(&member), &member);
        Some((member, score))
    }

    /// Takes the members of these ranks out, and passes each to `removed`.
    pub fn remove_range(&mut self, ranks: Range<usize>, mut removed: impl FnMut(&[u8], f64)) {
        for _ in ranks.start..ranks.end.min(self.len()) {
            if let Some((member, score)) = self.remove_at(ranks.start) {
                removed(&member, score);
            }
        }
    }

    /// How many members come before this one.
    pub fn rank(&self, member: &[u8]) -> Option<usize> {
        self.tree.rank_of(self.score(member)?, member)
    }

    /// The member with `rank` smaller ones.
    pub fn by_rank(&self, rank: usize) -> Option<(&[u8], f64)> {
        self.tree.by_rank(rank).map(|item| self.lend(item))
    }

    /// The ranks of the members between two scores.
    pub fn ranks_by_score(&self, min: ScoreBound, max: ScoreBound) -> Range<usize> {
        self.tree.ranks_by_score(min, max)
    }

    /// The ranks of the members between two members; means something if all scores are equal.
    pub fn ranks_by_lex(&self, min: LexBound<'_>, max: LexBound<'_>) -> Range<usize> {
        self.tree.ranks_by_lex(min, max)
    }

    /// The members of these ranks in order; `rev()` walks down.
    pub fn range(
        &self,
        ranks: Range<usize>,
    ) -> impl DoubleEndedIterator<Item = (&[u8], f64)> + ExactSizeIterator {
        self.tree.range(ranks).map(|item| self.lend(item))
    }

    /// All members in order.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&[u8], f64)> + ExactSizeIterator {
        self.range(0..self.len())
    }

    /// See [`Table::scan`].
    pub fn scan<'s>(
        &'s self,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(&'s [u8], f64),
    ) -> u64 {
        self.table.scan(cursor, count, |found| visit(found.member(), found.score()))
    }

    /// A member chosen evenly by 64 random bits.
    pub fn random(&self, random: u64) -> Option<(&[u8], f64)> {
        self.table.random(random).map(|found| (found.member(), found.score()))
    }

    /// See [`Table::lookup_steps`].
    #[cfg(any(test, feature = "twins"))]
    pub fn lookup_steps(&self) -> u64 {
        self.table.lookup_steps()
    }

    /// What members are hashed with.
    pub fn hasher(&self) -> KeyHasher {
        *self.table.hasher()
    }

    fn lend(&self, item: ScoredItem) -> (&[u8], f64) {
        // SAFETY: the item is in the tree, so the table owns its block, and both are borrowed.
        let view: ScoredRef<'_> = unsafe { item.lend() };
        (view.member(), view.score())
    }
}

impl std::fmt::Debug for SortedSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}
