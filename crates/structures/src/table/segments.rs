//! The list of a table's segments, in chunks, so that growing it never copies much.
//!
//! A plain vector would copy 64 bytes per segment whenever it doubles: milliseconds at a hundred
//! million elements. Here the first chunk grows like a vector, for small tables, and full chunks
//! stay where they are; the list of chunks itself stays small enough for the first-level cache.

use std::ops::{Index, IndexMut};

use super::segment::Segment;

/// Segments in a full chunk: 64 KiB of them.
const CHUNK_SEGMENTS: usize = 1 << CHUNK_BITS;
const CHUNK_BITS: u32 = 10;

#[derive(Default)]
pub(super) struct Segments {
    /// All full but the last; none empty.
    chunks: Vec<Vec<Segment>>,
}

impl Segments {
    pub const fn new() -> Self {
        Self { chunks: Vec::new() }
    }

    pub fn len(&self) -> usize {
        let last = self.chunks.last().map_or(0, Vec::len);
        self.chunks.len().saturating_sub(1) * CHUNK_SEGMENTS + last
    }

    pub fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    pub fn iter(&self) -> impl Iterator<Item = &Segment> {
        self.chunks.iter().flatten()
    }

    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Segment> {
        self.chunks.iter_mut().flatten()
    }

    /// Bytes of the lists, without what the segments own.
    pub fn allocated_bytes(&self) -> usize {
        let segments: usize = match &*self.chunks {
            [] => 0,
            [only] => only.capacity(),
            [.., last] => (self.chunks.len() - 1) * CHUNK_SEGMENTS + last.capacity(),
        };
        segments * size_of::<Segment>() + self.chunks.capacity() * size_of::<Vec<Segment>>()
    }

    pub fn push(&mut self, segment: Segment) {
        match self.chunks.last_mut() {
            Some(last) if last.len() < CHUNK_SEGMENTS => last.push(segment),
            Some(_) => {
                let mut chunk = Vec::with_capacity(CHUNK_SEGMENTS);
                chunk.push(segment);
                self.chunks.push(chunk);
            }
            None => {
                // Most tables of big values stay small: no spare capacity yet.
                self.chunks.reserve_exact(1);
                self.chunks.push(vec![segment]);
            }
        }
    }

    /// Takes the segment at `index` out; the last one takes its place.
    pub fn swap_remove(&mut self, index: usize) -> Segment {
        let chunk = self.chunks.last_mut().expect("a segment to remove is in some chunk");
        let last = chunk.pop().expect("no chunk is empty");
        if chunk.is_empty() {
            self.chunks.pop();
        } else if self.chunks.len() == 1 {
            self.shrink_only_chunk();
        }
        if index == self.len() { last } else { std::mem::replace(&mut self[index], last) }
    }

    fn shrink_only_chunk(&mut self) {
        let chunk = &mut self.chunks[0];
        if chunk.capacity() > 4 * chunk.len() {
            chunk.shrink_to(2 * chunk.len());
            self.chunks.shrink_to(1);
        }
    }
}

impl Index<usize> for Segments {
    type Output = Segment;

    #[inline]
    fn index(&self, index: usize) -> &Segment {
        &self.chunks[index >> CHUNK_BITS][index & (CHUNK_SEGMENTS - 1)]
    }
}

impl IndexMut<usize> for Segments {
    #[inline]
    fn index_mut(&mut self, index: usize) -> &mut Segment {
        &mut self.chunks[index >> CHUNK_BITS][index & (CHUNK_SEGMENTS - 1)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::packed::Buckets;

    #[test]
    fn list_behaves_like_a_vector_across_chunks() {
        let (mut list, mut twin) = (Segments::new(), Vec::new());
        let mut dice = crate::twin::Dice::new(3);
        for step in 0..12_000u32 {
            let grows = step / 4_000 % 2 == 0;
            if twin.is_empty() || (dice.below(10) < 8) == grows {
                list.push(Segment::new(0, 0, step, Buckets::alone(1)));
                twin.push(step);
            } else {
                let index = dice.below(twin.len());
                assert_eq!(list.swap_remove(index).prefix, twin.swap_remove(index));
            }
            assert_eq!(list.len(), twin.len());
            assert_eq!(list.is_empty(), twin.is_empty());
        }
        while let Some(last) = twin.len().checked_sub(1) {
            assert!(list.iter().map(|segment| segment.prefix).eq(twin.iter().copied()));
            let index = dice.below(last.min(50) + 1);
            assert_eq!(list[index].prefix, twin[index]);
            for _ in 0..(last / 8 + 1) {
                assert_eq!(list.swap_remove(index.min(list.len() - 1)).prefix, {
                    let index = index.min(twin.len() - 1);
                    twin.swap_remove(index)
                });
            }
        }
        assert!(list.is_empty());
    }
}
