//! A field of a hash, with its value, in one block.

use std::marker::PhantomData;

use super::{Block, block};
use crate::prefetch::prefetch;
use crate::size_class::size_class;
use crate::table::{Element, KeyHasher};

/// Owns a field and its value.
pub struct Field {
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
    name: *const u8,
    name_len: usize,
    value: *const u8,
    value_len: usize,
}

impl Parts {
    /// Reads the lengths in `block`, which must be live: every caller has it from a `Field` or a
    /// handle, whose constructors demand it.
    #[inline]
    fn of(block: Block) -> Self {
        // SAFETY: `Field::new` wrote two texts, one behind the other.
        unsafe {
            let (name, name_len) = block::text_at(block.as_ptr());
            let (value, value_len) = block::text_at(name.add(name_len));
            Self { name, name_len, value, value_len }
        }
    }

    fn size(&self) -> usize {
        size(self.name_len, self.value_len)
    }
}

fn size(name_len: usize, value_len: usize) -> usize {
    size_class(block::text_bytes(name_len) + block::text_bytes(value_len))
}

impl Field {
    pub fn new(name: &[u8], value: &[u8]) -> Self {
        let block = block::allocate(size(name.len(), value.len()));
        // SAFETY: the block has room for both texts, and nobody else knows it.
        unsafe {
            let behind = block::write_text(block.as_ptr(), name);
            block::write_text(behind, value);
        }
        Self { block, owner: PhantomData }
    }

    #[inline]
    pub fn as_ref(&self) -> FieldRef<'_> {
        FieldRef { block: self.block, owner: PhantomData }
    }

    #[inline]
    pub fn as_mut(&mut self) -> FieldMut<'_> {
        FieldMut { block: self.block, owner: PhantomData }
    }

    /// The same field with another value; in place if the block's class stays.
    #[must_use]
    pub fn with_value(mut self, value: &[u8]) -> Self {
        if self.as_mut().set_value_in_place(value) {
            return self;
        }
        Self::new(self.as_ref().name(), value)
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

    /// Overwrites the value if the block's size class stays. False, and no change, if not: see
    /// [`Field::with_value`].
    pub fn set_value_in_place(&mut self, value: &[u8]) -> bool {
        let parts = Parts::of(self.block);
        if parts.size() != size(parts.name_len, value.len()) {
            return false;
        }
        let block = self.block.as_ptr();
        // SAFETY: the block has room for the new value, and `value` cannot overlap it, because
        // the field is borrowed exclusively. The address is made from the block's own, which may
        // be written through.
        unsafe {
            let value_at = parts.name.add(parts.name_len).offset_from_unsigned(block);
            block::write_text(block.add(value_at), value);
        }
        true
    }
}

impl Drop for Field {
    fn drop(&mut self) {
        // SAFETY: only this field knows the block; its size follows from the lengths in it.
        unsafe { block::free(self.block, Parts::of(self.block).size()) };
    }
}

// SAFETY: the value is the block's address (checked to have 48 bits by the table); it makes the
// same owner again. Neither handle can change the name.
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
        element.name() == key
    }

    fn has_same_key(a: FieldRef<'_>, b: FieldRef<'_>) -> bool {
        a.name() == b.name()
    }

    fn hash(element: FieldRef<'_>, hasher: &KeyHasher) -> u64 {
        hasher.hash(element.name())
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
