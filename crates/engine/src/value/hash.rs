//! Hashes: a listpack of fields and values while small, then a table.
//!
//! As in Redis 7.0 the thresholds are looked at when a field is set, and a hash never goes back to
//! the smaller form. A hash of which some field expires has a form of its own, in either size: it
//! knows which fields go next. It turns into the plain form with its last expiry, so hashes that
//! have none pay nothing for those that do.
//!
//! ```text
//!           first expiry              Pack        field, value, field, value …
//!  Pack  ◀───────────────▶ TimedPack  TimedPack   field, value, time or 0, field …
//!    │      last expiry       │       Table       fields by name
//!    ▼                        ▼       TimedTable  the same, and when which of them expires
//!  Table ◀───────────────▶ TimedTable
//! ```

mod as_value;
mod seen;
mod table;
#[cfg(test)]
mod tests;
mod timed;

pub use seen::Seen;
use table::FieldTable;
use timed::{TimedPack, TimedTable};

use crate::refusal::Refusal;
use crate::value::{EntryRef, Recipe, Value, not_of};
use structures::entry::ValueRef;
use structures::listpack::Item;
use structures::{Field, FieldRef, KeyHasher, Listpack, Table};

/// A hash that knows its bytes without counting.
pub enum Hash {
    /// Fields and values alternate, in the order in which the fields came.
    Pack(Listpack),
    /// Boxed, so that small values do not pay for the size of a table.
    Table(Box<FieldTable>),
    /// A listpack of which at least one field expires.
    TimedPack(Box<TimedPack>),
    /// A table of which at least one field expires.
    TimedTable(Box<TimedTable>),
}

/// A field or a value, as it is stored.
pub type Text<'a> = Item<'a>;

/// A field, its value and its expiry (Unix time in milliseconds).
pub type Timed<'a> = (Text<'a>, Text<'a>, Option<i64>);

/// An empty hash. The first field decides its encoding.
pub fn create(_: &Recipe<'_>) -> Value {
    Value::Hash(Hash::new())
}

/// The hash in an entry.
///
/// # Errors
/// WRONGTYPE if the entry holds another type.
pub fn of(entry: EntryRef<'_>) -> Result<&Hash, Refusal> {
    match entry.value() {
        ValueRef::Boxed(Value::Hash(hash)) => Ok(hash),
        _ => Err(not_of(entry, "hash")),
    }
}

/// The earliest expiry of an entry's fields; `None` if it is no hash, or no field expires. Known of
/// a hash that is not in memory, too.
#[inline]
pub(crate) fn next_expiry(entry: EntryRef<'_>) -> Option<i64> {
    match entry.value() {
        ValueRef::Boxed(Value::Hash(hash)) => hash.next_expiry(),
        ValueRef::Cold(cold) => cold.due,
        _ => None,
    }
}

/// The hash in a value that is to change.
///
/// # Errors
/// WRONGTYPE if the value is of another type.
pub fn of_mut(value: &mut Value) -> Result<&mut Hash, Refusal> {
    match value {
        Value::Hash(hash) => Ok(hash),
        _ => Err(Refusal::WRONG_TYPE),
    }
}

impl Default for Hash {
    fn default() -> Self {
        Self::new()
    }
}

impl Hash {
    pub fn new() -> Self {
        Self::Pack(Listpack::new())
    }

    /// A listpack read from a snapshot, as it is: an even number of elements, no field twice.
    pub fn from_listpack(pack: Listpack) -> Self {
        Self::Pack(pack)
    }

    /// An empty hash that is a table already: what a snapshot says is one stays one.
    pub fn empty_table(hasher: KeyHasher) -> Self {
        Self::Table(Box::new(FieldTable::new(hasher)))
    }

    /// The table, if it is one.
    pub(crate) fn table(&self) -> Option<&Table<Field>> {
        match self {
            Self::Pack(_) | Self::TimedPack(_) => None,
            Self::Table(fields) => Some(&fields.table),
            Self::TimedTable(timed) => Some(&timed.fields().table),
        }
    }

    /// The number of fields, due ones included.
    pub fn len(&self) -> usize {
        match self {
            Self::Pack(pack) => pack.len() / 2,
            Self::Table(fields) => fields.table.len(),
            Self::TimedPack(timed) => timed.len(),
            Self::TimedTable(timed) => timed.fields().table.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Pack(pack) => pack.is_empty(),
            Self::Table(fields) => fields.table.is_empty(),
            Self::TimedPack(timed) => timed.is_empty(),
            Self::TimedTable(timed) => timed.fields().table.is_empty(),
        }
    }

    /// Whether its fields are in one listpack: then iterating over all of them is cheap.
    pub fn is_packed(&self) -> bool {
        matches!(self, Self::Pack(_) | Self::TimedPack(_))
    }

    /// The value of a field, also of one that is due.
    pub fn get(&self, field: &[u8]) -> Option<Text<'_>> {
        match self {
            Self::Pack(pack) => {
                let value = pack.next(pack.find(field, 1)?)?;
                Some(pack.at(value))
            }
            Self::Table(fields) => fields.find(field).map(value_of),
            Self::TimedPack(timed) => timed.get(field).map(|(value, _)| value),
            Self::TimedTable(timed) => timed.fields().find(field).map(value_of),
        }
    }

    pub fn contains(&self, field: &[u8]) -> bool {
        match self {
            Self::Pack(pack) => pack.find(field, 1).is_some(),
            Self::Table(fields) => fields.find(field).is_some(),
            Self::TimedPack(timed) => timed.get(field).is_some(),
            Self::TimedTable(timed) => timed.fields().find(field).is_some(),
        }
    }

    /// A field's expiry, as a Unix time in milliseconds: `None` if there is no such field,
    /// `Some(None)` if it does not expire.
    pub fn expire_at(&self, field: &[u8]) -> Option<Option<i64>> {
        match self {
            Self::Pack(_) | Self::Table(_) => self.contains(field).then_some(None),
            Self::TimedPack(timed) => timed.get(field).map(|(_, at)| at),
            Self::TimedTable(timed) => timed.fields().find(field).map(FieldRef::expire_at),
        }
    }

    /// The earliest expiry of its fields; `None` if no field expires.
    #[inline]
    pub fn next_expiry(&self) -> Option<i64> {
        match self {
            Self::Pack(_) | Self::Table(_) => None,
            Self::TimedPack(timed) => timed.next_expiry(),
            Self::TimedTable(timed) => timed.next_expiry(),
        }
    }

    /// Whether every field is due by this Unix time in milliseconds.
    pub fn is_all_due(&self, by: i64) -> bool {
        match self {
            Self::Pack(_) | Self::Table(_) => false,
            Self::TimedPack(timed) => timed.is_all_due(by),
            Self::TimedTable(timed) => timed.is_all_due(by),
        }
    }

    /// The names of up to `count` fields that are due by this Unix time in milliseconds.
    pub fn due(&self, by: i64, count: usize) -> Vec<Vec<u8>> {
        match self {
            Self::Pack(_) | Self::Table(_) => Vec::new(),
            Self::TimedPack(timed) => timed.due(by, count),
            Self::TimedTable(timed) => timed.due(by, count),
        }
    }

    /// Gives a field a value and changes to the encoding that the hash now needs; whether the
    /// field is new. It expires no longer.
    pub fn set(&mut self, field: &[u8], value: &[u8], recipe: &Recipe<'_>) -> bool {
        let pack = match self {
            Self::Table(fields) => return fields.set(field, value),
            Self::Pack(pack) => pack,
            Self::TimedPack(_) | Self::TimedTable(_) => {
                return self.set_expiring(field, value, None, recipe);
            }
        };
        if !fits_pack(pack, field, value, recipe) {
            return self.make_table(recipe.hasher).set(field, value);
        }
        let is_new = set_in_pack(pack, field, value);
        if (pack.len() / 2) as u64 > recipe.settings.hash_max_listpack_entries {
            self.make_table(recipe.hasher);
        }
        is_new
    }

    /// As [`Self::set`], with an expiry: a Unix time in milliseconds, or never.
    pub fn set_expiring(
        &mut self,
        field: &[u8],
        value: &[u8],
        expire_at: Option<i64>,
        recipe: &Recipe<'_>,
    ) -> bool {
        if let Self::TimedPack(timed) = self
            && !fits_pack(timed.pack(), field, value, recipe)
        {
            *self = Self::TimedTable(Box::new(timed.to_table(recipe)));
        }
        let is_new = match self {
            Self::Pack(_) | Self::Table(_) => self.set(field, value, recipe),
            Self::TimedPack(timed) => {
                let is_new = timed.set(field, value);
                if timed.len() as u64 > recipe.settings.hash_max_listpack_entries {
                    *self = Self::TimedTable(Box::new(timed.to_table(recipe)));
                }
                is_new
            }
            Self::TimedTable(timed) => timed.set(field, value),
        };
        self.expire(field, expire_at, recipe);
        is_new
    }

    /// Sets a field's expiry: a Unix time in milliseconds, or never. Returns whether that changed
    /// anything: the field exists, and has or gets an expiry.
    pub fn expire(&mut self, field: &[u8], expire_at: Option<i64>, recipe: &Recipe<'_>) -> bool {
        // 0 means no expiry in a listpack, so the smallest time is 1.
        let expire_at = expire_at.map(|at| at.max(1));
        let Some(before) = self.expire_at(field) else { return false };
        if before.is_none() && expire_at.is_none() {
            return false;
        }
        self.make_timed(recipe);
        match self {
            Self::Pack(_) | Self::Table(_) => {}
            Self::TimedPack(timed) => timed.expire(field, expire_at),
            Self::TimedTable(timed) => timed.expire(field, expire_at),
        }
        self.make_plain();
        true
    }

    /// Removes a field; whether it was there.
    pub fn remove(&mut self, field: &[u8]) -> bool {
        match self {
            Self::Pack(pack) => {
                let found = pack.find(field, 1);
                if let Some(cursor) = found {
                    pack.remove(cursor, 2);
                }
                found.is_some()
            }
            Self::Table(fields) => fields.remove(field).is_some(),
            Self::TimedPack(timed) => {
                let removed = timed.remove(field);
                self.make_plain();
                removed
            }
            Self::TimedTable(timed) => {
                let removed = timed.remove(field);
                self.make_plain();
                removed
            }
        }
    }

    /// Every field with its value: a listpack in its order, a table in its own.
    pub fn iter(&self) -> impl Iterator<Item = (Text<'_>, Text<'_>)> {
        let (pack, timed) = match self {
            Self::Pack(pack) => (Some(pairs(pack)), None),
            Self::TimedPack(timed) => (None, Some(timed.iter())),
            Self::Table(_) | Self::TimedTable(_) => (None, None),
        };
        let timed = timed.into_iter().flatten().map(|(field, value, _)| (field, value));
        let fields = self.table().into_iter().flat_map(Table::iter);
        let fields = fields.map(|field| (Item::Bytes(field.name()), value_of(field)));
        pack.into_iter().flatten().chain(timed).chain(fields)
    }

    /// As [`Self::iter`], with the expiry of each field.
    pub fn iter_timed(&self) -> impl Iterator<Item = Timed<'_>> {
        let (pack, timed) = match self {
            Self::Pack(pack) => (Some(pairs(pack)), None),
            Self::TimedPack(timed) => (None, Some(timed.iter())),
            Self::Table(_) | Self::TimedTable(_) => (None, None),
        };
        let pack = pack.into_iter().flatten().map(|(field, value)| (field, value, None));
        let fields = self.table().into_iter().flat_map(Table::iter).map(timed_of);
        pack.chain(timed.into_iter().flatten()).chain(fields)
    }

    /// A field chosen evenly by 64 random bits, with its value; `None` if the hash is empty.
    pub fn random(&self, word: u64) -> Option<(Text<'_>, Text<'_>)> {
        let (pack, width) = match self {
            Self::Pack(pack) => (pack, 2),
            Self::TimedPack(timed) => (timed.pack(), timed::WIDTH),
            Self::Table(_) | Self::TimedTable(_) => {
                let field = self.table()?.random(word)?;
                return Some((Item::Bytes(field.name()), value_of(field)));
            }
        };
        let index = (u128::from(word) * (pack.len() / width) as u128) >> 64;
        let field = pack.seek(width * index as usize)?;
        Some((pack.at(field), pack.at(pack.next(field)?)))
    }

    /// Visits about `count` fields from `cursor` on and returns the cursor to go on with, as
    /// [`Table::scan`]; a listpack is visited as a whole.
    pub fn scan<'h>(&'h self, cursor: u64, count: usize, mut visit: impl FnMut(Timed<'h>)) -> u64 {
        match self.table() {
            Some(table) => table.scan(cursor, count, |field| visit(timed_of(field))),
            None => {
                self.iter_timed().for_each(visit);
                0
            }
        }
    }

    /// Turns the hash into a table, unless it is one. No field of it may expire.
    fn make_table(&mut self, hasher: KeyHasher) -> &mut FieldTable {
        if let Self::Pack(pack) = self {
            let mut fields = FieldTable::new(hasher);
            for (field, value) in pairs(pack) {
                fields.set(&field.to_vec(), &value.to_vec());
            }
            *self = Self::Table(Box::new(fields));
        }
        match self {
            Self::Table(fields) => fields,
            _ => unreachable!("it has just become a table"),
        }
    }

    /// Takes the form with field expiries, unless the hash has it.
    fn make_timed(&mut self, recipe: &Recipe<'_>) {
        if let Self::Pack(pack) = self
            && !pack.fits(timed::room_for(pack.len() / 2))
        {
            self.make_table(recipe.hasher);
        }
        match self {
            Self::Pack(pack) => *self = Self::TimedPack(Box::new(TimedPack::of(pairs(pack)))),
            Self::Table(fields) => {
                let empty = Box::new(FieldTable::new(recipe.hasher));
                let fields = std::mem::replace(fields, empty);
                *self = Self::TimedTable(Box::new(TimedTable::of(fields)));
            }
            Self::TimedPack(_) | Self::TimedTable(_) => {}
        }
    }

    /// Takes the form of a table in which fields expire.
    pub(crate) fn make_timed_table(&mut self, recipe: &Recipe<'_>) {
        self.make_timed(recipe);
        if let Self::TimedPack(timed) = self {
            *self = Self::TimedTable(Box::new(timed.to_table(recipe)));
        }
    }

    /// Takes the plain form if no field expires.
    fn make_plain(&mut self) {
        if self.next_expiry().is_some() {
            return;
        }
        match self {
            Self::TimedPack(timed) => *self = Self::Pack(timed.to_pairs()),
            Self::TimedTable(timed) => *self = Self::Table(timed.take_fields()),
            Self::Pack(_) | Self::Table(_) => {}
        }
    }
}

/// Whether a field with its value may be added to a listpack.
fn fits_pack(pack: &Listpack, field: &[u8], value: &[u8], recipe: &Recipe<'_>) -> bool {
    let text_max = recipe.settings.hash_max_listpack_value;
    field.len().max(value.len()) as u64 <= text_max && pack.fits(field.len() + value.len())
}

fn value_of(field: FieldRef<'_>) -> Text<'_> {
    Item::Bytes(field.value())
}

fn timed_of(field: FieldRef<'_>) -> Timed<'_> {
    (Item::Bytes(field.name()), Item::Bytes(field.value()), field.expire_at())
}

fn pairs(pack: &Listpack) -> impl Iterator<Item = (Text<'_>, Text<'_>)> {
    let mut items = pack.iter();
    std::iter::from_fn(move || Some((items.next()?, items.next()?)))
}

fn set_in_pack(pack: &mut Listpack, field: &[u8], value: &[u8]) -> bool {
    let found = pack.find(field, 1).and_then(|cursor| pack.next(cursor));
    match found {
        Some(cursor) => pack.replace(cursor, value),
        None => {
            pack.push_back(field);
            pack.push_back(value);
        }
    }
    found.is_none()
}
