//! Cleaning: what is still live of a segment moves, and the segment is free.
//!
//! A chunk of the segment is read and proven on the thread that writes, and its live records are
//! put anew by the loop, while they are still few: then the next chunk is read. Values come into
//! memory for no more than that.

use super::jobs::{brought, read_aligned};
use super::{TRIES_MAX, TieringStatistics};
use base::disk::{DiskFile, DiskOutcome, DiskQueue, DiskTicket};
use engine::keyspace::Keyspace;
use std::sync::Arc;
use tier::{Chunk, Cleaning, Draft, Found, Sealer};

/// The segment that is being cleaned, if one is.
#[derive(Default)]
pub(super) struct Cleaner {
    cleaning: Option<Cleaning>,
    /// The chunk to be read next; `None` while one is being read.
    next: Option<Chunk>,
    reading: Option<(DiskTicket, Chunk)>,
    /// How often it was read in vain.
    tries: u32,
    /// Records that were read, and found no room yet.
    left: Option<Records>,
}

/// The records of a chunk, of which those before `at` are put.
struct Records {
    bytes: Vec<u8>,
    found: Vec<Found>,
    /// The contents of those that are long.
    drafts: Vec<Option<Draft>>,
    at: usize,
    then: Option<Chunk>,
}

/// What a job that reads a chunk brings.
type ReadChunk = Result<Records, String>;

/// Reads the records of a chunk. Contents that will be pieces of their own are copied here, so that
/// they need only be handed over.
fn read_chunk(
    file: &dyn DiskFile,
    sealer: &Sealer,
    chunk: &Chunk,
    limits: tier::Limits,
) -> ReadChunk {
    let (mut buffer, start) = read_aligned(file, chunk.offset(), chunk.length())?;
    let mut found = Vec::new();
    let then = chunk.open(sealer, &mut buffer[start..], &mut found);
    let then = then.map_err(|error| error.to_string())?;
    for record in &mut found {
        record.content = start + record.content.start..start + record.content.end;
    }
    let draft_of = |record: &Found| {
        limits.is_alone(record.content.len()).then(|| Draft::of(&buffer[record.content.clone()]))
    };
    let drafts: Vec<Option<Draft>> = found.iter().map(draft_of).collect();
    if drafts.iter().all(Option::is_some) {
        buffer = Vec::new();
    }
    Ok(Records { bytes: buffer, found, drafts, at: 0, then })
}

impl Cleaner {
    pub(super) fn is_busy(&self) -> bool {
        self.reading.is_some()
    }

    /// Whether records that were read wait for room.
    #[cfg(test)]
    pub(super) fn waits(&self) -> bool {
        self.left.is_some()
    }

    /// Goes on as far as the loop can: begins with a segment if one is to be cleaned, has the next
    /// chunk read.
    pub(super) fn go_on(
        &mut self,
        keyspace: &mut Keyspace,
        file: &Arc<dyn DiskFile>,
        sealer: &Arc<Sealer>,
        queue: &mut dyn DiskQueue,
        statistics: &mut TieringStatistics,
    ) {
        self.put_left(keyspace, statistics);
        let Some(cold) = keyspace.cold_mut() else { return };
        if self.reading.is_some() || self.left.is_some() {
            return;
        }
        if self.cleaning.is_none() {
            self.cleaning = cold.tier.begin_cleaning();
            self.next = self.cleaning.as_ref().map(Cleaning::first);
        }
        let Some(chunk) = self.next.take() else { return };
        let (file, sealer) = (Arc::clone(file), Arc::clone(sealer));
        let limits = *cold.tier.limits();
        let job = move || -> DiskOutcome { Box::new(read_chunk(&*file, &sealer, &chunk, limits)) };
        self.reading = Some((queue.submit(Box::new(job)), chunk));
    }

    /// Takes a chunk that was read.
    pub(super) fn take(
        &mut self,
        ticket: DiskTicket,
        outcome: DiskOutcome,
        keyspace: &mut Keyspace,
        statistics: &mut TieringStatistics,
    ) {
        let Some((_, chunk)) = self.reading.take_if(|(reading, _)| *reading == ticket) else {
            return;
        };
        let tries = std::mem::take(&mut self.tries) + 1;
        let (Some(cleaning), Some(cold)) = (&self.cleaning, keyspace.cold_mut()) else { return };
        if !cold.tier.is_being_cleaned(cleaning) {
            // All was flushed meanwhile.
            self.cleaning = None;
            return;
        }
        match brought(outcome) {
            Ok(records) => {
                self.left = Some(records);
                self.put_left(keyspace, statistics);
            }
            Err(why) => {
                statistics.failed_reads += 1;
                tracing::error!("a segment of the tier cannot be read to be cleaned: {why}");
                if tries < TRIES_MAX {
                    (self.tries, self.next) = (tries, Some(chunk));
                    return;
                }
                cold.tier.give_up_cleaning(cleaning);
                self.cleaning = None;
            }
        }
    }

    /// Ends the cleaning if all was flushed meanwhile: other records lie in its segment now.
    fn end_if_overtaken(&mut self, keyspace: &Keyspace) {
        if let (Some(cleaning), Some(cold)) = (&self.cleaning, keyspace.cold())
            && !cold.tier.is_being_cleaned(cleaning)
        {
            (self.cleaning, self.next, self.left) = (None, None, None);
            self.tries = 0;
        }
    }

    /// Puts the records of the chunk that was read which keys still have, as far as there is room.
    fn put_left(&mut self, keyspace: &mut Keyspace, statistics: &mut TieringStatistics) {
        self.end_if_overtaken(keyspace);
        let Some(records) = &mut self.left else { return };
        while let Some(found) = records.found.get(records.at) {
            let (hash, place) = (found.hash, found.place);
            let draft = &mut records.drafts[records.at];
            let is_put = match draft.is_some() {
                true => keyspace.put_surviving_draft(hash, place, draft),
                false => keyspace.put_survivor(hash, place, &records.bytes[found.content.clone()]),
            };
            if !is_put {
                return;
            }
            records.at += 1;
        }
        self.next = records.then;
        self.left = None;
        if self.next.is_none()
            && let Some(cleaning) = self.cleaning.take()
        {
            Self::end(&cleaning, keyspace, statistics);
        }
    }

    fn end(cleaning: &Cleaning, keyspace: &mut Keyspace, statistics: &mut TieringStatistics) {
        let is_flushed = keyspace.has_live_flushed();
        let Some(cold) = keyspace.cold_mut() else { return };
        if !cold.tier.has_live(cleaning) {
            cold.tier.end_cleaning(cleaning);
            statistics.cleaned_segments += 1;
        } else if is_flushed {
            cold.tier.leave_cleaning(cleaning);
        } else {
            // Otherwise it would be the first to be cleaned again, for ever.
            debug_assert!(false, "what is live of a segment is found when it is cleaned");
            tracing::error!("records of a segment of the tier were not found: it stays as it is");
            cold.tier.give_up_cleaning(cleaning);
        }
    }
}
