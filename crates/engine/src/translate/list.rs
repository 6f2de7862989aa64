//! Translates effects that change a list at an index into Redis commands, of which only LSET goes
//! by an index. [`Feed`] uses it for what no handler has told itself.
//!
//! LINSERT and LREM tell themselves, so this is rare. But an effect must be told whoever it comes
//! from.

use crate::effect::{Effect, End};
use crate::feed::{Feed, Word};
use crate::keyspace::Keyspace;
use crate::value::Value;
use base::DatabaseId;
use structures::Quicklist;

impl Feed {
    /// Tells of a change of a list that joins no other.
    pub(super) fn tell_list(
        &mut self,
        keyspace: &Keyspace,
        database: DatabaseId,
        key: &[u8],
        effect: &Effect<'_>,
    ) {
        let name = Word::Text(key);
        match *effect {
            Effect::ListPop { end, count } => {
                let verb = if end == End::Head { b"LPOP" } else { b"RPOP" };
                self.say(database, &[Word::Text(verb), name, number(count)]);
            }
            Effect::ListSet { index, value } => {
                let words = [Word::Text(b"LSET"), name, number(index), Word::Text(value)];
                self.say(database, &words);
            }
            Effect::ListInsert { index, value } => {
                self.say_insert(keyspace, database, key, index, value);
            }
            Effect::ListRemove { index, count } => {
                self.say_remove(keyspace, database, key, index, count);
            }
            _ => {}
        }
    }

    /// Redis inserts beside an element, not at an index. So the element that stands there takes a
    /// value that is nowhere else, and its own again afterwards.
    fn say_insert(
        &mut self,
        keyspace: &Keyspace,
        database: DatabaseId,
        key: &[u8],
        index: u64,
        value: &[u8],
    ) {
        let Some(list) = list_of(keyspace, database, key) else { return };
        let (name, at) = (Word::Text(key), usize::try_from(index).unwrap_or(usize::MAX));
        let Some(behind) = at.checked_add(1).and_then(|behind| list.get(behind)) else {
            self.say(database, &[Word::Text(b"RPUSH"), name, Word::Text(value)]);
            return;
        };
        let (behind, mark) = (behind.to_vec(), absent_from(list));
        let (mark, place) = (Word::Text(&mark), number(index));
        let next = number(index + 1);
        let before = Word::Text(b"BEFORE");
        self.say(database, &[Word::Text(b"LSET"), name, place, mark]);
        let insert = Word::Text(b"LINSERT");
        self.say(database, &[insert, name, before, mark, Word::Text(value)]);
        self.say(database, &[Word::Text(b"LSET"), name, next, Word::Text(&behind)]);
    }

    /// Redis removes elements of a value, not at an index. So those that are to go take a value
    /// that is nowhere else.
    fn say_remove(
        &mut self,
        keyspace: &Keyspace,
        database: DatabaseId,
        key: &[u8],
        index: u64,
        count: u64,
    ) {
        let name = Word::Text(key);
        let list = list_of(keyspace, database, key);
        let Some(list) = list.filter(|_| index > 0) else {
            self.say(database, &[Word::Text(b"LPOP"), name, number(count)]);
            return;
        };
        // `count` may be more than there was.
        if list.len() as u64 == index {
            let last = number(index - 1);
            self.say(database, &[Word::Text(b"LTRIM"), name, Word::Number(0), last]);
            return;
        }
        let mark = absent_from(list);
        for at in index..index.saturating_add(count) {
            let place = number(at);
            self.say(database, &[Word::Text(b"LSET"), name, place, Word::Text(&mark)]);
        }
        let all = Word::Number(0);
        self.say(database, &[Word::Text(b"LREM"), name, all, Word::Text(&mark)]);
    }
}

fn number(number: u64) -> Word<'static> {
    Word::Number(i64::try_from(number).unwrap_or(i64::MAX))
}

fn list_of<'a>(keyspace: &'a Keyspace, database: DatabaseId, key: &[u8]) -> Option<&'a Quicklist> {
    let entry = keyspace.database(database).find(keyspace.hash(key), key)?;
    match Value::of(entry) {
        Some(Value::List(list)) => Some(list),
        _ => None,
    }
}

/// A value that no element of the list has.
fn absent_from(list: &Quicklist) -> Vec<u8> {
    let candidates = (0_u64..).map(|number| format!("kiln:{number}").into_bytes());
    let mut absent = candidates.filter(|candidate| list.position(candidate).is_none());
    absent.next().expect("a list has fewer elements than there are numbers")
}
