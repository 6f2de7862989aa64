//! Hashes of which at least one field expires.
//!
//! A small one is a listpack with a time behind each value, which is scanned to find due fields: 10
//! bytes for a field that expires, 2 for one that does not. A large one keeps the time in the
//! field's own block, and an ordered index of times and field hashes beside the table: 8 bytes for
//! a field that expires, unless its block has room for them, and some 24 in the index.

use super::table::FieldTable;
use super::{Text, Timed};
use crate::expiries::Expiries;
use crate::value::Recipe;
use crate::work::Work;
use structures::listpack::{Cursor, Item};
use structures::{FieldRef, Listpack, Mover};

/// Elements of a listpack that belong to one field.
pub(super) const WIDTH: usize = 3;

/// Elements between a field and the next one.
const SKIP: usize = WIDTH - 1;

/// The time of a field that does not expire, as in Redis's listpacks of this kind.
const NEVER: i64 = 0;

/// Bytes of [`NEVER`] in a listpack, and bytes of a time.
const NEVER_BYTES: usize = 2;
const TIME_BYTES: usize = 10;

/// Bytes that a listpack of this many fields grows by, for one of them to expire.
pub(super) fn room_for(fields: usize) -> usize {
    fields * NEVER_BYTES + TIME_BYTES
}

/// A small hash: a listpack of fields, values and times, in the order in which fields were added.
#[derive(Clone)]
pub struct TimedPack {
    pack: Listpack,
    /// The number of fields that expire.
    timed: usize,
    /// The earliest expiry.
    next: i64,
}

fn time_of(item: Item<'_>) -> Option<i64> {
    match item {
        Item::Integer(at) if at != NEVER => Some(at),
        _ => None,
    }
}

impl TimedPack {
    /// Moves the bytes, if `mover` takes them.
    pub(crate) fn move_block(&mut self, mover: &mut Mover<'_>) {
        self.pack.move_block(mover);
    }

    /// A listpack of these fields, none of which expires yet: the caller sets an expiry next.
    pub(super) fn of<'a>(pairs: impl Iterator<Item = (Text<'a>, Text<'a>)>) -> Self {
        let mut pack = Listpack::new();
        for (field, value) in pairs {
            pack.push_back_item(field);
            pack.push_back_item(value);
            pack.push_back_integer(NEVER);
        }
        Self { pack, timed: 0, next: i64::MAX }
    }

    pub(super) fn pack(&self) -> &Listpack {
        &self.pack
    }

    /// Bytes of the struct and of all its allocations.
    pub(super) fn allocated_bytes(&self) -> usize {
        size_of::<Self>() + self.pack.allocated_bytes()
    }

    pub(super) fn len(&self) -> usize {
        self.pack.len() / WIDTH
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pack.is_empty()
    }

    pub(super) fn next_expiry(&self) -> Option<i64> {
        (self.timed > 0).then_some(self.next)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Timed<'_>> {
        let mut items = self.pack.iter();
        std::iter::from_fn(move || Some((items.next()?, items.next()?, time_of(items.next()?))))
    }

    pub(super) fn is_all_due(&self, by: i64) -> bool {
        self.timed == self.len() && self.iter().all(|(_, _, at)| at.is_some_and(|at| at <= by))
    }

    pub(super) fn due(&self, by: i64, count: usize) -> Vec<Vec<u8>> {
        let due = self.iter().filter(|(_, _, at)| at.is_some_and(|at| at <= by));
        due.take(count).map(|(field, ..)| field.to_vec()).collect()
    }

    /// The places of a field's value and time in the listpack.
    fn places(&self, field: &[u8]) -> Option<(Cursor, Cursor)> {
        let value = self.pack.next(self.pack.find(field, SKIP)?)?;
        Some((value, self.pack.next(value)?))
    }

    pub(super) fn get(&self, field: &[u8]) -> Option<(Text<'_>, Option<i64>)> {
        let (value, time) = self.places(field)?;
        Some((self.pack.at(value), time_of(self.pack.at(time))))
    }

    /// Sets a field's value. A field that exists keeps its expiry. Returns whether the field is
    /// new.
    pub(super) fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        let found = self.places(field);
        match found {
            Some((place, _)) => self.pack.replace(place, value),
            None => {
                self.pack.push_back(field);
                self.pack.push_back(value);
                self.pack.push_back_integer(NEVER);
            }
        }
        found.is_none()
    }

    pub(super) fn expire(&mut self, field: &[u8], expire_at: Option<i64>) {
        let Some((_, place)) = self.places(field) else { return };
        let before = time_of(self.pack.at(place));
        let mut digits = itoa::Buffer::new();
        self.pack.replace(place, digits.format(expire_at.unwrap_or(NEVER)).as_bytes());
        self.timed += usize::from(expire_at.is_some());
        self.went(before);
        self.next = self.next.min(expire_at.unwrap_or(i64::MAX));
    }

    pub(super) fn remove(&mut self, field: &[u8]) -> bool {
        let Some(place) = self.pack.find(field, SKIP) else { return false };
        let before = self.get(field).and_then(|(_, at)| at);
        self.pack.remove(place, WIDTH);
        self.went(before);
        true
    }

    /// Updates the count and the earliest time after a field lost this expiry.
    fn went(&mut self, before: Option<i64>) {
        let Some(before) = before else { return };
        self.timed -= 1;
        if before == self.next {
            self.next = self.iter().filter_map(|(_, _, at)| at).min().unwrap_or(i64::MAX);
        }
    }

    /// The plain small form, without times.
    pub(super) fn to_pairs(&self) -> Listpack {
        let mut pairs = Listpack::with_capacity(self.pack.total_bytes());
        for (field, value, _) in self.iter() {
            pairs.push_back_item(field);
            pairs.push_back_item(value);
        }
        pairs.shrink();
        pairs
    }

    /// The large form, with times.
    pub(super) fn to_table(&self, recipe: &Recipe<'_>) -> TimedTable {
        let mut table = TimedTable::of(Box::new(FieldTable::new(recipe.hasher)));
        for (field, value, at) in self.iter() {
            let field = field.to_vec();
            table.set(&field, &value.to_vec());
            table.expire(&field, at);
        }
        table
    }
}

/// A large hash: a table, and an index of the fields that expire.
pub struct TimedTable {
    fields: Box<FieldTable>,
    /// Times and hashes of the fields that expire.
    due: Expiries,
}

impl TimedTable {
    /// Moves what `mover` takes of up to `buckets_max` buckets: see [`FieldTable::move_blocks`].
    pub(crate) fn move_blocks(
        &mut self,
        from: u64,
        buckets_max: usize,
        mover: &mut Mover<'_>,
    ) -> Option<u64> {
        self.fields.move_blocks(from, buckets_max, mover)
    }

    /// A large hash of these fields, none of which expires yet: the caller sets an expiry next.
    pub(super) fn of(fields: Box<FieldTable>) -> Self {
        Self { fields, due: Expiries::default() }
    }

    pub(super) fn fields(&self) -> &FieldTable {
        &self.fields
    }

    /// Takes the fields out, as the plain large form. An empty table stays behind.
    pub(super) fn take_fields(&mut self) -> Box<FieldTable> {
        let empty = Box::new(FieldTable::new(*self.fields.table.hasher()));
        std::mem::replace(&mut self.fields, empty)
    }

    /// Bytes of the struct and of all its allocations.
    pub(super) fn allocated_bytes(&self) -> usize {
        let index = self.due.len() * Expiries::ENTRY_BYTES;
        size_of::<Self>() + self.fields.allocated_bytes() + index
    }

    pub(super) fn next_expiry(&self) -> Option<i64> {
        self.due.first().map(|(at, _)| at)
    }

    pub(super) fn is_all_due(&self, by: i64) -> bool {
        let last = self.due.last().map(|(at, _)| at);
        self.due.len() == self.fields.table.len() && last.is_some_and(|at| at <= by)
    }

    /// Several fields with one time and one hash are found one after another, because each is
    /// removed before the next search.
    pub(super) fn due(&self, by: i64, count: usize) -> Vec<Vec<u8>> {
        let due = self.due.until(by).take(count);
        let find =
            |(at, hash)| self.fields.table.find_where(hash, |field| field.expire_at() == Some(at));
        due.filter_map(find).map(|field| field.name().to_vec()).collect()
    }

    /// Sets a field's value. A field that exists keeps its expiry. Returns whether the field is
    /// new.
    pub(super) fn set(&mut self, field: &[u8], value: &[u8]) -> bool {
        self.fields.set(field, value)
    }

    pub(super) fn expire(&mut self, field: &[u8], expire_at: Option<i64>) {
        let hash = self.fields.table.hasher().hash(field);
        if let Some(before) = self.fields.find(field).and_then(FieldRef::expire_at) {
            self.due.remove(before, hash);
        }
        if let Some(at) = expire_at {
            self.due.insert(at, hash);
        }
        self.fields.expire(hash, field, expire_at);
    }

    pub(super) fn remove(&mut self, field: &[u8]) -> bool {
        let Some(removed) = self.fields.remove(field) else { return false };
        if let Some(at) = removed.as_ref().expire_at() {
            self.due.remove(at, self.fields.table.hasher().hash(field));
        }
        true
    }

    pub(super) fn copied(&self, work: &Work) -> Self {
        let mut copy = Self::of(Box::new(self.fields.copied(work)));
        for (at, hash) in self.due.iter() {
            work.step();
            copy.due.insert(at, hash);
        }
        copy
    }
}
