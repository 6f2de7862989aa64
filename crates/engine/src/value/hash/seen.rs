//! A hash as commands see it: without the fields that are due.
//!
//! Usually nothing is due, because due fields are deleted soon. Then this is the hash itself.

use super::{Hash, Text, Timed};
use crate::work::Work;

/// Random picks that are tried before all visible fields are gathered. A pick fails if its field is
/// due.
const RANDOM_TRIES: usize = 16;

/// A hash at an instant: fields that expire by then are hidden.
#[derive(Clone, Copy)]
pub struct Seen<'a> {
    hash: &'a Hash,
    /// The instant in Unix milliseconds; `None` if no field is due by then.
    hidden_by: Option<i64>,
}

impl<'a> Seen<'a> {
    /// The hash at the instant `due_by`, in Unix milliseconds.
    #[inline]
    pub fn new(hash: &'a Hash, due_by: i64) -> Self {
        let hides = hash.next_expiry().is_some_and(|next| next <= due_by);
        Self { hash, hidden_by: hides.then_some(due_by) }
    }

    /// The hash itself, if no field is hidden.
    pub fn whole(self) -> Option<&'a Hash> {
        self.hidden_by.is_none().then_some(self.hash)
    }

    fn shows(self, expire_at: Option<i64>) -> bool {
        !matches!((self.hidden_by, expire_at), (Some(by), Some(at)) if at <= by)
    }

    /// The number of visible fields.
    pub fn len(self, work: &Work) -> usize {
        match self.hidden_by {
            None => self.hash.len(),
            Some(_) => self.shown(work).count(),
        }
    }

    /// The value of a visible field.
    #[inline]
    pub fn get(self, field: &[u8]) -> Option<Text<'a>> {
        if self.hidden_by.is_some() && !self.contains(field) {
            return None;
        }
        self.hash.get(field)
    }

    pub fn contains(self, field: &[u8]) -> bool {
        self.expire_at(field).is_some()
    }

    /// As [`Hash::expire_at`].
    pub fn expire_at(self, field: &[u8]) -> Option<Option<i64>> {
        self.hash.expire_at(field).filter(|at| self.shows(*at))
    }

    /// Every visible field with its value.
    pub fn iter(self, work: &'a Work) -> impl Iterator<Item = (Text<'a>, Text<'a>)> {
        let all = self.whole().into_iter().flat_map(Hash::iter);
        let some = self.hidden_by.map(|_| self.shown(work)).into_iter().flatten();
        all.chain(some.map(|(field, value, _)| (field, value)))
    }

    fn shown(self, work: &Work) -> impl Iterator<Item = Timed<'a>> {
        let steps = self.hash.iter_timed().inspect(|_| work.step());
        steps.filter(move |(_, _, at)| self.shows(*at))
    }

    /// A visible field chosen evenly, with its value; `None` if there is none. `word` draws 64
    /// random bits.
    pub fn random(
        self,
        work: &Work,
        mut word: impl FnMut() -> u64,
    ) -> Option<(Text<'a>, Text<'a>)> {
        let Some(_) = self.hidden_by else { return self.hash.random(word()) };
        for _ in 0..RANDOM_TRIES {
            let (field, value) = self.hash.random(word())?;
            if self.contains(&field.to_vec()) {
                return Some((field, value));
            }
        }
        let all: Vec<_> = self.shown(work).collect();
        let index = (u128::from(word()) * all.len() as u128) >> 64;
        all.get(index as usize).map(|(field, value, _)| (*field, *value))
    }

    /// As [`Hash::scan`].
    pub fn scan(self, cursor: u64, count: usize, mut visit: impl FnMut(Text<'a>, Text<'a>)) -> u64 {
        self.hash.scan(cursor, count, |(field, value, at)| {
            if self.shows(at) {
                visit(field, value);
            }
        })
    }
}
