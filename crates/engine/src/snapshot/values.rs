//! Cold values that a snapshot has come to, until their bytes are read.
//!
//! What stands before such a value in the file is noted at once, and where its bytes lie. A window
//! of them is handed out to be read, in the order in which they lie there; when all have come, they
//! are written. Meanwhile the next window fills. Records never change, and while a window is not
//! written the store gives no space of theirs to others: so the values may be changed, deleted or
//! fetched meanwhile.
//!
//! What the walk comes to lies together on the disk, and is read many times faster than what is
//! noted because it is about to be changed, which lies anywhere. So each has windows of its own, or
//! a snapshot amid many writes would go on as fast as these let it; and the sooner the walk has
//! been everywhere, the less of them there is to note.

use crate::cold::ColdLimits;
use crate::cold::ColdStore;
use crate::keyspace::Keyspace;
use crate::snapshot::Writing;
use crate::value::content::put_stored;
use base::DatabaseId;
use std::collections::VecDeque;
use tier::{Hold, Place, Read};

/// The part of `maxmemory` that a window of what the walk has come to may take.
const WALKED_SHARE: u64 = 128;

/// So many windows' worth of that may be noted while one is read, before who writes has to wait: a
/// command may note many values.
const OVERFULL_WINDOWS: usize = 2;

/// Values of those read that are written in one step, and bytes after which it ends; the last one
/// may overshoot. Some 0.1 ms. What takes longest of small ones is to free their bytes, which
/// another thread brought.
const WRITTEN_VALUES: usize = 64;
const WRITTEN_BYTES: usize = 256 << 10;

/// Why a value is noted, which says in which windows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Noted {
    /// The walk has come to it.
    Walked,
    /// It, or what shares a cell with it, is about to be changed.
    Changed,
}

/// A window that was handed out to be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WindowId {
    noted: Noted,
    number: u64,
}

/// The windows of a snapshot.
pub(super) struct Windows {
    walked: Pair,
    changed: Pair,
    /// What has come as a whole and is not written yet: then nothing more is asked for.
    come: VecDeque<Value>,
}

/// A window that is being read, and those that come behind it: one that fills, as a rule, and more
/// if a command notes many values. Each has a hold of its own, so that the space of what was
/// written need not wait for what was noted long after it.
struct Pair {
    /// What makes one full.
    bytes_max: usize,
    gathering: VecDeque<Window>,
    gathering_bytes: usize,
    reading: Window,
    /// The number of the window that is being read.
    number: u64,
}

#[derive(Default)]
struct Window {
    values: Vec<Value>,
    /// Of the values' records, and of what is known of each.
    bytes: usize,
    /// Values whose bytes have not come.
    missing: usize,
    /// While it is there the store gives no space of released records to others.
    hold: Option<Hold>,
}

/// A value to be written.
pub(super) struct Value {
    pub database: DatabaseId,
    /// What stands before it.
    pub head: Vec<u8>,
    place: Place,
    content: Option<Vec<u8>>,
}

impl Value {
    /// Of its record, and of what is known of it.
    fn bytes(&self) -> usize {
        self.place.length() + self.head.capacity() + size_of::<Self>()
    }

    /// Writes it, once its bytes have come.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        put_stored(out, self.content.as_deref().unwrap_or_default());
    }
}

impl Pair {
    fn new(bytes_max: usize) -> Self {
        let (gathering, reading) = (VecDeque::new(), Window::default());
        Self { bytes_max, gathering, gathering_bytes: 0, reading, number: 0 }
    }

    fn is_empty(&self) -> bool {
        self.gathering.is_empty() && self.reading.values.is_empty()
    }

    fn add(&mut self, value: Value) {
        let bytes = value.bytes();
        if self.gathering.back().is_none_or(|last| last.bytes >= self.bytes_max) {
            self.gathering.push_back(Window::default());
        }
        if let Some(last) = self.gathering.back_mut() {
            last.bytes += bytes;
            last.values.push(value);
        }
        self.gathering_bytes += bytes;
    }

    fn is_reading(&self) -> bool {
        !self.reading.values.is_empty()
    }

    /// The next window, to be read in this order. Values that are still in memory need not be read.
    fn ask(&mut self, cold: &ColdStore) -> Vec<(u32, Read)> {
        debug_assert!(self.reading.hold.is_none(), "a window that is written is held no more");
        self.reading = self.gathering.pop_front().unwrap_or_default();
        self.gathering_bytes -= self.reading.bytes;
        self.number += 1;
        let mut reads = Vec::with_capacity(self.reading.values.len());
        for (index, value) in self.reading.values.iter_mut().enumerate() {
            value.content = cold.in_memory(value.place);
            if value.content.is_none() {
                reads.push((index as u32, cold.tier.read(value.place)));
            }
        }
        self.reading.missing = reads.len();
        // The walk has come to most of them in this order. By place and not by page: whoever reads
        // neighbours together takes the last one's end for that of all.
        reads.sort_unstable_by_key(|(_, read)| read.place());
        reads
    }

    /// Takes the bytes of a value of the window that is being read.
    fn put(&mut self, index: u32, content: Vec<u8>) {
        let Window { values, missing, .. } = &mut self.reading;
        if let Some(value) = values.get_mut(index as usize)
            && value.content.is_none()
        {
            value.content = Some(content);
            *missing -= 1;
        }
    }

    /// The values of a window that has come as a whole.
    fn take_read(&mut self) -> Vec<Value> {
        match self.reading.missing {
            0 => {
                self.reading.bytes = 0;
                std::mem::take(&mut self.reading.values)
            }
            _ => Vec::new(),
        }
    }
}

impl Windows {
    /// Of a keyspace with this `maxmemory`.
    pub fn new(maxmemory: u64, limits: &ColdLimits) -> Self {
        let ColdLimits { walked_bytes_min, walked_bytes_max, changed_bytes, .. } = *limits;
        let share = match maxmemory {
            0 => walked_bytes_max,
            maxmemory => (maxmemory / WALKED_SHARE) as usize,
        };
        let walked = Pair::new(share.clamp(walked_bytes_min, walked_bytes_max));
        Self { walked, changed: Pair::new(changed_bytes), come: VecDeque::new() }
    }

    pub fn add(&mut self, noted: Noted, database: DatabaseId, head: Vec<u8>, place: Place) {
        self.pair_mut(noted).add(Value { database, head, place, content: None });
    }

    fn pair(&self, noted: Noted) -> &Pair {
        match noted {
            Noted::Walked => &self.walked,
            Noted::Changed => &self.changed,
        }
    }

    fn pair_mut(&mut self, noted: Noted) -> &mut Pair {
        match noted {
            Noted::Walked => &mut self.walked,
            Noted::Changed => &mut self.changed,
        }
    }

    /// Whether the walk must wait for a window to be read.
    pub fn stop_walk(&self) -> bool {
        self.walked.gathering_bytes >= self.walked.bytes_max
    }

    /// Whether nothing more should be noted: what is about to be changed is, whatever is full.
    pub fn is_overfull(&self) -> bool {
        self.changed.gathering_bytes >= OVERFULL_WINDOWS * self.changed.bytes_max
    }

    pub fn is_empty(&self) -> bool {
        self.walked.is_empty() && self.changed.is_empty() && self.come.is_empty()
    }

    /// Whether something that has come is to be written.
    pub fn has_come(&self) -> bool {
        !self.come.is_empty()
    }

    /// Forgets all that was noted.
    pub fn clear(&mut self, cold: Option<&mut ColdStore>) {
        let Some(cold) = cold else { return };
        for pair in [&mut self.walked, &mut self.changed] {
            let windows = pair.gathering.drain(..).chain([std::mem::take(&mut pair.reading)]);
            windows.filter_map(|window| window.hold).for_each(|hold| cold.tier.unhold(hold));
            pair.gathering_bytes = 0;
        }
        self.come.clear();
    }

    /// Has the store keep what was noted, and lets it go when that is written.
    pub fn hold(&mut self, cold: Option<&mut ColdStore>) {
        let Some(cold) = cold else { return };
        for pair in [&mut self.walked, &mut self.changed] {
            let last = pair.gathering.iter_mut().rev();
            for window in last.take_while(|window| window.hold.is_none()) {
                window.hold = Some(cold.tier.hold());
            }
            let reading = &mut pair.reading;
            match reading.hold.take() {
                Some(hold) if reading.values.is_empty() => cold.tier.unhold(hold),
                None if !reading.values.is_empty() => reading.hold = Some(cold.tier.hold()),
                hold => reading.hold = hold,
            }
        }
    }

    /// The next window to be read, if one is full, or the walk `is_over` and it will get no fuller.
    /// What is about to be changed is not waited for where space must be kept for it.
    fn ask(
        &mut self,
        noted: Noted,
        is_over: bool,
        cold: &ColdStore,
    ) -> Option<(WindowId, Vec<(u32, Read)>)> {
        let has_come = self.has_come();
        let pair = self.pair_mut(noted);
        let is_pressing = is_over || noted == Noted::Changed && cold.tier.has_waiting();
        let is_due =
            pair.gathering_bytes >= pair.bytes_max || is_pressing && !pair.gathering.is_empty();
        if !is_due || pair.is_reading() || has_come {
            return None;
        }
        let reads = pair.ask(cold);
        let window = WindowId { noted, number: pair.number };
        let all = if reads.is_empty() { pair.take_read() } else { Vec::new() };
        self.come.extend(all);
        Some((window, reads))
    }

    /// Takes the bytes of a value. What comes for another window is of no use.
    fn put(&mut self, window: WindowId, index: u32, content: Vec<u8>) {
        let pair = self.pair_mut(window.noted);
        if pair.number == window.number {
            pair.put(index, content);
            let all = pair.take_read();
            self.come.extend(all);
        }
    }

    fn is_reading(&self, window: WindowId) -> bool {
        let pair = self.pair(window.noted);
        pair.is_reading() && pair.number == window.number
    }

    /// The next value of a window that has come as a whole.
    pub fn take_come(&mut self) -> Option<Value> {
        self.come.pop_front()
    }
}

impl Keyspace {
    /// Cold values that the snapshot under way asks for: their window, and what to read for each.
    /// Whoever asks hands their bytes over ([`Self::put_snapshot_value`]) before asking again for
    /// what is noted for the same reason.
    pub fn snapshot_reads(&mut self, noted: Noted) -> Option<(WindowId, Vec<(u32, Read)>)> {
        let cold = self.cold.as_deref()?;
        let snapshot = self.snapshot.as_deref_mut()?;
        let is_over = snapshot.is_walked(&self.databases);
        snapshot.writing.windows.ask(noted, is_over, cold)
    }

    /// The bytes of a cold value that the snapshot under way asked for. They are written as the
    /// walk goes on ([`Self::walk_snapshot`]).
    pub fn put_snapshot_value(&mut self, window: WindowId, index: u32, content: Vec<u8>) {
        let Some(snapshot) = self.snapshot.as_deref_mut() else { return };
        snapshot.writing.windows.put(window, index, content);
    }

    /// Whether the snapshot under way is reading this window.
    pub fn is_snapshot_window(&self, window: WindowId) -> bool {
        self.snapshot.as_deref().is_some_and(|it| it.writing.windows.is_reading(window))
    }

    /// Writes some of the values that have come for the snapshot under way.
    pub fn write_read_values(&mut self) {
        let Self { snapshot: Some(snapshot), cold, .. } = self else { return };
        let writing = &mut snapshot.writing;
        let until = writing.bytes.len() + writing.aside.len() + WRITTEN_BYTES;
        for _ in 0..WRITTEN_VALUES {
            if writing.bytes.len() + writing.aside.len() >= until {
                break;
            }
            let Some(value) = writing.windows.take_come() else { break };
            writing.put_read(&value);
        }
        writing.windows.hold(cold.as_deref_mut());
    }

    /// True if cold values have come for the snapshot under way that are not written yet, and would
    /// be written to the file: not while another value is half written there.
    pub fn snapshot_has_come(&self) -> bool {
        let has_come = |writing: &Writing| writing.windows.has_come() && !writing.has_big();
        self.snapshot.as_deref().is_some_and(|it| has_come(&it.writing))
    }

    /// Whether the walk of the snapshot under way can only go on when cold values were read.
    pub fn snapshot_waits_for_values(&self) -> bool {
        let waits = |snapshot: &crate::snapshot::Snapshot| {
            let windows = &snapshot.writing.windows;
            let is_over = || !windows.is_empty() && snapshot.is_walked(&self.databases);
            !windows.has_come() && (windows.stop_walk() || is_over())
        };
        self.snapshot.as_deref().is_some_and(waits)
    }

    /// Whether writing commands should wait until cold values were read for the snapshot under way:
    /// each may have it note more of them.
    pub fn snapshot_is_overfull(&self) -> bool {
        self.snapshot.as_deref().is_some_and(|it| it.writing.windows.is_overfull())
    }

    /// Reads what the snapshot under way asks for, at once: where nobody reads for it.
    #[cfg(test)]
    pub(crate) fn read_snapshot_values(&mut self) {
        let has_come = |keyspace: &Self| {
            keyspace.snapshot.as_deref().is_some_and(|it| it.writing.windows.has_come())
        };
        let next = |keyspace: &mut Self| {
            keyspace.write_read_values();
            while has_come(keyspace) {
                keyspace.write_read_values();
            }
            let reads = keyspace.snapshot_reads(Noted::Changed);
            reads.or_else(|| keyspace.snapshot_reads(Noted::Walked))
        };
        while let Some((window, reads)) = next(self) {
            self.read_window(window, reads);
        }
    }

    /// Reads a window of what was about to be changed, and writes it.
    #[cfg(test)]
    pub(crate) fn read_snapshot_window(&mut self) {
        let (window, reads) = self.snapshot_reads(Noted::Changed).expect("a window is full");
        self.read_window(window, reads);
        self.write_read_values();
    }

    #[cfg(test)]
    fn read_window(&mut self, window: WindowId, reads: Vec<(u32, Read)>) {
        for (index, read) in reads {
            let cold = self.cold.as_deref();
            let cold = cold.expect("a value lies there");
            let content = cold.contents_at([read.place()].into_iter());
            let content = content.expect("nothing is lost").remove(0);
            self.put_snapshot_value(window, index, content);
        }
    }
}
