//! Cold values for a snapshot: read in the order in which they lie on the file, neighbours
//! together, behind the reads that clients wait for. They do not come into memory for it.

use super::{Brought, TieringStatistics, read_record};
use base::disk::{DiskFile, DiskOutcome, DiskQueue, DiskTicket, block_buffer};
use engine::keyspace::Keyspace;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use tier::{Read, Sealer};

/// Bytes that are read at once, and bytes between two records that are read with them: reading
/// them costs less than a further read.
const SPAN_BYTES_MAX: u64 = 256 << 10;
const GAP_BYTES_MAX: u64 = 16 << 10;

/// Spans that are read at a time: others wait for their values, a snapshot has time.
const SPANS_MAX: usize = 2;

/// The reads of the snapshot under way.
#[derive(Default)]
pub(super) struct SnapshotReader {
    spans: VecDeque<Span>,
    reading: BTreeMap<DiskTicket, u64>,
}

/// Records that lie near each other.
struct Span {
    window: u64,
    reads: Vec<(u32, Read)>,
}

/// Divides reads, which are in the order of the file, into spans.
fn spans_of(window: u64, reads: Vec<(u32, Read)>) -> VecDeque<Span> {
    let mut spans: VecDeque<Span> = VecDeque::new();
    for (index, read) in reads {
        let end = read.offset() + read.length() as u64;
        match spans.back_mut() {
            Some(span)
                if span.end() + GAP_BYTES_MAX >= read.offset()
                    && end - span.start() <= SPAN_BYTES_MAX =>
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
        let ends = self.reads.iter().map(|(_, read)| read.offset() + read.length() as u64);
        ends.max().unwrap_or(0)
    }
}

/// Reads the records of a span. One that is not what was written there is read once more, by
/// itself.
fn read_span(file: &dyn DiskFile, sealer: &Sealer, span: &Span) -> Vec<(u32, Brought)> {
    let (start, length) = (span.start(), (span.end() - span.start()) as usize);
    let mut buffer = Vec::new();
    let aligned = block_buffer(&mut buffer, length);
    buffer.resize(aligned + length, 0);
    let bytes = &mut buffer[aligned..];
    let count = file.read_at(start, bytes).unwrap_or(0);
    let bytes = &mut bytes[..count];
    let each = span.reads.iter().map(|(index, read)| {
        let from = (read.offset() - start) as usize;
        let pages = bytes.get_mut(from..from + read.length());
        let content = pages.and_then(|pages| {
            let content = read.open(sealer, pages).ok()?;
            Some(pages[content.range].to_vec())
        });
        let brought = content.map_or_else(|| read_record(file, sealer, read), Ok);
        (*index, brought)
    });
    each.collect()
}

impl SnapshotReader {
    pub(super) fn is_busy(&self) -> bool {
        !self.reading.is_empty()
    }

    /// Asks what the snapshot wants, and has it read.
    pub(super) fn go_on(
        &mut self,
        keyspace: &mut Keyspace,
        file: &Arc<dyn DiskFile>,
        sealer: &Arc<Sealer>,
        queue: &mut dyn DiskQueue,
    ) {
        while self.spans.is_empty()
            && self.reading.is_empty()
            && let Some((window, reads)) = keyspace.snapshot_reads()
        {
            self.spans = spans_of(window, reads);
        }
        while self.reading.len() < SPANS_MAX
            && let Some(span) = self.spans.pop_front()
        {
            let (file, sealer, window) = (Arc::clone(file), Arc::clone(sealer), span.window);
            let job = move || -> DiskOutcome { Box::new(read_span(&*file, &sealer, &span)) };
            self.reading.insert(queue.submit(Box::new(job)), window);
        }
    }

    /// Takes what was read.
    pub(super) fn take(
        &mut self,
        ticket: DiskTicket,
        outcome: DiskOutcome,
        keyspace: &mut Keyspace,
        statistics: &mut TieringStatistics,
    ) {
        let Some(window) = self.reading.remove(&ticket) else { return };
        let Ok(brought) = outcome.downcast::<Vec<(u32, Brought)>>() else { return };
        statistics.reads += 1;
        for (index, brought) in *brought {
            match brought {
                Ok(content) => {
                    statistics.read_bytes += content.len() as u64;
                    keyspace.put_snapshot_value(window, index, content);
                }
                Err(why) if keyspace.is_snapshot_window(window) => {
                    statistics.failed_reads += 1;
                    if let Some(cold) = keyspace.cold() {
                        cold.fail(format!("a snapshot cannot read a value of the tier: {why}"));
                    }
                }
                Err(_) => {}
            }
        }
    }
}
