//! The commands of Redis that amount to what a unit changed, for servers of Redis that replicate
//! from this one. They are only gathered here: `translate` says which command an effect is, and
//! the handler of a command may know a shorter one ([`crate::tx::Tx::told_as`]).
//!
//! ```text
//! effects of one call  HashSet k f 1 · HashSet k g 2 · Expire k ──▶ HSET k f 1 g 2 · PEXPIREAT k …
//! effects of one unit  commands, with the database of each; the node adds SELECT and MULTI … EXEC
//! ```

use crate::effect::End;
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
    /// Whether the unit has other commands than deletions of what expired or was evicted.
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

/// A command that may name several keys, elements, fields or members at once.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verb {
    Set,
    Delete,
    Push(End),
    HashSet,
    HashDelete,
    /// Deletion of fields that expired (HDEL).
    HashExpired,
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
            Self::HashDelete | Self::HashExpired => "HDEL",
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

    /// Whether the unit's commands must be executed together or not at all. What expired or was
    /// evicted goes each for itself.
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

    /// The bytes of the finished commands.
    pub fn len(&self) -> usize {
        self.bytes.len()
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
        let was_told = self.is_told();
        self.is_muted = true;
        was_told
    }

    pub(crate) fn unmute(&mut self) {
        self.is_muted = false;
    }

    /// Whether somebody follows, and no handler tells them itself.
    pub(crate) fn is_told(&self) -> bool {
        self.is_on && !self.is_muted
    }

    /// Tells one command as it is.
    pub(crate) fn say(&mut self, database: DatabaseId, words: &[Word<'_>]) {
        if !self.is_told() {
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

    /// Tells that a key expired or was evicted. That alone makes no transaction of a unit.
    pub(crate) fn say_dropped(&mut self, database: DatabaseId, key: &[u8]) {
        let had_outcomes = self.has_outcomes;
        self.say(database, &[Word::Text(b"DEL"), Word::Text(key)]);
        self.has_outcomes = had_outcomes;
    }

    /// Tells of arguments that may stand in one command with those before them.
    pub(crate) fn join(
        &mut self,
        database: DatabaseId,
        verb: Verb,
        key: &[u8],
        arguments: &[&[u8]],
    ) {
        if !self.is_told() {
            return;
        }
        self.has_outcomes |= verb != Verb::HashExpired;
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
}
