//! One node, and how much may go into it.

use super::End;
use crate::heap::ByteBox;
use crate::listpack::{Item, Listpack};
use crate::mover::Mover;
use crate::slow_touch::touched;

/// Bytes that Redis adds to an element's length when it asks whether the element still fits.
const ENTRY_BYTES_ESTIMATED: usize = 8;

/// A node counted in elements stays below this many bytes all the same (Redis's number).
const COUNTED_NODE_BYTES_MAX: usize = 8 << 10;

/// What Redis thinks a merge saves: header and end mark of the ziplist that nodes once were.
const MERGE_BYTES_SAVED: usize = 11;

/// The limits of a node's size: the settings of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeLimits {
    /// `list-max-listpack-size`: elements per node if not negative, -1 to -5 for 4, 8, 16, 32 or
    /// 64 KiB per node.
    fill: i16,
    /// An element of this many bytes gets a plain node of its own.
    plain_bytes_min: u32,
}

impl Default for NodeLimits {
    /// Redis's defaults: 8 KiB, and no plain node below the size that a listpack bears.
    fn default() -> Self {
        Self::new(-2, 1 << 30)
    }
}

impl NodeLimits {
    /// Values out of range are taken for the nearest one in range.
    pub fn new(list_max_listpack_size: i64, plain_bytes_min: u32) -> Self {
        let fill = list_max_listpack_size.clamp(-5, i64::from(i16::MAX)) as i16;
        Self { fill, plain_bytes_min }
    }

    /// Whether an element of `text_len` bytes may join the node.
    pub(super) fn allows(&self, node: &Node, text_len: usize) -> bool {
        if self.is_large(text_len) || matches!(node.body, Body::Plain(_)) {
            return false;
        }
        self.allows_size(node.bytes() + text_len + ENTRY_BYTES_ESTIMATED, node.count() + 1)
    }

    pub(super) fn allows_merge(&self, left: &Node, right: &Node) -> bool {
        let (Body::Packed(a), Body::Packed(b)) = (&left.body, &right.body) else { return false };
        let bytes = a.total_bytes() + b.total_bytes() - MERGE_BYTES_SAVED;
        self.allows_size(bytes, left.count() + right.count())
    }

    pub(super) fn is_large(&self, text_len: usize) -> bool {
        text_len >= self.plain_bytes_min as usize
    }

    /// A new node that holds one element. A `roomy` one has all the room that it may come to need.
    pub(super) fn node_of(&self, text: &[u8], roomy: bool) -> Node {
        if self.is_large(text.len()) {
            return Node::plain(ByteBox::copied(text));
        }
        let mut pack = match self.bytes_max() {
            Some(bytes) if roomy => Listpack::with_capacity(bytes),
            _ => Listpack::new(),
        };
        pack.push_back(text);
        Node::packed(pack)
    }

    /// Bytes of a node, if it is not elements that count.
    fn bytes_max(&self) -> Option<usize> {
        (self.fill < 0).then(|| (4 << 10) << (-1 - self.fill))
    }

    fn allows_size(&self, bytes: usize, count: usize) -> bool {
        match self.bytes_max() {
            Some(bytes_max) => bytes <= bytes_max,
            None => bytes <= COUNTED_NODE_BYTES_MAX && count <= self.fill as usize,
        }
    }
}

/// A node as an RDB file stores it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeRef<'a> {
    /// Container type 2: the bytes of a listpack.
    Packed(&'a Listpack),
    /// Container type 1: the bytes of one element.
    Plain(&'a [u8]),
}

#[derive(Clone)]
pub(super) enum Body {
    Packed(Listpack),
    Plain(ByteBox),
}

/// At least one element. The count stands beside the pointer, so that looking for an index does
/// not touch the listpacks it passes.
#[derive(Clone)]
pub(super) struct Node {
    count: u32,
    pub(super) body: Body,
}

impl Node {
    pub(super) fn packed(pack: Listpack) -> Self {
        Self { count: pack.len() as u32, body: Body::Packed(pack) }
    }

    pub(super) fn plain(element: ByteBox) -> Self {
        Self { count: 1, body: Body::Plain(element) }
    }

    pub(super) fn count(&self) -> usize {
        self.count as usize
    }

    pub(super) fn view(&self) -> NodeRef<'_> {
        self.touch();
        match &self.body {
            Body::Packed(pack) => NodeRef::Packed(pack),
            Body::Plain(element) => NodeRef::Plain(element),
        }
    }

    /// Says that the node's own block is read next.
    #[inline]
    fn touch(&self) {
        touched(match &self.body {
            Body::Packed(pack) => pack.address(),
            Body::Plain(element) => element.as_ptr(),
        });
    }

    pub(super) fn get(&self, offset: usize) -> Option<Item<'_>> {
        self.touch();
        match &self.body {
            Body::Packed(pack) => pack.get(offset),
            Body::Plain(element) => (offset == 0).then_some(Item::Bytes(element)),
        }
    }

    /// Bytes of the node in an RDB file.
    fn bytes(&self) -> usize {
        match &self.body {
            Body::Packed(pack) => pack.total_bytes(),
            Body::Plain(element) => element.len(),
        }
    }

    pub(super) fn allocated_bytes(&self) -> usize {
        match &self.body {
            Body::Packed(pack) => pack.allocated_bytes(),
            Body::Plain(element) => element.allocated_bytes(),
        }
    }

    /// The listpack, for a change that `NodeLimits::allows`, or any change to a packed node. The
    /// count is brought up to date behind it.
    fn change<R>(&mut self, change: impl FnOnce(&mut Listpack) -> R, added: i64) -> R {
        self.touch();
        let Body::Packed(pack) = &mut self.body else {
            unreachable!("a plain node is replaced, never changed")
        };
        let result = change(pack);
        self.count = u32::try_from(i64::from(self.count) + added)
            .expect("a node never holds fewer than no elements or more than its bytes");
        result
    }

    pub(super) fn push(&mut self, end: End, text: &[u8]) {
        let change = |pack: &mut Listpack| match end {
            End::Front => pack.push_front(text),
            End::Back => pack.push_back(text),
        };
        self.change(change, 1);
    }

    /// `None` leaves the node as it is; callers take the only element by removing the node.
    pub(super) fn pop(&mut self, end: End) -> Option<Vec<u8>> {
        let change = |pack: &mut Listpack| match end {
            End::Front => pack.pop_front(),
            End::Back => pack.pop_back(),
        };
        self.change(change, -1)
    }

    /// Moves the bytes, if `mover` takes them.
    pub(super) fn move_block(&mut self, mover: &mut Mover<'_>) {
        match &mut self.body {
            Body::Packed(pack) => pack.move_block(mover),
            Body::Plain(element) => mover.bytes(element),
        }
    }

    /// Gives back the room of a node that takes no more.
    pub(super) fn shrink(&mut self) {
        if let Body::Packed(pack) = &mut self.body {
            pack.shrink();
        }
    }

    /// Inserts before the element at `offset`, or behind the last one.
    pub(super) fn insert(&mut self, offset: usize, text: &[u8]) {
        let change = |pack: &mut Listpack| match pack.seek(offset) {
            Some(cursor) => {
                pack.insert_before(cursor, text);
            }
            None => pack.push_back(text),
        };
        self.change(change, 1);
    }

    /// Removes `count` elements, which exist, from `offset` on.
    pub(super) fn remove(&mut self, offset: usize, count: usize) {
        let change = |pack: &mut Listpack| {
            let cursor = pack.seek(offset).expect("the caller found the element here");
            pack.remove(cursor, count);
        };
        self.change(change, -(count as i64));
    }

    /// Replaces an element of a packed node.
    pub(super) fn replace(&mut self, offset: usize, text: &[u8]) {
        let change = |pack: &mut Listpack| {
            let cursor = pack.seek(offset).expect("the caller found the element here");
            pack.replace(cursor, text);
        };
        self.change(change, 0);
    }

    /// Cuts the elements from `offset` on into a node of their own; both are packed, none is empty.
    pub(super) fn split_off(&mut self, offset: usize) -> Self {
        let moved = self.count() - offset;
        let change = |pack: &mut Listpack| {
            let cursor = pack.seek(offset).expect("a split leaves elements on both sides");
            pack.split_off(cursor)
        };
        Self { count: moved as u32, body: Body::Packed(self.change(change, -(moved as i64))) }
    }

    /// Moves the elements of `right` behind those of this node; both are packed.
    pub(super) fn append(&mut self, right: &Self) {
        if let Body::Packed(other) = &right.body {
            self.change(|pack| pack.append(other), i64::from(right.count));
        }
    }

    /// Removes up to `max` elements equal to `text`, looking from `end`. Returns how many.
    pub(super) fn remove_matching(&mut self, text: &[u8], max: usize, end: End) -> usize {
        let Body::Packed(pack) = &mut self.body else { return 0 };
        let mut removed = 0;
        let mut next = match end {
            End::Front => pack.first(),
            End::Back => pack.last(),
        };
        while let Some(cursor) = next
            && removed < max
        {
            let found = pack.at(cursor).equals(text);
            next = match (end, found) {
                (End::Front, true) => pack.remove(cursor, 1),
                (End::Front, false) => pack.next(cursor),
                (End::Back, true) => {
                    let before = pack.prev(cursor);
                    pack.remove(cursor, 1);
                    before
                }
                (End::Back, false) => pack.prev(cursor),
            };
            removed += usize::from(found);
        }
        self.count -= removed as u32;
        removed
    }

    pub(super) fn into_only_element(self) -> Vec<u8> {
        match self.body {
            Body::Packed(mut pack) => pack.pop_front().expect("a node holds an element"),
            Body::Plain(element) => element.into_vec(),
        }
    }
}
