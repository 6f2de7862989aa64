//! A stream of bytes, read in large pieces and digested on the way.

use super::{Crc64, RdbError};
use std::io::Read;

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
    /// Where in the stream the buffer begins.
    base: u64,
    /// The last compressed string.
    pub(super) inflated: Vec<u8>,
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
            base: 0,
            inflated: Vec::new(),
        }
    }

    /// A stream whose bytes somebody else checks: no checksum is kept.
    pub fn without_checksum(stream: R) -> Self {
        Self { is_digesting: false, ..Self::new(stream) }
    }

    /// Bytes used so far.
    pub fn offset(&self) -> u64 {
        self.base + self.used as u64
    }

    /// The checksum of the bytes used so far, if one is kept.
    pub fn checksum(&mut self) -> Option<u64> {
        self.digest();
        self.is_digesting.then(|| self.crc.value())
    }

    pub(super) fn damaged(&self, what: impl Into<String>) -> RdbError {
        RdbError::Damaged { offset: self.offset(), what: what.into() }
    }

    pub(super) fn unsupported(&self, what: impl Into<String>) -> RdbError {
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

    fn digest(&mut self) {
        if self.is_digesting {
            self.crc.update(&self.buffer[self.digested..self.used]);
        }
        self.digested = self.used;
    }

    #[cold]
    fn fill(&mut self, count: usize) -> Result<(), RdbError> {
        self.digest();
        self.buffer.copy_within(self.used..self.filled, 0);
        self.base += self.used as u64;
        self.filled -= self.used;
        self.used = 0;
        self.digested = 0;
        if self.buffer.len() > 2 * READ_BYTES && count <= READ_BYTES && self.filled <= READ_BYTES {
            self.buffer.truncate(READ_BYTES);
            self.buffer.shrink_to_fit();
        }
        while self.filled < count {
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
