//! The whole keyspace as it was at one instant, written in slices while commands go on.
//!
//! Nothing forks and nothing is copied beforehand. The tables are walked cell by cell
//! ([`structures::Table::walk`]); before an effect touches a key whose cell was not visited yet,
//! that cell is written first. A database that is flushed meanwhile is taken over whole and walked
//! to its end; one that is exchanged goes on under the number it began with.
//!
//! ```text
//! begin ─▶ walk, walk, walk … ─▶ done        bytes are taken out whenever enough have gathered
//!            ▲ keep_before(effect) in between
//! ```
//! The bytes form one RDB file, or several, where [`Keyspace::cut_snapshot`] is called in between:
//! each is whole by itself, and every key stands in one of them.
//!
//! A big value is written in pieces, one a slice. What must be kept meanwhile waits aside, because
//! the bytes of a value lie together; and what changes the value itself has it finished first, all
//! at once.

#[cfg(test)]
mod tests;
mod values;

use crate::cold::ColdLimits;
use crate::effect::Effect;
use crate::ids::KeyHash;
use crate::keyspace::{Database, Keyspace};
use crate::master::{self, ReplicaOf};
use crate::rdb::PARTIAL;
use crate::save::{
    put_database, put_end, put_entry, put_header, put_key, put_libraries, put_sizes,
};
use crate::settings::Settings;
use crate::value::stored::{Cursor, put_count, put_piece, put_pieces};
use crate::value::{EntryRef, Value};
use crate::work::Work;
use base::{DatabaseId, UnixMillis};
use std::collections::{BTreeMap, BTreeSet};
use structures::entry::ValueRef;
use tier::Place;
use values::Windows;
pub use values::{Noted, WindowId};

/// Bytes of what stands before a key in the file, and of its length: a guess.
const HEAD_BYTES: usize = 24;

/// A snapshot under way.
pub struct Snapshot {
    writing: Writing,
    /// Databases that were flushed before they were walked to their end.
    flushed: Vec<Database>,
    is_done: bool,
}

/// The bytes in the making.
struct Writing {
    bytes: Vec<u8>,
    /// What every file begins with.
    head: Vec<u8>,
    /// As [`Keyspace::want_snapshot_cut`].
    wants_cut: bool,
    /// The big value of which a part stands at the end of `bytes`.
    unfinished: Option<Big>,
    /// What comes behind that one.
    aside: Vec<u8>,
    /// Big values to be written in pieces later: no set is empty. Each write looks here for its
    /// key, however many there are.
    waiting: BTreeMap<DatabaseId, BTreeSet<Vec<u8>>>,
    /// Values that are not in memory, and are to be read.
    windows: Windows,
    /// The database that the last bytes belong to.
    selected: Option<DatabaseId>,
    began: UnixMillis,
    keys: u64,
}

/// A big value that the walk has come to. It stands still until it is written.
struct Big {
    /// As it was numbered when the snapshot began.
    database: DatabaseId,
    key: Vec<u8>,
    /// How far it is written.
    cursor: Cursor,
}

/// Why an entry is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Why {
    /// The walk has come to it.
    Walked,
    /// It shares a cell with one that is about to change.
    Beside,
    /// It is about to change.
    Changes,
}

/// Whether to write a value in pieces. Small encodings are one string, and limited.
fn is_big(value: &Value, settings: &Settings) -> bool {
    value.is_divisible() && value.allocated_bytes() > settings.limits.whole_value_bytes_max
}

impl Writing {
    /// Writes an entry, or leaves it for later if it is big and can wait.
    fn put(
        &mut self,
        database: DatabaseId,
        entry: EntryRef<'_>,
        settings: &Settings,
        work: &Work,
        why: Why,
    ) {
        self.keys += 1;
        match entry.value() {
            ValueRef::Cold(value) => {
                let Some(place) = Place::from_bits(value.place) else { return };
                let mut head = Vec::with_capacity(entry.key().len() + HEAD_BYTES);
                put_key(&mut head, entry, self.began, settings);
                let noted = if why == Why::Walked { Noted::Walked } else { Noted::Changed };
                self.windows.add(noted, database, head, place);
            }
            ValueRef::Boxed(value) if why != Why::Changes && is_big(value, settings) => {
                self.waiting.entry(database).or_default().insert(entry.key().to_vec());
            }
            _ => self.put_whole(database, entry, settings, work),
        }
    }

    /// Writes a value that was read.
    fn put_read(&mut self, value: &values::Value) {
        let out = if self.unfinished.is_some() { &mut self.aside } else { &mut self.bytes };
        select(out, &mut self.selected, value.database);
        value.put(out);
    }

    fn put_whole(
        &mut self,
        database: DatabaseId,
        entry: EntryRef<'_>,
        settings: &Settings,
        work: &Work,
    ) {
        let out = if self.unfinished.is_some() { &mut self.aside } else { &mut self.bytes };
        select(out, &mut self.selected, database);
        put_entry(out, entry, self.began, settings, work);
    }

    fn has_big(&self) -> bool {
        self.unfinished.is_some() || !self.waiting.is_empty()
    }

    /// Whether the walk must stop, so that the file can be cut behind the last value.
    fn stands_at_cut(&self) -> bool {
        self.wants_cut && self.unfinished.is_none()
    }

    /// Whether a value is being written in pieces, or will be.
    fn is_next_big(&self, database: DatabaseId, key: &[u8]) -> bool {
        let is_it = |big: &Big| big.database == database && big.key == key;
        let waits = |keys: &BTreeSet<Vec<u8>>| keys.contains(key);
        self.unfinished.as_ref().is_some_and(is_it)
            || self.waiting.get(&database).is_some_and(waits)
    }

    /// Database and key of the big value that is to be written next.
    fn next_big(&self) -> Option<(DatabaseId, &[u8])> {
        if let Some(unfinished) = &self.unfinished {
            return Some((unfinished.database, &unfinished.key));
        }
        let (database, keys) = self.waiting.first_key_value()?;
        keys.first().map(|key| (*database, key.as_slice()))
    }

    /// Goes on with the next big value, which `entry` is, by about `bytes_max`.
    fn go_on(
        &mut self,
        database: DatabaseId,
        entry: EntryRef<'_>,
        settings: &Settings,
        bytes_max: usize,
        work: &Work,
    ) {
        let ValueRef::Boxed(value) = entry.value() else {
            panic!("a big value stands still until it is written");
        };
        if self.unfinished.is_none() {
            self.no_longer_waits(database, entry.key());
            select(&mut self.bytes, &mut self.selected, database);
            put_key(&mut self.bytes, entry, self.began, settings);
            put_count(&mut self.bytes, value);
        }
        let cursor = Cursor::default();
        let key = || entry.key().to_vec();
        let unfinished =
            self.unfinished.get_or_insert_with(|| Big { database, key: key(), cursor });
        let is_written = if bytes_max == usize::MAX {
            // A buffer that doubles is copied: of a long list that took longer than the writing.
            self.bytes.reserve(value.allocated_bytes());
            put_pieces(&mut self.bytes, value, &mut unfinished.cursor, work);
            true
        } else {
            put_piece(&mut self.bytes, value, &mut unfinished.cursor, bytes_max)
        };
        if is_written {
            self.unfinished = None;
            self.bytes.append(&mut self.aside);
        }
    }

    /// Takes a key out of those that wait; whether it was there.
    fn no_longer_waits(&mut self, database: DatabaseId, key: &[u8]) -> bool {
        let Some(keys) = self.waiting.get_mut(&database) else { return false };
        let waited = keys.remove(key);
        if keys.is_empty() {
            self.waiting.remove(&database);
        }
        waited
    }
}

fn select(out: &mut Vec<u8>, selected: &mut Option<DatabaseId>, database: DatabaseId) {
    if *selected != Some(database) {
        *selected = Some(database);
        put_database(out, database);
    }
}

/// The part of `maxmemory` that flushed databases may take beside it until they are written.
const FLUSHED_SHARE: u64 = 64;

impl Snapshot {
    /// Whether the walk has come to the end of all that is to be written.
    fn is_walked(&self, databases: &[Database]) -> bool {
        let is_walking = |database: &Database| database.table.is_walking();
        !self.flushed.iter().chain(databases).any(is_walking) && !self.writing.has_big()
    }

    /// Whether the store must keep what was released: it is being read.
    pub(crate) fn reads_values(&self) -> bool {
        !self.writing.windows.is_empty()
    }

    /// Whether it goes on with databases that were flushed.
    pub(crate) fn has_flushed(&self) -> bool {
        !self.flushed.is_empty()
    }

    /// Whether a database that is being flushed has something yet to be written.
    pub(crate) fn needs(&self, database: &Database) -> bool {
        let Writing { unfinished, waiting, .. } = &self.writing;
        let number = database.walked_as;
        let is_begun = unfinished.as_ref().is_some_and(|big| big.database == number);
        database.table.is_walking() || is_begun || waiting.contains_key(&number)
    }

    /// Whether the value of a key of this database must stay in memory: it is written in pieces,
    /// and the walk has come to it.
    pub(crate) fn holds(&self, database: &Database, key: &[u8]) -> bool {
        self.writing.has_big() && self.writing.is_next_big(database.walked_as, key)
    }

    /// Goes on with a database that is being flushed.
    pub(crate) fn take_over(&mut self, database: Database) {
        self.flushed.push(database);
    }
}

impl Keyspace {
    /// True if databases that were flushed, and that the snapshot under way has yet to write, are
    /// a notable part of `maxmemory`, and do not fit into it with what there is now, `beside` the
    /// keyspace too. They are not counted as used: nobody who flushed them expects to wait for a
    /// snapshot.
    pub fn lacks_room_for_flushed(&self, beside: u64) -> bool {
        let limit = self.settings.maxmemory;
        let flushed = self.snapshot.as_deref().map_or(&[][..], |snapshot| &snapshot.flushed);
        if limit == 0 || flushed.is_empty() {
            return false;
        }
        let flushed = flushed.iter().map(Database::used_bytes).sum::<usize>() as u64;
        let all = (self.used_bytes() as u64).saturating_add(beside).saturating_add(flushed);
        flushed > limit / FLUSHED_SHARE && all > limit
    }

    /// Frees databases that were flushed, and are written.
    fn dispose_walked(&mut self) {
        let Some(snapshot) = &mut self.snapshot else { return };
        if snapshot.flushed.is_empty() || snapshot.writing.has_big() {
            return;
        }
        let is_written = |database: &mut Database| !database.table.is_walking();
        let walked: Vec<Database> = snapshot.flushed.extract_if(.., is_written).collect();
        for database in walked {
            self.dispose(database);
        }
    }

    /// Begins a snapshot of what is there now; one under way is given up.
    pub fn begin_snapshot(&mut self, now: UnixMillis) {
        self.end_snapshot();
        let mut bytes = Vec::new();
        let began = (now.0 / 1000).to_string();
        let used = self.used_bytes().to_string();
        let mut auxiliary = vec![
            ("redis-ver", "7.0.15"),
            ("redis-bits", "64"),
            ("ctime", &began),
            ("used-mem", &used),
        ];
        if self.is_partial {
            auxiliary.push((PARTIAL, "1"));
        }
        let replica_of = self.replica_of.to_string();
        if self.replica_of != ReplicaOf::Unset {
            auxiliary.push((master::FIELD, &replica_of));
        }
        put_header(&mut bytes, self.file_version(), &auxiliary);
        let head = bytes.clone();
        put_libraries(&mut bytes, &self.libraries);
        let mut selected = None;
        for (number, database) in self.databases.iter_mut().enumerate() {
            database.walked_as = DatabaseId(number as u32);
            database.table.begin_walk();
            if !database.is_empty() {
                selected = Some(database.walked_as);
                put_database(&mut bytes, database.walked_as);
                put_sizes(&mut bytes, database.len(), database.expiries.len());
            }
        }
        let limits = self.cold.as_ref().map_or_else(ColdLimits::default, |cold| cold.limits);
        let writing = Writing {
            bytes,
            head,
            wants_cut: false,
            unfinished: None,
            aside: Vec::new(),
            waiting: BTreeMap::new(),
            windows: Windows::new(self.settings.maxmemory, &limits),
            selected,
            began: now,
            keys: 0,
        };
        self.snapshot = Some(Box::new(Snapshot { writing, flushed: Vec::new(), is_done: false }));
    }

    /// Writes about `entries_max` more keys, or fewer if they are long: at most `bytes_max` and a
    /// small value. Whether the snapshot is complete.
    pub fn walk_snapshot(&mut self, entries_max: u64, bytes_max: usize) -> bool {
        let Some(snapshot) = &self.snapshot else { return true };
        let keys_until = snapshot.writing.keys + entries_max;
        let bytes_until = snapshot.writing.bytes.len() + bytes_max;
        loop {
            self.write_big_values(bytes_until);
            self.write_read_values();
            self.dispose_walked();
            let Self { databases, settings, snapshot, work, cold, .. } = self;
            let Some(snapshot) = snapshot else { return true };
            let Snapshot { writing, flushed, is_done } = &mut **snapshot;
            writing.windows.hold(cold.as_deref_mut());
            let windows = &writing.windows;
            if writing.has_big()
                || writing.stands_at_cut()
                || windows.has_come()
                || windows.stop_walk()
            {
                return false;
            }
            let mut walking = flushed.iter_mut().chain(&mut *databases);
            let Some(database) = walking.find(|database| database.table.is_walking()) else {
                if !writing.windows.is_empty() {
                    return false;
                }
                if !*is_done {
                    *is_done = true;
                    put_end(&mut writing.bytes);
                }
                return true;
            };
            if writing.keys >= keys_until || writing.bytes.len() >= bytes_until {
                return false;
            }
            let id = database.walked_as;
            let entries = settings.limits.walk_entries;
            database.table.walk(entries, |entry| {
                writing.put(id, entry, settings, work, Why::Walked);
            });
        }
    }

    /// Writes big values until all are written, or the snapshot's bytes reach `bytes_until`.
    fn write_big_values(&mut self, bytes_until: usize) {
        while let Some(snapshot) = &self.snapshot
            && snapshot.writing.has_big()
            && !snapshot.writing.stands_at_cut()
            && snapshot.writing.bytes.len() < bytes_until
        {
            self.write_next_big(bytes_until - snapshot.writing.bytes.len());
        }
    }

    /// Goes on with the next big value, by about `bytes_max`.
    fn write_next_big(&mut self, bytes_max: usize) {
        let Self { databases, settings, snapshot, hasher, work, .. } = self;
        let Some(snapshot) = snapshot else { return };
        let Snapshot { writing, flushed, .. } = &mut **snapshot;
        let Some((number, key)) = writing.next_big() else { return };
        let mut all = flushed.iter().chain(&*databases);
        let database = all.find(|database| database.walked_as == number);
        let entry = database.and_then(|it| it.find(hasher.hash(key), key));
        let entry = entry.expect("a big value is not dropped until it is written");
        writing.go_on(number, entry, settings, bytes_max, work);
    }

    /// Takes the bytes written since the last call. What is written next goes into `next`, which is
    /// empty, and may bring its allocation along.
    pub fn take_snapshot_bytes(&mut self, next: Vec<u8>) -> Vec<u8> {
        assert!(next.is_empty(), "bytes of another snapshot would get into this one");
        let writing = self.snapshot.as_mut().map(|snapshot| &mut snapshot.writing);
        writing.map_or(Vec::new(), |writing| std::mem::replace(&mut writing.bytes, next))
    }

    /// From the end of the next value on, or from now on if none is being written, the walk stands
    /// still, until [`Self::cut_snapshot`].
    pub fn want_snapshot_cut(&mut self) {
        if let Some(snapshot) = &mut self.snapshot {
            snapshot.writing.wants_cut = true;
        }
    }

    /// Whether the file that is being written can be ended now, and another one begun: not amid a
    /// big value, and not behind the end of the last one.
    pub fn can_cut_snapshot(&self) -> bool {
        let under_way = self.snapshot.as_ref().filter(|snapshot| !snapshot.is_done);
        under_way.is_some_and(|snapshot| snapshot.writing.unfinished.is_none())
    }

    /// As [`Self::take_snapshot_bytes`], where [`Self::can_cut_snapshot`]: these bytes end their
    /// file, but for its checksum, and `next` begins another one.
    pub fn cut_snapshot(&mut self, mut next: Vec<u8>) -> Vec<u8> {
        assert!(next.is_empty(), "bytes of another snapshot would get into this one");
        assert!(self.can_cut_snapshot(), "a file does not end amid a value");
        let Some(snapshot) = &mut self.snapshot else { return next };
        let writing = &mut snapshot.writing;
        put_end(&mut writing.bytes);
        next.extend_from_slice(&writing.head);
        writing.selected = None;
        writing.wants_cut = false;
        std::mem::replace(&mut writing.bytes, next)
    }

    /// Bytes that wait to be taken.
    pub fn snapshot_bytes(&self) -> usize {
        self.snapshot.as_ref().map_or(0, |snapshot| snapshot.writing.bytes.len())
    }

    /// Keys written so far.
    pub fn snapshot_keys(&self) -> u64 {
        self.snapshot.as_ref().map_or(0, |snapshot| snapshot.writing.keys)
    }

    /// Forgets the snapshot under way, finished or not.
    pub fn end_snapshot(&mut self) {
        let Some(mut snapshot) = self.snapshot.take() else { return };
        for database in &mut self.databases {
            database.table.end_walk();
        }
        snapshot.writing.windows.clear(self.cold.as_deref_mut());
        for database in snapshot.flushed {
            self.dispose(database);
        }
    }

    /// Values to be freed away from the loop.
    pub fn take_garbage(&mut self) -> Vec<Box<dyn std::any::Any + Send>> {
        std::mem::take(&mut self.garbage)
    }

    /// Writes what an effect is about to change, as far as the walk has not seen it.
    pub(crate) fn keep_before(&mut self, database: DatabaseId, key: &[u8], effect: &Effect<'_>) {
        // A flush hands its databases over, the others change no key.
        if effect.is_keyless() {
            return;
        }
        if let Some((database, key)) = effect.second_key() {
            self.keep_cell(database, key);
        }
        self.keep_cell(database, key);
    }

    fn keep_cell(&mut self, database: DatabaseId, key: &[u8]) {
        let hash = self.hash(key);
        self.keep_big(database, hash, key);
        let Self { databases, settings, snapshot, work, cold, .. } = self;
        let Some(snapshot) = snapshot else { return };
        let writing = &mut snapshot.writing;
        let database = &mut databases[database.0 as usize];
        let id = database.walked_as;
        database.table.visit_unwalked(hash, |entry| {
            // What changes now must be written now.
            let why = if entry.key() == key { Why::Changes } else { Why::Beside };
            writing.put(id, entry, settings, work, why);
        });
        writing.windows.hold(cold.as_deref_mut());
        if writing.aside.len() > settings.limits.aside_bytes_max {
            self.write_next_big(usize::MAX);
        }
    }

    /// Writes a big value that is about to change, if the walk has come to it.
    fn keep_big(&mut self, database: DatabaseId, hash: KeyHash, key: &[u8]) {
        let Self { databases, settings, snapshot, work, .. } = self;
        let Some(snapshot) = snapshot else { return };
        let writing = &mut snapshot.writing;
        let database = &databases[database.0 as usize];
        let id = database.walked_as;
        let is_it = |big: &Big| big.database == id && big.key == key;
        if writing.unfinished.as_ref().is_some_and(is_it) {
            self.write_next_big(usize::MAX);
        } else if writing.no_longer_waits(id, key)
            && let Some(entry) = database.find(hash, key)
        {
            writing.put_whole(id, entry, settings, work);
        }
    }
}
