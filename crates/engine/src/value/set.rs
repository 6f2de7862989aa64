//! Sets: an intset while all members are integers and few, then a table.
//!
//! Redis 7.0 has exactly these two (the listpack came with 7.2). A set never goes back to the
//! smaller form, except that its key is deleted and made anew.

mod as_value;
#[cfg(test)]
mod tests;

use crate::refusal::Refusal;
use crate::value::{EntryRef, Recipe, Value, not_of};
use crate::work::Work;
use resp::Reply;
use resp::integer::parse_i64;
use structures::entry::ValueRef;
use structures::{Intset, KeyHasher, Member, MemberRef, Mover, Table};

/// Largest intset whatever `set-max-intset-entries` says: Redis's bound, which keeps the bytes of
/// a set of 64-bit integers countable in 32 bits.
const INTSET_ENTRIES_MAX: u64 = 1 << 30;

/// A set that knows its bytes without counting.
pub enum Set {
    Integers(Intset),
    /// Boxed, so that small values do not pay for the size of a table.
    Table(Box<MemberTable>),
}

/// A table of members and the sum of their blocks.
pub struct MemberTable {
    table: Table<Member>,
    /// Bytes behind the table's slots.
    member_bytes: usize,
}

/// An empty set. The first member decides its encoding.
pub fn create(_: &Recipe<'_>) -> Value {
    Value::Set(Set::new())
}

/// The set in an entry.
///
/// # Errors
/// WRONGTYPE if the entry holds another type.
pub fn of(entry: EntryRef<'_>) -> Result<&Set, Refusal> {
    match entry.value() {
        ValueRef::Boxed(Value::Set(set)) => Ok(set),
        _ => Err(not_of(entry, "set")),
    }
}

/// The set in a value that is to change.
///
/// # Errors
/// WRONGTYPE if the value is of another type.
pub fn of_mut(value: &mut Value) -> Result<&mut Set, Refusal> {
    match value {
        Value::Set(set) => Ok(set),
        _ => Err(Refusal::WRONG_TYPE),
    }
}

/// Appends a member as a bulk string.
pub fn reply_member(member: MemberRef<'_>, reply: &mut Reply) {
    match member {
        MemberRef::Integer(integer) => reply.bulk_integer(integer),
        MemberRef::Bytes(bytes) => reply.bulk(bytes),
    }
}

impl Default for Set {
    fn default() -> Self {
        Self::new()
    }
}

impl Set {
    pub fn new() -> Self {
        Self::Integers(Intset::new())
    }

    /// An intset read from a snapshot, as it is.
    pub fn from_intset(integers: Intset) -> Self {
        Self::Integers(integers)
    }

    /// An empty set that is a table already: what a snapshot says is one stays one.
    pub fn empty_table(hasher: KeyHasher) -> Self {
        Self::Table(Box::new(MemberTable::new(hasher)))
    }

    /// The table, if it is one.
    pub(crate) fn table(&self) -> Option<&Table<Member>> {
        match self {
            Self::Integers(_) => None,
            Self::Table(members) => Some(&members.table),
        }
    }

    pub fn len(&self) -> usize {
        match self {
            Self::Integers(integers) => integers.len(),
            Self::Table(members) => members.table.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn contains(&self, member: &[u8]) -> bool {
        match self {
            Self::Integers(integers) => {
                parse_i64(member).is_some_and(|integer| integers.contains(integer))
            }
            Self::Table(members) => members.contains(member),
        }
    }

    /// As [`Self::contains`], for a member of another set.
    pub fn contains_member(&self, member: MemberRef<'_>) -> bool {
        match (self, member) {
            (Self::Integers(integers), MemberRef::Integer(integer)) => integers.contains(integer),
            _ => self.contains(member.bytes(&mut structures::MemberBuffer::new())),
        }
    }

    /// Adds a member and changes to the encoding that the set now needs; whether it is new.
    pub fn add(&mut self, member: &[u8], recipe: &Recipe<'_>) -> bool {
        let integers = match self {
            Self::Table(members) => return members.add(member),
            Self::Integers(integers) => integers,
        };
        let entries_max = recipe.settings.set_max_intset_entries.min(INTSET_ENTRIES_MAX);
        match parse_i64(member) {
            Some(integer) if !integers.insert(integer) => return false,
            Some(_) if integers.len() as u64 <= entries_max => return true,
            _ => {}
        }
        // A member that is no integer, or one integer too many, which then is in there already.
        let mut table = MemberTable::from_intset(integers, recipe.hasher);
        table.add(member);
        *self = Self::Table(Box::new(table));
        true
    }

    /// Removes a member; whether it was there.
    pub fn remove(&mut self, member: &[u8]) -> bool {
        match self {
            Self::Integers(integers) => {
                parse_i64(member).is_some_and(|integer| integers.remove(integer))
            }
            Self::Table(members) => members.remove(member),
        }
    }

    /// Every member once: integers ascending, a table in its own order.
    pub fn iter(&self) -> impl Iterator<Item = MemberRef<'_>> {
        let (integers, members) = match self {
            Self::Integers(integers) => (Some(integers.iter().map(MemberRef::Integer)), None),
            Self::Table(members) => (None, Some(members.table.iter())),
        };
        integers.into_iter().flatten().chain(members.into_iter().flatten())
    }

    /// A member chosen evenly by 64 random bits; `None` if the set is empty.
    pub fn random(&self, word: u64) -> Option<MemberRef<'_>> {
        match self {
            Self::Integers(integers) => {
                let index = (u128::from(word) * integers.len() as u128) >> 64;
                integers.get(index as usize).map(MemberRef::Integer)
            }
            Self::Table(members) => members.table.random(word),
        }
    }

    /// Visits about `count` members from `cursor` on and returns the cursor to go on with, as
    /// [`Table::scan`]; an intset is visited as a whole.
    pub fn scan<'s>(
        &'s self,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(MemberRef<'s>),
    ) -> u64 {
        match self {
            Self::Integers(integers) => {
                integers.iter().for_each(|integer| visit(MemberRef::Integer(integer)));
                0
            }
            Self::Table(members) => members.table.scan(cursor, count, visit),
        }
    }
}

impl MemberTable {
    /// Moves what `mover` takes of up to `buckets_max` buckets: see [`Table::move_blocks`].
    pub(crate) fn move_blocks(
        &mut self,
        from: u64,
        buckets_max: usize,
        mover: &mut Mover<'_>,
    ) -> Option<u64> {
        self.table.move_blocks(from, buckets_max, mover, |_, _| {})
    }

    #[cfg(test)]
    pub(crate) fn lookup_steps(&self) -> u64 {
        self.table.lookup_steps()
    }

    fn new(hasher: KeyHasher) -> Self {
        Self { table: Table::new(hasher), member_bytes: 0 }
    }

    fn from_intset(integers: &Intset, hasher: KeyHasher) -> Self {
        let mut table = Self::new(hasher);
        for integer in integers.iter() {
            let member = Member::of_integer(integer);
            let hash = hasher.hash(itoa::Buffer::new().format(integer).as_bytes());
            table.insert_new(hash, member);
        }
        table
    }

    fn contains(&self, member: &[u8]) -> bool {
        self.table.contains(self.table.hasher().hash(member), member)
    }

    fn add(&mut self, member: &[u8]) -> bool {
        let hash = self.table.hasher().hash(member);
        let is_new = !self.table.contains(hash, member);
        if is_new {
            self.insert_new(hash, Member::new(member));
        }
        is_new
    }

    fn insert_new(&mut self, hash: u64, member: Member) {
        self.member_bytes += member.as_ref().allocated_bytes();
        self.table.insert_new(hash, member);
    }

    fn remove(&mut self, member: &[u8]) -> bool {
        let removed = self.table.remove(self.table.hasher().hash(member), member);
        self.member_bytes -= removed.as_ref().map_or(0, |it| it.as_ref().allocated_bytes());
        removed.is_some()
    }
}

impl MemberTable {
    fn copied(&self, work: &Work) -> Self {
        let hasher = *self.table.hasher();
        let mut copy = Self::new(hasher);
        let mut buffer = structures::MemberBuffer::new();
        for member in self.table.iter() {
            work.step();
            let bytes = member.bytes(&mut buffer);
            copy.insert_new(hasher.hash(bytes), Member::new(bytes));
        }
        copy
    }
}
