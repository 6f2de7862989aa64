//! One connection's replies, withheld until what they reveal is durable.
//!
//! ```text
//! bytes   | sent | releasable | held until record 8 | held until record 9 |
//!                 ^ kernel takes these     ^ ends of held stretches
//! ```
//! Replies leave in the order of the requests: a reply that waits for nothing still waits behind
//! one that does.

use base::Sequence;
use base::driver::Sent;
use resp::{Protocol, Reply};
use std::collections::VecDeque;
use std::ops::Range;

/// Reply bytes of one connection, encoded at execution. They lie in pieces that are never moved:
/// whatever waits, a byte is written once and sent once.
pub struct Output {
    /// All bytes that were not sent, and what of the oldest piece was.
    pub reply: Reply,
    /// Bytes of the oldest piece that were sent.
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

impl Default for Output {
    fn default() -> Self {
        Self::of(Reply::in_pieces(Protocol::default()))
    }
}

impl Output {
    /// An output without a connection, for the reply of a command that a script calls, in this
    /// empty buffer.
    pub fn apart(buffer: Vec<u8>, protocol: Protocol) -> Self {
        Self::of(Reply::over(buffer, protocol))
    }

    fn of(reply: Reply) -> Self {
        Self { reply, taken: 0, start: 0, releasable: 0, held: VecDeque::new(), is_over: false }
    }

    /// Removes and returns the bytes behind the stream offset `end`, as [`Self::truncate`] removes
    /// them. They can be written again.
    pub fn take_back(&mut self, end: u64) -> Vec<u8> {
        let left = (end - self.start) as usize;
        let taken = self.reply.split_off(self.taken + left);
        self.truncate(end);
        taken
    }

    /// A command begins: bounds what it writes, so that no more than `bytes_max` are pending. If an
    /// earlier one of its unit has exceeded that, nothing is taken any more.
    pub fn bound(&mut self, bytes_max: usize) {
        let room = if self.is_over { 0 } else { bytes_max.saturating_sub(self.pending_bytes()) };
        self.reply.begin_with(KEPT_BYTES_MIN);
        self.reply.bound(self.reply.len().saturating_add(room));
    }

    /// The command has ended: what others write is not bounded.
    pub fn unbound(&mut self) {
        self.is_over |= self.reply.unbound();
    }

    /// Notes that bytes built elsewhere exceeded their bound there, if `is_over`.
    pub fn note_over(&mut self, is_over: bool) {
        self.is_over |= is_over;
    }

    /// Whether the unit's reply has exceeded a bound.
    pub fn is_over(&self) -> bool {
        self.is_over
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

    /// Takes back what was written behind the stream offset `end`. Nothing of it may have been
    /// given to [`Self::hold`].
    pub fn truncate(&mut self, end: u64) {
        let decided = self.held.back().map_or(self.releasable, |(_, stretch)| *stretch);
        assert!(end >= decided, "what is held or sent cannot be taken back");
        let left = (end - self.start) as usize;
        self.reply.truncate(self.taken + left);
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

    /// Bytes that may be sent now, up to the end of a piece: more may follow once they are sent.
    pub fn sendable_bytes(&self) -> usize {
        let releasable = self.releasable - self.start;
        releasable.min((self.reply.oldest().len() - self.taken) as u64) as usize
    }

    /// Offers the first `count` of the bytes that may be sent to `send`, as a range of the buffer
    /// in which they lie. It may take the buffer if it reports all of it as sent, and nothing is
    /// behind the range.
    pub fn offer(
        &mut self,
        count: usize,
        send: impl FnOnce(&mut Vec<u8>, Range<usize>) -> Sent,
    ) -> Sent {
        let range = self.taken..self.taken + count;
        let (sent, end) = self.reply.with_oldest(|piece| {
            let end = piece.len();
            (send(piece, range), end)
        });
        if let Sent::Bytes(count) = sent {
            self.start += count as u64;
            self.taken += count;
            if self.taken == end {
                self.reply.drop_oldest(KEPT_BYTES_MAX);
                self.taken = 0;
            }
        }
        sent
    }

    /// Bytes that wait for the log.
    pub fn held_bytes(&self) -> usize {
        self.held.back().map_or(0, |(_, end)| (end - self.releasable) as usize)
    }

    /// Bytes not yet taken by the kernel, held ones included.
    pub fn pending_bytes(&self) -> usize {
        self.reply.len() - self.taken
    }

    /// The client is idle: gives back the room that a short reply does not need.
    pub fn trim(&mut self) {
        self.reply.shrink_to(KEPT_BYTES_MIN);
    }

    /// Takes all the room that it may keep, so that no short reply changes how much it occupies, as
    /// long as the driver leaves it its buffer.
    pub fn fill_up(&mut self) {
        self.reply.grow_to(KEPT_BYTES_MAX);
    }

    /// Memory that the output occupies.
    pub fn allocated_bytes(&self) -> usize {
        self.reply.capacity()
    }
}

/// Capacity that an empty output keeps for its next replies, in bytes. As Redis's own reply
/// buffer.
const KEPT_BYTES_MAX: usize = 16 << 10;

/// Capacity with which an output begins, and that one keeps whose client is idle, in bytes. As in
/// Redis (PROTO_REPLY_MIN_BYTES).
const KEPT_BYTES_MIN: usize = 1 << 10;

#[cfg(test)]
mod tests {
    use super::*;
    use resp::encode::PIECE_BYTES;

    const DURABLE: Sequence = Sequence(7);

    /// Sends at most `count` bytes as the loop would, appending them to `received`.
    fn send(output: &mut Output, count: usize, received: &mut Vec<u8>) -> usize {
        let count = output.sendable_bytes().min(count);
        let sent = output.offer(count, |buffer, range| {
            received.extend_from_slice(&buffer[range.clone()]);
            // As a driver may that goes on with the buffer elsewhere.
            if range.end == buffer.len() && count.is_multiple_of(2) {
                drop(std::mem::take(buffer));
            }
            Sent::Bytes(count)
        });
        assert_eq!(sent, Sent::Bytes(count));
        count
    }

    #[test]
    fn what_a_slow_client_takes_is_what_was_written() {
        let mut output = Output::default();
        let (mut written, mut received) = (Vec::new(), Vec::new());
        for round in 0..40_u32 {
            let bytes: Vec<u8> = (0..300_007).map(|at: u32| (at * 31 + round) as u8).collect();
            output.reply.raw(&bytes);
            written.extend_from_slice(&bytes);
            assert_eq!(output.hold(DURABLE, DURABLE), None);
            send(&mut output, 70_001, &mut received);
            assert_eq!(output.pending_bytes(), written.len() - received.len());
        }
        assert!(output.reply.oldest().len() < output.pending_bytes() / 5, "pieces");
        while send(&mut output, 1_000_003, &mut received) > 0 {}
        assert!(written == received);
        assert_eq!(output.pending_bytes(), 0);
        assert!(output.allocated_bytes() <= KEPT_BYTES_MAX, "an empty output keeps little");
    }

    #[test]
    fn an_output_begins_small_and_is_small_again_when_its_client_is_idle() {
        let mut output = Output::default();
        assert_eq!(output.allocated_bytes(), 0, "whoever is told nothing takes nothing");
        output.bound(usize::MAX);
        output.reply.ok();
        output.unbound();
        assert_eq!(output.allocated_bytes(), KEPT_BYTES_MIN);
        output.reply.raw(&[1; 5000]);
        output.trim();
        assert!(output.allocated_bytes() >= 5000, "nothing is lost");
        output.hold(DURABLE, DURABLE);
        while send(&mut output, usize::MAX, &mut Vec::new()) > 0 {}
        output.trim();
        assert!(output.allocated_bytes() <= KEPT_BYTES_MIN);
    }

    /// Redis's suite sets `maxmemory-clients` by what a client occupied when it was last looked at,
    /// to the byte.
    #[test]
    fn no_short_reply_changes_what_a_full_output_occupies() {
        let mut output = Output::default();
        output.fill_up();
        for bytes in [1, 1025, 3_001, 3_003, KEPT_BYTES_MAX - 1, 7] {
            output.bound(usize::MAX);
            output.reply.raw(&vec![1; bytes]);
            output.unbound();
            output.hold(DURABLE, DURABLE);
            send(&mut output, usize::MAX, &mut Vec::new());
            assert_eq!(output.allocated_bytes(), KEPT_BYTES_MAX, "{bytes}");
        }
    }

    #[test]
    fn bytes_that_wait_for_the_log_are_not_sendable_across_pieces() {
        let mut output = Output::default();
        let mut received = Vec::new();
        output.reply.raw(&[1; PIECE_BYTES]);
        assert_eq!(output.hold(DURABLE, DURABLE), None);
        output.reply.raw(&[2; PIECE_BYTES + 5]);
        assert_eq!(output.hold(Sequence(8), DURABLE), Some(Sequence(8)));
        output.reply.raw(&[3; 10]);
        assert_eq!(output.hold(DURABLE, DURABLE), Some(Sequence(8)));
        assert_eq!(output.held_bytes(), PIECE_BYTES + 15);
        while send(&mut output, usize::MAX, &mut received) > 0 {}
        assert_eq!(received.len(), PIECE_BYTES);
        assert!(output.release(Sequence(8)));
        while send(&mut output, usize::MAX, &mut received) > 0 {}
        assert_eq!(received.len(), 2 * PIECE_BYTES + 15);
        assert_eq!(received.last(), Some(&3));
        assert_eq!((output.held_bytes(), output.pending_bytes()), (0, 0));
    }

    #[test]
    fn a_reply_of_many_parts_lies_in_many_pieces_and_is_held_as_one() {
        let mut output = Output::default();
        let mut received = Vec::new();
        output.reply.ok();
        assert_eq!(output.hold(DURABLE, DURABLE), None);
        for part in 0..20 {
            output.reply.bulk(vec![part; PIECE_BYTES]);
            while send(&mut output, usize::MAX, &mut received) > 0 {}
        }
        let parts = output.pending_bytes();
        assert_eq!(received, b"+OK\r\n", "nothing leaves before it is known what it waits for");
        assert!(output.allocated_bytes() < parts + PIECE_BYTES);
        assert_eq!(output.hold(Sequence(9), DURABLE), Some(Sequence(9)));
        assert!(!output.release(Sequence(8)));
        assert_eq!(output.held_bytes(), parts);
        assert!(output.release(Sequence(9)));
        received.clear();
        while send(&mut output, usize::MAX, &mut received) > 0 {}
        let mut expected = Reply::default();
        (0..20).for_each(|part| expected.bulk(vec![part; PIECE_BYTES]));
        assert!(received == expected.bytes(), "in order, each byte once");
    }

    #[test]
    fn what_is_in_many_pieces_can_be_taken_back_until_it_is_held() {
        let mut output = Output::default();
        let mut received = Vec::new();
        output.reply.raw(&[1; 100]);
        assert_eq!(output.hold(DURABLE, DURABLE), None);
        assert_eq!(send(&mut output, 40, &mut received), 40);
        output.reply.raw(&[2; PIECE_BYTES + 7]);
        assert_eq!(output.hold(Sequence(8), DURABLE), Some(Sequence(8)));
        let written = output.end();
        for _ in 0..3 {
            output.reply.raw(&[3; PIECE_BYTES]);
        }
        output.reply.raw(&[3; 9]);
        output.truncate(written);
        assert_eq!(output.end(), written);
        output.reply.raw(&[4; 5]);
        assert_eq!(output.hold(Sequence(9), DURABLE), Some(Sequence(9)));
        output.release(Sequence(9));
        while send(&mut output, usize::MAX, &mut received) > 0 {}
        let expected = [vec![1; 100], vec![2; PIECE_BYTES + 7], vec![4; 5]].concat();
        assert!(received == expected);
        assert_eq!((output.pending_bytes(), output.held_bytes()), (0, 0));
    }

    #[test]
    fn a_unit_beyond_its_bound_leaves_nothing_and_takes_nothing_more() {
        let mut output = Output::default();
        let mut received = Vec::new();
        output.reply.raw(&[1; 100]);
        assert_eq!(output.hold(DURABLE, DURABLE), None);
        assert_eq!(send(&mut output, 40, &mut received), 40);
        let written = output.end();
        // Commands of one transaction; the third is too much.
        for _ in 0..5 {
            output.bound(3 * PIECE_BYTES);
            output.reply.raw(&[2; PIECE_BYTES + 7]);
            output.unbound();
            assert!(output.pending_bytes() <= 3 * PIECE_BYTES);
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
