//! Values on their way into memory: which reads are under way, which wait for one of them, and what
//! becomes of what they bring.

use super::jobs::{self, Fetch, Fetched};
use super::queue::{Room, Wanted};
use super::{Need, TRIES_MAX, Tiering, TieringLimits, WANTED_BYTES};
use engine::cold::{ColdStore, ColdValue};
use engine::ids::KeyHash;
use engine::keyspace::Keyspace;
use std::sync::Arc;
use tier::Place;

/// The part of `maxmemory` that reads under way may take. What they bring has to leave again.
pub(super) const READING_SHARE: usize = 16;

/// Bytes of values from which on somebody needs many who needs more than one: reading them takes
/// about a millisecond.
const FEW_BYTES_MAX: usize = 1 << 20;

/// Bytes that count as taken up for a value that a thread has decoded: it takes about as long.
const LONG_COUNTS_BYTES: usize = 1 << 10;

impl Tiering {
    /// Who needs so many values, of so many bytes in memory.
    pub fn need_of(&self, count: usize, bytes: usize) -> Need {
        match count > self.limits.reads_max || count > 1 && bytes > FEW_BYTES_MAX {
            true => Need::Many,
            false => Need::Few,
        }
    }

    /// Has the value of the key with this hash come into memory, for somebody who needs few values
    /// or many. Whether it must be waited for: if not, it is there. [`Self::poll`] tells when it
    /// has come.
    pub fn fetch(
        &mut self,
        keyspace: &mut Keyspace,
        hash: KeyHash,
        value: ColdValue,
        need: Need,
    ) -> bool {
        let ColdValue { place, bytes: value_bytes } = value;
        if self.wanted.has(place) {
            if need == Need::Few {
                self.wanted.hurry(place);
                self.submit_reads(keyspace);
            }
            return true;
        }
        let Some(cold) = keyspace.cold() else { return false };
        let shared = if self.is_long(place) { cold.tier.share(place) } else { None };
        if shared.is_none()
            && let Some(content) = cold.in_memory(place)
        {
            keyspace.put_fetched(hash, place, &content);
            return false;
        }
        let read = cold.tier.read(place);
        let (tries, memory_bytes) = (0, 0);
        self.wanted.add(Wanted { hash, read, value_bytes, shared, tries, memory_bytes, need });
        self.submit_reads(keyspace);
        true
    }

    /// A long record: the thread that reads it decodes it as well.
    fn is_long(&self, place: Place) -> bool {
        place.length() > self.limits.built_bytes_min
    }

    /// The kernel's io_uring, which reads what is short: whether it is in use.
    pub fn has_ring(&self) -> bool {
        self.reads.has_ring() && self.file.direct_place(0).is_some()
    }

    /// Begins the reads that were asked for since the last call, or since they were polled:
    /// together, which costs less. Before whoever asked for them waits.
    pub fn begin_reads(&mut self) {
        self.be_patient(self.is_patient);
        self.reads.begin_reads();
    }

    /// Patience: nobody waits for a single read, but all for many. Then more are begun at a time,
    /// and the loop is woken for some of them together. Whoever says so wakes up by himself before
    /// long.
    pub fn be_patient(&mut self, is_patient: bool) {
        self.is_patient = is_patient;
        // While most of them are still under way, the file does not rest.
        let wakes_from = if is_patient { (self.wanted.under_way() / 4).max(1) } else { 1 };
        if wakes_from != self.wakes_from {
            self.wakes_from = wakes_from;
            self.reads.wake_from(wakes_from);
        }
    }

    /// Reads that are under way at a time, at most, while somebody waits for a single one.
    pub fn reads_max(&self) -> usize {
        self.limits.reads_max
    }

    /// Reads that may be under way now.
    fn reads_at_a_time(&self) -> usize {
        let TieringLimits { reads_max, patient_reads_max, .. } = self.limits;
        if self.is_patient { reads_max.max(patient_reads_max) } else { reads_max }
    }

    /// Whether what lies at this place is being read, or waits to be.
    pub fn awaits(&self, place: Place) -> bool {
        self.wanted.has(place)
    }

    /// Memory of reads from which on none is begun, in bytes.
    fn reading_bytes_max(&self, keyspace: &Keyspace) -> usize {
        match keyspace.settings.maxmemory as usize {
            0 => self.limits.read_bytes_max,
            maxmemory => self.limits.read_bytes_max.min(maxmemory / READING_SHARE),
        }
    }

    pub(super) fn submit_reads(&mut self, keyspace: &mut Keyspace) {
        let room = Room {
            reads_max: self.limits.reads_max,
            reads: self.reads_at_a_time(),
            is_patient: self.is_patient,
            bytes: self.reading_bytes_max(keyspace),
        };
        while let Some(mut wanted) = self.wanted.next(&room) {
            let (file, sealer) = (Arc::clone(&self.file), Arc::clone(&self.sealer));
            let (read, shared) = (wanted.read, wanted.shared.take());
            let builder = self.is_long(read.place()).then(|| keyspace.builder());
            if shared.is_none() {
                self.statistics.reads += 1;
                self.statistics.read_bytes += read.length() as u64;
            }
            let fetch = Fetch { file, sealer, read, shared, builder };
            wanted.memory_bytes = fetch.memory_bytes(wanted.value_bytes);
            self.wanted.begin(fetch.submit(&mut *self.reads), wanted);
        }
        if let Some(cold) = keyspace.cold_mut() {
            cold.coming_bytes = self.wanted.bytes() + self.wanted.len() * WANTED_BYTES;
        }
    }

    /// As [`Self::poll`], of what was read alone: amid a turn, for who waits for it.
    pub fn take_arrived(&mut self, keyspace: &mut Keyspace, arrived: &mut Vec<Place>) {
        self.take_reads(keyspace, arrived);
        self.submit_reads(keyspace);
        self.begin_reads();
    }

    /// Whether reads have ended that were not taken up: there was no time for all of them, and the
    /// next turn need not wait for anything.
    pub fn has_ended_reads(&self) -> bool {
        !self.ended.is_empty() || self.snapshot.has_ended()
    }

    /// Takes up the values that were read, as many as there is time for at once. What was read for
    /// a snapshot waits for its step of the turn.
    pub(super) fn take_reads(&mut self, keyspace: &mut Keyspace, arrived: &mut Vec<Place>) {
        self.reads.poll(&mut self.done);
        for (ticket, outcome) in self.done.drain(..) {
            match self.snapshot.reads(ticket) {
                true => self.snapshot.end(ticket, outcome),
                false => self.ended.push_back((ticket, outcome)),
            }
        }
        let mut taken_bytes = 0;
        while taken_bytes < self.limits.taken_bytes_max
            && let Some((ticket, outcome)) = self.ended.pop_front()
        {
            let Some(mut wanted) = self.wanted.end(ticket) else { continue };
            let place = wanted.read.place();
            let brought: Fetched = jobs::brought(outcome);
            let is_current = |cold: &ColdStore| cold.tier.is_current(&wanted.read);
            // What a thread has decoded is taken up at once.
            taken_bytes += match self.is_long(place) {
                true => LONG_COUNTS_BYTES,
                false => wanted.value_bytes,
            };
            if !keyspace.cold().is_some_and(is_current) {
                // The record was released, and another one may lie in its place by now, even one of
                // the same key: whoever waits looks again.
                self.wanted.forget(place);
                arrived.push(place);
                if let Ok(brought) = brought {
                    keyspace.forget_brought(brought);
                }
                continue;
            }
            if let Err(why) = &brought {
                self.statistics.failed_reads += 1;
                wanted.tries += 1;
                tracing::error!(offset = place.offset(), "a value cannot be read: {why}");
                // Who could not wait may have brought it in meanwhile.
                let is_cold = keyspace.is_cold_at(wanted.hash, place);
                if !is_cold {
                    keyspace.forget_copy_at(wanted.hash, place);
                } else if wanted.tries < TRIES_MAX {
                    self.wanted.repeat(wanted);
                    continue;
                } else if let Some(cold) = keyspace.cold() {
                    cold.fail(format!("a value that was moved to the tier is lost there: {why}"));
                }
            }
            // What was deleted or overwritten meanwhile is another matter: whoever waits looks
            // again.
            if let Ok(brought) = brought {
                keyspace.put_brought(wanted.hash, place, brought);
            }
            self.wanted.forget(place);
            arrived.push(place);
        }
    }
}
