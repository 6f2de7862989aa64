//! A writer's hold on a log directory: its claim, its segment, and the commit that is one write
//! and one fdatasync.
//!
//! A segment is written past the page cache, whole pages at a time: the last page of a commit is
//! written once more by the next one, which may add to it. What stands there already is the same
//! again, so a torn page takes nothing with it that was durable.
//!
//! The whole value moves into a disk job and comes back with its outcome, so no lock guards it and
//! two syncs of one file never run at once.

use super::claim::{Claim, Standing};
use super::error::LogError;
use super::layout::{self, PAGE_BYTES, SegmentHeader, framed_bytes, put_frame};
use super::survey::Segment;
use crate::chain::Chain;
use crate::record;
use base::disk::{Disk, DiskFile, block_buffer};
use base::{Incarnation, Sequence};
use bytes::Bytes;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A buffer larger than this is given back after the commit that needed it.
const BUFFER_KEPT_BYTES: usize = 1 << 20;

/// A file full of zeroes that waits to become the next segment.
pub(crate) struct Spare {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    pub capacity: u64,
}

impl Spare {
    /// Creates and fills it. On failure nothing is left behind, as far as the disk lets.
    pub(crate) fn prepare(disk: &dyn Disk, path: PathBuf, capacity: u64) -> Result<Self, LogError> {
        let file = disk.create_direct(&path).map_err(LogError::io("create", &path))?;
        match file.allocate(0, capacity).and_then(|()| file.sync_data()) {
            Ok(()) => Ok(Self { file, path, capacity }),
            Err(error) => {
                // The failure told to the caller is the one that matters.
                let _ = disk.remove(&path);
                Err(LogError::io("fill", &path)(error))
            }
        }
    }

    /// Gives it a header and records, makes them durable, and then its name. A failure before that
    /// leaves nothing behind, as far as the disk lets.
    pub(crate) fn publish(
        self,
        disk: &dyn Disk,
        directory: &Path,
        header: SegmentHeader,
        frames: &[u8],
    ) -> Result<Active, LogError> {
        let path = layout::segment_path(directory, header.first, header.claim);
        if let Err(error) = self.name(disk, &path, header, frames) {
            // Nobody will use it any more. The failure told to the caller is the one that matters.
            let _ = disk.remove(&self.path);
            return Err(error);
        }
        disk.sync_directory(directory).map_err(LogError::io("sync", directory))?;
        let Self { file, capacity, .. } = self;
        let offset = (PAGE_BYTES + frames.len()) as u64;
        let begun = frames[frames.len() - frames.len() % PAGE_BYTES..].to_vec();
        Ok(Active { file, path, header, offset, begun, capacity })
    }

    fn name(
        &self,
        disk: &dyn Disk,
        path: &Path,
        header: SegmentHeader,
        frames: &[u8],
    ) -> Result<(), LogError> {
        let mut pages = Vec::new();
        let start = block_buffer(&mut pages, PAGE_BYTES + pages_of(frames.len()));
        pages.extend_from_slice(&header.encode());
        pages.extend_from_slice(frames);
        pages.resize(start + PAGE_BYTES + pages_of(frames.len()), 0);
        let end = pages.len().min(start + self.capacity as usize);
        let wrote = self.file.write_at(0, &pages[start..end]);
        wrote.map_err(LogError::io("write", path))?;
        self.file.sync_data().map_err(LogError::io("sync", path))?;
        disk.rename(&self.path, path).map_err(LogError::io("rename", path))
    }
}

/// The segment being written.
pub(crate) struct Active {
    file: Arc<dyn DiskFile>,
    path: PathBuf,
    header: SegmentHeader,
    /// Where the next frame goes.
    offset: u64,
    /// What stands before it in its page.
    begun: Vec<u8>,
    capacity: u64,
}

impl Active {
    fn as_segment(&self) -> Segment {
        let path = self.path.clone();
        Segment { path, header: self.header, length: self.capacity, end: None }
    }
}

/// Why a commit does not count.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum CommitError {
    /// A challenger came: the records may or may not survive.
    Claimed,
    /// The directory is gone or another one.
    Lost,
    /// No space. Nothing was written that counts: the same commit can be tried again.
    Full,
    /// Never again through this tenure.
    Fatal(String),
}

/// What a commit did.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Committed {
    pub tail: Sequence,
    /// The segment that the commit, or one before it that found no space, began.
    pub rolled: Option<Segment>,
}

pub(crate) struct Tenure {
    pub disk: Arc<dyn Disk>,
    pub directory: PathBuf,
    pub incarnation: Incarnation,
    pub claim: Claim,
    pub active: Active,
    /// The segment that is being written, until a commit has told of it: one may begin it and then
    /// find no space for its records.
    pub rolled: Option<Segment>,
    /// The last durable record.
    pub tail: Sequence,
    /// Where the chain stands there.
    pub chain: Chain,
    /// Random bits, advanced with each segment.
    pub salt: u64,
    pub buffer: Vec<u8>,
    /// Tests set it, to prove that they notice a writer that acknowledges before it syncs.
    pub skips_sync: bool,
    /// Likewise one that goes on in files without their names.
    pub skips_look: bool,
}

impl Tenure {
    /// Bytes of frames that still fit into the segment.
    pub(crate) fn space(&self) -> u64 {
        self.active.capacity.saturating_sub(self.active.offset)
    }

    pub(crate) fn segment(&self) -> Segment {
        self.active.as_segment()
    }

    /// Makes records durable and counts them. Takes the spare if they do not fit; the caller has
    /// made sure that it is there.
    pub(crate) fn commit(
        &mut self,
        records: &[Bytes],
        spare: &mut Option<Spare>,
    ) -> Result<Committed, CommitError> {
        let bytes: usize = records.iter().map(|record| framed_bytes(record.len())).sum();
        if bytes as u64 > self.space() {
            let spare = spare.take().ok_or(CommitError::Full)?;
            self.roll(spare).map_err(classify)?;
            self.rolled = Some(self.segment());
        }
        self.write(records, bytes)
            .map_err(|error| classify_io(&error, &self.active.path, "write"))?;
        if !self.skips_sync {
            let synced = self.active.file.sync_data();
            synced.map_err(|error| fatal(&error, &self.active.path, "sync"))?;
        }
        match self.standing().map_err(|error| fatal(&error, &self.directory, "look into"))? {
            Standing::Held => {}
            Standing::Claimed => return Err(CommitError::Claimed),
            Standing::Lost => return Err(CommitError::Lost),
        }
        self.count(records, bytes);
        let published = self.claim.publish(self.tail);
        published.map_err(|error| fatal(&error, &self.directory, "publish the mark in"))?;
        Ok(Committed { tail: self.tail, rolled: self.rolled.take() })
    }

    /// Whether what was just synced counts, and will be found by whoever opens the log next.
    ///
    /// Three names are looked at, and each look shows what the other two do not:
    /// - the next claim: that another writer has claimed the log;
    /// - this claim: that the look before shows it. Once this claim is gone, others take its writer
    ///   for dead, and may lead, die, and have the next claim tidied away while this one sleeps;
    /// - the segment: that the records are not in a file that nobody will find.
    ///
    /// All of it takes 6 µs of a commit, beside a sync of 90 to 300 µs (docs/measurements,
    /// log-write). To keep each file's number instead of asking for it would save less than one.
    fn standing(&self) -> io::Result<Standing> {
        if self.skips_look {
            let is_over = self.claim.is_over(&*self.disk)?;
            return Ok(if is_over { Standing::Claimed } else { Standing::Held });
        }
        let standing = self.claim.standing(&*self.disk)?;
        if standing != Standing::Held {
            return Ok(standing);
        }
        let is_there = self.active.file.stands_at(&self.active.path)?;
        Ok(if is_there { Standing::Held } else { Standing::Lost })
    }

    /// Writes the page that was begun and the records' frames behind it, to the end of a page.
    fn write(&mut self, records: &[Bytes], bytes: usize) -> io::Result<()> {
        let Active { file, header, offset, begun, capacity, .. } = &self.active;
        let pages = pages_of(begun.len() + bytes);
        let first = offset - begun.len() as u64;
        self.buffer.clear();
        self.buffer.shrink_to(BUFFER_KEPT_BYTES);
        let start = block_buffer(&mut self.buffer, pages);
        self.buffer.extend_from_slice(begun);
        for (sequence, record) in (self.tail.0 + 1..).zip(records) {
            put_frame(&mut self.buffer, Sequence(sequence), header.salt, record);
        }
        // What stands behind the last frame are zeroes anyway.
        self.buffer.resize(start + pages, 0);
        let end = (start + pages).min(start + (capacity - first) as usize);
        file.write_at(first, &self.buffer[start..end])
    }

    fn count(&mut self, records: &[Bytes], bytes: usize) {
        let Active { offset, begun, .. } = &mut self.active;
        // The buffer ends where a page does, or the segment.
        let written = begun.len() + bytes;
        let start = self.buffer.len() - pages_of(written);
        let kept = start + written - written % PAGE_BYTES..start + written;
        begun.clear();
        begun.extend_from_slice(&self.buffer[kept]);
        *offset += bytes as u64;
        self.tail = Sequence(self.tail.0 + records.len() as u64);
        for bytes in records {
            extend(&mut self.chain, bytes);
        }
    }

    fn roll(&mut self, spare: Spare) -> Result<(), LogError> {
        self.salt =
            self.salt.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        let header = SegmentHeader {
            incarnation: self.incarnation,
            claim: self.claim.number,
            first: self.tail.next(),
            chain: self.chain,
            salt: self.salt,
        };
        self.active = spare.publish(&*self.disk, &self.directory, header, &[])?;
        Ok(())
    }
}

/// Bytes of the whole pages that hold so many.
fn pages_of(bytes: usize) -> usize {
    bytes.next_multiple_of(PAGE_BYTES)
}

/// Extends a chain by a record if it counts.
pub(crate) fn extend(chain: &mut Chain, bytes: &[u8]) {
    if let Ok(header) = record::decode_header(bytes, false)
        && chain.admits(&header)
    {
        chain.extend(&header, bytes);
    }
}

/// A full disk before the sync left nothing that counts. Everything else is final.
fn classify_io(error: &io::Error, path: &Path, what: &str) -> CommitError {
    if error.kind() == ErrorKind::StorageFull {
        return CommitError::Full;
    }
    fatal(error, path, what)
}

fn classify(error: LogError) -> CommitError {
    match &error {
        LogError::Io { what, error: io, .. }
            if *what != "sync" && io.kind() == ErrorKind::StorageFull =>
        {
            CommitError::Full
        }
        _ => CommitError::Fatal(error.to_string()),
    }
}

fn fatal(error: &io::Error, path: &Path, what: &str) -> CommitError {
    CommitError::Fatal(format!("cannot {what} {}: {error}", path.display()))
}
