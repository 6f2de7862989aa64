//! Requests out of a session's input buffer.
//!
//! ```text
//! *2 CR LF                two arguments follow
//! $3 CR LF  GET CR LF     three bytes
//! $1 CR LF  k CR LF       one byte
//! ```
//!
//! Arguments are not copied: the decoder hands out where they lie in the buffer. A request may
//! arrive in any number of pieces. What has been understood is kept, so each byte is looked at
//! once or twice, and a bulk's bytes not at all: a value of many megabytes costs no more than its
//! header.
//!
//! The rules, lenient as they are, follow Redis 7.0.15: the byte after a CR and the two bytes after
//! a bulk are skipped unseen, and a NUL hides the rest of a line, which then never ends.

#[cfg(test)]
mod tests;

use crate::error::ProtocolError;
use crate::inline::split_words;
use crate::integer::parse_i64;
use memchr::memchr2;

/// A line without an end longer than this is refused. Redis's `PROTO_INLINE_MAX_SIZE`, 64 KiB.
pub const LINE_BYTES_MAX: usize = 64 << 10;

/// Redis's default for `proto-max-bulk-len`, 512 MiB.
pub const BULK_BYTES_MAX_DEFAULT: usize = 512 << 20;

/// Arguments that a client may send before it has authenticated. Redis's number.
const UNAUTHENTICATED_ARGUMENTS_MAX: usize = 10;

/// Bytes of one argument that a client may send before it has authenticated. Redis's number.
const UNAUTHENTICATED_BULK_BYTES_MAX: usize = 16384;

/// Bytes of one request: ranges are 32-bit. Redis's own limit on unread input is 1 GiB by default.
const REQUEST_BYTES_MAX: usize = u32::MAX as usize;

/// Arguments that a request's header may reserve space for. A header is only a claim.
const RESERVED_ARGUMENTS_MAX: usize = 1024;

/// Arguments that a scratch list keeps space for between requests: 64 KiB.
const KEPT_ARGUMENTS_MAX: usize = 8192;

/// Arguments of one request. Redis up to 6.2 took 1,048,576. Where they lie takes 8 bytes each,
/// which are copied as they become more.
const ARGUMENTS_MAX: usize = 1 << 24;

/// What a client may send. A session changes it when its client authenticates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Bytes of one argument: `proto-max-bulk-len`, at least 1 MiB.
    pub bulk_bytes_max: usize,
    /// Bytes of one request: at most what ranges of 32 bits can tell.
    pub request_bytes_max: usize,
    /// Arguments of one request.
    pub arguments_max: usize,
    /// Whether the small limits for strangers are lifted.
    pub authenticated: bool,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bulk_bytes_max: BULK_BYTES_MAX_DEFAULT,
            request_bytes_max: REQUEST_BYTES_MAX,
            arguments_max: ARGUMENTS_MAX,
            authenticated: true,
        }
    }
}

/// What the front of the buffer holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Decoded {
    /// A request with at least one argument in the buffer's first `consumed` bytes.
    Request { consumed: usize },
    /// The request's end has not arrived: at least `needed` more bytes belong to it. Exact up to
    /// the end of an argument of known length, so that a reader can reserve once.
    Incomplete { needed: usize },
    /// Nothing to run in the buffer's first `consumed` bytes: an empty line, or no arguments.
    Empty { consumed: usize },
    /// The client broke the protocol: answer, then close.
    Error(ProtocolError),
}

/// Where a request's arguments lie. Number 0 is the command's name.
#[derive(Clone, Default, Debug)]
pub struct ArgumentRanges {
    /// Start and length of each.
    ranges: Vec<(u32, u32)>,
    /// The words of an inline request, unquoted: these cannot be views of the input.
    words: Vec<u8>,
    inline: bool,
}

impl ArgumentRanges {
    pub fn new() -> Self {
        Self::default()
    }

    /// Start and length of each argument in [`Self::source`].
    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    /// What the ranges point into: `buffer`, which is the slice given to [`Decoder::next`], or the
    /// words that an inline request was unquoted to.
    pub fn source<'a>(&'a self, buffer: &'a [u8]) -> &'a [u8] {
        if self.inline { &self.words } else { buffer }
    }

    /// The arguments themselves. `buffer` is the slice given to [`Decoder::next`].
    pub fn iter<'a>(&'a self, buffer: &'a [u8]) -> impl ExactSizeIterator<Item = &'a [u8]> {
        let source = self.source(buffer);
        self.ranges.iter().map(move |&(start, length)| &source[start as usize..][..length as usize])
    }

    /// How many arguments there are.
    pub fn len(&self) -> usize {
        self.ranges.len()
    }

    pub fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Forgets the request. One giant request does not keep its memory.
    fn clear(&mut self) {
        self.ranges.clear();
        self.words.clear();
        self.inline = false;
        if self.ranges.capacity() > KEPT_ARGUMENTS_MAX {
            self.ranges.shrink_to(KEPT_ARGUMENTS_MAX);
        }
    }
}

/// Reads one session's requests, in order.
#[derive(Default, Debug)]
pub struct Decoder {
    pub limits: Limits,
    /// Arguments still to come of the request at the buffer's front; 0 before its header is read.
    remaining: usize,
    /// How much of that request is understood.
    at: usize,
    /// The length of the argument at `at`, once its header has been read.
    bulk: Option<usize>,
    /// Bytes from `at` on known to hold no end of line.
    scanned: usize,
    /// The arguments read so far, while the rest is awaited.
    partial: Vec<(u32, u32)>,
}

impl Decoder {
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Bytes of the request at the buffer's front that are understood: headers, and arguments that
    /// are complete. The rest of it is awaited.
    pub fn understood_bytes(&self) -> usize {
        if self.remaining > 0 { self.at } else { 0 }
    }

    /// Memory that knowing where its arguments lie takes: up to 16 bytes each, which may be more
    /// than the arguments themselves have.
    pub fn allocated_bytes(&self) -> usize {
        self.partial.capacity() * size_of::<(u32, u32)>()
    }

    /// Reads the request at the front of `buffer`, the session's input that is not yet consumed.
    ///
    /// After `Incomplete`, call again with the same bytes and more behind them. After `Request` or
    /// `Empty`, the next call's buffer begins `consumed` bytes later. `arguments` is scratch space
    /// that sessions may share: nothing is kept in it between calls.
    #[inline]
    pub fn next(&mut self, buffer: &[u8], arguments: &mut ArgumentRanges) -> Decoded {
        arguments.clear();
        let outcome = if self.remaining > 0 {
            arguments.ranges = std::mem::take(&mut self.partial);
            self.read_arguments(buffer, arguments)
        } else {
            match buffer.first() {
                None => Ok(Decoded::Incomplete { needed: 1 }),
                Some(b'*') => match self.read_whole(buffer, &mut arguments.ranges) {
                    Some(consumed) => {
                        self.scanned = 0;
                        Ok(Decoded::Request { consumed })
                    }
                    None => self.read_count(buffer, arguments),
                },
                Some(_) => self.read_inline(buffer, arguments),
            }
        };
        outcome.unwrap_or_else(Decoded::Error)
    }

    /// Reads a request that is whole and has short headers, as nearly all are, without keeping how
    /// far it came; its length. `None` and no ranges: [`Self::read_count`] decides.
    #[inline]
    fn read_whole(&self, buffer: &[u8], ranges: &mut Vec<(u32, u32)>) -> Option<usize> {
        let (count, bytes) = short_length(&buffer[1..])?;
        let is_refused = count > UNAUTHENTICATED_ARGUMENTS_MAX && !self.limits.authenticated;
        if count == 0 || count > self.limits.arguments_max || is_refused {
            return None;
        }
        let mut at = 1 + bytes;
        for _ in 0..count {
            let header = match buffer.get(at..) {
                Some([b'$', rest @ ..]) => short_length(rest),
                _ => None,
            };
            let argument = header.map(|(length, bytes)| (at + 1 + bytes, length));
            let Some((start, length)) = argument.filter(|(at, len)| at + len + 2 <= buffer.len())
            else {
                ranges.clear();
                return None;
            };
            ranges.push((start as u32, length as u32));
            at = start + length + 2;
        }
        if at > self.limits.request_bytes_max {
            ranges.clear();
            return None;
        }
        Some(at)
    }

    /// Reads `*N` and what follows.
    fn read_count(
        &mut self,
        buffer: &[u8],
        arguments: &mut ArgumentRanges,
    ) -> Result<Decoded, ProtocolError> {
        let (count, end) = match short_length(&buffer[1..]) {
            Some((count, bytes)) => (count as i64, 1 + bytes),
            None => match self.line_end(buffer, b'\r', ProtocolError::CountTooBig)? {
                Some(end) if end + 2 <= buffer.len() => {
                    let count =
                        parse_i64(&buffer[1..end]).filter(|count| *count <= i64::from(i32::MAX));
                    (count.ok_or(ProtocolError::InvalidCount)?, end + 2)
                }
                _ => return Ok(Decoded::Incomplete { needed: 1 }),
            },
        };
        self.scanned = 0;
        if count > UNAUTHENTICATED_ARGUMENTS_MAX as i64 && !self.limits.authenticated {
            return Err(ProtocolError::UnauthenticatedCount);
        }
        if usize::try_from(count).is_ok_and(|count| count > self.limits.arguments_max) {
            return Err(ProtocolError::InvalidCount);
        }
        if count <= 0 {
            return Ok(Decoded::Empty { consumed: end });
        }
        self.remaining = count as usize;
        self.at = end;
        arguments.ranges.reserve(self.remaining.min(RESERVED_ARGUMENTS_MAX));
        self.read_arguments(buffer, arguments)
    }

    /// Reads arguments until the request is whole or the buffer is at its end.
    fn read_arguments(
        &mut self,
        buffer: &[u8],
        arguments: &mut ArgumentRanges,
    ) -> Result<Decoded, ProtocolError> {
        while self.remaining > 0 {
            let length = match self.bulk {
                Some(length) => length,
                None => match buffer.get(self.at..) {
                    Some([b'$', rest @ ..]) if let Some((length, bytes)) = short_length(rest) => {
                        self.at += 1 + bytes;
                        length
                    }
                    _ => match self.read_length(buffer)? {
                        Some(length) => length,
                        None => return Ok(self.suspend(1, arguments)),
                    },
                },
            };
            let end = self.at + length + 2;
            if end > self.limits.request_bytes_max {
                return Err(ProtocolError::InvalidLength);
            }
            if end > buffer.len() {
                self.bulk = Some(length);
                return Ok(self.suspend(end - buffer.len(), arguments));
            }
            arguments.ranges.push((self.at as u32, length as u32));
            self.at = end;
            self.bulk = None;
            self.scanned = 0;
            self.remaining -= 1;
        }
        let consumed = std::mem::take(&mut self.at);
        Ok(Decoded::Request { consumed })
    }

    /// Reads `$N` at `at` in full generality; `None` if its end has not arrived.
    #[cold]
    fn read_length(&mut self, buffer: &[u8]) -> Result<Option<usize>, ProtocolError> {
        let end = match self.line_end(buffer, b'\r', ProtocolError::LengthTooBig)? {
            Some(end) if end + 2 <= buffer.len() => end,
            _ => return Ok(None),
        };
        if buffer[self.at] != b'$' {
            return Err(ProtocolError::ExpectedBulk(buffer[self.at]));
        }
        let length = parse_i64(&buffer[self.at + 1..end])
            .and_then(|length| usize::try_from(length).ok())
            .filter(|length| {
                *length <= self.limits.bulk_bytes_max.min(self.limits.request_bytes_max)
            })
            .ok_or(ProtocolError::InvalidLength)?;
        if length > UNAUTHENTICATED_BULK_BYTES_MAX && !self.limits.authenticated {
            return Err(ProtocolError::UnauthenticatedLength);
        }
        self.at = end + 2;
        self.scanned = 0;
        Ok(Some(length))
    }

    /// Keeps what has been read until more arrives.
    fn suspend(&mut self, needed: usize, arguments: &mut ArgumentRanges) -> Decoded {
        self.partial = std::mem::take(&mut arguments.ranges);
        Decoded::Incomplete { needed }
    }

    /// Reads a request that is one line of words.
    fn read_inline(
        &mut self,
        buffer: &[u8],
        arguments: &mut ArgumentRanges,
    ) -> Result<Decoded, ProtocolError> {
        let Some(end) = self.line_end(buffer, b'\n', ProtocolError::InlineTooBig)? else {
            return Ok(Decoded::Incomplete { needed: 1 });
        };
        self.scanned = 0;
        let line = buffer[..end].strip_suffix(b"\r").unwrap_or(&buffer[..end]);
        arguments.inline = true;
        split_words(line, &mut arguments.words, &mut arguments.ranges)
            .ok_or(ProtocolError::UnbalancedQuotes)?;
        let consumed = end + 1;
        Ok(if arguments.is_empty() {
            Decoded::Empty { consumed }
        } else {
            Decoded::Request { consumed }
        })
    }

    /// The index of the first `mark` from `at` on, unless a NUL comes first. Remembers how far it
    /// looked. `too_big` if none has come within [`LINE_BYTES_MAX`].
    fn line_end(
        &mut self,
        buffer: &[u8],
        mark: u8,
        too_big: ProtocolError,
    ) -> Result<Option<usize>, ProtocolError> {
        let start = self.at + self.scanned;
        match memchr2(mark, 0, &buffer[start..]) {
            Some(offset) if buffer[start + offset] == mark => return Ok(Some(start + offset)),
            // Found again by every later call, at once.
            Some(offset) => self.scanned += offset,
            None => self.scanned = buffer.len() - self.at,
        }
        if buffer.len() - self.at > LINE_BYTES_MAX { Err(too_big) } else { Ok(None) }
    }
}

/// Reads a number of one to three digits and its line's end; the number and the bytes read. What it
/// does not take, [`parse_i64`] may: this is the path that nearly every header goes.
#[inline(always)]
fn short_length(bytes: &[u8]) -> Option<(usize, usize)> {
    let digit = |byte: u8| usize::from(byte - b'0');
    match *bytes {
        [a @ b'0'..=b'9', b'\r', b'\n', ..] => Some((digit(a), 3)),
        [a @ b'1'..=b'9', b @ b'0'..=b'9', b'\r', b'\n', ..] => Some((digit(a) * 10 + digit(b), 4)),
        [a @ b'1'..=b'9', b @ b'0'..=b'9', c @ b'0'..=b'9', b'\r', b'\n', ..] => {
            Some((digit(a) * 100 + digit(b) * 10 + digit(c), 5))
        }
        _ => None,
    }
}
