//! Records in order, the end of the log, and its beginning.
//!
//! A place is read by its name, not found in a listing: at the end, where replicas wait, that is
//! the cheapest request there is. Further back many are asked for at a time.

use super::Objects;
use super::look::Failure;
use base::Sequence;
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use object_store::Error;
use std::time::Duration;
use txlog::remote::store::Outcome;

/// Records asked for at a time when reading far behind the end: enough that 20 ms of latency still
/// give some 800 records a second.
const WINDOW_MAX: u64 = 16;

/// A record's cost to a start, as `StoreLimits` has it: 800 a second, where a snapshot is loaded at
/// some 100 MB/s.
pub(super) const RECORD_COST_BYTES: u64 = 128 << 10;

/// Records of one piece, a window more at most. A piece must be there within
/// [`super::ANSWER_WAIT`], or it is begun anew from its first record, and a log of many small
/// records is never read: these take a dozen rounds of requests, so some 300 ms on S3.
const PIECE_RECORDS_MAX: usize = 128;

/// Between looks for a new record at the end: from a wait in which a busy primary writes the next
/// one, doubling to one that a bill bears. 10 requests a second and replica cost some 10 dollars a
/// month on S3, November 2026.
const TAIL_PAUSE_MIN: Duration = Duration::from_millis(4);
const TAIL_PAUSE_MAX: Duration = Duration::from_millis(100);

/// How long reading waits at the end before it answers that there is nothing.
const TAIL_WAIT: Duration = Duration::from_secs(2);

/// Times that trimming may overtake the search for the end.
const SEARCHES_MAX: usize = 5;

/// What stands at a place.
enum FoundAt {
    /// Records from there on; and whether the next place was free, or may have been.
    Taken {
        records: Vec<Bytes>,
        is_end: bool,
    },
    /// Nothing was ever written there. `tail` is the last record.
    Free {
        tail: Sequence,
    },
    Trimmed {
        first: Sequence,
    },
}

impl Objects {
    pub(super) async fn records(&self, from: Sequence, bytes_max: usize, waits: bool) -> Outcome {
        let from = from.max(Sequence(1));
        match self.await_records(from, bytes_max, waits).await {
            Ok(outcome) => outcome,
            Err(failure) => failure.into_outcome(),
        }
    }

    async fn await_records(
        &self,
        from: Sequence,
        bytes_max: usize,
        waits: bool,
    ) -> Result<Outcome, Failure> {
        let began = self.now();
        let mut pause = TAIL_PAUSE_MIN;
        let mut was_free = false;
        loop {
            // Once the place was seen free, handing out what comes there is to have caught up with
            // all that there was at that time: no need to look behind it.
            match self.found_at(from, if was_free { 0 } else { bytes_max }).await? {
                FoundAt::Taken { records, is_end } => {
                    return self.hand_out(from, records, is_end || was_free, bytes_max).await;
                }
                FoundAt::Free { tail } if tail >= from => continue,
                FoundAt::Free { tail } => {
                    let waited = self.now().since(began);
                    if !waits || tail.next() != from || waited >= TAIL_WAIT.as_nanos() as u64 {
                        return Ok(Outcome::Records { records: Vec::new(), tail });
                    }
                    was_free = true;
                }
                FoundAt::Trimmed { first } => return Ok(Outcome::Trimmed { first }),
            }
            tokio::time::sleep(pause).await;
            pause = TAIL_PAUSE_MAX.min(pause * 2);
        }
    }

    async fn hand_out(
        &self,
        from: Sequence,
        mut records: Vec<Bytes>,
        is_end: bool,
        bytes_max: usize,
    ) -> Result<Outcome, Failure> {
        let place_of = |count: usize| Sequence(from.0 + count as u64);
        self.known().saw_taken(Sequence(place_of(records.len()).0 - 1), self.now());
        // Whether the reader has caught up must not depend on where the answer was full.
        let next = place_of(records.len());
        if !is_end && self.stands(next).await? {
            self.known().saw_taken(next, self.now());
        }
        let mut bytes = 0;
        let fitting = |record: &&Bytes| {
            bytes += record.len();
            bytes <= bytes_max
        };
        let fit = records.iter().take_while(fitting).count().max(1);
        records.truncate(fit);
        Ok(Outcome::Records { records, tail: self.known().taken() })
    }

    /// Reads at `from`, and finds out what it means if nothing is there.
    async fn found_at(&self, from: Sequence, bytes_max: usize) -> Result<FoundAt, Failure> {
        let (floor, taken) = {
            let known = self.known();
            (known.floor(), known.taken())
        };
        if from <= floor {
            return Ok(FoundAt::Trimmed { first: floor.next() });
        }
        let asked = self.now();
        let (records, is_end) = self.fetch_run(from, bytes_max).await?;
        let is_sure = self.known().is_sure(from, self.now());
        if !is_sure {
            let floor = self.look().await?;
            if from <= floor {
                return Ok(FoundAt::Trimmed { first: floor.next() });
            }
        }
        if let Some(record) = records.first() {
            self.settle().await?;
            self.known().hands.saw(from, record);
            return Ok(FoundAt::Taken { records, is_end });
        }
        if from <= taken {
            let path = self.names.record(self.life, from);
            return Err(Failure::Lost(format!("the object {path} is gone")));
        }
        if from > taken.next() {
            return Ok(FoundAt::Free { tail: self.search_tail().await? });
        }
        self.known().saw_free(from, asked);
        Ok(FoundAt::Free { tail: taken })
    }

    /// Records from `from` on without a gap: until one is missing, which is told, or until they are
    /// at least `bytes_max`, or many. Begins with one alone, because most often it is not there.
    async fn fetch_run(
        &self,
        from: Sequence,
        bytes_max: usize,
    ) -> Result<(Vec<Bytes>, bool), Error> {
        let (mut records, mut bytes, mut window) = (Vec::new(), 0, 1);
        loop {
            let next = from.0 + records.len() as u64;
            let places = (next..next + window).map(|place| self.fetch(Sequence(place)));
            let mut answers = stream::iter(places).buffered(window as usize);
            while let Some(answer) = answers.next().await {
                let Some(record) = answer? else { return Ok((records, true)) };
                bytes += record.len();
                records.push(record);
            }
            if bytes >= bytes_max || records.len() >= PIECE_RECORDS_MAX {
                return Ok((records, false));
            }
            window = WINDOW_MAX.min(window * 2);
        }
    }

    /// The newest record. Every record between the floor and the end stands, so the end is found in
    /// steps that double and then halve, from the newest one known. That the next place was free is
    /// seen by a request begun in here: so whatever was acknowledged before is not behind it.
    async fn search_tail(&self) -> Result<Sequence, Failure> {
        for _ in 0..SEARCHES_MAX {
            let taken = self.known().taken();
            let asked = self.now();
            let (mut stands, mut step) = (taken, 1);
            let mut free = loop {
                let next = Sequence(stands.0 + step);
                if !self.stands(next).await? {
                    break next;
                }
                (stands, step) = (next, step * 2);
            };
            while free.0 - stands.0 > 1 {
                let middle = Sequence(stands.0 + (free.0 - stands.0) / 2);
                if self.stands(middle).await? { stands = middle } else { free = middle }
            }
            // A place may have seemed free because it was trimmed.
            let is_sure = self.known().is_sure(free, self.now());
            if is_sure || self.look().await? < free {
                let mut known = self.known();
                known.saw_taken(stands, self.now());
                known.saw_free(free, asked);
                return Ok(stands);
            }
        }
        Err(Failure::of("the log is trimmed faster than its end can be found"))
    }

    pub(super) async fn tail_outcome(&self) -> Outcome {
        match self.search_tail().await {
            Ok(sequence) => Outcome::Tail { sequence, is_confirmed: true },
            Err(failure) => failure.into_outcome(),
        }
    }

    pub(super) async fn first_outcome(&self) -> Outcome {
        match self.look().await {
            Ok(floor) => Outcome::First { sequence: floor.next() },
            Err(failure) => failure.into_outcome(),
        }
    }
}
