//! What a key can hold.
//!
//! Small strings and integers live inside the key's entry. Everything else is a boxed [`Value`]:
//! collections, and strings that grew large or are being appended to.

pub(crate) mod bits;
pub(crate) mod content;
pub(crate) mod growing;
pub(crate) mod hash;
pub(crate) mod list;
mod moving;
mod older;
pub(crate) mod set;
pub(crate) mod sorted;
pub(crate) mod stored;
pub mod stream;
pub mod text;
mod value_type;

pub use hash::Hash;
pub use set::Set;
pub use sorted::Sorted;
pub use stream::Stream;
pub use text::StringValue;
pub(crate) use value_type::{Element, ValueType};

use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::work::Work;
use std::convert::Infallible;
use structures::entry::ValueRef;
use structures::heap::ByteVec;
use structures::{KeyHasher, Quicklist};

/// One key: its name, its expiry, how recently it was used, its value.
pub type Entry = structures::Entry<Value>;

/// A key as its table lends it.
pub type EntryRef<'a> = structures::EntryRef<'a, Value>;
pub(crate) type EntryMut<'a> = structures::EntryMut<'a, Value>;

/// The parameters with which values are made.
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
    Text(ByteVec),
    /// Boxed once more, so that small values of other types do not pay for its size.
    List(Box<Quicklist>),
    Set(Set),
    Hash(Hash),
    Sorted(Sorted),
    /// Boxed for the same reason as a list.
    Stream(Box<Stream>),
}

/// Does the same with a value of each type. The types are listed here and in [`Value`].
macro_rules! each_type {
    ($value:expr, $it:ident => $body:expr) => {
        match $value {
            Value::Text($it) => $body,
            Value::List($it) => $body,
            Value::Set($it) => $body,
            Value::Hash($it) => $body,
            Value::Sorted($it) => $body,
            Value::Stream($it) => $body,
        }
    };
}

pub(crate) use each_type;

impl Value {
    /// The boxed collection of an entry, `None` if it holds a string, or what is not in memory.
    pub fn of(entry: EntryRef<'_>) -> Option<&Self> {
        match entry.value() {
            ValueRef::Boxed(Self::Text(_)) | ValueRef::Bytes(_) | ValueRef::Integer(_) => None,
            ValueRef::Cold(_) => None,
            ValueRef::Boxed(value) => Some(value),
        }
    }

    /// How many elements clients are told that a collection has.
    pub(crate) fn elements_shown(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::List(list) => list.len(),
            Self::Set(set) => set.len(),
            Self::Hash(hash) => hash.len(),
            Self::Sorted(sorted) => sorted.len(),
            Self::Stream(stream) => stream.len() as usize,
        }
    }

    /// The same once more, for another key.
    pub fn copied(&self, work: &Work) -> Self {
        match self {
            Self::Text(text) => Self::Text(ValueType::copied(text, work)),
            Self::List(list) => Self::List(ValueType::copied(list, work)),
            Self::Set(set) => Self::Set(set.copied(work)),
            Self::Hash(hash) => Self::Hash(hash.copied(work)),
            Self::Sorted(sorted) => Self::Sorted(sorted.copied(work)),
            Self::Stream(stream) => Self::Stream(stream.copied(work)),
        }
    }

    /// Whether a collection has lost its last element: its key then goes.
    pub fn is_empty(&self) -> bool {
        each_type!(self, value => ValueType::is_empty(value))
    }

    /// The type as TYPE names it.
    pub fn type_name(&self) -> &'static str {
        each_type!(self, value => ValueType::type_name(value))
    }

    /// Redis's number of the type, which its digests begin with.
    pub(crate) fn type_number(&self) -> u32 {
        each_type!(self, value => ValueType::type_number(value))
    }

    /// What commands wait for that the value serves.
    pub(crate) fn serves(&self) -> Option<Awaited> {
        each_type!(self, value => ValueType::serves(value))
    }

    /// The encoding as OBJECT ENCODING names it.
    pub fn encoding(&self) -> &'static str {
        each_type!(self, value => ValueType::encoding(value))
    }

    /// Bytes that the value occupies, its own allocation included.
    pub fn allocated_bytes(&self) -> usize {
        size_of::<Self>() + each_type!(self, value => ValueType::allocated_bytes(value))
    }

    /// A measure of the work to free it: large values are freed on a background thread.
    pub fn elements(&self) -> usize {
        each_type!(self, value => ValueType::elements(value))
    }

    /// Hands every element to `visit`, until it fails.
    ///
    /// # Errors
    /// That of `visit`.
    pub(crate) fn try_each<E>(
        &self,
        visit: impl FnMut(Element<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        each_type!(self, value => value.try_each(visit))
    }

    /// Hands every element to `visit`.
    pub(crate) fn each(&self, mut visit: impl FnMut(Element<'_>)) {
        let Ok(()) = self.try_each(|element| {
            visit(element);
            Ok::<(), Infallible>(())
        });
    }
}

/// The type of a key that can serve a blocked command. It goes on waiting while its keys hold
/// others.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Awaited {
    List,
    SortedSet,
    Stream,
    /// A consumer group of a stream. A client that waits for one is also woken when its key is
    /// deleted or changes its type.
    Group,
}

impl Awaited {
    /// Whether a client that waits for this is to look at a key that serves `what` (`None`: the key
    /// is absent or serves nothing).
    pub fn is_concerned(self, what: Option<Self>) -> bool {
        self == Self::Group || what == Some(self)
    }
}

/// The type of an entry's value as TYPE names it.
pub fn type_name(entry: EntryRef<'_>) -> &'static str {
    match entry.value() {
        ValueRef::Boxed(value) => value.type_name(),
        ValueRef::Bytes(_) | ValueRef::Integer(_) => "string",
        ValueRef::Cold(_) => content::tag_is(entry.tag()).0,
    }
}

/// What blocked clients can be served by an entry.
pub(crate) fn serves(entry: EntryRef<'_>) -> Option<Awaited> {
    match entry.value() {
        ValueRef::Boxed(value) => value.serves(),
        ValueRef::Bytes(_) | ValueRef::Integer(_) => None,
        ValueRef::Cold(_) => match type_name(entry) {
            "list" => Some(Awaited::List),
            "zset" => Some(Awaited::SortedSet),
            "stream" => Some(Awaited::Stream),
            _ => None,
        },
    }
}

/// Why an entry's value is not what a command wants, which is of this type: it is of another, or
/// not in memory, where no command should meet it.
#[cold]
pub(crate) fn not_of(entry: EntryRef<'_>, wanted: &str) -> Refusal {
    if !entry.is_cold() || type_name(entry) != wanted {
        return Refusal::WRONG_TYPE;
    }
    debug_assert!(false, "a command met a value that is not in memory");
    Refusal::NOT_IN_MEMORY
}

/// How many elements a collection that is not in memory has, or bytes a string, if that is known.
pub(crate) fn known_count(entry: EntryRef<'_>) -> Option<u16> {
    match entry.value() {
        ValueRef::Cold(cold) => {
            Some(cold.count).filter(|count| *count != structures::Cold::COUNT_UNKNOWN)
        }
        _ => None,
    }
}

/// The encoding of an entry's value as OBJECT ENCODING names it.
pub fn encoding(entry: EntryRef<'_>) -> &'static str {
    match entry.value() {
        ValueRef::Boxed(value) => value.encoding(),
        ValueRef::Integer(_) => "int",
        ValueRef::Bytes(bytes) if bytes.len() <= text::EMBSTR_BYTES_MAX => "embstr",
        ValueRef::Bytes(_) => "raw",
        ValueRef::Cold(cold) => match content::tag_is(entry.tag()).1 {
            "raw" if usize::from(cold.count) <= text::EMBSTR_BYTES_MAX => "embstr",
            encoding => encoding,
        },
    }
}

/// As [`Keyspace::is_past`], of a key whose value is in memory.
///
/// [`Keyspace::is_past`]: crate::keyspace::Keyspace::is_past
pub(crate) fn is_past_in_memory(entry: EntryRef<'_>, by: i64) -> bool {
    let is_all_due = |hash: &Hash| hash.is_all_due(by);
    entry.expire_at().is_some_and(|at| at <= by)
        || matches!(entry.value(), ValueRef::Boxed(Value::Hash(hash)) if is_all_due(hash))
}

/// Bytes an entry and its boxed value occupy.
pub fn entry_bytes(entry: EntryRef<'_>) -> usize {
    let boxed = match entry.value() {
        ValueRef::Boxed(value) => value.allocated_bytes(),
        _ => 0,
    };
    entry.allocated_bytes() + boxed
}
