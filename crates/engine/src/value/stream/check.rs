//! Validation of a listpack as a block of a stream: bytes from a file, a payload or the log are not
//! trusted. Everything that [`super::block`] relies on is checked here.

use crate::stream_id::StreamId;
use crate::work::Work;
use structures::Listpack;
use structures::listpack::{Item, Iter};

/// Flag: the entry was deleted.
pub(super) const DELETED: i64 = 1;
/// Flag: the entry has the fields of its block, and stores only values.
pub(super) const SAME_FIELDS: i64 = 2;

/// Checks a listpack from its first to its last element.
///
/// # Errors
/// What is wrong with it.
pub fn check(base: StreamId, pack: &Listpack, work: &Work) -> Result<(), &'static str> {
    const SHORT: &str = "a block of a stream that is cut off";
    let mut items = pack.iter();
    let count = number(&mut items)?;
    let deleted = number(&mut items)?;
    let own_fields = number(&mut items)?;
    skip(&mut items, own_fields, work)?;
    if number(&mut items)? != 0 {
        return Err("a block of a stream without the end of its head");
    }
    let slots = count.checked_add(deleted).ok_or(SHORT)?;
    let (mut found, mut last) = (0, None);
    for _ in 0..slots {
        let flags = integer(&mut items)?;
        if flags & !(DELETED | SAME_FIELDS) != 0 {
            return Err("an entry of a stream with unknown flags");
        }
        let is_deleted = flags & DELETED != 0;
        found += u64::from(is_deleted);
        let id = StreamId {
            millis: base.millis.wrapping_add(integer(&mut items)? as u64),
            sequence: base.sequence.wrapping_add(integer(&mut items)? as u64),
        };
        // Deleted entries may precede smaller IDs (`Stream::set_id`).
        if !is_deleted {
            if id < base || last.is_some_and(|last| id <= last) {
                return Err("entries of a stream that are not in the order of their IDs");
            }
            last = Some(id);
        }
        let elements = match flags & SAME_FIELDS {
            0 => {
                let fields = number(&mut items)?;
                skip(&mut items, fields.checked_mul(2).ok_or(SHORT)?, work)?;
                fields.checked_mul(2).and_then(|it| it.checked_add(4)).ok_or(SHORT)?
            }
            _ => {
                skip(&mut items, own_fields, work)?;
                own_fields.checked_add(3).ok_or(SHORT)?
            }
        };
        if number(&mut items)? != elements {
            return Err("an entry of a stream that does not know its length");
        }
    }
    match items.next() {
        Some(_) => Err("a block of a stream with more than its entries"),
        None if found != deleted => Err("a block of a stream that counts its entries wrong"),
        None => Ok(()),
    }
}

fn integer(items: &mut Iter<'_>) -> Result<i64, &'static str> {
    match items.next() {
        Some(Item::Integer(integer)) => Ok(integer),
        _ => Err("a block of a stream with a text where a number should stand"),
    }
}

fn number(items: &mut Iter<'_>) -> Result<u64, &'static str> {
    u64::try_from(integer(items)?).map_err(|_| "a block of a stream with a negative count")
}

fn skip(items: &mut Iter<'_>, count: u64, work: &Work) -> Result<(), &'static str> {
    for _ in 0..count {
        work.step();
        items.next().ok_or("a block of a stream that is cut off")?;
    }
    Ok(())
}
