//! Blocks that are allocated anew, with the same content, because of where they lie.
//!
//! Whoever holds a structure walks over it with a [`Mover`], which asks about each block whether it
//! is to move. Nothing changes but addresses: no order, no count, no bytes of memory.
//!
//! **A large block is copied in pieces**, one each time that the walk comes to it, and takes the
//! old one's place behind the last piece. What was copied is good as long as nobody changes the
//! value: that is for the walk to know, which drops the copy of one that did.
//! One block at a time is copied so. Blocks of members and fields are not, since a table has no
//! place to come back to for one of them: large ones stay where they are.

use crate::heap::{ByteBox, ByteVec, Replacement};

/// Larger blocks are copied in pieces, in bytes: these take two milliseconds.
pub const WHOLE_BYTES_MAX: usize = 4 << 20;

/// Bytes of a piece: some 30 µs, with the pages that are touched for the first time.
const PIECE_BYTES: usize = 64 << 10;

/// A block that a walk has come to.
#[derive(Clone, Copy)]
pub struct Met<'b> {
    pub address: usize,
    /// How many bytes it has, if it is one of a value's ([`crate::heap`]): that may take a look at
    /// the block. Where all others lie, no size decides.
    pub bytes: Option<&'b dyn Fn() -> usize>,
    /// The access word of the key that it belongs to.
    pub access: u32,
}

/// Whether a block is to move.
pub type Wanted<'w> = dyn FnMut(Met<'_>) -> bool + 'w;

/// Asks which blocks are to move, and counts those that did.
pub struct Mover<'w> {
    wanted: &'w mut Wanted<'w>,
    /// Whether elements that hold little in memory ([`crate::Element::is_light`]) are asked about.
    pub moves_light: bool,
    /// Whether large blocks are left where they are.
    pub skips_large: bool,
    /// Larger blocks are copied in pieces of so many bytes.
    pub whole_bytes_max: usize,
    pub piece_bytes: usize,
    /// The access word of the key whose blocks are walked over.
    pub access: u32,
    /// A large block's copy that is under way. Whoever walks on later keeps it until then.
    pub copy: Option<Replacement>,
    /// The walk begins where a copy was begun, and has not come to its block yet: what lies before
    /// that had its turn. Set by who walks.
    pub resumes: bool,
    /// A large block was met that has not moved yet: the walk is to come to it again. Set here,
    /// and reset by who walks.
    pub comes_again: bool,
    /// Blocks asked about, and how many of them moved.
    pub asked: u64,
    pub moved: u64,
}

impl<'w> Mover<'w> {
    pub fn new(wanted: &'w mut Wanted<'w>) -> Self {
        Self {
            wanted,
            moves_light: true,
            skips_large: false,
            whole_bytes_max: WHOLE_BYTES_MAX,
            piece_bytes: PIECE_BYTES,
            access: 0,
            copy: None,
            resumes: false,
            comes_again: false,
            asked: 0,
            moved: 0,
        }
    }

    /// Whether the caller is to move a block now, which counts as moved.
    #[inline]
    pub fn takes(&mut self, address: usize, bytes: impl Fn() -> usize) -> bool {
        let takes = self.wants(address, Some(&bytes)) && bytes() <= self.whole_bytes_max;
        self.moved += u64::from(takes);
        takes
    }

    /// The same of a block that is no value's.
    #[inline]
    pub fn takes_ordinary(&mut self, address: usize) -> bool {
        let takes = self.wants(address, None);
        self.moved += u64::from(takes);
        takes
    }

    fn wants(&mut self, address: usize, bytes: Option<&dyn Fn() -> usize>) -> bool {
        self.asked += 1;
        (self.wanted)(Met { address, bytes, access: self.access })
    }

    /// Moves bytes with all the room that they have.
    pub fn vec(&mut self, bytes: &mut ByteVec) {
        let capacity = bytes.capacity();
        if capacity > self.whole_bytes_max {
            if let Some(copied) = self.copied(bytes, capacity) {
                *bytes = copied;
            }
        } else if capacity > 0 && self.takes(bytes.as_ptr().addr(), || capacity) {
            let mut moved = ByteVec::with_capacity(capacity);
            moved.extend_from_slice(bytes);
            *bytes = moved;
        }
    }

    /// Moves bytes that have no room.
    pub fn bytes(&mut self, bytes: &mut ByteBox) {
        if bytes.len() > self.whole_bytes_max {
            if let Some(copied) = self.copied(bytes, bytes.len()) {
                *bytes = ByteBox::of_full(copied);
            }
        } else if !bytes.is_empty() && self.takes(bytes.as_ptr().addr(), || bytes.len()) {
            *bytes = bytes.clone();
        }
    }

    /// Copies a piece of a large block, of which the first bytes have a value. The whole, behind
    /// the last one.
    fn copied(&mut self, bytes: &[u8], capacity: usize) -> Option<ByteVec> {
        let address = bytes.as_ptr().addr();
        let is_copied = self.copy.as_ref().is_some_and(|copy| copy.is_of(address, capacity));
        if self.resumes && !is_copied {
            return None;
        }
        self.resumes = false;
        if self.skips_large || !self.wants(address, Some(&|| capacity)) {
            self.copy.take_if(|_| is_copied);
            return None;
        }
        let mut copy = match self.copy.take() {
            None => Replacement::of(address, capacity)?,
            Some(copy) => copy,
        };
        if copy.is_of(address, capacity) && copy.goes_on(bytes, self.piece_bytes) {
            self.moved += 1;
            return Some(copy.finish());
        }
        self.copy = Some(copy);
        self.comes_again = true;
        None
    }
}
