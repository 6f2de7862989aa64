//! Cold values that a snapshot has come to, until their bytes are read.
//!
//! What stands before such a value in the file is noted at once, and where its bytes lie. A window
//! of them is handed out to be read, in the order in which they lie there; when all have come, they
//! are written. Meanwhile the walk fills the next window. Records never change, and while a window
//! is not written the store gives no space of theirs to others: so the values may be changed,
//! deleted or fetched meanwhile.

use crate::cold::ColdStore;
use crate::keyspace::Keyspace;
use crate::value::content::put_stored;
use base::DatabaseId;
use tier::{Hold, Place, Read};

/// Values of a window: enough that neighbours on the disk are read together. A guess.
const WINDOW_VALUES: usize = 4096;

/// Bytes of a window's records; the last one may exceed them.
const WINDOW_BYTES: usize = 4 << 20;

/// So many windows' worth may be noted while one is read, before who writes has to wait: 2 MB of
/// places, and 10 MB of short values when they are read.
const OVERFULL_WINDOWS: usize = 4;

/// The windows of a snapshot.
#[derive(Default)]
pub(super) struct Windows {
    gathering: Window,
    reading: Window,
    /// The number of the window that is being read.
    number: u64,
}

#[derive(Default)]
struct Window {
    values: Vec<Value>,
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
    /// Writes it, once its bytes have come.
    pub fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        put_stored(out, self.content.as_deref().unwrap_or_default());
    }
}

impl Windows {
    pub fn add(&mut self, database: DatabaseId, head: Vec<u8>, place: Place) {
        self.gathering.bytes += place.length() + head.len();
        self.gathering.values.push(Value { database, head, place, content: None });
    }

    /// Whether the walk must wait for a window to be read.
    pub fn is_full(&self) -> bool {
        let Window { values, bytes, .. } = &self.gathering;
        values.len() >= WINDOW_VALUES || *bytes >= WINDOW_BYTES
    }

    /// Whether nothing more should be noted: what is about to be changed is, whatever is full.
    pub fn is_overfull(&self) -> bool {
        let Window { values, bytes, .. } = &self.gathering;
        values.len() >= OVERFULL_WINDOWS * WINDOW_VALUES
            || *bytes >= OVERFULL_WINDOWS * WINDOW_BYTES
    }

    pub fn is_empty(&self) -> bool {
        self.gathering.values.is_empty() && self.reading.values.is_empty()
    }

    /// Whether a window is being read.
    pub fn is_reading(&self) -> bool {
        !self.reading.values.is_empty()
    }

    /// Forgets all that was noted.
    pub fn clear(&mut self) {
        self.gathering.values.clear();
        self.reading.values.clear();
    }

    /// Has the store keep what was noted, and lets it go when that is written.
    pub fn hold(&mut self, cold: Option<&mut ColdStore>) {
        let Some(cold) = cold else { return };
        for window in [&mut self.gathering, &mut self.reading] {
            match window.hold.take() {
                Some(hold) if window.values.is_empty() => cold.tier.unhold(hold),
                None if !window.values.is_empty() => window.hold = Some(cold.tier.hold()),
                hold => window.hold = hold,
            }
        }
    }

    /// The next window, to be read in this order, with its number; `None` while one is being read.
    /// Values that are still in memory need not be read.
    fn ask(&mut self, cold: &ColdStore) -> Option<(u64, Vec<(u32, Read)>)> {
        if self.is_reading() || self.gathering.values.is_empty() {
            return None;
        }
        std::mem::swap(&mut self.gathering, &mut self.reading);
        self.number += 1;
        self.reading.values.sort_unstable_by_key(|value| value.place);
        let mut reads = Vec::new();
        for (index, value) in self.reading.values.iter_mut().enumerate() {
            value.content = cold.in_memory(value.place);
            if value.content.is_none() {
                reads.push((index as u32, cold.tier.read(value.place)));
            }
        }
        self.reading.missing = reads.len();
        Some((self.number, reads))
    }

    /// Takes the bytes of a value. What comes for another window is of no use.
    fn put(&mut self, number: u64, index: u32, content: Vec<u8>) {
        let Window { values, missing, .. } = &mut self.reading;
        if number == self.number
            && let Some(value) = values.get_mut(index as usize)
            && value.content.is_none()
        {
            value.content = Some(content);
            *missing -= 1;
        }
    }

    /// The values of a window that has come as a whole.
    pub fn take_read(&mut self) -> Vec<Value> {
        match self.reading.missing {
            0 => {
                self.reading.bytes = 0;
                std::mem::take(&mut self.reading.values)
            }
            _ => Vec::new(),
        }
    }
}

impl Keyspace {
    /// The cold values that the snapshot under way asks for: the number of their window, and what
    /// to read for each. Whoever asks hands their bytes over ([`Self::put_snapshot_value`]).
    pub fn snapshot_reads(&mut self) -> Option<(u64, Vec<(u32, Read)>)> {
        let cold = self.cold.as_deref()?;
        let snapshot = self.snapshot.as_deref_mut()?;
        let is_due = snapshot.writing.windows.is_full() || snapshot.is_walked(&self.databases);
        if !is_due {
            return None;
        }
        let asked = snapshot.writing.windows.ask(cold);
        if asked.as_ref().is_some_and(|(_, reads)| reads.is_empty()) {
            self.write_read_values();
            return None;
        }
        asked
    }

    /// The bytes of a cold value that the snapshot under way asked for.
    pub fn put_snapshot_value(&mut self, window: u64, index: u32, content: Vec<u8>) {
        let Some(snapshot) = self.snapshot.as_deref_mut() else { return };
        snapshot.writing.windows.put(window, index, content);
        self.write_read_values();
    }

    /// Whether the snapshot under way is reading the window with this number.
    pub fn is_snapshot_window(&self, window: u64) -> bool {
        let is_it = |windows: &Windows| windows.is_reading() && windows.number == window;
        self.snapshot.as_deref().is_some_and(|snapshot| is_it(&snapshot.writing.windows))
    }

    fn write_read_values(&mut self) {
        let Self { snapshot: Some(snapshot), cold, .. } = self else { return };
        let writing = &mut snapshot.writing;
        for value in writing.windows.take_read() {
            writing.put_read(&value);
        }
        writing.windows.hold(cold.as_deref_mut());
    }

    /// Whether the walk of the snapshot under way can only go on when cold values were read.
    pub fn snapshot_waits_for_values(&self) -> bool {
        let waits = |snapshot: &crate::snapshot::Snapshot| {
            let windows = &snapshot.writing.windows;
            windows.is_full() || !windows.is_empty() && snapshot.is_walked(&self.databases)
        };
        self.snapshot.as_deref().is_some_and(waits)
    }

    /// Whether writing commands should wait until cold values were read for the snapshot under way:
    /// each may have it note more of them.
    pub fn snapshot_is_overfull(&self) -> bool {
        self.snapshot.as_deref().is_some_and(|it| it.writing.windows.is_overfull())
    }

    /// Reads what the snapshot under way asks for, at once: where nobody reads for it.
    pub fn read_snapshot_values(&mut self) {
        while let Some((window, reads)) = self.snapshot_reads() {
            for (index, read) in reads {
                let cold = self.cold.as_deref();
                let content = cold.and_then(|cold| cold.content_at(read.place().bits()));
                // What is lost is noted, and the snapshot ends with this life.
                self.put_snapshot_value(window, index, content.unwrap_or_default());
            }
        }
    }
}
