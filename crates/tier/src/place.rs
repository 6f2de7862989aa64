//! Where a record lies, in eight bytes.
//!
//! ```text
//! 63                                24 23                     0
//! | offset in the file, in 16 bytes   | length, in 16 bytes    |
//! ```
//!
//! The length is in it so that a record can be released, and the bytes to read be known, without
//! any table of records. It is never 0, so no place is 0.

use std::num::NonZeroU64;

/// What offsets and lengths of records are multiples of.
pub(crate) const UNIT_BYTES: usize = 16;

const LENGTH_BITS: u32 = 24;
const LENGTH_MASK: u64 = (1 << LENGTH_BITS) - 1;

/// Offsets end here: 16 TiB.
pub(crate) const OFFSET_BYTES_END: u64 = UNIT_BYTES as u64 * (1 << (64 - LENGTH_BITS));

/// Where a record lies in the file of a tier. It stays valid until the record is released.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Place(NonZeroU64);

impl Place {
    /// The place of `length` bytes at `offset`, both multiples of 16 and within what fits.
    pub(crate) fn new(offset: u64, length: usize) -> Self {
        let unit = UNIT_BYTES as u64;
        let length = length as u64;
        debug_assert!(offset.is_multiple_of(unit) && length.is_multiple_of(unit));
        assert!(offset < OFFSET_BYTES_END && length / unit <= LENGTH_MASK, "limits bound both");
        Self::from_bits(((offset / unit) << LENGTH_BITS) | (length / unit))
            .expect("no record is empty")
    }

    /// The place that [`Self::bits`] told; none if the length in it is 0, which none has.
    pub fn from_bits(bits: u64) -> Option<Self> {
        NonZeroU64::new(bits).filter(|bits| bits.get() & LENGTH_MASK != 0).map(Self)
    }

    /// The place as a number that is not 0.
    pub fn bits(self) -> u64 {
        self.0.get()
    }

    /// Where the record begins, in bytes of the file.
    pub fn offset(self) -> u64 {
        (self.bits() >> LENGTH_BITS) * UNIT_BYTES as u64
    }

    /// Length of the record in bytes, with its header and the zeroes that pad it.
    pub fn length(self) -> usize {
        (self.bits() & LENGTH_MASK) as usize * UNIT_BYTES
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_its_bits() {
        for (offset, length) in [(0, 32), (16, 16), (OFFSET_BYTES_END - 16, 16 * 0xff_ffff)] {
            let place = Place::new(offset, length);
            assert_eq!((place.offset(), place.length()), (offset, length));
            assert_eq!(Place::from_bits(place.bits()), Some(place));
        }
        assert_eq!(std::mem::size_of::<Option<Place>>(), 8);
    }

    #[test]
    fn a_place_without_length_is_none() {
        assert_eq!(Place::from_bits(0), None);
        assert_eq!(Place::from_bits(7 << LENGTH_BITS), None);
    }
}
