//! Command flags and groups, with the words that COMMAND INFO uses.

/// A set of command flags.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Flags(u64);

impl Flags {
    pub const NONE: Self = Self(0);
    pub const WRITE: Self = Self(1);
    pub const READONLY: Self = Self(1 << 1);
    pub const DENYOOM: Self = Self(1 << 2);
    pub const ADMIN: Self = Self(1 << 3);
    pub const PUBSUB: Self = Self(1 << 4);
    pub const NOSCRIPT: Self = Self(1 << 5);
    pub const BLOCKING: Self = Self(1 << 6);
    pub const LOADING: Self = Self(1 << 7);
    pub const STALE: Self = Self(1 << 8);
    pub const SKIP_MONITOR: Self = Self(1 << 9);
    pub const SKIP_SLOWLOG: Self = Self(1 << 10);
    pub const ASKING: Self = Self(1 << 11);
    pub const FAST: Self = Self(1 << 12);
    pub const NO_AUTH: Self = Self(1 << 13);
    pub const MAY_REPLICATE: Self = Self(1 << 14);
    pub const NO_MANDATORY_KEYS: Self = Self(1 << 15);
    pub const PROTECTED: Self = Self(1 << 16);
    pub const NO_ASYNC_LOADING: Self = Self(1 << 17);
    pub const NO_MULTI: Self = Self(1 << 18);
    pub const ALLOW_BUSY: Self = Self(1 << 19);
    pub const MOVABLEKEYS: Self = Self(1 << 20);
    /// Not a flag of Redis's: the answer depends on every key, so it waits for the last write.
    pub const WHOLE_KEYSPACE: Self = Self(1 << 21);
    /// In the ACL category @dangerous beside what its other flags say.
    pub const DANGEROUS: Self = Self(1 << 22);
    /// In the ACL category @keyspace.
    pub const KEYSPACE: Self = Self(1 << 23);

    // No flags of Redis's either: where it compares functions or names.

    /// EXEC: what is queued is what it does.
    pub const EXECUTES_QUEUE: Self = Self(1 << 24);
    /// Runs at once although MULTI is open.
    pub const RUNS_INSIDE_MULTI: Self = Self(1 << 25);
    /// A client that subscribes and speaks RESP2 may send it.
    pub const FOR_SUBSCRIBERS: Self = Self(1 << 26);
    /// Writes to the log although it changes no key.
    pub const WRITES_LOG: Self = Self(1 << 27);
    /// May run while the keys are a part of a data set whose transfer was cut short.
    pub const BEARS_PART: Self = Self(1 << 28);
    /// Waits for another server, so it cannot be part of a unit, which waits for nothing.
    pub const AWAITS_SERVER: Self = Self(1 << 29);
    /// Reads keys that a request does not name.
    pub const READS_UNNAMED: Self = Self(1 << 30);
    /// Brings keys from elsewhere, perhaps from this very server: it waits for no migration.
    pub const RESTORES: Self = Self(1 << 31);
    /// CLIENT CACHING stays in force behind this command, rather than ending with it.
    pub const KEEPS_CACHING: Self = Self(1 << 32);
    /// Loads or unloads a module, which `enable-module-command` must allow.
    pub const CHANGES_MODULES: Self = Self(1 << 33);

    /// Needs no value of its keys, only what is known of them without: what is not in memory stays
    /// where it is.
    pub const NEEDS_NO_VALUE: Self = Self(1 << 34);

    /// With its first key alone it has none by its key specifications, as in Redis
    /// (docs/compatibility.md), and uses it all the same.
    pub const USES_LONE_KEY: Self = Self(1 << 35);

    /// Waits until the shard's libraries of functions are compiled.
    pub const NEEDS_LIBRARIES: Self = Self(1 << 41);

    /// Runs a script or a function, which may declare flags of its own.
    pub const RUNS_SCRIPT: Self = Self(1 << 40);

    /// SELECT: what a queue has behind it is about another database.
    pub const SELECTS_DATABASE: Self = Self(1 << 42);

    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    pub const fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// The words of COMMAND INFO, in Redis's order. It has none for `MAY_REPLICATE`.
    pub fn words(self) -> impl Iterator<Item = &'static str> {
        const WORDS: [(Flags, &str); 19] = [
            (Flags::WRITE, "write"),
            (Flags::READONLY, "readonly"),
            (Flags::DENYOOM, "denyoom"),
            (Flags::ADMIN, "admin"),
            (Flags::PUBSUB, "pubsub"),
            (Flags::NOSCRIPT, "noscript"),
            (Flags::BLOCKING, "blocking"),
            (Flags::LOADING, "loading"),
            (Flags::STALE, "stale"),
            (Flags::SKIP_MONITOR, "skip_monitor"),
            (Flags::SKIP_SLOWLOG, "skip_slowlog"),
            (Flags::ASKING, "asking"),
            (Flags::FAST, "fast"),
            (Flags::NO_AUTH, "no_auth"),
            (Flags::NO_MANDATORY_KEYS, "no_mandatory_keys"),
            (Flags::NO_ASYNC_LOADING, "no_async_loading"),
            (Flags::NO_MULTI, "no_multi"),
            (Flags::ALLOW_BUSY, "allow_busy"),
            (Flags::MOVABLEKEYS, "movablekeys"),
        ];
        WORDS.iter().filter(move |(flag, _)| self.contains(*flag)).map(|(_, word)| *word)
    }
}

/// The arguments that are channels, which a user needs a right to. Whoever unsubscribes needs none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Channels {
    None,
    /// The first argument, to publish to.
    First,
    /// Every argument, to subscribe to.
    All,
    /// Every argument, a pattern of channels to subscribe to.
    Patterns,
}

/// The group that COMMAND DOCS names; most imply an ACL category.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Group {
    Generic,
    String,
    List,
    Set,
    SortedSet,
    Hash,
    PubSub,
    Transactions,
    Connection,
    Server,
    Scripting,
    HyperLogLog,
    Cluster,
    Sentinel,
    Geo,
    Stream,
    Bitmap,
}

impl Group {
    /// As COMMAND DOCS writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Generic => "generic",
            Self::String => "string",
            Self::List => "list",
            Self::Set => "set",
            Self::SortedSet => "sorted-set",
            Self::Hash => "hash",
            Self::PubSub => "pubsub",
            Self::Transactions => "transactions",
            Self::Connection => "connection",
            Self::Server => "server",
            Self::Scripting => "scripting",
            Self::HyperLogLog => "hyperloglog",
            Self::Cluster => "cluster",
            Self::Sentinel => "sentinel",
            Self::Geo => "geo",
            Self::Stream => "stream",
            Self::Bitmap => "bitmap",
        }
    }

    /// The ACL category that every command of the group is in.
    pub const fn category(self) -> Option<&'static str> {
        match self {
            // A flag says of what is in the category pubsub.
            Self::Generic | Self::Server | Self::Cluster | Self::Sentinel | Self::PubSub => None,
            Self::SortedSet => Some("sortedset"),
            Self::Transactions => Some("transaction"),
            group => Some(group.name()),
        }
    }
}
