//! A list as a chain of listpacks.
//!
//! One listpack for a whole list would move all of it on each insertion; one allocation for each
//! element would cost more than the element. So a list is cut into *nodes* of a few kilobytes.
//!
//! ```text
//! chunks   | elements, nodes | elements, nodes | …          up to 128 nodes each
//!                      │
//! nodes    | count, packed | count, packed | count, plain | …
//!                      │                              │
//!            listpack of ≤ 8 KiB             one very large element
//! ```
//! Redis links its nodes and walks them to reach an index. Here they stand in arrays, and a chunk
//! knows how many elements it holds: an index costs a look at each chunk, then at each node of one
//! chunk. A million elements of 100 bytes are 12,500 nodes, so about a hundred of each.
//!
//! Where nodes begin and end follows Redis, as DUMP shows it; list compression does not exist here
//! (`list-compress-depth` is accepted and has no effect).

mod edit;
mod iter;
mod node;
mod spine;
#[cfg(test)]
mod tests;
#[cfg(any(test, feature = "twins"))]
pub(crate) mod twin;

pub use iter::Iter;
pub use node::{NodeLimits, NodeRef};

use crate::listpack::{Item, Listpack};
use crate::mover::Mover;
use node::Node;
use spine::Spine;

/// A list of so many nodes will probably fill the next one too, so that one gets all its room at
/// once instead of being moved a dozen times; what may stay unused is little beside the others.
const LONG_LIST_NODES: usize = 16;

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    Front,
    Back,
}

/// A list of byte strings.
#[derive(Clone)]
pub struct Quicklist {
    spine: Spine,
    /// Fixed when the list is made, as in Redis: a changed setting holds for new lists.
    limits: NodeLimits,
}

impl Quicklist {
    pub fn new(limits: NodeLimits) -> Self {
        Self { spine: Spine::default(), limits }
    }

    pub fn len(&self) -> usize {
        self.spine.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn push(&mut self, end: End, text: &[u8]) {
        let edge = match end {
            End::Front => self.spine.first(),
            End::Back => self.spine.last(),
        };
        let Some(place) = edge else {
            return self.spine.push_node(end, self.limits.node_of(text, false));
        };
        if self.limits.allows(self.spine.node(place), text.len()) {
            return self.spine.edit(place, |node| node.push(end, text));
        }
        self.spine.edit(place, Node::shrink);
        let is_long = self.spine.nodes_len() >= LONG_LIST_NODES;
        self.spine.push_node(end, self.limits.node_of(text, is_long));
    }

    pub fn push_front(&mut self, text: &[u8]) {
        self.push(End::Front, text);
    }

    pub fn push_back(&mut self, text: &[u8]) {
        self.push(End::Back, text);
    }

    /// Removes and returns the element at one end.
    pub fn pop(&mut self, end: End) -> Option<Vec<u8>> {
        let place = match end {
            End::Front => self.spine.first(),
            End::Back => self.spine.last(),
        }?;
        if self.spine.node(place).count() == 1 {
            return Some(self.spine.remove_node(place).into_only_element());
        }
        self.spine.edit(place, |node| node.pop(end))
    }

    pub fn pop_front(&mut self) -> Option<Vec<u8>> {
        self.pop(End::Front)
    }

    pub fn pop_back(&mut self) -> Option<Vec<u8>> {
        self.pop(End::Back)
    }

    /// The element at `index`, counted from the front.
    pub fn get(&self, index: usize) -> Option<Item<'_>> {
        let (place, offset) = self.spine.locate(index)?;
        self.spine.node(place).get(offset)
    }

    /// All elements, from either end.
    pub fn iter(&self) -> Iter<'_> {
        self.range(0..self.len())
    }

    /// The elements from `indexes.start` up to `indexes.end`, which may lie past the last one.
    pub fn range(&self, indexes: std::ops::Range<usize>) -> Iter<'_> {
        Iter::new(&self.spine, indexes)
    }

    /// The index of the first element equal to `text`.
    pub fn position(&self, text: &[u8]) -> Option<usize> {
        self.iter().position(|item| item.equals(text))
    }

    /// The nodes, in order, as an RDB file stores them.
    pub fn nodes(&self) -> impl Iterator<Item = NodeRef<'_>> {
        self.spine.nodes().map(Node::view)
    }

    /// As [`Self::nodes`] behind the first `count`, for who reads a long list in pieces.
    pub fn nodes_behind(&self, count: usize) -> impl Iterator<Item = NodeRef<'_>> {
        self.spine.nodes_behind(count).map(Node::view)
    }

    pub fn node_count(&self) -> usize {
        self.spine.nodes_len()
    }

    /// Adds a node from an RDB file behind the others. An empty one is left out: no list that
    /// Redis writes has one, and no place may point into it.
    pub fn push_packed_node(&mut self, pack: Listpack) {
        if !pack.is_empty() {
            self.spine.push_node(End::Back, Node::packed(pack));
        }
    }

    /// Adds an element from an RDB file as a node of its own.
    pub fn push_plain_node(&mut self, element: Vec<u8>) {
        self.spine.push_node(End::Back, Node::plain(element.into()));
    }

    /// Moves what `mover` takes of up to `nodes_max` nodes from the one with `from` nodes before it
    /// on. Returns where to go on, `None` at the end.
    pub fn move_blocks(
        &mut self,
        from: usize,
        nodes_max: usize,
        mover: &mut Mover<'_>,
    ) -> Option<usize> {
        let mut next = self.spine.place_of(from);
        for _ in 0..nodes_max {
            let place = next?;
            self.spine.edit(place, |node| node.move_block(mover));
            next = self.spine.next(place);
        }
        next.map(|_| from.saturating_add(nodes_max))
    }

    /// Bytes of memory behind the list, without the struct itself. O(1).
    pub fn allocated_bytes(&self) -> usize {
        self.spine.allocated_bytes()
    }
}

impl std::fmt::Debug for Quicklist {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
