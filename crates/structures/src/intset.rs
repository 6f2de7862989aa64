//! A sorted set of integers without gaps, all as wide as the widest.
//!
//! Sets of integers up to `set-max-intset-entries` take this form. The bytes are exactly those of
//! Redis (`intset.c`), because DUMP payloads and RDB files carry them raw.
//!
//! ```text
//! | width: u32 (2, 4 or 8) | count: u32 | count × signed integer of `width` bytes, ascending |
//! ```
//! Everything is little-endian. The first number that does not fit widens all of them; removing it
//! does not narrow them again.

#[cfg(any(test, feature = "twins"))]
pub(crate) mod twin;

use crate::heap::ByteVec;
use crate::mover::Mover;
use crate::size_class::growth_class;

const HEADER_BYTES: usize = 8;

/// An intset that owns its bytes.
#[derive(Clone, PartialEq, Eq)]
pub struct Intset {
    bytes: ByteVec,
}

/// An error of bytes that are no intset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IntsetError {
    /// Shorter than the header.
    TooShort,
    /// A width other than 2, 4 and 8.
    BadWidth { width: u32 },
    /// The header's count does not belong to the length of the bytes.
    WrongCount { header: u32 },
    /// The value at this index is not larger than the one before it.
    NotAscending { index: usize },
}

impl std::fmt::Display for IntsetError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooShort => write!(f, "intset is shorter than its header"),
            Self::BadWidth { width } => write!(f, "intset has values of {width} bytes"),
            Self::WrongCount { header } => {
                write!(f, "intset's size is not that of {header} values")
            }
            Self::NotAscending { index } => write!(f, "intset value {index} is out of order"),
        }
    }
}

impl std::error::Error for IntsetError {}

impl Default for Intset {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Intset {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl Intset {
    pub fn new() -> Self {
        Self { bytes: [2, 0, 0, 0, 0, 0, 0, 0].as_slice().into() }
    }

    /// Takes bytes from a file or a peer, after checking the order of every value.
    pub fn from_bytes(bytes: Vec<u8>) -> Result<Self, IntsetError> {
        if bytes.len() < HEADER_BYTES {
            return Err(IntsetError::TooShort);
        }
        let set = Self { bytes: bytes.into() };
        let width = set.header_word(0);
        if !matches!(width, 2 | 4 | 8) {
            return Err(IntsetError::BadWidth { width });
        }
        let header = set.header_word(4);
        if u64::from(header) * u64::from(width) != (set.bytes.len() - HEADER_BYTES) as u64 {
            return Err(IntsetError::WrongCount { header });
        }
        for index in 1..set.len() {
            if set.value(index) <= set.value(index - 1) {
                return Err(IntsetError::NotAscending { index });
            }
        }
        Ok(set)
    }

    /// The whole intset as it goes into an RDB file.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Moves the bytes, if `mover` takes them.
    pub fn move_block(&mut self, mover: &mut Mover<'_>) {
        mover.vec(&mut self.bytes);
    }

    /// Bytes of memory behind the set, without the struct itself.
    pub fn allocated_bytes(&self) -> usize {
        self.bytes.allocated_bytes()
    }

    pub fn len(&self) -> usize {
        self.header_word(4) as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value with `index` smaller ones. O(1), so a random index is a fair draw.
    pub fn get(&self, index: usize) -> Option<i64> {
        (index < self.len()).then(|| self.value(index))
    }

    pub fn iter(&self) -> impl DoubleEndedIterator<Item = i64> + ExactSizeIterator + '_ {
        (0..self.len()).map(|index| self.value(index))
    }

    pub fn contains(&self, value: i64) -> bool {
        self.search(value).is_ok()
    }

    /// Where the value stands, or where it would.
    pub fn search(&self, value: i64) -> Result<usize, usize> {
        let (mut low, mut high) = (0, self.len());
        while low < high {
            let middle = low + (high - low) / 2;
            match self.value(middle).cmp(&value) {
                std::cmp::Ordering::Less => low = middle + 1,
                std::cmp::Ordering::Equal => return Ok(middle),
                std::cmp::Ordering::Greater => high = middle,
            }
        }
        Err(low)
    }

    /// Whether the value was not there before.
    pub fn insert(&mut self, value: i64) -> bool {
        if width_of(value) > self.width() {
            self.widen(width_of(value));
        }
        let Err(index) = self.search(value) else { return false };
        let (width, at, old_len) = (self.width(), self.offset(index), self.bytes.len());
        let needed = old_len + width;
        if needed > self.bytes.capacity() {
            self.bytes.reserve_exact(growth_class(needed) - old_len);
        }
        self.bytes.resize(needed, 0);
        self.bytes.copy_within(at..old_len, at + width);
        self.write(index, value);
        self.set_len(self.len() + 1);
        true
    }

    /// Whether the value was there.
    pub fn remove(&mut self, value: i64) -> bool {
        let Ok(index) = self.search(value) else { return false };
        let (width, at) = (self.width(), self.offset(index));
        self.bytes.copy_within(at + width.., at);
        self.bytes.truncate(self.bytes.len() - width);
        self.set_len(self.len() - 1);
        if self.bytes.len() < self.bytes.capacity() / 2 {
            self.bytes.shrink_to(growth_class(self.bytes.len()));
        }
        true
    }

    /// Rewrites every value with `width` bytes.
    fn widen(&mut self, width: usize) {
        let values: Vec<i64> = self.iter().collect();
        self.bytes[..4].copy_from_slice(&(width as u32).to_le_bytes());
        self.bytes.resize(HEADER_BYTES + values.len() * width, 0);
        for (index, value) in values.into_iter().enumerate() {
            self.write(index, value);
        }
    }

    fn value(&self, index: usize) -> i64 {
        let at = self.offset(index);
        let bytes = &self.bytes[at..];
        match self.width() {
            2 => i64::from(i16::from_le_bytes([bytes[0], bytes[1]])),
            4 => i64::from(i32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])),
            _ => {
                let mut wide = [0; 8];
                wide.copy_from_slice(&bytes[..8]);
                i64::from_le_bytes(wide)
            }
        }
    }

    fn write(&mut self, index: usize, value: i64) {
        let (at, width) = (self.offset(index), self.width());
        self.bytes[at..at + width].copy_from_slice(&value.to_le_bytes()[..width]);
    }

    fn offset(&self, index: usize) -> usize {
        HEADER_BYTES + index * self.width()
    }

    /// Bytes per value: 2, 4 or 8.
    fn width(&self) -> usize {
        self.header_word(0) as usize
    }

    fn set_len(&mut self, len: usize) {
        self.bytes[4..8].copy_from_slice(&(len as u32).to_le_bytes());
    }

    fn header_word(&self, at: usize) -> u32 {
        let bytes = &self.bytes[at..];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}

fn width_of(value: i64) -> usize {
    match value {
        -0x8000..=0x7FFF => 2,
        -0x8000_0000..=0x7FFF_FFFF => 4,
        _ => 8,
    }
}

#[cfg(test)]
mod tests {
    use super::twin::{check, step};
    use super::*;
    use crate::twin::Dice;
    use std::collections::BTreeSet;

    #[test]
    fn numbers_have_the_bytes_that_redis_dumps() {
        let mut set = Intset::new();
        for value in [3, -1, 500, 3] {
            set.insert(value);
        }
        assert_eq!(set.bytes(), b"\x02\0\0\0\x03\0\0\0\xff\xff\x03\0\xf4\x01");
        set.insert(70_000);
        assert_eq!(
            set.bytes(),
            b"\x04\0\0\0\x04\0\0\0\xff\xff\xff\xff\x03\0\0\0\xf4\x01\0\0\x70\x11\x01\0"
        );
        set.remove(70_000);
        assert_eq!(set.bytes()[..8], *b"\x04\0\0\0\x03\0\0\0");
    }

    #[test]
    fn every_operation_does_what_it_does_to_a_tree() {
        for seed in 0..100 {
            let mut dice = Dice::new(seed);
            let (mut set, mut twin) = (Intset::new(), BTreeSet::new());
            // Few wide numbers first, or every set would be of eight bytes after three steps.
            let mask = [0x3F, 0x7FFF, 0x7FFF_FFFF, i64::MAX][seed as usize % 4];
            for _ in 0..300 {
                step(&mut dice, &mut set, &mut twin, mask);
            }
            check(&set, &twin);
        }
    }

    #[test]
    fn foreign_bytes_are_refused_with_the_reason() {
        let check = |bytes: &[u8], expected| {
            assert_eq!(Intset::from_bytes(bytes.to_vec()).err(), Some(expected));
        };
        check(b"\x02\0\0\0\0\0\0", IntsetError::TooShort);
        check(b"\x03\0\0\0\0\0\0\0", IntsetError::BadWidth { width: 3 });
        check(b"\x02\0\0\0\x02\0\0\0\x01\0", IntsetError::WrongCount { header: 2 });
        check(b"\x02\0\0\0\x02\0\0\0\x05\0\x05\0", IntsetError::NotAscending { index: 1 });
    }
}
