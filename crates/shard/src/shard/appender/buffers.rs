//! The buffers of records, used again once the log has dropped them.
//!
//! A record of a busy turn has some hundred KiB. Taken anew each time, its memory costs a fault for
//! each page, and a copy for each doubling while it grows: a twelfth of what a short write costs.

use bytes::{Bytes, BytesMut};
use std::collections::VecDeque;
use txlog::{empty_record, record};

/// Buffers that are remembered: of the records under way, of the next one, and of a unit.
const KEPT: usize = 4;

/// A larger buffer is given back to the allocator.
const KEPT_BYTES_MAX: usize = 1 << 20;

/// Records that were handed over, the oldest first. Whoever keeps one longer keeps its memory too,
/// as before.
#[derive(Default)]
pub(super) struct Buffers(VecDeque<Bytes>);

impl Buffers {
    /// Remembers the buffer of a record that is handed over.
    pub fn lend(&mut self, record: &Bytes) {
        if record.len() <= KEPT_BYTES_MAX {
            self.0.truncate(KEPT - 1);
            self.0.push_front(record.clone());
        }
    }

    /// A buffer that has room for a record's header at its front, and nothing else: one that was
    /// used before if nobody else has it any more, or a new one for so many bytes.
    pub fn take(&mut self, bytes: usize) -> BytesMut {
        let unused = self.0.iter().rposition(Bytes::is_unique);
        let used = unused.and_then(|at| self.0.remove(at)?.try_into_mut().ok());
        let used = used.filter(|buffer| buffer.capacity() <= KEPT_BYTES_MAX);
        let Some(mut buffer) = used else {
            return empty_record(bytes.min(KEPT_BYTES_MAX));
        };
        buffer.clear();
        buffer.resize(record::HEADER_BYTES, 0);
        buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(length: usize) -> Bytes {
        BytesMut::zeroed(length).freeze()
    }

    #[test]
    fn a_buffer_is_used_again_when_nobody_else_has_it() {
        let mut buffers = Buffers::default();
        let first = record(5000);
        buffers.lend(&first);
        let other = buffers.take(100);
        assert!(other.capacity() < 5000, "the log still has the first");
        let place = first.as_ptr();
        drop(first);
        let again = buffers.take(100);
        assert_eq!((again.as_ptr(), again.len()), (place, record::HEADER_BYTES));
        assert!(again.capacity() >= 5000);
        assert!(again.iter().all(|byte| *byte == 0));
        assert_ne!(buffers.take(100).as_ptr(), place, "it was taken");
    }

    #[test]
    fn few_are_kept_and_none_that_is_large() {
        let mut buffers = Buffers::default();
        for _ in 0..3 * KEPT {
            buffers.lend(&record(3000));
            buffers.lend(&record(KEPT_BYTES_MAX + 1));
        }
        assert_eq!(buffers.0.len(), KEPT);
        assert!(buffers.0.iter().all(|record| record.len() == 3000));
        assert!(buffers.take(usize::MAX).capacity() <= KEPT_BYTES_MAX);
    }
}
