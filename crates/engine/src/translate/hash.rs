//! Translates effects on field expiries into Redis commands.

use crate::effect::Effect;
use crate::feed::{Feed, Word};
use base::DatabaseId;

impl Feed {
    /// Translates an effect that sets a field's expiry.
    pub(super) fn tell_hash(&mut self, database: DatabaseId, key: &[u8], effect: &Effect<'_>) {
        match *effect {
            Effect::HashSet { field, value, expire_at } => {
                let words = [b"HSET", key, field, value].map(Word::Text);
                self.say(database, &words);
                self.say_expiry(database, key, field, expire_at);
            }
            Effect::HashExpire { field, at } => self.say_expiry(database, key, field, at),
            _ => {}
        }
    }

    fn say_expiry(&mut self, database: DatabaseId, key: &[u8], field: &[u8], at: Option<i64>) {
        let fields = [Word::Text(b"FIELDS"), Word::Number(1), Word::Text(field)];
        let (name, time): (&[u8], _) = match at {
            Some(at) => (b"HPEXPIREAT", Some(Word::Number(at))),
            None => (b"HPERSIST", None),
        };
        let head = [Word::Text(name), Word::Text(key)];
        let words: Vec<_> = head.into_iter().chain(time).chain(fields).collect();
        self.say(database, &words);
    }
}
