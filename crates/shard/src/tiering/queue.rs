//! Reads that are under way and that wait to be, and which of these begins next.
//!
//! A request that needs many values must not keep others from the one that each of them needs, nor
//! the others that request. So each kind has a part of the reads to itself, and of their memory.

use super::Need;
use base::disk::DiskTicket;
use engine::ids::KeyHash;
use std::collections::{BTreeMap, VecDeque};
use tier::{Place, Read, Shared};

/// A record that somebody waits for.
pub(super) struct Wanted {
    pub hash: KeyHash,
    pub read: Read,
    /// Bytes of memory that its value may take.
    pub value_bytes: usize,
    /// A long one that waits for its write is decoded as others are, and not read.
    pub shared: Option<Shared>,
    /// Tries to read it that failed.
    pub tries: u32,
    /// Bytes of memory that count for it while it is read.
    pub memory_bytes: usize,
    pub need: Need,
}

/// How many reads may be under way.
pub(super) struct Room {
    /// While somebody waits for a single one.
    pub reads_max: usize,
    /// Now: nobody may wait for a single one, and many wait for all.
    pub reads: usize,
    /// Nobody waits for a single one.
    pub is_patient: bool,
    /// Bytes of memory from which on none is begun.
    pub bytes: usize,
}

/// Reads under way, and the memory that counts for them.
#[derive(Clone, Copy, Default)]
struct Load {
    reads: usize,
    bytes: usize,
}

impl Load {
    /// True if a further read may begin within so many reads and bytes. The first always may.
    fn is_below(self, reads: usize, bytes: usize) -> bool {
        self.reads == 0 || self.reads < reads && self.bytes < bytes
    }

    fn add(&mut self, bytes: usize) {
        self.reads += 1;
        self.bytes += bytes;
    }

    fn subtract(&mut self, bytes: usize) {
        self.reads -= 1;
        self.bytes -= bytes;
    }
}

/// All records that somebody waits for.
#[derive(Default)]
pub(super) struct ReadQueue {
    under_way: BTreeMap<DiskTicket, Wanted>,
    /// Loads of those that are under way, by who needs them.
    of_few: Load,
    of_many: Load,
    for_few: VecDeque<Wanted>,
    for_many: VecDeque<Wanted>,
    /// Places of all of them, and who needs what lies there.
    wanted: BTreeMap<u64, Need>,
}

impl ReadQueue {
    /// True if the record at this place is being read, or waits to be.
    pub fn has(&self, place: Place) -> bool {
        self.wanted.contains_key(&place.bits())
    }

    /// Records that somebody waits for.
    pub fn len(&self) -> usize {
        self.wanted.len()
    }

    pub fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// Bytes of memory that count for reads under way.
    pub fn bytes(&self) -> usize {
        self.of_few.bytes + self.of_many.bytes
    }

    pub fn add(&mut self, wanted: Wanted) {
        self.wanted.insert(wanted.read.place().bits(), wanted.need);
        match wanted.need {
            Need::Few => self.for_few.push_back(wanted),
            Need::Many => self.for_many.push_back(wanted),
        }
    }

    /// Somebody who needs few values needs one that another asked for among many.
    pub fn hurry(&mut self, place: Place) {
        let Some(need) = self.wanted.get_mut(&place.bits()) else { return };
        if std::mem::replace(need, Need::Few) == Need::Few {
            return;
        }
        let at = self.for_many.iter().position(|wanted| wanted.read.place() == place);
        // It may be under way.
        if let Some(mut wanted) = at.and_then(|at| self.for_many.remove(at)) {
            wanted.need = Need::Few;
            self.for_few.push_back(wanted);
        }
    }

    /// The read to begin next, if there may be one more.
    ///
    /// Those that are needed with many others take half of all at most while somebody waits for a
    /// single one; and an eighth however many wait for single ones. When patience ends more of them
    /// may be under way: they need not end before single ones begin, of which there may be half of
    /// all in any case.
    pub fn next(&mut self, room: &Room) -> Option<Wanted> {
        let (reads, bytes) = (self.under_way(), self.bytes());
        if reads >= room.reads || reads > 0 && bytes >= room.bytes {
            let is_own = self.of_few.is_below(room.reads_max / 2, room.bytes / 2);
            return if is_own && room.reads_max > 1 { self.for_few.pop_front() } else { None };
        }
        let most = match room.is_patient {
            true => (room.reads, room.bytes),
            false => (room.reads_max.div_ceil(2), room.bytes / 2),
        };
        let least = (room.reads_max.div_ceil(8), room.bytes / 8);
        let mut of_many = |(reads, bytes): (usize, usize)| match self.of_many.is_below(reads, bytes)
        {
            true => self.for_many.pop_front(),
            false => None,
        };
        let first = of_many(least);
        first.or_else(|| self.for_few.pop_front()).or_else(|| of_many(most))
    }

    /// The read that [`Self::next`] gave has begun.
    pub fn begin(&mut self, ticket: DiskTicket, wanted: Wanted) {
        self.load_mut(wanted.need).add(wanted.memory_bytes);
        self.under_way.insert(ticket, wanted);
    }

    /// A read has ended, if it was one of these.
    pub fn end(&mut self, ticket: DiskTicket) -> Option<Wanted> {
        let wanted = self.under_way.remove(&ticket)?;
        self.load_mut(wanted.need).subtract(wanted.memory_bytes);
        Some(wanted)
    }

    /// A read that has [ended](Self::end) is tried once more, before all others.
    pub fn repeat(&mut self, mut wanted: Wanted) {
        wanted.need = Need::Few;
        self.for_few.push_front(wanted);
    }

    /// The record at this place has come, or is gone: nobody waits for it any more.
    pub fn forget(&mut self, place: Place) {
        self.wanted.remove(&place.bits());
    }

    fn load_mut(&mut self, need: Need) -> &mut Load {
        match need {
            Need::Few => &mut self.of_few,
            Need::Many => &mut self.of_many,
        }
    }
}
