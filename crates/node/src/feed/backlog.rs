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
        self.bytes.extend(bytes);
        let excess = (self.bytes.len() as u64).saturating_sub(bytes_max);
        self.bytes.drain(..excess as usize);
        self.before += excess;
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
    }
}
