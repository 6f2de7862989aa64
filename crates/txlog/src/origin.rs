//! The first record of a log that did not begin empty: where its data comes from.
//!
//! ```text
//! offset 0        1       2               4        8        16       24       32       40
//!        | version | flags | source bytes  | 0      | parent | seq.   | chain  | epoch  | source …
//! ```
//! The data itself stands in a snapshot of this record. So nobody may start from the log alone: it
//! would begin with nothing.

use crate::chain::Chain;
use crate::record::{ChainValue, u64_at};
use base::{Epoch, Incarnation, Position, Sequence};

/// The layout of the payload that this file writes.
const VERSION: u8 = 1;

/// There is a parent.
const FLAG_PARENT: u8 = 1;

/// Bytes before the source.
const HEAD_BYTES: usize = 40;

/// What a source may have, in bytes; more is cut off.
const SOURCE_BYTES_MAX: usize = 1024;

/// Where a log's data comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Origin {
    /// The last record of another log whose effects are there, and where its chain stood.
    pub parent: Option<(Position, Chain)>,
    /// For people: what was restored or imported, and from where.
    pub source: String,
}

impl Origin {
    pub fn encode(&self) -> Vec<u8> {
        let source = &self.source.as_bytes()[..self.source.floor_char_boundary(SOURCE_BYTES_MAX)];
        let mut bytes = vec![0; HEAD_BYTES];
        bytes[0] = VERSION;
        bytes[2..4].copy_from_slice(&(source.len() as u16).to_le_bytes());
        if let Some((position, chain)) = self.parent {
            bytes[1] = FLAG_PARENT;
            bytes[8..16].copy_from_slice(&position.incarnation.0.to_le_bytes());
            bytes[16..24].copy_from_slice(&position.sequence.0.to_le_bytes());
            bytes[24..32].copy_from_slice(&chain.value.0.to_le_bytes());
            bytes[32..40].copy_from_slice(&chain.epoch.0.to_le_bytes());
        }
        bytes.extend_from_slice(source);
        bytes
    }

    /// Reads a record's payload; `None` if this release does not know its form.
    pub fn decode(payload: &[u8]) -> Option<Self> {
        let head: &[u8; HEAD_BYTES] = payload.first_chunk()?;
        let source = &payload[HEAD_BYTES..];
        let is_known = head[0] == VERSION
            && head[1] & !FLAG_PARENT == 0
            && usize::from(u16::from_le_bytes([head[2], head[3]])) == source.len()
            && head[4..8] == [0; 4];
        if !is_known {
            return None;
        }
        let position = Position {
            incarnation: Incarnation(u64_at(head, 8)?),
            sequence: Sequence(u64_at(head, 16)?),
        };
        let chain = Chain { value: ChainValue(u64_at(head, 24)?), epoch: Epoch(u64_at(head, 32)?) };
        let has_parent = head[1] & FLAG_PARENT != 0;
        Some(Self {
            parent: has_parent.then_some((position, chain)),
            source: std::str::from_utf8(source).ok()?.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_origin_is_read_as_it_was_written() {
        let position = Position { incarnation: Incarnation(7), sequence: Sequence(42) };
        let chain = Chain { value: ChainValue(9), epoch: Epoch(3) };
        let sources = [String::new(), "dump.rdb".to_owned(), "ä".repeat(1000)];
        for parent in [None, Some((position, chain))] {
            for source in &sources {
                let origin = Origin { parent, source: source.clone() };
                let bytes = origin.encode();
                let read = Origin::decode(&bytes).expect("it is known");
                assert_eq!(read.parent, parent);
                assert!(source.starts_with(&read.source) && bytes.len() <= 40 + 1024);
                for (at, value) in [(0, 2), (1, 2), (4, 1)] {
                    let mut other = bytes.clone();
                    other[at] = value;
                    assert_eq!(Origin::decode(&other), None, "a newer form");
                }
                assert_eq!(Origin::decode(&bytes[..bytes.len() - 1]), None);
            }
        }
    }
}
