//! Translates effects into Redis commands, while a server of Redis replicates from this one: the
//! log holds effects only, which Redis does not know.
//!
//! Each effect is told as a command that has exactly this effect on an equal keyspace, whatever
//! request it came from: chosen members, absolute times, resulting numbers. It is told in the same
//! step that applies it, because a few need to look at the value. The commands are those of Redis
//! 6.2 and later (PXAT, COPY, LMOVE, LPOP with a count); of streams those of 7.0 (ENTRIESREAD); of
//! fields that expire, those of Redis 7.4 and Valkey 9 (HPEXPIREAT, HPERSIST).

mod hash;
mod list;
mod stream;

use crate::effect::{DeleteReason, Effect};
use crate::feed::{Feed, Verb, Word};
use crate::keyspace::Keyspace;
use crate::number::format_double;
use crate::value::StringValue;
use base::DatabaseId;

fn text(text: &'static str) -> Word<'static> {
    Word::Text(text.as_bytes())
}

fn number(number: u64) -> Word<'static> {
    Word::Number(i64::try_from(number).unwrap_or(i64::MAX))
}

impl Feed {
    /// Tells of an effect that was applied to `keyspace`.
    pub(crate) fn tell(
        &mut self,
        keyspace: &Keyspace,
        database: DatabaseId,
        key: &[u8],
        effect: &Effect<'_>,
    ) {
        if !self.is_told() {
            return;
        }
        match *effect {
            Effect::SetString { value, expire_at: None } => {
                self.join(database, Verb::Set, key, &[key, value]);
            }
            Effect::Delete { reason: DeleteReason::Command } => {
                self.join(database, Verb::Delete, key, &[key]);
            }
            Effect::ListPush { end, value } => self.join(database, Verb::Push(end), key, &[value]),
            Effect::HashSet { field, value, expire_at: None } => {
                self.join(database, Verb::HashSet, key, &[field, value]);
            }
            Effect::HashDelete { field, is_expired } => {
                let verb = if is_expired { Verb::HashExpired } else { Verb::HashDelete };
                self.join(database, verb, key, &[field]);
            }
            Effect::SetAdd { member } => self.join(database, Verb::SetAdd, key, &[member]),
            Effect::SetRemove { member } => self.join(database, Verb::SetRemove, key, &[member]),
            Effect::SortedAdd { member, score } => {
                let score = format_double(score);
                self.join(database, Verb::SortedAdd, key, &[score.as_bytes(), member]);
            }
            Effect::SortedRemove { member } => {
                self.join(database, Verb::SortedRemove, key, &[member]);
            }
            _ => self.tell_alone(keyspace, database, key, effect),
        }
    }

    /// As [`Self::tell`], of effects that join no command.
    fn tell_alone(
        &mut self,
        keyspace: &Keyspace,
        database: DatabaseId,
        key: &[u8],
        effect: &Effect<'_>,
    ) {
        let name = Word::Text(key);
        match *effect {
            Effect::SetString { expire_at: Some(_), .. }
            | Effect::SetInteger { .. }
            | Effect::Append { .. }
            | Effect::SetRange { .. } => self.tell_string(keyspace, database, key, effect),
            Effect::Delete { .. } => self.say_dropped(database, key),
            Effect::Expire { at: Some(at) } => {
                self.say(database, &[text("PEXPIREAT"), name, Word::Number(at)]);
            }
            Effect::Expire { at: None } => self.say(database, &[text("PERSIST"), name]),
            Effect::Rename { to_database, to } if to_database == database => {
                self.say(database, &[text("RENAME"), name, Word::Text(to)]);
            }
            // MOVE replaces nothing and renames nothing.
            Effect::Rename { to_database, to } => {
                self.say_copy(database, key, to_database, to);
                self.say(database, &[text("DEL"), name]);
            }
            Effect::Copy { to_database, to } => self.say_copy(database, key, to_database, to),
            Effect::HashSet { expire_at: Some(_), .. } | Effect::HashExpire { .. } => {
                self.tell_hash(database, key, effect);
            }
            Effect::FlushDatabase => self.say(database, &[text("FLUSHDB")]),
            Effect::FlushAll => self.say(database, &[text("FLUSHALL")]),
            Effect::SwapDatabases { with } => self.say_swap(database, with),
            Effect::FunctionLoad { .. } | Effect::FunctionDelete { .. } | Effect::FunctionFlush => {
                self.say_function(database, effect)
            }
            Effect::ListPop { .. }
            | Effect::ListSet { .. }
            | Effect::ListInsert { .. }
            | Effect::ListRemove { .. } => self.tell_list(keyspace, database, key, effect),
            Effect::SetString { expire_at: None, .. }
            | Effect::ListPush { .. }
            | Effect::HashSet { expire_at: None, .. }
            | Effect::HashDelete { .. }
            | Effect::SetAdd { .. }
            | Effect::SetRemove { .. }
            | Effect::SortedAdd { .. }
            | Effect::SortedRemove { .. } => unreachable!("told by `tell`, which has them join"),
            Effect::StreamCreate
            | Effect::StreamAdd { .. }
            | Effect::StreamDelete { .. }
            | Effect::StreamTrim { .. }
            | Effect::StreamSetId { .. }
            | Effect::StreamBlock { .. }
            | Effect::StreamGroupCreate { .. }
            | Effect::StreamGroupSet { .. }
            | Effect::StreamGroupDelete { .. }
            | Effect::StreamConsumerCreate { .. }
            | Effect::StreamConsumerDelete { .. }
            | Effect::StreamDeliver { .. }
            | Effect::StreamAcknowledge { .. } => self.tell_stream(database, key, effect),
            // Nobody follows a server that has a master, or a part of its data.
            Effect::TransferBegan | Effect::TransferEnded => {}
            Effect::ReplicaOf { .. } | Effect::ReplicaOfNoOne => {}
        }
    }

    /// Translates an effect on a string that cannot be joined with others.
    fn tell_string(
        &mut self,
        keyspace: &Keyspace,
        database: DatabaseId,
        key: &[u8],
        effect: &Effect<'_>,
    ) {
        let name = Word::Text(key);
        match *effect {
            Effect::SetString { value, expire_at: Some(at) } => {
                let words = [text("SET"), name, Word::Text(value), text("PXAT"), Word::Number(at)];
                self.say(database, &words);
            }
            Effect::SetInteger { value } => {
                self.say(database, &[text("SET"), name, Word::Number(value), text("KEEPTTL")]);
            }
            Effect::Append { bytes } => {
                self.say(database, &[text("APPEND"), name, Word::Text(bytes)]);
            }
            // SETRANGE with an empty value does not pad in Redis.
            Effect::SetRange { bytes: b"", .. } => {
                let entry = keyspace.database(database).find(keyspace.hash(key), key);
                let Some(Ok(value)) = entry.map(StringValue::of) else { return };
                let value = value.to_vec();
                self.say(database, &[text("SET"), name, Word::Text(&value), text("KEEPTTL")]);
            }
            Effect::SetRange { offset, bytes } => {
                let words = [text("SETRANGE"), name, number(offset), Word::Text(bytes)];
                self.say(database, &words);
            }
            _ => {}
        }
    }

    fn say_function(&mut self, database: DatabaseId, effect: &Effect<'_>) {
        let words: &[Word<'_>] = match *effect {
            Effect::FunctionLoad { code } => &[text("LOAD"), text("REPLACE"), Word::Text(code)],
            Effect::FunctionDelete { name } => &[text("DELETE"), Word::Text(name)],
            _ => &[text("FLUSH")],
        };
        self.say(database, &[&[text("FUNCTION")], words].concat());
    }

    fn say_swap(&mut self, one: DatabaseId, other: DatabaseId) {
        let number = |it: DatabaseId| Word::Number(i64::from(it.0));
        self.say(one, &[Word::Text(b"SWAPDB"), number(one), number(other)]);
    }

    fn say_copy(&mut self, database: DatabaseId, key: &[u8], to_database: DatabaseId, to: &[u8]) {
        let words = [
            Word::Text(b"COPY"),
            Word::Text(key),
            Word::Text(to),
            Word::Text(b"DB"),
            Word::Number(i64::from(to_database.0)),
            Word::Text(b"REPLACE"),
        ];
        self.say(database, &words);
    }
}

#[cfg(test)]
mod tests;
