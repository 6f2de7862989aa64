//! What a file log is opened with, and what opening finds.

use super::layout;
use crate::chain::Chain;
use base::Position;
use base::disk::DiskQueue;

/// Sizes and identity of a file log.
#[derive(Clone, Debug)]
pub struct FileOptions {
    /// Bytes of a segment, written with zeroes ahead. 64 MiB: a roll costs a few syncs, so it
    /// should be rare against the 10 µs of a commit; and trimming forgets whole segments.
    pub segment_bytes: u64,
    /// Bytes of a tenure's first segment: it is written while the server starts.
    pub first_segment_bytes: u64,
    /// The largest record.
    pub record_bytes_max: usize,
    /// Bytes of one write and sync. At least one record fits, framed.
    pub batch_bytes_max: usize,
    /// Records that were submitted and are not durable, beyond which the log takes no more.
    pub in_flight_records_max: usize,
    /// The same in bytes.
    pub in_flight_bytes_max: usize,
    /// Bytes of records that a reading hands out at a time; the last one may overshoot.
    pub piece_bytes_max: usize,
    /// Unpredictable bits: a new log's incarnation, and the salts of its segments.
    pub entropy: u64,
    /// A position that was ever applied or snapshotted. A log that is another one, or ends before
    /// it, is lost.
    pub known: Option<Position>,
    /// There has been a log here, whatever is known of it: if it is gone, none is begun.
    pub must_exist: bool,
    /// This handle may claim the log. False for a process that is only to read it.
    pub may_write: bool,
    /// A handle that reads shows itself, so that a writer that has nothing to do renews its lease:
    /// somebody may be waiting for it to end. False for a tool, which never leads.
    pub shows_itself: bool,
    /// Builds on purpose a log that loses acknowledged writes, so that a test can prove that it
    /// would notice.
    #[doc(hidden)]
    pub acknowledges_before_sync: bool,
    /// Builds on purpose a log that goes on in files that were removed, likewise.
    #[doc(hidden)]
    pub writes_nameless: bool,
    /// Builds on purpose a reader that takes the newest mark for the end of the log, likewise.
    #[doc(hidden)]
    pub trusts_marks: bool,
}

impl FileOptions {
    /// The sizes for production. `entropy` must not be predictable by clients.
    pub fn new(entropy: u64) -> Self {
        Self {
            segment_bytes: 64 << 20,
            first_segment_bytes: 16 << 20,
            record_bytes_max: 2 << 20,
            batch_bytes_max: 4 << 20,
            in_flight_records_max: 1024,
            in_flight_bytes_max: 16 << 20,
            piece_bytes_max: 1 << 20,
            entropy,
            known: None,
            must_exist: false,
            may_write: true,
            shows_itself: true,
            acknowledges_before_sync: false,
            writes_nameless: false,
            trusts_marks: false,
        }
    }

    /// Checks that the sizes fit into each other.
    ///
    /// # Panics
    /// If they do not: they are constants of the product or of a test.
    pub(super) fn check(&self) {
        let framed = layout::framed_bytes(self.record_bytes_max);
        assert!(framed <= self.batch_bytes_max, "a batch holds at least one record");
        let two_batches = 2 * self.batch_bytes_max as u64 + layout::PAGE_BYTES as u64;
        assert!(self.segment_bytes >= two_batches, "a segment holds at least two batches");
        assert!(self.first_segment_bytes >= two_batches, "the first segment holds two batches");
    }
}

/// The threads that a file log's disk work runs on.
pub struct Queues {
    /// Commits only.
    pub commits: Box<dyn DiskQueue>,
    /// Preparing segments, reading, trimming: nothing that a commit should wait for.
    pub background: Box<dyn DiskQueue>,
}

/// What opening found.
#[derive(Clone, Debug)]
pub struct Recovery {
    /// The last record of the log; everything through it is durable. If another writer is alive
    /// this is its published mark, and the log goes on growing.
    pub tail: Position,
    /// The oldest record that can be read.
    pub first: Position,
    /// Where the chain stands at the tail. Only known (`Some`) if this handle is the writer.
    pub chain: Option<Chain>,
    /// This handle holds the log: its former writer is proven dead, or it is new. The lease of a
    /// dead writer need not be waited for.
    pub is_writer: bool,
    /// The directory held no log before.
    pub is_new: bool,
    /// A torn record behind the tail was cut.
    pub is_torn: bool,
}
