//! All commands in one table: the engine's families and the node's own.
//!
//! Looked up once per request, so by a hash of the name in either case, without allocating.

use crate::command::SessionFn;
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
    pub declared: Declared,
    pub row: Command<Function>,
    /// The declaration's flags and those that follow from it.
    pub flags: Flags,
    /// The container's id for a subcommand.
    pub parent: Option<CommandId>,
    pub subcommands: Vec<CommandId>,
    /// The first argument that is a key, if its place is fixed: what prefetching looks at. 0: none.
    pub first_key: usize,
}

impl Registered {
    /// The name in lower case, `config|get` for a subcommand.
    pub fn name(&self) -> &str {
        &self.declared.name
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
            if command.declared.name.as_bytes().eq_ignore_ascii_case(name) {
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
        let declared = Declared { name: name.to_owned(), arity: -2, keys: Vec::new() };
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
        self.commands.push(Registered { id, declared, row, flags, parent, subcommands, first_key });
        id
    }

    fn index(&mut self, id: CommandId) {
        let mut bucket = hash(self.command(id).name().as_bytes()) as usize & (BUCKETS - 1);
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
