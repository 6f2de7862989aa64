//! What the tables of big sets, hashes and sorted sets hold.
//!
//! Redis stores a member as a string with its own header, beside a dict entry of 24 bytes. Here
//! the table's slot is the member, or refers to one block that holds nothing but lengths and bytes:
//!
//! ```text
//!  Member        slot = integer << 1 | 1                       47-bit integers: no block at all
//!                slot = address ─▶ │ varint │ member │
//!  Field         slot = address ─▶ │ varint │ field │ varint │ value │
//!                slot = address | 1 ─▶ the same, │ expiry, ms i64 │ behind it
//!  ScoredMember  slot = address ─▶ │ score f64 │ varint │ member │        see `sorted_set`
//!                slot = address | 1 ─▶ │ score i32 │ varint │ member │    where that is the same
//! ```
//! Blocks are aligned to eight bytes, so an address's low bit is free to mark an integer, a field
//! that expires, or a score's form. Bytes that are the canonical decimal form of an integer that
//! fits are always stored as one: each member has exactly one representation, and equal ones
//! compare equal.
//!
//! A field's value is rewritten in place while the block's size class stays the same. A value out
//! of line was considered and rejected: a rewrite would spare copying the field's name, at eight
//! bytes and a cache miss for every field.

mod block;
mod field;
mod scored;
#[cfg(test)]
mod tests;

use std::marker::PhantomData;
use std::ptr::NonNull;

pub use field::{Field, FieldMut, FieldRef};
pub(crate) use scored::{ScoredItem, ScoredMember, ScoredRef};

use crate::listpack::parse_integer;
use crate::mover::Mover;
use crate::prefetch::prefetch;
use crate::slow_touch::touched;
use crate::table::{Element, KeyHasher};

/// Every big hash, set and sorted set has a table: this and its owner's counter are a size class of
/// the allocator, 120 bytes.
const _: () = assert!(size_of::<crate::table::Table<Member>>() <= 112);

/// The lowest bit of a slot that holds an integer.
const INTEGER_MARK: u64 = 1;
/// Bits of an inline integer: 48 less the mark.
const INTEGER_BITS: u32 = 47;
const RAW_MASK: u64 = (1 << 48) - 1;

/// A member of a set: an integer or bytes.
pub struct Member {
    raw: u64,
    owner: PhantomData<Box<[u8]>>,
}

// SAFETY: a member owns its block exclusively, like a `Box<[u8]>`.
unsafe impl Send for Member {}
// SAFETY: nothing changes through a shared member.
unsafe impl Sync for Member {}

/// Shared access to a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberRef<'a> {
    /// Stands for the bytes of its canonical decimal form.
    Integer(i64),
    /// Never the decimal form of an integer that fits inline.
    Bytes(&'a [u8]),
}

/// Room for the decimal form of an integer member; see [`MemberRef::bytes`].
pub type MemberBuffer = itoa::Buffer;

impl<'a> MemberRef<'a> {
    /// The member's bytes; an integer is written to `buffer` first.
    #[inline]
    pub fn bytes<'b>(self, buffer: &'b mut MemberBuffer) -> &'b [u8]
    where
        'a: 'b,
    {
        match self {
            Self::Integer(integer) => buffer.format(integer).as_bytes(),
            Self::Bytes(bytes) => bytes,
        }
    }

    pub fn to_vec(self) -> Vec<u8> {
        self.bytes(&mut MemberBuffer::new()).to_vec()
    }

    /// Bytes behind the table's slot.
    pub fn allocated_bytes(self) -> usize {
        match self {
            Self::Integer(_) => 0,
            Self::Bytes(bytes) => block::text_block_bytes(bytes.len()),
        }
    }
}

impl Member {
    pub fn new(member: &[u8]) -> Self {
        let raw = match parse_integer(member).and_then(inline) {
            Some(raw) => raw,
            None => block::raw_of(block::new_text(member)),
        };
        Self { raw, owner: PhantomData }
    }

    /// The same as [`Self::new`] with the decimal form of `integer`.
    pub fn of_integer(integer: i64) -> Self {
        match inline(integer) {
            Some(raw) => Self { raw, owner: PhantomData },
            None => Self::new(itoa::Buffer::new().format(integer).as_bytes()),
        }
    }

    pub fn as_ref(&self) -> MemberRef<'_> {
        // SAFETY: the value is a live member, shared for as long as `self` is borrowed.
        unsafe { Self::borrow(self.raw) }
    }
}

/// The slot that stands for `integer`, if it has at most 47 bits.
fn inline(integer: i64) -> Option<u64> {
    let unused = i64::BITS - INTEGER_BITS;
    let fits = integer << unused >> unused == integer;
    fits.then_some((integer as u64) << 1 & RAW_MASK | INTEGER_MARK)
}

impl Drop for Member {
    fn drop(&mut self) {
        if self.raw & INTEGER_MARK == 0 {
            // SAFETY: a value without the mark is the address of a text block that only this
            // member knows.
            unsafe { block::free_text(block::at(self.raw)) };
        }
    }
}

// SAFETY: the value is a marked integer, or a block's address (checked to have 48 bits by the
// table); it makes the same owner again. There is nothing to change through a borrow.
unsafe impl Element for Member {
    type Ref<'a> = MemberRef<'a>;
    type Mut<'a> = MemberRef<'a>;

    #[inline]
    fn into_raw(self) -> u64 {
        std::mem::ManuallyDrop::new(self).raw
    }

    #[inline]
    unsafe fn from_raw(raw: u64) -> Self {
        Self { raw, owner: PhantomData }
    }

    #[inline]
    unsafe fn borrow<'a>(raw: u64) -> MemberRef<'a> {
        if raw & INTEGER_MARK == 1 {
            // Bit 47 is the sign.
            return MemberRef::Integer((raw << 16) as i64 >> 17);
        }
        // SAFETY: a value without the mark is the address of a text block; the caller vouches
        // that it is live and shared during `'a`.
        MemberRef::Bytes(unsafe { block::text(block::at(raw)) })
    }

    #[inline]
    unsafe fn borrow_mut<'a>(raw: u64) -> MemberRef<'a> {
        // SAFETY: exclusive implies shared.
        unsafe { Self::borrow(raw) }
    }

    #[inline]
    fn has_key(element: MemberRef<'_>, key: &[u8]) -> bool {
        match element {
            MemberRef::Integer(integer) => parse_integer(key) == Some(integer),
            MemberRef::Bytes(bytes) => {
                touched(bytes.as_ptr());
                bytes == key
            }
        }
    }

    fn has_same_key(a: MemberRef<'_>, b: MemberRef<'_>) -> bool {
        a == b
    }

    fn hash(element: MemberRef<'_>, hasher: &KeyHasher) -> u64 {
        hasher.hash(element.bytes(&mut MemberBuffer::new()))
    }

    unsafe fn moved(raw: u64, mover: &mut Mover<'_>) -> u64 {
        if raw & INTEGER_MARK == 1 {
            return raw;
        }
        let block = block::at(raw);
        // SAFETY: a value without the mark is the address of a live text block, which the caller
        // hands over.
        let bytes = || block::text_block_bytes(unsafe { block::text(block) }.len());
        // SAFETY: as above; the block's size follows from the text's length.
        block::raw_of(unsafe { block::moved(block, bytes, mover) })
    }

    #[inline]
    fn prefetch(raw: u64) {
        if raw & INTEGER_MARK == 0 {
            prefetch(std::ptr::without_provenance(raw as usize));
        }
    }
}

impl std::fmt::Debug for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Member").field(&self.as_ref()).finish()
    }
}

/// The address that `raw` stands for; shared by the elements here.
type Block = NonNull<u8>;
