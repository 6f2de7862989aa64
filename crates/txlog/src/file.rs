//! The file log: segments in a directory, one write and one fdatasync per batch.
//!
//! ```text
//! append ─▶ pending ─▶ commit job (write, fdatasync, look for claims, publish mark) ─▶ Durable
//!              ▲ the next batch gathers while one is under way
//! ```
//!
//! Appending threads never touch the disk: the writer's whole state ([`tenure::Tenure`]) travels
//! into a job and back. `commit_inline` runs the same job on the calling thread.
//!
//! | file | holds |
//! |---|---|
//! | [`options`] | sizes, threads, what opening finds |
//! | [`layout`] | names, headers, frames |
//! | [`scan`] | the frames of one segment, and why reading stops |
//! | [`survey`] | which segment speaks for which sequences |
//! | [`claim`] | the right to write |
//! | [`commit`] | batches, outcomes, space prepared ahead |
//! | [`recover`] | opening, torn tails and damage, taking over |
//! | [`tenure`] | commit, roll |
//! | [`trim`] | forgetting the oldest segments |
//! | [`presence`] | who reads, and whether who wrote is dead |
//! | [`replay`] | reading in order |
//! | [`history`] | what stands at a place: the history that was read before, or another |
//! | [`inspect`] | reading without touching |
//! | [`tail`] | reading what is still growing |
//! | [`look`] | how a reader learns that it has grown |

mod claim;
mod commit;
mod error;
mod history;
mod inspect;
mod layout;
mod look;
mod options;
mod presence;
mod recover;
mod replay;
mod scan;
mod survey;
mod tail;
mod tenure;
mod trim;

pub use error::{LogError, LogErrorKind};
pub use inspect::{Inspection, inspect};
pub use options::{FileOptions, Queues, Recovery};
pub use recover::is_begun;
pub use replay::{Progress, Replay};

use crate::chain::Chain;
use crate::log::{AppendError, Gate, History, Limits, LogEvent, Refusal, Ticket, TransactionLog};
use crate::record::{self, Kind};
use base::disk::Disk;
use base::{Clock, Incarnation, MonotonicNanos, Position, Sequence};
use bytes::Bytes;
use commit::Background;
use presence::{Presence, Watched};
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use survey::{Segment, Survey};
use tail::Reading;
use tenure::{Spare, Tenure};

struct Append {
    ticket: Ticket,
    bytes: Bytes,
}

enum Role {
    /// May read; a `Lead` makes it claim the log.
    Reader,
    /// A claim is under way for the first pending append.
    Claiming {
        after: Sequence,
    },
    Writer,
    Closed(Refusal),
}

/// Appends that are not durable yet.
#[derive(Default)]
struct Appends {
    /// Not handed to a commit.
    pending: VecDeque<Append>,
    /// Handed to the commit under way.
    flying: Vec<Append>,
    /// Framed bytes of both.
    bytes: usize,
}

/// The segment that is prepared before it is needed.
#[derive(Default)]
struct Spares {
    next: Option<Spare>,
    is_under_way: bool,
    made: u64,
    /// When preparing one is tried again.
    retry_at: MonotonicNanos,
}

/// One shard's log in a directory.
pub struct FileLog {
    disk: Arc<dyn Disk>,
    clock: Arc<dyn Clock>,
    directory: PathBuf,
    options: FileOptions,
    queues: Queues,
    incarnation: Incarnation,
    role: Role,
    /// At home, unless a commit is under way.
    tenure: Option<Box<Tenure>>,
    segments: Vec<Segment>,
    durable: Sequence,
    /// The place of the last append accepted.
    predicted: Sequence,
    appends: Appends,
    /// Framed bytes that fit into the segment when the last commit ended.
    space: u64,
    spares: Spares,
    /// Why no space could be prepared the last time.
    trouble: Option<Refusal>,
    /// When a commit that found no space is tried again.
    commit_retry_at: MonotonicNanos,
    reading: Option<Reading>,
    background_jobs: usize,
    events: Vec<LogEvent>,
    tickets: u64,
    claims_made: u64,
    /// While it is no writer, and others are.
    presence: Option<Presence>,
    watched: Watched,
    is_probing: bool,
    /// The newest claim that does not keep this handle from making its own: records of its tenure
    /// were read, or it was waited for once. A younger one's writer is perhaps about to lead.
    known_claim: u64,
}

impl FileLog {
    /// Opens the log in `directory`, or begins one. If no other process writes it and the options
    /// do not forbid it, this handle becomes its writer at once. Blocks; for the start of a server.
    ///
    /// # Errors
    /// `Damaged` if bytes that were durable are wrong, `Lost` if the directory is not the log that
    /// `options.known` names, `Busy` if another process is just beginning it, `Io`.
    pub fn open(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        queues: Queues,
        directory: &Path,
        options: FileOptions,
    ) -> Result<(Self, Recovery), LogError> {
        options.check();
        let (incarnation, is_new) = recover::incarnation(&*disk, directory, &options)?;
        if let Some(known) = options.known
            && known.incarnation != incarnation
        {
            return Err(LogError::Lost("it was deleted and created anew".to_owned()));
        }
        let survey = Survey::take(&*disk, directory, incarnation)?;
        // Before anything is written: a log that ends too early is left as it was found.
        let floor = recover::floor(&*disk, directory, incarnation, &options, survey.mark)?;
        let taken = if options.may_write {
            recover::take_free(&disk, directory, incarnation, &options, &survey)?
        } else {
            None
        };
        let mut log =
            Self::assemble(disk, clock, queues, directory.to_owned(), options, incarnation);
        let is_free = taken.is_some();
        let is_torn = taken.as_ref().is_some_and(|taken| taken.is_torn);
        if let Some(taken) = taken {
            log.adopt(taken);
        } else {
            if log.options.shows_itself {
                let entropy = log.options.entropy;
                log.presence = Some(Presence::show(&log.disk, &log.directory, entropy)?);
            }
            let survey = Survey::take(&*log.disk, directory, incarnation)?;
            log.durable = survey.mark.max(floor);
            log.known_claim = survey.claims.last().copied().unwrap_or_default();
            log.predicted = log.durable;
            log.segments = survey.segments;
        }
        let recovery = Recovery {
            tail: log.position(log.durable),
            first: log.position(log.first_sequence()),
            chain: log.tenure.as_ref().map(|tenure| tenure.chain),
            is_writer: is_free,
            is_new,
            is_torn,
        };
        Ok((log, recovery))
    }

    fn assemble(
        disk: Arc<dyn Disk>,
        clock: Arc<dyn Clock>,
        queues: Queues,
        directory: PathBuf,
        options: FileOptions,
        incarnation: Incarnation,
    ) -> Self {
        Self {
            disk,
            clock,
            directory,
            options,
            queues,
            incarnation,
            role: Role::Reader,
            tenure: None,
            segments: Vec::new(),
            durable: Sequence::ZERO,
            predicted: Sequence::ZERO,
            appends: Appends::default(),
            space: 0,
            spares: Spares::default(),
            trouble: None,
            commit_retry_at: MonotonicNanos(0),
            reading: None,
            background_jobs: 0,
            events: Vec::new(),
            tickets: 0,
            claims_made: 0,
            presence: None,
            watched: Watched::default(),
            is_probing: false,
            known_claim: 0,
        }
    }

    /// Reads the committed records from `from` to the durable tail of now. Blocks as it is read;
    /// may be sent to another thread.
    ///
    /// # Errors
    /// `Trimmed` if `from` lies before the oldest record, `Lost` if it lies behind the tail.
    pub fn replay(&self, from: Sequence) -> Result<Replay, LogError> {
        let log = self.position(Sequence::ZERO);
        Replay::new(Arc::clone(&self.disk), log, &self.segments, from, self.durable)
    }

    /// Where the chain stood before the oldest record that can be read.
    pub fn first_chain(&self) -> Chain {
        let start = Chain::start(self.incarnation);
        self.segments.first().map_or(start, |segment| segment.header.chain)
    }

    /// Blocks until nothing is under way; `poll` then tells what became of it. For the end of a
    /// server: what was appended is durable or has failed.
    pub fn drain(&mut self) {
        loop {
            self.reap();
            self.pump();
            let is_claiming = matches!(self.role, Role::Claiming { .. });
            if self.appends.flying.is_empty() && self.background_jobs == 0 && !is_claiming {
                return;
            }
            self.queues.commits.drain();
            self.queues.background.drain();
        }
    }

    fn position(&self, sequence: Sequence) -> Position {
        Position { incarnation: self.incarnation, sequence }
    }

    fn first_sequence(&self) -> Sequence {
        self.segments.first().map_or(Sequence(1), Segment::first)
    }

    fn ticket(&mut self) -> Ticket {
        self.tickets += 1;
        Ticket(self.tickets)
    }

    fn adopt(&mut self, taken: recover::TakenOver) {
        self.segments = taken.segments;
        self.durable = taken.tenure.tail;
        self.predicted = taken.tenure.tail;
        self.space = taken.tenure.space();
        self.tenure = Some(Box::new(taken.tenure));
        self.presence = None;
        self.watched = Watched::default();
        self.role = Role::Writer;
    }

    /// Why an append cannot be accepted, if it cannot.
    fn objection(&self, after: Position, record: &Bytes) -> Option<AppendError> {
        let bytes_max = self.options.record_bytes_max;
        if record.len() > bytes_max {
            return Some(AppendError::TooLarge { bytes: record.len(), bytes_max });
        }
        if after.incarnation != self.incarnation {
            return Some(AppendError::LogLost);
        }
        match &self.role {
            Role::Closed(Refusal::LogLost) => Some(AppendError::LogLost),
            Role::Closed(Refusal::Failed(what)) => Some(AppendError::Fatal(what.clone())),
            Role::Reader | Role::Closed(_) if is_lead(record) => None,
            Role::Reader | Role::Closed(_) => Some(AppendError::NotAttempted),
            Role::Writer | Role::Claiming { .. } if after.sequence == self.predicted => None,
            Role::Writer | Role::Claiming { .. } => {
                Some(AppendError::Conflict { tail: self.position(self.predicted) })
            }
        }
    }

    /// Claims the log for a `Lead` that is to follow `after`.
    fn start_claim(&mut self, after: Sequence) {
        self.role = Role::Claiming { after };
        self.tenure = None;
        self.claims_made += 1;
        let (disk, directory) = (Arc::clone(&self.disk), self.directory.clone());
        let mut options = self.options.clone();
        options.entropy = options.entropy.wrapping_add(self.claims_made);
        let (incarnation, known) = (self.incarnation, self.known_claim);
        let job = move || claim_after(&disk, &directory, incarnation, &options, after, known);
        self.queues.commits.submit(Box::new(move || Box::new(job())));
    }

    fn finish_claim(&mut self, outcome: ClaimOutcome) {
        let expected = match &self.role {
            Role::Claiming { after } => *after,
            _ => return,
        };
        match outcome {
            ClaimOutcome::Taken(taken) if taken.tenure.tail == expected => {
                let predicted = self.predicted;
                self.adopt(*taken);
                self.predicted = predicted;
            }
            ClaimOutcome::Taken(taken) => {
                // The log holds more than the candidate has applied, and perhaps another leader.
                // It lets its claim go and reads on, as any reader does.
                let tail = self.position(taken.tenure.tail);
                self.known_claim = taken.claim();
                self.segments = taken.segments;
                self.durable = taken.tenure.tail;
                self.fail_pending(&AppendError::Conflict { tail });
                self.role = Role::Reader;
            }
            ClaimOutcome::Busy(claim) => {
                self.known_claim = claim;
                self.fail_pending(&AppendError::NotAttempted);
                self.role = Role::Reader;
            }
            ClaimOutcome::Conflict(tail) => {
                let tail = self.position(tail);
                self.fail_pending(&AppendError::Conflict { tail });
                self.role = Role::Reader;
            }
            ClaimOutcome::Failed(error) => {
                let error = match &error {
                    LogError::Io { error, .. } if error.kind() == ErrorKind::StorageFull => {
                        AppendError::Full
                    }
                    LogError::Lost(_) => AppendError::LogLost,
                    LogError::Busy(_) => AppendError::NotAttempted,
                    _ => AppendError::Fatal(error.to_string()),
                };
                self.fail_pending(&error);
                self.role = Role::Reader;
            }
        }
    }

    /// Fails the first pending append with `error`, and what was sent behind it as not attempted.
    fn fail_pending(&mut self, error: &AppendError) {
        for (index, append) in self.appends.pending.drain(..).enumerate() {
            let error = if index == 0 { error.clone() } else { AppendError::NotAttempted };
            self.events.push(LogEvent::Failed(append.ticket, error));
        }
        self.appends.bytes = 0;
        self.predicted = self.durable;
    }
}

impl TransactionLog for FileLog {
    fn limits(&self) -> Limits {
        Limits {
            record_bytes_max: self.options.record_bytes_max,
            in_flight_records_max: self.options.in_flight_records_max,
            in_flight_bytes_max: self.options.in_flight_bytes_max,
            record_cost_bytes: 0,
        }
    }

    fn gate(&self) -> Gate {
        match &self.role {
            Role::Closed(refusal) => return Gate::Refuse(refusal.clone()),
            Role::Reader | Role::Claiming { .. } => return Gate::Refuse(Refusal::NotWriter),
            Role::Writer => {}
        }
        let ready = self.space + self.spares.next.as_ref().map_or(0, |spare| spare.capacity);
        if ready < self.reserve() {
            return self.trouble.clone().map_or(Gate::Wait, Gate::Refuse);
        }
        let records = self.appends.pending.len() + self.appends.flying.len();
        let is_busy = records >= self.options.in_flight_records_max
            || self.appends.bytes >= self.options.in_flight_bytes_max;
        if is_busy { Gate::Wait } else { Gate::Open }
    }

    fn append(&mut self, after: Position, record: Bytes) -> Ticket {
        let ticket = self.ticket();
        if let Some(error) = self.objection(after, &record) {
            self.events.push(LogEvent::Failed(ticket, error));
            return ticket;
        }
        if !matches!(self.role, Role::Writer | Role::Claiming { .. }) {
            self.start_claim(after.sequence);
        }
        self.appends.bytes += layout::framed_bytes(record.len());
        self.predicted = after.sequence.next();
        self.appends.pending.push_back(Append { ticket, bytes: record });
        ticket
    }

    fn commit_inline(&mut self) -> bool {
        if self.appends.pending.is_empty() || !self.appends.flying.is_empty() {
            return false;
        }
        self.reap();
        let Some((records, spare)) = self.next_batch() else { return false };
        let tenure = self.tenure.take().expect("a batch is formed only while it is at home");
        let outcome = commit::commit(tenure, &records, spare);
        self.finish_commit(outcome);
        true
    }

    fn poll(&mut self, events: &mut Vec<LogEvent>) {
        self.reap();
        self.pump();
        events.append(&mut self.events);
    }

    fn is_busy(&self) -> bool {
        !self.appends.pending.is_empty()
            || !self.appends.flying.is_empty()
            || self.background_jobs > 0
            || !self.events.is_empty()
    }

    fn wait_nanos(&self) -> Option<u64> {
        self.reading_wait_nanos()
    }

    fn read_from(&mut self, from: Position) {
        self.reading = None;
        if from.incarnation == self.incarnation {
            self.reading = Some(Reading::new(from.sequence));
        } else {
            self.events.push(LogEvent::Lost);
        }
    }

    fn stop_reading(&mut self) {
        self.reading = None;
    }

    fn probe_holder(&mut self) {
        self.ask_for_death();
    }

    fn is_watched(&mut self) -> bool {
        self.look_for_readers()
    }

    fn compare(&mut self, position: Position, chain: Chain) -> Ticket {
        let ticket = self.ticket();
        if position.incarnation != self.incarnation {
            self.events.push(LogEvent::Compared { ticket, history: History::Lost });
            return ticket;
        }
        let (disk, directory) = (Arc::clone(&self.disk), self.directory.clone());
        self.background(move || {
            Background::Compared(ticket, history::compare(&*disk, &directory, position, chain))
        });
        ticket
    }

    fn tail(&mut self) -> Ticket {
        let ticket = self.ticket();
        if matches!(self.role, Role::Writer) {
            let position = self.position(self.durable);
            self.events.push(LogEvent::Tail { ticket, position, confirmed: true });
            return ticket;
        }
        let (disk, directory) = (Arc::clone(&self.disk), self.directory.clone());
        let incarnation = self.incarnation;
        self.background(move || {
            let survey = Survey::take(&*disk, &directory, incarnation);
            Background::Tail(ticket, survey.map(|survey| survey.mark))
        });
        ticket
    }

    fn trim(&mut self, through: Position) {
        if !matches!(self.role, Role::Writer) || through.incarnation != self.incarnation {
            return;
        }
        let through = through.sequence.min(self.durable);
        let kept = self.segments.iter().position(|s| s.end.is_none_or(|end| end.0 > through.0 + 1));
        self.segments.drain(..kept.unwrap_or(0));
        let Some(newest) = self.segments.last() else { return };
        let (floor, claim) = (self.first_sequence(), newest.header.claim);
        if kept.unwrap_or(0) == 0 {
            return;
        }
        let (disk, directory) = (Arc::clone(&self.disk), self.directory.clone());
        let incarnation = self.incarnation;
        self.background(move || {
            // What could not be removed is still whole, and the next trim begins with it.
            let _ = trim::remove_below(&*disk, &directory, incarnation, claim, floor);
            Background::Trimmed
        });
    }

    fn first(&mut self) -> Ticket {
        let ticket = self.ticket();
        let position = self.position(self.first_sequence());
        self.events.push(LogEvent::First { ticket, position });
        ticket
    }
}

impl Drop for FileLog {
    fn drop(&mut self) {
        self.queues.commits.drain();
        self.queues.background.drain();
    }
}

fn is_lead(record: &Bytes) -> bool {
    record::decode_header(record, false).is_ok_and(|header| header.kind == Kind::Lead)
}

enum ClaimOutcome {
    Taken(Box<recover::TakenOver>),
    /// The log was longer already before it was claimed: its writer is left in peace.
    Conflict(Sequence),
    /// Another process has just made this claim: it is let go first.
    Busy(u64),
    Failed(LogError),
}

fn claim_after(
    disk: &Arc<dyn Disk>,
    directory: &Path,
    incarnation: Incarnation,
    options: &FileOptions,
    after: Sequence,
    known: u64,
) -> ClaimOutcome {
    let outcome = (|| {
        let survey = Survey::take(&**disk, directory, incarnation)?;
        if survey.mark > after {
            return Ok(ClaimOutcome::Conflict(survey.mark));
        }
        if let Some(&newest) = survey.claims.last()
            && newest > known
        {
            return Ok(ClaimOutcome::Busy(newest));
        }
        let taken = recover::take_over(disk, directory, incarnation, options, &[])?;
        Ok(ClaimOutcome::Taken(Box::new(taken)))
    })();
    outcome.unwrap_or_else(ClaimOutcome::Failed)
}
