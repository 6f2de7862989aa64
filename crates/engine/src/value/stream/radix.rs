//! The number of nodes of Redis's radix tree of a stream's blocks, which XINFO shows.
//!
//! The tree's keys are the blocks' base IDs, of sixteen bytes each. There is a node for each fork
//! (where keys differ), for each stretch of bytes between forks without the byte that chooses a
//! branch, and for each end.
//!
//! ```text
//! root stretch ── fork ─┬─ 1 ── stretch ── end
//!                       └─ 2 ── fork ─┬─ 0 ── end
//!                                     └─ 7 ── end
//! ```

use super::Stream;
use crate::stream_id::StreamId;
use crate::work::Work;

impl Stream {
    /// The number of nodes, computed from all blocks.
    pub fn radix_nodes(&self, work: &Work) -> usize {
        let mut ids = self.blocks.keys();
        let Some(mut before) = ids.next() else { return 1 };
        // The depths of the forks above the last key, from the root down.
        let mut forks: Vec<usize> = Vec::new();
        let (mut nodes, mut fork_before) = (0, None);
        for id in ids {
            work.step();
            let fork = shared_bytes(*before, *id);
            nodes += below(StreamId::BYTES, fork_before.max(Some(fork)));
            while let Some(depth) = forks.pop_if(|depth| *depth > fork) {
                nodes += below(depth, forks.last().copied().max(Some(fork)));
            }
            if forks.last() != Some(&fork) {
                forks.push(fork);
            }
            (before, fork_before) = (id, Some(fork));
        }
        nodes += below(StreamId::BYTES, fork_before);
        while let Some(depth) = forks.pop() {
            nodes += below(depth, forks.last().copied());
        }
        nodes
    }
}

/// The nodes added by a fork or an end at this depth: itself, and the stretch below the next fork
/// above it (`None`: below the root), if there is one.
fn below(depth: usize, fork: Option<usize>) -> usize {
    let stretch_from = fork.map_or(0, |fork| fork + 1);
    1 + usize::from(depth > stretch_from)
}

/// The number of leading bytes that two IDs share.
fn shared_bytes(left: StreamId, right: StreamId) -> usize {
    let differing = u128::from(left) ^ u128::from(right);
    differing.leading_zeros() as usize / 8
}
