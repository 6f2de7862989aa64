//! A field of a hash, with its value, in one block.
//!
//! A field that expires has its time behind the value; the lowest bit of its address says so.
//! Fields that do not expire take no memory for it.

use std::marker::PhantomData;

use super::{Block, block};
use crate::mover::Mover;
use crate::prefetch::prefetch;
use crate::size_class::size_class;
use crate::slow_touch::touched;
use crate::table::{Element, KeyHasher};

/// The mark in the address of a field that expires. Blocks are aligned to eight bytes, so the
/// lowest bit is free.
const TIMED_MARK: usize = 1;
/// Bytes of an expiry time.
const TIME_BYTES: usize = size_of::<i64>();

/// Owns a field and its value.
pub struct Field {
    /// The address with its mark, as handles have it.
    block: Block,
    owner: PhantomData<Box<[u8]>>,
}

// SAFETY: a field owns its block exclusively, like a `Box<[u8]>`.
unsafe impl Send for Field {}
// SAFETY: nothing changes through a shared field.
unsafe impl Sync for Field {}

/// Shared access to a field.
#[derive(Clone, Copy)]
pub struct FieldRef<'a> {
    block: Block,
    owner: PhantomData<&'a [u8]>,
}

/// Exclusive access to a field: its value may change in place.
pub struct FieldMut<'a> {
    block: Block,
    owner: PhantomData<&'a mut [u8]>,
}

/// The positions of the parts in a block.
struct Parts {
    /// The block's address, without the mark.
    start: *mut u8,
    name: *const u8,
    name_len: usize,
    value: *const u8,
    value_len: usize,
    is_timed: bool,
}

impl Parts {
    /// Reads the lengths in `block`, which must be live: every caller has it from a `Field` or a
    /// handle, whose constructors demand it.
    #[inline]
    fn of(block: Block) -> Self {
        let start = block.as_ptr().map_addr(|address| address & !TIMED_MARK);
        // SAFETY: `Field::expiring` wrote two texts, one behind the other.
        unsafe {
            let (name, name_len) = block::text_at(start);
            let (value, value_len) = block::text_at(name.add(name_len));
            let is_timed = block.addr().get() & TIMED_MARK != 0;
            Self { start, name, name_len, value, value_len, is_timed }
        }
    }

    fn size(&self) -> usize {
        size(self.name_len, self.value_len, self.is_timed)
    }

    /// The place of the expiry time, if there is one.
    fn time(&self) -> Option<*const i64> {
        // SAFETY: it stands behind the value's bytes, within the block.
        self.is_timed.then(|| unsafe { self.value.add(self.value_len) }.cast())
    }
}

fn size(name_len: usize, value_len: usize, is_timed: bool) -> usize {
    let time_bytes = if is_timed { TIME_BYTES } else { 0 };
    size_class(block::text_bytes(name_len) + block::text_bytes(value_len) + time_bytes)
}

impl Field {
    /// A field that does not expire.
    pub fn new(name: &[u8], value: &[u8]) -> Self {
        Self::expiring(name, value, None)
    }

    /// A field with an expiry: a Unix time in milliseconds, or never.
    pub fn expiring(name: &[u8], value: &[u8], expire_at: Option<i64>) -> Self {
        let block = block::allocate(size(name.len(), value.len(), expire_at.is_some()));
        // SAFETY: the block has room for both texts and the time, and nobody else knows it.
        let behind = unsafe {
            let behind = block::write_text(block.as_ptr(), name);
            block::write_text(behind, value)
        };
        let Some(at) = expire_at else { return Self { block, owner: PhantomData } };
        // SAFETY: as above.
        unsafe { behind.cast::<i64>().write_unaligned(at) };
        Self { block: block.map_addr(|address| address | TIMED_MARK), owner: PhantomData }
    }

    #[inline]
    pub fn as_ref(&self) -> FieldRef<'_> {
        FieldRef { block: self.block, owner: PhantomData }
    }

    #[inline]
    pub fn as_mut(&mut self) -> FieldMut<'_> {
        FieldMut { block: self.block, owner: PhantomData }
    }

    /// The same field with another value and the same expiry; in place if the block's class stays.
    #[must_use]
    pub fn with_value(mut self, value: &[u8]) -> Self {
        if self.as_mut().set_value_in_place(value) {
            return self;
        }
        let field = self.as_ref();
        Self::expiring(field.name(), value, field.expire_at())
    }
}

impl<'a> FieldRef<'a> {
    #[inline]
    pub fn name(self) -> &'a [u8] {
        let parts = Parts::of(self.block);
        // SAFETY: the name's bytes lie in the block, which is shared during `'a`.
        unsafe { std::slice::from_raw_parts(parts.name, parts.name_len) }
    }

    #[inline]
    pub fn value(self) -> &'a [u8] {
        let parts = Parts::of(self.block);
        // SAFETY: the value's bytes lie in the block, which is shared during `'a`.
        unsafe { std::slice::from_raw_parts(parts.value, parts.value_len) }
    }

    /// The field's expiry, as a Unix time in milliseconds.
    #[inline]
    pub fn expire_at(self) -> Option<i64> {
        // SAFETY: the time lies in the block, which is shared during `'a`.
        Parts::of(self.block).time().map(|at| unsafe { at.read_unaligned() })
    }

    /// Bytes behind the table's slot.
    pub fn allocated_bytes(self) -> usize {
        Parts::of(self.block).size()
    }
}

impl FieldMut<'_> {
    #[inline]
    pub fn as_ref(&self) -> FieldRef<'_> {
        FieldRef { block: self.block, owner: PhantomData }
    }

    /// Overwrites the value if the block keeps its size class; the expiry stays. Returns false and
    /// changes nothing otherwise: see [`Field::with_value`].
    pub fn set_value_in_place(&mut self, value: &[u8]) -> bool {
        let parts = Parts::of(self.block);
        if parts.size() != size(parts.name_len, value.len(), parts.is_timed) {
            return false;
        }
        let expire_at = self.as_ref().expire_at();
        // SAFETY: the block has room for the new value and the time, and `value` cannot overlap it,
        // because the field is borrowed exclusively. The address is made from the block's own,
        // which may be written through.
        unsafe {
            let value_at = parts.name.add(parts.name_len).offset_from_unsigned(parts.start);
            let behind = block::write_text(parts.start.add(value_at), value);
            if let Some(at) = expire_at {
                behind.cast::<i64>().write_unaligned(at);
            }
        }
        true
    }

    /// Changes the expiry of a field that has one. Returns false and changes nothing if it has
    /// none: see [`Field::expiring`].
    pub fn set_expire_in_place(&mut self, expire_at: i64) -> bool {
        let parts = Parts::of(self.block);
        let Some(time) = parts.time() else { return false };
        // SAFETY: the time lies in the block, which is borrowed exclusively; the address is made
        // from the block's own, which may be written through.
        unsafe {
            let time_at = time.cast::<u8>().offset_from_unsigned(parts.start);
            parts.start.add(time_at).cast::<i64>().write_unaligned(expire_at);
        }
        true
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        let parts = Parts::of(self.block);
        let block = Block::new(parts.start).expect("no block is at address 0");
        // SAFETY: only this field knows the block; its size follows from the lengths in it.
        unsafe { block::free(block, parts.size()) };
    }
}

// SAFETY: the value is the block's address with its mark (checked to have 48 bits by the table); it
// makes the same owner again. Neither handle can change the name.
unsafe impl Element for Field {
    type Ref<'a> = FieldRef<'a>;
    type Mut<'a> = FieldMut<'a>;

    #[inline]
    fn into_raw(self) -> u64 {
        block::raw_of(std::mem::ManuallyDrop::new(self).block)
    }

    #[inline]
    unsafe fn from_raw(raw: u64) -> Self {
        Self { block: block::at(raw), owner: PhantomData }
    }

    #[inline]
    unsafe fn borrow<'a>(raw: u64) -> FieldRef<'a> {
        FieldRef { block: block::at(raw), owner: PhantomData }
    }

    #[inline]
    unsafe fn borrow_mut<'a>(raw: u64) -> FieldMut<'a> {
        FieldMut { block: block::at(raw), owner: PhantomData }
    }

    #[inline]
    fn has_key(element: FieldRef<'_>, key: &[u8]) -> bool {
        touched(element.block.as_ptr());
        element.name() == key
    }

    fn has_same_key(a: FieldRef<'_>, b: FieldRef<'_>) -> bool {
        a.name() == b.name()
    }

    fn hash(element: FieldRef<'_>, hasher: &KeyHasher) -> u64 {
        hasher.hash(element.name())
    }

    unsafe fn moved(raw: u64, mover: &mut Mover<'_>) -> u64 {
        let mark = raw & TIMED_MARK as u64;
        let block = block::at(raw & !mark);
        let bytes = || Parts::of(block::at(raw)).size();
        // SAFETY: the value is the address of a live block with its mark, which the caller hands
        // over; its size follows from the lengths in it and the mark.
        block::raw_of(unsafe { block::moved(block, bytes, mover) }) | mark
    }

    #[inline]
    fn prefetch(raw: u64) {
        prefetch(std::ptr::without_provenance(raw as usize));
    }
}

impl std::fmt::Debug for FieldRef<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("FieldRef").field(&self.name()).field(&self.value()).finish()
    }
}
