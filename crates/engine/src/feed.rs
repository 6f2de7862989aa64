//! Translates the effects of each unit into Redis commands, for servers of Redis that replicate
//! from this one. `node/feed` sends them; the log holds effects only, which Redis does not know.
//!
//! While such a server follows, each effect is also told as a command that has exactly this effect
//! on an equal keyspace, whatever request it came from: chosen members, absolute times, resulting
//! numbers. It is told in the same step that applies it, because a few need to look at the value.
//!
//! ```text
//! effects of one call  HashSet k f 1 · HashSet k g 2 · Expire k ──▶ HSET k f 1 g 2 · PEXPIREAT k …
//! effects of one unit  commands, with the database of each; the node adds SELECT and MULTI … EXEC
//! ```
//! A handler that knows a shorter command for all that it does says it with
//! [`crate::tx::Tx::told_as`]. The commands are those of Redis 6.2 and later (PXAT, COPY, LMOVE,
//! LPOP with a count).

mod list;

use crate::effect::{DeleteReason, Effect, End};
use crate::keyspace::Keyspace;
use crate::number::format_double;
use crate::value::StringValue;
use base::DatabaseId;
use resp::Reply;

/// Arguments that are gathered in one command. More would only make one request larger than others
/// can be; a guess.
const ARGUMENTS_MAX: usize = 1024;

/// Text or a number, as an argument of a command.
#[derive(Clone, Copy, Debug)]
pub enum Word<'a> {
    Text(&'a [u8]),
    Number(i64),
}

/// The commands of one unit. Nothing is kept and nothing costs while nobody follows.
#[derive(Default)]
pub struct Feed {
    is_on: bool,
    /// A handler says itself what its changes amount to.
    is_muted: bool,
    /// Finished commands, one behind the other, and where each ends.
    bytes: Reply,
    commands: Vec<(DatabaseId, usize)>,
    /// The last command, while more of the same may join it.
    open: Option<Open>,
    /// Something else was told than keys that expired or were evicted.
    has_outcomes: bool,
}

/// A command in the making.
struct Open {
    database: DatabaseId,
    verb: Verb,
    key: Vec<u8>,
    arguments: Reply,
    count: usize,
}

/// What may be said of several keys, elements, fields or members at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Verb {
    Set,
    Delete,
    Push(End),
    HashSet,
    HashDelete,
    SetAdd,
    SetRemove,
    SortedAdd,
    SortedRemove,
}

impl Verb {
    /// The command's name; `count` arguments follow it.
    fn name(self, count: usize) -> &'static str {
        match self {
            Self::Set if count > 2 => "MSET",
            Self::Set => "SET",
            Self::Delete => "DEL",
            Self::Push(End::Head) => "LPUSH",
            Self::Push(End::Tail) => "RPUSH",
            Self::HashSet => "HSET",
            Self::HashDelete => "HDEL",
            Self::SetAdd => "SADD",
            Self::SetRemove => "SREM",
            Self::SortedAdd => "ZADD",
            Self::SortedRemove => "ZREM",
        }
    }

    /// Whether each argument is, or begins with, a key of its own.
    fn joins_keys(self) -> bool {
        matches!(self, Self::Set | Self::Delete)
    }
}

impl Feed {
    /// Begins or ends telling. Between units only.
    pub fn switch(&mut self, is_on: bool) {
        self.clear();
        self.is_on = is_on;
    }

    /// Whether somebody follows.
    #[inline]
    pub fn is_on(&self) -> bool {
        self.is_on
    }

    /// Forgets the unit's commands.
    pub fn clear(&mut self) {
        if self.is_on {
            self.is_muted = false;
            self.open = None;
            self.bytes.truncate(0);
            self.commands.clear();
            self.has_outcomes = false;
        }
    }

    /// Whether the unit's commands must be executed together or not at all. Keys that expired or
    /// were evicted go each for itself.
    pub fn is_transaction(&self) -> bool {
        self.commands.len() > 1 && self.has_outcomes
    }

    /// The finished commands of the unit, each encoded as a request.
    pub fn commands(&self) -> impl Iterator<Item = (DatabaseId, &[u8])> {
        let starts = std::iter::once(0).chain(self.commands.iter().map(|(_, end)| *end));
        let bytes = self.bytes.bytes();
        starts.zip(&self.commands).map(move |(start, (database, end))| {
            let command = &bytes[start..*end];
            (*database, command)
        })
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    /// A call ended: what comes next belongs to another command.
    pub fn end_call(&mut self) {
        if let Some(open) = self.open.take() {
            self.bytes.array(1 + open.count);
            self.bytes.bulk(open.verb.name(open.count));
            self.bytes.raw(open.arguments.bytes());
            self.commands.push((open.database, self.bytes.len()));
        }
    }

    /// Tells nothing until [`Self::unmute`]; whether somebody would have been told.
    pub(crate) fn mute(&mut self) -> bool {
        let was_told = self.is_on && !self.is_muted;
        self.is_muted = true;
        was_told
    }

    pub(crate) fn unmute(&mut self) {
        self.is_muted = false;
    }

    /// Tells one command as it is.
    pub(crate) fn say(&mut self, database: DatabaseId, words: &[Word<'_>]) {
        if !self.is_on || self.is_muted {
            return;
        }
        self.has_outcomes = true;
        self.end_call();
        self.bytes.array(words.len());
        for word in words {
            match word {
                Word::Text(text) => self.bytes.bulk(text),
                Word::Number(number) => self.bytes.bulk(number.to_string()),
            }
        }
        self.commands.push((database, self.bytes.len()));
    }

    /// Tells of arguments that may stand in one command with those before them.
    fn join(&mut self, database: DatabaseId, verb: Verb, key: &[u8], arguments: &[&[u8]]) {
        let joins = self.open.as_ref().is_some_and(|open| {
            let is_same_key = verb.joins_keys() || open.key == key;
            open.database == database
                && open.verb == verb
                && is_same_key
                && open.count < ARGUMENTS_MAX
        });
        if !joins {
            self.end_call();
        }
        let open = self.open.get_or_insert_with(|| {
            let mut arguments = Reply::default();
            let count = usize::from(!verb.joins_keys());
            if count > 0 {
                arguments.bulk(key);
            }
            Open { database, verb, key: key.to_vec(), arguments, count }
        });
        for argument in arguments {
            open.arguments.bulk(argument);
        }
        open.count += arguments.len();
    }

    /// Tells of an effect that was applied to `keyspace`.
    pub(crate) fn tell(
        &mut self,
        keyspace: &Keyspace,
        database: DatabaseId,
        key: &[u8],
        effect: &Effect<'_>,
    ) {
        if self.is_muted {
            return;
        }
        self.has_outcomes |= !matches!(
            effect,
            Effect::Delete { reason: DeleteReason::Expired | DeleteReason::Evicted }
        );
        match *effect {
            Effect::SetString { value, expire_at: None } => {
                self.join(database, Verb::Set, key, &[key, value]);
            }
            Effect::Delete { reason: DeleteReason::Command } => {
                self.join(database, Verb::Delete, key, &[key]);
            }
            Effect::ListPush { end, value } => self.join(database, Verb::Push(end), key, &[value]),
            Effect::HashSet { field, value } => {
                self.join(database, Verb::HashSet, key, &[field, value]);
            }
            Effect::HashDelete { field } => self.join(database, Verb::HashDelete, key, &[field]),
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
        let had_outcomes = self.has_outcomes;
        let name = Word::Text(key);
        let number = |number: u64| Word::Number(i64::try_from(number).unwrap_or(i64::MAX));
        let text = |text: &'static str| Word::Text(text.as_bytes());
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
            // SETRANGE with nothing to write does not pad.
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
            Effect::Delete { .. } => {
                self.say(database, &[text("DEL"), name]);
                self.has_outcomes = had_outcomes;
            }
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
            Effect::FlushDatabase => self.say(database, &[text("FLUSHDB")]),
            Effect::FlushAll => self.say(database, &[text("FLUSHALL")]),
            Effect::SwapDatabases { with } => self.say_swap(database, with),
            Effect::ListPop { .. }
            | Effect::ListSet { .. }
            | Effect::ListInsert { .. }
            | Effect::ListRemove { .. } => self.tell_list(keyspace, database, key, effect),
            Effect::SetString { expire_at: None, .. }
            | Effect::ListPush { .. }
            | Effect::HashSet { .. }
            | Effect::HashDelete { .. }
            | Effect::SetAdd { .. }
            | Effect::SetRemove { .. }
            | Effect::SortedAdd { .. }
            | Effect::SortedRemove { .. } => unreachable!("told by `tell`, which has them join"),
            // Nobody follows a server that has a master, or a part of its data.
            Effect::TransferBegan | Effect::TransferEnded => {}
            Effect::ReplicaOf { .. } | Effect::ReplicaOfNoOne => {}
        }
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
