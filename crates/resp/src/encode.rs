//! Replies into an output buffer, for protocol 2 or 3.
//!
//! A command says what it answers, a map or a double or null; which bytes that is depends on the
//! protocol that the client chose, and is decided here alone:
//!
//! | | RESP2 | RESP3 |
//! |---|---|---|
//! | null, null array | `$-1`, `*-1` | `_` |
//! | map of n pairs, set | `*2n`, `*n` | `%n`, `~n` |
//! | push | `*n` | `>n` |
//! | double | bulk | `,` |
//! | boolean | `:1` `:0` | `#t` `#f` |
//! | big number, verbatim | bulk | `(`, `=` |
//! | attribute | left out | `\|n` |

mod pieces;
#[cfg(test)]
mod tests;

use crate::format_double::format_double;
use pieces::Pieces;

pub use pieces::PIECE_BYTES;

/// Which protocol a client speaks. HELLO changes it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub enum Protocol {
    #[default]
    Resp2,
    Resp3,
}

/// A header whose number of elements is not known yet. Give it back to [`Reply::end`].
#[derive(Debug)]
#[must_use = "the header is written by `Reply::end`"]
pub struct Deferred {
    /// Where it stands among all bytes.
    at: usize,
    mark: u8,
    /// Elements sent per element counted: a map's pair is two in RESP2.
    scale: usize,
}

/// Bytes kept free for a deferred header: `*n\r\n`. A longer count moves what follows it.
const DEFERRED_BYTES: usize = 4;

/// Bytes that an element of a reply takes at least: RESP3's null.
const ELEMENT_BYTES_MIN: usize = 3;

/// Bytes that the header of a string and what ends it take at most.
const BULK_HEADER_BYTES_MAX: usize = 24;

/// A piece with fewer bytes is not full, whatever comes next: pieces are at least half used.
const PIECE_BYTES_MIN: usize = PIECE_BYTES / 2;

/// An output buffer that knows its client's protocol. Everything is appended.
///
/// It may be given a bound ([`Self::bound`]). A reply that exceeds it is dropped, and nothing more
/// is taken: whoever makes it goes on as if nothing had happened, or asks [`Self::is_over`] and
/// stops.
///
/// It is one buffer, or pieces ([`Self::in_pieces`]): then what is written is never moved, however
/// long the reply becomes.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The newest bytes: of a reply in pieces, the piece that is being written.
    bytes: Vec<u8>,
    /// Full pieces, older than `bytes`.
    full: Pieces,
    is_in_pieces: bool,
    /// How long `bytes` may become before [`Self::make_room`] is asked: for the bound's sake, or
    /// because a piece is full.
    len_max: usize,
    protocol: Protocol,
    /// Where what the bound is about begins.
    from: usize,
    /// How many bytes there may be.
    bytes_max: usize,
    /// Values that were not taken since the bound was exceeded, and the one that exceeded it.
    refused: usize,
}

impl Default for Reply {
    fn default() -> Self {
        Self::new(Protocol::default())
    }
}

impl Reply {
    pub fn new(protocol: Protocol) -> Self {
        Self::over(Vec::new(), protocol)
    }

    /// Appends to `bytes`. Get them back with [`Self::into_bytes`].
    pub fn over(bytes: Vec<u8>, protocol: Protocol) -> Self {
        Self {
            bytes,
            full: Pieces::default(),
            is_in_pieces: false,
            len_max: usize::MAX,
            protocol,
            from: 0,
            bytes_max: usize::MAX,
            refused: 0,
        }
    }

    /// A reply whose bytes lie in pieces of about [`PIECE_BYTES`]: see [`Self::oldest`].
    pub fn in_pieces(protocol: Protocol) -> Self {
        let mut reply = Self::new(protocol);
        reply.is_in_pieces = true;
        reply.limit_len();
        reply
    }

    /// Bounds what is appended from now on: there may be `bytes_max` bytes, with those that are
    /// here already.
    pub fn bound(&mut self, bytes_max: usize) {
        (self.from, self.bytes_max, self.refused) = (self.len(), bytes_max, 0);
        self.limit_len();
    }

    /// Ends the bound; whether it was exceeded, so that nothing of what was appended is here.
    pub fn unbound(&mut self) -> bool {
        self.bytes_max = usize::MAX;
        self.limit_len();
        std::mem::take(&mut self.refused) > 0
    }

    /// Whether the bound is exceeded: what is appended is not kept.
    #[inline]
    pub fn is_over(&self) -> bool {
        self.refused > 0
    }

    /// Values that the bound did not let in: how long whoever makes the reply went on in vain.
    pub fn refused(&self) -> usize {
        self.refused
    }

    /// Whether the bound lets so many bytes more in. A text that is put together elsewhere need
    /// not become longer.
    pub fn admits(&self, bytes: usize) -> bool {
        self.len().saturating_add(bytes) <= self.bytes_max
    }

    /// Makes room for so many bytes more, unless they exceed the bound.
    #[inline]
    fn has_room(&mut self, bytes: usize) -> bool {
        self.bytes.len().saturating_add(bytes) <= self.len_max || self.make_room(bytes)
    }

    #[cold]
    fn make_room(&mut self, bytes: usize) -> bool {
        if !self.admits(bytes) {
            return self.overflow();
        }
        if self.bytes.len() >= PIECE_BYTES_MIN {
            let next = Vec::with_capacity(bytes.max(PIECE_BYTES));
            self.full.push(std::mem::replace(&mut self.bytes, next));
            self.limit_len();
        } else {
            self.bytes.reserve_exact(bytes);
        }
        true
    }

    fn limit_len(&mut self) {
        let left = self.bytes_max.saturating_sub(self.full.bytes());
        self.len_max = if self.is_in_pieces { left.min(PIECE_BYTES) } else { left };
    }

    /// Drops what was appended, and its memory.
    #[cold]
    fn overflow(&mut self) -> bool {
        if self.refused == 0 {
            self.truncate(self.from);
            self.bytes.shrink_to_fit();
            self.bytes_max = 0;
            self.limit_len();
        }
        self.refused += 1;
        false
    }

    pub fn protocol(&self) -> Protocol {
        self.protocol
    }

    /// From the next value on; a value half written must not be torn by this.
    pub fn set_protocol(&mut self, protocol: Protocol) {
        self.protocol = protocol;
    }

    /// All bytes of a reply that is one buffer.
    pub fn bytes(&self) -> &[u8] {
        assert!(self.full.is_empty(), "a reply in pieces is read piece by piece");
        &self.bytes
    }

    /// As [`Self::bytes`].
    pub fn into_bytes(self) -> Vec<u8> {
        assert!(self.full.is_empty(), "a reply in pieces is read piece by piece");
        self.bytes
    }

    /// As [`Self::bytes`]; the reply is empty afterwards.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::replace(self, Self::new(self.protocol)).into_bytes()
    }

    /// The oldest piece.
    pub fn oldest(&self) -> &[u8] {
        self.full.oldest().unwrap_or(&self.bytes)
    }

    /// Lets `act` have the buffer of the oldest piece, which it may empty or exchange for an empty
    /// one: then nothing is left of that piece but to drop it.
    pub fn with_oldest<T>(&mut self, act: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        if self.full.is_empty() { act(&mut self.bytes) } else { self.full.with_oldest(act) }
    }

    /// Drops the oldest piece, which was sent. The one that is being written keeps at most
    /// `kept_bytes` of its room.
    pub fn drop_oldest(&mut self, kept_bytes: usize) {
        if !self.full.drop_oldest() {
            self.bytes.clear();
            self.bytes.shrink_to(kept_bytes);
        }
        self.limit_len();
    }

    /// Gives a reply that has no buffer yet one with room for so many bytes.
    #[inline]
    pub fn begin_with(&mut self, bytes: usize) {
        if self.bytes.capacity() == 0 {
            self.bytes.reserve_exact(bytes);
        }
    }

    /// Gives the buffer that is being written room for so many bytes in all.
    pub fn grow_to(&mut self, bytes: usize) {
        self.bytes.reserve_exact(bytes.saturating_sub(self.bytes.len()));
    }

    /// Gives back the room of an empty reply beyond so many bytes.
    pub fn shrink_to(&mut self, bytes: usize) {
        if self.is_empty() {
            self.bytes.shrink_to(bytes);
        }
    }

    /// Bytes so far.
    #[inline]
    pub fn len(&self) -> usize {
        self.full.bytes() + self.bytes.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Forgets what was appended after the first `len` bytes.
    pub fn truncate(&mut self, len: usize) {
        while len < self.full.bytes() {
            let Some(piece) = self.full.take_newest() else { break };
            self.bytes = piece;
        }
        self.bytes.truncate(len - self.full.bytes());
        self.limit_len();
    }

    /// Removes and returns the bytes after the first `len`.
    pub fn split_off(&mut self, len: usize) -> Vec<u8> {
        let mut taken = Vec::new();
        let mut begin = 0;
        for piece in self.full.iter().chain(std::iter::once(&self.bytes[..])) {
            taken.extend_from_slice(piece.get(len.saturating_sub(begin)..).unwrap_or_default());
            begin += piece.len();
        }
        self.truncate(len);
        taken
    }

    /// Bytes that the buffers have room for.
    pub fn capacity(&self) -> usize {
        self.full.capacity() + self.bytes.capacity()
    }

    /// Appends bytes that are a reply already.
    pub fn raw(&mut self, encoded: &[u8]) {
        if self.has_room(encoded.len()) {
            self.bytes.extend_from_slice(encoded);
        }
    }

    /// `+OK`.
    pub fn ok(&mut self) {
        self.raw(b"+OK\r\n");
    }

    /// `+QUEUED`.
    pub fn queued(&mut self) {
        self.raw(b"+QUEUED\r\n");
    }

    /// A simple string. A line's end within it becomes blanks.
    pub fn simple(&mut self, text: impl AsRef<[u8]>) {
        self.line(b'+', text.as_ref());
    }

    /// An error, its code first: `ERR no such key`. A line's end within it becomes blanks.
    pub fn error(&mut self, text: impl AsRef<[u8]>) {
        self.line(b'-', text.as_ref());
    }

    #[inline]
    pub fn integer(&mut self, value: i64) {
        match value {
            0..=9 => self.raw(&[b':', b'0' + value as u8, b'\r', b'\n']),
            _ => self.number(b':', itoa::Buffer::new().format(value)),
        }
    }

    #[inline]
    pub fn bulk(&mut self, value: impl AsRef<[u8]>) {
        let value = value.as_ref();
        if !self.has_room(value.len() + BULK_HEADER_BYTES_MAX) {
            return;
        }
        self.bytes.reserve(value.len() + BULK_HEADER_BYTES_MAX);
        self.header(b'$', value.len());
        self.bytes.extend_from_slice(value);
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// An integer's text as a bulk string.
    pub fn bulk_integer(&mut self, value: i64) {
        self.bulk(itoa::Buffer::new().format(value));
    }

    /// No value.
    #[inline]
    pub fn null(&mut self) {
        match self.protocol {
            Protocol::Resp2 => self.raw(b"$-1\r\n"),
            Protocol::Resp3 => self.raw(b"_\r\n"),
        }
    }

    /// No array: a timeout, an aborted EXEC.
    pub fn null_array(&mut self) {
        match self.protocol {
            Protocol::Resp2 => self.raw(b"*-1\r\n"),
            Protocol::Resp3 => self.raw(b"_\r\n"),
        }
    }

    /// The header of an array; `len` values must follow.
    #[inline]
    pub fn array(&mut self, len: usize) {
        self.elements(b'*', len);
    }

    /// The header of a map; `pairs` keys, each followed by its value, must follow.
    pub fn map(&mut self, pairs: usize) {
        match self.protocol {
            Protocol::Resp2 => self.elements(b'*', pairs * 2),
            Protocol::Resp3 => self.elements(b'%', pairs),
        }
    }

    /// The header of a set; `len` values must follow.
    pub fn set(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.elements(b'*', len),
            Protocol::Resp3 => self.elements(b'~', len),
        }
    }

    /// The header of an out-of-band message; `len` values must follow.
    pub fn push(&mut self, len: usize) {
        match self.protocol {
            Protocol::Resp2 => self.elements(b'*', len),
            Protocol::Resp3 => self.elements(b'>', len),
        }
    }

    /// The header of an attribute, which belongs to the value after it; `pairs` must follow. RESP2
    /// has none: then this answers false, and the pairs are left out.
    #[must_use = "without RESP3 the pairs must not be written"]
    pub fn attribute(&mut self, pairs: usize) -> bool {
        if self.protocol == Protocol::Resp3 {
            self.elements(b'|', pairs);
        }
        self.protocol == Protocol::Resp3
    }

    /// A double, as `%.17g`.
    pub fn double(&mut self, value: f64) {
        self.double_text(format_double(value).as_bytes());
    }

    /// A floating-point number that has its text already: INCRBYFLOAT's long doubles.
    pub fn double_text(&mut self, text: impl AsRef<[u8]>) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => self.line(b',', text.as_ref()),
        }
    }

    pub fn boolean(&mut self, value: bool) {
        self.raw(match (self.protocol, value) {
            (Protocol::Resp2, true) => b":1\r\n",
            (Protocol::Resp2, false) => b":0\r\n",
            (Protocol::Resp3, true) => b"#t\r\n",
            (Protocol::Resp3, false) => b"#f\r\n",
        });
    }

    /// An integer of any size, as its decimal text.
    pub fn big_number(&mut self, text: impl AsRef<[u8]>) {
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => self.line(b'(', text.as_ref()),
        }
    }

    /// Text for people. `format` says which kind: `txt`, `mkd`.
    pub fn verbatim(&mut self, format: &[u8; 3], text: impl AsRef<[u8]>) {
        let text = text.as_ref();
        match self.protocol {
            Protocol::Resp2 => self.bulk(text),
            Protocol::Resp3 => {
                if !self.has_room(text.len() + BULK_HEADER_BYTES_MAX + 4) {
                    return;
                }
                self.header(b'=', text.len() + 4);
                self.bytes.extend_from_slice(format);
                self.bytes.push(b':');
                self.bytes.extend_from_slice(text);
                self.bytes.extend_from_slice(b"\r\n");
            }
        }
    }

    /// An array whose length [`Self::end`] will give.
    pub fn begin_array(&mut self) -> Deferred {
        self.begin(b'*', 1)
    }

    /// A set whose length [`Self::end`] will give.
    pub fn begin_set(&mut self) -> Deferred {
        match self.protocol {
            Protocol::Resp2 => self.begin(b'*', 1),
            Protocol::Resp3 => self.begin(b'~', 1),
        }
    }

    /// A map whose number of pairs [`Self::end`] will give.
    pub fn begin_map(&mut self) -> Deferred {
        match self.protocol {
            Protocol::Resp2 => self.begin(b'*', 2),
            Protocol::Resp3 => self.begin(b'%', 1),
        }
    }

    /// Writes the header of `deferred`: `count` elements (pairs, of a map) were appended since. A
    /// count of two digits or more moves those of them that stand in the same piece, once.
    pub fn end(&mut self, deferred: Deferred, count: usize) {
        if self.is_over() {
            return;
        }
        let mut digits = itoa::Buffer::new();
        let digits = digits.format(count * deferred.scale).as_bytes();
        match deferred.at.checked_sub(self.full.bytes()) {
            Some(start) => write_header(&mut self.bytes, start, deferred.mark, digits),
            None => self.full.change(deferred.at, |piece, start| {
                write_header(piece, start, deferred.mark, digits);
            }),
        }
        self.limit_len();
    }

    fn begin(&mut self, mark: u8, scale: usize) -> Deferred {
        // All of the header stands in one piece.
        self.has_room(DEFERRED_BYTES);
        let at = self.len();
        self.raw(&[0; DEFERRED_BYTES]);
        Deferred { at, mark, scale }
    }

    #[inline]
    fn header(&mut self, mark: u8, len: usize) {
        match len {
            0..=9 => self.raw(&[mark, b'0' + len as u8, b'\r', b'\n']),
            10..=99 => {
                self.raw(&[mark, b'0' + (len / 10) as u8, b'0' + (len % 10) as u8, b'\r', b'\n']);
            }
            _ => self.number(mark, itoa::Buffer::new().format(len)),
        }
    }

    /// The header of so many elements. More than there is room for are not begun with: whoever
    /// would append them is spared the work.
    #[inline]
    fn elements(&mut self, mark: u8, len: usize) {
        if len <= 99 || self.admits(len.saturating_mul(ELEMENT_BYTES_MIN)) {
            self.header(mark, len);
        } else {
            self.overflow();
        }
    }

    fn number(&mut self, mark: u8, digits: &str) {
        if !self.has_room(digits.len() + 3) {
            return;
        }
        self.bytes.push(mark);
        self.bytes.extend_from_slice(digits.as_bytes());
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// One line, in which nothing may end the line early.
    fn line(&mut self, mark: u8, text: &[u8]) {
        if !self.has_room(text.len() + 3) {
            return;
        }
        self.bytes.push(mark);
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        for byte in &mut self.bytes[start..] {
            if matches!(byte, b'\r' | b'\n') {
                *byte = b' ';
            }
        }
        self.bytes.extend_from_slice(b"\r\n");
    }
}

/// Writes a header in place of the room that was kept free for it.
fn write_header(bytes: &mut Vec<u8>, start: usize, mark: u8, digits: &[u8]) {
    if digits.len() > 1 {
        let extra = digits.len() - 1;
        let end = bytes.len();
        bytes.resize(end + extra, 0);
        bytes.copy_within(start + DEFERRED_BYTES..end, start + DEFERRED_BYTES + extra);
    }
    let header = &mut bytes[start..start + DEFERRED_BYTES - 1 + digits.len()];
    header[0] = mark;
    header[1..=digits.len()].copy_from_slice(digits);
    header[digits.len() + 1..].copy_from_slice(b"\r\n");
}
