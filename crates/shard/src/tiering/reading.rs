//! Values on their way into memory: which reads are under way, which wait for one of them, and what
//! becomes of what they bring.

use super::jobs::{self, Fetch, Fetched};
use super::{TRIES_MAX, Tiering, TieringLimits, WANTED_BYTES, Wanted};
use engine::cold::ColdStore;
use engine::ids::KeyHash;
use engine::keyspace::Keyspace;
use std::sync::Arc;
use tier::Place;

/// The part of `maxmemory` that reads under way may take. What they bring has to leave again.
pub(super) const READING_SHARE: usize = 16;

impl Tiering {
    /// Has the value of the key with this hash come into memory, one of `count` that a request
    /// needs. Whether it must be waited for: if not, it is there. [`Self::poll`] tells when it has
    /// come.
    pub fn fetch(
        &mut self,
        keyspace: &mut Keyspace,
        hash: KeyHash,
        place: Place,
        count: usize,
    ) -> bool {
        if self.wanted.contains_key(&place.bits()) {
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
        self.wanted.insert(place.bits(), hash);
        let is_bulk = count > self.limits.reads_max;
        let queue = if is_bulk { &mut self.queued_bulk } else { &mut self.queued };
        queue.push_back(Wanted { hash, read, shared, tries: 0, memory_bytes: 0, is_bulk });
        self.submit_reads(keyspace);
        true
    }

    /// A long record: the thread that reads it decodes it as well.
    fn is_long(&self, place: Place) -> bool {
        place.length() > self.limits.built_bytes_min
    }

    /// The read to begin next, if there may be one more. Those of requests that need many take half
    /// of all at most while somebody waits for a single one, so that others wait for a few of them
    /// and not for all; and an eighth however many others there are.
    fn next_queued(&mut self) -> Option<Wanted> {
        if self.reading.len() >= self.reads_at_a_time() {
            // Of many that were begun when nobody waited, not all must end before others begin.
            let others = self.reading.len() - self.reading_bulk;
            return if others < self.limits.reads_max / 2 { self.queued.pop_front() } else { None };
        }
        let most = match self.is_patient {
            true => self.reads_at_a_time(),
            false => self.limits.reads_max.div_ceil(2),
        };
        let least = self.limits.reads_max.div_ceil(8);
        let bulk = self.reading_bulk;
        let first = if bulk < least { self.queued_bulk.pop_front() } else { None };
        first
            .or_else(|| self.queued.pop_front())
            .or_else(|| if bulk < most { self.queued_bulk.pop_front() } else { None })
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
        let wakes_from = if is_patient { (self.reading.len() / 4).max(1) } else { 1 };
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
        self.wanted.contains_key(&place.bits())
    }

    /// Memory of reads from which on none is begun, in bytes.
    fn reading_bytes_max(&self, keyspace: &Keyspace) -> usize {
        match keyspace.settings.maxmemory as usize {
            0 => self.limits.read_bytes_max,
            maxmemory => self.limits.read_bytes_max.min(maxmemory / READING_SHARE),
        }
    }

    pub(super) fn submit_reads(&mut self, keyspace: &mut Keyspace) {
        let bytes_max = self.reading_bytes_max(keyspace);
        while (self.reading.is_empty() || self.reading_bytes < bytes_max)
            && let Some(mut wanted) = self.next_queued()
        {
            self.reading_bulk += usize::from(wanted.is_bulk);
            let (file, sealer) = (Arc::clone(&self.file), Arc::clone(&self.sealer));
            let (read, shared) = (wanted.read, wanted.shared.take());
            let builder = self.is_long(read.place()).then(|| keyspace.builder());
            if shared.is_none() {
                self.statistics.reads += 1;
                self.statistics.read_bytes += read.length() as u64;
            }
            let fetch = Fetch { file, sealer, read, shared, builder };
            wanted.memory_bytes = fetch.memory_bytes();
            self.reading_bytes += wanted.memory_bytes;
            self.reading.insert(fetch.submit(&mut *self.reads), wanted);
        }
        if let Some(cold) = keyspace.cold_mut() {
            cold.coming_bytes = self.reading_bytes + self.wanted.len() * WANTED_BYTES;
        }
    }

    /// As [`Self::poll`], of what was read alone: amid a turn, for who waits for it.
    pub fn take_arrived(&mut self, keyspace: &mut Keyspace, arrived: &mut Vec<Place>) {
        self.take_reads(keyspace, arrived);
        self.submit_reads(keyspace);
        self.begin_reads();
    }

    pub(super) fn take_reads(&mut self, keyspace: &mut Keyspace, arrived: &mut Vec<Place>) {
        let mut done = std::mem::take(&mut self.done);
        self.reads.poll(&mut done);
        for (ticket, outcome) in done.drain(..) {
            let Some(mut wanted) = self.reading.remove(&ticket) else {
                self.snapshot.take(ticket, outcome, keyspace, &mut self.statistics);
                continue;
            };
            self.reading_bytes -= wanted.memory_bytes;
            self.reading_bulk -= usize::from(wanted.is_bulk);
            let place = wanted.read.place();
            let brought: Fetched = jobs::brought(outcome);
            let is_current = |cold: &ColdStore| cold.tier.is_current(&wanted.read);
            if !keyspace.cold().is_some_and(is_current) {
                // The record was released, and another one may lie in its place by now, even one of
                // the same key: whoever waits looks again.
                self.wanted.remove(&place.bits());
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
                    self.queued.push_front(wanted);
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
            self.wanted.remove(&place.bits());
            arrived.push(place);
        }
        self.done = done;
    }
}
