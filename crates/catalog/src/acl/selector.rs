//! What one set of rules allows: commands, keys, channels. A user has a root selector, and may have
//! further ones; a request passes if one of them allows all of it.

use super::Terms;
use super::keys::Access;
use super::rule::{RuleError, is_one_word};
use crate::category::Categories;
use crate::commands::{Catalog, CommandId, Registered};
use engine::command::Args;
use engine::glob;
use engine::work::Work;
use resp::inline::split_line;
use std::collections::BTreeMap;

/// `~pattern`, `%R~pattern`, `%W~pattern`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct KeyPattern {
    pub pattern: Vec<u8>,
    pub reads: bool,
    pub writes: bool,
}

impl KeyPattern {
    fn grants(&self, access: Access) -> bool {
        (self.reads || !access.reads) && (self.writes || !access.writes)
    }
}

/// The commands that a selector allows: a bit each, and one for commands that are yet to come.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Commands {
    bits: Vec<u64>,
    pub future: bool,
}

impl Commands {
    pub fn new(all: bool, catalog: &Catalog) -> Self {
        let word = if all { u64::MAX } else { 0 };
        Self { bits: vec![word; catalog.len().div_ceil(64)], future: all }
    }

    pub fn allows(&self, id: CommandId) -> bool {
        self.bits[usize::from(id.0) / 64] >> (id.0 % 64) & 1 == 1
    }

    fn set_one(&mut self, id: CommandId, is_allowed: bool) {
        let (word, bit) = (&mut self.bits[usize::from(id.0) / 64], 1 << (id.0 % 64));
        if is_allowed { *word |= bit } else { *word &= !bit }
    }

    /// Allows or forbids a command and all its subcommands.
    pub fn set(&mut self, command: &Registered, is_allowed: bool) {
        self.set_one(command.id, is_allowed);
        for id in &command.subcommands {
            self.set_one(*id, is_allowed);
        }
    }

    /// Allows or forbids the commands of a category, those without a parent first: a container
    /// takes its subcommands along. The ones that it changed.
    pub fn set_category(
        &mut self,
        category: Categories,
        is_allowed: bool,
        catalog: &Catalog,
    ) -> Vec<CommandId> {
        let is_in = |command: &&Registered| command.categories.intersects(category);
        let changed: Vec<&Registered> = catalog.iter().filter(is_in).collect();
        for command in &changed {
            self.set(command, is_allowed);
        }
        changed.into_iter().map(|command| command.id).collect()
    }
}

/// One selector.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Selector {
    pub commands: Commands,
    /// `+@all` was said and nothing was taken away since.
    pub all_commands: bool,
    /// `+select|0`: first arguments with which a command that is not allowed may be called.
    pub first_arguments: BTreeMap<CommandId, Vec<Vec<u8>>>,
    pub all_keys: bool,
    pub key_patterns: Vec<KeyPattern>,
    pub all_channels: bool,
    pub channels: Vec<Vec<u8>>,
}

impl Selector {
    /// Allows nothing, or every channel (`acl-pubsub-default`).
    pub fn new(terms: Terms<'_>) -> Self {
        Self {
            commands: Commands::new(false, terms.catalog),
            all_commands: false,
            first_arguments: BTreeMap::new(),
            all_keys: false,
            key_patterns: Vec::new(),
            all_channels: terms.all_channels,
            channels: Vec::new(),
        }
    }

    /// From `(rules)`. Quotes that do not balance leave it without rules, as in Redis.
    pub fn parse(rules: &[u8], terms: Terms<'_>) -> Result<Self, RuleError> {
        let mut selector = Self::new(terms);
        for rule in split_line(rules).unwrap_or_default() {
            selector.apply(&rule, terms)?;
        }
        Ok(selector)
    }

    /// Whether nothing is out of its reach.
    pub fn is_unrestricted(&self) -> bool {
        self.all_commands && self.all_keys && self.all_channels
    }

    /// Applies one rule. Counts a step, and one for each pattern that it is compared with.
    pub fn apply(&mut self, rule: &[u8], terms: Terms<'_>) -> Result<(), RuleError> {
        let catalog = terms.catalog;
        terms.work.steps(1 + self.key_patterns.len() + self.channels.len());
        let is = |word: &str| rule.eq_ignore_ascii_case(word.as_bytes());
        match rule {
            _ if is("allkeys") || is("~*") => self.reset_keys(true),
            _ if is("resetkeys") => self.reset_keys(false),
            _ if is("allchannels") || is("&*") => self.reset_channels(true),
            _ if is("resetchannels") => self.reset_channels(false),
            _ if is("allcommands") || is("+@all") => self.reset_commands(true, catalog),
            _ if is("nocommands") || is("-@all") => self.reset_commands(false, catalog),
            [b'~', pattern @ ..] => self.add_key_pattern(pattern, true, true)?,
            [b'%', rest @ ..] => self.add_limited_pattern(rest)?,
            [b'&', pattern @ ..] => self.add_channel(pattern)?,
            [b'+', b'@', name @ ..] => self.set_category(name, true, catalog)?,
            [b'-', b'@', name @ ..] => self.set_category(name, false, catalog)?,
            [b'+', name @ ..] => self.allow(name, catalog)?,
            [b'-', name @ ..] => {
                let command = catalog.find_own(name).ok_or(RuleError::UnknownCommand)?;
                self.set_command(command, false);
            }
            _ => return Err(RuleError::Syntax),
        }
        Ok(())
    }

    fn reset_keys(&mut self, all: bool) {
        self.all_keys = all;
        self.key_patterns.clear();
    }

    fn reset_channels(&mut self, all: bool) {
        self.all_channels = all;
        self.channels.clear();
    }

    fn reset_commands(&mut self, all: bool, catalog: &Catalog) {
        self.commands = Commands::new(all, catalog);
        self.all_commands = all;
        self.first_arguments.clear();
    }

    /// `R~pattern`, `W~pattern`, `RW~pattern`: what follows a `%`.
    fn add_limited_pattern(&mut self, rest: &[u8]) -> Result<(), RuleError> {
        if self.all_keys {
            return Err(RuleError::AllKeysAlready);
        }
        let (mut reads, mut writes) = (false, false);
        let mut pattern: &[u8] = &[];
        for (at, byte) in rest.iter().enumerate() {
            match byte.to_ascii_uppercase() {
                b'R' if !reads => reads = true,
                b'W' if !writes => writes = true,
                b'~' => {
                    pattern = &rest[at + 1..];
                    break;
                }
                _ => return Err(RuleError::Syntax),
            }
        }
        if !reads && !writes {
            return Err(RuleError::Syntax);
        }
        self.add_key_pattern(pattern, reads, writes)
    }

    fn add_key_pattern(
        &mut self,
        pattern: &[u8],
        reads: bool,
        writes: bool,
    ) -> Result<(), RuleError> {
        if self.all_keys {
            return Err(RuleError::AllKeysAlready);
        }
        if !is_one_word(pattern) {
            return Err(RuleError::Syntax);
        }
        match self.key_patterns.iter_mut().find(|known| known.pattern == pattern) {
            Some(known) => {
                known.reads |= reads;
                known.writes |= writes;
            }
            None => {
                let pattern = pattern.to_vec();
                self.key_patterns.push(KeyPattern { pattern, reads, writes });
            }
        }
        Ok(())
    }

    fn add_channel(&mut self, pattern: &[u8]) -> Result<(), RuleError> {
        if self.all_channels {
            return Err(RuleError::AllChannelsAlready);
        }
        if !is_one_word(pattern) {
            return Err(RuleError::Syntax);
        }
        if !self.channels.iter().any(|known| known == pattern) {
            self.channels.push(pattern.to_vec());
        }
        Ok(())
    }

    fn set_category(
        &mut self,
        name: &[u8],
        is_allowed: bool,
        catalog: &Catalog,
    ) -> Result<(), RuleError> {
        let category = Categories::named(name).ok_or(RuleError::UnknownCommand)?;
        for id in self.commands.set_category(category, is_allowed, catalog) {
            self.first_arguments.remove(&id);
        }
        self.all_commands &= is_allowed;
        Ok(())
    }

    fn set_command(&mut self, command: &Registered, is_allowed: bool) {
        self.commands.set(command, is_allowed);
        self.first_arguments.remove(&command.id);
        self.all_commands &= is_allowed;
    }

    /// `+name`, `+container|subcommand` or `+name|first-argument`: what follows the `+`.
    fn allow(&mut self, name: &[u8], catalog: &Catalog) -> Result<(), RuleError> {
        let find = |name| catalog.find_own(name).ok_or(RuleError::UnknownCommand);
        let Some(at) = name.iter().rposition(|byte| *byte == b'|') else {
            self.set_command(find(name)?, true);
            return Ok(());
        };
        let command = find(&name[..at])?;
        let first_argument = &name[at + 1..];
        if command.parent.is_some() {
            return Err(RuleError::FirstArgumentOfSubcommand);
        }
        if first_argument.is_empty() {
            return Err(RuleError::Syntax);
        }
        if !command.subcommands.is_empty() {
            self.set_command(find(name)?, true);
            return Ok(());
        }
        tracing::warn!(
            command = command.name(),
            "an ACL rule allows a command by its first argument, which Redis deprecates"
        );
        let known = self.first_arguments.entry(command.id).or_default();
        if !known.iter().any(|known| known.eq_ignore_ascii_case(first_argument)) {
            known.push(first_argument.to_vec());
        }
        Ok(())
    }

    /// Whether it allows the command itself, whatever its keys.
    pub fn allows_command(&self, command: &Registered, args: Args<'_>) -> bool {
        if self.all_commands || self.commands.allows(command.id) {
            return true;
        }
        let Some(first_arguments) = self.first_arguments.get(&command.id) else { return false };
        let given = args.get(1).unwrap_or_default();
        first_arguments.iter().any(|allowed| allowed.eq_ignore_ascii_case(given))
    }

    /// Whether it allows a key to be used so.
    pub fn allows_key(&self, key: &[u8], access: Access, work: &Work) -> bool {
        let fits = |pattern: &KeyPattern| {
            pattern.grants(access) && glob::matches(&pattern.pattern, key, work)
        };
        self.all_keys || self.key_patterns.iter().any(fits)
    }

    /// Whether it allows every key to be read: where a request does not name what it reads.
    pub fn reads_every_key(&self) -> bool {
        let is_star = |pattern: &KeyPattern| pattern.reads && pattern.pattern == b"*";
        self.all_keys || self.key_patterns.iter().any(is_star)
    }

    /// Whether it allows a channel, or, literally, a pattern to subscribe to.
    pub fn allows_channel(&self, channel: &[u8], is_pattern: bool, work: &Work) -> bool {
        self.all_channels || matches_channel(&self.channels, channel, is_pattern, work)
    }
}

/// Whether one of the patterns allows a channel. A pattern to subscribe to must be one of them.
pub fn matches_channel(allowed: &[Vec<u8>], channel: &[u8], is_pattern: bool, work: &Work) -> bool {
    allowed.iter().any(|pattern| {
        if is_pattern {
            work.step();
            pattern == channel
        } else {
            glob::matches(pattern, channel, work)
        }
    })
}
