//! Parts of a snapshot on their way from the archive: each is read, checked and decoded by one of a
//! few threads, several at a time, so that all cores have something to do.
//!
//! ```text
//! lane 0   part 0, 2, 4 …   ─▶ decoded, decoded … ─┐
//!                                                  ├─▶ in turn, one of each ─▶ keyspace
//! lane 1   part 1, 3, 5 …   ─▶ decoded, decoded … ─┘
//! ```
//! In turn, whoever is ready first: what comes of it does not depend on how fast a thread was.

use archive::PartReader;
use base::disk::{DiskOutcome, DiskQueue, DiskTicket};
use engine::load::{Decoded, Decoder};
use engine::rdb::RdbError;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

/// Jobs of a lane that are under way, or done and not yet taken: enough that a thread goes on while
/// the loop turns. With [`LANES_MAX`] and [`JOB_BYTES`] it bounds what waits: 32 MiB of the parts,
/// which are some two times as much in memory.
const JOBS_MAX: usize = 4;

/// Bytes of a part that a job reads: a millisecond or two, beside which handing them over costs
/// nothing.
pub(super) const JOB_BYTES: u64 = 1 << 20;

/// Threads that are of use. Reading a key takes three or four times as long as putting it in, which
/// one thread does for all; a store far away is waited for as well.
pub const LANES_MAX: usize = archive::PARTS_OF_ONE_SIZE;

/// Parts that a lane has been handed and has not read to their end: with one ahead it does not
/// wait.
pub(super) const PARTS_AHEAD: usize = 2;

/// What a job read: of which part, and what it was. `None` if nothing was there to be read.
pub(super) type Read = Option<(usize, Result<Decoded, RdbError>)>;

/// How much a job reads, at most.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Job {
    pub keys_max: u64,
    pub bytes_max: u64,
}

/// What the jobs of a lane share.
#[derive(Default)]
struct Reading {
    /// The parts that were handed over, each with its number; the first is being read.
    parts: VecDeque<(usize, Decoder<PartReader>)>,
}

impl Reading {
    fn next(&mut self, job: Job) -> Read {
        let (index, decoder) = self.parts.front_mut()?;
        let index = *index;
        let read = match decoder.decode(job.keys_max, job.bytes_max) {
            // Damaged bytes look like a newer release's, too: these are believed once all bytes of
            // the part are those that were written.
            Err(unsupported @ RdbError::Unsupported { .. }) => {
                Err(decoder.check_rest().map_or_else(RdbError::Io, |()| unsupported))
            }
            read => read,
        };
        match &read {
            Ok(decoded) if !decoded.is_end => {}
            Ok(_) => drop(self.parts.pop_front()),
            // The whole snapshot is of no use.
            Err(_) => self.parts.clear(),
        }
        Some((index, read))
    }
}

/// A thread that reads parts, one after the other; or nobody, where there is no thread: then it is
/// done when it is asked for.
#[derive(Default)]
pub(super) struct Lane {
    queue: Option<Box<dyn DiskQueue>>,
    reading: Arc<Mutex<Reading>>,
    /// Parts that were handed over and are not taken to their end.
    pub parts: usize,
    under_way: usize,
    done: VecDeque<Read>,
    polled: Vec<(DiskTicket, DiskOutcome)>,
}

impl Lane {
    pub fn new(queue: Option<Box<dyn DiskQueue>>) -> Self {
        Self { queue, ..Self::default() }
    }

    /// Hands a part over.
    pub fn push(&mut self, index: usize, part: Decoder<PartReader>) {
        lock(&self.reading).parts.push_back((index, part));
        self.parts += 1;
    }

    /// Lets its thread read on, as far ahead as it may.
    pub fn go_on(&mut self, job: Job) {
        let Some(queue) = &mut self.queue else { return };
        while self.parts > 0 && self.under_way + self.done.len() < JOBS_MAX {
            let reading = Arc::clone(&self.reading);
            queue.submit(Box::new(move || -> DiskOutcome { Box::new(lock(&reading).next(job)) }));
            self.under_way += 1;
        }
    }

    /// What was read next; `None` while its thread is at it.
    pub fn take(&mut self, job: Job) -> Option<(usize, Result<Decoded, RdbError>)> {
        let read = match &mut self.queue {
            None => lock(&self.reading).next(job),
            Some(queue) => loop {
                if self.done.is_empty() {
                    queue.poll(&mut self.polled);
                    self.under_way -= self.polled.len();
                    self.done.extend(self.polled.drain(..).map(|(_, outcome)| {
                        *outcome.downcast::<Read>().expect("every job here returns this")
                    }));
                }
                // A job that came before its part, or after the last, has read nothing.
                match self.done.pop_front()? {
                    None => {}
                    read => break read,
                }
            },
        };
        if matches!(&read, Some((_, Ok(decoded))) if decoded.is_end) {
            self.parts -= 1;
        }
        read
    }

    /// Its thread, which has nothing left to do.
    pub fn into_queue(mut self) -> Option<Box<dyn DiskQueue>> {
        lock(&self.reading).parts.clear();
        let mut queue = self.queue.take()?;
        queue.drain();
        // Nobody wants what was read. Whoever gets the thread next must not meet it.
        queue.poll(&mut self.polled);
        Some(queue)
    }
}

fn lock(reading: &Mutex<Reading>) -> std::sync::MutexGuard<'_, Reading> {
    // A job that panicked leaves a part of which nothing more is taken: the process ends.
    reading.lock().unwrap_or_else(PoisonError::into_inner)
}
