//! Blocks that are allocated anew, with the same content, because of where they lie.
//!
//! Whoever holds a structure walks over it with a [`Mover`], which asks about each block whether it
//! is to move. Nothing changes but addresses: no order, no count, no bytes of memory.

use crate::heap::{ByteBox, ByteVec, TableSlice};

/// Whether the block at this address is to move. How many bytes it has, the second argument says,
/// if it is one of a value's ([`crate::heap`]): that may take a look at the block. Where
/// all others lie, no size decides.
pub type Wanted<'w> = dyn FnMut(usize, Option<&dyn Fn() -> usize>) -> bool + 'w;

/// Asks which blocks are to move, and counts those that did.
pub struct Mover<'w> {
    wanted: &'w mut Wanted<'w>,
    /// Whether elements that hold little in memory ([`crate::Element::is_light`]) are asked about.
    pub moves_light: bool,
    /// Blocks asked about, and how many of them moved.
    pub asked: u64,
    pub moved: u64,
}

impl<'w> Mover<'w> {
    pub fn new(wanted: &'w mut Wanted<'w>) -> Self {
        Self { wanted, moves_light: true, asked: 0, moved: 0 }
    }

    /// Whether the caller is to move a block now, which counts as moved.
    #[inline]
    pub fn takes(&mut self, address: usize, bytes: impl Fn() -> usize) -> bool {
        self.asks(address, Some(&bytes))
    }

    /// The same of a block that is no value's.
    #[inline]
    pub fn takes_ordinary(&mut self, address: usize) -> bool {
        self.asks(address, None)
    }

    fn asks(&mut self, address: usize, bytes: Option<&dyn Fn() -> usize>) -> bool {
        self.asked += 1;
        let takes = (self.wanted)(address, bytes);
        self.moved += u64::from(takes);
        takes
    }

    /// Moves bytes with all the room that they have.
    pub fn vec(&mut self, bytes: &mut ByteVec) {
        if bytes.capacity() > 0 && self.takes(bytes.as_ptr().addr(), || bytes.capacity()) {
            let mut moved = ByteVec::with_capacity(bytes.capacity());
            moved.extend_from_slice(bytes);
            *bytes = moved;
        }
    }

    /// Moves bytes that have no room.
    pub fn bytes(&mut self, bytes: &mut ByteBox) {
        if !bytes.is_empty() && self.takes(bytes.as_ptr().addr(), || bytes.len()) {
            *bytes = bytes.clone();
        }
    }

    /// Moves a slice of a table.
    pub fn table<T: Copy>(&mut self, slice: &mut TableSlice<T>) {
        if !slice.is_empty() && self.takes_ordinary(slice.as_ptr().addr()) {
            *slice = slice.clone();
        }
    }
}
