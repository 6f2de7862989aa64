//! The clients that cache what they read (CLIENT TRACKING), and the keys that they must drop. The
//! node registers clients and the keys they read; [`super::Interest`] tells of changes.
//!
//! ```text
//! readers     key ─▶ clients that read it since it last changed      one notice for each key
//! prefixes    prefix ─▶ clients that asked for all keys with it      one notice for each prefix
//! ```
//! As in Redis a key is known by its name alone, in any database. A notice of a key ends the record
//! of its readers: a client that reads the key again is recorded again. A client that disconnects
//! stays recorded as a reader until the key changes or is removed for want of room.

use crate::ids::{CacherId, KeyHash};
use crate::random::Random;
use std::any::Any;
use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use structures::{Entry, EntryRef, KeyHasher, Payload, Table, ValueRef};

/// Memory for the table of readers, in bytes per key of `tracking-table-max-keys`. Redis limits the
/// number of keys only, so that names of a megabyte, or thousands of readers per key, could fill
/// the memory. A guess: several times what a name and its readers usually take.
const BYTES_PER_KEY: u64 = 512;

/// A map from prefixes of keys.
type ByPrefix<T> = BTreeMap<Vec<u8>, T>;

/// The clients that read one key, sorted, without duplicates.
type Readers = Vec<CacherId>;

/// A changed key, and the clients that read it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalidated {
    pub key: Vec<u8>,
    pub readers: Vec<CacherId>,
    /// Whether a command changed the key, rather than expiry or eviction.
    pub by_command: bool,
}

/// A notice of what clients must drop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    Key(Invalidated),
    /// All keys, told to every client with tracking on.
    All,
}

/// Changed keys with one prefix; each with whether its last change came from a command.
pub type Broadcast = BTreeMap<Vec<u8>, bool>;

/// All notices: those of single keys in order, and changed keys by prefix.
pub type CacheNotices = (Vec<Notice>, BTreeMap<Vec<u8>, Broadcast>);

/// The clients that track, what they read, and the notices not yet taken.
#[derive(Default)]
pub struct Caches {
    /// Every client with tracking on.
    clients: BTreeSet<CacherId>,
    /// Keys and the clients that read them. `None` until a key is read.
    readers: Option<Table<Entry<Readers>>>,
    /// Pairs of a key and a client in `readers`.
    items: usize,
    /// Bytes of the entries of `readers`.
    bytes: usize,
    /// Prefixes of BCAST, with the clients that asked for each. No set is empty.
    prefixes: ByPrefix<BTreeSet<CacherId>>,
    notices: Vec<Notice>,
    broadcasts: ByPrefix<Broadcast>,
    /// Discarded tables, for another thread to free.
    garbage: Vec<Box<dyn Any + Send>>,
}

impl Caches {
    /// Whether no client tracks: then nothing is recorded and nobody is told.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Whether there are notices to take.
    pub fn has_notices(&self) -> bool {
        !self.notices.is_empty() || !self.broadcasts.is_empty()
    }

    /// The number of clients with tracking on.
    pub fn clients_len(&self) -> usize {
        self.clients.len()
    }

    /// The number of keys that are recorded as read.
    pub fn keys_len(&self) -> usize {
        self.readers.as_ref().map_or(0, Table::len)
    }

    /// The number of pairs of a key and a client that read it.
    pub fn items_len(&self) -> usize {
        self.items
    }

    /// The number of different prefixes.
    pub fn prefixes_len(&self) -> usize {
        self.prefixes.len()
    }

    /// Approximate memory in bytes.
    pub fn allocated_bytes(&self) -> usize {
        self.bytes + self.readers.as_ref().map_or(0, Table::allocated_bytes)
    }

    /// Every client with tracking on, in order of IDs.
    pub fn clients(&self) -> impl Iterator<Item = CacherId> {
        self.clients.iter().copied()
    }

    /// The clients that asked for a prefix, in order of IDs.
    pub fn clients_of(&self, prefix: &[u8]) -> impl Iterator<Item = CacherId> {
        self.prefixes.get(prefix).into_iter().flatten().copied()
    }

    /// Turns tracking on for a client.
    pub fn add(&mut self, client: CacherId) {
        self.clients.insert(client);
    }

    /// Adds a prefix for a client with tracking on.
    pub fn add_prefix(&mut self, client: CacherId, prefix: &[u8]) {
        match self.prefixes.get_mut(prefix) {
            Some(clients) => {
                clients.insert(client);
            }
            None => {
                self.prefixes.insert(prefix.to_vec(), BTreeSet::from([client]));
            }
        }
    }

    /// Turns tracking off for a client. `prefixes` are those that it had added.
    pub fn remove<'p>(
        &mut self,
        client: CacherId,
        prefixes: impl IntoIterator<Item = &'p Vec<u8>>,
    ) {
        self.clients.remove(&client);
        for prefix in prefixes {
            if let Some(clients) = self.prefixes.get_mut(prefix) {
                clients.remove(&client);
                if clients.is_empty() {
                    self.prefixes.remove(prefix);
                }
            }
        }
        if self.clients.is_empty() {
            self.forget_reads();
            (self.notices, self.broadcasts) = Default::default();
        }
    }

    /// Records that a client has read a key: the next change of it is told to the client. `hash` is
    /// the key's by `hasher`, which must be the same for as long as the keyspace lasts.
    pub fn remember(&mut self, client: CacherId, hash: KeyHash, key: &[u8], hasher: KeyHasher) {
        let table = self.readers.get_or_insert_with(|| Table::new(hasher));
        let Some(mut found) = table.find_mut(hash, key) else {
            // Most keys have one reader, which is stored without an allocation.
            let entry = Entry::new(key, Payload::Integer(client.0 as i64), None);
            self.bytes += entry.allocated_bytes();
            self.items += 1;
            table.insert_new(hash, entry);
            return;
        };
        let before = bytes_of(found.as_ref());
        if let Some(readers) = found.as_mut().into_boxed_mut() {
            let Err(at) = readers.binary_search(&client) else { return };
            readers.insert(at, client);
        } else {
            let mut readers = readers_of(found.as_ref());
            let Err(at) = readers.binary_search(&client) else { return };
            readers.insert(at, client);
            found.update(|entry| entry.with_payload(Payload::Boxed(Box::new(readers))).0);
        }
        self.items += 1;
        self.bytes = self.bytes + bytes_of(found.as_ref()) - before;
    }

    /// Notes that a key changed, or that its visible value did.
    pub(super) fn changed(&mut self, hash: KeyHash, key: &[u8], by_command: bool) {
        for prefix in prefixes_of(&self.prefixes, key) {
            let keys = match self.broadcasts.get_mut(prefix) {
                Some(keys) => keys,
                None => self.broadcasts.entry(prefix.to_vec()).or_default(),
            };
            match keys.get_mut(key) {
                Some(by) => *by = by_command,
                None => {
                    keys.insert(key.to_vec(), by_command);
                }
            }
        }
        if let Some(readers) = self.forget_key(hash, key) {
            let key = key.to_vec();
            self.notices.push(Notice::Key(Invalidated { key, readers, by_command }));
        }
    }

    /// Notes that any key may have changed.
    pub fn changed_all(&mut self) {
        if self.is_empty() {
            return;
        }
        self.forget_reads();
        // One notice is enough, even if a unit flushes several times.
        if self.notices.last() != Some(&Notice::All) {
            self.notices.push(Notice::All);
        }
    }

    /// Whether the table of readers is over its limits. `keys_max` 0: there is no limit.
    pub fn is_over(&self, keys_max: u64) -> bool {
        let is_too_much = |keys: usize| {
            keys as u64 > keys_max || self.bytes as u64 > keys_max.saturating_mul(BYTES_PER_KEY)
        };
        keys_max > 0 && self.readers.as_ref().is_some_and(|table| is_too_much(table.len()))
    }

    /// Makes room: removes a key drawn at random, and has its readers drop it, because they will
    /// not be told of its changes.
    pub(crate) fn forget_random_key(&mut self, random: &mut Random) {
        let drawn = self.readers.as_ref().and_then(|table| {
            let key = table.random(random.word())?.key();
            Some((table.hasher().hash(key), key.to_vec()))
        });
        let Some((hash, key)) = drawn else { return };
        if let Some(readers) = self.forget_key(hash, &key) {
            self.notices.push(Notice::Key(Invalidated { key, readers, by_command: false }));
        }
    }

    /// Takes the notices: single keys in the order of their changes, then changed keys by prefix.
    pub fn take_notices(&mut self) -> CacheNotices {
        (std::mem::take(&mut self.notices), std::mem::take(&mut self.broadcasts))
    }

    /// Puts back what [`Self::take_notices`] took.
    pub(super) fn put_notices(&mut self, notices: CacheNotices) {
        (self.notices, self.broadcasts) = notices;
    }

    /// Takes discarded tables, for another thread to free.
    pub fn take_garbage(&mut self) -> Vec<Box<dyn Any + Send>> {
        std::mem::take(&mut self.garbage)
    }

    fn forget_key(&mut self, hash: KeyHash, key: &[u8]) -> Option<Readers> {
        let entry = self.readers.as_mut()?.remove(hash, key)?;
        let readers = readers_of(entry.as_ref());
        self.bytes -= bytes_of(entry.as_ref());
        self.items -= readers.len();
        Some(readers)
    }

    /// Forgets all readers of all keys.
    fn forget_reads(&mut self) {
        if let Some(table) = self.readers.take() {
            self.garbage.push(Box::new(table));
        }
        (self.items, self.bytes) = (0, 0);
    }
}

/// The keys of `map` that are prefixes of `key`, longest first. Keys between two prefixes are
/// skipped: this costs one look-up for each prefix, and one for each place where a neighbour
/// differs from `key`.
pub fn prefixes_of<'m, K: Borrow<[u8]> + Ord, T>(
    map: &'m BTreeMap<K, T>,
    key: &[u8],
) -> impl Iterator<Item = &'m [u8]> {
    let mut longest = Some(key);
    std::iter::from_fn(move || {
        loop {
            let bound = (Bound::Unbounded, Bound::Included(longest?));
            let found: &[u8] = map.range::<[u8], _>(bound).next_back()?.0.borrow();
            let common = found.iter().zip(key).take_while(|(one, other)| one == other).count();
            if common == found.len() {
                // The empty prefix is the last one.
                longest = common.checked_sub(1).map(|shorter| &key[..shorter]);
                return Some(found);
            }
            // The found one is no prefix. Prefixes of `key` longer than their common part would
            // sort behind it and were excluded, so go on with that part.
            longest = Some(&key[..common]);
        }
    })
}

fn readers_of(entry: EntryRef<'_, Readers>) -> Readers {
    match entry.value() {
        ValueRef::Boxed(readers) => readers.clone(),
        ValueRef::Integer(one) => vec![CacherId(one as u64)],
        ValueRef::Bytes(_) | ValueRef::Cold(_) => Vec::new(),
    }
}

/// Bytes that a key and its readers occupy.
fn bytes_of(entry: EntryRef<'_, Readers>) -> usize {
    let readers = match entry.value() {
        ValueRef::Boxed(readers) => {
            size_of::<Readers>() + readers.capacity() * size_of::<CacherId>()
        }
        ValueRef::Integer(_) | ValueRef::Bytes(_) | ValueRef::Cold(_) => 0,
    };
    entry.allocated_bytes() + readers
}

#[cfg(test)]
mod tests;
