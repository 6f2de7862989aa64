//! ACL categories: the commands that `+@name` stands for. A command's group and flags say which it
//! is in; what neither says, its row says.

use engine::command::{Command, Flags};

/// Every category, in Redis's order.
pub const NAMES: [&str; 21] = [
    "keyspace",
    "read",
    "write",
    "set",
    "sortedset",
    "list",
    "hash",
    "string",
    "bitmap",
    "hyperloglog",
    "geo",
    "stream",
    "pubsub",
    "admin",
    "fast",
    "slow",
    "blocking",
    "dangerous",
    "connection",
    "transaction",
    "scripting",
];

/// A set of categories.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Categories(u32);

impl Categories {
    /// The category of this name, in any case.
    pub fn named(name: &[u8]) -> Option<Self> {
        let index = NAMES.iter().position(|known| name.eq_ignore_ascii_case(known.as_bytes()))?;
        Some(Self(1 << index))
    }

    /// Each category alone, with its name.
    pub fn each() -> impl Iterator<Item = (Self, &'static str)> {
        NAMES.iter().enumerate().map(|(index, name)| (Self(1 << index), *name))
    }

    /// The categories of a command.
    pub fn of<F>(name: &str, row: &Command<F>, flags: Flags, is_container: bool) -> Self {
        let group = match row.group.category() {
            // Unlike its siblings, Redis has PUBSUB HELP in no category of its own.
            _ if is_container || name == "pubsub|help" => None,
            _ if name.starts_with("command") => Some("connection"),
            category => category,
        };
        let is_in = |category: &str| match category {
            "keyspace" => flags.contains(Flags::KEYSPACE),
            // EVAL and its kin are in no category for what their scripts do.
            "read" => flags.contains(Flags::READONLY) && !flags.contains(Flags::RUNS_SCRIPT),
            "write" => flags.contains(Flags::WRITE),
            "pubsub" => flags.contains(Flags::PUBSUB),
            "admin" => flags.contains(Flags::ADMIN),
            "fast" => flags.contains(Flags::FAST),
            "slow" => !flags.contains(Flags::FAST),
            "blocking" => flags.contains(Flags::BLOCKING),
            "dangerous" => flags.intersects(Flags::ADMIN.union(Flags::DANGEROUS)),
            _ => false,
        };
        let found = Self::each().filter(|(_, category)| {
            is_in(category) || group == Some(*category) || row.categories.contains(category)
        });
        found.fold(Self::default(), |all, (one, _)| Self(all.0 | one.0))
    }

    pub fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The names, in Redis's order.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        Self::each().filter(move |(one, _)| self.intersects(*one)).map(|(_, name)| name)
    }
}
