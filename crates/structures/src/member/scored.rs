//! A member of a sorted set with its score, shared by the set's table and its tree.

use std::marker::PhantomData;

use super::{Block, block};
use crate::mover::Mover;
use crate::ordered::OrderedItem;
use crate::prefetch::prefetch;
use crate::size_class::size_class;
use crate::slow_touch::touched;
use crate::table::{Element, KeyHasher};

const SCORE_BYTES: usize = size_of::<f64>();

/// Owns a member and its score. The table of a sorted set holds it.
pub(crate) struct ScoredMember {
    block: Block,
    owner: PhantomData<Box<[u8]>>,
}

// SAFETY: a scored member owns its block exclusively; the items that its sorted set's tree keeps
// travel with it.
unsafe impl Send for ScoredMember {}
// SAFETY: nothing changes through a shared scored member.
unsafe impl Sync for ScoredMember {}

/// Shared access to a scored member.
#[derive(Clone, Copy)]
pub(crate) struct ScoredRef<'a> {
    block: Block,
    owner: PhantomData<&'a [u8]>,
}

/// The tree's copy of the reference, without a lifetime.
///
/// Invariant, kept by `sorted_set`, the only place that makes items: an item is in the tree, or
/// asked for anything, only while the table owns its block.
#[derive(Clone, Copy)]
pub(crate) struct ScoredItem(Block);

impl ScoredMember {
    pub(crate) fn new(member: &[u8], score: f64) -> Self {
        let block = block::allocate(size(member.len()));
        // SAFETY: the block has room for both, is aligned for the score, and nobody else knows it.
        unsafe {
            block.cast::<f64>().write(score);
            block::write_text(block.as_ptr().add(SCORE_BYTES), member);
        }
        Self { block, owner: PhantomData }
    }

    /// The same in another block. The tree must not hold it.
    pub(crate) fn elsewhere(self) -> Self {
        Self::new(self.as_ref().member(), self.as_ref().score())
    }

    pub(crate) fn as_ref(&self) -> ScoredRef<'_> {
        ScoredRef { block: self.block, owner: PhantomData }
    }
}

fn size(member_len: usize) -> usize {
    size_class(SCORE_BYTES + block::text_bytes(member_len))
}

impl<'a> ScoredRef<'a> {
    #[inline]
    pub(crate) fn score(self) -> f64 {
        // SAFETY: a live block begins with its score.
        unsafe { self.block.cast::<f64>().read() }
    }

    #[inline]
    pub(crate) fn member(self) -> &'a [u8] {
        // SAFETY: the member's bytes lie in the block, live during `'a`, and never change.
        unsafe {
            let (bytes, len) = block::text_at(self.block.as_ptr().add(SCORE_BYTES));
            std::slice::from_raw_parts(bytes, len)
        }
    }

    pub(crate) fn allocated_bytes(self) -> usize {
        size(self.member().len())
    }

    /// Where its block lies.
    pub(crate) fn address(self) -> usize {
        self.block.addr().get()
    }

    /// The reference without its lifetime, for the tree.
    pub(crate) fn item(self) -> ScoredItem {
        ScoredItem(self.block)
    }
}

impl ScoredItem {
    /// Where the block lies.
    pub(crate) fn address(self) -> usize {
        self.0.addr().get()
    }

    /// # Safety
    /// The block is owned by a table that is borrowed during `'a`.
    #[inline]
    pub(crate) unsafe fn lend<'a>(self) -> ScoredRef<'a> {
        ScoredRef { block: self.0, owner: PhantomData }
    }
}

impl OrderedItem for ScoredItem {
    #[inline]
    fn score(&self) -> f64 {
        // SAFETY: the type's invariant.
        unsafe { self.lend() }.score()
    }

    #[inline]
    fn member(&self) -> &[u8] {
        // SAFETY: the type's invariant.
        unsafe { self.lend() }.member()
    }

    #[inline]
    fn prefetch(&self) {
        prefetch(self.0.as_ptr());
    }
}

/// Exclusive access to a scored member: its score may change, while the tree does not hold it.
pub(crate) struct ScoredMut<'a> {
    block: Block,
    owner: PhantomData<&'a mut [u8]>,
}

impl ScoredMut<'_> {
    pub(crate) fn set_score(&mut self, score: f64) {
        // SAFETY: a live block begins with its score, aligned; the borrow is exclusive.
        unsafe { self.block.cast::<f64>().write(score) };
    }
}

impl Drop for ScoredMember {
    fn drop(&mut self) {
        let bytes = self.as_ref().allocated_bytes();
        // SAFETY: only this member knows the block; its size follows from the length in it.
        unsafe { block::free(self.block, bytes) };
    }
}

// SAFETY: the value is the block's address (checked to have 48 bits by the table); it makes the
// same owner again. Neither handle can change the member.
unsafe impl Element for ScoredMember {
    type Ref<'a> = ScoredRef<'a>;
    type Mut<'a> = ScoredMut<'a>;

    #[inline]
    fn into_raw(self) -> u64 {
        block::raw_of(std::mem::ManuallyDrop::new(self).block)
    }

    #[inline]
    unsafe fn from_raw(raw: u64) -> Self {
        Self { block: block::at(raw), owner: PhantomData }
    }

    #[inline]
    unsafe fn borrow<'a>(raw: u64) -> ScoredRef<'a> {
        ScoredRef { block: block::at(raw), owner: PhantomData }
    }

    #[inline]
    unsafe fn borrow_mut<'a>(raw: u64) -> ScoredMut<'a> {
        ScoredMut { block: block::at(raw), owner: PhantomData }
    }

    #[inline]
    fn has_key(element: ScoredRef<'_>, key: &[u8]) -> bool {
        touched(element.block.as_ptr());
        element.member() == key
    }

    fn has_same_key(a: ScoredRef<'_>, b: ScoredRef<'_>) -> bool {
        a.member() == b.member()
    }

    fn hash(element: ScoredRef<'_>, hasher: &KeyHasher) -> u64 {
        hasher.hash(element.member())
    }

    /// It stays: its sorted set's tree refers to it. See [`ScoredMember::elsewhere`].
    unsafe fn moved(raw: u64, _: &mut Mover<'_>) -> u64 {
        raw
    }

    #[inline]
    fn prefetch(raw: u64) {
        prefetch(std::ptr::without_provenance(raw as usize));
    }
}
