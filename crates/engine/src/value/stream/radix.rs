//! How many nodes Redis's radix tree of a stream's blocks would have, which XINFO shows.
//!
//! The tree's keys are IDs, of sixteen bytes each. Where keys part is a node, a fork; so is each
//! stretch of bytes between forks, but for the one byte that chooses a branch, and each end.
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
    /// The number of nodes, by going through all blocks.
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

/// A node at this depth and the stretch before it, from the next fork above or from the root on.
fn below(depth: usize, fork: Option<usize>) -> usize {
    let stretch_from = fork.map_or(0, |fork| fork + 1);
    1 + usize::from(depth > stretch_from)
}

/// Bytes that two IDs begin with in common.
fn shared_bytes(left: StreamId, right: StreamId) -> usize {
    let differing = u128::from(left) ^ u128::from(right);
    differing.leading_zeros() as usize / 8
}
