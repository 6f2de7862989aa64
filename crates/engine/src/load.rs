//! A whole file into a keyspace, in slices.
//!
//! Fast, because a restart waits for it: keys are known to be new, so nothing is looked up twice,
//! tables are laid out for all keys at once, and entries enter them in batches whose buckets were
//! asked for beforehand.

mod reload;

use crate::access;
use crate::ids::KeyHash;
use crate::keyspace::Keyspace;
use crate::master::{self, ReplicaOf};
use crate::rdb::{OWN_FIELDS, PARTIAL, RdbError, Source, VERSION_TIMED, opcode};
use crate::value::growing::{Begun, Growing};
use crate::value::hash;
use crate::value::{Entry, entry_bytes};
use base::{DatabaseId, UnixMillis};
use std::io::Read;
use structures::entry::Payload;

/// Entries whose buckets are asked for before the first is inserted: enough to overlap the misses.
const BATCH_ENTRIES: usize = 32;

/// Longest auxiliary value that is kept, in bytes; the known ones are short.
const AUXILIARY_BYTES_MAX: usize = 64;

/// Loads one file.
pub struct Loader<R> {
    source: Source<R>,
    database: DatabaseId,
    has_header: bool,
    /// The file is one of our own: no key stands in it twice.
    is_own: bool,
    is_done: bool,
    /// The key of the entry being read.
    key: Vec<u8>,
    /// That entry, if its value did not fit into the last slice.
    unfinished: Option<Unfinished>,
    batch: Vec<(KeyHash, Entry)>,
    /// The instant against which idle times count.
    now: UnixMillis,
    /// Keys for which tables may be laid out beforehand, and have been. What the file itself says
    /// is not believed: its bytes may be damaged.
    keys_known: u64,
    keys_reserved: u64,
    pub keys_loaded: u64,
    /// Auxiliary fields as they stood in the file.
    pub auxiliary: Vec<(String, String)>,
}

/// An entry of which a part was read.
struct Unfinished {
    value: Growing,
    traits: Traits,
}

/// The attributes of an entry, which stand before its type.
#[derive(Clone, Copy, Default)]
struct Traits {
    expire_at: Option<i64>,
    /// The access word, if the file has one.
    access: Option<u32>,
}

impl<R: Read> Loader<R> {
    pub fn new(stream: R, now: UnixMillis) -> Self {
        Self::of_source(Source::new(stream), false, now)
    }

    /// Loads a snapshot that this program wrote, from a stream that checks its own bytes: neither
    /// is the checksum computed a second time, nor is every key looked for before it is inserted.
    /// Together that is about a quarter of the time. Until the stream has reached its end nothing
    /// that was loaded may be relied on.
    ///
    /// `keys` is how many the file has, from somebody who knows: memory for them is taken at once.
    pub fn of_own_file(stream: R, keys: u64, now: UnixMillis) -> Self {
        let loader = Self::of_source(Source::without_checksum(stream), true, now);
        Self { keys_known: keys, ..loader }
    }

    fn of_source(source: Source<R>, is_own: bool, now: UnixMillis) -> Self {
        Self {
            source,
            database: DatabaseId(0),
            has_header: false,
            is_own,
            is_done: false,
            key: Vec::new(),
            unfinished: None,
            batch: Vec::with_capacity(BATCH_ENTRIES),
            now,
            keys_known: 0,
            keys_reserved: 0,
            keys_loaded: 0,
            auxiliary: Vec::new(),
        }
    }

    /// Bytes of the file used so far.
    pub fn offset(&self) -> u64 {
        self.source.offset()
    }

    /// Loads up to about `entries_max` keys, or fewer if they are long: one slice takes about
    /// [`crate::settings::Limits::load_slice_bytes`]. Whether the file is finished. A large value
    /// takes several slices, and its key is not there before the last. Keys past their time are
    /// kept: the log says when they went.
    ///
    /// # Errors
    /// [`RdbError`]; the keyspace then holds a part of the file and is of no use.
    pub fn load(&mut self, keyspace: &mut Keyspace, entries_max: u64) -> Result<bool, RdbError> {
        if !self.has_header {
            self.header()?;
            self.has_header = true;
        }
        let until = self.keys_loaded.saturating_add(entries_max);
        let bytes_until = self.offset() + keyspace.settings.limits.load_slice_bytes;
        while !self.is_done && self.keys_loaded < until && self.offset() < bytes_until {
            match self.unfinished.take() {
                Some(unfinished) => self.go_on(unfinished, keyspace, bytes_until)?,
                None => self.next(keyspace, bytes_until)?,
            }
        }
        self.insert_batch(keyspace)?;
        Ok(self.is_done)
    }

    /// Loads the rest of the file, however long that takes.
    ///
    /// # Errors
    /// As [`Self::load`].
    pub fn load_all(&mut self, keyspace: &mut Keyspace) -> Result<(), RdbError> {
        while !self.load(keyspace, u64::MAX)? {}
        Ok(())
    }

    fn header(&mut self) -> Result<(), RdbError> {
        let head: [u8; 9] = self.source.array()?;
        let digits = std::str::from_utf8(&head[5..]).ok();
        let version = digits.and_then(|digits| digits.parse::<u32>().ok());
        match version {
            Some(version) if head.starts_with(b"REDIS") && version >= 1 => {
                if version > VERSION_TIMED {
                    return Err(self.source.unsupported(format!("RDB version {version}")));
                }
                Ok(())
            }
            _ => Err(self.source.damaged("no RDB header")),
        }
    }

    /// Reads up to the end of the next entry, or of the file, or to `bytes_until` within an entry.
    fn next(&mut self, keyspace: &mut Keyspace, bytes_until: u64) -> Result<(), RdbError> {
        let mut traits = Traits::default();
        loop {
            let code = self.source.byte()?;
            match code {
                opcode::EXPIRE_MILLIS => {
                    traits.expire_at = Some(i64::from_le_bytes(self.source.array()?));
                }
                opcode::EXPIRE_SECONDS => {
                    let seconds = i32::from_le_bytes(self.source.array()?);
                    traits.expire_at = Some(i64::from(seconds) * 1000);
                }
                opcode::IDLE => {
                    let idle = self.source.length()?;
                    traits.access = Some(access::of_idle(idle, self.now));
                }
                opcode::FREQUENCY => {
                    traits.access = Some(access::of_frequency(self.source.byte()?, self.now));
                }
                opcode::AUX => self.auxiliary(keyspace)?,
                opcode::RESIZE_DATABASE => self.sizes(keyspace)?,
                opcode::SELECT_DATABASE => self.select(keyspace)?,
                opcode::FUNCTION => {
                    let code = self.source.owned()?;
                    let loaded = keyspace.libraries.load(&code);
                    loaded.map_err(|_| {
                        self.source.damaged("a library of functions without a name")
                    })?;
                }
                opcode::FUNCTION_PREVIEW => {
                    return Err(self
                        .source
                        .unsupported("a library of functions of 7.0's previews"));
                }
                opcode::EOF => return self.end(),
                kind => return self.entry(kind, traits, keyspace, bytes_until),
            }
        }
    }

    fn auxiliary(&mut self, keyspace: &mut Keyspace) -> Result<(), RdbError> {
        let name = self.source.owned()?;
        let value = self.source.owned()?;
        self.own_field(keyspace, &name, &value)?;
        if name.len().max(value.len()) <= AUXILIARY_BYTES_MAX && self.auxiliary.len() < 64 {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            self.auxiliary.push((text(&name), text(&value)));
        }
        Ok(())
    }

    /// Takes a field of our own. One that is not known says what must be known: a newer version
    /// wrote it.
    fn own_field(
        &mut self,
        keyspace: &mut Keyspace,
        name: &[u8],
        value: &[u8],
    ) -> Result<(), RdbError> {
        if !name.starts_with(OWN_FIELDS.as_bytes()) {
            return Ok(());
        }
        let name = String::from_utf8_lossy(name);
        match &*name {
            PARTIAL => keyspace.is_partial = true,
            master::FIELD => {
                let said = std::str::from_utf8(value).ok().and_then(ReplicaOf::parse);
                keyspace.replica_of =
                    said.ok_or_else(|| self.source.damaged("no value of kiln-replicaof"))?;
            }
            _ => return Err(self.source.unsupported(format!("the field {name}"))),
        }
        Ok(())
    }

    fn select(&mut self, keyspace: &mut Keyspace) -> Result<(), RdbError> {
        self.insert_batch(keyspace)?;
        let number = self.source.length()?;
        let count = keyspace.databases.len();
        if number >= count as u64 {
            let what = format!("database {number} (there are {count})");
            return Err(self.source.unsupported(what));
        }
        self.database = DatabaseId(number as u32);
        Ok(())
    }

    /// Lays the database's table out for its keys: growing step by step costs much of the time.
    fn sizes(&mut self, keyspace: &mut Keyspace) -> Result<(), RdbError> {
        let keys = self.source.length()?.min(self.keys_known - self.keys_reserved);
        let _expiring = self.source.length()?;
        self.keys_reserved += keys;
        keyspace.database_mut(self.database).table.reserve(keys as usize);
        Ok(())
    }

    fn entry(
        &mut self,
        kind: u8,
        traits: Traits,
        keyspace: &mut Keyspace,
        bytes_until: u64,
    ) -> Result<(), RdbError> {
        let Self { source, key, .. } = self;
        source.text_into(key)?;
        match source.begin_value(kind, &keyspace.recipe(), bytes_until)? {
            Begun::Whole(payload) => {
                let entry = Entry::new(key, payload, traits.expire_at);
                self.add(entry, traits, keyspace)
            }
            Begun::Growing(value) => {
                self.unfinished = Some(Unfinished { value, traits });
                Ok(())
            }
        }
    }

    /// Reads on in an entry that an earlier slice began.
    fn go_on(
        &mut self,
        mut unfinished: Unfinished,
        keyspace: &mut Keyspace,
        bytes_until: u64,
    ) -> Result<(), RdbError> {
        if !unfinished.value.grow(&mut self.source, &keyspace.recipe(), bytes_until)? {
            self.unfinished = Some(unfinished);
            return Ok(());
        }
        let Unfinished { value, traits } = unfinished;
        let payload = Payload::Boxed(value.finish(&self.source)?);
        let entry = Entry::new(&self.key, payload, traits.expire_at);
        self.add(entry, traits, keyspace)
    }

    fn add(
        &mut self,
        entry: Entry,
        traits: Traits,
        keyspace: &mut Keyspace,
    ) -> Result<(), RdbError> {
        let fresh = || access::fresh(self.now, &keyspace.settings);
        entry.set_access(traits.access.unwrap_or_else(fresh));
        self.batch.push((keyspace.hasher.hash(&self.key), entry));
        self.keys_loaded += 1;
        if self.batch.len() == BATCH_ENTRIES {
            self.insert_batch(keyspace)?;
        }
        Ok(())
    }

    fn insert_batch(&mut self, keyspace: &mut Keyspace) -> Result<(), RdbError> {
        let database = keyspace.database_mut(self.database);
        for (hash, _) in &self.batch {
            database.table.prefetch_bucket(*hash);
        }
        for (hash, entry) in self.batch.drain(..) {
            database.entry_bytes += entry_bytes(entry.as_ref());
            if let Some(at) = entry.expire_at() {
                database.expiries.insert(at, hash);
            }
            database.fields_expire(hash, None, hash::next_expiry(entry.as_ref()));
            if self.is_own {
                database.table.insert_new(hash, entry);
            } else if database.table.insert(hash, entry).is_some() {
                return Err(self.source.damaged("a key that stands in the file twice"));
            }
        }
        Ok(())
    }

    fn end(&mut self) -> Result<(), RdbError> {
        let computed = self.source.checksum();
        let stored = u64::from_le_bytes(self.source.array()?);
        // 0: whoever wrote the file had checksums switched off.
        if stored != 0 && computed.is_some_and(|computed| stored != computed) {
            return Err(self.source.damaged("a wrong checksum"));
        }
        if !self.source.is_at_end()? {
            return Err(self.source.damaged("bytes behind the end of the file, right"));
        }
        self.is_done = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests;
