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

/// Reply bytes of one connection, encoded at execution. They lie in buffers that are never moved:
/// whatever waits, a byte is written once and sent once.
pub struct Output {
    /// What commands write to: the newest bytes.
    pub reply: Reply,
    /// Full buffers, older than `reply`, the oldest first. Empty but for clients that are slower
    /// than their requests.
    full: VecDeque<Vec<u8>>,
    full_bytes: usize,
    /// Bytes of the oldest buffer that were sent.
    taken: usize,
    /// Stream offset of the first byte that was not sent.
    start: u64,
    /// Stream offset up to which the kernel may take bytes.
    releasable: u64,
    /// Stretches that wait: the record, and the stream offset where the stretch ends.
    held: VecDeque<(Sequence, u64)>,
    /// A command of the unit that runs wrote more than its bound: nothing of it is kept.
    is_over: bool,
}

impl Output {
    pub fn new(reply: Reply) -> Self {
        Self {
            reply,
            full: VecDeque::new(),
            full_bytes: 0,
            taken: 0,
            start: 0,
            releasable: 0,
            held: VecDeque::new(),
            is_over: false,
        }
    }

    /// A command begins: bounds what it writes, so that no more than `bytes_max` are pending. If an
    /// earlier one of its unit has exceeded that, nothing is taken any more.
    pub fn bound(&mut self, bytes_max: usize) {
        let room = if self.is_over { 0 } else { bytes_max.saturating_sub(self.pending_bytes()) };
        self.reply.bound(self.reply.len().saturating_add(room));
    }

    /// The command has ended: what others write is not bounded.
    pub fn unbound(&mut self) {
        self.is_over |= self.reply.unbound();
    }

    /// The unit has ended: whether its reply exceeded a bound. What is left of it means nothing.
    pub fn take_over(&mut self) -> bool {
        std::mem::take(&mut self.is_over)
    }

    /// Everything written since the last call waits for `observed`, unless that is durable.
    /// Returns the record to wait for if the output waits at all. What was written can no longer be
    /// truncated.
    pub fn hold(&mut self, observed: Sequence, durable: Sequence) -> Option<Sequence> {
        let end = self.end();
        self.spill();
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

    /// Stream offset behind the newest byte.
    pub fn end(&self) -> u64 {
        self.start + self.pending_bytes() as u64
    }

    /// Sets a full buffer aside, so that what follows is written to another: a reply of many parts
    /// neither grows one buffer by copying it nor needs all its room in one piece. The bytes belong
    /// to the running command still: [`Self::hold`] or [`Self::truncate`] decides about them.
    pub fn spill(&mut self) {
        if self.reply.len() < FULL_BYTES_MIN {
            return;
        }
        let mut full = self.reply.take();
        if full.len() <= SHRUNK_BYTES_MAX {
            full.shrink_to_fit();
        }
        self.full_bytes += full.len();
        self.full.push_back(full);
    }

    /// Takes back what was written behind the stream offset `end`, also where it was spilled.
    /// Nothing of it may have been given to [`Self::hold`].
    pub fn truncate(&mut self, end: u64) {
        let decided = self.held.back().map_or(self.releasable, |(_, stretch)| *stretch);
        assert!(end >= decided, "what is held or sent cannot be taken back");
        loop {
            let begin = self.end() - self.reply.len() as u64;
            if end >= begin {
                self.reply.truncate((end - begin) as usize);
                return;
            }
            let Some(full) = self.full.pop_back() else { return };
            self.full_bytes -= full.len();
            self.reply.put_back(full);
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

    /// Bytes that may be sent now, up to the end of a buffer: more may follow once they are sent.
    pub fn sendable(&self) -> &[u8] {
        let oldest = self.full.front().map_or(self.reply.bytes(), Vec::as_slice);
        let end = (self.taken as u64 + self.releasable - self.start).min(oldest.len() as u64);
        &oldest[self.taken..end as usize]
    }

    /// The kernel took `count` bytes of what was sendable.
    pub fn sent(&mut self, count: usize) {
        self.start += count as u64;
        self.taken += count;
        match self.full.front().map(Vec::len) {
            Some(len) if len == self.taken => {
                self.full.pop_front();
                self.full_bytes -= len;
                self.taken = 0;
            }
            None if self.reply.len() == self.taken => {
                self.reply.clear(KEPT_BYTES_MAX);
                self.taken = 0;
            }
            _ => {}
        }
    }

    /// Bytes that wait for the log.
    pub fn held_bytes(&self) -> usize {
        self.held.back().map_or(0, |(_, end)| (end - self.releasable) as usize)
    }

    /// Bytes not yet taken by the kernel, held ones included.
    pub fn pending_bytes(&self) -> usize {
        self.full_bytes + self.reply.len() - self.taken
    }

    /// Memory that the output occupies.
    pub fn allocated_bytes(&self) -> usize {
        self.full.iter().map(Vec::capacity).sum::<usize>() + self.reply.capacity()
    }
}

/// Capacity that an empty output keeps for its next replies, in bytes. As Redis's own reply
/// buffer.
const KEPT_BYTES_MAX: usize = 16 << 10;

/// Bytes after which a buffer counts as full, so that the next reply begins another. Large beside
/// the cost of a system call, small beside what a client may leave unread.
const FULL_BYTES_MIN: usize = 1 << 20;

/// Longest full buffer that gives back the room it has left, in bytes. Giving it back may copy the
/// bytes; room behind a longer one has never been touched, and costs next to nothing until then. A
/// guess: copying this takes about 1 ms.
const SHRUNK_BYTES_MAX: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const DURABLE: Sequence = Sequence(7);

    /// Sends at most `count` bytes as the loop would, appending them to `received`.
    fn send(output: &mut Output, count: usize, received: &mut Vec<u8>) -> usize {
        let count = output.sendable().len().min(count);
        received.extend_from_slice(&output.sendable()[..count]);
        output.sent(count);
        count
    }

    #[test]
    fn what_a_slow_client_takes_is_what_was_written() {
        let mut output = Output::new(Reply::default());
        let (mut written, mut received) = (Vec::new(), Vec::new());
        for round in 0..40_u32 {
            let bytes: Vec<u8> = (0..300_007).map(|at: u32| (at * 31 + round) as u8).collect();
            output.reply.raw(&bytes);
            written.extend_from_slice(&bytes);
            assert_eq!(output.hold(DURABLE, DURABLE), None);
            send(&mut output, 70_001, &mut received);
            assert_eq!(output.pending_bytes(), written.len() - received.len());
        }
        assert!(output.full.len() > 5, "the backlog spans buffers");
        while send(&mut output, 1_000_003, &mut received) > 0 {}
        assert!(written == received);
        assert_eq!(output.pending_bytes(), 0);
        assert!(output.allocated_bytes() <= KEPT_BYTES_MAX, "an empty output keeps little");
    }

    #[test]
    fn bytes_that_wait_for_the_log_are_not_sendable_across_buffers() {
        let mut output = Output::new(Reply::default());
        let mut received = Vec::new();
        output.reply.raw(&[1; FULL_BYTES_MIN]);
        assert_eq!(output.hold(DURABLE, DURABLE), None);
        output.reply.raw(&[2; FULL_BYTES_MIN + 5]);
        assert_eq!(output.hold(Sequence(8), DURABLE), Some(Sequence(8)));
        output.reply.raw(&[3; 10]);
        assert_eq!(output.hold(DURABLE, DURABLE), Some(Sequence(8)));
        assert_eq!(output.held_bytes(), FULL_BYTES_MIN + 15);
        while send(&mut output, usize::MAX, &mut received) > 0 {}
        assert_eq!(received.len(), FULL_BYTES_MIN);
        assert!(output.release(Sequence(8)));
        while send(&mut output, usize::MAX, &mut received) > 0 {}
        assert_eq!(received.len(), 2 * FULL_BYTES_MIN + 15);
        assert_eq!(received.last(), Some(&3));
        assert_eq!((output.held_bytes(), output.pending_bytes()), (0, 0));
    }

    #[test]
    fn a_reply_of_many_parts_lies_in_many_buffers_and_is_held_as_one() {
        let mut output = Output::new(Reply::default());
        let mut received = Vec::new();
        output.reply.ok();
        assert_eq!(output.hold(DURABLE, DURABLE), None);
        for part in 0..20 {
            output.reply.bulk(vec![part; FULL_BYTES_MIN]);
            output.spill();
            assert!(output.reply.is_empty(), "a full buffer is set aside");
            while send(&mut output, usize::MAX, &mut received) > 0 {}
        }
        let parts = output.pending_bytes();
        assert_eq!(received, b"+OK\r\n", "nothing leaves before it is known what it waits for");
        let largest = output.full.iter().map(Vec::capacity).max();
        assert!(largest < Some(FULL_BYTES_MIN + (FULL_BYTES_MIN >> 3)), "{largest:?}");
        assert_eq!(output.hold(Sequence(9), DURABLE), Some(Sequence(9)));
        assert!(!output.release(Sequence(8)));
        assert_eq!(output.held_bytes(), parts);
        assert!(output.release(Sequence(9)));
        received.clear();
        while send(&mut output, usize::MAX, &mut received) > 0 {}
        let mut expected = Reply::default();
        (0..20).for_each(|part| expected.bulk(vec![part; FULL_BYTES_MIN]));
        assert!(received == expected.bytes(), "in order, each byte once");
    }

    #[test]
    fn what_was_spilled_can_be_taken_back_until_it_is_held() {
        let mut output = Output::new(Reply::default());
        let mut received = Vec::new();
        output.reply.raw(&[1; 100]);
        assert_eq!(output.hold(DURABLE, DURABLE), None);
        assert_eq!(send(&mut output, 40, &mut received), 40);
        output.reply.raw(&[2; FULL_BYTES_MIN + 7]);
        assert_eq!(output.hold(Sequence(8), DURABLE), Some(Sequence(8)));
        let written = output.end();
        for _ in 0..3 {
            output.reply.raw(&[3; FULL_BYTES_MIN]);
            output.spill();
        }
        output.reply.raw(&[3; 9]);
        output.truncate(written);
        assert_eq!(output.end(), written);
        output.reply.raw(&[4; 5]);
        assert_eq!(output.hold(Sequence(9), DURABLE), Some(Sequence(9)));
        output.release(Sequence(9));
        while send(&mut output, usize::MAX, &mut received) > 0 {}
        let expected = [vec![1; 100], vec![2; FULL_BYTES_MIN + 7], vec![4; 5]].concat();
        assert!(received == expected);
        assert_eq!((output.pending_bytes(), output.held_bytes()), (0, 0));
    }

    #[test]
    fn a_unit_beyond_its_bound_leaves_nothing_and_takes_nothing_more() {
        let mut output = Output::new(Reply::default());
        let mut received = Vec::new();
        output.reply.raw(&[1; 100]);
        assert_eq!(output.hold(DURABLE, DURABLE), None);
        assert_eq!(send(&mut output, 40, &mut received), 40);
        let written = output.end();
        // Commands of one transaction; the third is too much.
        for _ in 0..5 {
            output.bound(3 * FULL_BYTES_MIN);
            output.reply.raw(&[2; FULL_BYTES_MIN + 7]);
            output.unbound();
            output.spill();
            assert!(output.pending_bytes() <= 3 * FULL_BYTES_MIN);
        }
        assert!(output.take_over());
        output.truncate(written);
        assert_eq!(output.pending_bytes(), 60);
        // The next unit is another.
        output.bound(70);
        output.reply.raw(&[3; 10]);
        output.unbound();
        assert!(!output.take_over());
        assert_eq!(output.hold(DURABLE, DURABLE), None);
        while send(&mut output, usize::MAX, &mut received) > 0 {}
        assert!(received == [vec![1; 100], vec![3; 10]].concat());
        output.bound(9);
        output.reply.raw(&[4; 10]);
        output.unbound();
        assert!(output.take_over() && output.pending_bytes() == 0);
    }
}
