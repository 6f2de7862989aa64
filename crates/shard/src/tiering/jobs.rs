//! What is done on threads: records read, proven and decoded, pieces encrypted and written.

use base::disk::{DiskFile, DiskOutcome, DiskQueue, DiskRead, DiskTicket, block_buffer};
use engine::cold::{self, Builder, ColdSource};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use tier::{Read, Sealer, Shared, Write};

/// Bytes that are read or written at once: the log's sync, and reads of clients, wait for one such
/// part of a long record at most.
const PART_BYTES: usize = 256 << 10;

/// What a job that reads a record brings.
pub(super) type ReadContent = Result<Vec<u8>, String>;

/// What a job brings that reads a record for somebody who waits for the value.
pub(super) type Fetched = Result<cold::Brought, String>;

/// What a job brought whose outcome is a `Result<T, String>`.
pub(super) fn brought<T: 'static>(outcome: DiskOutcome) -> Result<T, String> {
    let brought = outcome.downcast::<Result<T, String>>().map(|brought| *brought);
    brought.unwrap_or_else(|_| Err("a job brought something else".into()))
}

/// Reads so many bytes of a file; where in the buffer they begin.
pub(super) fn read_aligned(
    file: &dyn DiskFile,
    offset: u64,
    length: usize,
) -> Result<(Vec<u8>, usize), String> {
    let mut buffer = Vec::new();
    let start = block_buffer(&mut buffer, length);
    buffer.resize(start + length, 0);
    read_all_at(file, offset, &mut buffer[start..])?;
    Ok((buffer, start))
}

/// Reads all of these bytes of a file.
fn read_all_at(file: &dyn DiskFile, offset: u64, into: &mut [u8]) -> Result<(), String> {
    let wanted = into.len();
    let mut at = 0;
    for part in into.chunks_mut(PART_BYTES) {
        let count = file.read_at(offset + at as u64, part).map_err(|error| error.to_string())?;
        at += count;
        if count < part.len() {
            return Err(format!("only {at} of {wanted} bytes are there"));
        }
    }
    Ok(())
}

/// Brings the value of a record to somebody who waits for it.
pub(super) struct Fetch {
    pub file: Arc<dyn DiskFile>,
    pub sealer: Arc<Sealer>,
    pub read: Read,
    /// The record, if it need not be read.
    pub shared: Option<Shared>,
    /// Who decodes it, if that takes long.
    pub builder: Option<Builder>,
}

impl Fetch {
    /// Has it done by a queue, whose outcome is a [`Fetched`].
    pub fn submit(self, queue: &mut dyn DiskQueue) -> DiskTicket {
        let Self { file, sealer, read, shared, builder } = self;
        match (shared, builder) {
            (None, None) => queue.submit_read(DiskRead {
                file,
                offset: read.offset(),
                length: read.length(),
                end: Box::new(move |pages| -> DiskOutcome {
                    let brought: Fetched = content_of(&sealer, &read, pages);
                    Box::new(brought)
                }),
            }),
            (shared, builder) => queue.submit(Box::new(move || -> DiskOutcome {
                let fetched: Fetched = fetch_long(&*file, &sealer, &read, shared, builder);
                Box::new(fetched)
            })),
        }
    }

    /// Bytes of memory that it takes at most, until the value has come: what is read, and what is
    /// made of it. A record that need not be read counts among the tier's buffers already.
    pub fn memory_bytes(&self, value_bytes: usize) -> usize {
        let read_bytes = if self.shared.is_some() { 0 } else { self.read.length() };
        read_bytes + value_bytes.max(self.read.length())
    }
}

/// The content of a record whose pages were read.
fn content_of(sealer: &Sealer, read: &Read, pages: io::Result<&mut [u8]>) -> Fetched {
    let pages = pages.map_err(|error| error.to_string())?;
    let content = read.open(sealer, pages).map_err(|error| error.to_string())?;
    Ok(cold::Brought::Content(pages[content].to_vec()))
}

/// Brings what is long, or need not be read.
fn fetch_long(
    file: &dyn DiskFile,
    sealer: &Sealer,
    read: &Read,
    shared: Option<Shared>,
    builder: Option<Builder>,
) -> Fetched {
    let (buffer, range);
    let content = match &shared {
        Some(shared) => shared.content(),
        None => {
            (buffer, range) = read_pages(file, sealer, read)?;
            &buffer[range]
        }
    };
    match builder {
        Some(builder) => builder.build(content),
        None => Ok(cold::Brought::Content(content.to_vec())),
    }
}

/// Reads a record of the file and proves it.
pub(super) fn read_record(file: &dyn DiskFile, sealer: &Sealer, read: &Read) -> ReadContent {
    read_pages(file, sealer, read).map(|(buffer, content)| buffer[content].to_vec())
}

/// As [`read_record`], without a copy: the content is a range of what is brought.
fn read_pages(
    file: &dyn DiskFile,
    sealer: &Sealer,
    read: &Read,
) -> Result<(Vec<u8>, Range<usize>), String> {
    let (mut buffer, start) = read_aligned(file, read.offset(), read.length())?;
    let content = read.open(sealer, &mut buffer[start..]).map_err(|error| error.to_string())?;
    Ok((buffer, start + content.start..start + content.end))
}

/// Reads for whoever cannot wait.
pub(super) struct BlockingSource {
    pub file: Arc<dyn DiskFile>,
    pub sealer: Arc<Sealer>,
    pub queue: Rc<RefCell<Box<dyn DiskQueue>>>,
}

/// Fewer records are read one after another: handing them to threads takes longer.
const SPREAD_READS_MIN: usize = 4;

impl ColdSource for BlockingSource {
    fn read(&self, read: &Read) -> Result<Vec<u8>, String> {
        logged(read, read_record(&*self.file, &self.sealer, read))
    }

    fn read_all(&self, reads: &[Read]) -> Vec<ReadContent> {
        if reads.len() < SPREAD_READS_MIN {
            return reads.iter().map(|read| self.read(read)).collect();
        }
        let mut queue = self.queue.borrow_mut();
        let mut tickets = BTreeMap::new();
        for (index, read) in reads.iter().enumerate() {
            let (file, sealer, read) = (Arc::clone(&self.file), Arc::clone(&self.sealer), *read);
            let job = move || -> DiskOutcome { Box::new(read_record(&*file, &sealer, &read)) };
            tickets.insert(queue.submit(Box::new(job)), index);
        }
        queue.drain();
        let mut done = Vec::new();
        queue.poll(&mut done);
        let mut contents: Vec<ReadContent> =
            reads.iter().map(|_| Err("a job brought nothing".into())).collect();
        for (ticket, outcome) in done {
            if let Some(index) = tickets.get(&ticket) {
                contents[*index] = brought(outcome);
            }
        }
        reads.iter().zip(contents).map(|(read, content)| logged(read, content)).collect()
    }
}

/// Logs why a read failed: who asked for it only counts that.
fn logged(read: &Read, brought: ReadContent) -> ReadContent {
    brought.inspect_err(|why| {
        tracing::error!(offset = read.place().offset(), "a value cannot be read: {why}");
    })
}

/// Encrypts a piece and writes it; how many bytes.
pub(super) fn write_piece(file: &dyn DiskFile, sealer: &Sealer, write: &Write) -> io::Result<u64> {
    let mut sealed = Vec::new();
    for from in (0..write.length()).step_by(PART_BYTES) {
        let part = from..write.length().min(from + PART_BYTES);
        sealed.clear();
        let start = write.seal_part(sealer, part, &mut sealed);
        file.write_at(write.offset() + from as u64, &sealed[start..])?;
    }
    Ok(write.length() as u64)
}
