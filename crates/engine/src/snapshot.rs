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
//! A value is always written whole: a collection of millions of elements makes its slice long.

use crate::effect::Effect;
use crate::keyspace::EntryRef;
use crate::keyspace::{Database, Keyspace};
use crate::rdb::write::{put_database, put_end, put_entry, put_header, put_sizes};
use crate::settings::Settings;
use base::{DatabaseId, UnixMillis};

/// Keys visited between two looks at the bounds of a slice: six cells or so.
const STEP_ENTRIES: usize = 32;

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
    /// The database that the last bytes belong to.
    selected: Option<DatabaseId>,
    began: UnixMillis,
    keys: u64,
}

impl Writing {
    fn put(&mut self, database: DatabaseId, entry: EntryRef<'_>, settings: &Settings) {
        if self.selected != Some(database) {
            self.selected = Some(database);
            put_database(&mut self.bytes, database);
        }
        put_entry(&mut self.bytes, entry, self.began, settings);
        self.keys += 1;
    }
}

impl Snapshot {
    /// Goes on with a database that is being flushed.
    pub(crate) fn take_over(&mut self, database: Database) {
        self.flushed.push(database);
    }
}

impl Keyspace {
    /// Begins a snapshot of what is there now; one under way is given up.
    pub fn begin_snapshot(&mut self, now: UnixMillis) {
        self.end_snapshot();
        let mut bytes = Vec::new();
        let began = (now.0 / 1000).to_string();
        let used = self.used_bytes().to_string();
        let auxiliary =
            [("redis-ver", "7.0.15"), ("redis-bits", "64"), ("ctime", &began), ("used-mem", &used)];
        put_header(&mut bytes, &auxiliary);
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
        let writing = Writing { bytes, selected, began: now, keys: 0 };
        self.snapshot = Some(Box::new(Snapshot { writing, flushed: Vec::new(), is_done: false }));
    }

    /// Writes about `entries_max` more keys, or fewer if they are long: at most `bytes_max` and a
    /// value. Whether the snapshot is complete.
    pub fn walk_snapshot(&mut self, entries_max: u64, bytes_max: usize) -> bool {
        let Self { databases, settings, snapshot, garbage, .. } = self;
        let Some(snapshot) = snapshot else { return true };
        let Snapshot { writing, flushed, is_done } = &mut **snapshot;
        let keys_until = writing.keys + entries_max;
        let bytes_until = writing.bytes.len() + bytes_max;
        while let Some(database) =
            flushed.iter_mut().chain(&mut *databases).find(|database| database.table.is_walking())
        {
            let id = database.walked_as;
            while writing.keys < keys_until && writing.bytes.len() < bytes_until {
                if database.table.walk(STEP_ENTRIES, |entry| writing.put(id, entry, settings)) {
                    break;
                }
            }
            if database.table.is_walking() {
                return false;
            }
            if !flushed.is_empty() {
                let (walking, walked): (Vec<_>, Vec<_>) =
                    flushed.drain(..).partition(|database| database.table.is_walking());
                *flushed = walking;
                garbage.extend(walked.into_iter().map(|it| Box::new(it) as Box<_>));
            }
        }
        if !*is_done {
            *is_done = true;
            put_end(&mut writing.bytes);
        }
        true
    }

    /// Takes the bytes written since the last call. What is written next goes into `next`, which is
    /// empty, and may bring its allocation along.
    pub fn take_snapshot_bytes(&mut self, next: Vec<u8>) -> Vec<u8> {
        assert!(next.is_empty(), "bytes of another snapshot would get into this one");
        let writing = self.snapshot.as_mut().map(|snapshot| &mut snapshot.writing);
        writing.map_or(Vec::new(), |writing| std::mem::replace(&mut writing.bytes, next))
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
        let Some(snapshot) = self.snapshot.take() else { return };
        for database in &mut self.databases {
            database.table.end_walk();
        }
        self.garbage.extend(snapshot.flushed.into_iter().map(|it| Box::new(it) as Box<_>));
    }

    /// Values to be freed away from the loop, left behind by a snapshot.
    pub fn take_garbage(&mut self) -> Vec<Box<dyn std::any::Any + Send>> {
        std::mem::take(&mut self.garbage)
    }

    /// Writes what an effect is about to change, as far as the walk has not seen it.
    pub(crate) fn keep_before(&mut self, database: DatabaseId, key: &[u8], effect: &Effect<'_>) {
        match *effect {
            // The first hands its databases over, the second changes no key.
            Effect::FlushDatabase | Effect::FlushAll | Effect::SwapDatabases { .. } => return,
            Effect::Rename { to_database, to } | Effect::Copy { to_database, to } => {
                self.keep_cell(to_database, to);
            }
            _ => {}
        }
        self.keep_cell(database, key);
    }

    fn keep_cell(&mut self, database: DatabaseId, key: &[u8]) {
        let hash = self.hash(key);
        let Self { databases, settings, snapshot, .. } = self;
        let Some(snapshot) = snapshot else { return };
        let database = &mut databases[database.0 as usize];
        let id = database.walked_as;
        database.table.visit_unwalked(hash, |entry| snapshot.writing.put(id, entry, settings));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rdb::Loader;
    use crate::rdb::write::checksum;
    use crate::testing::{Bench, holdings};

    const NOW: UnixMillis = UnixMillis(1_700_000_000_000);

    fn load(bytes: &[u8]) -> Keyspace {
        let mut crc = crate::rdb::Crc64::default();
        crc.update(bytes);
        let file = [bytes, &checksum(crc)].concat();
        let mut keyspace = Keyspace::new(Settings::default(), 77);
        assert!(Loader::new(&file[..], NOW).load(&mut keyspace, u64::MAX).unwrap());
        keyspace
    }

    fn bench_of(keys: u32) -> Bench {
        let mut bench = Bench::new();
        for key in 0..keys {
            let (id, key) = (DatabaseId(key % 3), format!("key:{key}"));
            let effect = match key.len() % 2 {
                0 => Effect::SetString { value: key.as_bytes(), expire_at: Some(NOW.0 * 2) },
                _ => Effect::ListPush { end: crate::effect::End::Tail, value: key.as_bytes() },
            };
            bench.engine.keyspace.apply(id, key.as_bytes(), &effect).unwrap();
        }
        bench
    }

    /// A change of any kind, chosen by `dice`.
    fn change(keyspace: &mut Keyspace, dice: &mut impl FnMut(u32) -> u32) {
        let id = DatabaseId(dice(3));
        let key = format!("key:{}", dice(3000));
        let to = format!("key:{}", dice(3000));
        let to_database = DatabaseId(dice(3));
        let effect = match dice(200) {
            0 => Effect::FlushDatabase,
            1 => Effect::SwapDatabases { with: to_database },
            2 if dice(10) == 0 => Effect::FlushAll,
            3..40 => Effect::Rename { to_database, to: to.as_bytes() },
            40..60 => Effect::Copy { to_database, to: to.as_bytes() },
            60..90 => Effect::Delete { reason: crate::effect::DeleteReason::Command },
            90..110 => Effect::Expire { at: Some(NOW.0 * 3) },
            _ => Effect::SetString { value: to.as_bytes(), expire_at: None },
        };
        // An effect may meet another type: then it changes nothing, and the cell is kept early.
        let _ = keyspace.apply(id, key.as_bytes(), &effect);
    }

    #[test]
    fn a_snapshot_is_what_was_there_when_it_began() {
        for seed in 0..30u64 {
            let mut state = seed;
            let mut dice = move |below: u32| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                ((state >> 33) as u32) % below
            };
            let mut bench = bench_of(3000);
            let keyspace = &mut bench.engine.keyspace;
            for round in 0..3 {
                let expected = holdings(keyspace);
                keyspace.begin_snapshot(NOW);
                let mut bytes = Vec::new();
                while !keyspace.walk_snapshot(40, 4096) {
                    for _ in 0..dice(20) {
                        change(keyspace, &mut dice);
                    }
                    bytes.extend(keyspace.take_snapshot_bytes(Vec::new()));
                }
                bytes.extend(keyspace.take_snapshot_bytes(Vec::new()));
                assert_eq!(keyspace.snapshot_keys(), expected.len() as u64);
                keyspace.end_snapshot();
                let loaded = load(&bytes);
                assert!(holdings(&loaded) == expected, "seed {seed}, round {round}");
            }
        }
    }

    #[test]
    fn an_empty_keyspace_has_a_snapshot_too() {
        let mut keyspace = Keyspace::new(Settings::default(), 1);
        keyspace.begin_snapshot(NOW);
        assert!(keyspace.walk_snapshot(1, 1));
        assert!(load(&keyspace.take_snapshot_bytes(Vec::new())).is_empty());
    }
}
