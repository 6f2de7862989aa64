//! Which node holds an index: nodes in chunks that know how many elements they hold.

use super::End;
use super::node::Node;
use std::collections::VecDeque;

/// Nodes in a full chunk. Lists of 10,000 nodes have chunks and nodes in equal number. A guess.
const CHUNK_NODES_MAX: usize = 128;

/// A chunk of fewer nodes joins a neighbour if the two stay below half of the maximum.
const CHUNK_NODES_MIN: usize = CHUNK_NODES_MAX / 8;

#[derive(Clone)]
struct Chunk {
    /// Elements in all nodes of the chunk.
    len: usize,
    nodes: VecDeque<Node>,
}

/// The index of a node. Stale once a node was added or removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeIndex {
    chunk: usize,
    node: usize,
}

#[derive(Default)]
pub(super) struct Spine {
    /// None of them is empty.
    chunks: VecDeque<Chunk>,
    len: usize,
    /// Bytes behind the chunks: their room for nodes, and what the nodes own. Kept in step, because
    /// memory is accounted at every change of a list, however long it is.
    bytes: usize,
}

/// A copy has no spare room, so its bytes are counted anew.
impl Clone for Spine {
    fn clone(&self) -> Self {
        let chunks = self.chunks.clone();
        let bytes = chunks.iter().map(Chunk::bytes).sum();
        Self { chunks, len: self.len, bytes }
    }
}

impl Chunk {
    /// Room for exactly one node: most lists never have a second.
    fn of(node: Node) -> Self {
        let mut nodes = VecDeque::with_capacity(1);
        let len = node.count();
        nodes.push_back(node);
        Self { len, nodes }
    }

    /// Bytes of the room for nodes.
    fn room(&self) -> usize {
        self.nodes.capacity() * size_of::<Node>()
    }

    /// Bytes behind the chunk, those of its nodes included.
    fn bytes(&self) -> usize {
        self.room() + self.nodes.iter().map(Node::allocated_bytes).sum::<usize>()
    }
}

impl Spine {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn nodes(&self) -> impl Iterator<Item = &Node> {
        self.chunks.iter().flat_map(|chunk| &chunk.nodes)
    }

    /// All nodes but the first `count`, which are passed over by the chunk.
    pub(super) fn nodes_behind(&self, count: usize) -> impl Iterator<Item = &Node> {
        let (mut chunk, mut left) = (0, count);
        while let Some(passed) = self.chunks.get(chunk)
            && passed.nodes.len() <= left
        {
            left -= passed.nodes.len();
            chunk += 1;
        }
        self.chunks.range(chunk..).flat_map(|chunk| &chunk.nodes).skip(left)
    }

    pub(super) fn nodes_len(&self) -> usize {
        self.chunks.iter().map(|chunk| chunk.nodes.len()).sum()
    }

    pub(super) fn node(&self, place: NodeIndex) -> &Node {
        &self.chunks[place.chunk].nodes[place.node]
    }

    pub(super) fn first(&self) -> Option<NodeIndex> {
        (!self.chunks.is_empty()).then_some(NodeIndex { chunk: 0, node: 0 })
    }

    pub(super) fn last(&self) -> Option<NodeIndex> {
        let chunk = self.chunks.len().checked_sub(1)?;
        Some(NodeIndex { chunk, node: self.chunks[chunk].nodes.len() - 1 })
    }

    pub(super) fn next(&self, place: NodeIndex) -> Option<NodeIndex> {
        if place.node + 1 < self.chunks[place.chunk].nodes.len() {
            return Some(NodeIndex { node: place.node + 1, ..place });
        }
        let chunk = place.chunk + 1;
        (chunk < self.chunks.len()).then_some(NodeIndex { chunk, node: 0 })
    }

    pub(super) fn prev(&self, place: NodeIndex) -> Option<NodeIndex> {
        if let Some(node) = place.node.checked_sub(1) {
            return Some(NodeIndex { node, ..place });
        }
        let chunk = place.chunk.checked_sub(1)?;
        Some(NodeIndex { chunk, node: self.chunks[chunk].nodes.len() - 1 })
    }

    /// The node that holds element `index`, and the element's place in the node. Looks at chunks,
    /// and then at nodes, from the nearer end.
    pub(super) fn locate(&self, index: usize) -> Option<(NodeIndex, usize)> {
        if index >= self.len {
            return None;
        }
        let chunks = self.chunks.iter().map(|chunk| chunk.len);
        let (chunk, rest) = nearer_end(chunks, self.len, index)?;
        let nodes = self.chunks[chunk].nodes.iter().map(Node::count);
        let (node, offset) = nearer_end(nodes, self.chunks[chunk].len, rest)?;
        Some((NodeIndex { chunk, node }, offset))
    }

    /// Changes a node in place and keeps the counts true. The node must not become empty, unless
    /// the caller removes it next.
    pub(super) fn edit<R>(&mut self, place: NodeIndex, edit: impl FnOnce(&mut Node) -> R) -> R {
        let chunk = &mut self.chunks[place.chunk];
        let node = &mut chunk.nodes[place.node];
        let (before, bytes_before) = (node.count(), node.allocated_bytes());
        let result = edit(node);
        let (after, bytes_after) = (node.count(), node.allocated_bytes());
        chunk.len = chunk.len + after - before;
        self.len = self.len + after - before;
        self.bytes = self.bytes + bytes_after - bytes_before;
        result
    }

    /// Puts a node at one end of the list.
    pub(super) fn push_node(&mut self, end: End, node: Node) {
        let edge = match end {
            End::Front => self.chunks.front_mut(),
            End::Back => self.chunks.back_mut(),
        };
        self.len += node.count();
        self.bytes += node.allocated_bytes();
        if let Some(chunk) = edge
            && chunk.nodes.len() < CHUNK_NODES_MAX
        {
            let room = chunk.room();
            chunk.len += node.count();
            match end {
                End::Front => chunk.nodes.push_front(node),
                End::Back => chunk.nodes.push_back(node),
            }
            self.bytes = self.bytes + chunk.room() - room;
            return;
        }
        let chunk = Chunk::of(node);
        self.bytes += chunk.room();
        // A list of one chunk, as most are, takes no more than that.
        if self.chunks.is_empty() {
            self.chunks.reserve_exact(1);
        }
        match end {
            End::Front => self.chunks.push_front(chunk),
            End::Back => self.chunks.push_back(chunk),
        }
    }

    /// Puts a node before or behind the one at `place`.
    pub(super) fn insert_node(&mut self, place: NodeIndex, after: bool, node: Node) {
        let chunk = &mut self.chunks[place.chunk];
        let room = chunk.room();
        self.len += node.count();
        self.bytes += node.allocated_bytes();
        chunk.len += node.count();
        chunk.nodes.insert(place.node + usize::from(after), node);
        self.bytes = self.bytes + chunk.room() - room;
        if chunk.nodes.len() > CHUNK_NODES_MAX {
            let room = chunk.room();
            let nodes = chunk.nodes.split_off(CHUNK_NODES_MAX / 2);
            let len = nodes.iter().map(Node::count).sum();
            chunk.len -= len;
            let split = Chunk { len, nodes };
            self.bytes = self.bytes + chunk.room() + split.room() - room;
            self.chunks.insert(place.chunk + 1, split);
        }
    }

    pub(super) fn remove_node(&mut self, place: NodeIndex) -> Node {
        let chunk = &mut self.chunks[place.chunk];
        let node = chunk.nodes.remove(place.node).expect("a place points at a node");
        chunk.len -= node.count();
        self.len -= node.count();
        self.bytes -= node.allocated_bytes();
        if chunk.nodes.is_empty() {
            self.bytes -= chunk.room();
            self.chunks.remove(place.chunk);
        } else if chunk.nodes.len() < CHUNK_NODES_MIN {
            self.join_neighbour(place.chunk);
        }
        node
    }

    /// The place of the node with `ordinal` nodes before it.
    pub(super) fn place_of(&self, ordinal: usize) -> Option<NodeIndex> {
        let mut node = ordinal;
        for (chunk, it) in self.chunks.iter().enumerate() {
            if node < it.nodes.len() {
                return Some(NodeIndex { chunk, node });
            }
            node -= it.nodes.len();
        }
        None
    }

    /// How many nodes stand before the one at `place`.
    pub(super) fn ordinal_of(&self, place: NodeIndex) -> usize {
        let before = self.chunks.range(..place.chunk).map(|chunk| chunk.nodes.len());
        before.sum::<usize>() + place.node
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        self.chunks.capacity() * size_of::<Chunk>() + self.bytes
    }

    /// The same, counted node by node: what the running count must equal.
    #[cfg(any(test, feature = "twins"))]
    pub(super) fn counted_bytes(&self) -> usize {
        let chunks = self.chunks.iter().map(Chunk::bytes).sum::<usize>();
        self.chunks.capacity() * size_of::<Chunk>() + chunks
    }

    fn join_neighbour(&mut self, at: usize) {
        let joins = |left: usize| {
            let (a, b) = (self.chunks.get(left)?, self.chunks.get(left + 1)?);
            (a.nodes.len() + b.nodes.len() <= CHUNK_NODES_MAX / 2).then_some(left)
        };
        let Some(left) = joins(at).or_else(|| joins(at.checked_sub(1)?)) else { return };
        if let Some(mut right) = self.chunks.remove(left + 1) {
            let joined = &mut self.chunks[left];
            let rooms = joined.room() + right.room();
            joined.len += right.len;
            joined.nodes.append(&mut right.nodes);
            self.bytes = self.bytes + joined.room() - rooms;
        }
    }
}

/// Which of `counts`, whose sum is `total`, holds item `index`, and the item's place in it.
fn nearer_end(
    counts: impl DoubleEndedIterator<Item = usize> + ExactSizeIterator,
    total: usize,
    index: usize,
) -> Option<(usize, usize)> {
    if index < total / 2 {
        let mut rest = index;
        for (at, count) in counts.enumerate() {
            if rest < count {
                return Some((at, rest));
            }
            rest -= count;
        }
        return None;
    }
    let mut start = total;
    for (at, count) in counts.enumerate().rev() {
        start -= count;
        if index >= start {
            return Some((at, index - start));
        }
    }
    None
}
