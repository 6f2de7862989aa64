//! All commands in one table: the engine's families and the node's own.
//!
//! Looked up once per request, so by a hash of the name in either case, without allocating.

use crate::acl::category::Categories;
use crate::command::SessionFn;
use crate::command::key_specs::{Spec, specs_of};
use engine::command::{Command, DataFn, Declared, Flags};
use std::sync::OnceLock;

/// Names a command, or a subcommand, in the registry.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CommandId(pub u16);

/// What runs.
#[derive(Clone, Copy)]
pub enum Function {
    Data(DataFn),
    Session(SessionFn),
    /// A container: its subcommands run.
    Container,
}

/// One command with everything derived from its declaration.
pub struct Registered {
    pub id: CommandId,
    /// What clients call it (`rename-command`), in lower case; empty: nobody may. A subcommand is
    /// found through its container.
    pub called: Vec<u8>,
    pub declared: Declared,
    pub row: Command<Function>,
    /// The declaration's flags and those that follow from it.
    pub flags: Flags,
    /// The container's id for a subcommand.
    pub parent: Option<CommandId>,
    pub subcommands: Vec<CommandId>,
    /// The first argument that is a key, if its place is fixed: what prefetching looks at. 0: none.
    pub first_key: usize,
    /// Where its keys are, and what becomes of them.
    pub(crate) specs: Vec<Spec>,
    /// The ACL categories it is in.
    pub categories: Categories,
}

impl Registered {
    /// The name in lower case, `config|get` for a subcommand.
    pub fn name(&self) -> &str {
        &self.declared.name
    }

    /// Whether a client that sends this word, in whatever case, means the command. Written out: the
    /// standard library folds both sides, byte by byte, and this is asked for every request.
    fn is_called(&self, word: &[u8]) -> bool {
        let is_same = |(byte, own): (&u8, &u8)| byte.to_ascii_lowercase() == *own;
        word.len() == self.called.len() && word.iter().zip(&self.called).all(is_same)
    }

    /// Whether the command may change keys and so needs the log: a few that Redis calls reads do.
    pub fn may_write(&self) -> bool {
        let is_given_the_tx = matches!(self.row.function, Function::Data(DataFn::Write(_)));
        is_given_the_tx || self.flags.contains(Flags::WRITE)
    }

    /// Whether a request of `count` arguments has a permitted number of them.
    pub fn admits(&self, count: usize) -> bool {
        let arity = self.declared.arity;
        if arity >= 0 { count == arity as usize } else { count >= arity.unsigned_abs() as usize }
    }
}

/// Every command the server knows.
pub struct Registry {
    commands: Vec<Registered>,
    /// Open addressing over name hashes: id + 1, 0 is empty. A power of two long.
    buckets: Box<[u16]>,
}

const BUCKETS: usize = 2048;

impl Registry {
    /// Merges the families. Containers come into being with their first subcommand.
    pub fn new(
        data: &[&'static [Command<DataFn>]],
        session: &[&'static [Command<SessionFn>]],
    ) -> Self {
        let mut registry =
            Self { commands: Vec::new(), buckets: vec![0; BUCKETS].into_boxed_slice() };
        let data = data.iter().flat_map(|family| family.iter());
        let session = session.iter().flat_map(|family| family.iter());
        for row in data.map(|row| with_function(row, Function::Data(row.function))) {
            registry.add(row);
        }
        for row in session.map(|row| with_function(row, Function::Session(row.function))) {
            registry.add(row);
        }
        registry
    }

    /// Every family of the engine and of the node, merged once per process.
    pub fn standard() -> &'static Self {
        static STANDARD: OnceLock<Registry> = OnceLock::new();
        STANDARD.get_or_init(|| Self::new(engine::command::FAMILIES, crate::command::FAMILIES))
    }

    /// The registry of a server whose configuration renames commands. A process makes one, and
    /// keeps it in all its lives.
    ///
    /// # Panics
    /// If [`Self::rename`] refuses a name: the configuration was checked by it when it was read.
    pub fn with_names(renamed: &[(Vec<u8>, Vec<u8>)]) -> &'static Self {
        if renamed.is_empty() {
            return Self::standard();
        }
        Box::leak(Box::new(Self::renamed(renamed).expect("checked as it was read")))
    }

    /// All families, with other names for some commands, applied in order.
    ///
    /// # Errors
    /// As [`Self::rename`].
    pub fn renamed(renamed: &[(Vec<u8>, Vec<u8>)]) -> Result<Self, &'static str> {
        let mut registry = Self::new(engine::command::FAMILIES, crate::command::FAMILIES);
        for (from, to) in renamed {
            registry.rename(from, to)?;
        }
        Ok(registry)
    }

    /// Lets clients find a command under another name, or, if that is empty, not at all. COMMAND
    /// and the statistics go on showing its own name, as Redis does.
    ///
    /// # Errors
    /// Redis's line for a command that is not there, or a name that is taken.
    fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), &'static str> {
        let id = self.find_plain(from).ok_or("No such command in rename-command")?.id;
        let holder = if to.is_empty() { None } else { self.find_plain(to) };
        if holder.is_some_and(|holder| holder.id != id) {
            return Err("Target command name already exists");
        }
        self.commands[id.0 as usize].called = to.to_ascii_lowercase();
        self.buckets.fill(0);
        for id in 0..self.commands.len() as u16 {
            let command = self.command(CommandId(id));
            if command.parent.is_none() && !command.called.is_empty() {
                self.index(CommandId(id));
            }
        }
        Ok(())
    }

    /// As [`Self::find`], for who sends the same command again and again.
    pub fn find_again(
        &self,
        last: Option<CommandId>,
        name: &[u8],
        subcommand: Option<&[u8]>,
    ) -> Option<&Registered> {
        let again = last.map(|id| self.command(id)).filter(|command| {
            command.parent.is_none() && command.subcommands.is_empty() && command.is_called(name)
        });
        again.or_else(|| self.find(name, subcommand))
    }

    /// The command of a request, a container's subcommand included.
    pub fn find(&self, name: &[u8], subcommand: Option<&[u8]>) -> Option<&Registered> {
        let command = self.find_plain(name)?;
        if command.subcommands.is_empty() {
            return Some(command);
        }
        let Some(subcommand) = subcommand else { return Some(command) };
        command
            .subcommands
            .iter()
            .map(|id| self.command(*id))
            .find(|registered| {
                let (_, name) = registered.name().split_once('|').unwrap_or_default();
                name.as_bytes().eq_ignore_ascii_case(subcommand)
            })
            .or(Some(command))
    }

    pub fn command(&self, id: CommandId) -> &Registered {
        &self.commands[id.0 as usize]
    }

    /// All commands and subcommands, in order of declaration.
    pub fn iter(&self) -> impl Iterator<Item = &Registered> {
        self.commands.iter()
    }

    pub fn len(&self) -> usize {
        self.commands.len()
    }

    pub fn is_empty(&self) -> bool {
        self.commands.is_empty()
    }

    fn find_plain(&self, name: &[u8]) -> Option<&Registered> {
        let mut bucket = hash(name) as usize & (BUCKETS - 1);
        loop {
            let id = self.buckets[bucket].checked_sub(1)?;
            let command = &self.commands[id as usize];
            if command.is_called(name) {
                return Some(command);
            }
            bucket = (bucket + 1) & (BUCKETS - 1);
        }
    }

    fn add(&mut self, row: Command<Function>) {
        let declared = Declared::new(row.usage, row.arity, row.keys);
        let parent = declared.name.split_once('|').map(|(container, _)| {
            let known = self.find_plain(container.as_bytes()).map(|c| c.id);
            known.unwrap_or_else(|| self.push_container(container, &row))
        });
        let id = self.push(row, declared, parent);
        match parent {
            Some(parent) => {
                let since = self.command(id).row.since;
                let container = &mut self.commands[parent.0 as usize];
                container.subcommands.push(id);
                if version(since) < version(container.row.since) {
                    container.row.since = since;
                }
            }
            None => self.index(id),
        }
    }

    fn push_container(&mut self, name: &str, first: &Command<Function>) -> CommandId {
        let mut row = Command::new(first.usage, Function::Container, Flags::NONE);
        row.group = first.group;
        row.since = first.since;
        let declared =
            Declared { name: name.to_owned(), arity: -2, keys: Vec::new(), member: None };
        let id = self.push(row, declared, None);
        self.index(id);
        id
    }

    fn push(
        &mut self,
        row: Command<Function>,
        declared: Declared,
        parent: Option<CommandId>,
    ) -> CommandId {
        let id = CommandId(self.commands.len() as u16);
        let flags = row.flags.union(declared.movable());
        let first_key = declared.range().0;
        let subcommands = Vec::new();
        let called = declared.name.clone().into_bytes();
        let specs = specs_of(&declared, flags);
        let is_container = matches!(row.function, Function::Container);
        let categories = Categories::of(&declared.name, row.group, flags, is_container);
        self.commands.push(Registered {
            id,
            called,
            declared,
            row,
            flags,
            parent,
            subcommands,
            first_key,
            specs,
            categories,
        });
        id
    }

    fn index(&mut self, id: CommandId) {
        let mut bucket = hash(&self.command(id).called) as usize & (BUCKETS - 1);
        while self.buckets[bucket] != 0 {
            bucket = (bucket + 1) & (BUCKETS - 1);
        }
        self.buckets[bucket] = id.0 + 1;
    }
}

fn with_function<F: Copy>(row: &Command<F>, function: Function) -> Command<Function> {
    Command {
        usage: row.usage,
        function,
        flags: row.flags,
        group: row.group,
        summary: row.summary,
        since: row.since,
        complexity: row.complexity,
        arity: row.arity,
        keys: row.keys,
    }
}

/// A version's numbers, to compare.
fn version(text: &str) -> Vec<u32> {
    text.split('.').map(|number| number.parse().unwrap_or(0)).collect()
}

/// FNV-1a over the name with its case bit set. The names are ours, so nobody can aim for
/// collisions that matter.
fn hash(name: &[u8]) -> u32 {
    name.iter()
        .fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte | 0x20)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn renamed(pairs: &[(&str, &str)]) -> Result<Registry, &'static str> {
        let bytes = |text: &str| text.as_bytes().to_vec();
        let pairs: Vec<_> = pairs.iter().map(|(from, to)| (bytes(from), bytes(to))).collect();
        Registry::renamed(&pairs)
    }

    #[test]
    fn a_renamed_command_is_found_under_its_new_name_only() {
        let registry = renamed(&[("GET", "fetch"), ("set", "GET"), ("config", "c")]).expect("free");
        let name = |words: (&str, Option<&str>)| {
            let subcommand = words.1.map(str::as_bytes);
            registry.find(words.0.as_bytes(), subcommand).map(|found| found.name().to_owned())
        };
        assert_eq!(name(("FETCH", None)).as_deref(), Some("get"));
        assert_eq!(name(("get", None)).as_deref(), Some("set"));
        assert_eq!(name(("set", None)), None);
        assert_eq!(name(("C", Some("GET"))).as_deref(), Some("config|get"));
        assert_eq!(name(("config", Some("get"))), None);
        assert_eq!(name(("append", None)).as_deref(), Some("append"));
    }

    #[test]
    fn who_repeats_a_command_finds_what_others_find() {
        let registry = renamed(&[("GET", "fetch"), ("flushall", "")]).expect("free");
        let names: [&[u8]; 6] = [b"get", b"Fetch", b"set", b"SET", b"config", b""];
        let ids = std::iter::once(None).chain(registry.iter().map(|command| Some(command.id)));
        for last in ids {
            // What has no name cannot have been sent before.
            if last.is_some_and(|id| registry.command(id).called.is_empty()) {
                continue;
            }
            for name in names {
                let expected = registry.find(name, Some(b"get")).map(|command| command.id);
                let found = registry.find_again(last, name, Some(b"get"));
                assert_eq!(found.map(|command| command.id), expected);
            }
        }
    }

    #[test]
    fn a_command_without_a_name_is_not_found() {
        let registry = renamed(&[("FLUSHALL", "")]).expect("known");
        assert!(registry.find(b"flushall", None).is_none());
        assert!(registry.find(b"", None).is_none());
    }

    #[test]
    fn unknown_commands_and_taken_names_are_refused() {
        let unknown = Some("No such command in rename-command");
        assert_eq!(renamed(&[("nosuch", "x")]).err(), unknown);
        assert_eq!(renamed(&[("config|get", "x")]).err(), unknown);
        assert_eq!(renamed(&[("get", "a"), ("get", "b")]).err(), unknown);
        assert_eq!(renamed(&[("get", "set")]).err(), Some("Target command name already exists"));
    }
}
