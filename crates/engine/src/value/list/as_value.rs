//! A list as a value among others.

use crate::rdb::length::{put_length, put_string};
use crate::rdb::{RdbError, Source, kind};
use crate::value::growing::Parts;
use crate::value::stored::{Cursor, ELEMENT_BYTES, Stored};
use crate::value::{Awaited, Element, Recipe, ValueType};
use crate::work::Work;
use std::io::Read;
use structures::quicklist::NodeRef;
use structures::{MemberBuffer, Quicklist};

/// Containers of a list's nodes.
pub(crate) const NODE_PLAIN: u64 = 1;
pub(crate) const NODE_PACKED: u64 = 2;

impl ValueType for Box<Quicklist> {
    fn type_name(&self) -> &'static str {
        "list"
    }

    fn type_number(&self) -> u32 {
        1
    }

    fn serves(&self) -> Option<Awaited> {
        Some(Awaited::List)
    }

    fn encoding(&self) -> &'static str {
        "quicklist"
    }

    fn elements(&self) -> usize {
        self.len()
    }

    fn allocated_bytes(&self) -> usize {
        size_of::<Quicklist>() + Quicklist::allocated_bytes(self)
    }

    /// Nodes are copied whole, a gigabyte in some tenths of a second.
    fn copied(&self, work: &Work) -> Self {
        work.bytes(Quicklist::allocated_bytes(self));
        self.clone()
    }

    fn try_each<E>(&self, mut visit: impl FnMut(Element<'_>) -> Result<(), E>) -> Result<(), E> {
        let mut buffer = MemberBuffer::new();
        self.iter().try_for_each(|item| visit(Element::Ordered(item.bytes(&mut buffer))))
    }

    fn stored(&self) -> Stored<'_> {
        Stored::InPieces(kind::LIST_QUICKLIST_2, self.node_count())
    }

    fn put_piece(&self, out: &mut Vec<u8>, cursor: &mut Cursor, bytes_max: usize) -> bool {
        let bytes_until = out.len().saturating_add(bytes_max);
        for node in self.nodes_behind(cursor.0 as usize) {
            if out.len() >= bytes_until {
                return false;
            }
            put_node(out, node);
            cursor.0 += 1;
        }
        true
    }

    fn read_element<R: Read>(
        &mut self,
        source: &mut Source<R>,
        parts: &mut Parts,
        recipe: &Recipe<'_>,
        until: u64,
    ) -> Result<bool, RdbError> {
        let container = match parts.number {
            Some(container) => container,
            None => *parts.number.insert(source.length()?),
        };
        if !parts.read(source, 1, until)? {
            return Ok(false);
        }
        parts.number = None;
        let bytes = std::mem::take(&mut parts.strings[0]);
        recipe.work.steps(1 + bytes.len() / ELEMENT_BYTES);
        match container {
            NODE_PLAIN => self.push_plain_node(bytes),
            NODE_PACKED => self.push_packed_node(source.listpack(bytes)?),
            _ => return Err(source.damaged("a list's node of unknown form")),
        }
        Ok(true)
    }
}

fn put_node(out: &mut Vec<u8>, node: NodeRef<'_>) {
    match node {
        NodeRef::Packed(pack) => {
            put_length(out, NODE_PACKED);
            put_string(out, pack.bytes());
        }
        NodeRef::Plain(element) => {
            put_length(out, NODE_PLAIN);
            put_string(out, element);
        }
    }
}
