//! Lists: always a quicklist, short ones too.
//!
//! Redis 7.0 has no other encoding for a list (the small listpack came with 7.2), so OBJECT
//! ENCODING says `quicklist` whatever the list holds.

mod as_value;

pub(crate) use as_value::{NODE_PACKED, NODE_PLAIN};

use crate::effect::End;
use crate::refusal::Refusal;
use crate::value::{EntryRef, Recipe, Value, not_of};
use structures::entry::ValueRef;
use structures::listpack::Item;
use structures::quicklist::{self, NodeLimits, Quicklist};

/// From this many bytes on, an element is a node of its own: what a listpack bears (Redis's
/// packed threshold).
const PLAIN_BYTES_MIN: u32 = 1 << 30;

/// An empty list. Its node size is fixed now: a changed setting holds for new lists, as in Redis.
pub fn create(recipe: &Recipe<'_>) -> Value {
    let limits = NodeLimits::new(recipe.settings.list_max_listpack_size, PLAIN_BYTES_MIN);
    Value::List(Box::new(Quicklist::new(limits)))
}

/// The list in an entry.
///
/// # Errors
/// WRONGTYPE if the entry holds another type.
pub fn of(entry: EntryRef<'_>) -> Result<&Quicklist, Refusal> {
    match entry.value() {
        ValueRef::Boxed(Value::List(list)) => Ok(list),
        _ => Err(not_of(entry, "list")),
    }
}

/// The list in a value that is to change.
///
/// # Errors
/// WRONGTYPE if the value is of another type.
pub fn of_mut(value: &mut Value) -> Result<&mut Quicklist, Refusal> {
    match value {
        Value::List(list) => Ok(list),
        _ => Err(Refusal::WRONG_TYPE),
    }
}

/// Appends an element as a bulk string.
pub fn reply_item(item: Item<'_>, reply: &mut resp::Reply) {
    match item {
        Item::Bytes(bytes) => reply.bulk(bytes),
        Item::Integer(integer) => reply.bulk_integer(integer),
    }
}

impl From<End> for quicklist::End {
    fn from(end: End) -> Self {
        match end {
            End::Head => Self::Front,
            End::Tail => Self::Back,
        }
    }
}
