//! A list of short strings and integers in one piece of memory.
//!
//! Small hashes, sorted sets, stream blocks and the nodes of lists are listpacks. The bytes are
//! exactly those of Redis 7.0 (`listpack.c`), because DUMP payloads and RDB files carry them raw.
//!
//! ```text
//! | total bytes: u32 | elements: u16 | entry backlen | entry backlen | … | 0xFF |
//! ```
//! Both header fields are little-endian; `total bytes` counts header and end mark. 65,535 in
//! `elements` means "count them". [`encoding`] pictures the entries.
//!
//! The code is safe: a [`Listpack`] is only ever made empty or from bytes that [`check`] has walked
//! from one end to the other, so that later reads may index without asking again. A bound that is
//! broken in spite of that is our own mistake and stops the process instead of reading elsewhere.
//!
//! Memory grows to the next size class of the allocator rather than to twice the size: most
//! listpacks stay below 128 bytes, where doubling would be the larger part of their cost. Elements
//! come and go at either end at the same price: see [`buffer`].

mod buffer;
pub mod check;
pub mod encoding;
mod iter;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "twins"))]
pub(crate) mod twin;

pub use check::ListpackError;
pub use encoding::{Item, parse_integer};
pub use iter::Iter;

use crate::mover::Mover;
use buffer::Buffer;
use encoding::{END, Encoded, backlen_len, decode, entry_len, read_backlen};

/// Bytes before the first entry.
const HEADER_BYTES: usize = 6;

/// A listpack of no elements.
const EMPTY: [u8; HEADER_BYTES + 1] = [7, 0, 0, 0, 0, 0, END];

/// Value of the header's element count that means "more than fit into it, or not counted".
const COUNT_UNKNOWN: u16 = u16::MAX;

/// Bytes up to which callers let a listpack grow before they convert or split the value. Redis's
/// number (`LISTPACK_MAX_SAFETY_LIMIT`); the format itself ends at 4 GiB.
pub const LISTPACK_BYTES_MAX: usize = 1 << 30;

/// A listpack that owns its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Listpack {
    bytes: Buffer,
}

/// The place of one element. Any change to the listpack makes cursors behind the change stale;
/// the changing methods return fresh ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cursor(u32);

impl Default for Listpack {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Listpack {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}

impl Listpack {
    /// An empty listpack: seven bytes.
    pub fn new() -> Self {
        Self { bytes: Buffer::exact(EMPTY.to_vec()) }
    }

    /// An empty listpack with room for `bytes` bytes in all.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Buffer::with_capacity(bytes, &EMPTY) }
    }

    /// Takes bytes from a file or a peer, after walking every entry in them.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, ListpackError> {
        Self::from_bytes_each(bytes, |_| {})
    }

    /// As [`Self::from_bytes`], and hands every element to `visit` on the way. Those of bytes that
    /// turn out to be no listpack count for nothing.
    pub fn from_bytes_each(
        bytes: Vec<u8>,
        visit: impl FnMut(Item<'_>),
    ) -> Result<Self, ListpackError> {
        check::check(&bytes, visit)?;
        Ok(Self { bytes: Buffer::exact(bytes) })
    }

    /// The first element of bytes that are known to be a valid listpack. Only that element is read.
    pub fn first_of(bytes: &[u8]) -> Option<Item<'_>> {
        let is_there = bytes.get(HEADER_BYTES).is_some_and(|first| *first != END);
        decode(bytes, HEADER_BYTES).filter(|_| is_there).map(|(item, _)| item)
    }

    /// The whole listpack as it goes into an RDB file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes.into_vec()
    }

    /// Bytes of the listpack, header and end mark included.
    pub fn total_bytes(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes of memory behind the listpack, without the struct itself.
    pub fn allocated_bytes(&self) -> usize {
        self.bytes.allocated_bytes()
    }

    /// Whether `additional` more bytes of text keep it below [`LISTPACK_BYTES_MAX`].
    pub fn fits(&self, additional: usize) -> bool {
        self.bytes.len().saturating_add(additional) <= LISTPACK_BYTES_MAX
    }

    /// Number of elements. O(1) up to 65,534 of them, then O(n).
    pub fn len(&self) -> usize {
        match self.header_count() {
            COUNT_UNKNOWN => self.iter().count(),
            count => usize::from(count),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.bytes[HEADER_BYTES] == END
    }

    pub fn first(&self) -> Option<Cursor> {
        self.entry_at(HEADER_BYTES)
    }

    pub fn last(&self) -> Option<Cursor> {
        self.before(self.bytes.len() - 1)
    }

    pub fn next(&self, cursor: Cursor) -> Option<Cursor> {
        self.entry_at(self.end_of(cursor))
    }

    pub fn prev(&self, cursor: Cursor) -> Option<Cursor> {
        self.before(cursor.0 as usize)
    }

    /// The element at `cursor`.
    pub fn at(&self, cursor: Cursor) -> Item<'_> {
        let (item, _) = decode(&self.bytes, cursor.0 as usize)
            .expect("a cursor of this listpack points at an entry");
        item
    }

    /// The cursor of element `index`, walking from the nearer end.
    pub fn seek(&self, index: usize) -> Option<Cursor> {
        let count = self.header_count();
        if count != COUNT_UNKNOWN && index >= usize::from(count) {
            return None;
        }
        if count == COUNT_UNKNOWN || index < usize::from(count) / 2 {
            let mut cursor = self.first()?;
            for _ in 0..index {
                cursor = self.next(cursor)?;
            }
            return Some(cursor);
        }
        let mut cursor = self.last()?;
        for _ in index + 1..usize::from(count) {
            cursor = self.prev(cursor)?;
        }
        Some(cursor)
    }

    /// The element at `index`, counted from the front.
    pub fn get(&self, index: usize) -> Option<Item<'_>> {
        self.seek(index).map(|cursor| self.at(cursor))
    }

    /// All elements, from either end.
    pub fn iter(&self) -> Iter<'_> {
        Iter::new(&self.bytes, HEADER_BYTES, self.bytes.len() - 1)
    }

    /// The elements from `cursor` on.
    pub fn iter_from(&self, cursor: Cursor) -> Iter<'_> {
        Iter::new(&self.bytes, cursor.0 as usize, self.bytes.len() - 1)
    }

    /// The elements up to and with the one at `cursor`.
    pub fn iter_up_to(&self, cursor: Cursor) -> Iter<'_> {
        Iter::new(&self.bytes, HEADER_BYTES, self.end_of(cursor))
    }

    /// The first element equal to `text` at or behind `from`, looking at one element in `1 + skip`:
    /// `skip` is 1 where fields and values, or members and scores, alternate.
    pub fn find_from(&self, from: Cursor, text: &[u8], skip: usize) -> Option<Cursor> {
        let wanted = parse_integer(text);
        let mut cursor = from;
        loop {
            let found = match self.at(cursor) {
                Item::Bytes(bytes) => bytes == text,
                Item::Integer(value) => wanted == Some(value),
            };
            if found {
                return Some(cursor);
            }
            for _ in 0..=skip {
                cursor = self.next(cursor)?;
            }
        }
    }

    /// [`Self::find_from`] the first element.
    pub fn find(&self, text: &[u8], skip: usize) -> Option<Cursor> {
        self.find_from(self.first()?, text, skip)
    }

    /// Makes room for `room` bytes of elements at the back, if there is none for `more`: for a
    /// listpack that is only appended to. It stays until [`Self::shrink`].
    pub fn reserve_back(&mut self, more: usize, room: usize) {
        self.bytes.reserve(more, room);
    }

    pub fn push_back(&mut self, text: &[u8]) {
        self.splice(self.bytes.len() - 1, 0, 0, Some(Encoded::of_text(text)));
    }

    pub fn push_back_integer(&mut self, value: i64) {
        self.splice(self.bytes.len() - 1, 0, 0, Some(Encoded::of_integer(value)));
    }

    /// Appends elements, of which the bytes behind the last one move once.
    pub fn push_back_all<'a>(&mut self, items: impl Iterator<Item = Item<'a>> + Clone) {
        let at = self.bytes.len() - 1;
        let inserted = items.clone().map(Encoded::len_of).sum::<usize>();
        self.bytes.splice(at, 0, inserted);
        let (mut written, mut added) = (at, 0);
        for item in items {
            let entry = Encoded::of_item(item);
            let end = written + entry.total_len();
            entry.write(&mut self.bytes[written..end]);
            (written, added) = (end, added + 1);
        }
        assert_eq!(written, at + inserted, "the elements are as long as was counted");
        self.count_changed(0, added);
    }

    pub fn push_back_item(&mut self, item: Item<'_>) {
        self.splice(self.bytes.len() - 1, 0, 0, Some(Encoded::of_item(item)));
    }

    pub fn push_front(&mut self, text: &[u8]) {
        self.splice(HEADER_BYTES, 0, 0, Some(Encoded::of_text(text)));
    }

    /// Returns the new element's place; the old one stands behind it.
    pub fn insert_before(&mut self, cursor: Cursor, text: &[u8]) -> Cursor {
        self.splice(cursor.0 as usize, 0, 0, Some(Encoded::of_text(text)));
        cursor
    }

    /// As [`Self::insert_before`], with an item.
    pub fn insert_item_before(&mut self, cursor: Cursor, item: Item<'_>) -> Cursor {
        self.splice(cursor.0 as usize, 0, 0, Some(Encoded::of_item(item)));
        cursor
    }

    /// Returns the new element's place.
    pub fn insert_after(&mut self, cursor: Cursor, text: &[u8]) -> Cursor {
        let at = self.end_of(cursor);
        self.splice(at, 0, 0, Some(Encoded::of_text(text)));
        Cursor(at as u32)
    }

    /// Puts `text` in the place of the element at `cursor`, which stays valid.
    pub fn replace(&mut self, cursor: Cursor, text: &[u8]) {
        let bytes = self.end_of(cursor) - cursor.0 as usize;
        self.splice(cursor.0 as usize, bytes, 1, Some(Encoded::of_text(text)));
    }

    /// As [`Self::replace`], with a number.
    pub fn replace_integer(&mut self, cursor: Cursor, value: i64) {
        let bytes = self.end_of(cursor) - cursor.0 as usize;
        self.splice(cursor.0 as usize, bytes, 1, Some(Encoded::of_integer(value)));
    }

    /// Removes up to `count` elements from `cursor` on. Returns the place of the one that follows.
    pub fn remove(&mut self, cursor: Cursor, count: usize) -> Option<Cursor> {
        let start = cursor.0 as usize;
        let (mut end, mut removed) = (start, 0);
        while removed < count && self.bytes[end] != END {
            end = self.end_of(Cursor(end as u32));
            removed += 1;
        }
        self.splice(start, end - start, removed, None);
        self.entry_at(start)
    }

    pub fn pop_front(&mut self) -> Option<Vec<u8>> {
        self.first().map(|cursor| self.take(cursor))
    }

    pub fn pop_back(&mut self) -> Option<Vec<u8>> {
        self.last().map(|cursor| self.take(cursor))
    }

    /// Removes the element at `cursor` and returns its text.
    pub fn take(&mut self, cursor: Cursor) -> Vec<u8> {
        let text = self.at(cursor).to_vec();
        self.remove(cursor, 1);
        text
    }

    /// Cuts the elements from `cursor` on into a listpack of their own.
    pub fn split_off(&mut self, cursor: Cursor) -> Self {
        let at = cursor.0 as usize;
        let moved = self.iter_from(cursor).count();
        let moved_bytes = self.bytes.len() - 1 - at;
        let mut tail = Self::with_capacity(EMPTY.len() + moved_bytes);
        tail.bytes.splice(HEADER_BYTES, 0, moved_bytes);
        tail.bytes[HEADER_BYTES..].copy_from_slice(&self.bytes[at..]);
        tail.set_header(count_field(moved));
        self.splice(at, moved_bytes, moved, None);
        tail
    }

    /// Moves the elements of `other` behind those of this one.
    pub fn append(&mut self, other: &Self) {
        let count = count_field(self.len() + other.len());
        let (entries, end) = (&other.bytes[HEADER_BYTES..], self.bytes.len() - 1);
        self.bytes.splice(end, 1, entries.len());
        self.bytes[end..].copy_from_slice(entries);
        self.set_header(count);
    }

    /// Where its block begins, with room before the bytes.
    #[inline]
    pub(crate) fn address(&self) -> *const u8 {
        self.bytes.address()
    }

    /// Moves the bytes, if `mover` takes them.
    pub fn move_block(&mut self, mover: &mut Mover<'_>) {
        self.bytes.move_block(mover);
    }

    /// Gives memory back that an earlier, larger size left behind.
    pub fn shrink(&mut self) {
        self.bytes.shrink();
    }

    /// Replaces `removed_bytes` bytes at `at`, which are `removed` whole entries, by `entry`. The
    /// one place where entries move.
    fn splice(
        &mut self,
        at: usize,
        removed_bytes: usize,
        removed: usize,
        entry: Option<Encoded<'_>>,
    ) {
        let inserted_bytes = entry.map_or(0, |entry| entry.total_len());
        self.bytes.splice(at, removed_bytes, inserted_bytes);
        if inserted_bytes < removed_bytes {
            self.shrink_if_half_empty();
        }
        if let Some(entry) = entry {
            entry.write(&mut self.bytes[at..at + inserted_bytes]);
        }
        self.count_changed(removed, usize::from(entry.is_some()));
    }

    /// Brings the header up to date with elements that came and went.
    fn count_changed(&mut self, removed: usize, added: usize) {
        let count = match self.header_count() {
            COUNT_UNKNOWN => COUNT_UNKNOWN,
            // 65,534 + 1 becomes "unknown", as in Redis.
            count => count_field(usize::from(count) - removed + added),
        };
        self.set_header(count);
    }

    fn shrink_if_half_empty(&mut self) {
        if self.bytes.capacity() > 64 && self.bytes.len() < self.bytes.capacity() / 2 {
            self.shrink();
        }
    }

    fn header_count(&self) -> u16 {
        u16::from_le_bytes([self.bytes[4], self.bytes[5]])
    }

    fn set_header(&mut self, count: u16) {
        let total = self.bytes.len() as u32;
        self.bytes[..4].copy_from_slice(&total.to_le_bytes());
        self.bytes[4..HEADER_BYTES].copy_from_slice(&count.to_le_bytes());
    }

    fn entry_at(&self, at: usize) -> Option<Cursor> {
        (self.bytes[at] != END).then_some(Cursor(at as u32))
    }

    /// The entry that ends right before `at`.
    fn before(&self, at: usize) -> Option<Cursor> {
        if at <= HEADER_BYTES {
            return None;
        }
        let (entry, back) = read_backlen(&self.bytes, at).expect("the entries were validated");
        Some(Cursor((at - back - entry) as u32))
    }

    fn end_of(&self, cursor: Cursor) -> usize {
        let entry = entry_len(&self.bytes, cursor.0 as usize);
        cursor.0 as usize + entry + backlen_len(entry)
    }
}

fn count_field(count: usize) -> u16 {
    u16::try_from(count).unwrap_or(COUNT_UNKNOWN)
}
