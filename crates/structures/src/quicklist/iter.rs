//! Walks a list between two indexes, from either end.

use super::node::{Body, Node};
use super::spine::{NodeIndex, Spine};
use crate::listpack::{self, Item};

/// Elements of a list. Each end stands in a node and goes on to the next when that is used up.
pub struct Iter<'a> {
    spine: &'a Spine,
    /// Index of the next element from the front.
    start: usize,
    /// One past the index of the next element from the back.
    end: usize,
    front: Option<(NodeIndex, Within<'a>)>,
    back: Option<(NodeIndex, Within<'a>)>,
}

/// The elements left in one node.
enum Within<'a> {
    Packed(listpack::Iter<'a>),
    Plain(Option<&'a [u8]>),
}

impl<'a> Iter<'a> {
    pub(super) fn new(spine: &'a Spine, indexes: std::ops::Range<usize>) -> Self {
        let end = indexes.end.min(spine.len());
        Self { spine, start: indexes.start.min(end), end, front: None, back: None }
    }
}

impl<'a> Within<'a> {
    /// All elements of the node from `offset` on.
    fn from(node: &'a Node, offset: usize) -> Self {
        match &node.body {
            Body::Packed(pack) => Self::Packed(match pack.seek(offset) {
                Some(cursor) => pack.iter_from(cursor),
                None => pack.iter(),
            }),
            Body::Plain(element) => Self::Plain(Some(element)),
        }
    }

    /// All elements of the node up to and with the one at `offset`.
    fn up_to(node: &'a Node, offset: usize) -> Self {
        match &node.body {
            Body::Packed(pack) => Self::Packed(match pack.seek(offset) {
                Some(cursor) => pack.iter_up_to(cursor),
                None => pack.iter(),
            }),
            Body::Plain(element) => Self::Plain(Some(element)),
        }
    }

    fn next(&mut self) -> Option<Item<'a>> {
        match self {
            Self::Packed(items) => items.next(),
            Self::Plain(element) => element.take().map(Item::Bytes),
        }
    }

    fn next_back(&mut self) -> Option<Item<'a>> {
        match self {
            Self::Packed(items) => items.next_back(),
            Self::Plain(element) => element.take().map(Item::Bytes),
        }
    }
}

impl<'a> Iterator for Iter<'a> {
    type Item = Item<'a>;

    fn next(&mut self) -> Option<Item<'a>> {
        if self.start >= self.end {
            return None;
        }
        let place = match &mut self.front {
            Some((place, within)) => {
                if let Some(item) = within.next() {
                    self.start += 1;
                    return Some(item);
                }
                (self.spine.next(*place)?, 0)
            }
            None => self.spine.locate(self.start)?,
        };
        let mut within = Within::from(self.spine.node(place.0), place.1);
        let item = within.next();
        self.front = Some((place.0, within));
        self.start += 1;
        item
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.end - self.start, Some(self.end - self.start))
    }
}

impl DoubleEndedIterator for Iter<'_> {
    fn next_back(&mut self) -> Option<Self::Item> {
        if self.start >= self.end {
            return None;
        }
        let place = match &mut self.back {
            Some((place, within)) => {
                if let Some(item) = within.next_back() {
                    self.end -= 1;
                    return Some(item);
                }
                let before = self.spine.prev(*place)?;
                (before, self.spine.node(before).count() - 1)
            }
            None => self.spine.locate(self.end - 1)?,
        };
        let mut within = Within::up_to(self.spine.node(place.0), place.1);
        let item = within.next_back();
        self.back = Some((place.0, within));
        self.end -= 1;
        item
    }
}

impl ExactSizeIterator for Iter<'_> {}
