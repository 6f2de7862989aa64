//! Collections in encodings that this release reads and does not write: those of releases before
//! 7, the sets of 7.2, and the small hashes of 7.4 whose fields expire. They are encoded as if
//! commands had made them.

use super::{Recipe, Value, hash, list, set, sorted};
use crate::rdb::{RdbError, Source, kind};
use std::io::Read;
use structures::Scored;
use structures::quicklist::End;

const TWICE: &str = "an element that stands in its collection twice";

impl<R: Read> Source<R> {
    /// A collection of such a type; `None` if the type is none of them.
    ///
    /// # Errors
    /// [`RdbError`] if the bytes are damaged.
    pub(super) fn older_value(
        &mut self,
        kind: u8,
        recipe: &Recipe<'_>,
    ) -> Result<Option<Value>, RdbError> {
        let mut value = match kind {
            kind::LIST | kind::LIST_ZIPLIST | kind::LIST_QUICKLIST => list::create(recipe),
            kind::SET_LISTPACK => set::create(recipe),
            kind::HASH_ZIPMAP | kind::HASH_ZIPLIST | kind::HASH_LISTPACK_EX => hash::create(recipe),
            kind::ZSET | kind::ZSET_ZIPLIST => sorted::create(recipe),
            _ => return Ok(None),
        };
        let count = match kind {
            kind::LIST | kind::LIST_QUICKLIST | kind::ZSET => self.length()?,
            // One packed value is all its elements.
            _ => 1,
        };
        for _ in 0..count {
            match kind {
                kind::LIST => {
                    let element = self.owned()?;
                    self.put(&mut value, &element, &[], recipe)?;
                }
                kind::ZSET => {
                    let member = self.owned()?;
                    let score = self.old_score()?;
                    self.put_score(&mut value, &member, score, recipe)?;
                }
                kind::LIST_ZIPLIST | kind::LIST_QUICKLIST | kind::SET_LISTPACK => {
                    for element in self.words(kind)? {
                        self.put(&mut value, &element, &[], recipe)?;
                    }
                }
                kind::ZSET_ZIPLIST => {
                    for pair in self.pairs_of_words(kind)?.chunks_exact(2) {
                        let score = self.score_of(&pair[1])?;
                        self.put_score(&mut value, &pair[0], score, recipe)?;
                    }
                }
                kind::HASH_LISTPACK_EX => {
                    for (field, text, expire_at) in self.timed_fields()? {
                        self.put(&mut value, &field, &text, recipe)?;
                        if let Value::Hash(hash) = &mut value {
                            hash.expire(&field, expire_at, recipe);
                        }
                    }
                }
                _ => {
                    for pair in self.pairs_of_words(kind)?.chunks_exact(2) {
                        self.put(&mut value, &pair[0], &pair[1], recipe)?;
                    }
                }
            }
        }
        Ok(Some(value))
    }

    /// Puts an element that must be new, or a field and what belongs to it.
    fn put(
        &self,
        value: &mut Value,
        name: &[u8],
        text: &[u8],
        recipe: &Recipe<'_>,
    ) -> Result<(), RdbError> {
        recipe.work.step();
        let is_new = match value {
            Value::List(list) => {
                list.push(End::Back, name);
                true
            }
            Value::Set(set) => set.add(name, recipe),
            Value::Hash(hash) => hash.set(name, text, recipe),
            _ => false,
        };
        if is_new { Ok(()) } else { Err(self.damaged(TWICE)) }
    }

    fn put_score(
        &self,
        value: &mut Value,
        member: &[u8],
        score: f64,
        recipe: &Recipe<'_>,
    ) -> Result<(), RdbError> {
        recipe.work.step();
        let is_new = match value {
            Value::Sorted(sorted) => sorted.insert(member, score, recipe) == Scored::Added,
            _ => false,
        };
        if is_new { Ok(()) } else { Err(self.damaged(TWICE)) }
    }
}
