//! Changes in the middle of a list.

use super::node::{Body, Node};
use super::spine::NodeIndex;
use super::{End, Quicklist};
use crate::heap::ByteBox;

impl Quicklist {
    /// Replaces the element at `index`. False if there is none. The node may outgrow its limit, as
    /// in Redis, but not what a listpack bears.
    pub fn set(&mut self, index: usize, text: &[u8]) -> bool {
        let Some((place, offset)) = self.spine.locate(index) else { return false };
        let grows_in_place = match &self.spine.node(place).body {
            Body::Packed(pack) => !self.limits.is_large(text.len()) && pack.fits(text.len()),
            Body::Plain(_) => false,
        };
        if grows_in_place {
            self.spine.edit(place, |node| node.replace(offset, text));
        } else if self.spine.node(place).count() == 1 {
            let node = self.limits.node_of(text, false);
            self.spine.edit(place, |old| *old = node);
        } else {
            self.insert_after(index, text);
            self.remove_range(index, 1);
        }
        true
    }

    /// Puts an element before the one at `index`. False if there is none.
    pub fn insert_before(&mut self, index: usize, text: &[u8]) -> bool {
        self.insert(index, text, false)
    }

    /// Puts an element behind the one at `index`. False if there is none.
    pub fn insert_after(&mut self, index: usize, text: &[u8]) -> bool {
        self.insert(index, text, true)
    }

    fn insert(&mut self, index: usize, text: &[u8], after: bool) -> bool {
        let Some((place, offset)) = self.spine.locate(index) else { return false };
        let at = offset + usize::from(after);
        let node = self.spine.node(place);
        if self.limits.allows(node, text.len()) {
            self.spine.edit(place, |node| node.insert(at, text));
        } else if at == 0 || at == node.count() {
            self.insert_beside(place, after, text);
        } else {
            self.insert_by_split(place, at, after, text);
        }
        true
    }

    /// The element goes between the full node at `place` and its neighbour: into the neighbour if
    /// that has room, into a node of its own otherwise.
    fn insert_beside(&mut self, place: NodeIndex, after: bool, text: &[u8]) {
        let (neighbour, end) = match after {
            true => (self.spine.next(place), End::Front),
            false => (self.spine.prev(place), End::Back),
        };
        match neighbour {
            Some(beside) if self.limits.allows(self.spine.node(beside), text.len()) => {
                self.spine.edit(beside, |node| node.push(end, text));
            }
            _ => self.spine.insert_node(place, after, self.limits.node_of(text, false)),
        }
    }

    /// The element goes into the middle of a full node.
    fn insert_by_split(&mut self, place: NodeIndex, at: usize, after: bool, text: &[u8]) {
        let ordinal = self.spine.ordinal_of(place);
        let mut right = self.spine.edit(place, |node| node.split_off(at));
        if self.limits.is_large(text.len()) {
            self.spine.insert_node(place, true, right);
            let left = self.spine.place_of(ordinal).expect("a split leaves the left half there");
            return self.spine.insert_node(left, true, Node::plain(ByteBox::copied(text)));
        }
        // The half that takes the element is the one Redis makes anew.
        if after {
            right.push(End::Front, text);
        } else {
            self.spine.edit(place, |node| node.push(End::Back, text));
        }
        self.spine.insert_node(place, true, right);
        self.merge_around(ordinal + usize::from(!after));
    }

    /// Merges the neighbours of a node, and it with them, as far as the limits allow: a list that
    /// is split again and again would fall into crumbs.
    fn merge_around(&mut self, centre: usize) {
        let mut centre = centre;
        if centre >= 2 && self.merge(centre - 2) {
            centre -= 1;
        }
        self.merge(centre + 1);
        if centre >= 1 && self.merge(centre - 1) {
            centre -= 1;
        }
        self.merge(centre);
    }

    /// Merges the node with `ordinal` nodes before it with the one behind it, if both exist and
    /// the limits allow it.
    fn merge(&mut self, ordinal: usize) -> bool {
        let (Some(left), Some(right)) =
            (self.spine.place_of(ordinal), self.spine.place_of(ordinal + 1))
        else {
            return false;
        };
        if !self.limits.allows_merge(self.spine.node(left), self.spine.node(right)) {
            return false;
        }
        let moved = self.spine.remove_node(right);
        let left = self.spine.place_of(ordinal).expect("removing its neighbour left it there");
        self.spine.edit(left, |node| node.append(&moved));
        true
    }

    /// Removes up to `count` elements from `index` on. Returns how many.
    pub fn remove_range(&mut self, index: usize, count: usize) -> usize {
        let mut left = count;
        while left > 0
            && let Some((place, offset)) = self.spine.locate(index)
        {
            let in_node = self.spine.node(place).count();
            let taken = left.min(in_node - offset);
            if taken == in_node {
                self.spine.remove_node(place);
            } else {
                self.spine.edit(place, |node| node.remove(offset, taken));
            }
            left -= taken;
        }
        count - left
    }

    /// Removes up to `max` elements equal to `text`, looking from `end`. Returns how many.
    pub fn remove_matching(&mut self, text: &[u8], max: usize, end: End) -> usize {
        let mut removed = 0;
        let mut ordinal = match end {
            End::Front => 0,
            End::Back => self.spine.nodes_len().wrapping_sub(1),
        };
        while removed < max
            && let Some(place) = self.spine.place_of(ordinal)
        {
            let node = self.spine.node(place);
            let emptied = if let Body::Plain(element) = &node.body {
                **element == *text
            } else {
                let max = max - removed;
                removed += self.spine.edit(place, |node| node.remove_matching(text, max, end));
                self.spine.node(place).count() == 0
            };
            if emptied {
                removed += self.spine.remove_node(place).count();
            }
            ordinal = match end {
                End::Front => ordinal + usize::from(!emptied),
                End::Back => ordinal.wrapping_sub(1),
            };
        }
        removed
    }
}
