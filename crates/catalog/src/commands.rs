//! All commands in one table.
//!
//! Looked up once per request, so by a hash of the name in either case, without allocating.

use crate::category::Categories;
use crate::demand::Demand;
use crate::key_specs::{Spec, specs_of};
use crate::keys::Shape;
use engine::command::{Command, Declared, Flags};

/// Names a command, or a subcommand, in the catalogue.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CommandId(pub u16);

/// What sort of function a command has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A function of the engine that is given a view of the keys.
    Read,
    /// A function of the engine that may change keys.
    Write,
    /// A function of the node.
    Node,
    /// None: its subcommands have.
    Container,
}

/// One command with everything derived from its declaration.
#[derive(Clone, Debug)]
pub struct Registered {
    pub id: CommandId,
    /// What clients call it (`rename-command`), in lower case; empty: nobody may. A subcommand is
    /// found through its container.
    pub called: Vec<u8>,
    pub declared: Declared,
    pub row: Command<Kind>,
    /// The declaration's flags and those that follow from it.
    pub flags: Flags,
    pub demand: Demand,
    /// The container's id for a subcommand.
    pub parent: Option<CommandId>,
    pub subcommands: Vec<CommandId>,
    /// The first argument that is a key, if its place is fixed. 0: none.
    pub first_key: usize,
    /// The argument that is most likely the first key, also where a number tells how many there
    /// are: what prefetching looks at. 0: none.
    pub likely_key: usize,
    /// Where its keys are, and what becomes of them.
    pub specs: Vec<Spec>,
    pub(crate) shape: Shape,
    /// The ACL categories it is in.
    pub categories: Categories,
}

impl Registered {
    /// The name in lower case, `config|get` for a subcommand.
    #[inline]
    pub fn name(&self) -> &str {
        &self.declared.name
    }

    #[inline]
    pub fn kind(&self) -> Kind {
        self.row.function
    }

    /// Whether a client that sends this word, in whatever case, means the command. Written out: the
    /// standard library folds both sides, byte by byte, and this is asked for every request.
    #[inline]
    fn is_called(&self, word: &[u8]) -> bool {
        let is_same = |(byte, own): (&u8, &u8)| byte.to_ascii_lowercase() == *own;
        word.len() == self.called.len() && word.iter().zip(&self.called).all(is_same)
    }

    /// Whether the command may change keys and so needs the log: a few that Redis calls reads do.
    #[inline]
    pub fn may_write(&self) -> bool {
        self.kind() == Kind::Write || self.flags.contains(Flags::WRITE)
    }

    /// Whether a request of `count` arguments has a permitted number of them.
    #[inline]
    pub fn admits(&self, count: usize) -> bool {
        let arity = self.declared.arity;
        if arity >= 0 { count == arity as usize } else { count >= arity.unsigned_abs() as usize }
    }
}

/// Every command that the server knows.
#[derive(Clone, Debug)]
pub struct Catalog {
    commands: Vec<Registered>,
    /// By what clients call them.
    called: Names,
    /// By their own names.
    own: Names,
}

impl Catalog {
    /// Merges rows, in their order. Containers come into being with their first subcommand. Beside
    /// the catalogue: the rows' functions, by [`CommandId`]; containers have none.
    pub fn new<F: Copy + 'static>(
        rows: impl IntoIterator<Item = Command<F>>,
        kind_of: impl Fn(F) -> Kind,
    ) -> (Self, Vec<Option<F>>) {
        let mut catalog =
            Self { commands: Vec::new(), called: Names::default(), own: Names::default() };
        let mut functions = Vec::new();
        for row in rows {
            let id = catalog.add(row.with_function(kind_of(row.function)));
            functions.resize(catalog.len(), None);
            functions[usize::from(id.0)] = Some(row.function);
        }
        (catalog, functions)
    }

    /// Lets clients find a command under another name, or, if that is empty, not at all. COMMAND
    /// and the statistics go on showing its own name, as Redis does.
    ///
    /// # Errors
    /// Redis's line for a command that is not there, or a name that is taken.
    pub fn rename(&mut self, from: &[u8], to: &[u8]) -> Result<(), &'static str> {
        let id = self.find_plain(from).ok_or("No such command in rename-command")?.id;
        let holder = if to.is_empty() { None } else { self.find_plain(to) };
        if holder.is_some_and(|holder| holder.id != id) {
            return Err("Target command name already exists");
        }
        self.commands[id.0 as usize].called = to.to_ascii_lowercase();
        self.called = Names::default();
        for command in self.commands.iter().filter(|command| command.parent.is_none()) {
            if !command.called.is_empty() {
                self.called.add(&command.called, command.id);
            }
        }
        Ok(())
    }

    /// As [`Self::find`], for who sends the same command again and again.
    #[inline]
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
        self.subcommand(command, subcommand).or(Some(command))
    }

    /// A command by its own name, whatever clients call it; `container|subcommand` is one too.
    pub fn find_own(&self, name: &[u8]) -> Option<&Registered> {
        let (name, subcommand) = match name.iter().position(|byte| *byte == b'|') {
            Some(at) => (&name[..at], Some(&name[at + 1..])),
            None => (name, None),
        };
        let is_it = |id| name.eq_ignore_ascii_case(self.command(id).name().as_bytes());
        let command = self.command(self.own.find(name, is_it)?);
        match subcommand {
            Some(subcommand) => self.subcommand(command, subcommand),
            None => Some(command),
        }
    }

    fn subcommand(&self, container: &Registered, name: &[u8]) -> Option<&Registered> {
        let mut subcommands = container.subcommands.iter().map(|id| self.command(*id));
        subcommands.find(|registered| {
            let (_, own) = registered.name().split_once('|').unwrap_or_default();
            own.as_bytes().eq_ignore_ascii_case(name)
        })
    }

    #[inline]
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

    #[inline]
    fn find_plain(&self, name: &[u8]) -> Option<&Registered> {
        let id = self.called.find(name, |id| self.command(id).is_called(name))?;
        Some(self.command(id))
    }

    fn add(&mut self, row: Command<Kind>) -> CommandId {
        let declared = Declared::new(row.usage, row.arity, row.keys);
        let parent = declared.name.split_once('|').map(|(container, _)| {
            let known = self.find_plain(container.as_bytes()).map(|c| c.id);
            known.unwrap_or_else(|| self.push_container(container, &row))
        });
        let id = self.push(row, declared, parent);
        if let Some(parent) = parent {
            let since = self.command(id).row.since;
            let container = &mut self.commands[parent.0 as usize];
            container.subcommands.push(id);
            if version(since) < version(container.row.since) {
                container.row.since = since;
            }
        }
        id
    }

    fn push_container(&mut self, name: &str, first: &Command<Kind>) -> CommandId {
        let mut row = Command::new(first.usage, Kind::Container, Flags::NONE);
        row.group = first.group;
        row.since = first.since;
        let declared =
            Declared { name: name.to_owned(), arity: -2, keys: Vec::new(), member: None };
        self.push(row, declared, None)
    }

    fn push(
        &mut self,
        row: Command<Kind>,
        declared: Declared,
        parent: Option<CommandId>,
    ) -> CommandId {
        let id = CommandId(self.commands.len() as u16);
        let flags = row.flags.union(declared.movable());
        let first_key = declared.range().0;
        let likely_key = if first_key > 0 { first_key } else { declared.first_counted() };
        let subcommands = Vec::new();
        let called = declared.name.clone().into_bytes();
        let specs = specs_of(&row, &declared, flags);
        let shape = Shape::of(&specs, &declared, row.find_keys.is_some());
        let is_container = row.function == Kind::Container;
        let categories = Categories::of(&declared.name, &row, flags, is_container);
        if parent.is_none() {
            self.called.add(&called, id);
            self.own.add(&called, id);
        }
        self.commands.push(Registered {
            id,
            called,
            declared,
            row,
            flags,
            demand: Demand::of(flags, row.function),
            parent,
            subcommands,
            first_key,
            likely_key,
            specs,
            shape,
            categories,
        });
        id
    }
}

/// Commands by name, in either case: open addressing.
#[derive(Clone, Debug)]
struct Names {
    /// An id + 1 each, 0 is empty. A power of two long.
    buckets: Box<[u16]>,
}

/// Several times as many as there are commands, so that the first look finds most of them.
const BUCKETS: usize = 2048;

impl Default for Names {
    fn default() -> Self {
        Self { buckets: vec![0; BUCKETS].into_boxed_slice() }
    }
}

impl Names {
    /// The command of this name; `is_it` says whether a candidate is.
    #[inline]
    fn find(&self, name: &[u8], is_it: impl Fn(CommandId) -> bool) -> Option<CommandId> {
        let mut bucket = hash(name) as usize & (BUCKETS - 1);
        loop {
            let id = CommandId(self.buckets[bucket].checked_sub(1)?);
            if is_it(id) {
                return Some(id);
            }
            bucket = (bucket + 1) & (BUCKETS - 1);
        }
    }

    fn add(&mut self, name: &[u8], id: CommandId) {
        let mut bucket = hash(name) as usize & (BUCKETS - 1);
        while self.buckets[bucket] != 0 {
            bucket = (bucket + 1) & (BUCKETS - 1);
        }
        self.buckets[bucket] = id.0 + 1;
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

    /// The engine's commands and a container.
    fn catalog() -> Catalog {
        let rows = engine::command::FAMILIES.iter().flat_map(|family| family.iter());
        let rows = rows.map(|row| row.with_function(Kind::Read));
        let config = ["CONFIG GET parameter", "CONFIG SET parameter value"];
        let config = config.map(|usage| Command::new(usage, Kind::Node, Flags::NONE));
        Catalog::new(rows.chain(config), |kind| kind).0
    }

    fn renamed(pairs: &[(&str, &str)]) -> Result<Catalog, &'static str> {
        let mut catalog = catalog();
        for (from, to) in pairs {
            catalog.rename(from.as_bytes(), to.as_bytes())?;
        }
        Ok(catalog)
    }

    #[test]
    fn a_renamed_command_is_found_under_its_new_name_only() {
        let catalog = renamed(&[("GET", "fetch"), ("set", "GET"), ("config", "c")]).expect("free");
        let name = |words: (&str, Option<&str>)| {
            let subcommand = words.1.map(str::as_bytes);
            catalog.find(words.0.as_bytes(), subcommand).map(|found| found.name().to_owned())
        };
        assert_eq!(name(("FETCH", None)).as_deref(), Some("get"));
        assert_eq!(name(("get", None)).as_deref(), Some("set"));
        assert_eq!(name(("set", None)), None);
        assert_eq!(name(("C", Some("GET"))).as_deref(), Some("config|get"));
        assert_eq!(name(("config", Some("get"))), None);
        assert_eq!(name(("append", None)).as_deref(), Some("append"));
        let own = |name: &str| catalog.find_own(name.as_bytes()).map(Registered::name);
        assert_eq!(own("Get"), Some("get"));
        assert_eq!(own("fetch"), None);
        assert_eq!(own("CONFIG|get"), Some("config|get"));
        assert_eq!(own("config|nosuch"), None);
        assert_eq!(own("get|x"), None);
    }

    #[test]
    fn who_repeats_a_command_finds_what_others_find() {
        let catalog = renamed(&[("GET", "fetch"), ("flushall", "")]).expect("free");
        let names: [&[u8]; 6] = [b"get", b"Fetch", b"set", b"SET", b"config", b""];
        let ids = std::iter::once(None).chain(catalog.iter().map(|command| Some(command.id)));
        for last in ids {
            // What has no name cannot have been sent before.
            if last.is_some_and(|id| catalog.command(id).called.is_empty()) {
                continue;
            }
            for name in names {
                let expected = catalog.find(name, Some(b"get")).map(|command| command.id);
                let found = catalog.find_again(last, name, Some(b"get"));
                assert_eq!(found.map(|command| command.id), expected);
            }
        }
    }

    #[test]
    fn a_command_without_a_name_is_not_found() {
        let catalog = renamed(&[("FLUSHALL", "")]).expect("known");
        assert!(catalog.find(b"flushall", None).is_none());
        assert!(catalog.find(b"", None).is_none());
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
