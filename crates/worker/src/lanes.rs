//! Parts of a snapshot on their way to the archive: each part takes one of a few threads, so that
//! several are written at a time. What waits for them is bounded.

use archive::{FinishedPart, PartWriter, SnapshotWriter};
use base::disk::{DiskOutcome, DiskQueue, DiskTicket};
use engine::rdb::Crc64;
use engine::save::checksum;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes that may wait to be written: enough that the walk goes on while a thread syncs a part.
const BACKLOG_BYTES_MAX: usize = 64 << 20;

/// A part that is being written, by one job after the other.
struct Making {
    /// `None` once it is finished, or has failed.
    part: Option<PartWriter>,
    crc: Crc64,
}

/// What a job returns: how many bytes it took, and the part if it is finished.
type Written = (usize, io::Result<Option<FinishedPart>>);

/// The threads, and the snapshot that they write.
pub struct Lanes {
    queues: Vec<Box<dyn DiskQueue>>,
    writer: SnapshotWriter,
    making: Option<Arc<Mutex<Making>>>,
    parts: usize,
    /// Bytes that were handed over and are not known to be written.
    backlog_bytes: usize,
    done: Vec<(DiskTicket, DiskOutcome)>,
}

impl Lanes {
    pub fn new(queues: Vec<Box<dyn DiskQueue>>, writer: SnapshotWriter) -> Self {
        assert!(!queues.is_empty(), "somebody must write");
        Self { queues, writer, making: None, parts: 0, backlog_bytes: 0, done: Vec::new() }
    }

    /// Writes these bytes behind those before; a part ends with them, but for its checksum, if
    /// `ends_part`. Blocks while too much waits.
    ///
    /// # Errors
    /// The archive's, of these or of earlier bytes; the snapshot must then be abandoned.
    pub fn push(&mut self, bytes: Vec<u8>, ends_part: bool) -> io::Result<()> {
        if bytes.is_empty() && self.making.is_none() {
            return Ok(());
        }
        let making = match self.making.take() {
            Some(making) => making,
            None => {
                self.parts += 1;
                let part = Some(self.writer.begin_part()?);
                Arc::new(Mutex::new(Making { part, crc: Crc64::default() }))
            }
        };
        if !ends_part {
            self.making = Some(Arc::clone(&making));
        }
        let lane = self.parts % self.queues.len();
        self.backlog_bytes += bytes.len();
        let job = move || -> Written { (bytes.len(), write(&making, &bytes, ends_part)) };
        self.queues[lane].submit(Box::new(move || Box::new(job())));
        self.collect()?;
        if self.backlog_bytes > BACKLOG_BYTES_MAX {
            self.queues[lane].drain();
            self.collect()?;
        }
        Ok(())
    }

    /// Waits until everything is written.
    ///
    /// # Errors
    /// As [`Self::push`].
    pub fn finish(&mut self) -> io::Result<()> {
        self.queues.iter_mut().for_each(|queue| queue.drain());
        self.collect()
    }

    /// The snapshot, and the threads, which have nothing left to do.
    pub fn into_writer(mut self) -> (SnapshotWriter, Vec<Box<dyn DiskQueue>>) {
        // What failed was told before. The next snapshot must not meet these outcomes.
        let _ = self.finish();
        (self.writer, self.queues)
    }

    fn collect(&mut self) -> io::Result<()> {
        let mut done = std::mem::take(&mut self.done);
        self.queues.iter_mut().for_each(|queue| queue.poll(&mut done));
        let mut failure = None;
        for (_, outcome) in done.drain(..) {
            let written = outcome.downcast::<Written>();
            let (bytes, outcome) = *written.expect("every job here returns this");
            self.backlog_bytes -= bytes;
            match outcome {
                Ok(finished) => finished.into_iter().for_each(|part| self.writer.take(part)),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        self.done = done;
        failure.map_or(Ok(()), Err)
    }
}

fn write(
    making: &Mutex<Making>,
    bytes: &[u8],
    ends_part: bool,
) -> io::Result<Option<FinishedPart>> {
    // A job that panicked leaves a part that nobody finishes.
    let mut making = making.lock().unwrap_or_else(PoisonError::into_inner);
    making.crc.update(bytes);
    let Some(mut part) = making.part.take() else { return Ok(None) };
    part.append(bytes)?;
    if !ends_part {
        making.part = Some(part);
        return Ok(None);
    }
    part.append(&checksum(making.crc))?;
    part.finish().map(Some)
}
