//! Sorted sets: a listpack of members and scores in order while small, then a table and a tree.
//!
//! The larger form answers to Redis's name for it, `skiplist`. As in Redis 7.0 the thresholds are
//! looked at when a member is added, and a sorted set never goes back to the smaller form.

mod as_value;
mod pack;
#[cfg(test)]
mod tests;

use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::value::{EntryRef, Recipe, Value, not_of};
use std::ops::Range;
use structures::entry::ValueRef;
use structures::listpack::Item;
use structures::ordered::{LexBound, ScoreBound};
use structures::{KeyHasher, Listpack, Scored, SortedSet};

/// A sorted set that knows its bytes without counting.
pub enum Sorted {
    /// Members and their scores alternate, in order.
    Pack(Listpack),
    /// Boxed, so that small values do not pay for the size of a table.
    Tree(Box<SortedSet>),
}

/// A member, as it is stored.
pub type Text<'a> = Item<'a>;

/// An empty sorted set. The first member decides its encoding.
pub fn create(_: &Recipe<'_>) -> Value {
    Value::Sorted(Sorted::new())
}

/// The sorted set in an entry.
///
/// # Errors
/// WRONGTYPE if the entry holds another type.
pub fn of(entry: EntryRef<'_>) -> Result<&Sorted, Refusal> {
    match entry.value() {
        ValueRef::Boxed(Value::Sorted(sorted)) => Ok(sorted),
        _ => Err(not_of(entry, "zset")),
    }
}

/// The sorted set in a value that is to change.
///
/// # Errors
/// WRONGTYPE if the value is of another type.
pub fn of_mut(value: &mut Value) -> Result<&mut Sorted, Refusal> {
    match value {
        Value::Sorted(sorted) => Ok(sorted),
        _ => Err(Refusal::WRONG_TYPE),
    }
}

impl Default for Sorted {
    fn default() -> Self {
        Self::new()
    }
}

impl Sorted {
    pub fn new() -> Self {
        Self::Pack(Listpack::new())
    }

    /// An empty sorted set that is a tree already.
    pub fn empty_tree(hasher: KeyHasher) -> Self {
        Self::Tree(Box::new(SortedSet::new(hasher)))
    }

    /// A listpack read from a snapshot: an even number of elements, no member twice, in order. It
    /// is kept as it is unless it has more members than a new one might.
    pub fn from_listpack(pack: Listpack, recipe: &Recipe<'_>) -> Self {
        let members = (pack.len() / 2) as u64;
        let mut sorted = Self::Pack(pack);
        if members > recipe.settings.zset_max_listpack_entries {
            sorted.make_tree(recipe.hasher);
        }
        sorted
    }

    /// How many members there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Pack(pack) => pack.len() / 2,
            Self::Tree(tree) => tree.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            Self::Pack(pack) => pack.is_empty(),
            Self::Tree(tree) => tree.is_empty(),
        }
    }

    pub fn score(&self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Pack(pack) => pack::score(pack, member),
            Self::Tree(tree) => tree.score(member),
        }
    }

    /// Gives a member a score, which is a number, and changes to the encoding that the sorted set
    /// now needs.
    pub fn insert(&mut self, member: &[u8], score: f64, recipe: &Recipe<'_>) -> Scored {
        let pack = match self {
            Self::Tree(tree) => return tree.insert(member, score),
            Self::Pack(pack) => pack,
        };
        if let Some(cursor) = pack.find(member, 1) {
            return pack::change(pack, cursor, member, score);
        }
        if !has_room(pack, member, recipe.settings) {
            return self.make_tree(recipe.hasher).insert(member, score);
        }
        pack::insert_new(pack, member, score);
        Scored::Added
    }

    /// Whether a member lies in a listpack once it is inserted.
    pub fn packs(&self, member: &[u8], settings: &Settings) -> bool {
        match self {
            Self::Tree(_) => false,
            Self::Pack(pack) => has_room(pack, member, settings) || pack.find(member, 1).is_some(),
        }
    }

    /// Removes a member and returns its score.
    pub fn remove(&mut self, member: &[u8]) -> Option<f64> {
        match self {
            Self::Pack(pack) => pack::remove(pack, member),
            Self::Tree(tree) => tree.remove(member),
        }
    }

    /// How many members come before this one.
    pub fn rank(&self, member: &[u8]) -> Option<usize> {
        match self {
            Self::Pack(pack) => pack::rank(pack, member),
            Self::Tree(tree) => tree.rank(member),
        }
    }

    /// The ranks of the members between two scores.
    pub fn ranks_by_score(&self, min: ScoreBound, max: ScoreBound) -> Range<usize> {
        match self {
            Self::Pack(pack) => pack::ranks_by_score(pack, min, max),
            Self::Tree(tree) => tree.ranks_by_score(min, max),
        }
    }

    /// The ranks of the members between two members; means something if all scores are equal.
    pub fn ranks_by_lex(&self, min: LexBound<'_>, max: LexBound<'_>) -> Range<usize> {
        match self {
            Self::Pack(pack) => pack::ranks_by_lex(pack, min, max),
            Self::Tree(tree) => tree.ranks_by_lex(min, max),
        }
    }

    /// The members of these ranks with their scores, in order. Ranks may lie past the last one.
    pub fn ascending(&self, ranks: Range<usize>) -> impl Iterator<Item = (Text<'_>, f64)> {
        let (pack, tree) = match self {
            Self::Pack(pack) => (Some(pack::ascending(pack, ranks)), None),
            Self::Tree(tree) => (None, Some(tree.range(ranks))),
        };
        let tree = tree.into_iter().flatten().map(|(member, score)| (Item::Bytes(member), score));
        pack.into_iter().flatten().chain(tree)
    }

    /// As [`Self::ascending`], from the last rank down to the first.
    pub fn descending(&self, ranks: Range<usize>) -> impl Iterator<Item = (Text<'_>, f64)> {
        let (pack, tree) = match self {
            Self::Pack(pack) => (Some(pack::descending(pack, ranks)), None),
            Self::Tree(tree) => (None, Some(tree.range(ranks).rev())),
        };
        let tree = tree.into_iter().flatten().map(|(member, score)| (Item::Bytes(member), score));
        pack.into_iter().flatten().chain(tree)
    }

    /// All members with their scores, in order.
    pub fn iter(&self) -> impl Iterator<Item = (Text<'_>, f64)> {
        self.ascending(0..usize::MAX)
    }

    /// A member chosen evenly by 64 random bits, with its score; `None` if there is none.
    pub fn random(&self, word: u64) -> Option<(Text<'_>, f64)> {
        let rank = (u128::from(word) * self.len() as u128) >> 64;
        match self {
            Self::Pack(pack) => pack::at_rank(pack, rank as usize),
            Self::Tree(tree) => {
                tree.random(word).map(|(member, score)| (Item::Bytes(member), score))
            }
        }
    }

    /// Visits about `count` members from `cursor` on and returns the cursor to go on with, as
    /// [`structures::Table::scan`]; a listpack is visited as a whole.
    pub fn scan<'s>(
        &'s self,
        cursor: u64,
        count: usize,
        mut visit: impl FnMut(Text<'s>, f64),
    ) -> u64 {
        match self {
            Self::Pack(_) => {
                self.iter().for_each(|(member, score)| visit(member, score));
                0
            }
            Self::Tree(tree) => {
                tree.scan(cursor, count, |member, score| visit(Item::Bytes(member), score))
            }
        }
    }

    /// Turns the sorted set into the larger form, unless it has it.
    fn make_tree(&mut self, hasher: KeyHasher) -> &mut SortedSet {
        if let Self::Pack(pack) = self {
            let mut tree = SortedSet::new(hasher);
            for (member, score) in pack::ascending(pack, 0..usize::MAX) {
                tree.insert(&member.to_vec(), score);
            }
            *self = Self::Tree(Box::new(tree));
        }
        match self {
            Self::Tree(tree) => tree,
            Self::Pack(_) => unreachable!("it has just become a tree"),
        }
    }
}

/// Whether a listpack may take one more member, and this one.
fn has_room(pack: &Listpack, member: &[u8], settings: &Settings) -> bool {
    ((pack.len() / 2) as u64) < settings.zset_max_listpack_entries
        && member.len() as u64 <= settings.zset_max_listpack_value
        && pack.fits(member.len())
}
