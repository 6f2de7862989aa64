//! Cold values for a snapshot: read in the order in which they lie on the file, neighbours
//! together, by the threads that read for clients. They do not come into memory for it.

use super::TieringStatistics;
use super::jobs::{ReadContent, read_aligned, read_record};
use base::disk::{DiskFile, DiskOutcome, DiskQueue, DiskTicket};
use engine::keyspace::Keyspace;
use engine::snapshot::{Noted, WindowId};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tier::{Read, Sealer};

/// Bytes that are read at once, and bytes between two records that are read with them: reading
/// them costs less than a further read.
const SPAN_BYTES_MAX: u64 = 256 << 10;
const GAP_BYTES_MAX: u64 = 16 << 10;

/// Of each kind of windows so much is read at a time: spans, so that a client's read waits behind a
/// few of them at most; and bytes, since one that is long takes as long as many.
const SPANS_MAX: usize = 8;
const READING_BYTES_MAX: u64 = 2 * SPAN_BYTES_MAX;

/// Records of a span, and those from which on no further span is taken up in a turn: some 0.2 ms.
const SPAN_RECORDS_MAX: usize = 256;
const TAKEN_RECORDS_MAX: usize = 256;

/// The reads of the snapshot under way. It has time for what its walk has come to, and that lies
/// together; what is about to be changed lies anywhere, and whoever changes it may wait.
pub(super) struct SnapshotReader {
    kinds: [WindowReads; 2],
    /// Reads that have ended and are not taken up yet.
    ended: VecDeque<(DiskTicket, DiskOutcome)>,
}

/// Reads of one kind of windows.
struct WindowReads {
    noted: Noted,
    spans: VecDeque<Span>,
    reading: BTreeMap<DiskTicket, Reading>,
    reading_bytes: u64,
}

/// A span that is being read: its window, and its bytes.
struct Reading {
    window: WindowId,
    bytes: u64,
}

/// Records that lie near each other.
struct Span {
    window: WindowId,
    reads: Vec<(u32, Read)>,
}

/// Divides reads, which are in the order of the file, into spans.
fn spans_of(window: WindowId, reads: Vec<(u32, Read)>) -> VecDeque<Span> {
    debug_assert!(reads.is_sorted_by_key(|(_, read)| read.place()), "the last one ends last");
    let mut spans: VecDeque<Span> = VecDeque::new();
    for (index, read) in reads {
        let end = read.offset() + read.length() as u64;
        match spans.back_mut() {
            Some(span)
                if span.end() + GAP_BYTES_MAX >= read.offset()
                    && end - span.start() <= SPAN_BYTES_MAX
                    && span.reads.len() < SPAN_RECORDS_MAX =>
            {
                span.reads.push((index, read));
            }
            _ => spans.push_back(Span { window, reads: vec![(index, read)] }),
        }
    }
    spans
}

impl Span {
    fn start(&self) -> u64 {
        self.reads.first().map_or(0, |(_, read)| read.offset())
    }

    fn end(&self) -> u64 {
        // They are in order, and none lies in another one.
        self.reads.last().map_or(0, |(_, read)| read.offset() + read.length() as u64)
    }
}

/// What a job that reads a span brings.
struct BroughtSpan {
    records: Vec<(u32, ReadContent)>,
    /// Values that were read, and bytes: of both those of second tries as well.
    reads: u64,
    read_bytes: u64,
    /// Why tries failed, each of them.
    failures: Vec<String>,
}

/// Reads the records of a span. One that is not what was written there is read once more, by
/// itself.
fn read_span(file: &dyn DiskFile, sealer: &Sealer, span: &Span) -> BroughtSpan {
    let (start, length) = (span.start(), (span.end() - span.start()) as usize);
    let mut all = read_aligned(file, start, length);
    let mut brought = BroughtSpan {
        records: Vec::with_capacity(span.reads.len()),
        reads: span.reads.len() as u64,
        read_bytes: length as u64,
        failures: Vec::new(),
    };
    for (index, read) in &span.reads {
        let from = (read.offset() - start) as usize;
        let first = match &mut all {
            Ok((buffer, aligned)) => {
                let pages = &mut buffer[*aligned + from..];
                let content = read.open(sealer, pages).map_err(|error| error.to_string());
                content.map(|content| pages[content].to_vec())
            }
            Err(why) => Err(why.clone()),
        };
        let content = first.or_else(|why| {
            let second = read_record(file, sealer, read);
            brought.reads += 1;
            brought.read_bytes += read.length() as u64;
            brought.failures.extend([why].into_iter().chain(second.as_ref().err().cloned()));
            second
        });
        brought.records.push((*index, content));
    }
    brought
}

impl WindowReads {
    fn new(noted: Noted) -> Self {
        Self { noted, spans: VecDeque::new(), reading: BTreeMap::new(), reading_bytes: 0 }
    }

    /// Asks what the snapshot wants, and has it read.
    fn go_on(
        &mut self,
        keyspace: &mut Keyspace,
        file: &Arc<dyn DiskFile>,
        sealer: &Arc<Sealer>,
        queue: &mut dyn DiskQueue,
    ) {
        // What still comes for a snapshot that was given up must not be taken for the next one's.
        while self.spans.is_empty()
            && self.reading.is_empty()
            && let Some((window, reads)) = keyspace.snapshot_reads(self.noted)
        {
            self.spans = spans_of(window, reads);
        }
        while self.reading.len() < SPANS_MAX
            && self.reading_bytes < READING_BYTES_MAX
            && let Some(span) = self.spans.pop_front()
        {
            let (file, sealer) = (Arc::clone(file), Arc::clone(sealer));
            let reading = Reading { window: span.window, bytes: span.end() - span.start() };
            let job = move || -> DiskOutcome { Box::new(read_span(&*file, &sealer, &span)) };
            self.reading_bytes += reading.bytes;
            self.reading.insert(queue.submit(Box::new(job)), reading);
        }
    }

    /// The window that a read belongs to, if it is one of these, and has ended.
    fn take(&mut self, ticket: DiskTicket) -> Option<WindowId> {
        let Reading { window, bytes } = self.reading.remove(&ticket)?;
        self.reading_bytes -= bytes;
        Some(window)
    }
}

impl Default for SnapshotReader {
    fn default() -> Self {
        let kinds = [Noted::Changed, Noted::Walked].map(WindowReads::new);
        Self { kinds, ended: VecDeque::new() }
    }
}

impl SnapshotReader {
    /// Asks what the snapshot wants, and has it read.
    pub(super) fn go_on(
        &mut self,
        keyspace: &mut Keyspace,
        file: &Arc<dyn DiskFile>,
        sealer: &Arc<Sealer>,
        queue: &mut dyn DiskQueue,
    ) {
        for kind in &mut self.kinds {
            kind.go_on(keyspace, file, sealer, queue);
        }
    }

    /// True if this is one of its reads, which has not been taken up.
    pub(super) fn reads(&self, ticket: DiskTicket) -> bool {
        self.kinds.iter().any(|kind| kind.reading.contains_key(&ticket))
    }

    /// One of its reads has ended.
    pub(super) fn end(&mut self, ticket: DiskTicket, outcome: DiskOutcome) {
        self.ended.push_back((ticket, outcome));
    }

    /// True if there is something to [take up](Self::take).
    pub(super) fn has_ended(&self) -> bool {
        !self.ended.is_empty()
    }

    /// Takes up what was read, as much as there is time for in one turn.
    pub(super) fn take(&mut self, keyspace: &mut Keyspace, statistics: &mut TieringStatistics) {
        let mut taken = 0;
        while taken < TAKEN_RECORDS_MAX
            && let Some((ticket, outcome)) = self.ended.pop_front()
        {
            let window = self.kinds.iter_mut().find_map(|kind| kind.take(ticket));
            let Some(window) = window else { continue };
            let Ok(span) = outcome.downcast::<BroughtSpan>() else { continue };
            // A read by itself takes as long as some records.
            taken += span.records.len().max(8);
            take_span(window, *span, keyspace, statistics);
        }
    }
}

/// Hands the records of a span over to the snapshot.
fn take_span(
    window: WindowId,
    span: BroughtSpan,
    keyspace: &mut Keyspace,
    statistics: &mut TieringStatistics,
) {
    statistics.reads += span.reads;
    statistics.read_bytes += span.read_bytes;
    if keyspace.is_snapshot_window(window) {
        // Of one that was given up other values may lie there by now.
        statistics.failed_reads += span.failures.len() as u64;
        for why in &span.failures {
            tracing::error!("a snapshot cannot read a value of the tier: {why}");
        }
    }
    for (index, brought) in span.records {
        match brought {
            Ok(content) => keyspace.put_snapshot_value(window, index, content),
            Err(why) if keyspace.is_snapshot_window(window) => {
                if let Some(cold) = keyspace.cold() {
                    cold.fail(format!("a snapshot cannot read a value of the tier: {why}"));
                }
            }
            Err(_) => {}
        }
    }
}
