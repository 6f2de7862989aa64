//! Blocks of values that are allocated anew, in steps.

use super::{Hash, Set, Sorted, Value};
use crate::stream_id::StreamId;
use structures::Mover;

/// Elements that a bucket of a table holds, more or less.
const BUCKET_ELEMENTS: usize = 5;

/// Elements that a node of a list or a block of a stream counts for: it has 8 KB and more, as many
/// short elements have.
const BLOCK_ELEMENTS: usize = 128;

impl Value {
    /// Moves what `mover` takes of some `elements_max` elements, or of one block that holds more.
    /// `from` is 0 at first, then what the call before returned, a number of nodes, a hash or an
    /// ID; `None` at the end. What streams have beside their blocks of entries stays, as do indexes
    /// of fields that expire.
    pub(crate) fn move_blocks(
        &mut self,
        from: u128,
        elements_max: usize,
        mover: &mut Mover<'_>,
    ) -> Option<u128> {
        let hash = from as u64;
        let buckets_max = elements_max.div_ceil(BUCKET_ELEMENTS);
        let blocks_max = elements_max.div_ceil(BLOCK_ELEMENTS);
        match self {
            Self::Text(text) => mover.vec(text),
            Self::List(list) => {
                let nodes = list.move_blocks(from as usize, blocks_max, mover);
                return nodes.map(|next| next as u128);
            }
            Self::Set(Set::Integers(integers)) => integers.move_block(mover),
            Self::Set(Set::Table(members)) => {
                return members.move_blocks(hash, buckets_max, mover).map(u128::from);
            }
            Self::Hash(Hash::Pack(pack)) | Self::Sorted(Sorted::Pack(pack)) => {
                pack.move_block(mover);
            }
            Self::Hash(Hash::TimedPack(pack)) => pack.move_block(mover),
            Self::Hash(Hash::Table(fields)) => {
                return fields.move_blocks(hash, buckets_max, mover).map(u128::from);
            }
            Self::Hash(Hash::TimedTable(timed)) => {
                return timed.move_blocks(hash, buckets_max, mover).map(u128::from);
            }
            Self::Sorted(Sorted::Tree(members)) => {
                return members.move_blocks(hash, buckets_max, mover).map(u128::from);
            }
            Self::Stream(stream) => {
                let from = StreamId::from(from);
                return stream.move_blocks(from, blocks_max, mover).map(u128::from);
            }
        }
        None
    }
}
