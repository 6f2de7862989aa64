//! The turning of the wheel: batches go out as jobs, outcomes come back, space is prepared ahead.

use super::error::LogError;
use super::layout;
use super::tail::ReadOutcome;
use super::tenure::{CommitError, Committed, Spare, Tenure};
use super::{ClaimOutcome, FileLog, Role};
use crate::log::{AppendError, History, LogEvent, Refusal, Ticket};
use base::disk::DiskTicket;
use base::{MonotonicNanos, Sequence};
use bytes::Bytes;
use std::io::ErrorKind;
use std::sync::Arc;

/// How long to wait before space is looked for again on a full disk. Short against an operator's
/// patience, long against the cost of filling a file in vain. A guess.
const RETRY_NANOS: u64 = 500_000_000;

/// Bytes written to the newest segment before the next one is prepared. Of the smallest segment of
/// 16 MiB, 15 are left then: at 200 MiB/s that is time enough to fill the next one with zeroes.
const WRITTEN_BEFORE_SPARE_BYTES: u64 = 1 << 20;

pub(super) struct CommitOutcome {
    tenure: Box<Tenure>,
    spare: Option<Spare>,
    result: Result<Committed, CommitError>,
}

pub(super) enum Background {
    Spare(Result<Spare, LogError>),
    Read(Box<ReadOutcome>),
    Tail(Ticket, Result<Sequence, LogError>),
    Compared(Ticket, Result<History, LogError>),
    Trimmed,
    /// Whether some reader is alive.
    Readers(Result<bool, LogError>),
    /// Whether every writer is dead.
    Death(Result<bool, LogError>),
}

impl FileLog {
    /// Starts what can be started: a commit, a spare, a reading.
    pub(super) fn pump(&mut self) {
        self.pump_spare();
        if let Some((records, spare)) = self.next_batch() {
            let tenure = self.tenure.take().expect("a batch is formed only while it is at home");
            let job = move || commit(tenure, &records, spare);
            self.queues.commits.submit(Box::new(move || Box::new(job())));
        }
        self.pump_reading();
    }

    /// Moves what fits into one commit from pending to flying. `None` if nothing can be sent now.
    pub(super) fn next_batch(&mut self) -> Option<(Vec<Bytes>, Option<Spare>)> {
        if !matches!(self.role, Role::Writer) || self.tenure.is_none() {
            return None;
        }
        if self.clock.monotonic() < self.commit_retry_at {
            return None;
        }
        let first = self.appends.pending.front()?;
        let mut bytes = layout::framed_bytes(first.bytes.len());
        let mut count = 1;
        for append in self.appends.pending.iter().skip(1) {
            let more = layout::framed_bytes(append.bytes.len());
            if bytes + more > self.options.batch_bytes_max {
                break;
            }
            bytes += more;
            count += 1;
        }
        let spare = if bytes as u64 > self.space { Some(self.spares.next.take()?) } else { None };
        self.appends.flying.extend(self.appends.pending.drain(..count));
        Some((self.appends.flying.iter().map(|append| append.bytes.clone()).collect(), spare))
    }

    /// Bytes that must be free for the gate to be open: what is in flight, one more batch, and one
    /// that may go unused, because a batch does not straddle two segments.
    pub(super) fn reserve(&self) -> u64 {
        (self.appends.bytes + 2 * self.options.batch_bytes_max) as u64
    }

    /// Prepares the next segment once the newest one is really written to: an idle server need
    /// not fill a disk with zeroes. Segments grow with their writer, up to the full size.
    pub(super) fn pump_spare(&mut self) {
        let is_wanted = matches!(self.role, Role::Writer) && self.spares.next.is_none();
        if !is_wanted || self.spares.is_under_way || self.clock.monotonic() < self.spares.retry_at {
            return;
        }
        let Some(newest) = self.segments.last() else { return };
        let written = newest.length.saturating_sub(self.space) + self.appends.bytes as u64;
        let is_roomy = self.space >= self.reserve();
        if is_roomy && written < (newest.length / 4).min(WRITTEN_BEFORE_SPARE_BYTES) {
            return;
        }
        let capacity = (2 * newest.length).min(self.options.segment_bytes);
        let capacity = capacity.max(self.options.first_segment_bytes);
        self.spares.is_under_way = true;
        self.spares.made += 1;
        let claim = newest.header.claim;
        let path = layout::spare_path(&self.directory, claim, self.spares.made);
        let disk = Arc::clone(&self.disk);
        self.background(move || Background::Spare(Spare::prepare(&*disk, path, capacity)));
    }

    pub(super) fn background(&mut self, job: impl FnOnce() -> Background + Send + 'static) {
        self.background_jobs += 1;
        self.queues.background.submit(Box::new(move || Box::new(job())));
    }

    pub(super) fn reap(&mut self) {
        let mut done: Vec<(DiskTicket, base::disk::DiskOutcome)> = Vec::new();
        self.queues.commits.poll(&mut done);
        for (_, outcome) in done.drain(..) {
            match outcome.downcast::<CommitOutcome>() {
                Ok(outcome) => self.finish_commit(*outcome),
                Err(outcome) => {
                    let taken = outcome.downcast::<ClaimOutcome>();
                    self.finish_claim(*taken.expect("commit jobs return one of two outcomes"));
                }
            }
        }
        self.queues.background.poll(&mut done);
        for (_, outcome) in done {
            self.background_jobs -= 1;
            let outcome = outcome.downcast::<Background>();
            self.finish_background(*outcome.expect("background jobs return Background"));
        }
    }

    pub(super) fn finish_commit(&mut self, outcome: CommitOutcome) {
        self.space = outcome.tenure.space();
        self.tenure = Some(outcome.tenure);
        if outcome.spare.is_some() {
            self.spares.next = outcome.spare;
        }
        match outcome.result {
            Ok(committed) => {
                if let Some(segment) = committed.rolled {
                    if let Some(last) = self.segments.last_mut() {
                        last.end = Some(segment.first());
                    }
                    self.segments.push(segment);
                }
                for append in self.appends.flying.drain(..) {
                    self.appends.bytes -= layout::framed_bytes(append.bytes.len());
                }
                self.durable = committed.tail;
                self.events.push(LogEvent::Durable(self.position(committed.tail)));
            }
            Err(CommitError::Full) => {
                for append in self.appends.flying.drain(..).rev() {
                    self.appends.pending.push_front(append);
                }
                self.trouble = Some(Refusal::DiskFull);
                self.commit_retry_at = self.retry_instant();
            }
            Err(CommitError::Claimed) => self.close(Refusal::NotWriter, &AppendError::InDoubt),
            Err(CommitError::Lost) => self.close(Refusal::LogLost, &AppendError::LogLost),
            Err(CommitError::Fatal(what)) => {
                self.close(Refusal::Failed(what.clone()), &AppendError::Fatal(what));
            }
        }
    }

    /// Ends the tenure: what was under way failed with `error`, what waited was never sent.
    pub(super) fn close(&mut self, refusal: Refusal, error: &AppendError) {
        for append in self.appends.flying.drain(..) {
            self.events.push(LogEvent::Failed(append.ticket, error.clone()));
        }
        for append in self.appends.pending.drain(..) {
            self.events.push(LogEvent::Failed(append.ticket, AppendError::NotAttempted));
        }
        self.appends.bytes = 0;
        self.tenure = None;
        self.spares.next = None;
        self.role = Role::Closed(refusal);
    }

    pub(super) fn retry_instant(&self) -> MonotonicNanos {
        MonotonicNanos(self.clock.monotonic().0 + RETRY_NANOS)
    }

    pub(super) fn finish_background(&mut self, outcome: Background) {
        match outcome {
            Background::Spare(Ok(spare)) => {
                self.spares.is_under_way = false;
                self.trouble = None;
                self.spares.next = Some(spare);
            }
            Background::Spare(Err(error)) => {
                self.spares.is_under_way = false;
                let trouble = match &error {
                    LogError::Io { error, .. } if error.kind() == ErrorKind::StorageFull => {
                        Refusal::DiskFull
                    }
                    _ => Refusal::Failed(error.to_string()),
                };
                self.trouble = Some(trouble);
                self.spares.retry_at = self.retry_instant();
            }
            Background::Read(outcome) => self.finish_read(*outcome),
            Background::Tail(ticket, Ok(sequence)) => {
                self.durable = self.durable.max(sequence);
                let position = self.position(sequence);
                self.events.push(LogEvent::Tail { ticket, position, confirmed: false });
            }
            Background::Tail(ticket, Err(error)) => {
                self.events.push(LogEvent::Unanswered(ticket, error.to_string()));
            }
            Background::Compared(ticket, Ok(history)) => {
                self.events.push(LogEvent::Compared { ticket, history });
            }
            Background::Compared(ticket, Err(error)) => {
                self.events.push(LogEvent::Unanswered(ticket, error.to_string()));
            }
            Background::Trimmed => {}
            Background::Readers(found) => self.finish_look(found),
            Background::Death(found) => {
                self.is_probing = false;
                // An error proves nothing.
                if found.unwrap_or(false) {
                    self.events.push(LogEvent::HolderDead);
                }
            }
        }
    }
}

pub(super) fn commit(
    mut tenure: Box<Tenure>,
    records: &[Bytes],
    mut spare: Option<Spare>,
) -> CommitOutcome {
    let result = tenure.commit(records, &mut spare);
    CommitOutcome { tenure, spare, result }
}
