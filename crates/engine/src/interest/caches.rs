//! The clients that cache what they read (CLIENT TRACKING), and what they must drop from their
//! caches. The node registers them and what they read; [`super::Interest`] tells of changes.
//!
//! ```text
//! readers     key ─▶ clients that read it since it last changed      one notice for each key
//! prefixes    prefix ─▶ clients that asked for all keys with it      one notice for each prefix
//! ```
//! As in Redis a key is known by its name, whatever its database, and a notice of a key that was
//! read ends what is known of its readers: who reads it again is told again. A client that has gone
//! stays a reader of what it read until the key changes or has to make room.

use crate::ids::{CacherId, KeyHash};
use crate::random::Random;
use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use structures::{Entry, EntryRef, KeyHasher, Payload, Table, ValueRef};

/// Bytes that readers may occupy for each key that the table may hold. Redis counts keys alone, so
/// that who reads names of a megabyte, or reads through thousands of connections, can fill the
/// memory. A guess: several times what a name and its readers take as a rule.
const BYTES_PER_KEY: u64 = 512;

/// A value for some prefixes of keys.
type ByPrefix<T> = BTreeMap<Vec<u8>, T>;

/// Clients that read one key: in order, each once.
type Readers = Vec<CacherId>;

/// A change of a key that some clients read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Invalidated {
    pub key: Vec<u8>,
    pub readers: Vec<CacherId>,
    /// The command that ran changed it: not its time, nor want of memory.
    pub by_command: bool,
}

/// What clients must drop.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    Key(Invalidated),
    /// Everything: for every client that tracks.
    All,
}

/// The keys under one prefix that changed, and whether a command did it last.
pub type Broadcast = BTreeMap<Vec<u8>, bool>;

/// What clients must drop: one by one, and by prefix.
pub type Dropped = (Vec<Notice>, BTreeMap<Vec<u8>, Broadcast>);

/// Who caches what, and what has changed since the node last asked.
#[derive(Default)]
pub struct Caches {
    /// Everybody who tracks.
    clients: BTreeSet<CacherId>,
    /// Keys that somebody read. `None` until one is.
    readers: Option<Table<Entry<Readers>>>,
    /// Pairs of a key and a client in `readers`.
    items: usize,
    /// What the entries of `readers` occupy.
    bytes: usize,
    /// Prefixes that somebody asked for. No prefix's set is empty.
    prefixes: ByPrefix<BTreeSet<CacherId>>,
    notices: Vec<Notice>,
    broadcasts: ByPrefix<Broadcast>,
    /// Tables that are used no more, to be freed elsewhere.
    garbage: Vec<Box<dyn Any + Send>>,
}

impl Caches {
    /// Whether nobody tracks: then nothing is noted, and nothing has to be told.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Whether somebody must drop something.
    pub fn has_notices(&self) -> bool {
        !self.notices.is_empty() || !self.broadcasts.is_empty()
    }

    /// How many clients track.
    pub fn clients_len(&self) -> usize {
        self.clients.len()
    }

    /// Keys that clients are known to have read.
    pub fn keys_len(&self) -> usize {
        self.readers.as_ref().map_or(0, Table::len)
    }

    /// Pairs of a key and a client that read it.
    pub fn items_len(&self) -> usize {
        self.items
    }

    /// Prefixes that clients asked for.
    pub fn prefixes_len(&self) -> usize {
        self.prefixes.len()
    }

    /// Memory that all this occupies, about.
    pub fn allocated_bytes(&self) -> usize {
        self.bytes + self.readers.as_ref().map_or(0, Table::allocated_bytes)
    }

    /// Everybody who tracks, in order.
    pub fn clients(&self) -> impl Iterator<Item = CacherId> {
        self.clients.iter().copied()
    }

    /// Who asked for a prefix, in order.
    pub fn clients_of(&self, prefix: &[u8]) -> impl Iterator<Item = CacherId> {
        self.prefixes.get(prefix).into_iter().flatten().copied()
    }

    /// A client tracks from now on.
    pub fn add(&mut self, client: CacherId) {
        self.clients.insert(client);
    }

    /// A client that tracks asks for all keys that begin with `prefix`.
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

    /// A client tracks no more. `prefixes` are those that it asked for.
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

    /// A client has read a key: it is told when that changes. `hash` is by `hasher`, which must be
    /// the same for as long as a keyspace lasts.
    pub fn remember(&mut self, client: CacherId, hash: KeyHash, key: &[u8], hasher: KeyHasher) {
        let table = self.readers.get_or_insert_with(|| Table::new(hasher));
        let Some(mut found) = table.find_mut(hash, key) else {
            // Of most keys there is one reader.
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

    /// A key changed, or shows from now on something else.
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

    /// Any key may show something else from now on.
    pub fn changed_all(&mut self) {
        if self.is_empty() {
            return;
        }
        self.forget_reads();
        // Often enough once, however often a unit empties a database.
        if self.notices.last() != Some(&Notice::All) {
            self.notices.push(Notice::All);
        }
    }

    /// Whether more is known of readers than there is room for. `keys_max`: 0 for no limit.
    pub fn is_over(&self, keys_max: u64) -> bool {
        let is_too_much = |keys: usize| {
            keys as u64 > keys_max || self.bytes as u64 > keys_max.saturating_mul(BYTES_PER_KEY)
        };
        keys_max > 0 && self.readers.as_ref().is_some_and(|table| is_too_much(table.len()))
    }

    /// Makes room: lets its readers drop a key that is drawn, whose change they would not be told
    /// of any more.
    pub(crate) fn let_one_go(&mut self, random: &mut Random) {
        let drawn = self.readers.as_ref().and_then(|table| {
            let key = table.random(random.word())?.key();
            Some((table.hasher().hash(key), key.to_vec()))
        });
        let Some((hash, key)) = drawn else { return };
        if let Some(readers) = self.forget_key(hash, &key) {
            self.notices.push(Notice::Key(Invalidated { key, readers, by_command: false }));
        }
    }

    /// What clients must drop, in the order in which it changed; then by prefix what those must
    /// who asked for prefixes.
    pub fn take_notices(&mut self) -> Dropped {
        (std::mem::take(&mut self.notices), std::mem::take(&mut self.broadcasts))
    }

    /// Puts back what [`Self::take_notices`] took.
    pub(super) fn put_notices(&mut self, notices: Dropped) {
        (self.notices, self.broadcasts) = notices;
    }

    /// Tables that were emptied, to be freed elsewhere.
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

    /// Nobody is known to have read anything.
    fn forget_reads(&mut self) {
        if let Some(table) = self.readers.take() {
            self.garbage.push(Box::new(table));
        }
        (self.items, self.bytes) = (0, 0);
    }
}

/// The prefixes of a key that are in a map. Whatever lies between two of them is jumped over: it
/// takes a look-up for each of them, and one for each place where the key parts from the others.
fn prefixes_of<'m, T>(map: &'m ByPrefix<T>, key: &[u8]) -> impl Iterator<Item = &'m [u8]> {
    let mut longest = Some(key);
    std::iter::from_fn(move || {
        loop {
            let bound = (Bound::Unbounded, Bound::Included(longest?));
            let (found, _) = map.range::<[u8], _>(bound).next_back()?;
            let common = found.iter().zip(key).take_while(|(one, other)| one == other).count();
            if common == found.len() {
                // The empty one is the last.
                longest = common.checked_sub(1).map(|shorter| &key[..shorter]);
                return Some(found.as_slice());
            }
            // It is behind every prefix of the key that is longer than what they share.
            longest = Some(&key[..common]);
        }
    })
}

fn readers_of(entry: EntryRef<'_, Readers>) -> Readers {
    match entry.value() {
        ValueRef::Boxed(readers) => readers.clone(),
        ValueRef::Integer(one) => vec![CacherId(one as u64)],
        ValueRef::Bytes(_) => Vec::new(),
    }
}

/// Memory that a key and its readers occupy.
fn bytes_of(entry: EntryRef<'_, Readers>) -> usize {
    let readers = match entry.value() {
        ValueRef::Boxed(readers) => {
            size_of::<Readers>() + readers.capacity() * size_of::<CacherId>()
        }
        ValueRef::Integer(_) | ValueRef::Bytes(_) => 0,
    };
    entry.allocated_bytes() + readers
}

#[cfg(test)]
mod tests;
