//! Where the parts of an entry lie in its block; the only code that computes addresses in it.

use std::alloc::Layout;
use std::ptr::NonNull;
use std::sync::atomic::AtomicU32;

use super::{Cold, Payload};
use crate::heap;
use crate::size_class::size_class;
use crate::varint;

const HAS_EXPIRE: u8 = 1;
const KIND_MASK: u8 = 0b110;
pub(super) const KIND_BYTES: u8 = 0b000;
pub(super) const KIND_INTEGER: u8 = 0b010;
pub(super) const KIND_BOXED: u8 = 0b100;
pub(super) const KIND_COLD: u8 = 0b110;
/// The entry has a word of which the meaning depends on the value's kind: of one in memory, where a
/// copy of it may lie; of a cold one, when a part of it is due.
const HAS_WORD: u8 = 0b1000;
/// A copy of the boxed value's blocks is being made, and the value has not changed since it began.
pub(super) const IS_STEADY: u8 = 0b1_0000;

const FLAGS_AT: usize = 4;
const KEY_LENGTH_AT: usize = 5;
const WORD_BYTES: usize = 8;
/// A place, and a count of elements or bytes.
const COLD_BYTES: usize = 10;
/// The atomic word needs four; pointers and integers are read unaligned.
const ALIGN: usize = 8;

/// Addresses of the parts of one live block.
#[derive(Clone, Copy)]
pub(super) struct Parts {
    pub block: NonNull<u8>,
    pub flags: u8,
    pub key_len: usize,
    /// Behind the key's length: the expiry, and the copy's place or when a part is due, if they
    /// have room, then the key.
    after_key_length: *mut u8,
}

impl Parts {
    /// Reads the header of `block`, which must be a live entry: every caller has it from an
    /// `Entry` or a handle, whose constructors demand it.
    #[inline]
    pub fn of(block: NonNull<u8>) -> Self {
        // SAFETY: a live block has a header, with a key length that `write` wrote.
        unsafe {
            let flags = block.add(FLAGS_AT).read();
            let (key_len, after) = varint::read(block.add(KEY_LENGTH_AT).as_ptr());
            Self { block, flags, key_len, after_key_length: after.cast_mut() }
        }
    }

    #[inline]
    pub fn kind(&self) -> u8 {
        self.flags & KIND_MASK
    }

    /// The access and tag word.
    #[inline]
    pub fn word<'a>(&self) -> &'a AtomicU32 {
        // SAFETY: the block is aligned to eight bytes, and its first four are used as this atomic
        // only. The lifetime is cut down to the handle's by the callers.
        unsafe { AtomicU32::from_ptr(self.block.as_ptr().cast()) }
    }

    #[inline]
    pub fn has_expire(&self) -> bool {
        self.flags & HAS_EXPIRE != 0
    }

    /// The expiry's address, if it has a place.
    #[inline]
    pub fn expire(&self) -> Option<*mut i64> {
        self.has_expire().then(|| self.after_key_length.cast())
    }

    #[inline]
    pub fn key(&self) -> *mut u8 {
        // SAFETY: inside the block.
        unsafe { self.after_key_length.add(words_before_key(self.flags) * WORD_BYTES) }
    }

    /// The address of the copy's place, if it has room.
    #[inline]
    pub fn copy_place(&self) -> Option<*mut u64> {
        self.second_word().filter(|_| self.kind() != KIND_COLD)
    }

    /// The address of the word that comes behind the expiry, if there is one.
    #[inline]
    fn second_word(&self) -> Option<*mut u64> {
        let words = usize::from(self.has_expire());
        // SAFETY: inside the block: the word comes behind the expiry, before the key.
        let at = || unsafe { self.after_key_length.add(words * WORD_BYTES) };
        (self.flags & HAS_WORD != 0).then(|| at().cast())
    }

    /// The cold value. Only for `KIND_COLD`.
    #[inline]
    pub fn cold(&self) -> Cold {
        debug_assert_eq!(self.kind(), KIND_COLD);
        let due = self.second_word();
        // SAFETY: a value of this kind is a place of eight bytes and a count of two; the word, if
        // there is one, holds eight bytes.
        unsafe {
            let place = self.value().cast::<u64>().read_unaligned();
            let count = self.value().add(WORD_BYTES).cast::<u16>().read_unaligned();
            Cold { place, count, due: due.map(|at| at.cast::<i64>().read_unaligned()) }
        }
    }

    #[inline]
    pub fn value(&self) -> *mut u8 {
        // SAFETY: inside the block, which ends with the value.
        unsafe { self.key().add(self.key_len) }
    }

    /// The embedded bytes: where they begin and how many. Only for `KIND_BYTES`.
    #[inline]
    pub fn bytes(&self) -> (*mut u8, usize) {
        debug_assert_eq!(self.kind(), KIND_BYTES);
        // SAFETY: a value of this kind begins with its length.
        let (len, bytes) = unsafe { varint::read(self.value()) };
        (bytes.cast_mut(), len)
    }

    /// The boxed value's address. Only for `KIND_BOXED`.
    #[inline]
    pub fn boxed_address(&self) -> usize {
        debug_assert_eq!(self.kind(), KIND_BOXED);
        // SAFETY: a value of this kind is an address of eight bytes.
        unsafe { self.value().cast::<u64>().read_unaligned() as usize }
    }

    /// Bytes before the value.
    fn head_bytes(&self) -> usize {
        self.value() as usize - self.block.as_ptr() as usize
    }

    /// The size of the block if its value were `len` embedded bytes.
    pub fn size_with_bytes(&self, len: usize) -> usize {
        size_class(self.head_bytes() + varint::len(len) + len)
    }

    /// The size of the block if its value were cold, and no part of it ever due.
    pub fn size_if_cold(&self) -> usize {
        let word_bytes = if self.flags & HAS_WORD != 0 { WORD_BYTES } else { 0 };
        size_class(self.head_bytes() - word_bytes + COLD_BYTES)
    }

    /// The size of the block.
    #[inline]
    pub fn size(&self) -> usize {
        size_class(self.content_bytes())
    }

    /// Bytes of the block that are in use.
    #[inline]
    fn content_bytes(&self) -> usize {
        let value_bytes = match self.kind() {
            KIND_BYTES => {
                let len = self.bytes().1;
                varint::len(len) + len
            }
            KIND_COLD => COLD_BYTES,
            _ => WORD_BYTES,
        };
        self.head_bytes() + value_bytes
    }

    /// The same block elsewhere: only what is in use of it is copied.
    ///
    /// # Safety
    /// `block` is a live entry, and nobody uses it again.
    pub unsafe fn moved(block: NonNull<u8>) -> NonNull<u8> {
        let parts = Self::of(block);
        let moved = heap::allocate(layout(parts.size()));
        // SAFETY: the content lies within the old block, and both blocks have its size; nobody else
        // knows the new one.
        unsafe {
            moved.copy_from_nonoverlapping(block, parts.content_bytes());
            Self::free(block);
        }
        moved
    }

    /// Puts another box into the value's place. Only for `KIND_BOXED`.
    pub fn set_boxed_address(&self, address: usize) {
        debug_assert_eq!(self.kind(), KIND_BOXED);
        // SAFETY: a value of this kind is an address of eight bytes.
        unsafe { self.value().cast::<u64>().write_unaligned(address as u64) };
    }

    /// Notes whether the value has not changed since a copy of it began.
    pub fn set_steady(&self, is_steady: bool) {
        let flags = self.flags & !IS_STEADY | if is_steady { IS_STEADY } else { 0 };
        // SAFETY: inside the block; no other code reads an address by this bit.
        unsafe { self.block.add(FLAGS_AT).write(flags) };
    }

    /// Frees the block, not what is boxed.
    ///
    /// # Safety
    /// `block` is a live entry, and nobody uses it again.
    pub unsafe fn free(block: NonNull<u8>) {
        let layout = layout(Self::of(block).size());
        // SAFETY: `write` allocated the block with the layout of its content's class, and in-place
        // changes keep the class.
        unsafe { heap::free(block, layout) };
    }

    /// Allocates and fills a block.
    pub fn write<V>(traits: Traits, key: &[u8], payload: Payload<'_, V>) -> NonNull<u8> {
        match payload {
            Payload::Bytes(bytes) => {
                let value_bytes = varint::len(bytes.len()) + bytes.len();
                let head = write_head(traits, KIND_BYTES, key, value_bytes);
                // SAFETY: `write_head` left room for the length and the bytes at `head.value`.
                unsafe { write_bytes(head.value, bytes) };
                head.block
            }
            Payload::Integer(integer) => {
                let head = write_head(traits, KIND_INTEGER, key, WORD_BYTES);
                // SAFETY: `write_head` left room for eight bytes at `head.value`.
                unsafe { head.value.cast::<i64>().write_unaligned(integer) };
                head.block
            }
            Payload::Cold(cold) => {
                let traits = Traits { copy: cold.due.map(i64::cast_unsigned), ..traits };
                let head = write_head(traits, KIND_COLD, key, COLD_BYTES);
                // SAFETY: `write_head` left room for ten bytes at `head.value`.
                unsafe { write_cold(head.value, cold) };
                head.block
            }
            Payload::Boxed(boxed) => {
                let address = Box::into_raw(boxed).expose_provenance();
                Self::write_boxed(traits, key, address)
            }
        }
    }

    /// Allocates and fills a block whose value is the box at `address`.
    pub fn write_boxed(traits: Traits, key: &[u8], address: usize) -> NonNull<u8> {
        let head = write_head(traits, KIND_BOXED, key, WORD_BYTES);
        // SAFETY: `write_head` left room for eight bytes at `head.value`.
        unsafe { head.value.cast::<u64>().write_unaligned(address as u64) };
        head.block
    }
}

/// What an entry has beside its key and its value.
#[derive(Clone, Copy)]
pub(super) struct Traits {
    /// The access and tag word.
    pub word: u32,
    pub expire: Option<i64>,
    /// Where a copy of the value lies. Of a cold one, which has none, the payload says what stands
    /// here instead.
    pub copy: Option<u64>,
}

/// The words that stand before the key.
#[inline]
fn words_before_key(flags: u8) -> usize {
    usize::from(flags & HAS_EXPIRE) + usize::from(flags & HAS_WORD != 0)
}

/// Writes a cold value, but for when a part of it is due.
///
/// # Safety
/// `at` must have room for ten bytes.
pub(super) unsafe fn write_cold(at: *mut u8, cold: Cold) {
    // SAFETY: the caller's promise.
    unsafe {
        at.cast::<u64>().write_unaligned(cold.place);
        at.add(WORD_BYTES).cast::<u16>().write_unaligned(cold.count);
    }
}

/// Writes embedded bytes with their length.
///
/// # Safety
/// `at` must have room for both, and `bytes` must not overlap with it.
pub(super) unsafe fn write_bytes(at: *mut u8, bytes: &[u8]) {
    // SAFETY: the caller's promise.
    unsafe {
        let to = varint::write(at, bytes.len());
        to.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
    }
}

fn layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, ALIGN).expect("lengths are those of slices in memory")
}

/// A new block with everything but its value.
struct Head {
    block: NonNull<u8>,
    value: *mut u8,
}

fn write_head(traits: Traits, kind: u8, key: &[u8], value_bytes: usize) -> Head {
    let Traits { word, expire, copy } = traits;
    let flags = kind
        | if expire.is_some() { HAS_EXPIRE } else { 0 }
        | if copy.is_some() { HAS_WORD } else { 0 };
    let words = words_before_key(flags);
    let head_bytes = KEY_LENGTH_AT + varint::len(key.len()) + words * WORD_BYTES + key.len();
    let block = heap::allocate(layout(size_class(head_bytes + value_bytes)));
    // SAFETY: everything written lies in the first `head_bytes` bytes of the block, which nobody
    // else knows yet.
    let value = unsafe {
        block.cast::<u32>().write(word);
        block.add(FLAGS_AT).write(flags);
        let mut at = varint::write(block.add(KEY_LENGTH_AT).as_ptr(), key.len());
        if let Some(expire) = expire {
            at.cast::<i64>().write_unaligned(expire);
            at = at.add(WORD_BYTES);
        }
        if let Some(copy) = copy {
            at.cast::<u64>().write_unaligned(copy);
            at = at.add(WORD_BYTES);
        }
        at.copy_from_nonoverlapping(key.as_ptr(), key.len());
        at.add(key.len())
    };
    Head { block, value }
}
