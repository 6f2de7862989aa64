//! The last bytes told, for replicas that come back soon (`repl-backlog-size`).

use std::collections::VecDeque;

/// Bytes of the stream, numbered from 1 as Redis numbers them.
pub struct Backlog {
    bytes: VecDeque<u8>,
    /// Bytes of the stream before the first one here.
    before: u64,
}

impl Backlog {
    /// A backlog of a stream of which `offset` bytes are gone.
    pub fn new(offset: u64) -> Self {
        Self { bytes: VecDeque::new(), before: offset }
    }

    /// Adds bytes, and forgets the oldest beyond `bytes_max`.
    pub fn push(&mut self, bytes: &[u8], bytes_max: u64) {
        let bytes_max = usize::try_from(bytes_max).unwrap_or(usize::MAX);
        let (skipped, kept) = bytes.split_at(bytes.len().saturating_sub(bytes_max));
        // Room is made before it is taken: one large unit must not leave its size behind.
        let excess = self.bytes.len().saturating_sub(bytes_max - kept.len());
        self.bytes.drain(..excess);
        self.bytes.extend(kept);
        self.before += (excess + skipped.len()) as u64;
    }

    /// The number of the first byte here.
    pub fn first(&self) -> u64 {
        self.before + 1
    }

    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes from number `from` on; `None` if some of them are forgotten or not told yet.
    pub fn since(&self, from: u64) -> Option<Vec<u8>> {
        let skipped = from.checked_sub(self.first())?;
        let skipped = usize::try_from(skipped).ok().filter(|skipped| *skipped <= self.len())?;
        Some(self.bytes.range(skipped..).copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bytes_that_are_here_are_given() {
        let mut backlog = Backlog::new(100);
        assert_eq!((backlog.first(), backlog.since(101)), (101, Some(Vec::new())));
        backlog.push(b"abcdef", 10);
        assert_eq!(backlog.since(101).as_deref(), Some(&b"abcdef"[..]));
        assert_eq!(backlog.since(107).as_deref(), Some(&b""[..]));
        assert_eq!(backlog.since(108), None, "not told yet");
        assert_eq!(backlog.since(100), None, "told before the backlog began");
        backlog.push(b"ghijklm", 10);
        assert_eq!((backlog.first(), backlog.len()), (104, 10));
        assert_eq!(backlog.since(103), None, "forgotten");
        assert_eq!(backlog.since(104).as_deref(), Some(&b"defghijklm"[..]));
        assert_eq!(backlog.since(u64::MAX), None);
        backlog.push(&[b'x'; 1000], 10);
        assert_eq!((backlog.first(), backlog.len()), (1104, 10));
        assert_eq!(backlog.since(1104).as_deref(), Some(&[b'x'; 10][..]));
        assert!(backlog.bytes.capacity() < 100, "a large unit leaves no room behind");
    }
}
