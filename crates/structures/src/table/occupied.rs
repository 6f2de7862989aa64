//! A found element, with the right to change, replace or remove it.

use super::{Element, Position, Table, raw_of};

/// Exclusive access to one element of a table; see [`Table::find_mut`].
pub struct Occupied<'t, E: Element> {
    table: &'t mut Table<E>,
    place: Position,
}

impl<'t, E: Element> Occupied<'t, E> {
    pub(super) fn new(table: &'t mut Table<E>, place: Position) -> Self {
        Self { table, place }
    }

    #[inline]
    pub fn as_ref(&self) -> E::Ref<'_> {
        self.table.element_at(self.place)
    }

    #[inline]
    pub fn as_mut(&mut self) -> E::Mut<'_> {
        // SAFETY: the place is occupied, and `self` borrows the whole table exclusively for as
        // long as the result lives.
        unsafe { E::borrow_mut(self.table.raw_at(self.place)) }
    }

    /// Stores `element`, of the same key, and returns the one that was there.
    pub fn replace(&mut self, element: E) -> E {
        let raw = raw_of(element);
        self.table.exchange(self.place, raw)
    }

    /// Passes the element through `change`, which may return another allocation of the same key.
    /// Should `change` panic, the element is gone from the table.
    pub fn update(&mut self, change: impl FnOnce(E) -> E) {
        /// Takes the stale reference out of its slot if `change` does not return.
        struct Hole<'a, E: Element> {
            table: &'a mut Table<E>,
            place: Position,
        }
        impl<E: Element> Drop for Hole<'_, E> {
            fn drop(&mut self) {
                self.table.forget_at(self.place);
            }
        }
        let raw = self.table.raw_at(self.place);
        let hole = Hole { table: &mut *self.table, place: self.place };
        // SAFETY: the slot's value is given back only here: until it is overwritten below, only
        // `Hole` can reach the table, and it forgets the slot without touching the element.
        let new = raw_of(change(unsafe { E::from_raw(raw) }));
        hole.table.segments[hole.place.segment as usize].set_raw(hole.place.spot, new);
        std::mem::forget(hole);
    }

    /// Removes the element from the table.
    pub fn remove(self) -> E {
        self.table.remove_at(self.place)
    }
}
