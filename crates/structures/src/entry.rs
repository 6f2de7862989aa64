//! A key with its value, in one allocation: what the keyspace's table holds.
//!
//! Redis 7 spends a dict entry, a string for the key, an object header, perhaps a second
//! allocation for the value and another dict entry for the expiry. Here everything that is small
//! lies together, so that a GET of a small value touches one or two neighbouring cache lines.
//!
//! ```text
//!  byte 0          4       5            +0 or 8            +key
//!  ┌──────────────┬───────┬────────────┬──────────────────┬─────┬───────────────────────────┐
//!  │ access  │tag │ flags │ key length │ expiry, ms (opt) │ key │ value                     │
//!  │ 24 bits │ 8  │       │ varint     │ i64              │     │ varint length + bytes     │
//!  └──────────────┴───────┴────────────┼──────────────────┼─────┤ or i64                    │
//!                                      │ copy or due (opt)│     │ or pointer to a boxed V   │
//!                                      └──────────────────┘     │ or a place, and a count   │
//!                                                               └───────────────────────────┘
//! ```
//! A value that is *cold* is not in memory: what stands here is where it lies, to whoever stored
//! it, and when a part of it is *due*, if that ever is. One that is in memory may have a *copy*
//! there, until it is changed: whatever changes the value in its entry makes the entry forget the
//! copy.
//!
//! A key of 16 bytes with a value of 100 takes 4 + 1 + 1 + 16 + 1 + 100 = 123 bytes: the class of
//! 128. The *tag* is the engine's (type and encoding), *access* is the LRU clock or the LFU
//! counter. Both lie in one atomic word, so that a read may note its access through a shared
//! borrow; an access noted by two threads at once may be lost, which eviction does not mind.
//!
//! The allocation's size is the allocator's class of its content ([`size_class`]), computed from
//! the lengths whenever it is needed. So a value may be overwritten by one of another length if
//! the class stays: SET over a value of similar size does not allocate.
//!
//! The value comes last, and the key's bytes never move or change while the entry exists: keys
//! and values can be lent for as long as the entry is borrowed.

mod handle;
mod layout;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::ptr::NonNull;
use std::sync::atomic::Ordering;

pub use handle::{EntryMut, EntryRef};
use layout::{KIND_BOXED, KIND_COLD, Parts, Traits};

use crate::mover::Mover;
use crate::prefetch::{prefetch, prefetch_further};
use crate::slow_touch::touched;
use crate::table::{Element, KeyHasher};

/// Access words have 24 bits, as Redis's LRU clock.
pub const ACCESS_MAX: u32 = (1 << 24) - 1;

/// A value to be stored.
#[derive(Debug)]
pub enum Payload<'p, V> {
    /// Bytes to be embedded.
    Bytes(&'p [u8]),
    Integer(i64),
    /// Anything else: collections, and strings that are large or keep changing.
    Boxed(Box<V>),
    Cold(Cold),
}

/// A value that is not in memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cold {
    /// Where it lies; what the number means, its owner knows. Not 0.
    pub place: u64,
    /// How many elements or bytes it has; [`Self::COUNT_UNKNOWN`] if that is unknown, or more than
    /// can be said.
    pub count: u16,
    /// When the first of its parts expires, if any does: Unix time in milliseconds.
    pub due: Option<i64>,
}

impl Cold {
    pub const COUNT_UNKNOWN: u16 = u16::MAX;
}

/// A stored value.
#[derive(Debug)]
pub enum ValueRef<'a, V> {
    Bytes(&'a [u8]),
    Integer(i64),
    Boxed(&'a V),
    Cold(Cold),
}

impl<V> Clone for ValueRef<'_, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for ValueRef<'_, V> {}

/// Owns a key and its value.
pub struct Entry<V> {
    block: NonNull<u8>,
    value: PhantomData<Box<V>>,
}

// SAFETY: an entry owns its block and its `V` exclusively, like a `Box<V>`.
unsafe impl<V: Send> Send for Entry<V> {}
// SAFETY: what a shared entry lets others change is its atomic word only.
unsafe impl<V: Sync> Sync for Entry<V> {}

impl<V> Entry<V> {
    /// An entry with tag 0 and access 0. `expire_at` is Unix time in milliseconds.
    pub fn new(key: &[u8], payload: Payload<'_, V>, expire_at: Option<i64>) -> Self {
        let traits = Traits { word: 0, expire: expire_at, copy: None };
        Self { block: Parts::write(traits, key, payload), value: PhantomData }
    }

    /// Sets the tag, any byte; it means to the engine what it wants.
    #[must_use]
    pub fn with_tag(self, tag: u8) -> Self {
        self.as_ref().set_tag(tag);
        self
    }

    #[inline]
    pub fn as_ref(&self) -> EntryRef<'_, V> {
        // SAFETY: the block is a live entry, shared for the lifetime of `self`'s borrow.
        unsafe { EntryRef::new(self.block) }
    }

    #[inline]
    pub fn as_mut(&mut self) -> EntryMut<'_, V> {
        // SAFETY: the block is a live entry, exclusive for the lifetime of `self`'s borrow.
        unsafe { EntryMut::new(self.block) }
    }

    pub fn key(&self) -> &[u8] {
        self.as_ref().key()
    }

    pub fn value(&self) -> ValueRef<'_, V> {
        self.as_ref().value()
    }

    pub fn expire_at(&self) -> Option<i64> {
        self.as_ref().expire_at()
    }

    pub fn tag(&self) -> u8 {
        self.as_ref().tag()
    }

    pub fn access(&self) -> u32 {
        self.as_ref().access()
    }

    pub fn set_access(&self, access: u32) {
        self.as_ref().set_access(access);
    }

    /// Bytes of the block, without the `V` behind a box.
    pub fn allocated_bytes(&self) -> usize {
        self.as_ref().allocated_bytes()
    }

    /// The same entry with another expiry; reallocates only when one comes or goes.
    #[must_use]
    pub fn with_expire(mut self, expire_at: Option<i64>) -> Self {
        if self.as_mut().set_expire_in_place(expire_at) {
            return self;
        }
        let traits = Traits { expire: expire_at, ..self.traits() };
        self.moved(traits, None)
    }

    /// The same key, tag, access and expiry with another value, without a copy; the old one is
    /// returned if it was boxed, so that a big one can be dropped elsewhere.
    pub fn with_payload(mut self, payload: Payload<'_, V>) -> (Self, Option<Box<V>>) {
        let payload = match payload {
            Payload::Bytes(bytes) if self.as_mut().set_bytes_in_place(bytes) => {
                return (self, None);
            }
            other => other,
        };
        self.exchanged(payload, None)
    }

    /// As [`Self::with_payload`], of a value of which a copy lies at this place, which is not 0.
    pub fn with_copied_payload(self, payload: Payload<'_, V>, copy: u64) -> (Self, Option<Box<V>>) {
        self.exchanged(payload, Some(copy))
    }

    fn exchanged(self, payload: Payload<'_, V>, copy: Option<u64>) -> (Self, Option<Box<V>>) {
        let traits = Traits { copy, ..self.traits() };
        let block = Parts::write(traits, self.key(), payload);
        let old = self.into_boxed();
        (Self { block, value: PhantomData }, old)
    }

    /// The same entry under another key, without a copy. A cold value stays where it lies.
    #[must_use]
    pub fn with_key(self, key: &[u8]) -> Self {
        let traits = Traits { copy: None, ..self.traits() };
        self.moved(traits, Some(key))
    }

    /// The same value in another block, with other traits or under another key.
    fn moved(self, traits: Traits, key: Option<&[u8]>) -> Self {
        let key = key.unwrap_or_else(|| self.key());
        let block = match self.value() {
            ValueRef::Bytes(bytes) => Parts::write::<V>(traits, key, Payload::Bytes(bytes)),
            ValueRef::Integer(value) => Parts::write::<V>(traits, key, Payload::Integer(value)),
            ValueRef::Cold(cold) => Parts::write::<V>(traits, key, Payload::Cold(cold)),
            ValueRef::Boxed(_) => Parts::write_boxed(traits, key, self.boxed_address()),
        };
        self.free_block();
        Self { block, value: PhantomData }
    }

    fn traits(&self) -> Traits {
        let view = self.as_ref();
        Traits { word: view.word(), expire: view.expire_at(), copy: view.copy_place() }
    }

    /// Ends the entry and returns its value if it was boxed.
    pub fn into_boxed(self) -> Option<Box<V>> {
        let boxed = (Parts::of(self.block).kind() == KIND_BOXED).then(|| self.boxed_address());
        self.free_block();
        // SAFETY: the address came from `Box::into_raw` in `Parts::write`; the block that held it
        // is gone, so nobody else makes the box again.
        boxed
            .map(|address| unsafe { Box::from_raw(std::ptr::with_exposed_provenance_mut(address)) })
    }

    /// The address of the boxed value; meaningless for other kinds.
    fn boxed_address(&self) -> usize {
        let parts = Parts::of(self.block);
        if parts.kind() == KIND_BOXED { parts.boxed_address() } else { 0 }
    }

    /// Frees the block without dropping what is boxed.
    fn free_block(self) {
        let this = std::mem::ManuallyDrop::new(self);
        // SAFETY: the block is a live entry that nobody else knows, and is not used again.
        unsafe { Parts::free(this.block) };
    }
}

impl<V> Drop for Entry<V> {
    fn drop(&mut self) {
        let again = Self { block: self.block, value: PhantomData };
        // `into_boxed` takes the block over; `self` does not touch it afterwards.
        drop(again.into_boxed());
    }
}

impl<V: std::fmt::Debug> std::fmt::Debug for Entry<V> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Entry")
            .field("key", &self.key())
            .field("value", &self.value())
            .field("expire_at", &self.expire_at())
            .finish_non_exhaustive()
    }
}

/// Set in an entry's raw value if its value is cold: blocks are aligned to more than two bytes, so
/// no address has this bit.
const COLD_BIT: u64 = 1;

// SAFETY: the raw value is the block's address (checked to have 48 bits by the table), and a bit
// that no address has; turning it back makes the same owner. Shared handles change nothing but the
// atomic word, and neither kind of handle can change the key, or make a value cold or not.
unsafe impl<V> Element for Entry<V> {
    type Ref<'a>
        = EntryRef<'a, V>
    where
        V: 'a;
    type Mut<'a>
        = EntryMut<'a, V>
    where
        V: 'a;

    #[inline]
    fn into_raw(self) -> u64 {
        let mark = if Parts::of(self.block).kind() == KIND_COLD { COLD_BIT } else { 0 };
        std::mem::ManuallyDrop::new(self).block.as_ptr().expose_provenance() as u64 | mark
    }

    #[inline]
    fn is_light(raw: u64) -> bool {
        raw & COLD_BIT != 0
    }

    #[inline]
    unsafe fn from_raw(raw: u64) -> Self {
        Self { block: block_at(raw), value: PhantomData }
    }

    #[inline]
    unsafe fn borrow<'a>(raw: u64) -> EntryRef<'a, V>
    where
        Self: 'a,
    {
        // SAFETY: passed on to the caller.
        unsafe { EntryRef::new(block_at(raw)) }
    }

    #[inline]
    unsafe fn borrow_mut<'a>(raw: u64) -> EntryMut<'a, V>
    where
        Self: 'a,
    {
        // SAFETY: passed on to the caller.
        unsafe { EntryMut::new(block_at(raw)) }
    }

    #[inline]
    fn has_key(element: EntryRef<'_, V>, key: &[u8]) -> bool {
        touched(element.address());
        element.key() == key
    }

    fn has_same_key(a: EntryRef<'_, V>, b: EntryRef<'_, V>) -> bool {
        a.key() == b.key()
    }

    fn hash(element: EntryRef<'_, V>, hasher: &KeyHasher) -> u64 {
        hasher.hash(element.key())
    }

    unsafe fn moved(raw: u64, mover: &mut Mover<'_>) -> u64 {
        let block = block_at(raw);
        let parts = || Parts::of(block);
        mover.access = parts().word().load(Ordering::Relaxed) & ACCESS_MAX;
        let moves = mover.takes(block.addr().get(), || parts().size());
        // A light one has no box: there is no need to look.
        let boxed = (raw & COLD_BIT == 0 && parts().kind() == KIND_BOXED)
            .then(|| parts().boxed_address())
            .filter(|address| mover.takes_ordinary(*address));
        if let Some(address) = boxed {
            let old = std::ptr::with_exposed_provenance_mut::<V>(address);
            // SAFETY: the address came from `Box::into_raw`, the entry owns the box, and its block,
            // which nobody else borrows, names the new one at once.
            let moved = Box::new(*unsafe { Box::from_raw(old) });
            parts().set_boxed_address(Box::into_raw(moved).expose_provenance());
        }
        if !moves {
            return raw;
        }
        // SAFETY: the caller hands a live entry over, and goes on with what is returned.
        let moved = unsafe { Parts::moved(block) };
        moved.as_ptr().expose_provenance() as u64 | raw & COLD_BIT
    }

    #[inline]
    fn prefetch(raw: u64) {
        let block: *const u8 = std::ptr::without_provenance((raw & !COLD_BIT) as usize);
        prefetch(block);
        // A small value ends on the second line more often than not.
        prefetch_further(block.wrapping_add(64));
    }
}

#[inline]
fn block_at(raw: u64) -> NonNull<u8> {
    let block = std::ptr::with_exposed_provenance_mut((raw & !COLD_BIT) as usize);
    NonNull::new(block).expect("an entry's block is never at address 0")
}
