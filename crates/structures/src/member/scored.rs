//! A member of a sorted set with its score, shared by the set's table and its tree.

use std::marker::PhantomData;

use super::{Block, block};
use crate::mover::Mover;
use crate::ordered::OrderedItem;
use crate::prefetch::prefetch;
use crate::size_class::size_class;
use crate::slow_touch::touched;
use crate::table::{Element, KeyHasher};

/// An address of a block with a short score has this bit.
const SHORT_MARK: usize = 1;

/// Owns a member and its score. The table of a sorted set holds it.
pub(crate) struct ScoredMember {
    block: MarkedBlock,
    owner: PhantomData<Box<[u8]>>,
}

/// The address of a block, and of which form its score is: a short one, an `i32`, or an `f64`. The
/// block stays of that form, so its size follows from what is known of it.
#[derive(Clone, Copy)]
struct MarkedBlock(Block);

impl MarkedBlock {
    /// A new block with this member and score.
    fn new(member: &[u8], score: f64, short: Option<i32>) -> Self {
        let block = block::allocate(size(short.is_some(), member.len()));
        let mark = if short.is_some() { SHORT_MARK } else { 0 };
        let marked = Self(block.map_addr(|address| address | mark));
        // SAFETY: the block has room for both, is aligned for either score, and nobody else knows
        // it.
        unsafe {
            match short {
                Some(short) => block.cast::<i32>().write(short),
                None => block.cast::<f64>().write(score),
            }
            block::write_text(block.as_ptr().add(marked.score_bytes()), member);
        }
        marked
    }

    #[inline]
    fn is_short(self) -> bool {
        self.0.addr().get() & SHORT_MARK != 0
    }

    #[inline]
    fn score_bytes(self) -> usize {
        score_bytes(self.is_short())
    }

    #[inline]
    fn unmarked(self) -> Block {
        let unmarked = self.0.as_ptr().map_addr(|address| address & !SHORT_MARK);
        Block::new(unmarked).expect("no block is at address 0")
    }

    /// # Safety
    /// The block is live, and nobody changes it.
    #[inline]
    unsafe fn score(self) -> f64 {
        // SAFETY: a live block begins with its score, of the form that the mark says.
        unsafe {
            match self.is_short() {
                true => f64::from(self.unmarked().cast::<i32>().read()),
                false => self.unmarked().cast::<f64>().read(),
            }
        }
    }
}

/// The score as a short one, if it is the same.
fn shortened(score: f64) -> Option<i32> {
    #[expect(clippy::cast_possible_truncation, reason = "compared with what it was")]
    let short = score as i32;
    // By their bits, or -0.0 would be 0.0.
    (f64::from(short).to_bits() == score.to_bits()).then_some(short)
}

fn score_bytes(is_short: bool) -> usize {
    if is_short { size_of::<i32>() } else { size_of::<f64>() }
}

fn size(is_short: bool, member_len: usize) -> usize {
    size_class(score_bytes(is_short) + block::text_bytes(member_len))
}

// SAFETY: a scored member owns its block exclusively; the items that its sorted set's tree keeps
// travel with it.
unsafe impl Send for ScoredMember {}
// SAFETY: nothing changes through a shared scored member.
unsafe impl Sync for ScoredMember {}

/// Shared access to a scored member.
#[derive(Clone, Copy)]
pub(crate) struct ScoredRef<'a> {
    block: MarkedBlock,
    owner: PhantomData<&'a [u8]>,
}

/// The tree's copy of the reference, without a lifetime.
///
/// Invariant, kept by `sorted_set`, the only place that makes items: an item is in the tree, or
/// asked for anything, only while the table owns its block.
#[derive(Clone, Copy)]
pub(crate) struct ScoredItem(MarkedBlock);

impl ScoredMember {
    pub(crate) fn new(member: &[u8], score: f64) -> Self {
        Self { block: MarkedBlock::new(member, score, shortened(score)), owner: PhantomData }
    }

    /// The same in another block, of the same size. The tree must not hold it.
    pub(crate) fn elsewhere(self) -> Self {
        let (member, score) = (self.as_ref().member(), self.as_ref().score());
        let short = if self.block.is_short() { shortened(score) } else { None };
        Self { block: MarkedBlock::new(member, score, short), owner: PhantomData }
    }

    /// The member with another score. The tree must not hold it. A block without a short score
    /// keeps that form: scores that are now whole and now not would change blocks each time.
    pub(crate) fn with_score(self, score: f64) -> Self {
        let block = self.block.unmarked();
        // SAFETY: a live block begins with its score, of the form that the mark says, and this is
        // its owner.
        unsafe {
            match (self.block.is_short(), shortened(score)) {
                (true, Some(short)) => block.cast::<i32>().write(short),
                (true, None) => return Self::new(self.as_ref().member(), score),
                (false, _) => block.cast::<f64>().write(score),
            }
        }
        self
    }

    pub(crate) fn as_ref(&self) -> ScoredRef<'_> {
        ScoredRef { block: self.block, owner: PhantomData }
    }
}

impl<'a> ScoredRef<'a> {
    #[inline]
    pub(crate) fn score(self) -> f64 {
        // SAFETY: the block is live and shared during `'a`.
        unsafe { self.block.score() }
    }

    #[inline]
    pub(crate) fn member(self) -> &'a [u8] {
        // SAFETY: the member's bytes lie in the block, live during `'a`, and never change.
        unsafe {
            let text = self.block.unmarked().as_ptr().add(self.block.score_bytes());
            let (bytes, len) = block::text_at(text);
            std::slice::from_raw_parts(bytes, len)
        }
    }

    pub(crate) fn allocated_bytes(self) -> usize {
        size(self.block.is_short(), self.member().len())
    }

    /// Where its block lies.
    pub(crate) fn address(self) -> usize {
        self.block.unmarked().addr().get()
    }

    /// The reference without its lifetime, for the tree.
    pub(crate) fn item(self) -> ScoredItem {
        ScoredItem(self.block)
    }
}

impl ScoredItem {
    /// Where the block lies.
    pub(crate) fn address(self) -> usize {
        self.0.unmarked().addr().get()
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
        prefetch(self.0.0.as_ptr());
    }
}

impl Drop for ScoredMember {
    fn drop(&mut self) {
        let bytes = self.as_ref().allocated_bytes();
        // SAFETY: only this member knows the block; its size follows from its form and the length
        // in it.
        unsafe { block::free(self.block.unmarked(), bytes) };
    }
}

// SAFETY: the value is the block's address with its mark (checked to have 48 bits by the table);
// it makes the same owner again. There is nothing to change through a borrow.
unsafe impl Element for ScoredMember {
    type Ref<'a> = ScoredRef<'a>;
    type Mut<'a> = ScoredRef<'a>;

    #[inline]
    fn into_raw(self) -> u64 {
        block::raw_of(std::mem::ManuallyDrop::new(self).block.0)
    }

    #[inline]
    unsafe fn from_raw(raw: u64) -> Self {
        Self { block: MarkedBlock(block::at(raw)), owner: PhantomData }
    }

    #[inline]
    unsafe fn borrow<'a>(raw: u64) -> ScoredRef<'a> {
        ScoredRef { block: MarkedBlock(block::at(raw)), owner: PhantomData }
    }

    #[inline]
    unsafe fn borrow_mut<'a>(raw: u64) -> ScoredRef<'a> {
        // SAFETY: exclusive implies shared.
        unsafe { Self::borrow(raw) }
    }

    #[inline]
    fn has_key(element: ScoredRef<'_>, key: &[u8]) -> bool {
        touched(element.block.0.as_ptr());
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
