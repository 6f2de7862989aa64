//! Which parts of the file are in use, and how much of each is live.
//!
//! ```text
//!              take                close            all released, all written
//!  free ────────────────▶ open ───────────▶ closed ───────────────────────────▶ free
//!                                             │ ▲                                 ▲
//!                        begin_cleaning, end_cleaning      while held: waiting ───┘
//! ```
//!
//! Each segment that is taken gets a generation that no segment had before: what is still read of
//! its former life does not pass for what is there now.

use crate::limits::{Limits, PAGE_BYTES};
use crate::place::Place;
use crate::segment::{Segment, State, Taken};
use crate::victim::Search;
use std::cmp::Reverse;
use std::collections::{BTreeSet, BinaryHeap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Free segments at the end of the file are given up if they are more than are kept free anyway,
/// and than this part of what is before them.
const DROPPED_PART: usize = 8;

/// Somebody's right to read what is released, until it is handed back.
#[derive(Debug)]
pub struct Hold(u64);

/// All segments that were ever used.
pub(crate) struct Segments {
    table: Vec<Segment>,
    /// Segments of the table that may be taken, each below the capacity, the lowest first: so the
    /// file's end comes free.
    free: BinaryHeap<Reverse<u32>>,
    /// Segments in which nothing is live, each with the number of the first hold that began since.
    waiting: Vec<(u32, u64)>,
    /// Segments that may be used: those from here on are emptied.
    capacity: u32,
    limits: Limits,
    generations: Generations,
    /// Who holds, by number; and the number of the next one.
    holds: BTreeSet<u64>,
    next_hold: u64,
    cleanings: u32,
    /// Segments that are not cleaned again, and not free.
    given_up: u32,
    search: Search,
    totals: Totals,
}

/// How a cleaning ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// What could be moved was. What is left may be cleaned later.
    Moved,
    /// What is left will be released: the segment is not cleaned again.
    Left,
    /// It met damage: the segment is not cleaned again.
    GivenUp,
}

/// Sums over all segments.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub(crate) struct Totals {
    pub(crate) live_records: u64,
    pub(crate) live_bytes: u64,
    pub(crate) occupied_bytes: u64,
}

/// The generations of one file's segments. Who lays another tier on the file goes on with them:
/// pages that the first one left must not pass for pages of the other.
#[derive(Clone, Default, Debug)]
pub struct Generations(Arc<AtomicU32>);

impl Generations {
    fn next(&self) -> u32 {
        // 2^32 segments of 8 MiB wear out any disk.
        let before = self.0.fetch_add(1, Ordering::Relaxed);
        before.checked_add(1).expect("generations outlast the disk")
    }
}

impl Segments {
    pub(crate) fn new(limits: Limits, generations: Generations) -> Self {
        Self {
            table: Vec::new(),
            free: BinaryHeap::new(),
            waiting: Vec::new(),
            capacity: 0,
            limits,
            generations,
            holds: BTreeSet::new(),
            next_hold: 0,
            cleanings: 0,
            given_up: 0,
            search: Search::default(),
            totals: Totals::default(),
        }
    }

    /// Takes the first free segment, unless only `reserve` of them are left.
    pub(crate) fn take(&mut self, reserve: usize) -> Option<Taken> {
        let is_enough = self.free_count() > reserve;
        is_enough.then(|| {
            let free = self.free.pop();
            self.open(free.map(|Reverse(index)| index))
        })
    }

    /// Takes a free segment for survivors: while the tier shrinks, and none is free that stays, one
    /// beyond the capacity. Without it nothing could move any more.
    pub(crate) fn take_for_survivors(&mut self) -> Option<Taken> {
        self.take(0).or_else(|| {
            let beyond = self.table.get(self.capacity as usize..).filter(|all| !all.is_empty())?;
            let free = beyond.iter().position(|segment| segment.state == State::Free);
            let is_room = free.is_some() || self.table.len() < self.limits.segments_max() as usize;
            is_room.then(|| self.open(free.map(|index| self.capacity + index as u32)))
        })
    }

    /// Opens a free segment of the table, or a new one at its end.
    fn open(&mut self, free: Option<u32>) -> Taken {
        let generation = self.generations.next();
        let opened = Segment::opened(generation);
        let index = match free {
            Some(index) => {
                self.table[index as usize] = opened;
                index
            }
            None => {
                self.table.push(opened);
                self.table.len() as u32 - 1
            }
        };
        Taken { index, generation }
    }

    pub(crate) fn set_capacity(&mut self, segments: u32) {
        let before = std::mem::replace(&mut self.capacity, segments);
        let known = (self.table.len() as u32).min(segments);
        let is_free = |&index: &u32| self.table[index as usize].state == State::Free;
        self.free.extend((before..known).filter(is_free).map(Reverse));
        self.free.retain(|&Reverse(index)| index < segments);
        self.drop_unused_end();
        self.search.look_again();
    }

    /// A record was added to an open segment, and before it `lost` bytes were left.
    pub(crate) fn add(&mut self, place: Place, lost: usize) {
        let length = place.length();
        self.change(self.index_of(place), |segment| {
            segment.live_bytes += length as u32;
            segment.put_bytes += length as u32;
            segment.lost_bytes += lost as u32;
        });
        self.totals.live_records += 1;
    }

    /// Bytes at the end of a piece, or of an open segment, were left because a record did not fit.
    pub(crate) fn lose(&mut self, index: u32, lost: usize) {
        self.change(index, |segment| segment.lost_bytes += lost as u32);
    }

    /// A record is live no more.
    pub(crate) fn release(&mut self, place: Place) {
        let index = self.index_of(place);
        let length = place.length() as u32;
        self.change(index, |segment| {
            segment.live_bytes =
                segment.live_bytes.checked_sub(length).expect("a record is released once");
        });
        self.totals.live_records -= 1;
        self.settle(index);
    }

    /// No record is live any more; for who holds, all stay where they are.
    pub(crate) fn release_all(&mut self) {
        for index in 0..self.table.len() as u32 {
            self.change(index, |segment| segment.live_bytes = 0);
        }
        // From the end: segments there may leave the table.
        for index in (0..self.table.len() as u32).rev() {
            if (index as usize) < self.table.len() {
                self.settle(index);
            }
        }
        self.totals.live_records = 0;
        self.search.look_again();
    }

    /// Nothing more is added to a segment, whose pieces end after `used` bytes.
    pub(crate) fn close(&mut self, index: u32, used: usize) {
        let segment = &mut self.table[index as usize];
        segment.state = State::Closed;
        segment.used_pages = (used / PAGE_BYTES) as u16;
        self.settle(index);
    }

    pub(crate) fn piece_closed(&mut self, index: u32) {
        self.table[index as usize].unwritten_pieces += 1;
    }

    pub(crate) fn piece_written(&mut self, index: u32) {
        self.table[index as usize].unwritten_pieces -= 1;
        self.settle(index);
    }

    /// The next segment to clean, with the bytes of its pieces; none if enough are free, or none
    /// would give room.
    pub(crate) fn begin_cleaning(&mut self) -> Option<(Taken, usize)> {
        // Segments that wait for holds to end give no room yet, and what survives a cleaning needs
        // some.
        if self.waiting.len() > self.free_count() {
            return None;
        }
        let index = match self.beyond_capacity() {
            Some(index) => index,
            None if self.free_count() + self.cleanings as usize >= self.free_min() => return None,
            None => self.search.choose(&self.table, &self.limits)?,
        };
        let segment = &mut self.table[index as usize];
        segment.is_being_cleaned = true;
        self.cleanings += 1;
        let used = usize::from(segment.used_pages) * PAGE_BYTES;
        Some((Taken { index, generation: segment.generation }, used))
    }

    /// A segment beyond the capacity that can be cleaned, and has somewhere to go: the last one,
    /// so that the file's end comes free.
    fn beyond_capacity(&self) -> Option<u32> {
        let beyond = self.table.get(self.capacity as usize..)?;
        let last = beyond.iter().rposition(Segment::can_be_cleaned)?;
        (self.free_count() > 0).then_some(self.capacity + last as u32)
    }

    /// Ends the cleaning of a segment, if it is still under way: the segment is free if nothing in
    /// it is live.
    pub(crate) fn end_cleaning(&mut self, taken: Taken, end: End) {
        if !self.is_being_cleaned(taken) {
            return;
        }
        let segment = &mut self.table[taken.index as usize];
        segment.is_being_cleaned = false;
        segment.is_left |= end == End::Left;
        if end == End::GivenUp && !segment.is_given_up {
            segment.is_given_up = true;
            self.given_up += 1;
        }
        self.cleanings -= 1;
        self.settle(taken.index);
    }

    pub(crate) fn is_being_cleaned(&self, taken: Taken) -> bool {
        self.is_current(taken) && self.table[taken.index as usize].is_being_cleaned
    }

    /// Whether a segment was not taken again since.
    pub(crate) fn is_current(&self, taken: Taken) -> bool {
        let segment = self.table.get(taken.index as usize);
        segment.is_some_and(|segment| segment.generation == taken.generation)
    }

    pub(crate) fn hold(&mut self) -> Hold {
        let hold = Hold(self.next_hold);
        self.next_hold += 1;
        self.holds.insert(hold.0);
        hold
    }

    pub(crate) fn unhold(&mut self, hold: &Hold) {
        assert!(self.holds.remove(&hold.0), "a hold ends once");
        let oldest = self.holds.first().copied().unwrap_or(u64::MAX);
        let waiting = std::mem::take(&mut self.waiting);
        for (index, since) in waiting {
            match since <= oldest {
                true => self.make_free(index),
                false => self.waiting.push((index, since)),
            }
        }
        self.drop_unused_end();
    }

    /// Forgets all segments, but not which generations there were, nor who holds.
    pub(crate) fn reset(&mut self) {
        self.table.clear();
        self.free.clear();
        self.waiting.clear();
        self.cleanings = 0;
        self.given_up = 0;
        self.search.look_again();
        self.totals = Totals::default();
    }

    /// Frees a segment in which nothing is live or unwritten, or has it wait.
    fn settle(&mut self, index: u32) {
        let segment = &mut self.table[index as usize];
        if segment.state != State::Closed || segment.unwritten_pieces > 0 {
            return;
        }
        if segment.live_bytes > 0 {
            self.search.look_again_at(segment, &self.limits);
        } else if segment.is_being_cleaned {
            // Its bytes are still being read.
        } else if !self.holds.is_empty() {
            segment.state = State::Waiting;
            self.waiting.push((index, self.next_hold));
        } else {
            self.make_free(index);
            self.drop_unused_end();
        }
    }

    fn make_free(&mut self, index: u32) {
        let segment = &mut self.table[index as usize];
        segment.state = State::Free;
        if std::mem::take(&mut segment.is_given_up) {
            self.given_up -= 1;
        }
        if index < self.capacity {
            self.free.push(Reverse(index));
        }
    }

    /// Forgets free segments beyond the capacity, as far as none after them is in use.
    fn drop_unused_end(&mut self) {
        while self.table.len() > self.capacity as usize
            && self.table.last().is_some_and(|last| last.state == State::Free)
        {
            self.table.pop();
        }
    }

    /// Whether more than half of the segments that were ever used are free.
    pub(crate) fn is_mostly_free(&self) -> bool {
        self.free.len() * 2 > self.table.len()
    }

    /// Forgets free segments at the end, if they are enough: those that come and go all the time
    /// stay.
    pub(crate) fn drop_free_end(&mut self) {
        let ends = self.table.iter().rev();
        let free = ends.take_while(|segment| segment.state == State::Free).count();
        let kept = self.table.len() - free;
        if free <= self.free_min() + kept / DROPPED_PART {
            return;
        }
        self.table.truncate(kept);
        self.free.retain(|Reverse(index)| (*index as usize) < kept);
    }

    /// Changes a segment's accounts, and the totals with them.
    fn change(&mut self, index: u32, change: impl FnOnce(&mut Segment)) {
        let segment = &mut self.table[index as usize];
        let (live, occupied) = (u64::from(segment.live_bytes), segment.occupied_bytes());
        change(segment);
        let totals = &mut self.totals;
        totals.live_bytes = totals.live_bytes - live + u64::from(segment.live_bytes);
        totals.occupied_bytes = totals.occupied_bytes - occupied + segment.occupied_bytes();
    }

    pub(crate) fn index_of(&self, place: Place) -> u32 {
        (place.offset() / self.limits.segment_bytes as u64) as u32
    }

    /// The segment of a place, which must have been handed out since the last reset.
    pub(crate) fn taken_of(&self, place: Place) -> Taken {
        let index = self.index_of(place);
        Taken { index, generation: self.table[index as usize].generation }
    }

    pub(crate) fn offset_of(&self, index: u32) -> u64 {
        u64::from(index) * self.limits.segment_bytes as u64
    }

    pub(crate) fn has_live(&self, index: u32) -> bool {
        self.table[index as usize].live_bytes > 0
    }

    pub(crate) fn is_beyond_capacity(&self, index: u32) -> bool {
        index >= self.capacity
    }

    /// Whether more spilled bytes may be live.
    pub(crate) fn has_room_for(&self, bytes: usize) -> bool {
        let usable = (self.capacity as usize).saturating_sub(self.free_min()) as u64;
        let bytes_max =
            usable * self.limits.segment_bytes as u64 / 100 * self.limits.fill_percent_max;
        self.totals.occupied_bytes + bytes as u64 <= bytes_max
    }

    /// Segments that cleaning keeps free.
    fn free_min(&self) -> usize {
        let part = (u64::from(self.capacity) * self.limits.free_percent_min).div_ceil(100);
        self.limits.free_segments_min.max(part as usize)
    }

    /// Segments that may be taken: free ones, and those not used yet.
    pub(crate) fn free_count(&self) -> usize {
        self.free.len() + (self.capacity as usize).saturating_sub(self.table.len())
    }

    pub(crate) fn cleaning_count(&self) -> u32 {
        self.cleanings
    }

    /// Segments whose cleaning met damage, and that have not come free since.
    pub(crate) fn given_up_count(&self) -> u32 {
        self.given_up
    }

    pub(crate) fn waiting_count(&self) -> usize {
        self.waiting.len()
    }

    pub(crate) fn table_count(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn capacity(&self) -> u32 {
        self.capacity
    }

    pub(crate) fn totals(&self) -> Totals {
        self.totals
    }

    pub(crate) fn allocated_bytes(&self) -> usize {
        self.table.capacity() * size_of::<Segment>()
            + self.free.capacity() * size_of::<u32>()
            + self.waiting.capacity() * size_of::<(u32, u64)>()
    }

    /// Asserts that the accounts are those of `live`, and agree with each other.
    #[cfg(any(test, feature = "twins"))]
    pub(crate) fn check(&self, live: impl Iterator<Item = Place>) {
        let mut sums = vec![0; self.table.len()];
        let mut records = 0;
        for place in live {
            sums[self.index_of(place) as usize] += place.length();
            records += 1;
        }
        assert_eq!(self.totals.live_records, records);
        for (index, (segment, sum)) in self.table.iter().zip(&sums).enumerate() {
            assert_eq!(segment.live_bytes as usize, *sum, "live bytes of segment {index}");
            let is_idle = matches!(segment.state, State::Free | State::Waiting);
            assert!(!is_idle || *sum == 0 && segment.unwritten_pieces == 0);
            let index = index as u32;
            let is_listed = match segment.state {
                State::Free => {
                    index >= self.capacity || self.free.iter().any(|free| free.0 == index)
                }
                State::Waiting => self.waiting.iter().any(|(waiting, _)| *waiting == index),
                _ => true,
            };
            assert!(is_listed, "segment {index} is in no list");
        }
        let count = |wanted| self.table.iter().filter(|segment| segment.state == wanted).count();
        assert_eq!(self.waiting.len(), count(State::Waiting));
        assert!(self.free.len() <= count(State::Free));
        let cleaned = self.table.iter().filter(|segment| segment.is_being_cleaned).count();
        assert_eq!(self.cleanings as usize, cleaned);
        let given_up = self.table.iter().filter(|segment| segment.is_given_up).count();
        assert_eq!(self.given_up as usize, given_up);
        let occupied: u64 = self.table.iter().map(Segment::occupied_bytes).sum();
        assert_eq!(self.totals.occupied_bytes, occupied);
        assert_eq!(self.totals.live_bytes as usize, sums.iter().sum::<usize>());
    }
}
