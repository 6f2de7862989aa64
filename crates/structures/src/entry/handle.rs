//! Handles to an entry that someone else owns: one that reads, one that changes the value.

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

use super::layout::{
    IS_STEADY, KIND_BOXED, KIND_BYTES, KIND_COLD, KIND_INTEGER, Parts, write_bytes, write_cold,
};
use super::{ACCESS_MAX, Cold, ValueRef};

/// Shared access to an entry.
pub struct EntryRef<'a, V> {
    block: NonNull<u8>,
    entry: PhantomData<&'a V>,
}

impl<V> Clone for EntryRef<'_, V> {
    #[inline]
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for EntryRef<'_, V> {}

impl<'a, V> EntryRef<'a, V> {
    /// # Safety
    /// `block` is a live entry of `V`, and shared during `'a`.
    #[inline]
    pub(super) unsafe fn new(block: NonNull<u8>) -> Self {
        Self { block, entry: PhantomData }
    }

    #[inline]
    fn parts(self) -> Parts {
        Parts::of(self.block)
    }

    /// Where its block begins.
    #[inline]
    pub(super) fn address(self) -> *const u8 {
        self.block.as_ptr()
    }

    #[inline]
    pub fn key(self) -> &'a [u8] {
        let parts = self.parts();
        // SAFETY: the key's bytes do not change while the entry is shared.
        unsafe { std::slice::from_raw_parts(parts.key(), parts.key_len) }
    }

    #[inline]
    pub fn value(self) -> ValueRef<'a, V> {
        let parts = self.parts();
        match parts.kind() {
            KIND_BYTES => {
                let (bytes, len) = parts.bytes();
                // SAFETY: the value's bytes do not change while the entry is shared.
                ValueRef::Bytes(unsafe { std::slice::from_raw_parts(bytes, len) })
            }
            KIND_INTEGER => {
                // SAFETY: a value of this kind is an integer of eight bytes.
                ValueRef::Integer(unsafe { parts.value().cast::<i64>().read_unaligned() })
            }
            KIND_COLD => ValueRef::Cold(parts.cold()),
            _ => {
                let boxed = std::ptr::with_exposed_provenance(parts.boxed_address());
                // SAFETY: the address came from `Box::<V>::into_raw`, and the entry owns the box
                // and is shared.
                ValueRef::Boxed(unsafe { &*boxed })
            }
        }
    }

    /// Whether the value is not in memory.
    #[inline]
    pub fn is_cold(self) -> bool {
        self.parts().kind() == KIND_COLD
    }

    /// Where a copy of the value lies that is in memory, if one does.
    #[inline]
    pub fn copy_place(self) -> Option<u64> {
        // SAFETY: the room of a copy's place holds eight bytes of it.
        let place = self.parts().copy_place().map(|at| unsafe { at.read_unaligned() });
        place.filter(|place| *place != 0)
    }

    /// When the entry expires: Unix time in milliseconds.
    #[inline]
    pub fn expire_at(self) -> Option<i64> {
        // SAFETY: the place of an expiry holds eight bytes of it.
        self.parts().expire().map(|at| unsafe { at.read_unaligned() })
    }

    pub(super) fn word(self) -> u32 {
        self.parts().word().load(Ordering::Relaxed)
    }

    /// A byte that means to the engine what it wants.
    #[inline]
    pub fn tag(self) -> u8 {
        (self.word() >> 24) as u8
    }

    /// Sets the tag, through a shared borrow as [`Self::set_access`] does.
    pub fn set_tag(self, tag: u8) {
        let word = self.word() & ACCESS_MAX | u32::from(tag) << 24;
        self.parts().word().store(word, Ordering::Relaxed);
    }

    /// The 24 bits of LRU clock or LFU counter that were last noted.
    #[inline]
    pub fn access(self) -> u32 {
        self.word() & ACCESS_MAX
    }

    /// Notes an access; bits above the 24th are ignored.
    #[inline]
    pub fn set_access(self, access: u32) {
        let word = self.word() & !ACCESS_MAX | access & ACCESS_MAX;
        self.parts().word().store(word, Ordering::Relaxed);
    }

    /// Bytes of the block, without the `V` behind a box.
    pub fn allocated_bytes(self) -> usize {
        self.parts().size()
    }

    /// Bytes that the block would have if the value were cold.
    pub fn bytes_if_cold(self) -> usize {
        self.parts().size_if_cold()
    }
}

impl<V: std::fmt::Debug> std::fmt::Debug for EntryRef<'_, V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("EntryRef").field(&self.key()).field(&self.value()).finish()
    }
}

/// Exclusive access to an entry: everything but its key may change.
pub struct EntryMut<'a, V> {
    block: NonNull<u8>,
    entry: PhantomData<&'a mut V>,
}

impl<'a, V> EntryMut<'a, V> {
    /// # Safety
    /// `block` is a live entry of `V`, and exclusive during `'a`.
    #[inline]
    pub(super) unsafe fn new(block: NonNull<u8>) -> Self {
        Self { block, entry: PhantomData }
    }

    #[inline]
    pub fn as_ref(&self) -> EntryRef<'_, V> {
        // SAFETY: the borrow of `self` keeps others from changing the entry.
        unsafe { EntryRef::new(self.block) }
    }

    pub fn set_tag(&mut self, tag: u8) {
        self.as_ref().set_tag(tag);
    }

    /// Forgets the copy; where it lay. Who changes the value calls it first, if the copy's space
    /// is to be given back: the change itself forgets the copy and its place.
    #[inline]
    pub fn take_copy(&mut self) -> Option<u64> {
        let place = self.as_ref().copy_place()?;
        if let Some(at) = Parts::of(self.block).copy_place() {
            // SAFETY: the room of a copy's place holds eight bytes, exclusive while the entry is.
            unsafe { at.write_unaligned(0) };
        }
        Some(place)
    }

    /// A cold value, or the copy of one that is in memory, was moved to another place. False, and
    /// no change, if there is neither.
    pub fn set_place(&mut self, place: u64) -> bool {
        let parts = Parts::of(self.block);
        if parts.kind() == KIND_COLD {
            let cold = Cold { place, ..parts.cold() };
            // SAFETY: a value of this kind has ten bytes, exclusive while the entry is.
            unsafe { write_cold(parts.value(), cold) };
            return true;
        }
        match parts.copy_place() {
            Some(at) if self.as_ref().copy_place().is_some() => {
                // SAFETY: the room of a copy's place holds eight bytes of it.
                unsafe { at.write_unaligned(place) };
                true
            }
            _ => false,
        }
    }

    /// The boxed value, whose blocks are to move. Its copy stays good: it must not be changed.
    pub fn boxed_to_move(&mut self) -> Option<&mut V> {
        let parts = Parts::of(self.block);
        let address = (parts.kind() == KIND_BOXED).then(|| parts.boxed_address())?;
        // SAFETY: the address came from `Box::<V>::into_raw`, and the entry, which owns the box, is
        // exclusive while `self` is borrowed.
        Some(unsafe { &mut *std::ptr::with_exposed_provenance_mut(address) })
    }

    /// Has [`Self::is_steady`] tell whether the boxed value changed since.
    pub fn hold_steady(&mut self) {
        Parts::of(self.block).set_steady(true);
    }

    /// Whether the value is the same, and at the same place, as when [`Self::hold_steady`] was
    /// called last. False if it never was.
    pub fn is_steady(&self) -> bool {
        Parts::of(self.block).flags & IS_STEADY != 0
    }

    /// The boxed value.
    pub fn boxed_mut(&mut self) -> Option<&mut V> {
        let again = Self { block: self.block, entry: PhantomData };
        again.into_boxed_mut()
    }

    /// The boxed value, for as long as the entry may be borrowed.
    pub fn into_boxed_mut(mut self) -> Option<&'a mut V> {
        let parts = Parts::of(self.block);
        if parts.kind() != KIND_BOXED {
            return None;
        }
        if parts.flags & IS_STEADY != 0 {
            parts.set_steady(false);
        }
        self.take_copy();
        let boxed = std::ptr::with_exposed_provenance_mut(parts.boxed_address());
        // SAFETY: the address came from `Box::<V>::into_raw`, and the entry, which owns the box,
        // is exclusive during `'a`. `boxed_mut` shortens the result to its own borrow.
        Some(unsafe { &mut *boxed })
    }

    /// The embedded bytes, to be overwritten in place.
    pub fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        let parts = Parts::of(self.block);
        if parts.kind() != KIND_BYTES {
            return None;
        }
        self.take_copy();
        let (bytes, len) = parts.bytes();
        // SAFETY: the value's bytes are exclusive while the entry is.
        Some(unsafe { std::slice::from_raw_parts_mut(bytes, len) })
    }

    /// Overwrites the value with embedded bytes if that needs no other allocation. False, and no
    /// change, if the value is not embedded bytes or its size class would change.
    pub fn set_bytes_in_place(&mut self, bytes: &[u8]) -> bool {
        let parts = Parts::of(self.block);
        if parts.kind() != KIND_BYTES || parts.size() != parts.size_with_bytes(bytes.len()) {
            return false;
        }
        self.take_copy();
        // SAFETY: the block's size is enough for the new length, and `bytes` is someone else's:
        // nobody can hold a borrow of this entry's bytes beside `self`.
        unsafe { write_bytes(parts.value(), bytes) };
        true
    }

    /// Overwrites an integer. False, and no change, if the value is of another kind.
    pub fn set_integer_in_place(&mut self, integer: i64) -> bool {
        let parts = Parts::of(self.block);
        if parts.kind() != KIND_INTEGER {
            return false;
        }
        self.take_copy();
        // SAFETY: a value of this kind is an integer of eight bytes.
        unsafe { parts.value().cast::<i64>().write_unaligned(integer) };
        true
    }

    /// Sets the expiry if it has a place, or has none and shall have none. False, and no change,
    /// if one must come or go: see [`super::Entry::with_expire`].
    pub fn set_expire_in_place(&mut self, expire_at: Option<i64>) -> bool {
        match (Parts::of(self.block).expire(), expire_at) {
            (Some(at), Some(expire_at)) => {
                // SAFETY: the place of an expiry holds eight bytes of it.
                unsafe { at.write_unaligned(expire_at) };
                true
            }
            (None, None) => true,
            _ => false,
        }
    }
}
