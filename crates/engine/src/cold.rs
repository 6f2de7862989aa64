//! Values that are not in memory, because it has no room for them.
//!
//! All keys stay in memory, with their expiries and all that is known of them without a look at
//! the value. A value that was not used lately is *spilled*: its bytes go into the store, and the
//! entry keeps their place ([`structures::Cold`]). Before a command runs that needs it, whoever
//! calls the engine has the value *fetched*; a command never meets a cold value. What does meet one
//! all the same (an effect that is applied on a replica, a key that a request does not name) reads
//! it then and there, through the [`ColdSource`].
//!
//! ```text
//!            spill                       fetched                      used again
//! in memory ───────▶ cold: a place ─────────────────▶ guest ──────────────────────▶ in memory,
//!     ▲                    ▲                            │ not used again             with a copy
//!     │ changed            └────────────────────────────┘ nothing is written            │
//!     └─────────────────────────────────────────────────────────────────────────────────┘
//! ```
//! A value that was fetched keeps its copy in the store until it changes, so spilling it again
//! writes nothing. It is a *guest* until it was used again: guests are few, and the first to go, so
//! that a scan over cold keys does not push out what is in use.
//!
//! Where values are is each process's own affair: spilling and fetching are no effects, change no
//! digest, and nobody is told.
//!
//! | file | holds |
//! |---|---|
//! | `cold/spill` | which values go, and how |
//! | `cold/encode` | long values, encoded over several turns |
//! | `cold/build` | long values, decoded away from the loop |
//! | `cold/fetch` | cold values of keys, fetched for commands to come, or at once |
//! | `cold/guests` | values that were fetched and not used again |
//! | `cold/pins` | values that stay, because requests wait |
//! | `cold/survivors` | records that move because their segment is cleaned |
//! | `cold/look` | cold values of many keys, looked at and not fetched |
//! | `cold/read` | contents of records, read at once |

mod build;
mod encode;
mod fetch;
mod guests;
mod look;
mod pins;
mod read;
mod spill;
mod survivors;
#[cfg(test)]
mod tests;

pub use build::{Brought, Builder};
pub use fetch::{ColdValue, WithValue};
pub(crate) use guests::note_use;
pub use spill::Spilled;

use crate::ids::KeyHash;
use crate::keyspace::{Database, Keyspace};
use crate::value::{Entry, entry_bytes};
use base::time::MonotonicNanos;
use encode::Encoding;
use guests::Guest;
use spill::{Hand, Harvest};
use std::any::Any;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use structures::entry::ValueRef;
use structures::{EntryRef, Occupied};
use tier::{Place, Read, Tier};

/// Reads what the store has on its file. It blocks: for who cannot wait otherwise.
pub trait ColdSource {
    /// The content of a record, by one try.
    ///
    /// # Errors
    /// Why it cannot be had.
    fn read(&self, read: &Read) -> Result<Vec<u8>, String>;

    /// The contents of several records, in their order, by one try of each: several at a time,
    /// where that is possible.
    fn read_all(&self, reads: &[Read]) -> Vec<Result<Vec<u8>, String>> {
        reads.iter().map(|read| self.read(read)).collect()
    }
}

/// Which values may be spilled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ColdLimits {
    /// Smallest value, in bytes: below it the entry that stays is as large as what goes.
    pub value_bytes_min: usize,
    /// Largest value, in bytes of memory.
    pub value_bytes_max: usize,
    /// Largest hash of which fields expire, in bytes of memory. Who deletes such fields reads the
    /// hash and decodes it at once, while everything waits: some 0.2 ms at 256 KiB.
    pub expiring_bytes_max: usize,
    /// A value that takes more bytes of memory is encoded over several turns, by about so many
    /// bytes at a time: 0.1 ms of fields of 60 bytes, and three times as long of numbers.
    pub slice_bytes: usize,
    /// Bytes that a value must free at least.
    pub freed_bytes_min: usize,
    /// Bytes of fetched values that are kept before the first of them is used again.
    pub guest_bytes_max: usize,
    /// Bytes of records, and of what is known of each, that fill a window of those that the walk of
    /// a snapshot has come to: enough that neighbours on the disk are read together, and some
    /// 0.2 ms of sorting where they are small. A guess. `maxmemory` does not count it, so it may be
    /// a part of that at most, but for the least.
    pub walked_bytes_max: usize,
    pub walked_bytes_min: usize,
    /// Likewise of what is about to be changed. There are few neighbours to be read together, and
    /// whoever waits should not wait for long.
    pub changed_bytes: usize,
    /// A rule that a test breaks: a long value that changes while it is encoded goes all the same.
    #[doc(hidden)]
    pub keeps_encoding: bool,
}

impl Default for ColdLimits {
    fn default() -> Self {
        Self {
            value_bytes_min: 64,
            value_bytes_max: 7 << 20,
            expiring_bytes_max: 256 << 10,
            slice_bytes: 32 << 10,
            freed_bytes_min: 32,
            guest_bytes_max: 16 << 20,
            walked_bytes_max: 2 << 20,
            walked_bytes_min: 256 << 10,
            changed_bytes: 512 << 10,
            keeps_encoding: false,
        }
    }
}

/// Counters of cold values, for INFO.
#[derive(Clone, Default, Debug)]
pub struct ColdStatistics {
    /// Values that were moved out, and how many of them were written for it.
    pub spilled: Cell<u64>,
    pub spilled_by_writing: Cell<u64>,
    /// Long values that were encoded in vain, in part or as a whole: they were changed or needed
    /// meanwhile, fit into no record, or the store had no segment for them any more.
    pub encoded_in_vain: Cell<u64>,
    /// Values that came back into memory.
    pub fetched: Cell<u64>,
    /// Values that were read while everything waited, and did not come back for it.
    pub looked_at: Cell<u64>,
    /// Reads for which everything waited, and what they brought of the file, in bytes; and those of
    /// them that failed or brought something else. The second try of one is a read of its own.
    pub blocking_reads: Cell<u64>,
    pub blocking_read_bytes: Cell<u64>,
    pub failed_blocking_reads: Cell<u64>,
}

pub(crate) fn add(counter: &Cell<u64>, count: u64) {
    counter.set(counter.get() + count);
}

/// The values of a keyspace that are not in memory, and copies of some that are.
pub struct ColdStore {
    pub tier: Tier,
    pub limits: ColdLimits,
    pub statistics: ColdStatistics,
    source: Box<dyn ColdSource>,
    /// Fetched values that were not used again yet, the first to go in front.
    guests: VecDeque<Guest>,
    /// Bytes that their values take in memory.
    guest_bytes: usize,
    /// Those that were to go and are pinned, by hash. They are among the others again when nothing
    /// pins them.
    pinned_guests: BTreeMap<KeyHash, Vec<Guest>>,
    hand: Hand,
    /// Hashes of keys whose values stay in memory, and for how many requests.
    pins: BTreeMap<KeyHash, u32>,
    /// All of them, and those of the request that runs: it does not wait for itself.
    pin_count: usize,
    own_pins: usize,
    /// Databases that were flushed: their places are given back bit by bit.
    leaving: VecDeque<Leaving>,
    /// Memory of the reads of values that come, in bytes: what is read, and what is made of it by
    /// threads. There must be room for it.
    pub coming_bytes: usize,
    /// The store refused what came last, because it is full.
    pub is_full: bool,
    /// The time of the process. Whoever has turns says so.
    pub now: MonotonicNanos,
    /// The long value that is being encoded.
    encoding: Option<Encoding>,
    /// Bytes that may still be encoded of it before the next turn. Whoever has turns says so.
    pub encoded_bytes_left: usize,
    /// Why a value is lost in this process, if one is.
    failure: RefCell<Option<String>>,
    /// The bytes of the value that goes; kept for its memory.
    content: Vec<u8>,
}

/// A flushed database of which places up to `cursor` are given back.
struct Leaving {
    database: Database,
    cursor: u64,
}

impl ColdStore {
    pub fn new(tier: Tier, source: Box<dyn ColdSource>, limits: ColdLimits) -> Self {
        Self {
            tier,
            limits,
            statistics: ColdStatistics::default(),
            source,
            guests: VecDeque::new(),
            guest_bytes: 0,
            pinned_guests: BTreeMap::new(),
            hand: Hand::default(),
            pins: BTreeMap::new(),
            pin_count: 0,
            own_pins: 0,
            leaving: VecDeque::new(),
            coming_bytes: 0,
            is_full: false,
            now: MonotonicNanos(0),
            encoding: None,
            encoded_bytes_left: usize::MAX,
            failure: RefCell::new(None),
            content: Vec::new(),
        }
    }

    /// Why a value is lost in this process. The data are whole in snapshot and log: the process
    /// must start anew from them.
    pub fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// Forgets what the search for values to spill has found: limits or data have changed.
    pub fn look_again(&mut self) {
        self.hand.harvest = Harvest::default();
        self.hand.fruitless = 0;
    }

    /// Notes that a value cannot be had any more.
    pub fn fail(&self, why: String) {
        self.failure.borrow_mut().get_or_insert(why);
    }

    /// Bytes of memory of the store itself, or that it may come to take.
    pub fn allocated_bytes(&self) -> usize {
        let guests = self.guests.capacity() * size_of::<Guest>();
        let pinned = self.pinned_guests.len() * PINNED_GUEST_BYTES;
        let leaving = self.leaving.iter().map(|it| it.database.used_bytes()).sum::<usize>();
        self.tier.reserved_bytes() + guests + pinned + leaving + self.coming_bytes
    }

    /// Gives the space of a record back, if there is one.
    pub(crate) fn release(&mut self, place: Option<u64>) {
        if let Some(place) = place.and_then(Place::from_bits) {
            self.tier.release(place);
        }
    }

    /// A value is about to change: the copy of it goes. How many there were.
    pub(crate) fn forget_copy(&mut self, found: &mut Occupied<'_, Entry>) -> usize {
        if found.as_ref().tag() == TAG_TOO_LONG {
            found.as_ref().set_tag(0);
        }
        let copy = found.as_mut().take_copy();
        self.release(copy);
        usize::from(copy.is_some())
    }

    /// Takes back what was taken for a value that went, for the next one.
    fn keep_content(&mut self, content: Vec<u8>) {
        if content.capacity() <= CONTENT_BYTES_KEPT {
            self.content = content;
        }
    }

    /// The content of a record that an entry names, wherever it lies. `None`: it is lost, which is
    /// noted.
    pub(crate) fn content_at(&self, place: u64) -> Option<Vec<u8>> {
        let content = self.contents_at(Place::from_bits(place).into_iter()).ok()?.pop()?;
        add(&self.statistics.looked_at, 1);
        Some(content)
    }
}

/// Tags of entries whose value is in memory: a guest has the first one, which each use raises until
/// it is the second; a value that fits into no record has the third until it changes; others have
/// 0. The tag of a cold entry is the type of its value ([`crate::value::content::tag_of`]).
const TAG_FETCHED: u8 = 1;
const TAG_USED_AGAIN: u8 = TAG_FETCHED + 2;
const TAG_TOO_LONG: u8 = 0x7f;

/// About what the note of a guest takes that is pinned, in bytes.
const PINNED_GUEST_BYTES: usize = 128;

/// Bytes of memory that are kept for the next value that goes at once.
const CONTENT_BYTES_KEPT: usize = 256 << 10;

/// Where the value of an entry lies, if it is not in memory.
pub(crate) fn cold_place(entry: EntryRef<'_, crate::value::Value>) -> Option<Place> {
    match entry.value() {
        ValueRef::Cold(cold) => Place::from_bits(cold.place),
        _ => None,
    }
}

/// Where in the store something of an entry lies: its value, or a copy of it.
pub(crate) fn place_of(entry: EntryRef<'_, crate::value::Value>) -> Option<u64> {
    match entry.value() {
        ValueRef::Cold(cold) => Some(cold.place),
        _ => entry.copy_place(),
    }
}

impl Database {
    /// Counts an entry that came into the table.
    pub(crate) fn count_in(&mut self, entry: &Entry) {
        let entry = entry.as_ref();
        if entry.is_cold() {
            self.cold_keys += 1;
            self.cold_entry_bytes += entry_bytes(entry);
        }
        self.placed += usize::from(place_of(entry).is_some());
    }

    /// Counts an entry that left the table.
    pub(crate) fn count_out(&mut self, entry: &Entry) {
        let entry = entry.as_ref();
        if entry.is_cold() {
            self.cold_keys -= 1;
            self.cold_entry_bytes -= entry_bytes(entry);
        }
        self.placed -= usize::from(place_of(entry).is_some());
    }

    /// How many of its keys have a value that is not in memory.
    pub fn cold_keys(&self) -> usize {
        self.cold_keys
    }
}

impl Keyspace {
    /// Lets values be spilled. There may be none that are.
    ///
    /// # Panics
    /// There is a store already.
    pub fn open_cold(&mut self, store: ColdStore) {
        assert!(self.cold.is_none(), "places of another store would be taken for those of this");
        self.cold = Some(Box::new(store));
    }

    /// Whether a store could come or go now: no value lies in one, no value in memory has a copy
    /// there, and no snapshot under way may want either.
    pub fn can_change_cold(&self) -> bool {
        let is_empty = |database: &Database| database.placed == 0;
        self.databases.iter().all(is_empty) && !self.has_flushed() && self.snapshot.is_none()
    }

    /// Ends that values are spilled. There may be a store again later.
    ///
    /// # Panics
    /// Something lies in the store: see [`Self::can_change_cold`].
    pub fn close_cold(&mut self) {
        assert!(self.can_change_cold(), "values that lie in the store would be lost");
        self.cold = None;
    }

    /// The values that are not in memory, if there may be any.
    pub fn cold(&self) -> Option<&ColdStore> {
        self.cold.as_deref()
    }

    pub fn cold_mut(&mut self) -> Option<&mut ColdStore> {
        self.cold.as_deref_mut()
    }

    /// How many keys have a value that is not in memory.
    pub fn cold_keys(&self) -> usize {
        self.databases.iter().map(Database::cold_keys).sum()
    }

    /// Whether a value of this process could not be read back: it is lost here, not in the log.
    pub fn has_lost_value(&self) -> bool {
        self.cold.as_deref().is_some_and(|cold| cold.failure.borrow().is_some())
    }

    /// Whether flushed databases still have live records: until a snapshot or
    /// [`Self::release_flushed`] has walked over them.
    pub fn has_live_flushed(&self) -> bool {
        let snapshot = self.snapshot.as_deref();
        self.has_flushed() || snapshot.is_some_and(crate::snapshot::Snapshot::has_flushed)
    }

    /// Why a value is lost in this process, if one is.
    pub fn cold_failure(&self) -> Option<String> {
        self.cold.as_ref()?.failure()
    }

    /// Frees a database that nobody needs any more, and gives the space of its cold values back.
    pub(crate) fn dispose(&mut self, database: Database) {
        self.statistics.left_to_free(database.len());
        let snapshot = self.snapshot.as_deref();
        let is_last = self.databases.iter().all(|database| database.placed == 0)
            && !snapshot.is_some_and(crate::snapshot::Snapshot::has_flushed);
        let reads = snapshot.is_some_and(crate::snapshot::Snapshot::reads_values);
        if let Some(cold) = &mut self.cold {
            cold.stop_encoding();
            cold.look_again();
        }
        match &mut self.cold {
            Some(cold) if database.placed > 0 => {
                if is_last {
                    // Nothing that any key has lies there.
                    let leaving = cold.leaving.drain(..).map(|it| it.database);
                    self.garbage.extend(leaving.map(|it| Box::new(it) as Box<dyn Any + Send>));
                    if reads {
                        cold.tier.release_all()
                    } else {
                        cold.tier.reset()
                    }
                    cold.forget_guests();
                    self.garbage.push(Box::new(database));
                } else {
                    cold.leaving.push_back(Leaving { database, cursor: 0 });
                }
            }
            _ => self.garbage.push(Box::new(database) as Box<dyn Any + Send>),
        }
    }

    /// Whether flushed databases have places to be given back.
    pub fn has_flushed(&self) -> bool {
        self.cold.as_ref().is_some_and(|cold| !cold.leaving.is_empty())
    }

    /// Gives about `entries_max` places of flushed databases back; whether there are more.
    pub fn release_flushed(&mut self, entries_max: usize) -> bool {
        let Self { cold, garbage, .. } = self;
        let Some(cold) = cold else { return false };
        let ColdStore { leaving, tier, .. } = &mut **cold;
        let Some(Leaving { database, cursor }) = leaving.front_mut() else { return false };
        *cursor = database.table.scan(*cursor, entries_max, |entry| {
            if let Some(place) = place_of(entry).and_then(Place::from_bits) {
                tier.release(place);
            }
        });
        if *cursor == 0
            && let Some(left) = leaving.pop_front()
        {
            garbage.push(Box::new(left.database));
        }
        !cold.leaving.is_empty()
    }
}
