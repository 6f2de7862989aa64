//! What was read of a file, on its way into a keyspace.
//!
//! Whoever reads need not have the keyspace: files may be read by several threads, and one puts in
//! what they read. So everything that looks at an entry's memory is done where it was made, and
//! what is left touches nothing but the tables.

use crate::ids::KeyHash;
use crate::keyspace::{Database, Keyspace};
use crate::master::ReplicaOf;
use crate::rdb::RdbError;
use crate::value::{Entry, entry_bytes, hash};
use base::DatabaseId;

/// Entries whose buckets are asked for before the first is inserted: enough to overlap the misses.
const BATCH_ENTRIES: usize = 32;

/// Entries whose segments are asked for ahead. A segment says where its buckets lie, and the
/// segments of some millions of keys do not fit in the near caches.
pub(super) const SEGMENTS_AHEAD: usize = 2 * BATCH_ENTRIES;

/// Entries of a file that are in no keyspace yet, and what the file says beside them.
#[derive(Default)]
pub struct Decoded {
    /// In the order of the file; each has entries, but for the last.
    runs: Vec<Run>,
    keys: u64,
    said: Said,
    /// Bytes of the file that were used for it.
    pub bytes: u64,
    /// Whether it is the last of its file, which is then known to be whole.
    pub is_end: bool,
}

/// What a file says beside its entries.
#[derive(Default)]
pub(super) struct Said {
    pub is_partial: bool,
    pub replica_of: Option<ReplicaOf>,
    /// The code of each library of functions, and the byte before which it stood.
    pub libraries: Vec<(Vec<u8>, u64)>,
    /// Bytes of memory that the data took where the file was written.
    pub used_memory: Option<u64>,
    /// Keys for which tables may be laid out.
    pub sizes: Vec<(DatabaseId, u64)>,
}

/// Entries of one database.
#[derive(Default)]
struct Run {
    database: DatabaseId,
    /// Of the entries' keys. Apart from them, so that buckets can be asked for ahead.
    hashes: Vec<KeyHash>,
    entries: Vec<Entry>,
    /// Of the entries and their values.
    entry_bytes: usize,
    expiries: Vec<(i64, KeyHash)>,
    /// Of hashes, by the first of their fields.
    field_expiries: Vec<(i64, KeyHash)>,
}

impl Decoded {
    /// How many keys it has.
    pub fn keys(&self) -> u64 {
        self.keys
    }

    /// How many bytes of memory the data took where the file was written, if that was just read.
    pub fn used_memory(&self) -> Option<u64> {
        self.said.used_memory
    }

    pub(super) fn said(&mut self) -> &mut Said {
        &mut self.said
    }

    /// Adds an entry with this hash to those of a database.
    pub(super) fn add(&mut self, database: DatabaseId, hash: KeyHash, entry: Entry) {
        match self.runs.last_mut() {
            Some(run) if run.database == database => run.add(hash, entry),
            Some(run) if run.entries.is_empty() => {
                run.database = database;
                run.add(hash, entry);
            }
            _ => {
                let mut run = Run { database, ..Run::default() };
                run.add(hash, entry);
                self.runs.push(run);
            }
        }
        self.keys += 1;
    }

    /// Forgets what was put in, and keeps its memory for more.
    pub(super) fn clear(&mut self) {
        self.runs.truncate(1);
        self.keys = 0;
        self.bytes = 0;
    }
}

impl Run {
    fn add(&mut self, hash: KeyHash, entry: Entry) {
        self.entry_bytes += entry_bytes(entry.as_ref());
        if let Some(at) = entry.expire_at() {
            self.expiries.push((at, hash));
        }
        if let Some(at) = hash::next_expiry(entry.as_ref()) {
            self.field_expiries.push((at, hash));
        }
        self.hashes.push(hash);
        self.entries.push(entry);
    }

    /// Moves its entries into their database; whether none of them was there. Those of a file of
    /// our own are known to be new, and are not looked for.
    fn insert(&mut self, database: &mut Database, is_own: bool) -> bool {
        database.entry_bytes += std::mem::take(&mut self.entry_bytes);
        for (at, hash) in self.expiries.drain(..) {
            database.expiries.insert(at, hash);
        }
        for (at, hash) in self.field_expiries.drain(..) {
            database.field_expiries.insert(at, hash);
        }
        let table = &mut database.table;
        self.hashes.iter().take(SEGMENTS_AHEAD).for_each(|hash| table.prefetch_segment(*hash));
        self.hashes.iter().take(BATCH_ENTRIES).for_each(|hash| table.prefetch_bucket(*hash));
        let mut are_new = true;
        for (index, entry) in self.entries.drain(..).enumerate() {
            if let Some(ahead) = self.hashes.get(index + SEGMENTS_AHEAD) {
                table.prefetch_segment(*ahead);
            }
            if let Some(ahead) = self.hashes.get(index + BATCH_ENTRIES) {
                table.prefetch_bucket(*ahead);
            }
            if is_own {
                table.insert_new(self.hashes[index], entry);
            } else {
                are_new &= table.insert(self.hashes[index], entry).is_none();
            }
        }
        self.hashes.clear();
        are_new
    }
}

impl Keyspace {
    /// Puts in what was read of a file of our own by a [`super::Decoder`] made for this keyspace.
    /// No key of it may be there.
    ///
    /// # Errors
    /// [`RdbError`] if the file holds what cannot be; the keyspace is then of no use.
    pub fn take_in(&mut self, mut decoded: Decoded) -> Result<(), RdbError> {
        self.put_in(&mut decoded, true).map(drop)
    }

    /// Puts it in, and keeps its memory for more; whether no key of it was there.
    pub(super) fn put_in(&mut self, decoded: &mut Decoded, is_own: bool) -> Result<bool, RdbError> {
        self.hear(&mut decoded.said)?;
        let mut are_new = true;
        for run in &mut decoded.runs {
            are_new &= run.insert(self.database_mut(run.database), is_own);
        }
        decoded.clear();
        Ok(are_new)
    }

    fn hear(&mut self, said: &mut Said) -> Result<(), RdbError> {
        self.is_partial |= said.is_partial;
        if let Some(replica_of) = said.replica_of.take() {
            self.replica_of = replica_of;
        }
        for (code, offset) in said.libraries.drain(..) {
            self.libraries.load(&code).map_err(|_| {
                let what = "a library of functions without a name".to_owned();
                RdbError::Damaged { offset, what }
            })?;
        }
        // Growing step by step costs much of the time.
        for (database, keys) in said.sizes.drain(..) {
            self.database_mut(database).table.reserve(keys as usize);
        }
        Ok(())
    }
}
