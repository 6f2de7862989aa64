//! One declaration per command: its usage line, its function, and what cannot be derived.
//!
//! Everything else follows from the usage line: name, arity, which arguments are keys, the texts of
//! COMMAND and COMMAND DOCS, gates and ACL categories. A row is plain `const` data. `F` is what
//! runs: data functions here, session functions in `node`, which merges both into one catalogue.

mod args;
mod bitmap;
mod expire_option;
mod flags;
mod geo;
mod hash;
mod hyperloglog;
mod key;
mod key_use;
mod list;
mod publish;
mod sample;
pub mod secrets;
mod set;
mod sorted;
mod stream;
mod string;
#[cfg(test)]
mod tests;
mod timeout;
mod usage;

pub use args::Args;
pub use flags::{Channels, Flags, Group};
pub use key_use::{KeyFinder, KeyUse};
pub use secrets::Secrets;
pub use usage::{Declared, KeySpec};

use crate::refusal::Refusal;
use crate::tx::Tx;
use crate::view::View;
use base::DatabaseId;
use resp::Reply;
use resp::integer::parse_i64;

/// Every family of the engine.
pub const FAMILIES: &[&[Command<DataFn>]] = &[
    bitmap::COMMANDS,
    geo::COMMANDS,
    hash::COMMANDS,
    hyperloglog::COMMANDS,
    key::COMMANDS,
    list::COMMANDS,
    publish::COMMANDS,
    set::COMMANDS,
    sorted::COMMANDS,
    stream::COMMANDS,
    string::COMMANDS,
];

/// An argument that Redis reads as an `int` of C.
///
/// # Errors
/// Redis's texts for what is no integer, and for one that is none of these.
pub fn int_argument(argument: &[u8]) -> Result<i32, Refusal> {
    const RANGE: Refusal =
        Refusal::of("ERR value is out of range, value must between -2147483648 and 2147483647");
    let integer = parse_i64(argument).ok_or(Refusal::NOT_AN_INTEGER)?;
    i32::try_from(integer).map_err(|_| RANGE)
}

/// A database's number as an argument.
///
/// # Errors
/// Redis's texts for what is no such number, and for a number without a database.
pub fn database_argument(argument: &[u8], databases: u32) -> Result<DatabaseId, Refusal> {
    database_of(int_argument(argument)?, databases)
}

/// The database of this number.
///
/// # Errors
/// Redis's text if there is none.
pub(crate) fn database_of(index: i32, databases: u32) -> Result<DatabaseId, Refusal> {
    u32::try_from(index)
        .ok()
        .filter(|index| *index < databases)
        .map(DatabaseId)
        .ok_or(Refusal::of("ERR DB index is out of range"))
}

/// The result of a command function: a refusal is one Redis error line, and then nothing changed.
pub type Outcome = Result<(), Refusal>;

/// Reads get a [`View`], writes the [`Tx`]: a command declared read-only cannot change a key.
#[derive(Clone, Copy)]
pub enum DataFn {
    Read(fn(&mut View<'_>, Args<'_>, &mut Reply) -> Outcome),
    Write(fn(&mut Tx<'_>, Args<'_>, &mut Reply) -> Outcome),
}

/// One command, or one subcommand of a container (its usage line begins with two upper-case words).
#[derive(Clone, Copy, Debug)]
pub struct Command<F: 'static> {
    /// As in Redis's documentation: `SET key value [NX | XX]`. `key`-like words are keys.
    pub usage: &'static str,
    pub function: F,
    pub flags: Flags,
    pub group: Group,
    pub summary: &'static str,
    /// The Redis version that brought it.
    pub since: &'static str,
    pub complexity: &'static str,
    /// Overrides the arity counted in the usage line. 0: counted.
    pub arity: i32,
    /// Overrides the keys found in the usage line.
    pub keys: Option<&'static [KeySpec]>,
    /// What becomes of its keys, in the words of [`KeyUse`]; empty: its flags tell.
    pub key_use: &'static str,
    /// Overrides the key specifications where there are several, or some of another form than the
    /// usage line tells. One is written `begin,find,use`: begin is `@index` or `KEYWORD:from`, find
    /// is `last/step/limit` or `#count/first/step` or `?`, where nothing tells (Redis
    /// documentation, "Command key specifications").
    pub key_specs: &'static [&'static str],
    /// Finds the keys of a request where the specifications do not tell, or only in part.
    pub find_keys: Option<KeyFinder>,
    pub channels: Channels,
    pub secrets: Secrets,
    /// Hints for clients that talk to several shards, as COMMAND INFO lists them (Redis
    /// documentation, "Command tips").
    pub tips: &'static [&'static str],
    /// ACL categories that neither its group nor its flags tell.
    pub categories: &'static [&'static str],
}

impl<F: Copy + 'static> Command<F> {
    pub const fn new(usage: &'static str, function: F, flags: Flags) -> Self {
        Self {
            usage,
            function,
            flags,
            group: Group::Generic,
            summary: "",
            since: "1.0.0",
            complexity: "",
            arity: 0,
            keys: None,
            key_use: "",
            key_specs: &[],
            find_keys: None,
            channels: Channels::None,
            secrets: Secrets::None,
            tips: &[],
            categories: &[],
        }
    }

    /// The summary that COMMAND DOCS shows.
    pub const fn doc(mut self, summary: &'static str) -> Self {
        self.summary = summary;
        self
    }

    pub const fn group(mut self, group: Group) -> Self {
        self.group = group;
        self
    }

    pub const fn since(mut self, version: &'static str) -> Self {
        self.since = version;
        self
    }

    /// The complexity that COMMAND DOCS shows.
    pub const fn cost(mut self, complexity: &'static str) -> Self {
        self.complexity = complexity;
        self
    }

    /// Adds flags.
    pub const fn with(mut self, flags: Flags) -> Self {
        self.flags = self.flags.union(flags);
        self
    }

    /// Takes flags away that its declaration gave it.
    pub const fn without(mut self, flags: Flags) -> Self {
        self.flags = self.flags.without(flags);
        self
    }

    /// For operators: in the ACL categories @admin and @dangerous.
    pub const fn admin(self) -> Self {
        self.with(Flags::ADMIN)
    }

    pub const fn allowed_in_scripts(self) -> Self {
        self.without(Flags::NOSCRIPT)
    }

    /// Refused while data are loaded, or are stale.
    pub const fn needs_data(self) -> Self {
        self.without(Flags::LOADING.union(Flags::STALE))
    }

    /// Only what is known of its keys without their values counts.
    pub const fn needs_no_value(self) -> Self {
        self.with(Flags::NEEDS_NO_VALUE)
    }

    /// Uses its first key where its key specifications name none.
    pub const fn uses_lone_key(self) -> Self {
        self.with(Flags::USES_LONE_KEY)
    }

    pub const fn fast(self) -> Self {
        self.with(Flags::FAST)
    }

    /// Refused with -OOM when `maxmemory` is reached and nothing can be evicted.
    pub const fn denyoom(self) -> Self {
        self.with(Flags::DENYOOM)
    }

    pub const fn blocking(self) -> Self {
        self.with(Flags::BLOCKING)
    }

    pub const fn arity(mut self, arity: i32) -> Self {
        self.arity = arity;
        self
    }

    pub const fn keys(mut self, keys: &'static [KeySpec]) -> Self {
        self.keys = Some(keys);
        self
    }

    /// What becomes of its keys: words joined by `+`.
    pub const fn key_use(mut self, words: &'static str) -> Self {
        self.key_use = words;
        self
    }

    pub const fn key_specs(mut self, specs: &'static [&'static str]) -> Self {
        self.key_specs = specs;
        self
    }

    pub const fn find_keys(mut self, finder: KeyFinder) -> Self {
        self.find_keys = Some(finder);
        self
    }

    pub const fn channels(mut self, channels: Channels) -> Self {
        self.channels = channels;
        self
    }

    pub const fn secrets(mut self, secrets: Secrets) -> Self {
        self.secrets = secrets;
        self
    }

    pub const fn tips(mut self, tips: &'static [&'static str]) -> Self {
        self.tips = tips;
        self
    }

    pub const fn categories(mut self, categories: &'static [&'static str]) -> Self {
        self.categories = categories;
        self
    }

    /// The same row about another function.
    pub fn with_function<G: Copy>(self, function: G) -> Command<G> {
        let Self { usage, flags, group, summary, since, complexity, arity, keys, .. } = self;
        let Self { key_use, key_specs, find_keys, channels, secrets, tips, categories, .. } = self;
        Command {
            usage,
            function,
            flags,
            group,
            summary,
            since,
            complexity,
            arity,
            keys,
            key_use,
            key_specs,
            find_keys,
            channels,
            secrets,
            tips,
            categories,
        }
    }
}

/// Declares a command that only reads keys.
pub const fn read(
    usage: &'static str,
    function: fn(&mut View<'_>, Args<'_>, &mut Reply) -> Outcome,
) -> Command<DataFn> {
    Command::new(usage, DataFn::Read(function), Flags::READONLY)
}

/// Declares a command that may change keys.
pub const fn write(
    usage: &'static str,
    function: fn(&mut Tx<'_>, Args<'_>, &mut Reply) -> Outcome,
) -> Command<DataFn> {
    Command::new(usage, DataFn::Write(function), Flags::WRITE)
}
