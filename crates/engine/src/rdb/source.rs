//! A stream of bytes, read in large pieces and digested on the way.

use super::names::Names;
use super::{Crc64, RdbError};
use std::io::{self, Read};

/// Bytes that are asked for at once. Large enough for few calls, small enough for the cache.
const READ_BYTES: usize = 256 << 10;

/// A stream with what was read from it and not yet used.
pub struct Source<R> {
    stream: R,
    buffer: Vec<u8>,
    /// What is used, and what is filled.
    used: usize,
    filled: usize,
    /// Everything used before `digested` is in the checksum.
    digested: usize,
    crc: Crc64,
    /// Whether the checksum is kept at all.
    is_digesting: bool,
    /// Whether lengths in the stream may be believed.
    is_trusted: bool,
    /// Whether type numbers are Valkey's rather than Redis's.
    pub(crate) is_valkey: bool,
    /// Whether values get the encodings that they were written with, whatever the settings say.
    pub(crate) keeps_encodings: bool,
    /// Where reading can go back to, if it can: see [`Source::keep`].
    kept: Option<usize>,
    /// Where in the stream the buffer begins.
    base: u64,
    /// The last compressed string.
    pub(crate) inflated: Vec<u8>,
    /// Those of the last small hash or sorted set; kept for its memory.
    pub(crate) names: Names,
}

impl<R: Read> Source<R> {
    pub fn new(stream: R) -> Self {
        Self {
            stream,
            buffer: vec![0; READ_BYTES],
            used: 0,
            filled: 0,
            digested: 0,
            crc: Crc64::default(),
            is_digesting: true,
            is_trusted: false,
            is_valkey: false,
            keeps_encodings: false,
            kept: None,
            base: 0,
            inflated: Vec::new(),
            names: Names::default(),
        }
    }

    /// A few bytes that are all there is, and that somebody else checked.
    pub fn of_bytes(bytes: &[u8]) -> Source<io::Empty> {
        Source {
            stream: io::empty(),
            buffer: bytes.to_vec(),
            used: 0,
            filled: bytes.len(),
            digested: 0,
            crc: Crc64::default(),
            is_digesting: false,
            is_trusted: false,
            is_valkey: false,
            keeps_encodings: false,
            kept: None,
            base: 0,
            inflated: Vec::new(),
            names: Names::default(),
        }
    }

    /// A stream whose bytes somebody else checks before they arrive here: no checksum is kept, and
    /// what the stream says of lengths is believed.
    pub fn without_checksum(stream: R) -> Self {
        Self { is_digesting: false, is_trusted: true, ..Self::new(stream) }
    }

    /// Whether lengths in the stream may be believed.
    pub(crate) fn is_trusted(&self) -> bool {
        self.is_trusted
    }

    /// Marks this place: from now on [`Self::rewind`] comes back to it. For a stream that says
    /// `WouldBlock` in the middle of something, which is then read again from its beginning.
    pub fn keep(&mut self) {
        self.kept = Some(self.used);
    }

    /// Goes back to the place marked last.
    pub fn rewind(&mut self) {
        self.used = self.kept.unwrap_or(self.used);
    }

    /// The stream, and what was read from it and not used.
    pub fn into_rest(mut self) -> (R, Vec<u8>) {
        self.buffer.truncate(self.filled);
        (self.stream, self.buffer.split_off(self.used))
    }

    pub fn stream(&self) -> &R {
        &self.stream
    }

    pub fn stream_mut(&mut self) -> &mut R {
        &mut self.stream
    }

    /// Bytes used so far.
    pub fn offset(&self) -> u64 {
        self.base + self.used as u64
    }

    /// The checksum of the bytes used so far, if one is kept.
    pub fn checksum(&mut self) -> Option<u64> {
        self.digest(self.used);
        self.is_digesting.then(|| self.crc.value())
    }

    pub(crate) fn damaged(&self, what: impl Into<String>) -> RdbError {
        RdbError::Damaged { offset: self.offset(), what: what.into() }
    }

    pub(crate) fn unsupported(&self, what: impl Into<String>) -> RdbError {
        RdbError::Unsupported { offset: self.offset(), what: what.into() }
    }

    /// The next byte.
    #[inline]
    pub fn byte(&mut self) -> Result<u8, RdbError> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// The next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], RdbError> {
        let mut array = [0; N];
        array.copy_from_slice(self.bytes(N)?);
        Ok(array)
    }

    /// The next `count` bytes. The buffer grows only as bytes arrive, whatever `count` claims.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&[u8], RdbError> {
        if self.filled - self.used < count {
            self.fill(count)?;
        }
        let start = self.used;
        self.used += count;
        Ok(&self.buffer[start..self.used])
    }

    /// Whether the stream has ended.
    pub fn is_at_end(&mut self) -> Result<bool, RdbError> {
        if self.used < self.filled {
            return Ok(false);
        }
        match self.fill(1) {
            Ok(()) => Ok(false),
            Err(RdbError::Damaged { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Takes everything before `end` into the checksum.
    fn digest(&mut self, end: usize) {
        if self.is_digesting {
            self.crc.update(&self.buffer[self.digested..end]);
        }
        self.digested = end;
    }

    #[cold]
    fn fill(&mut self, count: usize) -> Result<(), RdbError> {
        let from = self.kept.unwrap_or(self.used);
        self.digest(from);
        self.buffer.copy_within(from..self.filled, 0);
        self.base += from as u64;
        self.filled -= from;
        self.used -= from;
        self.kept = self.kept.map(|_| 0);
        self.digested = 0;
        let needed = self.used + count;
        if self.buffer.len() > 2 * READ_BYTES && needed <= READ_BYTES && self.filled <= READ_BYTES {
            self.buffer.truncate(READ_BYTES);
            self.buffer.shrink_to_fit();
        }
        while self.filled < needed {
            if self.filled == self.buffer.len() {
                let grown = self.buffer.len() * 2;
                self.buffer.resize(grown, 0);
            }
            let read = self.stream.read(&mut self.buffer[self.filled..])?;
            if read == 0 {
                return Err(self.damaged("the file ends too early,"));
            }
            self.filled += read;
        }
        Ok(())
    }
}
