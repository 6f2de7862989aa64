//! One connection's replies, withheld until what they reveal is durable.
//!
//! ```text
//! bytes   | sent | releasable | held until record 8 | held until record 9 |
//!                 ^ kernel takes these     ^ ends of held stretches
//! ```
//! Replies leave in the order of the requests: a reply that waits for nothing still waits behind
//! one that does.

use base::Sequence;
use resp::Reply;
use std::collections::VecDeque;

/// Reply bytes of one connection, encoded at execution.
pub struct Output {
    /// What commands write to. Its first byte has the stream offset `start`.
    pub reply: Reply,
    start: u64,
    /// Stream offset up to which the kernel may take bytes.
    releasable: u64,
    /// Stretches that wait: the record, and the stream offset where the stretch ends.
    held: VecDeque<(Sequence, u64)>,
}

impl Output {
    pub fn new(reply: Reply) -> Self {
        Self { reply, start: 0, releasable: 0, held: VecDeque::new() }
    }

    /// Everything written since the last call waits for `observed`, unless that is durable.
    /// Returns the record to wait for if the output waits at all.
    pub fn hold(&mut self, observed: Sequence, durable: Sequence) -> Option<Sequence> {
        let end = self.start + self.reply.len() as u64;
        if observed <= durable && self.held.is_empty() {
            self.releasable = end;
            return None;
        }
        match self.held.back_mut() {
            Some((last, stretch)) if *last >= observed => {
                *stretch = end;
                Some(*last)
            }
            _ => {
                self.held.push_back((observed, end));
                Some(observed)
            }
        }
    }

    /// The log is durable through here: releases what waited for it. Whether bytes can be sent.
    pub fn release(&mut self, durable: Sequence) -> bool {
        while let Some(&(sequence, end)) = self.held.front() {
            if sequence > durable {
                break;
            }
            self.releasable = end;
            self.held.pop_front();
        }
        self.releasable > self.start
    }

    /// The record that the first held stretch waits for.
    pub fn waits_for(&self) -> Option<Sequence> {
        self.held.front().map(|(sequence, _)| *sequence)
    }

    /// Bytes that may be sent now.
    pub fn sendable(&self) -> &[u8] {
        &self.reply.bytes()[..(self.releasable - self.start) as usize]
    }

    /// The kernel took `count` bytes.
    pub fn sent(&mut self, count: usize) {
        self.start += count as u64;
        self.reply.drop_front(count, KEPT_BYTES_MAX);
    }

    /// Bytes that wait for the log.
    pub fn held_bytes(&self) -> usize {
        self.held.back().map_or(0, |(_, end)| (end - self.releasable) as usize)
    }

    /// Bytes not yet taken by the kernel, held ones included.
    pub fn pending_bytes(&self) -> usize {
        self.reply.len()
    }

    /// Memory that the output occupies.
    pub fn allocated_bytes(&self) -> usize {
        self.reply.capacity()
    }
}

/// Capacity that an empty output keeps for its next replies, in bytes. As Redis's own reply
/// buffer.
const KEPT_BYTES_MAX: usize = 16 << 10;
