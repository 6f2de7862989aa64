//! The numbered databases: what every effect changes and every command reads.

use crate::cold::ColdStore;
use crate::expiries::Expiries;
use crate::functions::Libraries;
use crate::ids::{HashedKey, KeyHash};
use crate::master::{Master, ReplicaOf};
use crate::rdb;
use crate::settings::Settings;
use crate::snapshot::Snapshot;
use crate::statistics::Statistics;
use crate::value::hash::next_expiry;
use crate::value::{Awaited, Entry, EntryRef, Recipe};
use crate::work::Work;
use base::{DatabaseId, HashKey, UnixMillis};
use std::any::Any;
use std::cell::Cell;
use structures::{KeyHasher, Table};

/// All databases of a shard.
pub struct Keyspace {
    pub(crate) databases: Vec<Database>,
    pub(crate) hasher: KeyHasher,
    /// A key of the request that runs, which the caller has hashed before. None between requests.
    pub(crate) hashed: Option<HashedKey>,
    pub settings: Settings,
    pub statistics: Statistics,
    /// Counts what long commands do.
    pub work: Work,
    /// What the shard holds in memory before its first key, in bytes: counts towards `maxmemory`,
    /// as in Redis. Set by the node.
    pub base_bytes: usize,
    /// The most memory that was found in use where `maxmemory` was exceeded, before anything left
    /// for that. Whoever tells of it takes it.
    pub most_bytes: Cell<u64>,
    /// Big values that a background thread should free.
    pub(crate) garbage: Vec<Box<dyn Any + Send>>,
    /// Records of the log leave what is big to [`Self::take_garbage`]: somebody calls it. If not it
    /// is freed at once.
    pub leaves_garbage: bool,
    /// The time of the unit or record being applied.
    pub(crate) now: UnixMillis,
    /// See [`Self::is_partial`].
    pub(crate) is_partial: bool,
    /// See [`Self::replica_of`].
    pub(crate) replica_of: ReplicaOf,
    /// See [`Self::libraries`].
    pub(crate) libraries: Libraries,
    /// The snapshot being written, if one is.
    pub(crate) snapshot: Option<Box<Snapshot>>,
    /// The values that are not in memory, where there may be any.
    pub(crate) cold: Option<Box<ColdStore>>,
}

/// One numbered database.
pub struct Database {
    pub(crate) table: Table<Entry>,
    pub(crate) expiries: Expiries,
    /// Hashes of which fields expire, by the time of the first of them.
    pub(crate) field_expiries: Expiries,
    /// Bytes of all entries and their values; the table's own are added on demand.
    pub(crate) entry_bytes: usize,
    /// The number that it had when the snapshot under way began: databases can be exchanged. One
    /// that came into being since has [`Self::NOT_WALKED`].
    pub(crate) walked_as: DatabaseId,
    /// Keys whose values are not in memory.
    pub(crate) cold_keys: usize,
    /// Bytes of the entries of these.
    pub(crate) cold_entry_bytes: usize,
    /// Keys whose values, or copies of them, lie in the store of cold values.
    pub(crate) placed: usize,
}

impl Database {
    /// A number that no database has.
    pub(crate) const NOT_WALKED: DatabaseId = DatabaseId(u32::MAX);

    pub(crate) fn new(hasher: KeyHasher) -> Self {
        Self {
            table: Table::new(hasher),
            expiries: Expiries::default(),
            field_expiries: Expiries::default(),
            entry_bytes: 0,
            walked_as: Self::NOT_WALKED,
            cold_keys: 0,
            cold_entry_bytes: 0,
            placed: 0,
        }
    }

    /// How many keys there are, those past their time but not yet deleted included.
    pub fn len(&self) -> usize {
        self.table.len()
    }

    pub fn is_empty(&self) -> bool {
        self.table.len() == 0
    }

    pub fn has_no_expiries(&self) -> bool {
        self.expiries.is_empty()
    }

    pub fn expiries(&self) -> &Expiries {
        &self.expiries
    }

    /// Hashes of which fields expire, by the time of the first of them.
    pub fn field_expiries(&self) -> &Expiries {
        &self.field_expiries
    }

    /// Whether neither a key nor a field in the database expires.
    #[inline]
    pub(crate) fn is_timeless(&self) -> bool {
        self.expiries.is_empty() && self.field_expiries.is_empty()
    }

    /// Updates the queue of hashes: the first expiry of a hash's fields was `before` and is `now`.
    #[inline]
    pub(crate) fn fields_expire(&mut self, hash: KeyHash, before: Option<i64>, now: Option<i64>) {
        if before == now {
            return;
        }
        if let Some(at) = before {
            self.field_expiries.remove(at, hash);
        }
        if let Some(at) = now {
            self.field_expiries.insert(at, hash);
        }
    }

    /// The entry of a key, expired or not.
    pub fn find(&self, hash: KeyHash, key: &[u8]) -> Option<EntryRef<'_>> {
        self.table.find(hash, key)
    }

    /// Bytes of the entries, their values, the table and the queues of expiries.
    pub fn used_bytes(&self) -> usize {
        self.entry_bytes + self.table.allocated_bytes() + self.expiry_bytes()
    }

    /// Bytes of the queues of expiries, of keys and of hashes.
    pub fn expiry_bytes(&self) -> usize {
        (self.expiries.len() + self.field_expiries.len()) * Expiries::ENTRY_BYTES
    }

    pub fn table(&self) -> &Table<Entry> {
        &self.table
    }
}

impl Keyspace {
    /// Empty databases, whose tables know their keys by a hash with this key.
    pub fn new(settings: Settings, hash_key: HashKey) -> Self {
        Self::with_hasher(settings, KeyHasher::new(hash_key))
    }

    pub(crate) fn with_hasher(settings: Settings, hasher: KeyHasher) -> Self {
        let databases = (0..settings.databases).map(|_| Database::new(hasher)).collect();
        Self {
            databases,
            hasher,
            hashed: None,
            settings,
            statistics: Statistics::default(),
            work: Work::default(),
            base_bytes: 0,
            most_bytes: Cell::new(0),
            garbage: Vec::new(),
            leaves_garbage: false,
            now: UnixMillis(0),
            is_partial: false,
            replica_of: ReplicaOf::Unset,
            libraries: Libraries::default(),
            snapshot: None,
            cold: None,
        }
    }

    /// The hash by which tables and the tracker know a key.
    #[inline]
    pub fn hash(&self, key: &[u8]) -> KeyHash {
        match self.hashed {
            Some(known) if known.is(key) => {
                debug_assert_eq!(known.hash, self.hasher.hash(key), "the hash of another key");
                known.hash
            }
            _ => self.hasher.hash(key),
        }
    }

    pub fn hasher(&self) -> KeyHasher {
        self.hasher
    }

    /// What new values are made with.
    pub(crate) fn recipe(&self) -> Recipe<'_> {
        Recipe { settings: &self.settings, hasher: self.hasher, work: &self.work }
    }

    /// A database that exists: SELECT and the log's reader check the number.
    pub fn database(&self, id: DatabaseId) -> &Database {
        &self.databases[id.0 as usize]
    }

    pub(crate) fn database_mut(&mut self, id: DatabaseId) -> &mut Database {
        &mut self.databases[id.0 as usize]
    }

    pub fn databases(&self) -> impl Iterator<Item = (DatabaseId, &Database)> {
        self.databases.iter().enumerate().map(|(i, db)| (DatabaseId(i as u32), db))
    }

    /// How many keys all databases hold.
    pub fn len(&self) -> usize {
        self.databases.iter().map(Database::len).sum()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The lowest RDB version that can express everything in the keyspace.
    pub fn file_version(&self) -> u32 {
        let is_plain = self.databases.iter().all(|database| database.field_expiries.is_empty());
        if is_plain { rdb::VERSION } else { rdb::VERSION_TIMED }
    }

    /// Whether what is here is a part of a master's data set, whose transfer has not ended. The
    /// log and snapshots carry it, so that a start knows it too.
    pub fn is_partial(&self) -> bool {
        self.is_partial
    }

    /// What was said of the server that the shard follows. The log and snapshots carry it, so it is
    /// the same for every process that leads. Commands that empty databases leave it as it is, and
    /// it is no part of a digest of the data.
    pub fn replica_of(&self) -> &ReplicaOf {
        &self.replica_of
    }

    /// The libraries of functions. The log and snapshots hold them too. FLUSHALL does not delete
    /// them.
    pub fn libraries(&self) -> &Libraries {
        &self.libraries
    }

    /// The server that the shard follows.
    pub fn master(&self) -> Option<&Master> {
        match &self.replica_of {
            ReplicaOf::Master(master) => Some(master),
            ReplicaOf::Unset | ReplicaOf::NoOne => None,
        }
    }

    /// Bytes of all data: entries, values and tables. What `maxmemory` limits, together with what
    /// clients occupy.
    pub fn used_bytes(&self) -> usize {
        let cold = self.cold.as_ref().map_or(0, |cold| cold.allocated_bytes());
        self.base_bytes + cold + self.databases.iter().map(Database::used_bytes).sum::<usize>()
    }

    /// Bytes of all data, wherever it lies: what a start has to load, more or less.
    pub fn data_bytes(&self) -> u64 {
        let cold = self.cold.as_ref().map_or(0, |cold| cold.tier.figures().live_bytes);
        self.used_bytes() as u64 + cold
    }

    /// Notes in the entry's access word that it was used now.
    #[inline]
    pub fn touch(&self, entry: EntryRef<'_>, now: UnixMillis) {
        entry.set_access(crate::access::touched(entry.access(), now, &self.settings));
        if self.cold.is_some() {
            crate::cold::note_use(entry);
        }
    }

    /// Whether a key is there, past its time or not.
    pub fn exists(&self, database: DatabaseId, key: &[u8]) -> bool {
        self.database(database).find(self.hash(key), key).is_some()
    }

    /// What a key can serve to blocked clients, if it is there and of such a type.
    pub fn serves(&self, database: DatabaseId, key: &[u8]) -> Option<Awaited> {
        crate::value::serves(self.database(database).find(self.hash(key), key)?)
    }

    /// Whether a key exists and is due, or all of its fields are.
    pub fn is_expired(&self, database: DatabaseId, key: &[u8], now: UnixMillis) -> bool {
        let entry = self.database(database).find(self.hash(key), key);
        entry.is_some_and(|entry| self.is_past(entry, now.0))
    }

    /// Whether a key holds a field that is due and not yet deleted.
    pub fn has_due_fields(&self, database: DatabaseId, key: &[u8], now: UnixMillis) -> bool {
        let database = self.database(database);
        let entry = || database.find(self.hash(key), key);
        !database.field_expiries.is_empty()
            && entry().and_then(next_expiry).is_some_and(|at| at <= now.0)
    }
}
