//! Files read in slices and executed: an RDB file, or those of an append-only file. These have RDB
//! data at the beginning (a base, or the preamble of Redis 4.0 to 6.2), requests, or both.
//!
//! ```text
//! "REDIS…" RDB data, or not    #TS:1700000000    *3 $3 SET $1 k $1 v    *1 $5 MULTI …
//! ```
//! A crash may have cut the last file amid a request or a transaction. As Redis does by default
//! (`aof-load-truncated yes`), what is not whole there is dropped, and said. In any file before the
//! last one, and amid a file, the same is damage.

use crate::aof::Part;
use crate::executor::Executor;
use base::disk::DiskFile;
use engine::command::Args;
use engine::import::{Importer, Step};
use resp::{ArgumentRanges, Decoded, Decoder, Limits};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

/// Bytes that are read at a time.
const PIECE_BYTES: usize = 1 << 20;

/// The longest piece of RDB data.
const GROWN_BYTES_MAX: usize = 64 << 20;

/// Requests that are executed between two looks at what else is to be done.
const REQUESTS_MAX: usize = 4096;

/// Things of an RDB file that are applied between two looks at what else is to be done.
const STEPS_MAX: usize = 65536;

/// What RDB data begins with.
const MAGICS: [&[u8]; 2] = [b"REDIS", b"VALKEY"];

/// The longest annotation, in bytes. Redis reads lines of its own into a buffer of 128.
const ANNOTATION_BYTES_MAX: usize = 64 << 10;

/// The RDB file, or the append-only file, that is being read.
pub struct Reading {
    /// It is an RDB file and nothing else.
    is_rdb: bool,
    parts: VecDeque<Part>,
    /// The file that is being read.
    open: Option<Open>,
    total: u64,
    /// Bytes of the files that are done.
    done: u64,
    /// Said of what was dropped at the end.
    pub warning: Option<String>,
}

struct Open {
    path: PathBuf,
    file: Arc<dyn DiskFile>,
    /// Bytes of it that count. A server that runs may be writing more.
    length: u64,
    is_last: bool,
    is_rdb: bool,
    /// Bytes that were read.
    read: u64,
    stage: Stage,
    /// What was read and not executed: `buffer[used..]`.
    buffer: Vec<u8>,
    used: usize,
    /// The size of the next piece of RDB data.
    grown: usize,
    decoder: Decoder,
    ranges: ArgumentRanges,
    /// Where the transaction began that has no end yet.
    transaction_at: u64,
}

/// What is read next.
enum Stage {
    /// Nothing is known of the file.
    Begin,
    Rdb(Box<Importer>),
    Requests,
}

impl Reading {
    /// An append-only file.
    pub fn of_aof(parts: Vec<Part>) -> Self {
        let total = parts.iter().map(|part| part.length).sum();
        Self { is_rdb: false, parts: parts.into(), open: None, total, done: 0, warning: None }
    }

    /// An RDB file.
    pub fn of_rdb(part: Part) -> Self {
        Self { is_rdb: true, ..Self::of_aof(vec![part]) }
    }

    /// Bytes of all files.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Bytes that were read so far.
    pub fn done(&self) -> u64 {
        self.done + self.open.as_ref().map_or(0, |open| open.read)
    }

    /// Reads and executes a slice; whether all is done.
    ///
    /// # Errors
    /// A file cannot be read, is damaged, or holds what cannot be executed: names file and offset.
    pub fn advance(&mut self, executor: &mut Executor) -> Result<bool, String> {
        let Some(open) = &mut self.open else {
            let Some(part) = self.parts.pop_front() else { return Ok(true) };
            executor.begin_file();
            self.open = Some(Open::new(part, self.parts.is_empty(), self.is_rdb));
            return Ok(false);
        };
        let is_over = open.advance(executor);
        let said = |why: String| format!("{}: {why}", open.path.display());
        if is_over.map_err(said)? {
            self.warning = open.dropped(executor).map(said).or(self.warning.take());
            self.done += open.read;
            if let Some(why) = self.warning.take_if(|_| !open.is_last) {
                return Err(why);
            }
            self.open = None;
        }
        Ok(false)
    }
}

impl Open {
    fn new(part: Part, is_last: bool, is_rdb: bool) -> Self {
        let Part { path, file, length } = part;
        let limits = Limits { bulk_bytes_max: u32::MAX as usize, ..Limits::default() };
        Self {
            path,
            file,
            length,
            is_last,
            is_rdb,
            read: 0,
            stage: Stage::Begin,
            buffer: Vec::new(),
            used: 0,
            grown: PIECE_BYTES,
            decoder: Decoder::new(limits),
            ranges: ArgumentRanges::new(),
            transaction_at: 0,
        }
    }

    /// Reads and executes a slice; whether the file has ended.
    fn advance(&mut self, executor: &mut Executor) -> Result<bool, String> {
        match &mut self.stage {
            Stage::Begin => {
                self.read_piece(PIECE_BYTES)?;
                let is_rdb =
                    self.is_rdb || MAGICS.iter().any(|magic| self.buffer.starts_with(magic));
                self.stage = if is_rdb { Stage::Rdb(Box::default()) } else { Stage::Requests };
                Ok(false)
            }
            Stage::Rdb(importer) => {
                importer.feed(&self.buffer[self.used..]);
                self.used = self.buffer.len();
                let imported = executor.target.import(importer, STEPS_MAX);
                match imported.map_err(|error| error.to_string())? {
                    Step::Done => self.grown = PIECE_BYTES,
                    Step::Finished => {
                        self.buffer = std::mem::take(&mut **importer).into_rest();
                        self.used = 0;
                        self.stage = Stage::Requests;
                        if self.is_rdb && self.offset() < self.length {
                            return Err(format!(
                                "its RDB data ends before, at byte {}",
                                self.offset()
                            ));
                        }
                    }
                    Step::Starved => self.feed_more()?,
                }
                Ok(false)
            }
            Stage::Requests => match self.execute(executor)? {
                Some(needed) => Ok(self.read_piece(needed.max(PIECE_BYTES))? == 0),
                None => Ok(false),
            },
        }
    }

    /// Reads more of RDB data. A large value is looked at again with each piece of it, so the
    /// pieces grow.
    fn feed_more(&mut self) -> Result<(), String> {
        if self.read_piece(self.grown)? == 0 {
            return Err(format!("its RDB data ends too early, at byte {}", self.read));
        }
        self.grown = (self.grown * 2).min(GROWN_BYTES_MAX);
        Ok(())
    }

    /// Drops what was executed, and reads up to so many bytes; how many.
    fn read_piece(&mut self, bytes: usize) -> Result<usize, String> {
        self.buffer.drain(..self.used);
        self.used = 0;
        let left = self.length - self.read;
        let bytes = bytes.min(usize::try_from(left).unwrap_or(usize::MAX));
        let begin = self.buffer.len();
        self.buffer.resize(begin + bytes, 0);
        let count = self.file.read_at(self.read, &mut self.buffer[begin..]);
        let count = count.map_err(|error| error.to_string())?;
        self.read += count as u64;
        if count < bytes {
            return Err("it became shorter while it was read".to_owned());
        }
        Ok(count)
    }

    /// Executes the requests that were read; how many more bytes the next one needs, at least, or
    /// `None` if there are more.
    fn execute(&mut self, executor: &mut Executor) -> Result<Option<usize>, String> {
        for _ in 0..REQUESTS_MAX {
            let at = self.offset();
            let rest = &self.buffer[self.used..];
            if self.decoder.understood_bytes() == 0 {
                match rest.first() {
                    Some(b'*') => {}
                    Some(b'#') => match annotation_bytes(rest) {
                        Some(bytes) => {
                            self.used += bytes;
                            continue;
                        }
                        None if rest.len() >= ANNOTATION_BYTES_MAX => {
                            return Err(format!("an annotation without end at byte {at}"));
                        }
                        None => return Ok(Some(1)),
                    },
                    Some(_) => return Err(format!("no request begins at byte {at}")),
                    None => return Ok(Some(1)),
                }
            }
            match self.decoder.next(rest, &mut self.ranges) {
                Decoded::Request { consumed } => {
                    let args = Args::new(self.ranges.source(rest), self.ranges.ranges());
                    let was_open = executor.is_in_transaction();
                    executor.execute(args).map_err(|why| format!("at byte {at}: {why}"))?;
                    if executor.is_in_transaction() && !was_open {
                        self.transaction_at = at;
                    }
                    self.used += consumed;
                }
                Decoded::Incomplete { needed } => return Ok(Some(needed)),
                Decoded::Empty { .. } => return Err(format!("an empty request at byte {at}")),
                Decoded::Error(error) => {
                    let line = error.line();
                    let text = String::from_utf8_lossy(&line);
                    return Err(format!("no request at byte {at}: {}", text.trim_end()));
                }
            }
        }
        Ok(None)
    }

    /// Where the first byte stands that was not executed.
    fn offset(&self) -> u64 {
        self.read - (self.buffer.len() - self.used) as u64
    }

    /// What the end of the file cut off.
    fn dropped(&self, executor: &Executor) -> Option<String> {
        let (what, at) = if executor.is_in_transaction() {
            ("a transaction", self.transaction_at)
        } else if self.offset() < self.read {
            ("a command", self.offset())
        } else {
            return None;
        };
        let bytes = self.length - at;
        Some(format!(
            "it ends within {what} that begins at byte {at}, {bytes} bytes before the end"
        ))
    }
}

/// Bytes of the line at the front, its end included, if that has been read.
fn annotation_bytes(rest: &[u8]) -> Option<usize> {
    let searched = &rest[..rest.len().min(ANNOTATION_BYTES_MAX)];
    searched.iter().position(|byte| *byte == b'\n').map(|at| at + 1)
}

#[cfg(test)]
mod tests;
