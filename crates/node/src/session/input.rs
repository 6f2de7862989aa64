//! The bytes that a client sent: received, decoded, executed.

#[cfg(test)]
mod tests;

use crate::limits::RECEIVED_BYTES;
use base::driver::Received;
use resp::Decoder;

/// How far an input receives, in bytes.
pub struct Bounds {
    /// With so many unexecuted, only the rest of a request in the making is received.
    pub unexecuted_max: usize,
    /// In one turn, about.
    pub turn_max: usize,
    /// With so many unexecuted, what is there is decoded first. If that takes nothing away, one
    /// more is received, to see that the client is over its limit.
    pub waiting_max: usize,
}

/// What receiving in one turn came to.
#[derive(Default)]
pub struct Receipt {
    pub bytes: usize,
    /// Bytes that lay here and were copied because the buffer grew.
    pub moved: usize,
    /// How often bytes were asked for.
    pub reads: u64,
    /// So much waits for execution that nothing more was asked for.
    pub is_full: bool,
    /// Everything that the peer sent has been received, and the end of it.
    pub has_closed: bool,
}

impl Receipt {
    /// The cost of receiving, in bytes received: bytes that were moved count in part.
    pub fn cost(&self) -> usize {
        self.bytes + self.moved / MOVED_PER_RECEIVED
    }
}

/// Received bytes, decoded up to `parsed` and executed up to `consumed`.
pub struct Input {
    pub bytes: Vec<u8>,
    pub consumed: usize,
    pub parsed: usize,
    /// Bytes that the request in the making still needs at least: the rest of an argument whose
    /// length is known, else 1. 0: nothing is known to be in the making.
    pub wanted: usize,
    /// While its requests execute, the bytes are elsewhere: how many wait, and the room of their
    /// buffer in all.
    pub executing: (usize, usize),
    /// The most bytes that lay here at a time since the last trim.
    pub peak: usize,
    pub decoder: Decoder,
}

/// Capacity beyond which an input that does not need it is trimmed. As Redis
/// (PROTO_RESIZE_THRESHOLD).
const KEPT_BYTES_MAX: usize = 32 << 10;

/// A request is long from here on: its buffer is made for it. As Redis (PROTO_MBULK_BIG_ARG).
const LONG_REQUEST_BYTES_MIN: usize = 32 << 10;

/// Unexecuted bytes that are moved to the front of an input however few were executed.
const MOVED_BYTES_MAX: usize = 64 << 10;

/// Bytes that are copied within memory, which may be fresh, in the time in which one is received,
/// about.
pub(crate) const MOVED_PER_RECEIVED: usize = 8;

/// Bytes received in one call at most: a big bulk arrives in such pieces.
const RECEIVE_BYTES_MAX: usize = 1 << 20;

impl Input {
    pub fn new() -> Self {
        Self {
            bytes: Vec::new(),
            consumed: 0,
            parsed: 0,
            wanted: 0,
            executing: (0, 0),
            peak: 0,
            decoder: Decoder::default(),
        }
    }

    /// Bytes that were received and not executed. None while they are out for execution.
    pub fn waiting_bytes(&self) -> usize {
        self.bytes.len().saturating_sub(self.consumed)
    }

    /// Memory that the buffer occupies, wherever it is.
    pub fn allocated_bytes(&self) -> usize {
        self.bytes.capacity() + self.executing.1
    }

    /// Received bytes of which the decoder has made nothing yet: neither executed nor an argument
    /// of a request that is still to end.
    pub fn undecoded_bytes(&self) -> usize {
        self.waiting_bytes().saturating_sub(self.decoder.understood_bytes())
    }

    /// Whether there is room to receive more.
    pub fn has_room(&self, unexecuted_max: usize) -> bool {
        self.room(unexecuted_max) > 0
    }

    /// How many bytes to receive at once; 0 while `unexecuted_max` lie unexecuted.
    fn room(&self, unexecuted_max: usize) -> usize {
        if self.waiting_bytes() >= unexecuted_max && self.wanted == 0 {
            return 0;
        }
        self.wanted.clamp(RECEIVED_BYTES, RECEIVE_BYTES_MAX)
    }

    /// Receives by `receive`, which appends so many bytes at most, until there are no more or a
    /// bound is reached.
    pub fn receive(
        &mut self,
        bounds: &Bounds,
        mut receive: impl FnMut(&mut Vec<u8>, usize) -> Received,
    ) -> Receipt {
        let mut receipt = Receipt::default();
        while receipt.cost() < bounds.turn_max {
            let room = self.room(bounds.unexecuted_max);
            if room == 0 {
                receipt.is_full = true;
                break;
            }
            let allowed = bounds.waiting_max.saturating_sub(self.waiting_bytes()).max(1);
            let (lying, capacity) = (self.bytes.len(), self.bytes.capacity());
            let room = self.make_room(room).min(allowed);
            receipt.reads += 1;
            let received = receive(&mut self.bytes, room);
            if self.bytes.capacity() > capacity {
                receipt.moved += lying;
            }
            match received {
                Received::Bytes { count, more } => {
                    receipt.bytes += count;
                    let is_whole = self.note_received(count);
                    let over = self.waiting_bytes().checked_sub(bounds.waiting_max);
                    let is_at_limit = over.is_some_and(|over| over > 0 || self.wanted == 0);
                    if is_whole || is_at_limit || !more {
                        break;
                    }
                }
                Received::WouldBlock => break,
                Received::Closed => {
                    receipt.has_closed = true;
                    break;
                }
            }
        }
        receipt
    }

    /// Grows the buffer for the rest of a long request. If that is known, the buffer ends where the
    /// request does, and not up to twice as far. If not, as between arguments, it grows by a
    /// quarter. Returns how many bytes to receive now: `room` for a request that is not long.
    pub fn make_room(&mut self, room: usize) -> usize {
        if self.wanted == 0 || self.waiting_bytes() + self.wanted <= LONG_REQUEST_BYTES_MIN {
            return room;
        }
        let (length, capacity) = (self.bytes.len(), self.bytes.capacity());
        if capacity - length < self.wanted.min(RECEIVE_BYTES_MAX) {
            let is_known = self.wanted >= RECEIVED_BYTES;
            let needed = if is_known { self.wanted } else { RECEIVED_BYTES.max(capacity / 4) };
            let doubled = capacity.saturating_mul(2) - length;
            let more = doubled.clamp(needed.min(RECEIVE_BYTES_MAX), needed);
            // What would be left then may be less than one piece.
            let more = if needed - more < RECEIVED_BYTES { needed } else { more };
            self.bytes.reserve_exact(more);
        }
        (self.bytes.capacity() - length).min(RECEIVE_BYTES_MAX)
    }

    /// Takes note of bytes that were received. Returns whether they are decoded before more is
    /// received: if the rest of the request as far as it was known is here, and much waits. So the
    /// length of the next request is known before the buffer grows for it.
    fn note_received(&mut self, count: usize) -> bool {
        self.wanted = self.wanted.saturating_sub(count);
        self.wanted == 0 && self.waiting_bytes() > LONG_REQUEST_BYTES_MIN
    }

    /// Whether every byte received was executed.
    pub fn is_empty(&self) -> bool {
        self.consumed == self.bytes.len()
    }

    /// Forgets what was parsed ahead: it will be parsed again.
    pub fn rewind(&mut self) {
        // Until it is parsed again, nothing is wanted: who is blocked amid a request is held back.
        self.wanted = 0;
        if self.parsed != self.consumed {
            self.parsed = self.consumed;
            self.decoder = Decoder::new(self.decoder.limits);
        }
    }

    /// Gives capacity back that was not needed since the last call: all of it if the client is
    /// idle. Called now and then, so that a busy client's buffer is not resized for each request.
    pub fn trim(&mut self, is_idle: bool) {
        let peak = std::mem::replace(&mut self.peak, 0);
        if !self.bytes.is_empty() {
            return;
        }
        if is_idle {
            self.bytes = Vec::new();
        } else if self.bytes.capacity() > KEPT_BYTES_MAX && self.bytes.capacity() > 2 * peak {
            self.bytes.shrink_to(peak.max(RECEIVED_BYTES));
        }
    }

    /// Drops executed bytes from `bytes`, the input's own buffer, which is out for execution.
    /// Unless what follows them is so long that moving it costs more than executing did.
    pub fn compact(&mut self, bytes: &mut Vec<u8>) {
        if bytes.len() - self.consumed > self.consumed.max(MOVED_BYTES_MAX) {
            return;
        }
        bytes.drain(..self.consumed);
        self.parsed -= self.consumed;
        self.consumed = 0;
    }
}
