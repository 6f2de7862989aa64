//! A block of a stream: entries beside each other in one listpack, in Redis's form.
//!
//! ```text
//! block  = count | deleted | number of fields | field … | 0 | entry …
//! entry  = flags | millis | sequence | [number of fields] [field] value … | elements before this
//! ```
//! `count` entries exist and `deleted` more are only marked. IDs are differences to the block's
//! base, which is the ID of its first entry. An entry with the same fields as the block
//! (`SAME_FIELDS`) has only values. Its last element is the number of its elements before that one,
//! so that a block can be read from its end; the 0 marks the end of the block's head.
//!
//! A [`Block`] is made from an entry, or from bytes that [`check`] has validated: its readers may
//! rely on its form.

use super::check::{DELETED, SAME_FIELDS, check};
use crate::effect::Fields;
use crate::stream_id::StreamId;
use crate::work::Work;
use structures::listpack::{Cursor, Item};
use structures::{Listpack, Mover};

/// Elements of the head before the block's fields: count, deleted, number of fields.
const HEAD: usize = 3;
/// Elements of an entry before its fields: flags, and the two halves of its ID.
const ENTRY_HEAD: usize = 3;

/// Elements of an entry beside its fields and values, at most: these, the number of its fields, and
/// that of its elements.
const ENTRY_ELEMENTS_MAX: usize = ENTRY_HEAD + 2;
/// Bytes of an element beside its text: its kind and length, and its length once more behind it.
const ELEMENT_HEAD_BYTES_MAX: usize = 10;

/// Bytes from which a block that is added to grows to twice its size, until it is full and gives
/// back what it has not used: growing by a step for each entry took more time than the entries.
const LARGE_BYTES: usize = 512;
/// The most bytes by which such a block grows, beyond what an entry needs.
const ROOM_BYTES_MAX: usize = 64 << 10;

/// A block of entries.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Block {
    pack: Listpack,
}

/// An entry in its block.
#[derive(Clone, Copy)]
pub struct Entry<'a> {
    pub id: StreamId,
    block: &'a Listpack,
    /// The entry's first element: its flags.
    at: Cursor,
    flags: i64,
    /// The first of its fields; of its values if it has the block's fields.
    data: Cursor,
    /// The number of its fields.
    pub len: usize,
}

impl Block {
    /// Moves the bytes, if `mover` takes them.
    pub(super) fn move_block(&mut self, mover: &mut Mover<'_>) {
        self.pack.move_block(mover);
    }

    /// A new block with one entry, whose ID is the block's base.
    pub fn of(fields: Fields<'_>) -> Self {
        let mut pack = Listpack::new();
        pack.push_back_integer(0);
        pack.push_back_integer(0);
        pack.push_back_integer(fields.len() as i64);
        for (field, _) in fields.iter() {
            pack.push_back(field);
        }
        pack.push_back_integer(0);
        let mut block = Self { pack };
        block.push(StreamId::MIN, StreamId::MIN, fields);
        block
    }

    /// A block from the bytes of a file, a payload or the log. `base` is the ID of its first entry.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn from_listpack(
        base: StreamId,
        pack: Listpack,
        work: &Work,
    ) -> Result<Self, &'static str> {
        check(base, &pack, work)?;
        Ok(Self { pack })
    }

    pub fn bytes(&self) -> &[u8] {
        self.pack.bytes()
    }

    pub fn allocated_bytes(&self) -> usize {
        self.pack.allocated_bytes()
    }

    /// The number of entries, without deleted ones.
    pub fn count(&self) -> u64 {
        self.number(0) as u64
    }

    /// The number of entries that are marked as deleted.
    fn deleted(&self) -> u64 {
        self.number(1) as u64
    }

    /// The number of entries, deleted ones included.
    pub fn slots(&self) -> u64 {
        self.count() + self.deleted()
    }

    pub fn total_bytes(&self) -> usize {
        self.pack.total_bytes()
    }

    /// Appends an entry. `base` is the block's base.
    pub fn push(&mut self, base: StreamId, id: StreamId, fields: Fields<'_>) {
        let mut head = self.pack.iter();
        let mut number = || head.next().and_then(integer).unwrap_or_default();
        let (count, _deleted, own) = (number(), number(), number());
        let is_own = |(field, _): (&[u8], _)| head.next().is_some_and(|item| item.equals(field));
        let same = own == fields.len() as i64 && fields.iter().all(is_own);
        if let Some(first) = self.pack.first() {
            self.pack.replace_integer(first, count.wrapping_add(1));
        }
        let pack = &mut self.pack;
        if pack.total_bytes() >= LARGE_BYTES {
            let texts: usize = fields.iter().map(|(field, value)| field.len() + value.len()).sum();
            let elements = 2 * fields.len() + ENTRY_ELEMENTS_MAX;
            let more = texts + elements * ELEMENT_HEAD_BYTES_MAX;
            pack.reserve_back(more, more.max(pack.total_bytes().min(ROOM_BYTES_MAX)));
        }
        let millis = Item::Integer(id.millis.wrapping_sub(base.millis) as i64);
        let sequence = Item::Integer(id.sequence.wrapping_sub(base.sequence) as i64);
        let elements = |count: usize| [Item::Integer((ENTRY_HEAD + count) as i64)];
        let len = fields.len();
        if same {
            let values = fields.iter().map(|(_, value)| Item::Bytes(value));
            let entry = [Item::Integer(SAME_FIELDS), millis, sequence].into_iter().chain(values);
            pack.push_back_all(entry.chain(elements(len)));
        } else {
            let head = [Item::Integer(0), millis, sequence, Item::Integer(len as i64)];
            let pairs = fields.iter().flat_map(|(field, value)| [field, value].map(Item::Bytes));
            pack.push_back_all(head.into_iter().chain(pairs).chain(elements(1 + 2 * len)));
        }
    }

    /// Gives back memory that was allocated for more entries.
    pub fn shrink(&mut self) {
        self.pack.shrink();
    }

    /// Marks the entry with this ID as deleted; returns whether it existed.
    pub fn delete(&mut self, base: StreamId, id: StreamId, work: &Work) -> bool {
        let there = self.entries(base).inspect(|_| work.step());
        let found = { there }.find(|entry| !entry.is_deleted() && entry.id >= id);
        let found = found.filter(|entry| entry.id == id).map(|entry| (entry.at, entry.flags));
        let Some((at, flags)) = found else { return false };
        self.mark(at, flags);
        self.count_deleted(1);
        true
    }

    /// Marks all entries with smaller IDs than `below` as deleted; returns how many existed.
    pub fn delete_below(&mut self, base: StreamId, below: StreamId, work: &Work) -> u64 {
        let mut next = self.first(base);
        let mut deleted = 0;
        while let Some(entry) = next.filter(|entry| entry.is_deleted() || entry.id < below) {
            work.step();
            let (at, flags) = (entry.at, entry.flags);
            if !entry.is_deleted() {
                self.mark(at, flags);
                deleted += 1;
            }
            // Flags have one length whatever their value, so nothing has moved.
            next = Entry::at(&self.pack, base, at).and_then(|entry| entry.next(base));
        }
        self.count_deleted(deleted);
        deleted
    }

    /// Every entry, deleted ones too, from the first on.
    pub fn entries(&self, base: StreamId) -> impl Iterator<Item = Entry<'_>> {
        std::iter::successors(self.first(base), move |entry| entry.next(base))
    }

    /// Every entry, deleted ones too, from the last back.
    pub fn entries_back(&self, base: StreamId) -> impl Iterator<Item = Entry<'_>> {
        let last = self.pack.last();
        let last = last.and_then(|end| Entry::ending_at(&self.pack, base, end));
        std::iter::successors(last, move |entry| entry.previous(base))
    }

    /// The ID of the last entry, deleted or not.
    pub fn last_id(&self, base: StreamId) -> StreamId {
        self.entries_back(base).next().map_or(base, |entry| entry.id)
    }

    fn first(&self, base: StreamId) -> Option<Entry<'_>> {
        let mut cursor = self.fields_at()?;
        for _ in 0..=self.number(2) {
            cursor = self.pack.next(cursor)?;
        }
        Entry::at(&self.pack, base, cursor)
    }

    /// The place of the block's first field; of the 0 if it has no fields.
    fn fields_at(&self) -> Option<Cursor> {
        fields_at(&self.pack)
    }

    fn mark(&mut self, at: Cursor, flags: i64) {
        self.pack.replace_integer(at, flags | DELETED);
    }

    fn count_deleted(&mut self, deleted: u64) {
        let (count, before) = (self.count(), self.deleted());
        self.set_number(0, count - deleted);
        self.set_number(1, before + deleted);
    }

    fn number(&self, index: usize) -> i64 {
        self.pack.get(index).and_then(integer).unwrap_or_default()
    }

    fn set_number(&mut self, index: usize, number: u64) {
        if let Some(cursor) = self.pack.seek(index) {
            self.pack.replace_integer(cursor, number as i64);
        }
    }
}

/// The number of entries in a valid block, without deleted ones.
pub fn count_of(block: &[u8]) -> u64 {
    Listpack::first_of(block).and_then(integer).unwrap_or_default() as u64
}

/// Calls `visit` with each entry of a block's bytes that is not deleted; does nothing if they are
/// no block.
pub fn entries_of(base: StreamId, block: &[u8], mut visit: impl FnMut(Entry<'_>)) {
    let Ok(pack) = Listpack::from_bytes(block.to_vec()) else { return };
    let Ok(block) = Block::from_listpack(base, pack, &Work::default()) else { return };
    block.entries(base).filter(|entry| !entry.is_deleted()).for_each(&mut visit);
}

fn fields_at(pack: &Listpack) -> Option<Cursor> {
    let mut cursor = pack.first()?;
    for _ in 0..HEAD {
        cursor = pack.next(cursor)?;
    }
    Some(cursor)
}

fn integer(item: Item<'_>) -> Option<i64> {
    match item {
        Item::Integer(integer) => Some(integer),
        Item::Bytes(_) => None,
    }
}

impl<'a> Entry<'a> {
    pub fn is_deleted(&self) -> bool {
        self.flags & DELETED != 0
    }

    fn has_own_fields(&self) -> bool {
        self.flags & SAME_FIELDS == 0
    }

    /// The entry whose first element is at this place.
    fn at(block: &'a Listpack, base: StreamId, at: Cursor) -> Option<Self> {
        let flags = integer(block.at(at))?;
        let millis_at = block.next(at)?;
        let sequence_at = block.next(millis_at)?;
        let id = StreamId {
            millis: base.millis.wrapping_add(integer(block.at(millis_at))? as u64),
            sequence: base.sequence.wrapping_add(integer(block.at(sequence_at))? as u64),
        };
        let mut data = block.next(sequence_at)?;
        let len = if flags & SAME_FIELDS != 0 {
            block.get(HEAD - 1).and_then(integer)?
        } else {
            let len = integer(block.at(data))?;
            data = block.next(data)?;
            len
        };
        Some(Self { id, block, at, flags, data, len: usize::try_from(len).ok()? })
    }

    /// The entry whose last element is at this place; `None` at the end of the head.
    fn ending_at(block: &'a Listpack, base: StreamId, end: Cursor) -> Option<Self> {
        let elements = integer(block.at(end))?;
        let mut at = end;
        for _ in 0..elements {
            at = block.prev(at)?;
        }
        if elements == 0 { None } else { Self::at(block, base, at) }
    }

    fn next(&self, base: StreamId) -> Option<Self> {
        let elements = if self.has_own_fields() { 2 * self.len } else { self.len };
        let mut cursor = self.data;
        for _ in 0..=elements {
            cursor = self.block.next(cursor)?;
        }
        Self::at(self.block, base, cursor)
    }

    fn previous(&self, base: StreamId) -> Option<Self> {
        let end = self.block.prev(self.at)?;
        Self::ending_at(self.block, base, end)
    }

    /// The entry's fields and values, in the order in which they were added.
    pub fn fields(&self) -> impl Iterator<Item = (Item<'a>, Item<'a>)> + use<'a> {
        let mut data = self.block.iter_from(self.data);
        let mut names = match self.has_own_fields() {
            true => None,
            false => fields_at(self.block).map(|at| self.block.iter_from(at)),
        };
        (0..self.len).map_while(move |_| {
            let name = names.as_mut().unwrap_or(&mut data).next()?;
            Some((name, data.next()?))
        })
    }
}
