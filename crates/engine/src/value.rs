//! What a key can hold.
//!
//! Small strings and integers live inside the key's entry. Everything else is a boxed [`Value`]:
//! collections, and strings that grew large or are being appended to.

pub mod bits;
pub mod hash;
pub mod list;
pub mod set;
pub mod sorted;
pub mod text;

pub use hash::Hash;
pub use set::Set;
pub use sorted::Sorted;
pub use text::StringValue;

use crate::settings::Settings;
use crate::work::Work;
use structures::entry::ValueRef;
use structures::{KeyHasher, Quicklist};

/// One key: its name, its expiry, how recently it was used, its value.
pub type Entry = structures::Entry<Value>;

/// A key as its table lends it.
pub type EntryRef<'a> = structures::EntryRef<'a, Value>;

/// What new values are made with.
#[derive(Clone, Copy)]
pub struct Recipe<'a> {
    /// The thresholds that choose encodings.
    pub settings: &'a Settings,
    /// The hash of tables within values: the keyspace's own, with its secret seed.
    pub hasher: KeyHasher,
    /// Counts the elements that go into one.
    pub work: &'a Work,
}

/// A value that lives outside its entry.
pub enum Value {
    /// A string that is long or grows: it has room to grow in place.
    Text(Vec<u8>),
    /// Boxed once more, so that small values of other types do not pay for its size.
    List(Box<Quicklist>),
    Set(Set),
    Hash(Hash),
    Sorted(Sorted),
}

impl Value {
    /// The boxed collection of an entry, `None` if it holds a string.
    pub fn of(entry: EntryRef<'_>) -> Option<&Self> {
        match entry.value() {
            ValueRef::Boxed(Self::Text(_)) | ValueRef::Bytes(_) | ValueRef::Integer(_) => None,
            ValueRef::Boxed(value) => Some(value),
        }
    }

    /// The same once more, for another key.
    pub fn copied(&self, work: &Work) -> Self {
        match self {
            Self::Text(text) => {
                work.bytes(text.len());
                Self::Text(text.clone())
            }
            // Nodes are copied whole, a gigabyte in some tenths of a second.
            Self::List(list) => {
                work.bytes(list.allocated_bytes());
                Self::List(list.clone())
            }
            Self::Set(set) => Self::Set(set.copied(work)),
            Self::Hash(hash) => Self::Hash(hash.copied(work)),
            Self::Sorted(sorted) => Self::Sorted(sorted.copied(work)),
        }
    }

    /// Whether a collection has lost its last element: its key then goes.
    pub fn is_empty(&self) -> bool {
        match self {
            Self::Text(_) => false,
            Self::List(list) => list.is_empty(),
            Self::Set(set) => set.is_empty(),
            Self::Hash(hash) => hash.is_empty(),
            Self::Sorted(sorted) => sorted.is_empty(),
        }
    }

    /// The type as TYPE names it.
    pub fn type_name(&self) -> &'static str {
        match self {
            Self::Text(_) => "string",
            Self::List(_) => "list",
            Self::Set(_) => "set",
            Self::Hash(_) => "hash",
            Self::Sorted(_) => "zset",
        }
    }

    /// The encoding as OBJECT ENCODING names it.
    pub fn encoding(&self) -> &'static str {
        match self {
            Self::Text(_) => "raw",
            Self::List(_) => list::ENCODING,
            Self::Set(set) => set.encoding(),
            Self::Hash(hash) => hash.encoding(),
            Self::Sorted(sorted) => sorted.encoding(),
        }
    }

    /// Bytes that the value occupies, its own allocation included.
    pub fn allocated_bytes(&self) -> usize {
        let inside = match self {
            Self::Text(text) => text.capacity(),
            Self::List(list) => size_of::<Quicklist>() + list.allocated_bytes(),
            Self::Set(set) => set.allocated_bytes(),
            Self::Hash(hash) => hash.allocated_bytes(),
            Self::Sorted(sorted) => sorted.allocated_bytes(),
        };
        size_of::<Self>() + inside
    }

    /// A measure of the work to free it: large values are freed on a background thread.
    pub fn elements(&self) -> usize {
        match self {
            Self::Text(_) => 1,
            Self::List(list) => list.len(),
            Self::Set(set) => set.len(),
            Self::Hash(hash) => hash.len(),
            Self::Sorted(sorted) => sorted.len(),
        }
    }
}

/// The type of a key that can serve a blocked command. It goes on waiting while its keys hold
/// others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awaited {
    List,
    SortedSet,
}

/// The type of an entry's value as TYPE names it.
pub fn type_name(entry: EntryRef<'_>) -> &'static str {
    match entry.value() {
        ValueRef::Boxed(value) => value.type_name(),
        ValueRef::Bytes(_) | ValueRef::Integer(_) => "string",
    }
}

/// The encoding of an entry's value as OBJECT ENCODING names it.
pub fn encoding(entry: EntryRef<'_>) -> &'static str {
    match entry.value() {
        ValueRef::Boxed(value) => value.encoding(),
        ValueRef::Integer(_) => "int",
        ValueRef::Bytes(bytes) if bytes.len() <= text::EMBSTR_BYTES_MAX => "embstr",
        ValueRef::Bytes(_) => "raw",
    }
}

/// Bytes an entry and its boxed value occupy.
pub(crate) fn entry_bytes(entry: EntryRef<'_>) -> usize {
    let boxed = match entry.value() {
        ValueRef::Boxed(value) => value.allocated_bytes(),
        _ => 0,
    };
    entry.allocated_bytes() + boxed
}
