//! A walk on which blocks are allocated anew.

use super::segment::FRACTIONS;
use super::{Element, Table};
use crate::mover::Mover;

impl<E: Element> Table<E> {
    /// Moves what `mover` takes of the buckets, unless they are packed, and of the elements from
    /// the hash `position` on, in hash order, in up to `buckets_max` buckets, and hands each
    /// element to `visit` that is not light, or all of them if `mover` moves light ones, so that it
    /// moves what lies behind. Returns where to go on, `None` at the end of the table. Elements
    /// that come or go meanwhile may be left out.
    pub fn move_blocks(
        &mut self,
        mut position: u64,
        buckets_max: usize,
        mover: &mut Mover<'_>,
        mut visit: impl FnMut(E::Mut<'_>, &mut Mover<'_>),
    ) -> Option<u64> {
        for _ in 0..buckets_max {
            let index = self.segment_index(position)?;
            let segment = &mut self.segments[index];
            let bucket = segment.home(segment.fraction_of_hash(position));
            if bucket == 0 {
                segment.move_buckets(mover);
            }
            let moves_light = mover.moves_light;
            let is_passed = |raw: u64| E::is_light(raw) && !moves_light;
            for spot in segment.spots_in(bucket) {
                let raw = segment.stored(spot).raw();
                if !is_passed(raw) {
                    E::prefetch(raw);
                }
            }
            for spot in segment.spots_in(bucket) {
                let raw = segment.stored(spot).raw();
                if is_passed(raw) {
                    continue;
                }
                // SAFETY: `raw` lies in a slot of a table that is borrowed exclusively, and what
                // stands for the element takes its place at once.
                let moved = unsafe { E::moved(raw, mover) };
                segment.set_raw(spot, moved);
                // SAFETY: as above; `visit` keeps nothing.
                visit(unsafe { E::borrow_mut(moved) }, mover);
            }
            let end = segment.home_end(bucket);
            debug_assert!(end <= FRACTIONS);
            position = segment.position_of(end)?;
        }
        Some(position)
    }
}
