//! Hashes: a listpack of fields and values while small, then a table.
//!
//! As in Redis 7.0 the thresholds are looked at when a field is set, and a hash never goes back to
//! the smaller form.

mod as_value;
#[cfg(test)]
mod tests;

use crate::refusal::Refusal;
use crate::value::{EntryRef, Recipe, Value};
use crate::work::Work;
use structures::entry::ValueRef;
use structures::listpack::Item;
use structures::{Field, KeyHasher, Listpack, Table};

/// A hash that knows its bytes without counting.
pub enum Hash {
    /// Fields and values alternate, in the order in which the fields came.
    Pack(Listpack),
    /// Boxed, so that small values do not pay for the size of a table.
    Table(Box<FieldTable>),
}

/// A table of fields and the sum of their blocks.
pub struct FieldTable {
    table: Table<Field>,
    /// Bytes behind the table's slots.
    field_bytes: usize,
}

/// A field or a value, as it is stored.
pub type Text<'a> = Item<'a>;

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
        _ => Err(Refusal::WRONG_TYPE),
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
            Self::Pack(_) => None,
            Self::Table(fields) => Some(&fields.table),
        }
    }

    /// How many fields there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Pack(pack) => pack.len() / 2,
            Self::Table(fields) => fields.table.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Pack(pack) => pack.is_empty(),
            Self::Table(fields) => fields.table.is_empty(),
        }
    }

    /// The value of a field.
    pub fn get(&self, field: &[u8]) -> Option<Text<'_>> {
        match self {
            Self::Pack(pack) => {
                let value = pack.next(pack.find(field, 1)?)?;
                Some(pack.at(value))
            }
            Self::Table(fields) => {
                let hash = fields.table.hasher().hash(field);
                fields.table.find(hash, field).map(|found| Item::Bytes(found.value()))
            }
        }
    }

    pub fn contains(&self, field: &[u8]) -> bool {
        match self {
            Self::Pack(pack) => pack.find(field, 1).is_some(),
            Self::Table(fields) => fields.table.contains(fields.table.hasher().hash(field), field),
        }
    }

    /// Gives a field a value and changes to the encoding that the hash now needs; whether the
    /// field is new.
    pub fn set(&mut self, field: &[u8], value: &[u8], recipe: &Recipe<'_>) -> bool {
        let pack = match self {
            Self::Table(fields) => return fields.set(field, value),
            Self::Pack(pack) => pack,
        };
        let text_max = recipe.settings.hash_max_listpack_value;
        if field.len().max(value.len()) as u64 > text_max || !pack.fits(field.len() + value.len()) {
            return self.make_table(recipe.hasher).set(field, value);
        }
        let is_new = set_in_pack(pack, field, value);
        if (pack.len() / 2) as u64 > recipe.settings.hash_max_listpack_entries {
            self.make_table(recipe.hasher);
        }
        is_new
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
            Self::Table(fields) => fields.remove(field),
        }
    }

    /// Every field with its value: a listpack in its order, a table in its own.
    pub fn iter(&self) -> impl Iterator<Item = (Text<'_>, Text<'_>)> {
        let (pack, fields) = match self {
            Self::Pack(pack) => (Some(pairs(pack)), None),
            Self::Table(fields) => (None, Some(fields.table.iter())),
        };
        let fields = fields.into_iter().flatten();
        let fields = fields.map(|field| (Item::Bytes(field.name()), Item::Bytes(field.value())));
        pack.into_iter().flatten().chain(fields)
    }

    /// A field chosen evenly by 64 random bits, with its value; `None` if the hash is empty.
    pub fn random(&self, word: u64) -> Option<(Text<'_>, Text<'_>)> {
        match self {
            Self::Pack(pack) => {
                let index = (u128::from(word) * (pack.len() / 2) as u128) >> 64;
                let field = pack.seek(2 * index as usize)?;
                Some((pack.at(field), pack.at(pack.next(field)?)))
            }
            Self::Table(fields) => {
                let field = fields.table.random(word)?;
                Some((Item::Bytes(field.name()), Item::Bytes(field.value())))
            }
        }
    }

    /// Visits about `count` fields from `cursor` on and returns the cursor to go on with, as
    /// [`Table::scan`]; a listpack is visited as a whole.
    pub fn scan<'h>(
        &'h self,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(Text<'h>, Text<'h>),
    ) -> u64 {
        match self {
            Self::Pack(pack) => {
                pairs(pack).for_each(|(field, value)| visit(field, value));
                0
            }
            Self::Table(fields) => fields.table.scan(cursor, count, |field| {
                visit(Item::Bytes(field.name()), Item::Bytes(field.value()));
            }),
        }
    }

    /// Turns the hash into a table, unless it is one.
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
            Self::Pack(_) => unreachable!("it has just become a table"),
        }
    }
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

impl FieldTable {
    #[cfg(test)]
    pub(crate) fn lookup_steps(&self) -> u64 {
        self.table.lookup_steps()
    }

    fn new(hasher: KeyHasher) -> Self {
        Self { table: Table::new(hasher), field_bytes: 0 }
    }

    fn set(&mut self, name: &[u8], value: &[u8]) -> bool {
        let hash = self.table.hasher().hash(name);
        let Some(mut found) = self.table.find_mut(hash, name) else {
            let field = Field::new(name, value);
            self.field_bytes += field.as_ref().allocated_bytes();
            self.table.insert_new(hash, field);
            return true;
        };
        // In place, the block keeps its size class and so its bytes.
        if !found.as_mut().set_value_in_place(value) {
            let field = Field::new(name, value);
            self.field_bytes += field.as_ref().allocated_bytes();
            let old = found.replace(field);
            self.field_bytes -= old.as_ref().allocated_bytes();
        }
        false
    }

    fn remove(&mut self, name: &[u8]) -> bool {
        let removed = self.table.remove(self.table.hasher().hash(name), name);
        self.field_bytes -= removed.as_ref().map_or(0, |field| field.as_ref().allocated_bytes());
        removed.is_some()
    }
}

impl FieldTable {
    fn copied(&self, work: &Work) -> Self {
        let mut copy = Self::new(*self.table.hasher());
        for field in self.table.iter() {
            work.step();
            copy.set(field.name(), field.value());
        }
        copy
    }
}
