//! The snapshot walk: every element as it was when the walk began, in slices, beside writes.
//!
//! A segment's range of hashes is divided into 64 cells, whatever its number of buckets, and one
//! bit per cell says whether the walk has visited it. Before a write touches a key, the cell of
//! its hash is visited if it was not yet; so every cell is visited once, in the state it had at
//! the beginning. Cells are ranges of hashes, so an entry belongs to one wherever it lives: home,
//! neighbour or overflow. A split gives each child two cells for each of its parent's, with the
//! parent's marks. A merge would have to join differing marks: none happens during a walk.
//!
//! The protocol, which the table cannot check: during a walk, call [`Table::visit_unwalked`]
//! *before every* insertion, change and removal of a key, with the key's hash.

use super::segment::{FRACTIONS, Segment};
use super::{Element, Table};

/// Cells per segment: the bits of its mark.
const CELLS: u32 = u64::BITS;
const CELL_FRACTIONS: u32 = FRACTIONS / CELLS;
/// How far the walk asks for elements ahead, in cells of about five elements: far enough for
/// memory to answer while the elements in between are visited, near enough to still be cached.
const CELLS_AHEAD: u32 = 4;

/// The state of a table's walk.
pub(super) struct Walk {
    /// The number of the walk; a segment's marks count only if they carry it.
    epoch: u32,
    active: bool,
    /// Every cell before this hash has been visited. Without meaning in a walk that is over.
    position: u64,
}

impl Walk {
    pub(super) const NONE: Self = Self { epoch: 0, active: false, position: 0 };

    pub(super) fn is_active(&self) -> bool {
        self.active
    }
}

impl Segment {
    /// Marks `cell` and says whether it was unmarked.
    fn mark(&mut self, epoch: u32, cell: u32) -> bool {
        if self.walk_epoch != epoch {
            self.walk_epoch = epoch;
            self.walked = 0;
        }
        let fresh = self.walked >> cell & 1 == 0;
        self.walked |= 1 << cell;
        fresh
    }

    /// Asks for what the buckets hold that end with a cell further on, at the segment's
    /// beginning of all up to it: whole buckets, because telling whose element is whose costs more
    /// than asking for a few too early. What lies past the segment's end is left out: it is one
    /// cell in sixteen.
    fn prefetch_ahead<E: Element>(&self, cell: u32) {
        let end = |cell: u32| (cell + CELLS_AHEAD + 1) * CELL_FRACTIONS;
        let bucket_behind = |end: u32| self.home(end.min(FRACTIONS) - 1) + 1;
        let first = if cell == 0 { 0 } else { bucket_behind(end(cell - 1)) };
        for bucket in first..bucket_behind(end(cell)) {
            self.bucket(bucket).for_each(|stored| E::prefetch(stored.raw()));
        }
    }

    fn cell_of_hash(&self, hash: u64) -> u32 {
        self.fraction_of_hash(hash) / CELL_FRACTIONS
    }
}

impl<E: Element> Table<E> {
    /// Begins a walk over what the table holds now; a walk under way is given up.
    pub fn begin_walk(&mut self) {
        let epoch = self.walk.epoch.wrapping_add(1);
        // In an empty table there is nothing to visit: what comes later came after the beginning.
        let active = !self.segments.is_empty();
        self.walk = Walk { epoch, active, position: 0 };
        if epoch == 0 {
            // The numbers start again: marks of four billion walks ago must not count.
            self.walk.epoch = 1;
            self.segments.iter_mut().for_each(|segment| segment.walk_epoch = 0);
        }
    }

    /// Whether a walk has begun and neither finished nor ended.
    pub fn is_walking(&self) -> bool {
        self.walk.active
    }

    /// Gives the walk up; merging of sparse segments resumes.
    pub fn end_walk(&mut self) {
        self.walk.active = false;
    }

    /// Visits the elements of the next cells until `entries_max` have been visited; the last cell,
    /// normally of five elements, is finished. Empty cells count too, eight for an element.
    /// Returns true once everything has been visited; the walk is over then.
    pub fn walk(&mut self, entries_max: usize, mut visit: impl FnMut(E::Ref<'_>)) -> bool {
        let mut visited = 0;
        let mut cells = 0;
        let cells_max = entries_max.saturating_mul(8).max(1);
        while self.walk.active && !self.segments.is_empty() {
            if visited >= entries_max || cells >= cells_max {
                return false;
            }
            cells += 1;
            let position = self.walk.position;
            let segment = self.segment_of(position);
            let cell = segment.cell_of_hash(position);
            segment.prefetch_ahead::<E>(cell);
            self.visit_cell(position, |element| {
                visited += 1;
                visit(element);
            });
            let segment = self.segment_of(position);
            match segment.position_of((cell + 1) * CELL_FRACTIONS) {
                Some(next) => self.walk.position = next,
                None => self.walk.active = false,
            }
        }
        self.end_walk();
        true
    }

    /// Before a write touches the key of `hash`: visits the elements that the write could change
    /// and the walk has not seen. Does nothing outside a walk.
    #[inline]
    pub fn visit_unwalked(&mut self, hash: u64, visit: impl FnMut(E::Ref<'_>)) {
        if self.walk.active && !self.segments.is_empty() {
            self.visit_cell(hash, visit);
        }
    }

    /// Visits the cell that owns `position`, unless it is marked, and marks it.
    fn visit_cell(&mut self, position: u64, mut visit: impl FnMut(E::Ref<'_>)) {
        let index = self.directory[self.directory_index(position)] as usize;
        let segment = &mut self.segments[index];
        let cell = segment.cell_of_hash(position);
        if !segment.mark(self.walk.epoch, cell) {
            return;
        }
        let from = cell * CELL_FRACTIONS;
        segment.for_fractions(from, from + CELL_FRACTIONS, |stored| {
            // SAFETY: `stored` lies in a slot, and the table is borrowed during the call.
            visit(unsafe { E::borrow(stored.raw()) });
        });
    }
}
